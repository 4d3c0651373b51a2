// SPDX-License-Identifier: Apache-2.0
// The settings about image registries: those of config.yaml, of registries.yaml (registries_file.h) and of certs.d
// (hosts_directory.h). They are read again before each pull, so that changes need no restart.
#pragma once

#include <memory>
#include <string>

#include "daemon/config.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"

namespace coracle {

// The settings of all these files. Blocks on the disk. Errors: of registries.yaml and certs.d.
Result<runtime::RegistrySettings> read_registry_settings(const Config& config);

class RegistrySource {  // copyable; thread-safe
 public:
  // `config`: as read at the start, with its path. If the other files are invalid, they are not used, with a warning in the log.
  explicit RegistrySource(const Config& config);
  // The current settings of the files. If one cannot be read or is invalid, the last valid ones, with a warning in the log.
  runtime::RegistrySettings operator()() const;

 private:
  std::string path_;
  std::shared_ptr<Guarded<runtime::RegistrySettings>> last_;
};

}  // namespace coracle
