// SPDX-License-Identifier: Apache-2.0
// See decode.h. One walk over value and type together; values are changed in place where possible.
#include "store/schema/decode.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory_resource>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/schema/path.h"

namespace coracle::schema {
namespace {

// True if error messages must not contain values of the type. Kubernetes prints "<secret contents redacted>".
bool is_secret(const Type& type) {
  return type.package().group().empty() && (type.name() == "Secret" || type.name() == "SecretList");
}

std::string described(const json::value& value, const Path& path) {
  if (value.is_null()) return "null";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (path.is_secret()) return value.is_string() ? "a string" : value.is_bool() ? "a boolean" : "a number";
  if (const json::string* text = value.if_string()) return "the string " + quoted(std::string_view(*text).substr(0, 60));
  return (value.is_bool() ? "the boolean " : "the number ") + to_text(value);
}

Error mismatch(const Path& path, std::string_view expected, const json::value& value) {
  std::string where = shortened_path(path.text());
  std::string text =
      (where.empty() ? "the body" : where) + ": expected " + std::string(expected) + ", found " + described(value, path);
  if (expected == "a string" && !value.is_structured()) text += " (put it in quotes)";
  return Error(Code::bad_request, std::move(text));
}

Error malformed_value(const Path& path, std::string_view what) {
  return Error(Code::bad_request, shortened_path(path.text()) + ": " + std::string(what));
}

// Go's output for a field that was never set and has no omitempty.
json::value zero(const Field& field, json::storage_ptr storage);

json::value zero_object(const Type& type, json::storage_ptr storage) {
  json::object out(storage);
  for (const Field& field : type.fields()) {
    if (field.always) out.emplace(field.name(), zero(field, storage));
  }
  return out;
}

json::value zero(const Field& field, json::storage_ptr storage) {
  if (field.pointer || field.shape != Shape::one) return json::value(nullptr, storage);
  switch (field.form) {
    case Form::string: return json::value("", storage);
    case Form::int32:
    case Form::int64:
    case Form::number:
    case Form::int_or_string: return json::value(int64_t(0), storage);
    case Form::boolean: return json::value(false, storage);
    case Form::quantity: return json::value("0", storage);
    case Form::duration: return json::value("0s", storage);
    case Form::object: return zero_object(field.type(), storage);
    default: return json::value(nullptr, storage);
  }
}

bool is_zero(const json::value& value) {
  if (const json::string* text = value.if_string()) return text->empty();
  if (const bool* flag = value.if_bool()) return !*flag;
  if (const json::array* list = value.if_array()) return list->empty();
  if (const json::object* object = value.if_object()) return object->empty();
  if (const double* number = value.if_double()) return *number == 0;
  if (const int64_t* number = value.if_int64()) return *number == 0;
  return value.is_null();
}

// Base64 as Go decodes it: line breaks are ignored.
Result<void> canonical_bytes(json::string& text, const Path& path) {
  if (std::any_of(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; })) {
    std::string joined;
    for (char c : text) {
      if (c != '\n' && c != '\r') joined += c;
    }
    text = joined;
  }
  auto bytes = base64_decode(text);
  if (!bytes) return malformed_value(path, bytes.error().text());
  text = base64_encode(*bytes);
  return {};
}

// Of a valid time: whether it is written as format_time() or format_micro_time() writes it. Those normalise a leap second.
bool is_canonical_time(std::string_view text, bool micro) {
  constexpr size_t kSize = std::string_view("2006-01-02T15:04:05Z").size(), kFraction = std::string_view(".000000").size();
  return text.size() == kSize + (micro ? kFraction : 0) && text[10] == 'T' && text.ends_with('Z') && text.substr(17, 2) != "60" &&
         (!micro || text[kSize - 1] == '.');
}

Result<void> canonical_time(json::value& value, bool micro, const Path& path) {
  json::string& text = value.get_string();
  auto time = parse_calendar_time(text);
  if (!time) {
    std::string found = path.is_secret() ? "a string" : quoted(std::string_view(text).substr(0, 60));
    return malformed_value(path, "expected a time like 2006-01-02T15:04:05Z, found " + found);
  }
  if (!micro) time->nanos = 0;
  if (is_go_zero_time(*time)) value.emplace_null();  // Go clients may send it for "unset"
  else if (!is_canonical_time(text, micro)) text = micro ? format_micro_time(*time) : format_time(*time);
  return {};
}

Result<void> check_integer(const json::value& value, bool narrow, const Path& path) {
  const int64_t* number = value.if_int64();
  std::string_view expected = narrow ? "an integer of 32 bits" : "an integer";
  if (!number) return mismatch(path, expected, value);
  bool fits = !narrow || (*number >= std::numeric_limits<int32_t>::min() && *number <= std::numeric_limits<int32_t>::max());
  if (!fits) return mismatch(path, expected, value);
  return {};
}

// The first bytes of a key as a number, in the order of keys.
uint64_t head_of(std::string_view key) {
  uint64_t head = 0;
  for (size_t i = 0; i < sizeof head; ++i) head = head << 8 | (i < key.size() ? uint8_t(key[i]) : 0);
  return head;
}

void sort_keys(json::object& map) {
  if (std::is_sorted(map.begin(), map.end(), [](auto& a, auto& b) { return a.key() < b.key(); })) return;
  std::vector<json::key_value_pair> pairs;
  struct Entry {  // a map may have very many keys, all over the memory: most comparisons need the heads only
    uint64_t head;
    json::key_value_pair* pair;
  };
  std::vector<Entry> order;
  pairs.reserve(map.size()), order.reserve(map.size());
  for (auto& pair : map) order.push_back({head_of(pair.key()), &pairs.emplace_back(std::move(pair))});
  std::sort(order.begin(), order.end(),
            [](const Entry& a, const Entry& b) { return a.head != b.head ? a.head < b.head : a.pair->key() < b.pair->key(); });
  map.clear();
  for (const Entry& entry : order) map.emplace(entry.pair->key(), std::move(entry.pair->value()));
}

struct UnknownField {
  std::string warning;
  JsonPlace place;
};

// Each method converts `value` to canonical form in place.
class Decoder {
 public:
  Decoder() { places_.reserve(kUsualPlaces); }

