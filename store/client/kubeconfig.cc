// SPDX-License-Identifier: Apache-2.0
// See kubeconfig.h.
#include "store/client/kubeconfig.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "runtime/base/read_rest.h"
#include "runtime/base/text.h"
#include "store/client/local_socket.h"
#include "store/client/proxy.h"
#include "store/object/yaml.h"

namespace coracle {
namespace {

constexpr KubeconfigList kClusters = kKubeconfigLists[0];
constexpr KubeconfigList kContexts = kKubeconfigLists[1];
constexpr KubeconfigList kUsers = kKubeconfigLists[2];
constexpr const char* kExecExtension = "client.authentication.k8s.io/exec";

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::from_errno("read " + path);
  return read_rest(file, path);
}

// The path, as an open() of kubectl's would report it; "" when the file can be read.
std::string unreadable(const std::string& path) {
  if (std::ifstream(path, std::ios::binary)) return {};
  return "open " + path + ": " + to_lower(std::strerror(errno));
}

const std::string& or_else(const std::string& first, const std::string& second) { return first.empty() ? second : first; }

// The cluster and the user that were chosen, with the command line's changes: copies of the merged document's entries.
struct Chosen {
  std::string context_name, cluster_name, user_name;
  const json::value* context = nullptr;
  json::value cluster = json::object(), user = json::object();
};

void set_string(json::value& object, const char* field, const std::string& value) {
  if (!value.empty()) object.get_object()[field] = value;
}

// A file given by a flag replaces what the kubeconfig holds inline.
void set_file(json::value& object, const char* field, const std::string& path) {
  if (path.empty()) return;
  object.get_object()[field] = path;
  object.get_object().erase(std::string(field) + "-data");
}

void override_cluster(json::value& cluster, const KubeconfigChoice& choice) {
  json::object& fields = cluster.get_object();
  set_string(cluster, "server", choice.server);
  // A certificate's name belongs to its server: another server has another one.
  if (!choice.server.empty()) fields.erase("tls-server-name");
  set_string(cluster, "tls-server-name", choice.tls_server_name);
  if (choice.insecure) {
    fields["insecure-skip-tls-verify"] = *choice.insecure;
    if (*choice.insecure) fields.erase("certificate-authority"), fields.erase("certificate-authority-data");
  }
  set_file(cluster, "certificate-authority", choice.certificate_authority);
}

void override_user(json::value& user, const KubeconfigChoice& choice) {
  set_file(user, "client-certificate", choice.client_certificate);
  set_file(user, "client-key", choice.client_key);
  set_string(user, "token", choice.token);
  if (!choice.token.empty()) user.get_object().erase("tokenFile");
  set_string(user, "username", choice.username);
  set_string(user, "password", choice.password);
  set_string(user, "as", choice.impersonate.user);
  set_string(user, "as-uid", choice.impersonate.uid);
  if (!choice.impersonate.groups.empty())
    user.get_object()["as-groups"] = json::array(choice.impersonate.groups.begin(), choice.impersonate.groups.end());
  if (choice.impersonate.extra.empty()) return;
  json::object extra;
  for (const auto& [key, value] : choice.impersonate.extra) {
    if (!extra.contains(key)) extra[key] = json::array();
    extra[key].get_array().emplace_back(value);
  }
  user.get_object()["as-user-extra"] = std::move(extra);
}

Result<Chosen> choose(const json::value& config, const std::string& path, const KubeconfigChoice& choice) {
  Chosen chosen;
  chosen.context_name = or_else(choice.context, std::string(get_string(config, "current-context")));
  chosen.context = kubeconfig_entry(config, kContexts, chosen.context_name);
  auto name_of = [&](const std::string& given, const char* field) {
    return given.empty() && chosen.context ? std::string(get_string(*chosen.context, field)) : given;
  };
  chosen.user_name = name_of(choice.user, "user"), chosen.cluster_name = name_of(choice.cluster, "cluster");
  if (!chosen.context && !chosen.context_name.empty())
    return Error(Code::invalid, "Error in configuration: context was not found for specified context: " + chosen.context_name);
  const json::value* user = kubeconfig_entry(config, kUsers, chosen.user_name);
  if (!user && !choice.user.empty()) return Error(Code::invalid, "auth info " + coracle::quoted(choice.user) + " does not exist");
  const json::value* cluster = kubeconfig_entry(config, kClusters, chosen.cluster_name);
  if (!cluster && !choice.cluster.empty())
    return Error(Code::invalid, choice.server.empty() ? "no server found for cluster " + coracle::quoted(choice.cluster)
                                                      : "cluster " + coracle::quoted(choice.cluster) + " does not exist");
  if (!cluster && choice.server.empty()) {
    if (chosen.context)
      return Error(Code::invalid, path + ": cluster " + coracle::quoted(chosen.cluster_name) + " does not exist");
    if (get_array(config, "clusters").empty()) return Error(Code::invalid, path + ": names no clusters");
    std::vector<std::string> names;
    for (const auto& entry : get_array(config, "contexts")) names.emplace_back(get_string(entry, "name"));
    return Error(Code::invalid, path + ": no current-context is set; choose with --context: " + join(names, ", "));
  }
  if (!user && !chosen.user_name.empty())
    return Error(Code::invalid, path + ": user " + coracle::quoted(chosen.user_name) + " does not exist");
  if (cluster) chosen.cluster = *cluster;
  if (user) chosen.user = *user;
  override_cluster(chosen.cluster, choice);
  override_user(chosen.user, choice);
  return chosen;
}

bool has(const json::value& object, const char* field) { return !get_string(object, field).empty(); }

void check_file(const json::value& object, const char* field, const std::string& words, const std::string& name,
                std::vector<std::string>& findings) {
  std::string path(get_string(object, field));
  if (path.empty() || has(object, (std::string(field) + "-data").c_str())) return;
  if (std::string why = unreadable(path); !why.empty())
    findings.push_back("unable to read " + words + " " + path + " for " + name + " due to " + why);
}

void check_exec(const json::value& user, const std::string& name, std::vector<std::string>& findings) {
  const json::value* exec = find(user, "exec");
  if (!exec) return;
  const std::string use = " to use exec authentication plugin";
  if (find(user, "auth-provider"))
    findings.push_back("authProvider cannot be provided in combination with an exec plugin for " + name);
  if (!has(*exec, "command")) findings.push_back("command must be specified for " + name + use);
  if (!has(*exec, "apiVersion")) findings.push_back("apiVersion must be specified for " + name + use);
  for (const auto& variable : get_array(*exec, "env"))
    if (!has(variable, "name")) findings.push_back("env variable name must be specified for " + name + use);
  std::string_view mode = get_string(*exec, "interactiveMode");
  // v1beta1 takes IfAvailable for granted, v1 has it said.
  if (mode.empty() && get_string(*exec, "apiVersion") == "client.authentication.k8s.io/v1")
    findings.push_back("interactiveMode must be specified for " + name + use);
  else if (!mode.empty() && mode != "Never" && mode != "IfAvailable" && mode != "Always")
    findings.push_back("invalid interactiveMode for " + name + ": " + coracle::quoted(mode));
}

std::vector<std::string> findings_of(const Chosen& chosen) {
  std::vector<std::string> findings;
  const json::value &user = chosen.user, &cluster = chosen.cluster;
  const std::string& name = chosen.user_name;
  std::vector<std::string> methods;
  if (has(user, "token")) methods.emplace_back("token");
  if (has(user, "username") || has(user, "password")) methods.emplace_back("basicAuth");
  if (has(user, "client-certificate") || has(user, "client-certificate-data")) {
    if (!has(user, "client-key") && !has(user, "client-key-data"))
      findings.push_back("client-key-data or client-key must be specified for " + name +
                         " to use the clientCert authentication method.");
    check_file(user, "client-certificate", "client-cert", name, findings);
    check_file(user, "client-key", "client-key", name, findings);
  }
  check_exec(user, name, findings);
  if (methods.size() > 1)
    findings.push_back("more than one authentication method found for " + name + "; found [" + join(methods, " ") +
                       "], only one is allowed");
  bool impersonates = has(user, "as-uid") || !get_array(user, "as-groups").empty() || !get_object(user, "as-user-extra").empty();
  if (impersonates && !has(user, "as"))
    findings.push_back("requesting uid, groups or user-extra for " + name + " without impersonating a user");
  if (!has(cluster, "server")) findings.push_back("no server found for cluster " + coracle::quoted(chosen.cluster_name));
  if (std::string proxy(get_string(cluster, "proxy-url")); !proxy.empty())
    if (auto usable = check_proxy_url(proxy); !usable)
      findings.push_back("invalid 'proxy-url' " + coracle::quoted(proxy) + " for cluster " +
                         coracle::quoted(chosen.cluster_name) + ": " + usable.error().text());
  check_file(cluster, "certificate-authority", "certificate-authority", chosen.cluster_name, findings);
  return findings;
}

// "x-data" (base64) or the file named by "x".
Result<std::string> pem_of(const json::value& from, const std::string& field, const std::string& path) {
  std::string_view data = get_string(from, field + "-data");
  if (!data.empty()) return base64_decode(data).wrap(path + ": " + field + "-data");
  std::string file(get_string(from, field));
  if (file.empty()) return std::string();
  return read_text(file).wrap(path + ": " + field);
}

ExecPlugin plugin_of(const json::value& exec) {
  ExecPlugin plugin;
  plugin.api_version = get_string(exec, "apiVersion");
  plugin.command = get_string(exec, "command");
  plugin.install_hint = get_string(exec, "installHint");
  plugin.args = get_strings(exec, "args");
  for (const auto& variable : get_array(exec, "env"))
    plugin.env.emplace_back(std::string(get_string(variable, "name")), std::string(get_string(variable, "value")));
  std::string_view mode = get_string(exec, "interactiveMode");
  if (mode == "Never") plugin.interactive = ExecPlugin::Interactive::never;
  if (mode == "Always") plugin.interactive = ExecPlugin::Interactive::always;
  return plugin;
}

// spec.cluster of an ExecCredential.
json::value cluster_for_plugin(const json::value& cluster, const ServerAccess& access) {
  json::object shown{{"server", access.server}};
  if (!access.tls_server_name.empty()) shown["tls-server-name"] = access.tls_server_name;
  if (access.insecure) shown["insecure-skip-tls-verify"] = true;
  if (!access.ca_pem.empty()) shown["certificate-authority-data"] = base64_encode(access.ca_pem);
  if (!access.proxy_url.empty()) shown["proxy-url"] = access.proxy_url;
  if (get_bool(cluster, "disable-compression")) shown["disable-compression"] = true;
  shown["config"] = nullptr;
  for (const auto& extension : get_array(cluster, "extensions"))
    if (get_string(extension, "name") == kExecExtension)
      if (const json::value* config = find(extension, "extension")) shown["config"] = *config;
  return shown;
}

// OpenID Connect, whose provider gives new tokens to a browser: the one that is there is used as it is.
Result<void> read_auth_provider(ServerAccess& access, const json::value& user) {
  const json::value* provider = find(user, "auth-provider");
  if (!provider) return {};
  std::string name(get_string(*provider, "name"));
  auto removed = [&](const char* plugin, const char* more) {
    return Error(Code::unsupported, "The " + name + " auth plugin has been removed.\nPlease use the " + plugin +
                                        " kubectl/client-go credential plugin instead.\nSee " + more + " for further details");
  };
  if (name == "gcp")
    return removed("\"gke-gcloud-auth-plugin\"",
                   "https://cloud.google.com/blog/products/containers-kubernetes/kubectl-auth-changes-in-gke");
  if (name == "azure") return removed("https://github.com/Azure/kubelogin", "https://github.com/Azure/kubelogin");
  if (name != "oidc") return Error(Code::unsupported, "no Auth Provider found for name " + coracle::quoted(name));
  std::string_view token = get_string(*provider, "config.id-token");
  if (token.empty())
    return Error(Code::unsupported, "user " + coracle::quoted(access.user) +
                                        ": auth-provider oidc has no id-token; sign in by an exec plugin (kubelogin) instead");
  if (access.token.empty()) access.token = token;
  return {};
}

Result<void> read_user(ServerAccess& access, const json::value& user, const json::value& cluster, const std::string& path) {
  access.client_certificate_pem = TRY(pem_of(user, "client-certificate", path));
  access.client_key_pem = TRY(pem_of(user, "client-key", path));
  access.token = get_string(user, "token");
  if (std::string file(get_string(user, "tokenFile")); !file.empty()) {
    auto text = read_text(file);  // what it holds is newer than the token beside it
    if (text && !trim(*text).empty()) access.token = trim(*text);
    else if (!text && access.token.empty()) return text.take_error().wrap(path + ": tokenFile");
  }
  access.username = get_string(user, "username");
  access.password = get_string(user, "password");
  TRY(read_auth_provider(access, user));
  if (const json::value* exec = find(user, "exec")) {
    access.exec = plugin_of(*exec);
    if (get_bool(*exec, "provideClusterInfo")) access.exec->cluster = cluster_for_plugin(cluster, access);
  }
  return {};
}

// "host:1234" is a server, too: https where something says how to trust it, as client-go's DefaultServerURL has it.
std::string with_scheme(const std::string& server, const json::value& cluster) {
  if (server.find("://") != server.npos) return server;
  bool tls = has(cluster, "certificate-authority") || has(cluster, "certificate-authority-data") ||
             get_bool(cluster, "insecure-skip-tls-verify");
  return (tls ? "https://" : "http://") + server;
}

Impersonation impersonation_of(const json::value& user) {
  Impersonation as{
      std::string(get_string(user, "as")), std::string(get_string(user, "as-uid")), get_strings(user, "as-groups"), {}};
  for (const auto& [key, values] : get_object(user, "as-user-extra"))
    if (const json::array* list = values.if_array())
      for (const auto& value : *list)
        if (value.is_string()) as.extra.emplace_back(std::string(key), std::string(value.get_string()));
  return as;
}

// Whether the command line says how to reach the server, or as whom, in place of the kubeconfig.
bool names_another_way(const KubeconfigChoice& choice) {
  for (const auto* each : {&choice.server, &choice.tls_server_name, &choice.certificate_authority, &choice.client_certificate,
                           &choice.client_key, &choice.token, &choice.username, &choice.password})
    if (!each->empty()) return true;
  return choice.insecure.has_value();
}

std::string local_socket_of(const json::value& context) {
  for (const auto& extension : get_array(context, "extensions"))
    if (get_string(extension, "name") == kLocalSocketExtension) return std::string(get_string(extension, "extension.path"));
  return {};
}

Result<ServerAccess> access_of(const json::value& config, const std::string& path, const KubeconfigChoice& choice) {
  Chosen chosen = TRY(choose(config, path, choice));
  std::vector<std::string> findings = findings_of(chosen);
  if (findings.size() == 1) return Error(Code::invalid, findings.front());
  if (findings.size() > 1) return Error(Code::invalid, "Error in configuration: \n* " + join(findings, "\n* "));
  const json::value& cluster = chosen.cluster;
  ServerAccess access;
  access.context = chosen.context_name, access.user = chosen.user_name;
  access.server = with_scheme(std::string(get_string(cluster, "server")), cluster);
  if (!access.server.starts_with("https://") && !access.server.starts_with("http://"))
    return Error(Code::invalid, path + ": cluster " + coracle::quoted(chosen.cluster_name) +
                                    ": server must be an http(s) URL, is " + coracle::quoted(access.server));
  while (access.server.ends_with('/')) access.server.pop_back();
  access.insecure = get_bool(cluster, "insecure-skip-tls-verify");
  access.tls_server_name = get_string(cluster, "tls-server-name");
  access.proxy_url = get_string(cluster, "proxy-url");
  access.ca_pem = TRY(pem_of(cluster, "certificate-authority", path));
  if (access.insecure && !access.ca_pem.empty())
    return Error(Code::invalid, "specifying a root certificates file with the insecure flag is not allowed");
  access.impersonate = impersonation_of(chosen.user);
  // Who we are is for a server that is asked by TLS, and for nobody on the way.
  if (access.server.starts_with("https://")) TRY(read_user(access, chosen.user, cluster, path));
  if (chosen.context)
    if (std::string_view ns = get_string(*chosen.context, "namespace"); !ns.empty()) access.ns = ns;
  if (!choice.ns.empty()) access.ns = choice.ns;
  if (chosen.context && !names_another_way(choice)) access.local_socket = local_socket_of(*chosen.context);
  return access;
}

// What every reader relies on: lists of named objects, no name twice.
Result<void> check_shape(const json::value& config) {
  if (!config.is_object()) return Error(Code::invalid, "clusters, contexts and users are expected");
  std::string kind(get_string(config, "kind")), version(get_string(config, "apiVersion"));
  if (kind.empty()) kind = "Config";
  if (version.empty()) version = "v1";
  if (kind != "Config" || version != "v1")
    return Error(Code::invalid, "no kind " + coracle::quoted(kind) + " is registered for version " + coracle::quoted(version));
  for (const auto& [list, field] : kKubeconfigLists) {
    const json::value* entries = find(config, list);
    if (!entries || entries->is_null()) continue;
    if (!entries->is_array()) return Error(Code::invalid, std::string(list) + ": must be a list");
    std::set<std::string> names;
    for (const auto& entry : entries->get_array()) {
      const json::value* body = entry.is_object() ? find(entry, field) : nullptr;
      std::string place = std::string(list) + "[" + std::to_string(&entry - entries->get_array().data()) + "]";
      if (!entry.is_object()) return Error(Code::invalid, place + ": must be an object with name and " + field);
      if (body && !body->is_object() && !body->is_null())
        return Error(Code::invalid, place + "." + field + ": must be an object");
      std::string name(get_string(entry, "name"));
      if (!names.insert(name).second)
        return Error(Code::invalid, std::string(list) + ": duplicate name " + coracle::quoted(name));
    }
  }
  return {};
}

}  // namespace

