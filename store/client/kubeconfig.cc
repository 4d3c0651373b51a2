// SPDX-License-Identifier: Apache-2.0
// See kubeconfig.h.
#include "store/client/kubeconfig.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle {
namespace {

constexpr const char* kMachineKubeconfig = "/etc/coracle/admin.kubeconfig";

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::from_errno("read " + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The entry with this name in a list of {name, <field>: {...}}; nullptr if there is none.
const json::value* named(const json::value& config, std::string_view list, std::string_view field, std::string_view name) {
  for (const auto& entry : get_array(config, list))
    if (get_string(entry, "name") == name) return find(entry, field);
  return nullptr;
}

// "x-data" (base64), or the file named by "x", relative to the kubeconfig.
Result<std::string> pem_of(const json::value& from, const std::string& field, const std::string& path) {
  std::string_view data = get_string(from, field + "-data");
  if (!data.empty()) return base64_decode(data).wrap(path + ": " + field + "-data");
  std::string file(get_string(from, field));
  if (file.empty()) return std::string();
  if (file.front() != '/') file = std::filesystem::path(path).parent_path() / file;
  return read_text(file).wrap(path + ": " + field);
}

Result<void> read_user(ServerAccess& access, const json::value& user, const std::string& path) {
  for (const char* plugin : {"exec", "auth-provider"})
    if (find(user, plugin))
      return Error(Code::unsupported, path + ": user " + coracle::quoted(access.user) + " signs in by " + plugin +
                                          ", which is not supported; use a certificate or a token");
  access.client_certificate_pem = TRY(pem_of(user, "client-certificate", path));
  access.client_key_pem = TRY(pem_of(user, "client-key", path));
  access.token = get_string(user, "token");
  if (std::string file(get_string(user, "tokenFile")); access.token.empty() && !file.empty()) {
    std::string text = TRY(read_text(file).wrap(path + ": tokenFile"));
    access.token = trim(text);
  }
  access.username = get_string(user, "username");
  access.password = get_string(user, "password");
  return {};
}

void redact(json::value& value) {
  if (auto* object = value.if_object())
    for (auto& [key, child] : *object) {
      if (key == "client-key-data" || key == "token" || key == "password") child = "REDACTED";
      else if (key == "client-certificate-data" || key == "certificate-authority-data") child = "DATA+OMITTED";
      else redact(child);
    }
  if (auto* array = value.if_array())
    for (auto& child : *array) redact(child);
}

}  // namespace

namespace {

Result<json::value> parse_config(std::string_view text, const std::string& path) {
  std::vector<json::value> documents = TRY(parse_yaml(text).wrap(path));
  if (documents.empty()) return Error(Code::invalid, path + ": the kubeconfig is empty");
  if (!documents.front().is_object())
    return Error(Code::invalid, path + ": is no kubeconfig: clusters, contexts and users are expected");
  return std::move(documents.front());
}

std::string names_of(const json::value& config, std::string_view list) {
  std::vector<std::string> names;
  for (const auto& entry : get_array(config, list)) names.emplace_back(get_string(entry, "name"));
  return join(names, ", ");
}

Result<ServerAccess> access_of(const json::value& config, const std::string& path, const KubeconfigChoice& choice) {
  if (get_array(config, "clusters").empty()) return Error(Code::invalid, path + ": names no clusters");
  ServerAccess access;
  access.context = choice.context.empty() ? std::string(get_string(config, "current-context")) : choice.context;
  const json::value* context = named(config, "contexts", "context", access.context);
  if (!context && !choice.context.empty())
    return Error(Code::invalid, path + ": context " + coracle::quoted(choice.context) + " does not exist");
  if (!context && choice.cluster.empty())
    return Error(Code::invalid,
                 path +
                     (access.context.empty() ? ": no current-context is set"
                                             : ": the current-context " + coracle::quoted(access.context) + " does not exist") +
                     "; choose with --context: " + names_of(config, "contexts"));
  std::string cluster_name = choice.cluster;
  access.user = choice.user;
  if (context) {
    if (cluster_name.empty()) cluster_name = get_string(*context, "cluster");
    if (access.user.empty()) access.user = get_string(*context, "user");
    if (std::string_view ns = get_string(*context, "namespace"); !ns.empty()) access.ns = ns;
  }
  const json::value* cluster = named(config, "clusters", "cluster", cluster_name);
  if (!cluster) return Error(Code::invalid, path + ": cluster " + coracle::quoted(cluster_name) + " does not exist");
  access.server = get_string(*cluster, "server");
  if (!access.server.starts_with("https://") && !access.server.starts_with("http://"))
    return Error(Code::invalid, path + ": cluster " + coracle::quoted(cluster_name) + ": server must be an http(s) URL, is " +
                                    coracle::quoted(access.server));
  while (access.server.ends_with('/')) access.server.pop_back();
  access.insecure = get_bool(*cluster, "insecure-skip-tls-verify");
  access.tls_server_name = get_string(*cluster, "tls-server-name");
  access.ca_pem = TRY(pem_of(*cluster, "certificate-authority", path));
  if (const json::value* user = named(config, "users", "user", access.user)) {
    TRY(read_user(access, *user, path));
  } else if (!access.user.empty()) {
    return Error(Code::invalid, path + ": user " + coracle::quoted(access.user) + " does not exist");
  }
  if (!choice.ns.empty()) access.ns = choice.ns;
  return access;
}

// Makes paths in `config` relative to its file absolute, so that it can be merged with others.
void make_absolute(json::value& config, const std::string& path) {
  auto directory = std::filesystem::absolute(path).parent_path();
  for (auto [list, field, names] :
       {std::tuple{"clusters", "cluster", std::vector<const char*>{"certificate-authority"}},
        std::tuple{"users", "user", std::vector<const char*>{"client-certificate", "client-key", "tokenFile"}}}) {
    json::value* entries = config.as_object().if_contains(list);
    if (!entries || !entries->is_array()) continue;
    for (auto& entry : entries->as_array())
      for (const char* name : names) {
        std::string file(get_string(entry, std::string(field) + "." + name));
        if (!file.empty() && file.front() != '/') make(entry, std::string(field) + "." + name) = (directory / file).string();
      }
  }
}

// Adds entries of `other` that `config` lacks.
void merge(json::value& config, const json::value& other) {
  for (const char* list : {"clusters", "contexts", "users"}) {
    json::array entries = get_array(config, list);
    for (const auto& entry : get_array(other, list)) {
      bool known = std::any_of(entries.begin(), entries.end(),
                               [&](const auto& one) { return get_string(one, "name") == get_string(entry, "name"); });
      if (!known) entries.push_back(entry);
    }
    config.as_object()[list] = std::move(entries);
  }
  if (get_string(config, "current-context").empty()) config.as_object()["current-context"] = get_string(other, "current-context");
}

}  // namespace

Result<ServerAccess> parse_kubeconfig(std::string_view text, const std::string& path, const KubeconfigChoice& choice) {
  json::value config = TRY(parse_config(text, path));
  return access_of(config, path, choice);
}

Result<ServerAccess> read_kubeconfigs(const std::vector<std::string>& paths, const KubeconfigChoice& choice) {
  json::value merged;
  for (const auto& path : paths) {
    std::string text = TRY(read_text(path));
    json::value config = TRY(parse_config(text, path));
    make_absolute(config, path);
    if (merged.is_null()) merged = std::move(config);
    else merge(merged, config);
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
      if (!one.empty() && std::filesystem::exists(one, ignored)) there.emplace_back(one);
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

Result<std::string> find_kubeconfig(const std::string& given) {
  std::vector<std::string> paths = TRY(find_kubeconfigs(given));
  return paths.front();
}

std::string redacted_kubeconfig(std::string_view text) {
  auto documents = parse_yaml(text);
  if (!documents || documents->empty()) return {};
  redact(documents->front());
  return to_yaml(documents->front());
}

}  // namespace coracle