  Result<void> object(const Type& type, json::value& value, const Path& path) {
    if (type.either) return either(type, value, path);
    json::object* given = value.if_object();
    if (!given) return mismatch(path, "an object", value);
    if (++objects_ > kObjectsMax) return Error(Code::too_large, "the body holds too many objects");
    Members members(type, *given, places_);
    const size_t before = unknown_.size();
    if (members.in_place()) {
      TRY(in_place(type, *given, members, path));
      keep_first(before);
      return {};
    }
    json::object out(given->storage());
    out.reserve(given->size());
    for (size_t i = 0; i < type.fields().size(); ++i) {
      const Field& field = type.fields()[i];
      json::value* member = members.at(i);
      if (member && !member->is_null()) TRY(of_member(field, *member, *given, path));
      if (member && !member->is_null()) out.emplace(field.name(), std::move(*member));
      else if (field.always) out.emplace(field.name(), zero(field, given->storage()));
    }
    if (members.known() < given->size()) note_unknown(type, *given, path);
    keep_first(before);
    value = std::move(out);
    return {};
  }

  // The warnings in the order of the document, with their places.
  std::vector<UnknownField> unknown() {
    keep_first(0);
    for (UnknownField& field : unknown_) std::ranges::reverse(field.place);
    std::ranges::stable_sort(unknown_, {}, &UnknownField::place);
    return std::move(unknown_);
  }

