// SPDX-License-Identifier: Apache-2.0
// See head.h. A small strict parser: ambiguous input is rejected.
#include "daemon/api/head.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }

constexpr std::array<bool, 256> token_chars() {
  std::array<bool, 256> out{};
  for (char c = 'a'; c <= 'z'; ++c) out[size_t(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) out[size_t(c)] = true;
  for (char c = '0'; c <= '9'; ++c) out[size_t(c)] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~")) out[size_t(c)] = true;
  return out;
}
bool is_token(std::string_view text) {
  static constexpr std::array<bool, 256> kTokenChars = token_chars();
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return kTokenChars[uint8_t(c)]; });
}
// Lambdas as constants, so that the loops over every byte are inlined.
constexpr auto is_control_char = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; };
// Values are long, and nearly always sound: eight bytes at a time, of which the highest bit of each says whether it is to be
// looked at.
bool has_control_char(std::string_view text) {
  constexpr uint64_t kEach = 0x0101010101010101, kHighest = kEach << 7;
  for (; text.size() >= sizeof kEach; text.remove_prefix(sizeof kEach)) {
    uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    const uint64_t below_blank = (word - kEach * 0x20) & ~word, deleted = word ^ (kEach * 0x7f);
    const uint64_t doubtful = (below_blank | ((deleted - kEach) & ~deleted)) & kHighest;
    if (doubtful && std::any_of(text.begin(), text.begin() + sizeof kEach, is_control_char)) return true;
  }
  return std::any_of(text.begin(), text.end(), is_control_char);
}
constexpr auto is_target_char = [](char c) { return c > 0x20 && c < 0x7f && c != '#'; };

// Errors with an HTTP status for which Kubernetes has no reason.
Error not_spoken(int status, std::string text) {
  ErrorDetails details;
  details.http_status = status;
  details.reason = kReasonUnknown;
  return Error(Code::unsupported, std::move(text)).with(std::move(details));
}

Error malformed(std::string_view what) { return Error(Code::bad_request, "malformed request: " + std::string(what)); }

Result<std::string> decode_component(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  auto decoded = percent_decode(spaced);
  if (!decoded) return malformed("broken percent-encoding in the query");
  return decoded;
}

// Path and query of an absolute target, as sent to proxies: "http://host:6443/api?x=y". Source: RFC 9112 section 3.2.2
std::string_view without_host(std::string_view target) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() || !equals_ignore_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    size_t end = std::min(target.find_first_of("/?"), target.size());
    if (end == 0) return {};  // without a host
    return end == target.size() ? std::string_view("/") : target.substr(end);
  }
  return target;
}

// The minor version of HTTP/1. Clients of a later minor version are served as 1.1. Source: RFC 9110 section 2.5, RFC 9112 section
// 2.3
Result<int> minor_version(std::string_view version) {
  auto is_digit = [&](size_t at) { return version[at] >= '0' && version[at] <= '9'; };
  bool well_formed = version.size() == 8 && version.starts_with("HTTP/") && is_digit(5) && version[6] == '.' && is_digit(7);
  if (!well_formed) return malformed("HTTP version");
  if (version[5] != '1') return not_spoken(505, "unsupported HTTP version, expected 1.0 or 1.1");
  return version[7] - '0';
}

Result<void> read_request_line(std::string_view line, Head& head) {
  size_t first = line.find(' '), last = line.rfind(' ');
  if (first == last || !is_token(line.substr(0, first))) return malformed("request line");
  head.method = line.substr(0, first);
  if (std::find(std::begin(kMethods), std::end(kMethods), head.method) == std::end(kMethods))
    return Error(Code::method_not_allowed, "unsupported HTTP method");
  std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  head.keep_alive = head.supports_chunked = TRY(minor_version(version)) > 0;
  if (!std::all_of(target.begin(), target.end(), is_target_char)) return malformed("request target");
  if (target == "*" && head.method == "OPTIONS") return head.path = target, Result<void>();
  target = without_host(target);
  if (target.empty() || (target[0] != '/' && target[0] != '?')) return malformed("request target");
  size_t mark = target.find('?');
  head.path = mark == 0 ? std::string_view("/") : target.substr(0, mark);
  if (mark != std::string_view::npos) head.query_text = target.substr(mark + 1);
  head.query = TRY(Query::parse(head.query_text));
  return {};
}

