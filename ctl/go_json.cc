// SPDX-License-Identifier: Apache-2.0
// See go_json.h.
#include "ctl/go_json.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "ctl/go_format.h"
#include "ctl/go_text.h"

namespace coracle::ctl {
namespace {

constexpr size_t kIndent = 4;
constexpr double kInt64Limit = 9223372036854775808.0;  // 2^63

class JsonWriter {
 public:
  JsonWriter(JsonOrder order, bool lines) : order_(order), lines_(lines) {}

  void write(const json::value& value) {
    if (const auto* object = value.if_object()) write_object(*object);
    else if (const auto* array = value.if_array()) write_items(array->size(), [&](size_t i) { write((*array)[i]); });
    else if (const auto* text = value.if_string()) write_text({text->data(), text->size()});
    else if (value.is_number()) out_ += go_json_number(value);
    else out_ += value.is_null() ? "null" : value.get_bool() ? "true" : "false";
  }
  void write(const GoValue& value) {
    switch (value.kind()) {
      case GoValue::Kind::list: return write_items(value.length(), [&](size_t i) { write(value.at(i)); });
      case GoValue::Kind::map: return write_members(value.members());
      case GoValue::Kind::text: return write_text(value.text());
      case GoValue::Kind::boolean: return void(out_ += value.boolean() ? "true" : "false");
      case GoValue::Kind::integer:
      case GoValue::Kind::octet: return void(out_ += std::to_string(value.integer()));
      case GoValue::Kind::real: return void(out_ += go_json_number(json::value(value.real())));
      default: return void(out_ += "null");
    }
  }
  void write(const std::vector<GoValue>& list) {
    write_items(list.size(), [&](size_t i) { write(list[i]); });
  }
  std::string take() { return std::move(out_); }

 private:
  using Members = std::vector<std::pair<std::string_view, const json::value*>>;

  void line() {
    if (lines_) out_.append("\n").append(depth_ * kIndent, ' ');
  }

  void write_object(const json::object& object) {
    Members members;
    for (const auto& member : object)
      members.emplace_back(std::string_view(member.key().data(), member.key().size()), &member.value());
    if (order_ == JsonOrder::sorted)
      std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    write_members(members);
  }

  void write_members(const Members& members) {
    if (members.empty()) return void(out_ += "{}");
    out_ += '{', ++depth_;
    for (const auto& member : members) {
      if (&member != &members.front()) out_ += ',';
      line();
      write_text(member.first);
      out_ += lines_ ? ": " : ":";
      write(*member.second);
    }
    --depth_, line();
    out_ += '}';
  }

  template <typename F>
  void write_items(size_t count, F&& write_item) {
    if (count == 0) return void(out_ += "[]");
    out_ += '[', ++depth_;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ',';
      line();
      write_item(i);
    }
    --depth_, line();
    out_ += ']';
  }

  void write_text(std::string_view text) {
    constexpr const char* kDigits = "0123456789abcdef";
    constexpr std::string_view kNamed = "\b\f\n\r\t\"\\", kNames = "bfnrt\"\\";
    out_ += '"';
    while (!text.empty()) {
      Rune rune = first_rune(text);
      if (size_t at = kNamed.find(text.front()); at != kNamed.npos) {
        (out_ += '\\') += kNames[at];
      } else if (rune.broken()) {
        out_ += "\\ufffd";
      } else if (rune.value == 0x2028 || rune.value == 0x2029) {
        out_ += rune.value == 0x2028 ? "\\u2028" : "\\u2029";
      } else if (rune.value < ' ' || rune.value == '<' || rune.value == '>' || rune.value == '&') {
        ((out_ += "\\u00") += kDigits[rune.value >> 4]) += kDigits[rune.value & 0xf];
      } else {
        out_ += text.substr(0, rune.width);
      }
      text.remove_prefix(rune.width);
    }
    out_ += '"';
  }

  JsonOrder order_;
  bool lines_;
  size_t depth_ = 0;
  std::string out_;
};

template <typename T>
std::string written(const T& value, JsonOrder order, bool lines) {
  JsonWriter writer(order, lines);
  writer.write(value);
  return writer.take();
}

}  // namespace

std::string go_json_number(const json::value& number) {
  if (const auto* whole = number.if_int64()) return std::to_string(*whole);
  const auto* large = number.if_uint64();
  if (large && *large <= uint64_t(INT64_MAX)) return std::to_string(*large);
  double value = large ? double(*large) : number.get_double();
  if (std::trunc(value) == value && value >= -kInt64Limit && value < kInt64Limit) return std::to_string(int64_t(value));
  double size = std::fabs(value);
  if (size >= 1e-6 && size < 1e21) return go_float(value, 'f', -1);
  std::string text = go_float(value, 'e', -1);
  size_t end = text.size();  // e-09 becomes e-9
  if (end >= 4 && text[end - 4] == 'e' && text[end - 3] == '-' && text[end - 2] == '0') text.erase(end - 2, 1);
  return text;
}

std::string go_json(const json::value& value, JsonOrder order) { return written(value, order, false); }
std::string go_pretty_json(const json::value& value, JsonOrder order) { return written(value, order, true); }

std::string go_json(const GoValue& value) { return written(value, JsonOrder::sorted, false); }
std::string go_pretty_json(const std::vector<GoValue>& list) { return written(list, JsonOrder::sorted, true); }

}  // namespace coracle::ctl