 private:
  static constexpr size_t kUsualPlaces = 256;  // as many fields as a pod has on the way to a container's
  using Places = std::pmr::vector<json::value*>;
  size_t objects_ = 0;
  std::vector<UnknownField> unknown_;  // with the innermost step of the place first
  bool notes_unknown_ = true;          // false: within a list or map that has enough of them before
  std::array<std::byte, kUsualPlaces * sizeof(json::value*) + alignof(json::value*)> block_;  // the first memory of the places
  std::pmr::monotonic_buffer_resource memory_{block_.data(), block_.size()};
  Places places_{&memory_};  // for all objects on the stack, the innermost last

  // The members of one object by the indexes of their fields.
  class Members {
   public:
    Members(const Type& type, json::object& given, Places& places) : places_(places), begin_(places.size()) {
      places_.resize(begin_ + type.field_count, nullptr);
      const Field* last = nullptr;
      for (auto& pair : given) {
        const Field* field = type.field_after(last, pair.key());
        in_place_ = in_place_ && field && (!last || field > last);
        if (!field) continue;
        places_[begin_ + size_t(field - type.fields().data())] = &pair.value();
        known_++;
        last = field;
      }
      for (size_t i = 0; in_place_ && i < type.field_count; ++i) in_place_ = at(i) || !type.fields()[i].always;
    }
    ~Members() { places_.resize(begin_); }
    Members(const Members&) = delete;

    json::value* at(size_t field) const { return places_[begin_ + field]; }  // nullptr: absent
    size_t known() const { return known_; }
    bool in_place() const { return in_place_; }  // nothing must be added, removed or moved

   private:
    Places& places_;
    size_t begin_, known_ = 0;
    bool in_place_ = true;
  };

  // For bodies that were canonical before: the output of admission and strategies is decoded again.
  Result<void> in_place(const Type& type, json::object& object, const Members& members, const Path& path) {
    std::vector<std::string_view> gone;
    for (size_t i = 0; i < type.fields().size(); ++i) {
      const Field& field = type.fields()[i];
      json::value* member = members.at(i);
      if (!member) continue;
      if (!member->is_null()) TRY(of_member(field, *member, object, path));
      if (!member->is_null()) continue;
      if (field.always) *member = zero(field, object.storage());
      else gone.push_back(field.name());
    }
    for (std::string_view name : gone) object.stable_erase(object.find(name));
    return {};
  }

  void note_unknown(const Type& type, const json::object& given, const Path& path) {
    const size_t before = unknown_.size();
    uint32_t at = 0;
    for (const auto& pair : given) {
      uint32_t position = at++;
      if (!notes_unknown_ || unknown_.size() - before >= kFieldWarningsMax) return;
      if (type.field(pair.key())) continue;
      unknown_.push_back({"unknown field " + coracle::quoted(shortened_path(Path(path, pair.key()).text())), {position}});
    }
  }

  // Of the unknown fields of one object, whose places end with a step in it, only the first ones of the document are told: the
  // schema's order, in which they are found, is another one.
  void keep_first(size_t before) {
    if (unknown_.size() - before <= kFieldWarningsMax) return;
    auto first = unknown_.begin() + ptrdiff_t(before);
    std::stable_sort(first, unknown_.end(), [](const UnknownField& a, const UnknownField& b) {
      return std::ranges::lexicographical_compare(a.place.rbegin(), a.place.rend(), b.place.rbegin(), b.place.rend());
    });
    unknown_.resize(before + kFieldWarningsMax);
  }

  // Adds a step to the places of the unknown fields that were found since there were `before` of them.
  void add_step(size_t before, uint32_t position) {
    for (size_t i = before; i < unknown_.size(); ++i) unknown_[i].place.push_back(position);
  }

  static uint32_t position_of(const json::value& member, const json::object& object) {
    auto at = std::ranges::find_if(object, [&](const auto& pair) { return &pair.value() == &member; });
    return uint32_t(at - object.begin());
  }

  Result<void> of_member(const Field& field, json::value& member, const json::object& object, const Path& path) {
    size_t before = unknown_.size();
    TRY(of_field(field, member, Path(path, field.name())));
    if (unknown_.size() > before) add_step(before, position_of(member, object));
    return {};
  }

