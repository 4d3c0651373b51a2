// SPDX-License-Identifier: Apache-2.0
// See http_get.h. The response comes from a container and is untrusted; no more than necessary is read.
#include "daemon/node/probe/http_get.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::node {
namespace {

constexpr size_t kHeadMax = 64 << 10;
constexpr size_t kBodyMax = 10 << 10;  // as the kubelet; a server that is cut off earlier would log an error
constexpr size_t kChunkLineMax = 4 << 10;

bool is_header_text(std::string_view text) {
  for (unsigned char c : text)
    if ((c < ' ' && c != '\t') || c == 0x7f) return false;
  return true;
}

Result<std::string> request_text(const Url& url, const HttpHeaders& headers) {
  std::string host = host_and_port(url.host, url.port), rest;
  for (const auto& [name, value] : headers) {
    if (name.empty() || name.find_first_of(": \t") != name.npos || !is_header_text(name) || !is_header_text(value))
      return Error(Code::invalid, "invalid header field " + coracle::quoted(name));
    if (to_lower(name) == "host") host = value;
    else rest += name + ": " + value + "\r\n";
  }
  return "GET " + url.path + " HTTP/1.1\r\nHost: " + host + "\r\n" + rest + "Connection: close\r\n\r\n";
}

struct Head {
  HttpReply reply;
  std::optional<size_t> body_size;  // Content-Length
  bool chunked = false;
};

Result<Head> parse_head(std::string_view text) {
  Head head;
  bool first = true;
  for (std::string_view line : split(text, '\n')) {
    const bool goes_on = line.starts_with(' ') || line.starts_with('\t');  // a continuation of the previous header line
    line = trim(line);
    if (std::exchange(first, false)) {
      size_t space = line.find(' ');
      auto status = space == line.npos ? std::nullopt : parse_number<int>(trim(line.substr(space)).substr(0, 3));
      if (!line.starts_with("HTTP/1.") || !status || *status < 100) return Error(Code::invalid, "malformed HTTP response");
      head.reply.status = *status;
      continue;
    }
    size_t colon = line.find(':');
    if (colon == line.npos && !goes_on && !line.empty())
      return Error(Code::invalid, "malformed MIME header line: " + std::string(line));
    if (colon == line.npos || goes_on) continue;
    std::string name = to_lower(line.substr(0, colon));
    std::string_view value = trim(line.substr(colon + 1));
    if (name == "location") head.reply.location = value;
    if (name == "content-length") head.body_size = parse_number<size_t>(value);
    if (name == "transfer-encoding") head.chunked = to_lower(value).find("chunked") != std::string::npos;
  }
  return head;
}

Error malformed_chunks() { return Error(Code::invalid, "malformed HTTP response: chunked encoding"); }

// Decodes the chunks received so far. Source: RFC 9112 section 7.1.
Result<bool> unpack_chunks(std::string_view bytes, std::string& body) {
  body.clear();
  for (;;) {
    size_t end = bytes.find("\r\n");
    if (end == bytes.npos && bytes.size() > kChunkLineMax) return malformed_chunks();
    if (end == bytes.npos) return false;
    std::string_view line = bytes.substr(0, end);
    auto size = parse_number<size_t>(trim(line.substr(0, line.find(';'))), 16);
    if (!size) return malformed_chunks();
    if (*size == 0) return true;  // trailers are ignored
    bytes.remove_prefix(end + 2);
    body += bytes.substr(0, *size);
    if (bytes.size() < *size || bytes.size() - *size < 2) return false;
    bytes.remove_prefix(*size);
    if (!bytes.starts_with("\r\n")) return malformed_chunks();
    bytes.remove_prefix(2);
  }
}

// The position after the empty line that ends the head.
std::optional<size_t> end_of_head(std::string_view text) {
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    if (std::string_view line = text.substr(begin, end - begin); line.empty() || line == "\r") return end + 1;
  return std::nullopt;
}

Result<Head> read_head(Connection& connection, std::string& text) {
  std::optional<size_t> end;
  while (!(end = end_of_head(text))) {
    if (text.size() > kHeadMax) return Error(Code::invalid, "malformed HTTP response: its headers do not end");
    std::string_view more = TRY(connection.read());
    if (more.empty()) return Error(Code::unavailable, text.empty() ? "EOF" : "unexpected EOF");
    text.append(more);
  }
  Head head = TRY(parse_head(std::string_view(text).substr(0, *end)));
  text.erase(0, *end);
  return head;
}

// The body up to the limit. `text`: the bytes received so far.
Result<std::string> read_body(Connection& connection, const Head& head, std::string text) {
  if (head.reply.status == 204 || head.reply.status == 304) return std::string();
  std::string unpacked;
  const size_t wanted = std::min(head.chunked ? kBodyMax : head.body_size.value_or(kBodyMax), kBodyMax);
  for (;;) {
    bool complete = false;
    if (head.chunked) complete = TRY(unpack_chunks(text, unpacked));
    std::string& body = head.chunked ? unpacked : text;
    if (complete || body.size() >= wanted) return body.substr(0, wanted);
    std::string_view more = TRY(connection.read());
    if (more.empty() && !head.chunked && !head.body_size) return body;
    if (more.empty()) return Error(Code::unavailable, "unexpected EOF");
    text.append(more);
  }
}

Result<HttpReply> read_reply(Connection& connection) {
  std::string text;
  for (;;) {
    Head head = TRY(read_head(connection, text));
    if (head.reply.status < 200) continue;  // 100 Continue and other interim responses
    head.reply.body = TRY(read_body(connection, head, std::move(text)));
    return std::move(head.reply);
  }
}

}  // namespace

