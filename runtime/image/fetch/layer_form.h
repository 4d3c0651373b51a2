// SPDX-License-Identifier: Apache-2.0
// How a layer says what it takes away from those below it: by marks in the names of a tar stream; unpacked, in the overlay file
// system's form. Source: opencontainers/image-spec layer.md, "Representing Changes"; kernel
// Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories".
#pragma once

#include <sys/stat.h>

#include <string_view>

namespace coracle::image {

constexpr std::string_view kWhiteout = ".wh.";        // before the name of what is gone
constexpr std::string_view kOpaque = ".wh..wh..opq";  // in a directory of which nothing below is seen
constexpr std::string_view kAufsMeta = ".wh..wh.";    // other bookkeeping of aufs: nothing to us

constexpr const char* kOpaqueAttribute = "trusted.overlay.opaque";  // "y"
inline bool is_whiteout(const struct stat& info) { return S_ISCHR(info.st_mode) && info.st_rdev == 0; }

// The attributes an image may bring. trusted.* and *.overlay.* would speak to the overlay file system in our name,
// security.* beside file capabilities to the host's own policy.
inline bool is_image_attribute(std::string_view name) {
  return name == "security.capability" || (name.starts_with("user.") && !name.starts_with("user.overlay."));
}

}  // namespace coracle::image
