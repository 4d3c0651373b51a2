// SPDX-License-Identifier: Apache-2.0
// The servers of image registries, as containerd reads them: a directory for each registry, HOST or HOST_PORT_, or _default for
// those without, with a hosts.toml. Without one, its *.crt are authorities of the registry, and NAME.cert with NAME.key the
// client's certificate, as Docker reads them. Source: containerd, docs/hosts.md and core/remotes/docker/config/hosts.go.
//
//   server = "https://registry.example"         # asked last; absent: the registry itself. What follows it is about it
//   ca = "/f.crt"
//   [host."https://mirror.example:5000"]        # asked before, in this order
//     capabilities = ["pull", "resolve"]        # without resolve only for digests; without pull never
//     ca = ["/f.crt"]                           # client = [["/f.cert", "/f.key"]]; skip_verify = true
//     override_path = true                      # the API is at the URL itself, not at /v2 below it
//     [host."https://mirror.example:5000".header]
//       x-team = "shop"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/registries_file.h"
#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle {

// The servers of a hosts.toml that stands in `directory`, in the order of use. Errors: invalid, with the line and the field
// ("line 4: host.https://m.ca: …").
Result<std::vector<runtime::RegistryServer>> read_hosts_toml(std::string_view text, const std::string& directory,
                                                             const ReadPem& read_pem);
// Adds those of all directories in `path`, if there is one. Blocks on the disk. A registry whose directory is wrong is refused,
// with the file's path before the line: RegistrySettings::refused. Errors: `path` cannot be read; then `settings` is unchanged.
Result<void> add_hosts_directory(const std::string& path, runtime::RegistrySettings& settings);

}  // namespace coracle