std::string Url::text() const { return std::string(tls ? "https" : "http") + "://" + host_and_port(host, port) + path; }

std::string encoded_path(std::string_view path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : path.substr(0, path.find('#'))) {
    if (c > ' ' && c < 0x7f) out += char(c);
    else out.append({'%', kHex[c >> 4], kHex[c & 15]});
  }
  return out.starts_with('/') ? out : "/" + out;
}

std::optional<Url> resolve(const Url& base, std::string_view reference) {
  Url url = base;
  size_t scheme = reference.find("://");
  bool absolute = scheme != reference.npos && scheme < reference.find_first_of("/?#");
  if (absolute) {
    std::string name = to_lower(reference.substr(0, scheme));
    if (name != "http" && name != "https") return std::nullopt;
    url.tls = name == "https";
    reference.remove_prefix(scheme + 1);
  }
  if (reference.starts_with("//")) {
    reference.remove_prefix(2);
    std::string_view authority = reference.substr(0, reference.find_first_of("/?#"));
    reference.remove_prefix(authority.size());
    authority = authority.substr(authority.rfind('@') + 1);
    size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
    if (bracket == authority.npos) return std::nullopt;
    size_t colon = authority.find(':', bracket);
    url.host = authority.substr(0, colon);
    if (bracket) url.host = url.host.substr(1, bracket - 1);
    auto port = colon == authority.npos ? std::optional<uint16_t>(url.tls ? 443 : 80)
                                        : parse_number<uint16_t>(authority.substr(colon + 1));
    if (url.host.empty() || !port) return std::nullopt;
    url.port = *port;
    url.path = encoded_path(reference);
  } else if (reference.starts_with('/')) {
    url.path = encoded_path(reference);
  } else if (!reference.empty()) {
    std::string_view directory = std::string_view(base.path).substr(0, base.path.find('?'));
    if (!reference.starts_with('?')) directory = directory.substr(0, directory.rfind('/') + 1);
    url.path = encoded_path(std::string(directory) + std::string(reference));
  }
  return url;
}

Result<HttpReply> http_get(const Url& url, const HttpHeaders& headers, const AddressLookup& lookup, const CallContext& context) {
  std::string request = TRY(request_text(url, headers));
  Connection connection = TRY(Connection::open(url.host, url.port, lookup, context));
  if (url.tls) TRY(connection.secure(url.host));
  TRY(connection.write(request));
  return read_reply(connection);
}

}  // namespace coracle::node
