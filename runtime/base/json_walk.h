// SPDX-License-Identifier: Apache-2.0
// Parses JSON text without building a value: to check that it is valid, or to count something in it with a handler.
//   struct Counter : JsonWalker { size_t nulls = 0; bool on_null(error_code&) { return ++nulls, true; } };
//   Counter counter; bool good = walk_json(text, counter);
// Source: Boost.JSON, basic_parser. Its header is heavy: include this one only in .cc files.
#pragma once

#include <boost/json/basic_parser_impl.hpp>
#include <string_view>
#include <utility>

#include "runtime/base/json.h"

namespace coracle {

struct JsonWalker {  // ignores every event; a derived class hides the functions that it is interested in
  static constexpr size_t max_object_size = size_t(-1), max_array_size = size_t(-1);
  static constexpr size_t max_key_size = size_t(-1), max_string_size = size_t(-1);
  using error_code = json::error_code;
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(size_t, error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t, error_code&) { return true; }
  bool on_key_part(json::string_view, size_t, error_code&) { return true; }
  bool on_key(json::string_view, size_t, error_code&) { return true; }
  bool on_string_part(json::string_view, size_t, error_code&) { return true; }
  bool on_string(json::string_view, size_t, error_code&) { return true; }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(int64_t, json::string_view, error_code&) { return true; }
  bool on_uint64(uint64_t, json::string_view, error_code&) { return true; }
  bool on_double(double, json::string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }
};

// True if all of `text` is one JSON value, at most kJsonDepthMax deep. If false, the walker has received a part of the events.
template <typename Walker>
bool walk_json(std::string_view text, Walker& walker) {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::basic_parser<Walker> parser(options);
  parser.handler() = std::move(walker);
  json::error_code failed;
  size_t read = parser.write_some(false, text.data(), text.size(), failed);
  walker = std::move(parser.handler());
  return !failed && read == text.size();
}

}  // namespace coracle
