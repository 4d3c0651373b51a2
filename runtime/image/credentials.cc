// SPDX-License-Identifier: Apache-2.0
// See credentials.h.
#include "runtime/image/credentials.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::image {
namespace {

// A registry as written in configuration files: "https://index.docker.io/v1/" is docker.io.
std::string normal_registry(std::string_view registry) {
  for (std::string_view scheme : {"https://", "http://"})
    if (registry.starts_with(scheme)) registry.remove_prefix(scheme.size());
  while (registry.ends_with('/')) registry.remove_suffix(1);
  for (std::string_view version : {"/v1", "/v2"})
    if (registry.ends_with(version)) registry.remove_suffix(version.size());
  std::string out(registry);
  size_t slash = out.find('/');
  std::string host = to_lower(out.substr(0, slash)), path = slash == out.npos ? "" : out.substr(slash);
  if (host == "index.docker.io" || host == "registry-1.docker.io" || host == "registry.hub.docker.com") host = "docker.io";
  return host + path;
}

// "*.example.com" matches exactly one more label, as in Kubernetes.
bool host_fits(std::string_view pattern, std::string_view host) {
  auto left = split(pattern, '.'), right = split(host, '.');
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i] != "*" && left[i] != right[i]) return false;
  return true;
}

}  // namespace

std::vector<size_t> matching_credentials(const std::vector<runtime::Credentials>& all, std::string_view host,
                                         std::string_view repository) {
  std::string wanted_host = normal_registry(host);
  std::vector<std::pair<size_t, size_t>> fitting;  // length of the path, index in `all`
  for (size_t i = 0; i < all.size(); ++i) {
    std::string registry = normal_registry(all[i].registry);
    size_t slash = registry.find('/');
    std::string_view path = slash == registry.npos ? std::string_view() : std::string_view(registry).substr(slash + 1);
    bool path_fits =
        path.empty() || repository == path || (repository.starts_with(path) && repository.substr(path.size()).starts_with('/'));
    if (host_fits(std::string_view(registry).substr(0, slash), wanted_host) && path_fits) fitting.emplace_back(path.size(), i);
  }
  std::stable_sort(fitting.begin(), fitting.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<size_t> out;
  for (const auto& [length, place] : fitting) out.push_back(place);
  return out;
}

}  // namespace coracle::image
