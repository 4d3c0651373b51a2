// SPDX-License-Identifier: Apache-2.0
// A job done: an image pulled from its registry, or the images of an archive imported. What is there already is used;
// what was cut off goes on where it stopped. Runs in coracle-image, but needs nothing of it. Layers are unpacked wherever
// the unpacker does that.
#pragma once

#include "runtime/image/fetch/unpacker.h"
#include "runtime/image/job.h"

namespace coracle::image {

// `archive`: from its position to its end; null for a pull. Errors: as ImageStore's pull and import; what `events`
// answers.
Result<void> fetch(const Job& job, const Fd* archive, Content& content, Unpacker& unpacker, const JobEvents& events);

}  // namespace coracle::image
