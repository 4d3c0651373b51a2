// SPDX-License-Identifier: Apache-2.0
// The settings about image registries: those of config.yaml, of registries.yaml (registries_file.h) and of certs.d
// (hosts_directory.h). They are read again before each pull, so that changes need no restart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"

namespace coracle {

// The settings of all these files. What is wrong is refused, as runtime::RegistrySettings says: all, if a file cannot be read or
// parsed. Blocks on the disk.
runtime::RegistrySettings read_registry_settings(const Config& config);
// Why what is refused, each once: "PATH: line 4: mirrors.docker.io.endpoint: …".
std::vector<std::string> refusals_in(const runtime::RegistrySettings& settings);

class RegistrySource {  // copyable; thread-safe
 public:
  // `config`: as read at the start, with its path. What is refused is in the log, once.
  explicit RegistrySource(const Config& config);
  // The current settings of the files. If a file cannot be read or parsed, as while it is written, those that were read before.
  runtime::RegistrySettings operator()() const;

 private:
  struct Last {
    runtime::RegistrySettings settings;
    bool is_read = false;
    std::vector<std::string> told;  // what is wrong, as last logged
  };
  void take(runtime::RegistrySettings now) const;

  std::string path_;
  std::shared_ptr<Guarded<Last>> last_;
};

}  // namespace coracle
