// SPDX-License-Identifier: Apache-2.0
// JSON parsing and access. This is where Boost.JSON's exceptions become errors. See json.h.
#include "runtime/base/json.h"

#include <algorithm>
#include <set>

#include "runtime/base/json_walk.h"
#include "runtime/base/text.h"

namespace coracle {
namespace {

json::parse_options options() {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  return options;
}

// Parses the text again to find duplicate keys in an object: Boost's parser keeps the last one silently.
struct DuplicateFinder : JsonWalker {
  struct Level {
    std::set<std::string, std::less<>> keys;
    std::string key;
    int64_t index = -1;   // of an array's element; -1 for an object
    uint32_t before = 0;  // of an object: different keys before `key`
  };
  std::vector<Level> levels;
  std::string partial;
  std::vector<DuplicateKey>* found = nullptr;

  std::string path() const {
    std::string out;
    for (const Level& level : levels) {
      if (level.index >= 0) out += "[" + std::to_string(level.index) + "]";
      else out += (out.empty() ? "" : ".") + level.key;
    }
    return out;
  }
  JsonPlace place() const {
    JsonPlace out;
    for (const Level& level : levels) out.push_back(level.index >= 0 ? uint32_t(level.index) : level.before);
    return out;
  }
  void next() {
    if (!levels.empty() && levels.back().index >= 0) ++levels.back().index;
  }
  bool on_object_begin(error_code&) { return levels.push_back({}), true; }
  bool on_object_end(size_t, error_code&) { return levels.pop_back(), next(), true; }
  bool on_array_begin(error_code&) { return levels.push_back({{}, {}, 0}), true; }
  bool on_array_end(size_t, error_code&) { return levels.pop_back(), next(), true; }
  bool on_key_part(json::string_view part, size_t, error_code&) { return partial.append(part), true; }
  bool on_key(json::string_view part, size_t, error_code&) {
    partial.append(part);
    Level& level = levels.back();
    level.key = partial;
    level.before = uint32_t(level.keys.size());
    bool repeated = !level.keys.insert(std::move(partial)).second;
    if (repeated && found->size() < kDuplicateKeysMax) found->push_back({shortened_path(path()), place()});
    partial.clear();
    return true;
  }
  bool on_string(json::string_view, size_t, error_code&) { return next(), true; }
  bool on_int64(int64_t, json::string_view, error_code&) { return next(), true; }
  bool on_uint64(uint64_t, json::string_view, error_code&) { return next(), true; }
  bool on_double(double, json::string_view, error_code&) { return next(), true; }
  bool on_bool(bool, error_code&) { return next(), true; }
  bool on_null(error_code&) { return next(), true; }
};

// Counts the keys of the text: more than the members of the value if there are duplicates.
struct KeyCounter : JsonWalker {
  size_t keys = 0;
  bool on_key(json::string_view, size_t, error_code&) { return ++keys, true; }
};

size_t keys_in(const json::value& value) {
  size_t count = 0;
  if (const auto* object = value.if_object()) {
    count = object->size();
    for (const auto& pair : *object) count += keys_in(pair.value());
  } else if (const auto* array = value.if_array()) {
    for (const auto& item : *array) count += keys_in(item);
  }
  return count;
}

std::string position(std::string_view text, size_t at) {
  size_t line = 1, column = 1;
  for (char c : text.substr(0, at)) {
    if (c == '\n') ++line, column = 1;
    else ++column;
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

const json::value* step(const json::value& at, std::string_view key) {
  const json::object* object = at.if_object();
  return object ? object->if_contains(key) : nullptr;
}

void pretty(const json::value& value, int indent, std::string& out, size_t depth) {
  auto newline = [&](size_t to) { out.append("\n").append(to * size_t(indent), ' '); };
  if (const auto* object = value.if_object(); object && !object->empty()) {
    out += '{';
    bool first = true;
    for (const auto& [key, child] : *object) {
      if (!std::exchange(first, false)) out += ',';
      newline(depth + 1);
      out.append(json::serialize(json::string(key))).append(": ");
      pretty(child, indent, out, depth + 1);
    }
    newline(depth);
    out += '}';
  } else if (const auto* array = value.if_array(); array && !array->empty()) {
    out += '[';
    bool first = true;
    for (const auto& child : *array) {
      if (!std::exchange(first, false)) out += ',';
      newline(depth + 1);
      pretty(child, indent, out, depth + 1);
    }
    newline(depth);
    out += ']';
  } else {
    out += json::serialize(value);
  }
}

void write_sorted(const json::value& value, std::string& out) {
  if (const json::array* items = value.if_array()) {
    out += '[';
    for (const json::value& item : *items) {
      if (&item != items->begin()) out += ',';
      write_sorted(item, out);
    }
    out += ']';
    return;
  }
  const json::object* object = value.if_object();
  if (!object) return void(out += json::serialize(value));
  std::vector<const json::key_value_pair*> members;
  for (const auto& member : *object) members.push_back(&member);
  std::sort(members.begin(), members.end(), [](auto* a, auto* b) { return a->key() < b->key(); });
  out += '{';
  for (const auto* member : members) {
    if (member != members.front()) out += ',';
    out.append(json::serialize(member->key())).append(":");
    write_sorted(member->value(), out);
  }
  out += '}';
}

}  // namespace

json::storage_ptr arena_for(std::string_view text) {
  return json::make_shared_resource<json::monotonic_resource>(std::max<size_t>(4096, 4 * text.size()));
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

std::string shortened_path(std::string path) { return shortened_text(std::move(path), kPathBytesMax); }

bool deeper_than(const json::value& value, size_t levels, size_t* seen) {
  if (seen) ++*seen;
  if (!value.is_structured()) return false;
  if (levels == 0) return true;
  if (const json::object* object = value.if_object())
    return std::any_of(object->begin(), object->end(),
                       [&](auto& member) { return deeper_than(member.value(), levels - 1, seen); });
  const json::array& items = value.get_array();
  return std::any_of(items.begin(), items.end(), [&](auto& item) { return deeper_than(item, levels - 1, seen); });
}

bool same_json(const json::object& left, const json::object& right) {
  if (left.size() != right.size()) return false;
  auto beside = right.begin();  // two states of an object mostly have their members in the same order
  for (const auto& member : left) {
    const json::value* other = beside->key() == member.key() ? &beside->value() : right.if_contains(member.key());
    if (!other || !same_json(member.value(), *other)) return false;
    ++beside;
  }
  return true;
}

bool same_json(const json::array& left, const json::array& right) {
  auto same = [](const json::value& one, const json::value& other) { return same_json(one, other); };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), same);
}

bool same_json(const json::value& left, const json::value& right) {
  if (const json::object* object = left.if_object()) return right.is_object() && same_json(*object, right.get_object());
  if (const json::array* array = left.if_array()) return right.is_array() && same_json(*array, right.get_array());
  return left == right;
}

Result<json::value> parse_json(std::string_view text, std::vector<DuplicateKey>* duplicates, json::storage_ptr storage) {
  text = without_byte_order_mark(text);
  alignas(json::value) unsigned char stack[kJsonParserStack];
  json::stream_parser parser({}, options(), stack);
  parser.reset(std::move(storage));
  json::error_code failed;
  size_t read = 0;
  try {  // the library reports allocation limits by exceptions
    read = parser.write_some(text, failed);
    if (!failed && read < text.size()) failed = json::error::extra_data;
    if (!failed) parser.finish(failed);
  } catch (const std::exception& thrown) {
    return Error(Code::bad_request, std::string("invalid JSON: ") + thrown.what());
  }
  if (failed) {
    std::string what = failed == json::error::too_deep ? "nested too deeply" : failed.message();
    return Error(Code::bad_request, "invalid JSON: " + position(text, read) + ": " + what);
  }
  json::value value = parser.release();
  if (KeyCounter counter; duplicates && walk_json(text, counter) && counter.keys > keys_in(value)) {
    DuplicateFinder finder;
    finder.found = duplicates;
    walk_json(text, finder);
  }
  return value;
}

std::string to_text(const json::value& value) { return json::serialize(value); }
std::string to_text(const json::object& value) { return json::serialize(value); }

std::string to_sorted_text(const json::value& value) {
  std::string out;
  write_sorted(value, out);
  return out;
}

std::string to_pretty(const json::value& value, int indent) {
  std::string out;
  pretty(value, indent, out, 0);
  return out;
}

const json::value* find(const json::value& root, std::string_view dotted) {
  const json::value* at = &root;
  while (at && !dotted.empty()) {
    size_t dot = dotted.find('.');
    at = step(*at, dotted.substr(0, dot));
    dotted.remove_prefix(dot == dotted.npos ? dotted.size() : dot + 1);
  }
  return at;
}

const json::value* find(const json::object& root, std::string_view dotted) {
  size_t dot = dotted.find('.');
  const json::value* first = root.if_contains(dotted.substr(0, dot));
  return first && dot != dotted.npos ? find(*first, dotted.substr(dot + 1)) : first;
}

const json::value* find_keys(const json::value& root, std::initializer_list<std::string_view> keys) {
  const json::value* at = &root;
  for (std::string_view key : keys) {
    at = step(*at, key);
    if (!at) return nullptr;
  }
  return at;
}

json::value& make(json::value& root, std::string_view dotted) {
  json::value* at = &root;
  while (!dotted.empty()) {
    size_t dot = dotted.find('.');
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[dotted.substr(0, dot)];
    dotted.remove_prefix(dot == dotted.npos ? dotted.size() : dot + 1);
  }
  return *at;
}

json::object& make_object(json::value& root, std::string_view dotted) {
  json::value& value = make(root, dotted);
  return value.is_object() ? value.get_object() : value.emplace_object();
}

json::array& make_array(json::value& root, std::string_view dotted) {
  json::value& value = make(root, dotted);
  return value.is_array() ? value.get_array() : value.emplace_array();
}

std::string_view get_string(const json::value& root, std::string_view dotted) {
  const json::value* found = find(root, dotted);
  const json::string* text = found ? found->if_string() : nullptr;
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

int64_t get_int(const json::value& root, std::string_view dotted, int64_t absent) {
  const json::value* found = find(root, dotted);
  if (!found) return absent;
  if (const int64_t* number = found->if_int64()) return *number;
  if (const uint64_t* number = found->if_uint64()) return int64_t(*number);
  return absent;
}

bool get_bool(const json::value& root, std::string_view dotted, bool absent) {
  const json::value* found = find(root, dotted);
  const bool* flag = found ? found->if_bool() : nullptr;
  return flag ? *flag : absent;
}

const json::object& get_object(const json::value& root, std::string_view dotted) {
  static const json::object empty;
  const json::value* found = find(root, dotted);
  const json::object* object = found ? found->if_object() : nullptr;
  return object ? *object : empty;
}

const json::array& get_array(const json::value& root, std::string_view dotted) {
  static const json::array empty;
  const json::value* found = find(root, dotted);
  const json::array* array = found ? found->if_array() : nullptr;
  return array ? *array : empty;
}

std::vector<std::string> get_strings(const json::value& root, std::string_view dotted) {
  std::vector<std::string> out;
  for (const json::value& element : get_array(root, dotted))
    if (const json::string* text = element.if_string()) out.emplace_back(*text);
  return out;
}

}  // namespace coracle
