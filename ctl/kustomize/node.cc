// SPDX-License-Identifier: Apache-2.0
// See node.h.
#include "ctl/kustomize/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

struct Resolved {
  Tag tag;
  json::value value;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// An integer with optional sign and base: 0x, 0b, 0o, and a leading 0 for octal.
std::optional<json::value> read_integer(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    char mark = char(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(base != 8 || mark == 'o' ? 2 : 1);
  }
  auto magnitude = parse_number<uint64_t>(text, base);
  if (!magnitude) return std::nullopt;
  if (!negative) return *magnitude <= uint64_t(INT64_MAX) ? json::value(int64_t(*magnitude)) : json::value(*magnitude);
  if (*magnitude > uint64_t(INT64_MAX) + 1) return std::nullopt;
  return json::value(int64_t(0 - *magnitude));
}

// A decimal number with a point or an exponent, or digits that are no integer ("08"). A whole number becomes an integer, since
// JSON does not tell them apart.
std::optional<json::value> read_number(std::string_view text) {
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || !(is_digit(digits[0]) || (digits[0] == '.' && digits.size() > 1 && is_digit(digits[1])))) return {};
  if (digits.find_first_not_of("0123456789.eE+-") != digits.npos) return std::nullopt;
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (std::trunc(number) == number && std::fabs(number) < 9e18) return json::value(int64_t(number));
  if (std::trunc(number) == number && number > 0 && number < 1.8446744073709552e19) return json::value(uint64_t(number));
  return json::value(number);
}

// 2006-01-02, 2006-01-02T15:04:05.999Z, 2006-01-02 15:04:05: as RFC 3339, or nothing.
std::optional<std::string> read_time(std::string_view text) {
  if (text.size() < 8 || !std::all_of(text.begin(), text.begin() + 4, is_digit) || text[4] != '-') return std::nullopt;
  size_t at = 5;
  auto number = [&](size_t least) -> std::optional<std::string> {
    size_t begin = at;
    while (at < text.size() && at - begin < 2 && is_digit(text[at])) ++at;
    if (at - begin < least) return std::nullopt;
    std::string digits(text.substr(begin, at - begin));
    return digits.size() == 1 ? "0" + digits : digits;
  };
  auto skip = [&](char c) { return at < text.size() && text[at] == c ? ++at, true : false; };
  auto month = number(1);
  if (!month || *month < "01" || *month > "12" || !skip('-')) return std::nullopt;
  auto day = number(1);
  if (!day || *day < "01" || *day > "31") return std::nullopt;
  std::string date = std::string(text.substr(0, 5)) + *month + "-" + *day;
  if (at == text.size()) return date + "T00:00:00Z";
  bool with_zone = text[at] == 'T' || text[at] == 't';
  if (!with_zone && text[at] != ' ') return std::nullopt;
  ++at;
  auto hour = number(1);
  if (!hour || *hour > "23" || !skip(':')) return std::nullopt;
  auto minute = number(1);
  if (!minute || *minute > "59" || !skip(':')) return std::nullopt;
  auto second = number(1);
  if (!second || *second > "59") return std::nullopt;
  std::string fraction;
  if (skip('.')) {
    size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == begin || at - begin > 9) return std::nullopt;
    fraction = text.substr(begin, at - begin);
    while (fraction.ends_with('0')) fraction.pop_back();
    if (!fraction.empty()) fraction.insert(0, ".");
  }
  std::string time = date + "T" + *hour + ":" + *minute + ":" + *second + fraction;
  if (!with_zone) return at == text.size() ? std::optional(time + "Z") : std::nullopt;
  std::string_view zone = text.substr(at);
  if (zone == "Z") return time + "Z";
  bool offset = zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && is_digit(zone[1]) && is_digit(zone[2]) &&
                zone[3] == ':' && is_digit(zone[4]) && is_digit(zone[5]);
  if (!offset) return std::nullopt;
  return time + (zone.substr(1) == "00:00" ? "Z" : std::string(zone));
}

