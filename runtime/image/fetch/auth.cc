// SPDX-License-Identifier: Apache-2.0
// See auth.h.
#include "runtime/image/fetch/auth.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::image {
namespace {

bool is_token(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

struct Reader {
  std::string_view text;
  void skip(std::string_view what) { text.remove_prefix(std::min(text.find_first_not_of(what), text.size())); }
  std::string_view token() {
    size_t end = 0;
    while (end < text.size() && is_token(text[end])) ++end;
    std::string_view out = text.substr(0, end);
    text.remove_prefix(end);
    return out;
  }
  bool take(char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  }
  std::string value() {  // token or quoted string
    if (!take('"')) return std::string(token());
    std::string out;
    while (!text.empty() && !take('"')) {
      if (text[0] == '\\' && text.size() > 1) text.remove_prefix(1);
      out += text[0];
      text.remove_prefix(1);
    }
    return out;
  }
};

// A registry as configuration files spell it: "https://index.docker.io/v1/" is docker.io.
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

// "*.example.com" fits one label more, as in Kubernetes.
bool host_fits(std::string_view pattern, std::string_view host) {
  auto left = split(pattern, '.'), right = split(host, '.');
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i] != "*" && left[i] != right[i]) return false;
  return true;
}

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
  std::vector<Challenge> out;
  Reader reader{header};
  while (!reader.text.empty()) {
    reader.skip(" \t,");
    std::string name = to_lower(reader.token());
    if (name.empty()) break;
    reader.skip(" \t");
    if (reader.take('=')) {  // name=value belongs to the challenge before it
      reader.skip(" \t");
      std::string value = reader.value();
      if (!out.empty()) out.back().params.emplace(std::move(name), std::move(value));
    } else {
      out.push_back({std::move(name), {}});
    }
  }
  return out;
}

std::vector<runtime::Credentials> matching_credentials(const std::vector<runtime::Credentials>& all, std::string_view host,
                                                       std::string_view repository) {
  std::string wanted_host = normal_registry(host);
  std::vector<std::pair<size_t, runtime::Credentials>> fitting;
  for (const auto& candidate : all) {
    std::string registry = normal_registry(candidate.registry);
    size_t slash = registry.find('/');
    std::string_view path = slash == registry.npos ? std::string_view() : std::string_view(registry).substr(slash + 1);
    bool path_fits =
        path.empty() || repository == path || (repository.starts_with(path) && repository.substr(path.size()).starts_with('/'));
    if (host_fits(std::string_view(registry).substr(0, slash), wanted_host) && path_fits)
      fitting.emplace_back(path.size(), candidate);
  }
  std::stable_sort(fitting.begin(), fitting.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<runtime::Credentials> out;
  for (auto& [length, credentials] : fitting) out.push_back(std::move(credentials));
  return out;
}

}  // namespace coracle::image
