// SPDX-License-Identifier: Apache-2.0
// Images of the store as an archive. Nothing is kept beside it: each layer is read twice, first for its digest, which stands in
// the archive ahead of it.
#pragma once

#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/image/content.h"

namespace coracle::image {

// Writes an OCI archive of the images, under their references, to `archive` (a pipe will do). Layers are what write_layer makes
// of them: where that is not what they came as, the configuration names the new ones, and so the image's id is another. That
// one is the same wherever the image is exported, and stays the same from there on. Errors: errno's; invalid for a damaged
// configuration.
Result<void> export_images(const std::vector<Record>& images, const Content& content, const Fd& archive);

}  // namespace coracle::image
