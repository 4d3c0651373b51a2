// SPDX-License-Identifier: Apache-2.0
// The pure parts of proxy: which requests pass, where each goes, and how it is written to the API server.
//   bytes ──parse_proxy_request──▶ ProxyRequest ──route──▶ API path, static file, redirect or refusal ──head_for_server──▶ bytes
// Source: kubectl pkg/proxy; Go's net/http (ServeMux, FileServer, ReverseProxy); RFC 9112.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::ctl {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// How the body of a request is delimited, and whether it has ended. What follows it belongs to another request.
class BodyFraming {
 public:
  static BodyFraming of_length(uint64_t bytes) { return {false, bytes}; }
  static BodyFraming chunked() { return {true, 0}; }
  // How many of the bytes belong to the body. Errors: invalid for a malformed chunk.
  Result<size_t> take(std::string_view bytes);
  bool ended() const { return ended_; }

 private:
  enum class Part : uint8_t { size, data, data_end, trailer };
  BodyFraming(bool chunked, uint64_t left) : chunked_(chunked), ended_(!chunked && left == 0), left_(left) {}
  bool chunked_, ended_;
  uint64_t left_;  // of the body, or of the chunk
  Part part_ = Part::size;
  std::string line_;
};

struct ProxyRequest {
  std::string method, target;  // "/api/v1/pods?limit=1", as it came
  std::string path;            // decoded, without the query
  std::string host;            // of the Host header
  std::string version;         // "HTTP/1.1"
  HttpHeaders headers;
  BodyFraming body = BodyFraming::of_length(0);
  bool upgrades = false;

  const std::string* header(std::string_view name) const;  // the first; nullptr if there is none
};

// Of all lines up to the empty one. Errors: invalid for what no HTTP/1 server may take, and for what two servers could read in
// two ways.
Result<ProxyRequest> parse_proxy_request(std::string_view head);

// "localhost:8001" → "localhost", "[::1]:8001" → "::1"; without a port all of it.
std::string host_without_port(std::string_view header);

// Expressions with commas between them, of Go's syntax as far as it has the same meaning here.
class Patterns {
 public:
  static Result<Patterns> parse(std::string_view list);  // Errors: invalid, naming the expression
  bool match(const std::string& text) const;             // any of them, anywhere in the text

 private:
  struct Compiled;
  std::vector<std::shared_ptr<const Compiled>> all_;
};

struct ProxyRules {
  std::string api_prefix = "/", static_prefix = "/static/";  // each ends in "/"
  bool serves_files = false, filters = true;
  Patterns accept_paths, reject_paths, accept_hosts, reject_methods;
};

struct Route {
  enum class To : uint8_t { api, file, redirect, not_found, forbidden } to = To::not_found;
  std::string target;  // api: path and query there; file: the path below the directory; redirect: the location
};
Route route(const ProxyRequest& request, const ProxyRules& rules);

// The request's head as the API server gets it. `identity`: header lines that say who we are, which the request's own replace.
std::string head_for_server(const ProxyRequest& request, const std::string& target, const std::string& server_host,
                            const std::vector<std::string>& identity, const std::string& client_address);
// The head of the server's answer as the client gets it; `status` is its status. The connection ends with it, unless it says
// that the protocol changes (101) or is only the first answer (1xx). Errors: invalid.
struct AnswerHead {
  int status = 0;
  std::string text;
};
Result<AnswerHead> head_for_client(std::string_view head);

// A whole answer: text/plain as Go's http.Error, or a redirect.
std::string error_answer(int status, std::string_view text);
std::string redirect_answer(const std::string& location);

// ---- files ----

struct FileAnswer {
  std::string head;
  std::string path;  // the file whose bytes are the body; "": `body` is
  std::string body;
  uint64_t from = 0, size = 0;  // of the file
};
// The answer to a GET or HEAD of `path` below `directory`, as Go's FileServer gives it: index.html, lists of directories,
// ranges, If-Modified-Since.
FileAnswer file_answer(const ProxyRequest& request, const std::string& directory, const std::string& path);

}  // namespace coracle::ctl
