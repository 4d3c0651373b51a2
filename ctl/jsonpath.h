// SPDX-License-Identifier: Apache-2.0
// JSONPath templates as kubectl takes them: text with {expressions}; fields, ['quoted'], indices, slices with steps, unions,
// wildcards, recursive descent, filters [?(@.type=="Ready")], {range …}{end}, literals. It keeps kubectl's habits: ['a.b'] is
// .a.b, a dot in a key is written \., a filter has one comparison and no && or ||, and a range without {end} goes on to the end.
// Pure. Source: k8s.io/client-go util/jsonpath; https://kubernetes.io/docs/reference/kubectl/jsonpath/
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/go_value.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

constexpr int kJsonPathNestingMax = 64;           // of ranges, and of filters in filters
constexpr size_t kJsonPathValuesMax = 1'000'000;  // that all steps of an expression may select
constexpr size_t kJsonPathBytesMax = 64u << 20;   // of the output

struct JsonPathNode;

class JsonPath {
 public:
  // Errors: invalid, in kubectl's words: "unterminated array".
  static Result<JsonPath> parse(std::string_view text);
  // One expression as custom-columns and --sort-by take it: "metadata.name", ".metadata.name", "{.metadata.name}". Errors: as
  // above, and for text around braces.
  static Result<JsonPath> parse_relaxed(std::string_view expression);

  // What each part of the template selects. Values refer to `root` and to this. A key that nothing has selects nothing, or is an
  // error. Errors: invalid, in kubectl's words: "array index out of bounds: index 3, length 2"; too_large.
  Result<std::vector<std::vector<GoValue>>> find(const json::value& root, bool missing_key_is_error = false) const;
  // All of that in one list.
  Result<std::vector<GoValue>> select(const json::value& root) const;
  // The template's output. Errors: as find().
  Result<std::string> print(const json::value& root, bool missing_key_is_error = false) const;
  // The same, each part as a JSON array in lines of its own.
  Result<std::string> print_json(const json::value& root, bool missing_key_is_error = false) const;

  const std::string& text() const { return text_; }  // as it was parsed: with braces

 private:
  JsonPath(std::string text, std::shared_ptr<const JsonPathNode> root) : text_(std::move(text)), root_(std::move(root)) {}

  std::string text_;
  std::shared_ptr<const JsonPathNode> root_;
};

// "{.metadata.name}" for what parse_relaxed() takes; "" for "". Errors: invalid.
Result<std::string> relaxed_jsonpath(std::string_view expression);

// A value as text: strings without quotes, objects and lists as JSON, nothing for null.
std::string jsonpath_text(const json::value& value);

}  // namespace coracle::ctl
