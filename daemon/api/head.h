// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP request, validated before authentication and before its body is read.
//   bytes ──parse_request_head──▶ Head: the fields for routing, and how to read the body (body.h)
// One parser for all prevents request smuggling, which needs two different readings of one head. The limits are defined here as
// well. Pure. Source: RFC 9112 (message syntax), RFC 9110 (fields), RFC 3986 (targets); the behaviour of Go's net/http.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::api {

constexpr size_t kHeadBytesMax = 1 << 20;  // including the target. Source: Go net/http DefaultMaxHeaderBytes
constexpr size_t kQueryPairsMax = 10'000;  // Source: Go net/url
constexpr size_t kHeadersMax = 1000;       // high, because impersonation uses one header for each group

// Names are case-insensitive; repeated names are kept in order. All texts are in one string, because every request has several
// headers.
class Headers {
 public:
  struct Item {  // valid until the next add()
    std::string_view name, value;
  };
  class Iterator {  // for a range-based loop
   public:
    Iterator(const Headers& headers, size_t at) : headers_(headers), at_(at) {}
    Item operator*() const { return headers_.item(at_); }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Headers& headers_;
    size_t at_;
  };

  void reserve(size_t count, size_t bytes);
  void add(std::string_view name, std::string_view value);
  std::string_view get(std::string_view name) const;  // the first; "" if absent
  std::vector<std::string_view> all(std::string_view name) const;
  bool has(std::string_view name) const { return count(name) > 0; }
  size_t count(std::string_view name) const;
  size_t size() const { return places_.size(); }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  struct Place {  // in text_: the name, and the value right after it
    uint32_t at, name_size, value_size;
  };
  Item item(size_t i) const {
    std::string_view text = std::string_view(text_).substr(places_[i].at);
    return {text.substr(0, places_[i].name_size), text.substr(places_[i].name_size, places_[i].value_size)};
  }
  std::string text_;
  std::vector<Place> places_;
};

class Query {  // decoded; repeated names are kept in order
 public:
  static Result<Query> parse(std::string_view text);  // Errors: bad_request for broken percent-encoding, too_large
  std::string_view get(std::string_view name) const;  // the first; "" if absent
  std::vector<std::string_view> all(std::string_view name) const;
  bool has(std::string_view name) const;
  bool flag(std::string_view name) const;  // present and neither "0" nor "false", as Kubernetes reads booleans in a query

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

struct Head {
  // The path as sent: percent-encoded, begins with '/', without scheme and host of an absolute target. "*" for OPTIONS *.
  std::string method, path;
  std::string query_text;
  Query query;
  Headers headers;
  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool supports_chunked = true;  // false for HTTP/1.0
  bool awaits_continue = false;  // the client waits for 100 Continue before it sends the body
  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// The end of a head: the position after the first empty line whose line break is at `from` or later; npos: it is not complete.
// Lines may end without CR. Source: RFC 9112 section 2.2
size_t end_of_head(std::string_view bytes, size_t from = 0);
// Parses a request head. `bytes` ends with the empty line. Errors: bad_request (malformed, without Host, or with an ambiguous
// body length), method_not_allowed, too_large, unsupported (transfer coding, expectation or HTTP version).
Result<Head> parse_request_head(std::string_view bytes);

constexpr size_t kAnswerHeadBytesMax = 64 << 10;

// The head of a response from a proxied server. Lines may end without CR, as some scripts write them.
struct AnswerHead {
  int status = 0;
  std::string reason;  // "Not Found"; may be empty
  Headers headers;
  std::optional<uint64_t> content_length;  // nullopt if it is chunked
  bool chunked = false;
};
// Parses a response head. `bytes` ends with the empty line. Errors: bad_request (malformed), too_large, unsupported (transfer
// coding).
Result<AnswerHead> vet_answer_head(std::string_view bytes);

bool equals_ignore_case(std::string_view a, std::string_view b);  // ASCII
// Removes the part of `left` before `separator`, and the separator, and returns the part. Unlike split() it does not process the
// rest: heads may be long and hostile.
std::string_view take_part(std::string_view& left, char separator);
// Whether a comma-separated field ("Connection: keep-alive, Upgrade") contains `token`, case-insensitively.
bool header_has_token(std::string_view field, std::string_view token);

}  // namespace coracle::api