  Result<void> either(const Type& type, json::value& value, const Path& path) {
    const Field* field = type.alternative(value);
    if (!field) return mismatch(path, "one of the forms of a " + std::string(type.name()), value);
    if (++objects_ > kObjectsMax) return Error(Code::too_large, "the body holds too many objects");
    return shaped(*field, value, path);
  }

  // A null result is not written.
  Result<void> of_field(const Field& field, json::value& value, const Path& path) {
    TRY(shaped(field, value, path));
    if (!field.always && !field.pointer && is_zero(value)) value.emplace_null();
    return {};
  }

  Result<void> shaped(const Field& field, json::value& value, const Path& path) {
    if (field.shape == Shape::list) return list(field, value, path);
    if (field.shape == Shape::map) return map(field, value, path);
    return one(field, value, path);
  }

  Result<void> list(const Field& field, json::value& value, const Path& path) {
    json::array* items = value.if_array();
    if (!items) return mismatch(path, "a list", value);
    const size_t first = unknown_.size();
    const bool notes_unknown = notes_unknown_;
    for (size_t i = 0; i < items->size(); ++i) {
      size_t before = unknown_.size();
      notes_unknown_ = notes_unknown && before - first < kFieldWarningsMax;
      TRY(one(field, (*items)[i], Path(path, i)));
      add_step(before, uint32_t(i));
    }
    notes_unknown_ = notes_unknown;
    return {};
  }

  Result<void> map(const Field& field, json::value& value, const Path& path) {
    json::object* entries = value.if_object();
    if (!entries) return mismatch(path, "an object", value);
    const size_t first = unknown_.size();
    const bool notes_unknown = notes_unknown_;
    for (auto& pair : *entries) {
      json::value& entry = pair.value();
      if (entry.is_null() && field.form == Form::time) continue;  // a zero time is null, as in a field that is always written
      size_t before = unknown_.size();
      notes_unknown_ = notes_unknown && before - first < kFieldWarningsMax;
      TRY(one(field, entry, Path::key(path, pair.key())));
      if (unknown_.size() > before) add_step(before, position_of(entry, *entries));
    }
    notes_unknown_ = notes_unknown;
    sort_keys(*entries);
    return {};
  }

  // A null here is an item of a list or map: Go decodes it as the zero value.
  Result<void> one(const Field& field, json::value& value, const Path& path) {
    if (value.is_null() && field.form != Form::any) value = zero_item(field, value.storage());
    // A body from C++ code may contain what the parser never creates: a small number stored as unsigned.
    if (const uint64_t* number = value.if_uint64(); number && *number <= uint64_t(INT64_MAX)) value = int64_t(*number);
    switch (field.form) {
      case Form::string:
        if (!value.is_string()) return mismatch(path, "a string", value);
        return {};
      case Form::int32: return check_integer(value, true, path);
      case Form::int64: return check_integer(value, false, path);
      case Form::boolean:
        if (!value.is_bool()) return mismatch(path, "true or false", value);
        return {};
      case Form::number: return number(value, path);
      case Form::bytes:
        if (!value.is_string()) return mismatch(path, "base64 text", value);
        return canonical_bytes(value.get_string(), path);
      case Form::time:
      case Form::micro_time:
        if (!value.is_string()) return mismatch(path, "a time", value);
        return canonical_time(value, field.form == Form::micro_time, path);
      case Form::duration: return duration(value, path);
      case Form::quantity: return quantity(value, path);
      case Form::int_or_string:
        if (value.is_string()) return {};
        if (!value.is_int64()) return mismatch(path, "an integer or a string", value);
        return check_integer(value, true, path);
      case Form::any: return {};
      case Form::fields:
        if (!value.is_object()) return mismatch(path, "an object", value);
        return {};
      case Form::strings: return strings(value, path);
      case Form::object: return object(field.type(), value, path);
    }
    return {};
  }

