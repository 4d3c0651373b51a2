// SPDX-License-Identifier: Apache-2.0
// Executes a job: pulls an image from its registry, or imports the images of an archive. Existing content is reused, and
// interrupted downloads are resumed. It runs in coracle-image but does not depend on that. The Unpacker decides which process
// unpacks the layers.
#pragma once

#include "runtime/image/fetch/unpacker.h"
#include "runtime/image/job.h"

namespace coracle::image {

// `archive`: read from its offset to its end; null for a pull. Errors: those of ImageStore's pull and import; those that `events`
// returns.
Result<void> fetch(const Job& job, const Fd* archive, Content& content, Unpacker& unpacker, const JobEvents& events);

}  // namespace coracle::image
