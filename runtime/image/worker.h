// SPDX-License-Identifier: Apache-2.0
// The store's end of a job: starts coracle-image in namespaces of its own (an import without network, a pull as two processes,
// of which only the one that downloads has it), hands it the job, and hears it to its end.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "runtime/image/job.h"

namespace coracle::image {

// Blocks until the worker or workers are gone. `files`: see JobKind; of a pull none. Errors: the job's own; internal when the
// worker died, or cannot be started; cancelled.
Result<void> run_job(const std::string& program, const Job& job, const std::vector<const Fd*>& files, const JobEvents& events,
                     std::stop_token stop);

}  // namespace coracle::image
