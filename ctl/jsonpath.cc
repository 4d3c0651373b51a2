// SPDX-License-Identifier: Apache-2.0
// Evaluates JSONPath templates. See jsonpath.h.
#include "ctl/jsonpath.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "ctl/go_format.h"
#include "ctl/go_json.h"
#include "ctl/jsonpath_nodes.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

using PathNode = JsonPathNode;
using PathKind = JsonPathNode::Kind;
using ValueKind = GoValue::Kind;
using GoValues = std::vector<GoValue>;

// What a step selects. With an error there may be values, too: a filter without an operator looks at them and not at the error.
struct PathFound {
  GoValues values;
  std::optional<Error> error;
};

PathFound path_failure(GoValues values, std::string text) { return {std::move(values), path_error(std::move(text))}; }

Error too_long() { return Error(Code::too_large, "the output is longer than " + std::to_string(kJsonPathBytesMax) + " bytes"); }

// ---- comparisons ----

Result<bool> equal_in_path(const GoValue& a, const GoValue& b) {
  if (!a.is_basic() || !b.is_basic()) return path_error("invalid type for comparison");
  if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
  if (a.kind() != b.kind()) return path_error("incompatible types for comparison");
  if (a.is_text()) return a.text() == b.text();
  return a.kind() == ValueKind::real ? a.real() == b.real() : a.boolean() == b.boolean();
}

Result<bool> less_in_path(const GoValue& a, const GoValue& b) {
  bool same = TRY(equal_in_path(a, b));
  if (a.kind() == ValueKind::boolean) return path_error("invalid type for comparison");
  if (same) return false;
  if (a.is_text()) return a.text() < b.text();
  return a.kind() == ValueKind::real ? a.real() < b.real() : a.integer() < b.integer();
}

Result<bool> compare_in_path(const std::string& operation, const GoValue& a, const GoValue& b) {
  if (operation == "==" || operation == "!=") {
    bool same = TRY(equal_in_path(a, b));
    return same == (operation == "==");
  }
  if (operation != "<" && operation != ">" && operation != "<=" && operation != ">=")
    return path_error("unrecognized filter operator " + operation);
  bool less = TRY(less_in_path(a, b));
  if (operation == "<" || operation == ">=") return less == (operation == "<");
  bool same = TRY(equal_in_path(a, b));
  return (less || same) == (operation == "<=");
}

// ---- evaluation ----

class JsonPathRun {
 public:
  JsonPathRun(const PathNode& root, bool missing_key_is_error) : root_(root), missing_key_is_error_(missing_key_is_error) {}

  // Evaluates the template's nodes from `begin` for one value, to the end or, in a range, to its {end}.
  Result<std::vector<GoValues>> find(size_t begin, const GoValue& value, int nesting = 0);

 private:
  PathFound walk(const GoValues& input, const PathNode& node);
  PathFound walk_list(const GoValues& input, const PathNode& node);
  PathFound walk_field(const GoValues& input, const PathNode& node);
  PathFound walk_array(const GoValues& input, const PathNode& node);
  PathFound walk_filter(const GoValues& input, const PathNode& node);
  PathFound walk_union(const GoValues& input, const PathNode& node);
  PathFound walk_identifier(const GoValues& input, const PathNode& node);
  Result<bool> passes(const GoValue& element, const PathNode& node);
  GoValues children_of(const GoValue& value);
  void descend(const GoValues& input, GoValues& out);
  bool exhausted(size_t more) { return (selected_ += more) > kJsonPathValuesMax; }

  const PathNode& root_;
  bool missing_key_is_error_;
  size_t selected_ = 0;
  int begun_ranges_ = 0, ranges_ = 0, ended_ranges_ = 0;  // begun or ended: by the node that was evaluated last
  size_t last_end_ = 0;                                   // the node that ended a range last; no node is the first and ends one
};

Result<std::vector<GoValues>> JsonPathRun::find(size_t begin, const GoValue& value, int nesting) {
  if (nesting > kJsonPathNestingMax) return path_error("nested too deeply");
  std::vector<GoValues> all;
  for (size_t i = begin; i < root_.children.size(); ++i) {
    PathFound found = walk({value}, root_.children[i]);
    if (found.error) return std::move(*found.error);
    if (exhausted(found.values.size() + 1))
      return Error(Code::too_large, "more than " + std::to_string(kJsonPathValuesMax) + " values");
    if (ended_ranges_ > 0 && ended_ranges_ <= ranges_) {
      --ended_ranges_;
      last_end_ = i;
      break;
    }
    if (begun_ranges_ == 0) {
      all.push_back(std::move(found.values));
      continue;
    }
    --begun_ranges_, ++ranges_;
    bool nothing = found.values.empty();
    if (nothing) found.values.emplace_back();  // once, to find the end
    for (const auto& one : found.values) {
      std::vector<GoValues> more = TRY(find(i + 1, one.unboxed(), nesting + 1));
      if (!nothing) std::move(more.begin(), more.end(), std::back_inserter(all));
    }
    --ranges_;
    if (last_end_ > i) i = last_end_;
  }
  return all;
}

