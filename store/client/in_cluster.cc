// SPDX-License-Identifier: Apache-2.0
// See in_cluster.h.
#include "store/client/in_cluster.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/read_rest.h"
#include "runtime/base/text.h"

namespace coracle {

std::optional<json::value> in_cluster_kubeconfig(const std::string& directory) {
  const char *host = std::getenv("KUBERNETES_SERVICE_HOST"), *port = std::getenv("KUBERNETES_SERVICE_PORT");
  std::error_code failed;
  if (!host || !*host || !port || !*port || !std::filesystem::exists(directory + "/token", failed)) return std::nullopt;
  std::string name = host;
  if (name.find(':') != name.npos) name = "[" + name + "]";  // an IPv6 address
  json::object cluster{{"server", "https://" + name + ":" + port}}, context{{"cluster", "pod"}, {"user", "pod"}};
  if (std::filesystem::exists(directory + "/ca.crt", failed)) cluster["certificate-authority"] = directory + "/ca.crt";
  std::ifstream file(directory + "/namespace");
  std::string ns = read_rest(file, directory + "/namespace").value_or("");
  if (!trim(ns).empty()) context["namespace"] = trim(ns);
  return json::object{
      {"current-context", "pod"},
      {"clusters", json::array{json::object{{"name", "pod"}, {"cluster", std::move(cluster)}}}},
      {"contexts", json::array{json::object{{"name", "pod"}, {"context", std::move(context)}}}},
      {"users", json::array{json::object{{"name", "pod"}, {"user", json::object{{"tokenFile", directory + "/token"}}}}}}};
}

Result<ServerAccess> read_in_cluster(const json::value& config, const KubeconfigChoice& choice) {
  return parse_kubeconfig(to_text(config), kServiceAccountDirectory, choice);
}

}  // namespace coracle
