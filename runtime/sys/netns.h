// SPDX-License-Identifier: Apache-2.0
// Network namespaces by descriptor. A namespace is a property of a thread, so work in another one runs on a helper thread that
// ends with it: no caller is left in the wrong namespace. Errors: errno's. Source:
// network_namespaces(7), setns(2).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

Result<Fd> current_netns();                      // the calling thread's
Result<Fd> open_netns(const std::string& path);  // a file of nsfs. Errors: invalid for any other file
Result<Fd> new_netns();                          // lo is down

// Runs `work` in the namespace on a new thread. Blocks until it has returned, and returns its result.
Result<void> in_netns(const Fd& netns, const std::function<Result<void>()>& work);

// A socket that belongs to the namespace, whichever thread uses it. Arguments as socket(2). Needs no privilege for our own
// namespace.
Result<Fd> socket_in_netns(const Fd& netns, int domain, int type, int protocol);

}  // namespace coracle::sys