PathFound JsonPathRun::walk(const GoValues& input, const PathNode& node) {
  auto for_each = [&](const GoValue& value) { return PathFound{GoValues(input.size(), value), {}}; };
  switch (node.kind) {
    case PathKind::list: return walk_list(input, node);
    case PathKind::text: return {{GoValue::of_name(node.text)}, {}};
    case PathKind::identifier: return walk_identifier(input, node);
    case PathKind::field: return walk_field(input, node);
    case PathKind::array: return walk_array(input, node);
    case PathKind::filter: return walk_filter(input, node);
    case PathKind::union_: return walk_union(input, node);
    case PathKind::integer: return for_each(GoValue::of_int(node.integer));
    case PathKind::real: return for_each(GoValue::of_real(node.real));
    case PathKind::boolean: return for_each(GoValue::of_bool(node.flag));
    case PathKind::wildcard: {
      PathFound out;
      for (const auto& value : input)
        for (auto& child : children_of(value)) out.values.push_back(std::move(child));
      return out;
    }
    case PathKind::recursive: {
      PathFound out;
      descend(input, out.values);
      return out;
    }
  }
  return {};
}

PathFound JsonPathRun::walk_list(const GoValues& input, const PathNode& node) {
  PathFound found{input, {}};
  for (const auto& child : node.children) {
    found = walk(found.values, child);
    if (!found.error && exhausted(found.values.size()))
      found.error = Error(Code::too_large, "more than " + std::to_string(kJsonPathValuesMax) + " values");
    if (found.error) break;
  }
  return found;
}

PathFound JsonPathRun::walk_identifier(const GoValues& input, const PathNode& node) {
  if (node.text == "range") return ++begun_ranges_, PathFound{input, {}};
  if (node.text != "end") return path_failure(input, "unrecognized identifier " + node.text);
  if (ranges_ == 0) return path_failure({}, "not in range, nothing to end");
  return ++ended_ranges_, PathFound{};
}

PathFound JsonPathRun::walk_field(const GoValues& input, const PathNode& node) {
  PathFound out;
  for (const auto& value : input)
    if (const json::value* member = value.kind() == ValueKind::map ? value.member(node.text) : nullptr)
      out.values.push_back(GoValue::of_json(*member, true));
  if (!input.empty() && out.values.empty() && missing_key_is_error_) out.error = path_error(node.text + " is not found");
  return out;
}

PathFound JsonPathRun::walk_array(const GoValues& input, const PathNode& node) {
  PathFound out;
  for (const auto& value : input) {
    if (value.is_nothing()) continue;
    if (value.kind() != ValueKind::list) return path_failure(input, value.concrete_type() + " is not array or slice");
    auto length = int64_t(value.length());
    const auto& [first, second, third] = node.bounds;
    int64_t from = first.known ? first.value : 0, to = second.known ? second.value : length;
    if (from < 0) from = wrapping_sum(from, length);
    if (to < 0 || (to == 0 && second.derived)) to = wrapping_sum(to, length);
    if (from == to) return out;
    auto outside = [&](int64_t index) {
      return path_failure(input,
                          "array index out of bounds: index " + std::to_string(index) + ", length " + std::to_string(length));
    };
    if (from >= length || from < 0) return outside(from);
    if (to > length || to < 0) return outside(wrapping_sum(to, -1));
    if (from > to)
      return path_failure(input,
                          "starting index " + std::to_string(from) + " is greater than ending index " + std::to_string(to));
    if (third.known && third.value <= 0) return path_failure(input, "step must be > 0");
    int64_t step = third.known ? third.value : 1;
    for (int64_t i = from; i < to; i = step < to - i ? i + step : to) out.values.push_back(value.at(size_t(i)));
  }
  return out;
}

PathFound JsonPathRun::walk_union(const GoValues& input, const PathNode& node) {
  PathFound out;
  for (const auto& child : node.children) {
    PathFound found = walk_list(input, child);
    if (found.error) return {input, std::move(found.error)};
    std::move(found.values.begin(), found.values.end(), std::back_inserter(out.values));
  }
  return out;
}

