// SPDX-License-Identifier: Apache-2.0
// The settings about registries, read again for each pull: who adds one need not start the daemon anew.
#pragma once

#include <memory>
#include <string>

#include "daemon/config.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"

namespace coracle {

class RegistrySource {  // may be copied; thread-safe
 public:
  // `config`: as read at the start, and from where.
  explicit RegistrySource(const Config& config);
  // As the file says now. What cannot be read, or is wrong, leaves them as they were, with a warning in the log.
  runtime::RegistrySettings operator()() const;

 private:
  std::string path_;
  std::shared_ptr<Guarded<runtime::RegistrySettings>> last_;
};

}  // namespace coracle
