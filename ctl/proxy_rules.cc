// SPDX-License-Identifier: Apache-2.0
// See proxy.h.
#include <regex.h>

#include <algorithm>
#include <filesystem>

#include "ctl/proxy.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

constexpr uint64_t kChunkBytesMax = 1ull << 40;
constexpr size_t kChunkLineMax = 4096;

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(char(c)) != std::string_view::npos;
  });
}

bool lists(const std::string* header, std::string_view token) {
  if (!header) return false;
  for (std::string_view part : split(*header, ','))
    if (to_lower(trim(part)) == token) return true;
  return false;
}

// Headers between two neighbours only. Source: RFC 9110, 7.6.1.
bool is_hop_by_hop(const std::string& lower) {
  for (const char* name :
       {"connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade"})
    if (lower == name) return true;
  return false;
}

// The path without "//", "/./" and "/../", as Go's ServeMux cleans it.
std::string cleaned(const std::string& path) {
  std::vector<std::string_view> kept;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") kept.push_back(part);
    else if (!kept.empty()) kept.pop_back();
  }
  std::string text;
  for (std::string_view part : kept) text.append("/").append(part);
  bool directory = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
  return text.empty() || directory ? text + "/" : text;
}

// A path as a URL has it.
std::string encoded_path(std::string_view path) {
  std::string text;
  for (char c : path) text += c == '/' || c == ':' || c == '@' ? std::string(1, c) : percent_encode(std::string_view(&c, 1));
  return text;
}

// What Go writes differently from POSIX.
std::string posix_form(std::string_view expression, int& flags) {
  if (expression.starts_with("(?i)")) flags |= REG_ICASE, expression.remove_prefix(4);
  std::string text;
  for (size_t i = 0; i < expression.size(); ++i) {
    std::string_view here = expression.substr(i);
    if (here.starts_with("\\d")) text += "[0-9]", ++i;
    else if (here.starts_with("\\D")) text += "[^0-9]", ++i;
    else if (here.starts_with("\\z")) text += "$", ++i;
    else if (here.starts_with("\\A")) text += "^", ++i;
    else if (here.starts_with("\\") && here.size() > 1) text += here.substr(0, 2), ++i;
    else if (here.starts_with("(?:")) text += "(", i += 2;
    else text += here.front();
  }
  return text;
}

}  // namespace

// ---- requests ----

Result<size_t> BodyFraming::take(std::string_view bytes) {
  size_t used = 0;
  while (!ended_ && used < bytes.size()) {
    if (!chunked_ || part_ == Part::data) {
      size_t some = size_t(std::min<uint64_t>(left_, bytes.size() - used));
      used += some, left_ -= some;
      if (left_ > 0) continue;
      if (chunked_) part_ = Part::data_end;
      else ended_ = true;
      continue;
    }
    char c = bytes[used++];
    if (c != '\n') {
      line_ += c;
      if (line_.size() > kChunkLineMax) return Error(Code::invalid, "malformed chunk");
      continue;
    }
    if (!line_.ends_with('\r')) return Error(Code::invalid, "malformed chunk");
    std::string line = std::exchange(line_, {});
    line.pop_back();
    if (part_ == Part::data_end) {
      if (!line.empty()) return Error(Code::invalid, "malformed chunk");
      part_ = Part::size;
    } else if (part_ == Part::trailer) {
      ended_ = line.empty();
    } else {
      auto size = parse_number<uint64_t>(trim(std::string_view(line).substr(0, line.find(';'))), 16);
      if (!size || *size > kChunkBytesMax) return Error(Code::invalid, "malformed chunk");
      left_ = *size;
      part_ = *size > 0 ? Part::data : Part::trailer;
    }
  }
  return used;
}

const std::string* ProxyRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (to_lower(key) == name) return &value;
  return nullptr;
}