  static json::value zero_item(const Field& field, json::storage_ptr storage) {
    if (field.form == Form::object) return json::value(json::object_kind, storage);
    if (field.form == Form::strings) return json::value(json::array_kind, storage);
    if (field.form == Form::bytes) return json::value("", storage);
    Field single = field;
    single.shape = Shape::one;
    single.pointer = false;
    return zero(single, storage);
  }

  // A whole number is written without a fraction, whatever its input form.
  static Result<void> number(json::value& value, const Path& path) {
    constexpr double kExact = 9007199254740992;  // 2^53: above it a double cannot represent all integers
    if (!value.is_number()) return mismatch(path, "a number", value);
    const double* real = value.if_double();
    if (real && *real >= -kExact && *real <= kExact && double(int64_t(*real)) == *real) value = int64_t(*real);
    return {};
  }

  static Result<void> quantity(json::value& value, const Path& path) {
    if (!value.is_string() && !value.is_number()) return mismatch(path, "a quantity", value);
    auto quantity = Quantity::from_json(value);
    if (!quantity) return malformed_value(path, quantity.error().text());
    std::string text = quantity->text();
    if (!value.is_string() || std::string_view(value.get_string()) != text) value = text;
    return {};
  }

  static Result<void> duration(json::value& value, const Path& path) {
    if (!value.is_string()) return mismatch(path, "a duration", value);
    auto span = parse_duration(value.get_string());
    if (!span) return malformed_value(path, span.error().text());
    value = format_duration(*span);
    return {};
  }

  static Result<void> strings(const json::value& value, const Path& path) {
    const json::array* items = value.if_array();
    if (!items) return mismatch(path, "a list", value);
    for (size_t i = 0; i < items->size(); ++i) {
      if (!(*items)[i].is_string()) return mismatch(Path(path, i), "a string", (*items)[i]);
    }
    return {};
  }
};

std::string cannot_be_handled(const Type& type) {
  std::string name(type.name());
  return name + " in version " + quoted(split_api_version(type.api_version()).version) + " cannot be handled as a " + name;
}

}  // namespace

Result<Decoded> decode(const Type& type, json::value value) {
  Decoder decoder;
  if (json::object* given = value.if_object(); given && type.root) {
    for (auto [name, text] : {std::pair{"apiVersion", type.api_version()}, std::pair{"kind", type.name()}}) {
      json::value& at = (*given)[name];
      if (is_zero(at)) at = text;
    }
  }
  auto decoded = decoder.object(type, value, is_secret(type) ? Path::of_secret() : Path());
  if (!decoded) return decoded.take_error().wrap(cannot_be_handled(type));
  Decoded out{std::move(value), {}, {}};
  for (UnknownField& field : decoder.unknown()) {
    out.warnings.push_back(std::move(field.warning));
    out.places.push_back(std::move(field.place));
  }
  return out;
}

std::string duplicate_warning(std::string_view path) { return "duplicate field " + quoted(path); }

bool is_of_unknown(std::string_view duplicate, const std::vector<std::string>& unknown) {
  constexpr std::string_view kDuplicate = "duplicate", kUnknown = "unknown";
  if (!duplicate.starts_with(kDuplicate)) return false;
  duplicate.remove_prefix(kDuplicate.size());
  return std::ranges::any_of(unknown, [&](std::string_view warning) {
    warning.remove_prefix(kUnknown.size()), warning.remove_suffix(1);  // without the closing quote
    return duplicate.size() > warning.size() && duplicate.starts_with(warning) &&
           std::string_view("\".[").find(duplicate[warning.size()]) != std::string_view::npos;
  });
}

Error strict_error(const Type& type, const std::vector<std::string>& found) {
  return Error(Code::bad_request, cannot_be_handled(type) + ": strict decoding error: " + join(found, ", "));
}

}  // namespace coracle::schema
