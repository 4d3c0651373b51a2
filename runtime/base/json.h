// SPDX-License-Identifier: Apache-2.0
// The JSON wall: Boost.JSON throws, this house does not. Parsing with named limits, and total accessors: what is absent
// or of another type reads as empty. Values are boost::json's; key order is kept, so text → value → text is stable.
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

constexpr size_t kJsonDepthMax = 100;      // nesting; deeper input is refused
constexpr size_t kDuplicateKeysMax = 100;  // of one text; further ones are not named
constexpr size_t kPathBytesMax = 512;      // of a path in a message: keys may be as long as the text that has them

// A UTF-8 byte order mark at the beginning is skipped. Errors: bad_request, with line and column of what could not be read.
// Duplicate keys: the last one wins; their dotted paths are added to `duplicates` where the caller asks for them.
Result<json::value> parse_json(std::string_view text, std::vector<std::string>* duplicates = nullptr,
                               json::storage_ptr storage = {});
// Memory for the value of `text`, taken at once and freed with the last value in it, as a request's body is: for one thread, and
// for what does not grow for long. Copies of a value lie where it lies.
json::storage_ptr arena_for(std::string_view text);
std::string to_text(const json::value& value);  // compact, one line
std::string to_text(const json::object& value);
std::string to_sorted_text(const json::value& value);  // the same, members in the order of their names: as Go writes maps
std::string to_pretty(const json::value& value, int indent = 4);  // as Go's MarshalIndent

// Whether objects and lists in `value` are nested more than `levels` deep: {} and [] are one level, 1 is none. Adds to `seen` how
// many values it looked at. Never looks deeper than that: safe for any value.
bool deeper_than(const json::value& value, size_t levels, size_t* seen = nullptr);

// `text` without the UTF-8 byte order mark that some editors put before it.
std::string_view without_byte_order_mark(std::string_view text);

// At most kPathBytesMax bytes of a path, for a message.
std::string shortened_path(std::string path);

// Takes the members for which `gone` says so out of `object`, all in one go; the others keep their order. (Boost's erase takes
// one, and moves all that follow it.)
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
// As find, but makes the objects on the way (replacing null and what is no object). Never null.
json::value& make(json::value& root, std::string_view dotted);

// Total readers: "" / 0 / false / an empty container where the path is absent or of another type.
std::string_view get_string(const json::value& root, std::string_view dotted);
int64_t get_int(const json::value& root, std::string_view dotted, int64_t absent = 0);
bool get_bool(const json::value& root, std::string_view dotted, bool absent = false);
const json::object& get_object(const json::value& root, std::string_view dotted);
const json::array& get_array(const json::value& root, std::string_view dotted);
std::vector<std::string> get_strings(const json::value& root, std::string_view dotted);  // an array's, without other elements

}  // namespace coracle