std::string_view without_blanks(std::string_view value) {
  constexpr std::string_view kBlanks = " \t";
  size_t first = value.find_first_not_of(kBlanks);
  if (first == value.npos) return {};
  return value.substr(first, value.find_last_not_of(kBlanks) - first + 1);
}

Result<void> read_header(std::string_view line, Headers& headers) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return malformed("header line");
  std::string_view value = without_blanks(line.substr(colon + 1));
  if (has_control_char(value)) return malformed("control character in a header");
  headers.add(line.substr(0, colon), value);
  if (headers.size() > kHeadersMax) return Error(Code::too_large, "too many headers");
  return {};
}

Result<bool> is_chunked(const Headers& headers) {
  auto codings = headers.all("Transfer-Encoding");
  if (codings.empty()) return false;
  if (codings.size() == 1 && equals_ignore_case(codings[0], "chunked")) return true;
  return not_spoken(501, "only the chunked transfer encoding is understood");
}

Result<std::optional<uint64_t>> length_of(const Headers& headers) {
  std::optional<uint64_t> known;
  for (std::string_view length : headers.all("Content-Length")) {
    auto count = parse_number<uint64_t>(length);
    if (!count || (known && *known != *count)) return malformed("Content-Length");
    known = count;
  }
  return known;
}

Result<void> check_host(const Head& head) {
  size_t hosts = head.headers.count("Host");
  if (hosts > 1) return Error(Code::bad_request, "too many Host headers");
  if (hosts == 0 && head.supports_chunked) return Error(Code::bad_request, "missing required Host header");
  return {};
}

// Only 100-continue is supported. Source: RFC 9110 section 10.1.1
Result<void> read_expectation(Head& head) {
  std::string_view expected = head.headers.get("Expect");
  if (expected.empty() || !head.supports_chunked) return {};
  if (!equals_ignore_case(expected, "100-continue")) return not_spoken(417, "the only expectation that is met is 100-continue");
  head.awaits_continue = head.has_body();
  return {};
}

Result<void> determine_body_length(Head& head) {
  if (head.headers.has("Transfer-Encoding") && !head.supports_chunked) return malformed("Transfer-Encoding in HTTP/1.0");
  if (head.headers.has("Transfer-Encoding") && head.headers.has("Content-Length"))
    return malformed("both Content-Length and Transfer-Encoding");
  head.chunked = TRY(is_chunked(head.headers));
  head.content_length = TRY(length_of(head.headers));
  return {};
}

// "HTTP/1.1 404 Not Found"; the reason may be absent.
Result<void> read_status_line(std::string_view line, AnswerHead& head) {
  Error not_http = Error(Code::bad_request, "malformed HTTP response " + quoted(line.substr(0, 64)));
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ') return not_http;
  std::string_view status = line.substr(9, 3), reason = trim(line.substr(12));
  auto number = parse_number<uint32_t>(status);
  bool ends = line.size() == 12 || line[12] == ' ';
  if (!number || *number < 100 || !ends) return Error(Code::bad_request, "malformed HTTP status code " + quoted(status));
  if (has_control_char(reason)) return not_http;
  head.status = int(*number);
  head.reason = reason;
  return {};
}