Resolved resolve(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {Tag::null, nullptr};
  if (text == "true" || text == "True" || text == "TRUE") return {Tag::boolean, true};
  if (text == "false" || text == "False" || text == "FALSE") return {Tag::boolean, false};
  if (is_digit(text[0]) || text[0] == '+' || text[0] == '-' || text[0] == '.') {
    if (auto time = read_time(text)) return {Tag::time, json::value(json::string(*time))};
    std::string digits;
    for (char c : text)
      if (c != '_') digits += c;
    if (text[0] != '.')
      if (auto integer = read_integer(digits)) return {Tag::integer, std::move(*integer)};
    if (auto number = read_number(text[0] == '.' ? std::string_view(text) : digits)) return {Tag::number, std::move(*number)};
  }
  return {Tag::string, json::value(json::string(text))};
}

const char* tag_name(Tag tag) {
  switch (tag) {
    case Tag::integer: return "an integer";
    case Tag::number: return "a number";
    case Tag::boolean: return "true or false";
    case Tag::null: return "null";
    case Tag::time: return "a time";
    default: return "text";
  }
}

Result<json::value> scalar_json(const Node& node) {
  if (node.tag == Tag::string || node.quoted) return json::value(json::string(node.text));
  Resolved resolved = resolve(node.text);
  bool fits = node.tag == Tag::none || node.tag == resolved.tag || (node.tag == Tag::number && resolved.tag == Tag::integer);
  if (fits) return std::move(resolved.value);
  if (node.tag == Tag::integer && resolved.tag == Tag::number && !resolved.value.is_double()) return std::move(resolved.value);
  return Error(Code::invalid, quoted(shortened_text(node.text, 80)) + " is put where " + tag_name(node.tag) + " is");
}

Result<json::value> json_at(const Node& node, size_t depth, std::string& path) {
  if (depth > kTreeDepthMax) return Error(Code::too_large, path + ": nested too deeply");
  size_t length = path.size();
  if (node.is_map()) {
    json::object object;
    object.reserve(node.members.size());
    for (const Member& member : node.members) {
      path += (length ? "." : "") + member.key;
      json::value value = TRY(json_at(member.value, depth + 1, path));
      path.resize(length);
      object[member.key] = std::move(value);
    }
    return json::value(std::move(object));
  }
  if (node.is_list()) {
    json::array array;
    array.reserve(node.items.size());
    for (const Node& item : node.items) {
      path += "[" + std::to_string(array.size()) + "]";
      json::value value = TRY(json_at(item, depth + 1, path));
      path.resize(length);
      array.push_back(std::move(value));
    }
    return json::value(std::move(array));
  }
  return scalar_json(node).wrap(path);
}

Result<void> check_at(const Node& node, size_t depth, size_t& seen) {
  if (depth > kTreeDepthMax) return Error(Code::too_large, "the object is nested more than 100 levels deep");
  if (++seen > kTreeNodesMax) return Error(Code::too_large, "the object has more than 300000 values");
  if (node.text.size() > kTextBytesMax) return Error(Code::too_large, "a text is longer than 16 MiB");
  for (const Member& member : node.members) {
    TRY(check_at(member.value, depth + 1, seen));
  }
  for (const Node& item : node.items) {
    TRY(check_at(item, depth + 1, seen));
  }
  return {};
}

void go_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') (out += '\\') += char(c);
    else if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (c == '\t') out += "\\t";
    else if (c == '\b') out += "\\b";
    else if (c == '\f') out += "\\f";
    else if (c < 0x20 || c == '<' || c == '>' || c == '&') ((out += "\\u00") += kHex[c >> 4]) += kHex[c & 15];
    else if (text.substr(i, 3) == "\xe2\x80\xa8" || text.substr(i, 3) == "\xe2\x80\xa9") {
      out += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else out += char(c);
  }
  out += '"';
}