const json::value* kubeconfig_entry(const json::value& config, const KubeconfigList& list, std::string_view name) {
  static const json::value kNothing = json::object();
  for (const auto& entry : get_array(config, list.list))
    if (get_string(entry, "name") == name) {
      const json::value* body = find(entry, list.field);
      return body && body->is_object() ? body : &kNothing;
    }
  return nullptr;
}

Result<json::value> parse_kubeconfig_document(std::string_view text, const std::string& path) {
  const std::string doing = "error loading config file " + coracle::quoted(path);
  std::vector<std::string> twice;  // of a key that stands twice the last counts, as for kubectl: people append to these files
  std::vector<json::value> documents = TRY(parse_yaml(text, nullptr, &twice).wrap(doing));
  if (documents.empty() || documents.front().is_null()) return json::value(json::object());
  TRY(check_shape(documents.front()).wrap(doing));
  return std::move(documents.front());
}

void make_paths_absolute(json::value& config, const std::string& path) {
  auto directory = std::filesystem::absolute(path).parent_path();
  auto settle = [&](const char* list, const char* field, const char* name) {
    json::value* entries = config.as_object().if_contains(list);
    if (!entries || !entries->is_array()) return;
    for (auto& entry : entries->as_array()) {
      std::string dotted = std::string(field) + "." + name, file(get_string(entry, dotted));
      bool in_path = std::string_view(name) == "exec.command" && file.find('/') == file.npos;  // found by PATH
      if (!file.empty() && file.front() != '/' && !in_path) make(entry, dotted) = (directory / file).lexically_normal().string();
    }
  };
  settle("clusters", "cluster", "certificate-authority");
  for (const char* name : {"client-certificate", "client-key", "tokenFile", "exec.command"}) settle("users", "user", name);
}

