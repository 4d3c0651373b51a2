// SPDX-License-Identifier: Apache-2.0
// Kubeconfig: which server, whom to trust and who we are, from the files that kubectl reads.
//   files ──load_kubeconfigs()──▶ one merged document ──access_of()──▶ ServerAccess
// Source: client-go tools/clientcmd (loader.go, client_config.go, validation.go) and its api/v1.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

struct Impersonation {  // act as another user, by Impersonate-* headers
  std::string user, uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::string>> extra;  // a key may stand several times
  bool empty() const { return user.empty() && uid.empty() && groups.empty() && extra.empty(); }
};

struct KubeconfigChoice {  // what a command line may override; "" = as the files say
  std::string context, cluster, user, ns;
  std::string server, tls_server_name, certificate_authority;  // of the cluster
  std::optional<bool> insecure;
  std::string client_certificate, client_key, token, username, password;  // of the user
  Impersonation impersonate;
};

// A credential plugin: a program that prints an ExecCredential. Source: client.authentication.k8s.io/v1 and v1beta1.
struct ExecPlugin {
  std::string api_version, command, install_hint;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  enum class Interactive { never, if_available, always } interactive = Interactive::if_available;
  json::value cluster;  // spec.cluster of what the plugin gets, where provideClusterInfo is true; else null
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
  std::string proxy_url;      // "" = none
  std::string local_socket;   // of this machine's daemon, if it is this server and for this user (local_socket.h); "" = none
  Impersonation impersonate;
  std::optional<ExecPlugin> exec;  // for the token or certificate, where there is no token, password or certificate
};

// Errors: invalid, naming the file's path and field, or in kubectl's words what the choice lacks; not_found for files it names;
// unsupported for auth-provider plugins.
Result<ServerAccess> read_kubeconfig(const std::string& path, const KubeconfigChoice& choice = {});
Result<ServerAccess> parse_kubeconfig(std::string_view text, const std::string& path, const KubeconfigChoice& choice);

// Several files as one: of entries with the same name, and of current-contexts, the first counts. None: what `choice` says.
// Errors: as above.
Result<ServerAccess> read_kubeconfigs(const std::vector<std::string>& paths, const KubeconfigChoice& choice = {});

// `given`; otherwise the existing files of $KUBECONFIG; otherwise the first existing of ~/.kube/config and
// /etc/coracle/admin.kubeconfig. Errors: not_found, with the paths; also if $KUBECONFIG is set and none of its files exists.
Result<std::vector<std::string>> find_kubeconfigs(const std::string& given);

// ---- documents, for those who show and change them ----

constexpr const char* kMachineKubeconfig = "/etc/coracle/admin.kubeconfig";

// The lists of a kubeconfig, and the field of their entries beside "name".
struct KubeconfigList {
  const char *list, *field;
};
constexpr KubeconfigList kKubeconfigLists[] = {{"clusters", "cluster"}, {"contexts", "context"}, {"users", "user"}};

// One file's text as a document; {} of an empty text. Errors: invalid, naming the path and the field or line.
Result<json::value> parse_kubeconfig_document(std::string_view text, const std::string& path);
// What `config` lacks is added from `other`.
void merge_kubeconfig(json::value& config, const json::value& other);
// Files that `config`, which stands at `path`, names by relative paths get absolute ones.
void make_paths_absolute(json::value& config, const std::string& path);
// The object of the entry called `name`; nullptr when there is none.
const json::value* kubeconfig_entry(const json::value& config, const KubeconfigList& list, std::string_view name);

}  // namespace coracle