Result<ProxyRequest> parse_proxy_request(std::string_view head) {
  auto wrong = [](const char* what) { return Error(Code::invalid, what); };
  ProxyRequest request;
  std::vector<std::string_view> lines = split(head, '\n');
  for (std::string_view& line : lines) {
    if (&line == &lines.back() && line.empty()) continue;
    if (!line.ends_with('\r')) return wrong("malformed request");
    line.remove_suffix(1);
    if (line.find('\r') != line.npos || line.find('\0') != line.npos) return wrong("malformed request");
  }
  std::vector<std::string_view> first = split(lines.front(), ' ');
  if (first.size() != 3 || !is_token(first[0]) || (first[2] != "HTTP/1.1" && first[2] != "HTTP/1.0"))
    return wrong("malformed request line");
  request.method = first[0], request.target = first[1], request.version = first[2];
  size_t hosts = 0;
  std::optional<uint64_t> length;
  bool chunked = false;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    size_t colon = lines[i].find(':');
    std::string_view name = lines[i].substr(0, colon);
    if (colon == lines[i].npos || !is_token(name)) return wrong("malformed header");
    std::string value(trim(lines[i].substr(colon + 1))), lower = to_lower(name);
    if (lower == "host") request.host = value, ++hosts;
    if (lower == "content-length") {
      auto bytes = parse_number<uint64_t>(value);
      if (!bytes || (length && *length != *bytes)) return wrong("malformed Content-Length");
      length = bytes;
    }
    if (lower == "transfer-encoding") {
      if (chunked || to_lower(value) != "chunked") return wrong("unsupported transfer encoding");
      chunked = true;
    }
    request.headers.emplace_back(name, std::move(value));
  }
  if (hosts > 1) return wrong("too many Host headers");
  if (chunked && length) return wrong("both Content-Length and Transfer-Encoding");
  if (hosts == 0 && request.version == "HTTP/1.1") return wrong("missing required Host header");
  for (const char* scheme : {"http://", "https://"})
    if (request.target.starts_with(scheme)) {  // the absolute form, whose host counts
      std::string rest = request.target.substr(std::string_view(scheme).size());
      size_t end = std::min(rest.find_first_of("/?"), rest.size());
      request.host = rest.substr(0, end);
      request.target = rest.substr(end);
      if (!request.target.starts_with('/')) request.target.insert(0, "/");
    }
  if (!request.target.starts_with('/')) return wrong("malformed request target");
  std::string path = request.target.substr(0, std::min(request.target.find_first_of("?#"), request.target.size()));
  request.path = TRY(percent_decode(path).wrap("malformed request target"));
  if (chunked) request.body = BodyFraming::chunked();
  else if (length) request.body = BodyFraming::of_length(*length);
  request.upgrades = lists(request.header("connection"), "upgrade") && request.header("upgrade");
  return request;
}

std::string host_without_port(std::string_view header) {
  size_t colon = header.rfind(':');
  if (header.starts_with('[')) {
    size_t close = header.find(']');
    bool port = close != header.npos && close + 1 < header.size() && header[close + 1] == ':';
    return std::string(port ? header.substr(1, close - 1) : header);
  }
  bool one = colon != header.npos && header.find(':') == colon;
  return std::string(one ? header.substr(0, colon) : header);
}

// ---- rules ----

struct Patterns::Compiled {
  regex_t expression{};
  bool good = false;
  ~Compiled() {
    if (good) ::regfree(&expression);
  }
};

Result<Patterns> Patterns::parse(std::string_view list) {
  Patterns patterns;
  if (list.empty()) return patterns;
  for (std::string_view one : split(list, ',')) {
    auto compiled = std::make_shared<Compiled>();
    int flags = REG_EXTENDED | REG_NOSUB;
    std::string text = posix_form(one, flags);
    if (text.empty()) text = "()";  // matches everything, as in Go
    int failed = ::regcomp(&compiled->expression, text.c_str(), flags);
    if (failed) {
      char why[256];
      ::regerror(failed, &compiled->expression, why, sizeof why);
      return Error(Code::invalid, "error parsing regexp: " + std::string(why) + ": `" + std::string(one) + "`");
    }
    compiled->good = true;
    patterns.all_.push_back(std::move(compiled));
  }
  return patterns;
}

bool Patterns::match(const std::string& text) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const auto& one) { return ::regexec(&one->expression, text.c_str(), 0, nullptr, 0) == 0; });
}

