// SPDX-License-Identifier: Apache-2.0
// Kubeconfig: the server, its CA and our credentials, from the file that kubectl reads.
// Source: client-go tools/clientcmd/api/v1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace coracle {

struct KubeconfigChoice {  // overrides from the command line; "": from the file
  std::string context, cluster, user, ns;
};

struct ServerAccess {  // everything needed to access one server
  std::string server;  // "https://127.0.0.1:6443"
  std::string ca_pem;  // trusted CAs; "": the system's
  std::string tls_server_name;
  bool insecure = false;  // does not verify the server's certificate
  std::string client_certificate_pem, client_key_pem;
  std::string token;
  std::string username, password;
  std::string ns = "default";
  std::string context, user;  // their names in the file
};

// Errors: invalid, with the file's path and the field; not_found for files it refers to; unsupported for users with exec or
// auth-provider plugins.
Result<ServerAccess> read_kubeconfig(const std::string& path, const KubeconfigChoice& choice = {});
Result<ServerAccess> parse_kubeconfig(std::string_view text, const std::string& path, const KubeconfigChoice& choice);

// Merges several files: the first entry of a name and the first current-context win. Errors: as above.
Result<ServerAccess> read_kubeconfigs(const std::vector<std::string>& paths, const KubeconfigChoice& choice = {});

// `given`; otherwise the existing files of $KUBECONFIG; otherwise the first existing of ~/.kube/config and
// /etc/coracle/admin.kubeconfig. Errors: not_found, with the paths; also if $KUBECONFIG is set and none of its files exists.
Result<std::vector<std::string>> find_kubeconfigs(const std::string& given);
Result<std::string> find_kubeconfig(const std::string& given);  // the first of them

// The file's contents without secrets, for `config view`.
std::string redacted_kubeconfig(std::string_view text);

}  // namespace coracle
