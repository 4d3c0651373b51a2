// SPDX-License-Identifier: Apache-2.0
// Writes an unpacked layer as a tar stream that unpacks to the same directory. It usually differs from the original layer's
// stream, whose order of entries, padding and redundant headers are not stored. The same layer yields the same stream on every
// machine. Source: opencontainers/image-spec layer.md.
#pragma once

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/image/tar_writer.h"

namespace coracle::image {

// `layer` is the layer's directory, in the overlay's format. Reads all of it. Errors: the sink's; errno's; conflict if a file
// shrinks.
Result<void> write_layer(const Fd& layer, const Sink& to);

}  // namespace coracle::image
