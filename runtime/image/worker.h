// SPDX-License-Identifier: Apache-2.0
// The store's side of a job: starts coracle-image in new namespaces, sends it the job, and processes its messages. Only a
// download has the network; a pull is two processes, of which one downloads.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "runtime/image/job.h"

namespace coracle::image {

// Blocks until the worker processes have exited. `files`: see JobKind; none for a pull. Errors: the job's; internal if a worker
// dies or cannot be started; cancelled.
Result<void> run_job(const std::string& program, const Job& job, const std::vector<const Fd*>& files, const JobEvents& events,
                     std::stop_token stop);

}  // namespace coracle::image
