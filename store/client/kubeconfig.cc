// SPDX-License-Identifier: Apache-2.0
// See kubeconfig.h.
#include "store/client/kubeconfig.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

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

// The entry called `name` of a list of {name, <field>: {...}}; nullptr when it is not there.
const json::value* named(const json::value& config, std::string_view list, std::string_view field, std::string_view name) {
  for (const auto& entry : get_array(config, list))
    if (get_string(entry, "name") == name) return find(entry, field);
  return nullptr;
}

// "x-data" (base64) or the file named by "x", relative to the kubeconfig.
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
      return Error(Code::unsupported, path + ": user " + coracle::quoted(access.user) + " signs in by " + plugin + ", which is not supported; use a certificate or a token");
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

Result<ServerAccess> parse_kubeconfig(std::string_view text, const std::string& path, const KubeconfigChoice& choice) {
  std::vector<json::value> documents = TRY(parse_yaml(text).wrap(path));
  if (documents.empty()) return Error(Code::invalid, path + ": the kubeconfig is empty");
  const json::value& config = documents.front();
  ServerAccess access;
  access.context = choice.context.empty() ? std::string(get_string(config, "current-context")) : choice.context;
  const json::value* context = named(config, "contexts", "context", access.context);
  if (!context && !choice.context.empty()) return Error(Code::invalid, path + ": context " + coracle::quoted(choice.context) + " does not exist");
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
    return Error(Code::invalid, path + ": cluster " + coracle::quoted(cluster_name) + ": server must be an http(s) URL, is " + coracle::quoted(access.server));
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

Result<ServerAccess> read_kubeconfig(const std::string& path, const KubeconfigChoice& choice) {
  std::string text = TRY(read_text(path));
  return parse_kubeconfig(text, path, choice);
}

Result<std::string> find_kubeconfig(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code ignored;
  std::vector<std::string> looked;
  if (const char* list = std::getenv("KUBECONFIG"); list && *list) {
    for (std::string_view one : split(list, ':')) {
      if (!one.empty() && std::filesystem::exists(one, ignored)) return std::string(one);
      looked.emplace_back(one);
    }
  }
  if (const char* home = std::getenv("HOME"); home && *home) looked.push_back(std::string(home) + "/.kube/config");
  looked.emplace_back(kMachineKubeconfig);
  for (const auto& path : looked)
    if (std::filesystem::exists(path, ignored)) return path;
  return Error(Code::not_found, "no kubeconfig found (looked at " + join(looked, ", ") + "); is coracled installed and running? Only root may read " + kMachineKubeconfig);
}

std::string redacted_kubeconfig(std::string_view text) {
  auto documents = parse_yaml(text);
  if (!documents || documents->empty()) return {};
  redact(documents->front());
  return to_yaml(documents->front());
}

}  // namespace coracle
