// SPDX-License-Identifier: Apache-2.0
// An unpacked layer as a tar stream again: the one that unpacking makes the same directory of. It is hardly the one that the
// layer came as, for the order of entries, padding and headers that say nothing are not kept; the same layer gives the same
// stream on every machine. Source: opencontainers/image-spec layer.md.
#pragma once

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/image/tar_writer.h"

namespace coracle::image {

// `layer` is its directory, in the overlay's form. Reads all of it. Errors: the sink's; errno's; conflict when a file shrinks.
Result<void> write_layer(const Fd& layer, const Sink& to);

}  // namespace coracle::image