void merge_kubeconfig(json::value& config, const json::value& other) {
  if (!config.is_object()) config.emplace_object();
  for (const auto& [list, field] : kKubeconfigLists) {
    json::array entries = get_array(config, list);
    for (const auto& entry : get_array(other, list)) {
      bool known = std::any_of(entries.begin(), entries.end(),
                               [&](const auto& one) { return get_string(one, "name") == get_string(entry, "name"); });
      if (!known) entries.push_back(entry);
    }
    config.as_object()[list] = std::move(entries);
  }
  if (get_string(config, "current-context").empty()) config.as_object()["current-context"] = get_string(other, "current-context");
  for (const auto& [name, value] : other.get_object())
    if (!config.get_object().contains(name)) config.get_object()[name] = value;
}

Result<ServerAccess> parse_kubeconfig(std::string_view text, const std::string& path, const KubeconfigChoice& choice) {
  json::value config = TRY(parse_kubeconfig_document(text, path));
  make_paths_absolute(config, path);
  return access_of(config, path, choice);
}

Result<ServerAccess> read_kubeconfigs(const std::vector<std::string>& paths, const KubeconfigChoice& choice) {
  json::value merged = json::object();
  for (const auto& path : paths) {
    std::string text = TRY(read_text(path));
    json::value config = TRY(parse_kubeconfig_document(text, path));
    make_paths_absolute(config, path);
    merge_kubeconfig(merged, config);
  }
  return access_of(merged, join(paths, ":"), choice);
}

