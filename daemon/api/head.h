// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP request, vetted before anything else reads it: before authentication, before its body.
//   bytes ──vet_head──▶ Head: what requests are routed by, and how their bodies are read (body.h)
// It exists because two readings of one head are how requests are smuggled, and because limits belong in one place.
// Pure. Source: RFC 9112 (message syntax), RFC 9110 (fields), RFC 3986 (targets); what Go's net/http takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::api {

constexpr size_t kHeadBytesMax = 1 << 20;  // targets included. Source: Go net/http DefaultMaxHeaderBytes
constexpr size_t kQueryPairsMax = 10'000;  // Source: Go net/url
constexpr size_t kHeadersMax = 1000;       // somebody may be impersonated with many groups, each a header

class Headers {  // names compare without case; several of one name are kept in order
 public:
  void add(std::string name, std::string value) { all_.emplace_back(std::move(name), std::move(value)); }
  std::string_view get(std::string_view name) const;  // the first, "" when absent
  std::vector<std::string_view> all(std::string_view name) const;
  bool has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& items() const { return all_; }

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

class Query {  // decoded; several of one name are kept in order
 public:
  static Result<Query> parse(std::string_view text);  // Errors: bad_request for broken percent-encoding, too_large
  std::string_view get(std::string_view name) const;  // the first, "" when absent
  std::vector<std::string_view> all(std::string_view name) const;
  bool has(std::string_view name) const;
  bool flag(std::string_view name) const;  // there, and neither "0" nor "false": as Kubernetes reads booleans in a query

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

struct Head {
  // Path as sent: still percent-encoded, starts with '/'; without the scheme and host of an absolute target. "*" for OPTIONS *.
  std::string method, path;
  std::string query_text;
  Query query;
  Headers headers;
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool knows_chunks = true;      // not HTTP/1.0
  bool awaits_continue = false;  // its body comes when it was told 100 Continue
  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// `bytes` ends with the empty line. Errors: bad_request (malformed, without a host, or ambiguous as to where the body ends),
// too_large, unsupported (a transfer encoding, an expectation or an HTTP version that we do not speak).
Result<Head> vet_head(std::string_view bytes);

constexpr size_t kAnswerHeadBytesMax = 64 << 10;

// The head of an answer, of a server that requests are handed on to. Lines may end without CR, as some scripts write them.
struct AnswerHead {
  int status = 0;
  std::string reason;  // "Not Found"; may be empty
  Headers headers;
  std::optional<uint64_t> content_length;  // nothing where it is chunked
  bool chunked = false;
};
// `bytes` ends with the empty line. Errors: bad_request (malformed), too_large, unsupported (a transfer coding, as above).
Result<AnswerHead> vet_answer_head(std::string_view bytes);

bool equal_fold(std::string_view a, std::string_view b);  // ASCII
// The next part of `left`, up to `separator`, taken out of it with the separator. Unlike split() it costs nothing for what is not
// looked at: heads are long, and made by strangers.
std::string_view take_part(std::string_view& left, char separator);
// Whether a comma-separated field ("Connection: keep-alive, Upgrade") names `token`, without case.
bool names_token(std::string_view field, std::string_view token);

}  // namespace coracle::api
