// SPDX-License-Identifier: Apache-2.0
// Kubeconfig: which server, whom to trust and who we are, from the file that kubectl reads.
// Source: client-go tools/clientcmd/api/v1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace coracle {

struct KubeconfigChoice {  // what a command line may override; "" = as the file says
  std::string context, cluster, user, ns;
};

struct ServerAccess {  // everything needed to speak to one server
  std::string server;  // "https://127.0.0.1:6443"
  std::string ca_pem;  // whom to trust; "" = the system's
  std::string tls_server_name;
  bool insecure = false;  // trust anybody
  std::string client_certificate_pem, client_key_pem;
  std::string token;
  std::string username, password;
  std::string ns = "default";
  std::string context, user;  // as named in the file
};

// Errors: invalid, naming the file's path and field; not_found for files it names. Users with exec or auth-provider plugins
// are refused: unsupported.
Result<ServerAccess> read_kubeconfig(const std::string& path, const KubeconfigChoice& choice = {});
Result<ServerAccess> parse_kubeconfig(std::string_view text, const std::string& path, const KubeconfigChoice& choice);

// Several files as one: of entries with the same name, and of current-contexts, the first counts. Errors: as above.
Result<ServerAccess> read_kubeconfigs(const std::vector<std::string>& paths, const KubeconfigChoice& choice = {});

// `given`, else those of $KUBECONFIG's files that are there, else the first there is of ~/.kube/config and
// /etc/coracle/admin.kubeconfig. Errors: not_found, saying where was looked; when $KUBECONFIG is set, one of its files must be
// there.
Result<std::vector<std::string>> find_kubeconfigs(const std::string& given);
Result<std::string> find_kubeconfig(const std::string& given);  // the first of these

// The namespaces, contexts and so on, as the file has them, secrets left out. For `config view`.
std::string redacted_kubeconfig(std::string_view text);

}  // namespace coracle
