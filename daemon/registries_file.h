// SPDX-License-Identifier: Apache-2.0
// registries.yaml: mirrors, names on mirrors, credentials and certificates of image registries, as k3s reads them. It stands
// beside the kubeconfig, in configDir, and is for root only, because it has passwords. Source: k3s, "Private Registry
// Configuration".
//
//   mirrors:
//     docker.io:                                   # or "*", for all that have none of their own
//       endpoint: ["https://mirror.example:5000"]  # tried in this order, then the registry itself; with a path: the API's
//       rewrite: {"^library/(.*)": "hub/$1"}       # names of repositories on mirrors
//   configs:
//     "mirror.example:5000":                       # of a mirror or a registry; or "*"
//       auth: {username: u, password: p}           # or auth: the base64 of both, or identity_token:
//       tls: {ca_file: /f, cert_file: /f, key_file: /f, insecure_skip_verify: false}
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle {

using ReadPem = std::function<Result<std::string>(const std::string& path)>;

// Adds what the text says to `settings`; the text's mirrors of a registry replace those that it has. `read_pem` reads the files
// that it names. A wrong entry is refused, with the file, the line and the field ("FILE: line 4: mirrors.docker.io.endpoint: …"),
// and the others are used: RegistrySettings::refused, RegistryHost::refused. Errors: invalid, for what is wrong and belongs to no
// registry or host; then `settings` is unchanged.
Result<void> add_registries(std::string_view yaml, const std::string& file, const ReadPem& read_pem,
                            runtime::RegistrySettings& settings);
// The same for the file, if there is one. Blocks on the disk. Errors: those, and that it cannot be read.
Result<void> add_registries_file(const std::string& path, runtime::RegistrySettings& settings);

// Why a text is no URL of a registry or mirror, without a password that stands in it. "": it is one, as "https://host",
// "http://host:port/path" and "host" are.
std::string registry_url_fault(std::string_view url);

// True for what is in a file of certificates or keys, where somebody has given it in place of the file's path. Errors are without
// it: it may be a private key.
inline bool is_pem(std::string_view text) { return text.find("-----BEGIN ") != text.npos; }
inline constexpr const char* kPemInPlaceOfPath = "must be the path of a file, not what is in it";

}  // namespace coracle
