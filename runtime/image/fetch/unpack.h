// SPDX-License-Identifier: Apache-2.0
// One layer's tar stream into a directory, in the form the overlay file system reads: whiteouts become character devices
// 0/0, opaque directories get trusted.overlay.opaque. Or a tree that is no layer, as it is. The stream is hostile: everything
// happens by descriptor inside the target, nothing is followed out of it, and every size has a limit. The target is thrown away
// when this fails. Source: opencontainers/image-spec layer.md; kernel Documentation/filesystems/overlayfs.rst "whiteouts and
// opaque directories".
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
  int64_t bytes_max = int64_t(64) << 30;           // of all files together, as their headers say
  int64_t free_reserve_bytes = int64_t(64) << 20;  // what is left free on the file system
  size_t path_max = 4096;                          // a whole path
  size_t depth_max = 256;                          // its parts
};

struct Unpacked {
  Bytes size;               // of the regular files
  int64_t entries_end = 0;  // how many bytes of the stream its entries take
  // Directories that the stream used but did not describe ("" is the root): they must look as in the layer below.
  std::set<std::string> implicit_dirs;
};

// Reads `stream` (a tar, uncompressed) to its end, as one of an image's layers. `bottom`: no layer below, so whiteouts mean
// nothing. Errors: invalid (what the entry did), too_large, unavailable (disk full), and those of the source.
Result<Unpacked> unpack_layer(Source& stream, const Fd& target, bool bottom, const UnpackLimits& limits = {});

// The same of a tree as it is, for runtime::Trees: no name means anything else, and nothing is limited but the length of a path.
// `counted`: called for each entry, with the length of a file. Errors: errno's for a disk that is full.
Result<Unpacked> unpack_tree(Source& stream, const Fd& target, const std::function<void(Bytes bytes)>& counted);

// Gives the implicit directories of a layer the mode, owner, times and attributes they have in the layers below, topmost
// first.
Result<void> inherit_directories(const Fd& layer, const std::set<std::string>& implicit_dirs,
                                 const std::vector<const Fd*>& below);

}  // namespace coracle::image
