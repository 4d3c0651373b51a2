// SPDX-License-Identifier: Apache-2.0
// How a layer represents deletions in the layers below: by marker names in a tar stream, and unpacked in the format of the
// overlay file system. Source: opencontainers/image-spec layer.md, "Representing Changes"; kernel
// Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories".
#pragma once

#include <sys/stat.h>

#include <string_view>

namespace coracle::image {

constexpr std::string_view kWhiteout = ".wh.";        // prefix of the name of a deleted entry
constexpr std::string_view kOpaque = ".wh..wh..opq";  // in a directory that hides the layers below
constexpr std::string_view kAufsMeta = ".wh..wh.";    // prefix of other aufs metadata, which is ignored

constexpr const char* kOpaqueAttribute = "trusted.overlay.opaque";  // "y"
inline bool is_whiteout(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == 0; }

// The attributes that an image may set. trusted.* and *.overlay.* would control the overlay file system. Other security.*
// attributes would affect the host's security policy.
inline bool is_image_attribute(std::string_view name) {
  return name == "security.capability" || (name.starts_with("user.") && !name.starts_with("user.overlay."));
}

}  // namespace coracle::image
