// SPDX-License-Identifier: Apache-2.0
// JSON without exceptions: Boost.JSON throws, this project does not. Parsing has named limits. Accessors are total: an absent
// value, or one of another type, reads as empty. Values are boost::json's and keep the order of keys, so text → value → text is
// stable.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace coracle {

namespace json = boost::json;

constexpr size_t kJsonDepthMax = 100;      // nesting depth; deeper input is an error
constexpr size_t kDuplicateKeysMax = 100;  // per text; further duplicates are not reported
constexpr size_t kJsonParserStack = 4096;  // bytes that a parser takes of its caller's stack: enough for most texts
constexpr size_t kPathBytesMax = 512;      // of a path in a message: keys may be as long as the text that contains them

// The place of a key or item in a text: for each level from outside, how many different keys or items are before it. Of two
// places, the earlier one compares less.
using JsonPlace = std::vector<uint32_t>;

struct DuplicateKey {  // a key that its object has already
  std::string path;    // dotted: "spec.list[1].a"
  JsonPlace place;     // of the repetition
  bool operator==(const DuplicateKey&) const = default;
};

// Parses JSON text. A UTF-8 byte order mark at the beginning is skipped. For duplicate keys the last one wins; if `duplicates` is
// given, they are added to it, in the order of the text. Errors: bad_request, with the line and column of the syntax error.
Result<json::value> parse_json(std::string_view text, std::vector<DuplicateKey>* duplicates = nullptr,
                               json::storage_ptr storage = {});
// An arena for the value of `text`: allocated at once, freed with the last value in it. For a request's body: it is for a single
// thread and for values that do not grow for long. Copies of a value use the same arena.
json::storage_ptr arena_for(std::string_view text);
std::string to_text(const json::value& value);  // compact, one line
std::string to_text(const json::object& value);
std::string to_sorted_text(const json::value& value);             // the same, with members sorted by name, as Go writes maps
std::string to_pretty(const json::value& value, int indent = 4);  // as Go's MarshalIndent

// True if objects and arrays in `value` are nested more than `levels` deep. {} and [] are one level, 1 is none. Adds the number
// of visited values to `seen`. Stops at that depth, so it is safe for any value.
bool deeper_than(const json::value& value, size_t levels, size_t* seen = nullptr);

// Equality as == of Boost.JSON defines it: the order of members does not matter, and 1 differs from 1.0. Code that compares
// objects, or what may contain some, uses this: Boost's own (1.81, object::equal) copies each member before it compares it, at
// each level again, in the memory of the left side.
bool same_json(const json::value& left, const json::value& right);
bool same_json(const json::object& left, const json::object& right);
bool same_json(const json::array& left, const json::array& right);

// `text` without a leading UTF-8 byte order mark, which some editors write.
std::string_view without_byte_order_mark(std::string_view text);

// A path for a message, shortened to at most kPathBytesMax bytes.
std::string shortened_path(std::string path);

// Removes all members for which `gone` returns true in one pass; the others keep their order. (Boost's erase removes a single
// member and moves all that follow.)
template <typename F>
void erase_members_if(json::object& object, F&& gone) {
  json::object kept(object.storage());
  kept.reserve(object.size());
  for (auto& member : object)
    if (!gone(std::as_const(member))) kept.emplace(member.key(), std::move(member.value()));
  object = std::move(kept);
}

// The value at a dotted path ("spec.template.metadata"), or nullptr. Keys with dots: use find_keys.
const json::value* find(const json::value& root, std::string_view dotted);
const json::value* find(const json::object& root, std::string_view dotted);
const json::value* find_keys(const json::value& root, std::initializer_list<std::string_view> keys);
// As find, but creates the objects on the path (replacing null and any other non-object). Never null.
json::value& make(json::value& root, std::string_view dotted);
// The same for a value that is to be an object, or an array: one of another type is replaced by an empty one.
json::object& make_object(json::value& root, std::string_view dotted);
json::array& make_array(json::value& root, std::string_view dotted);

// Total accessors: "" / 0 / false / an empty container if the path is absent or the value has another type.
std::string_view get_string(const json::value& root, std::string_view dotted);
int64_t get_int(const json::value& root, std::string_view dotted, int64_t absent = 0);
bool get_bool(const json::value& root, std::string_view dotted, bool absent = false);
const json::object& get_object(const json::value& root, std::string_view dotted);
const json::array& get_array(const json::value& root, std::string_view dotted);
std::vector<std::string> get_strings(const json::value& root, std::string_view dotted);  // only the strings of an array
inline json::array array_of(const std::vector<std::string>& texts) { return json::array(texts.begin(), texts.end()); }

}  // namespace coracle