Result<bool> JsonPathRun::passes(const GoValue& element, const PathNode& node) {
  PathFound left = walk_list({element}, node.children[0]);
  if (node.text == "exists") return !left.values.empty();
  if (left.error) return std::move(*left.error);
  if (left.values.empty()) return false;
  if (left.values.size() > 1) return path_error("can only compare one element at a time");
  PathFound right = walk_list({element}, node.children[1]);
  if (right.error) return std::move(*right.error);
  if (right.values.empty()) return false;
  if (right.values.size() > 1) return path_error("can only compare one element at a time");
  return compare_in_path(node.text, left.values.front(), right.values.front());
}

PathFound JsonPathRun::walk_filter(const GoValues& input, const PathNode& node) {
  PathFound out;
  for (const auto& value : input) {
    if (value.kind() != ValueKind::list)
      return path_failure(input, go_text(value.unboxed()) + " is not array or slice and cannot be filtered");
    for (size_t i = 0; i < value.length(); ++i) {
      auto passed = passes(value.at(i), node);
      if (!passed) return {input, passed.take_error()};
      if (*passed) out.values.push_back(value.at(i));
    }
  }
  return out;
}

GoValues JsonPathRun::children_of(const GoValue& value) {
  GoValues out;
  if (value.has_elements()) {
    for (size_t i = 0; i < value.length(); ++i) out.push_back(value.at(i));
  } else {
    for (const auto& [name, member] : value.members()) out.push_back(GoValue::of_json(*member, true));
  }
  return out;
}

void JsonPathRun::descend(const GoValues& input, GoValues& out) {
  for (const auto& value : input) {
    if (exhausted(1)) return;
    if (value.length() == 0) continue;
    out.push_back(value);
    if (!value.is_text()) descend(children_of(value), out);
  }
}

}  // namespace

Result<std::string> relaxed_jsonpath(std::string_view expression) {
  if (expression.empty()) return std::string();
  std::string_view path = expression;
  if (path.size() > 2 && path.starts_with('{') && path.ends_with('}')) path = path.substr(1, path.size() - 2);
  if (path.find_first_of("{}") != path.npos)
    return path_error(
        "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'");
  if (path.size() > 1 && path.starts_with('.')) path.remove_prefix(1);
  return "{." + std::string(path) + "}";
}

Result<JsonPath> JsonPath::parse(std::string_view text) {
  JsonPathNode root = TRY(parse_jsonpath(text));
  return JsonPath(std::string(text), std::make_shared<const JsonPathNode>(std::move(root)));
}

Result<JsonPath> JsonPath::parse_relaxed(std::string_view expression) {
  std::string text = TRY(relaxed_jsonpath(expression));
  return parse(text);
}

Result<std::vector<std::vector<GoValue>>> JsonPath::find(const json::value& root, bool missing_key_is_error) const {
  return JsonPathRun(*root_, missing_key_is_error).find(0, GoValue::of_json(root, false));
}

Result<std::vector<GoValue>> JsonPath::select(const json::value& root) const {
  std::vector<std::vector<GoValue>> parts = TRY(find(root));
  std::vector<GoValue> all;
  for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(all));
  return all;
}

Result<std::string> JsonPath::print(const json::value& root, bool missing_key_is_error) const {
  std::vector<std::vector<GoValue>> parts = TRY(find(root, missing_key_is_error));
  std::string out;
  for (const auto& part : parts) {
    for (size_t i = 0; i < part.size(); ++i) {
      const GoValue& value = part[i];
      if (i > 0) out += ' ';
      if (value.is_text()) out += value.text();
      else if (value.kind() == ValueKind::list || value.kind() == ValueKind::map) out += go_json(value);
      else if (value.is_nothing()) out += value.boxed() ? "null" : "<no value>";
      else out += go_text(value.unboxed());
      if (out.size() > kJsonPathBytesMax) return too_long();
    }
  }
  return out;
}

Result<std::string> JsonPath::print_json(const json::value& root, bool missing_key_is_error) const {
  std::vector<std::vector<GoValue>> parts = TRY(find(root, missing_key_is_error));
  std::string out;
  for (const auto& part : parts) {
    out += go_pretty_json(part) + "\n";
    if (out.size() > kJsonPathBytesMax) return too_long();
  }
  return out;
}

std::string jsonpath_text(const json::value& value) {
  if (const auto* text = value.if_string()) return std::string(*text);
  return value.is_null() ? std::string() : to_text(value);
}

}  // namespace coracle::ctl
