// SPDX-License-Identifier: Apache-2.0
// Exports images of the store as an archive, without temporary files: each layer is read twice, first to compute its digest,
// which precedes it in the archive.
#pragma once

#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/image/content.h"

namespace coracle::image {

// Writes an OCI archive of the images, under their references, to `archive` (may be a pipe). Layers are the output of
// write_layer. If that differs from the original layer, the configuration contains the new digests, and the image id changes. The
// new id is the same wherever the image is exported, and does not change again. Errors: errno's; invalid for a damaged
// configuration.
Result<void> export_images(const std::vector<Record>& images, const Content& content, const Fd& archive);

}  // namespace coracle::image