Route route(const ProxyRequest& request, const ProxyRules& rules) {
  // A NUL would end the text that the expressions see.
  if (request.path.find('\0') != request.path.npos) return {Route::To::not_found, ""};
  std::string query = request.target.substr(std::min(request.target.find('?'), request.target.size()));
  if (std::string clean = cleaned(request.path); clean != request.path) return {Route::To::redirect, encoded_path(clean) + query};
  const std::string& path = request.path;
  auto below = [&](const std::string& prefix) { return path.starts_with(prefix); };
  bool file = rules.serves_files && below(rules.static_prefix) &&
              (!below(rules.api_prefix) || rules.static_prefix.size() >= rules.api_prefix.size());
  if (file) return {Route::To::file, path.substr(rules.static_prefix.size() - 1)};
  if (!below(rules.api_prefix)) {
    bool named = path + "/" == rules.api_prefix || (rules.serves_files && path + "/" == rules.static_prefix);
    return named ? Route{Route::To::redirect, encoded_path(path + "/") + query} : Route{};
  }
  if (rules.serves_files && path + "/" == rules.static_prefix) return {Route::To::redirect, encoded_path(path + "/") + query};
  bool strips = !rules.api_prefix.starts_with("/api");
  std::string seen = strips ? path.substr(rules.api_prefix.size() - 1) : path;
  if (rules.filters) {
    std::string host = host_without_port(request.host);
    bool passes = !rules.reject_paths.match(seen) && !rules.reject_methods.match(request.method) &&
                  rules.accept_paths.match(seen) && rules.accept_hosts.match(host);
    if (!passes) return {Route::To::forbidden, ""};
  }
  std::string target = request.target;
  if (size_t fragment = target.find('#'); fragment != target.npos) target.erase(fragment);
  if (strips) {
    // The prefix may stand encoded in the target: then the path is encoded anew.
    if (target.starts_with(rules.api_prefix)) target.erase(0, rules.api_prefix.size() - 1);
    else target = encoded_path(seen) + query;
  }
  return {Route::To::api, target};
}

// ---- heads ----

std::string head_for_server(const ProxyRequest& request, const std::string& target, const std::string& server_host,
                            const std::vector<std::string>& identity, const std::string& client_address) {
  std::string head = request.method + " " + target + " " + request.version + "\r\nHost: " + server_host + "\r\n";
  const std::string* connection = request.header("connection");
  std::string forwarded;
  for (const auto& [name, value] : request.headers) {
    std::string lower = to_lower(name);
    if (lower == "host" || is_hop_by_hop(lower) || lists(connection, lower)) continue;
    if (lower == "x-forwarded-for" && !request.upgrades && !client_address.empty()) {
      forwarded += value + ", ";
      continue;
    }
    head.append(name).append(": ").append(value).append("\r\n");
  }
  for (const std::string& line : identity) {
    std::string name = to_lower(line.substr(0, line.find(':')));
    bool impersonates = name.starts_with("impersonate-");
    if (!request.header(impersonates ? "impersonate-user" : name)) head += line + "\r\n";
  }
  if (request.upgrades) return head + "Connection: Upgrade\r\nUpgrade: " + *request.header("upgrade") + "\r\n\r\n";
  if (!client_address.empty()) head += "X-Forwarded-For: " + forwarded + client_address + "\r\n";
  return head + "Connection: close\r\n\r\n";
}

Result<AnswerHead> head_for_client(std::string_view head) {
  AnswerHead answer;
  size_t space = head.find(' ');
  auto status = space == head.npos ? std::nullopt : parse_number<int>(head.substr(space + 1, 3));
  if (!head.starts_with("HTTP/1.") || !status || *status < 100) return Error(Code::invalid, "the server's answer is not HTTP");
  answer.status = *status;
  bool last = answer.status >= 200;
  for (std::string_view line : split(head, '\n')) {
    line = trim(line);
    if (line.empty()) continue;
    std::string name = answer.text.empty() ? "" : to_lower(trim(line.substr(0, line.find(':'))));
    bool drops = last && (name == "connection" || name == "keep-alive" || name.starts_with("access-control-"));
    if (!drops) answer.text.append(line).append("\r\n");
  }
  answer.text += last ? "Connection: close\r\n\r\n" : "\r\n";
  return answer;
}

namespace {

const char* reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 206: return "Partial Content";
    case 301: return "Moved Permanently";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 416: return "Requested Range Not Satisfiable";
    case 431: return "Request Header Fields Too Large";
    case 502: return "Bad Gateway";
    default: return "Internal Server Error";
  }
}

}  // namespace

std::string error_answer(int status, std::string_view text) {
  std::string body(text);
  body += "\n";
  return "HTTP/1.1 " + std::to_string(status) + " " + reason_phrase(status) +
         "\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nConnection: "
         "close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string redirect_answer(const std::string& location) {
  return "HTTP/1.1 301 Moved Permanently\r\nLocation: " + location + "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
}

}  // namespace coracle::ctl
