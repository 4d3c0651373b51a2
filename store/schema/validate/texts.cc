// SPDX-License-Identifier: Apache-2.0
// See texts.h.
#include "store/schema/validate/texts.h"

#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::schema {
namespace {

constexpr size_t kDriverNameMax = 63;
constexpr std::string_view kForm = "; desired format: https://host[/path]";

void check_url(Findings& out, const std::string& path, std::string_view url) {
  size_t colon = url.find("://");
  std::string_view scheme = colon == url.npos ? std::string_view() : url.substr(0, colon);
  std::string_view rest = colon == url.npos ? url : url.substr(colon + 3);
  std::string_view fragment, query;
  if (size_t at = rest.find('#'); at != rest.npos) fragment = rest.substr(at + 1), rest = rest.substr(0, at);
  if (size_t at = rest.find('?'); at != rest.npos) query = rest.substr(at + 1), rest = rest.substr(0, at);
  std::string_view host = colon == url.npos ? std::string_view() : rest.substr(0, rest.find('/')), user;
  if (size_t at = host.rfind('@'); at != host.npos) user = host.substr(0, at), host = host.substr(at + 1);
  if (to_lower(scheme) != "https") out.invalid(path, scheme, "'https' is the only allowed URL scheme" + std::string(kForm));
  if (host.empty()) out.invalid(path, host, "host must be specified" + std::string(kForm));
  if (!user.empty()) out.invalid(path, user, "user information is not permitted in the URL");
  if (!fragment.empty()) out.invalid(path, fragment, "fragments are not permitted in the URL");
  if (!query.empty()) out.invalid(path, query, "query parameters are not permitted in the URL");
}

void check_webhook_path(Findings& out, const std::string& at, std::string_view path) {
  if (path.empty() || path == "/") return;
  if (path == "//") return out.invalid(at, path, "segment[0] may not be empty");
  if (!path.starts_with('/')) out.invalid(at, path, "must start with a '/'");
  std::string_view steps = path.substr(1);
  if (steps.ends_with('/')) steps.remove_suffix(1);
  std::vector<std::string_view> parts = split(steps, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string segment = "segment[" + std::to_string(i) + "]";
    if (parts[i].empty()) out.invalid(at, path, segment + " may not be empty");
    else
      for (const std::string& problem : dns_subdomain_problems(parts[i])) out.invalid(at, path, segment + ": " + problem);
  }
}

}  // namespace

size_t bytes_of(const json::object& texts) {
  size_t bytes = 0;
  for (const auto& pair : texts) bytes += pair.key().size() + (pair.value().is_string() ? pair.value().get_string().size() : 0);
  return bytes;
}

bool has_wildcard(view::Range<std::string_view> texts) { return std::find(texts.begin(), texts.end(), "*") != texts.end(); }

bool is_blank(std::string_view text) { return trim(text).empty(); }

void unsupported(Findings& out, const std::string& path, std::string_view value, std::vector<std::string> supported) {
  out.add(coracle::not_supported(path, quoted(value), supported));
}

void invalid_joined(Findings& out, const std::string& path, std::string_view value, const std::vector<std::string>& problems,
                    std::string_view before) {
  if (!problems.empty()) out.invalid(path, value, std::string(before) + join(problems, ","));
}

void check_qualified(Findings& out, const std::string& path, std::string_view name) {
  out.invalid_all(path, name, qualified_name_problems(name));
}

void check_driver_name(Findings& out, const std::string& path, std::string_view name) {
  if (name.empty()) return out.required(path);
  if (name.size() > kDriverNameMax) out.too_long(path, kDriverNameMax);
  out.invalid_all(path, name, dns_subdomain_problems(to_lower(name)));
}

void check_client_config(Findings& out, const std::string& path, view::WebhookClientConfig config) {
  bool by_url = config.has_url(), by_service = config.has_service();
  if (by_url == by_service) return out.required(path, "exactly one of url or service is required");
  if (by_url) return check_url(out, sub(path, "url"), config.url());
  std::string at = sub(path, "service");  // the tables check required names
  int64_t port = config.service().port();
  if (port < 1 || port > 65535) out.invalid(sub(at, "port"), port, "port is not valid: must be between 1 and 65535, inclusive");
  check_webhook_path(out, sub(at, "path"), config.service().path());
}

void check_review_versions(Findings& out, const std::string& path, view::Range<std::string_view> versions) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (!seen.insert(versions[i]).second) out.invalid(item(path, i), versions[i], "duplicate version");
    else out.invalid_all(item(path, i), versions[i], dns_1035_problems(versions[i]));
  }
  bool understood = seen.count("v1") || seen.count("v1beta1");
  if (!versions.empty() && !understood) out.invalid_json(path, versions.raw(), "must include at least one of v1, v1beta1");
}

}  // namespace coracle::schema
