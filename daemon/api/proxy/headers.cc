// SPDX-License-Identifier: Apache-2.0
// See headers.h.
#include "daemon/api/proxy/headers.h"

#include <algorithm>
#include <set>

#include "daemon/api/http.h"
#include "runtime/base/text.h"

namespace coracle::api {
namespace {

bool starts_with_fold(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equals_ignore_case(text.substr(0, prefix.size()), prefix);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view other) { return equals_ignore_case(name, other); });
}

// The hop-by-hop headers: those of RFC 9110 and those that Connection names.
class OfConnection {
 public:
  explicit OfConnection(const Headers& headers) {
    for (std::string_view field : headers.all("Connection"))
      while (!field.empty()) named_.insert(to_lower(trim(take_part(field, ','))));
  }
  bool operator()(std::string_view name) const {
    return is_one_of(name, {"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "TE",
                            "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length"}) ||
           named_.contains(to_lower(name));
  }

 private:
  std::set<std::string> named_;
};

bool is_credential(std::string_view name) {
  return equals_ignore_case(name, "Authorization") ||
         is_one_of(name, {"Impersonate-User", "Impersonate-Group", "Impersonate-Uid"}) ||
         starts_with_fold(name, "Impersonate-Extra-");
}

// Removes the bearer token from the offered subprotocols. Browsers send it there, because they cannot set Authorization for a
// WebSocket.
std::string without_token(std::string_view protocols) {
  std::vector<std::string> kept;
  for (std::string_view protocol : split(protocols, ','))
    if (!trim(protocol).starts_with("base64url.bearer.authorization.k8s.io.")) kept.emplace_back(trim(protocol));
  return join(kept, ", ");
}

void add(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(": ").append(value).append("\r\n");
}

bool is_scheme(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto more = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), more);
}

struct Url {
  std::string_view scheme, host, path, more;  // `more`: query and fragment, with their separators
  bool opaque = false;                        // "mailto:x"
};

std::optional<Url> parse_url(std::string_view text) {
  auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), control)) return std::nullopt;
  Url url;
  size_t end = std::min(text.find_first_of("?#"), text.size());
  url.more = text.substr(end);
  text = text.substr(0, end);
  size_t colon = text.find(':');
  if (colon != text.npos && is_scheme(text.substr(0, colon))) {
    url.scheme = text.substr(0, colon);
    text.remove_prefix(colon + 1);
    if (!text.starts_with('/')) return url.opaque = !text.empty(), url;
  } else if (colon < text.find('/')) {
    return std::nullopt;  // the first segment of a relative path contains no colon
  }
  bool has_host = text.starts_with("//") && (!url.scheme.empty() || !text.starts_with("///"));
  if (has_host) {
    text.remove_prefix(2);
    url.host = text.substr(0, text.find('/'));
    text.remove_prefix(url.host.size());
  }
  url.path = text;
  if (!percent_decode(url.path)) return std::nullopt;
  return url;
}

}  // namespace

std::string clean_path(std::string_view path) {
  std::vector<std::string> kept;
  bool slash = path.ends_with('/');
  for (std::string_view segment : split(path, '/')) {
    std::string plain = percent_decode(segment).value_or(std::string(segment));
    if (plain.empty() || plain == ".") continue;
    if (plain == "..") {
      if (!kept.empty()) kept.pop_back();
      continue;
    }
    kept.emplace_back(segment);
  }
  std::string out = "/" + join(kept, "/");
  return slash && !kept.empty() ? out + "/" : out;
}

bool asks_for_upgrade(const Head& head) {
  for (std::string_view field : head.headers.all("Connection"))
    if (header_has_token(field, "Upgrade")) return true;
  return false;
}

std::string request_head(const Head& head, const ProxiedRequest& proxied, bool upgrade) {
  std::string path = clean_path(proxied.rest), text = head.method + " " + path;
  if (!head.query_text.empty()) text += "?" + head.query_text;
  text += " HTTP/1.1\r\n";
  std::string_view host = head.headers.get("Host");
  add(text, "Host", host.empty() ? std::string_view(proxied.host) : host);
  std::string forwarded;
  OfConnection of_connection(head.headers);
  for (const auto& [name, value] : head.headers) {
    bool asks = upgrade && is_one_of(name, {"Connection", "Upgrade"});
    if (equals_ignore_case(name, "X-Forwarded-For")) (forwarded += value) += ", ";
    bool ours =
        is_one_of(name, {"Host", "Expect", "X-Forwarded-For"}) || (!upgrade && equals_ignore_case(name, "X-Forwarded-Uri"));
    if (ours || is_credential(name) || (!asks && of_connection(name))) continue;
    std::string kept = equals_ignore_case(name, "Sec-WebSocket-Protocol") ? without_token(value) : std::string(value);
    if (!kept.empty() || value.empty()) add(text, name, kept);
  }
  if (header_has_token(head.headers.get("TE"), "trailers")) add(text, "TE", "trailers");
  if (!proxied.client.empty()) add(text, "X-Forwarded-For", forwarded + proxied.client);
  if (!upgrade) add(text, "X-Forwarded-Uri", proxied.prefix + path);
  if (!upgrade) add(text, "Connection", "close");  // upstream connections are not reused
  bool writes = head.method == "POST" || head.method == "PUT" || head.method == "PATCH";
  if (head.chunked) add(text, "Transfer-Encoding", "chunked");
  else if (head.has_body() || writes) add(text, "Content-Length", std::to_string(head.content_length.value_or(0)));
  return text + "\r\n";
}

std::string answer_head(const AnswerHead& head, Framing framing, bool keep_alive, const std::optional<std::string>& location,
                        const std::vector<std::pair<std::string, std::string>>& more) {
  std::string reason = head.reason.empty() ? std::string(status_text(head.status)) : head.reason;
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + " " + reason + "\r\n";
  for (const auto& [name, value] : more) add(text, name, value);
  OfConnection of_connection(head.headers);
  for (const auto& [name, value] : head.headers) {
    bool of_origins = is_one_of(name, {"Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
                                       "Access-Control-Allow-Methods", "Access-Control-Allow-Origin"});
    bool replaced = location && equals_ignore_case(name, "Location");
    if (!of_origins && !replaced && !of_connection(name)) add(text, name, value);
  }
  if (location) add(text, "Location", *location);
  if (framing == Framing::chunked) {
    add(text, "Transfer-Encoding", "chunked");
    for (std::string_view trailer : head.headers.all("Trailer")) add(text, "Trailer", trailer);
  }
  if (framing == Framing::length) add(text, "Content-Length", std::to_string(head.content_length.value_or(0)));
  if (!keep_alive) add(text, "Connection", "close");
  return text + "\r\n";
}

std::optional<std::string> rewrite_url(std::string_view text, const ProxiedRequest& proxied, std::string_view asked_host) {
  auto url = parse_url(text);
  if (!url) return std::nullopt;
  bool elsewhere = !url->host.empty() && url->host != proxied.host && url->host != asked_host;
  if (elsewhere || url->opaque || !url->path.starts_with('/')) return std::string(text);
  // If the URL has the host that the client requested, it is kept; the client does not know the target's own host.
  bool keeps_host = !url->host.empty() && url->host == asked_host;
  std::string out;
  if (keeps_host && !url->scheme.empty()) out += std::string(url->scheme) + ":";
  if (keeps_host) out += "//" + std::string(url->host);
  bool leads_through = url->path.starts_with(proxied.prefix);
  out += leads_through ? std::string(url->path) : clean_path(proxied.prefix + std::string(url->path));
  return out.append(url->more);
}

}  // namespace coracle::api