Result<ServerAccess> read_kubeconfig(const std::string& path, const KubeconfigChoice& choice) {
  return read_kubeconfigs({path}, choice);
}

Result<std::vector<std::string>> find_kubeconfigs(const std::string& given) {
  if (!given.empty()) return std::vector{given};
  std::error_code ignored;
  if (const char* list = std::getenv("KUBECONFIG"); list && *list) {
    std::vector<std::string> there;
    for (std::string_view one : split(list, ':'))
      if (!one.empty() && std::filesystem::exists(one, ignored) && std::find(there.begin(), there.end(), one) == there.end())
        there.emplace_back(one);
    // A mistyped path to another cluster's file must not fall back to this machine.
    if (there.empty()) return Error(Code::not_found, "KUBECONFIG names " + std::string(list) + ", which is not there");
    return there;
  }
  std::vector<std::string> looked;
  if (const char* home = std::getenv("HOME"); home && *home) looked.push_back(std::string(home) + "/.kube/config");
  looked.emplace_back(kMachineKubeconfig);
  for (const auto& path : looked)
    if (std::filesystem::exists(path, ignored)) return std::vector{path};
  return Error(Code::not_found, "no kubeconfig found (looked at " + join(looked, ", ") +
                                    "); is coracled installed and running? Only root may read " + kMachineKubeconfig);
}

}  // namespace coracle
