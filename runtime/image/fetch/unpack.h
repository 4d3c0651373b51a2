// SPDX-License-Identifier: Apache-2.0
// Unpacks the tar stream of a layer into a directory, in the format of the overlay file system: whiteouts become character
// devices 0/0, opaque directories get trusted.overlay.opaque. Can also unpack a plain tree. The stream is untrusted: every step
// works by descriptor inside the target, no link leads out of it, and every size has a limit. After an error the caller deletes
// the target. Source: opencontainers/image-spec layer.md; kernel Documentation/filesystems/overlayfs.rst "whiteouts and opaque
// directories".
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "runtime/image/fetch/source.h"

namespace coracle::image {

struct UnpackLimits {
  int64_t entries_max = 2'000'000;
  int64_t bytes_max = int64_t(64) << 30;           // of all files together, from their headers
  int64_t free_reserve_bytes = int64_t(64) << 20;  // space to leave free on the file system
  size_t path_max = 4096;                          // of a whole path
  size_t depth_max = 256;                          // components of a path
};

struct Unpacked {
  Bytes size;               // of the regular files
  int64_t entries_end = 0;  // length in bytes of all entries in the stream
  // Directories that the stream uses without an entry ("" is the root): they must look as in the layer below.
  std::set<std::string> implicit_dirs;
};

// Reads `stream` (an uncompressed tar) to its end as a layer of an image. `bottom`: there is no layer below, so whiteouts have no
// effect. Errors: invalid (with the entry), too_large, unavailable (disk full), and the source's.
Result<Unpacked> unpack_layer(Source& stream, const Fd& target, bool bottom, const UnpackLimits& limits = {});

// The same for a plain tree, for runtime::Trees: no name has a special meaning, and only the length of paths is limited.
// `counted`: called for each entry with the file's length. Errors: errno's for a full disk.
Result<Unpacked> unpack_tree(Source& stream, const Fd& target, const std::function<void(Bytes bytes)>& counted);

// Gives the implicit directories of a layer the mode, owner, times and attributes that they have in the layers below, topmost
// first.
Result<void> inherit_directories(const Fd& layer, const std::set<std::string>& implicit_dirs,
                                 const std::vector<const Fd*>& below);

}  // namespace coracle::image