std::string go_number(double number) {
  char text[64];
  double magnitude = std::fabs(number);
  bool plain = magnitude == 0 || (magnitude >= 1e-6 && magnitude < 1e21);
  auto [end, error] =
      std::to_chars(text, text + sizeof text, number, plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(text, end);
  if (size_t at = out.find("e-0"); at != out.npos) out.erase(at + 2, 1);  // Go writes 1e-7
  return out;
}

void go_value(std::string& out, const json::value& value, int indent, int level) {
  auto line = [&](int depth) {
    if (indent) (out += '\n').append(size_t(indent * depth), ' ');
  };
  if (const auto* object = value.if_object()) {
    std::vector<const json::key_value_pair*> members;
    for (const auto& member : *object) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](auto* a, auto* b) { return a->key() < b->key(); });
    out += '{';
    for (const auto* member : members) {
      if (member != members.front()) out += ',';
      line(level + 1);
      go_string(out, member->key());
      out += indent ? ": " : ":";
      go_value(out, member->value(), indent, level + 1);
    }
    if (!members.empty()) line(level);
    out += '}';
  } else if (const auto* array = value.if_array()) {
    out += '[';
    for (const auto& item : *array) {
      if (&item != array->data()) out += ',';
      line(level + 1);
      go_value(out, item, indent, level + 1);
    }
    if (!array->empty()) line(level);
    out += ']';
  } else if (const auto* text = value.if_string()) {
    go_string(out, *text);
  } else if (const auto* number = value.if_double()) {
    out += go_number(*number);
  } else {
    out += to_text(value);
  }
}

}  // namespace

Node Node::scalar(std::string text, Tag tag) {
  Node node;
  node.text = std::move(text);
  node.tag = tag;
  return node;
}

Node Node::string(std::string text) { return scalar(std::move(text), Tag::string); }

Node Node::null() { return scalar("null", Tag::null); }

Node Node::map() {
  Node node;
  node.kind = Kind::map;
  return node;
}

Node Node::list() {
  Node node;
  node.kind = Kind::list;
  return node;
}

bool Node::empty() const { return is_null() || (is_map() && members.empty()) || (is_list() && items.empty()); }

std::string_view Node::value() const { return is_null() || !is_scalar() ? std::string_view() : text; }

const Node* Node::find(std::string_view key) const {
  for (const Member& member : members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

void Node::set(std::string_view key, Node value) {
  if (value.is_null() && !value.kept) {
    erase(key);
    return;
  }
  if (Node* field = find(key)) {
    value.quoted = field->is_scalar() && field->quoted && value.is_scalar();
    *field = std::move(value);
    return;
  }
  members.push_back({std::string(key), std::move(value)});
}

Node& Node::make(std::string_view key, Kind wanted) {
  Node fresh;
  fresh.kind = wanted;
  Node* field = find(key);
  if (!field) {
    members.push_back({std::string(key), std::move(fresh)});
    return members.back().value;
  }
  if (field->is_null()) *field = std::move(fresh);
  return *field;
}

bool Node::erase(std::string_view key) {
  return std::erase_if(members, [&](const Member& member) { return member.key == key; }) > 0;
}

const char* kind_name(Node::Kind kind) {
  return kind == Node::Kind::map ? "a map" : kind == Node::Kind::list ? "a list" : "text";
}

Tag tag_of(std::string_view text) { return resolve(text).tag; }

Result<json::value> to_json(const Node& node) {
  std::string path;
  return json_at(node, 0, path);
}

Node from_json(const json::value& value) {
  switch (value.kind()) {
    case json::kind::object: {
      Node node = Node::map();
      for (const auto& member : value.get_object())
        node.members.push_back({std::string(member.key()), from_json(member.value())});
      return node;
    }
    case json::kind::array: {
      Node node = Node::list();
      for (const auto& item : value.get_array()) node.items.push_back(from_json(item));
      return node;
    }
    case json::kind::string: return Node::string(std::string(value.get_string()));
    case json::kind::null: return Node::null();
    case json::kind::bool_: return Node::scalar(value.get_bool() ? "true" : "false", Tag::boolean);
    case json::kind::double_: return Node::scalar(go_number(value.get_double()), Tag::number);
    default: return Node::scalar(to_text(value), Tag::integer);
  }
}

Result<void> check_size(const Node& node) {
  size_t seen = 0;
  return check_at(node, 0, seen);
}

std::string go_json(const json::value& value, int indent) {
  std::string out;
  go_value(out, value, indent, 0);
  return out;
}

}  // namespace coracle::kustomize
