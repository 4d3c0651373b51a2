// SPDX-License-Identifier: Apache-2.0
// Network namespaces by descriptor. A thread's namespace is a property of the thread, so work inside another one is
// done on a helper thread that ends with it: no caller is ever left in the wrong namespace. Source:
// network_namespaces(7), setns(2).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

Result<Fd> current_netns();                      // the calling thread's
Result<Fd> open_netns(const std::string& path);  // a file of nsfs. Errors: invalid when it is something else
Result<Fd> new_netns();                          // a fresh one, with lo down

// Runs `work` in the namespace, on a thread of its own. Blocks until it has returned; its result is the result.
Result<void> in_netns(const Fd& netns, const std::function<Result<void>()>& work);

// A socket that lives in the namespace, whoever uses it. Arguments as socket(2). Of our own namespace it takes no privilege.
Result<Fd> socket_in_netns(const Fd& netns, int domain, int type, int protocol);

}  // namespace coracle::sys