std::string_view take_line(std::string_view& bytes) {
  size_t end = bytes.find('\n');
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

size_t end_of_head(std::string_view bytes, size_t from) {
  for (size_t at = bytes.find('\n', from); at != std::string_view::npos; at = bytes.find('\n', at + 1)) {
    std::string_view next = bytes.substr(at + 1);
    if (next.starts_with('\n')) return at + 2;
    if (next.starts_with("\r\n")) return at + 3;
  }
  return std::string_view::npos;
}

bool equals_ignore_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view take_part(std::string_view& left, char separator) {
  size_t end = std::min(left.find(separator), left.size());
  std::string_view part = left.substr(0, end);
  left.remove_prefix(std::min(end + 1, left.size()));
  return part;
}

bool header_has_token(std::string_view field, std::string_view token) {
  while (!field.empty())
    if (equals_ignore_case(trim(take_part(field, ',')), token)) return true;
  return false;
}

void Headers::reserve(size_t count, size_t bytes) {
  places_.reserve(count);
  text_.reserve(bytes);
}
void Headers::add(std::string_view name, std::string_view value) {
  places_.push_back({uint32_t(text_.size()), uint32_t(name.size()), uint32_t(value.size())});
  text_.append(name).append(value);
}
std::string_view Headers::get(std::string_view name) const {
  for (const Item& item : *this)
    if (equals_ignore_case(item.name, name)) return item.value;
  return {};
}
std::vector<std::string_view> Headers::all(std::string_view name) const {
  std::vector<std::string_view> found;
  for (const Item& item : *this)
    if (equals_ignore_case(item.name, name)) found.push_back(item.value);
  return found;
}
size_t Headers::count(std::string_view name) const {
  size_t found = 0;
  for (const Item& item : *this) found += equals_ignore_case(item.name, name) ? 1 : 0;
  return found;
}

Result<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    std::string_view pair = take_part(text, '&');
    if (pair.empty()) continue;
    if (query.all_.size() == kQueryPairsMax) return Error(Code::too_large, "the query has too many parameters");
    size_t equals = pair.find('=');
    std::string name = TRY(decode_component(pair.substr(0, equals)));
    std::string value = TRY(decode_component(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1)));
    query.all_.emplace_back(std::move(name), std::move(value));
  }
  return query;
}
std::string_view Query::get(std::string_view name) const {
  for (const auto& [key, value] : all_)
    if (key == name) return value;
  return {};
}
std::vector<std::string_view> Query::all(std::string_view name) const {
  std::vector<std::string_view> found;
  for (const auto& [key, value] : all_)
    if (key == name) found.push_back(value);
  return found;
}
bool Query::has(std::string_view name) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& pair) { return pair.first == name; });
}
bool Query::flag(std::string_view name) const {
  if (!has(name)) return false;
  std::string_view value = get(name);
  return value != "0" && !equals_ignore_case(value, "false");
}

Result<Head> parse_request_head(std::string_view bytes) {
  if (bytes.size() > kHeadBytesMax) return Error(Code::too_large, "the request head is too large");
  if (end_of_head(bytes) != bytes.size()) return malformed("unfinished head");
  Head head;
  head.headers.reserve(8, bytes.size());  // most requests have no more
  TRY(read_request_line(take_line(bytes), head));
  for (std::string_view line = take_line(bytes); !line.empty(); line = take_line(bytes)) TRY(read_header(line, head.headers));
  TRY(check_host(head));
  TRY(determine_body_length(head));
  TRY(read_expectation(head));
  auto connection = head.headers.all("Connection");  // several lines are one list
  auto names = [&](std::string_view token) {
    return std::any_of(connection.begin(), connection.end(),
                       [&](std::string_view field) { return header_has_token(field, token); });
  };
  if (names("close")) head.keep_alive = false;
  else if (names("keep-alive")) head.keep_alive = true;
  return head;
}

Result<AnswerHead> vet_answer_head(std::string_view bytes) {
  if (bytes.size() > kAnswerHeadBytesMax) return Error(Code::too_large, "the head of the answer is too large");
  AnswerHead head;
  TRY(read_status_line(take_line(bytes), head));
  while (!bytes.empty()) {
    std::string_view line = take_line(bytes);
    if (line.empty()) break;
    TRY(read_header(line, head.headers));
  }
  head.chunked = TRY(is_chunked(head.headers));
  if (!head.chunked) head.content_length = TRY(length_of(head.headers));
  return head;
}

}  // namespace coracle::api
