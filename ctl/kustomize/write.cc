// SPDX-License-Identifier: Apache-2.0
// See write.h.
#include "ctl/kustomize/write.h"

#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace coracle::kustomize {
namespace {

bool is_digit_at(std::string_view text, size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }

bool is_letter(char c) {  // of a name that is not ASCII, any byte is taken for one
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

// Numbers in names are compared as numbers, and letters come last.
bool natural_less(std::string_view left, std::string_view right) {
  size_t i = 0;
  while (i < left.size() && i < right.size() && left[i] == right[i]) ++i;
  if (i == left.size() || i == right.size()) return left.size() < right.size();
  bool left_letter = is_letter(left[i]), right_letter = is_letter(right[i]);
  if (left_letter && right_letter) return static_cast<unsigned char>(left[i]) < static_cast<unsigned char>(right[i]);
  if (left_letter || right_letter) return right_letter;
  uint64_t left_number = 0, right_number = 0;
  if (left[i] == '0' || right[i] == '0')
    for (size_t j = i; j > 0 && is_digit_at(left, j - 1); --j)
      if (left[j - 1] != '0') left_number = right_number = 1;
  size_t left_end = i, right_end = i;
  for (; is_digit_at(left, left_end); ++left_end) left_number = left_number * 10 + uint64_t(left[left_end] - '0');
  for (; is_digit_at(right, right_end); ++right_end) right_number = right_number * 10 + uint64_t(right[right_end] - '0');
  if (left_number != right_number) return left_number < right_number;
  if (left_end != right_end) return left_end < right_end;
  return left[i] < right[i];
}

// 190:20:30 is a number of YAML 1.1.
bool is_base_60(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  size_t at = 0;
  if (!is_digit_at(text, 0)) return false;
  while (is_digit_at(text, at) || (at < text.size() && text[at] == '_')) ++at;
  size_t parts = 0;
  for (; at < text.size() && text[at] == ':'; ++parts) {
    ++at;
    bool two = is_digit_at(text, at) && is_digit_at(text, at + 1) && text[at] <= '5';
    if (!is_digit_at(text, at)) return false;
    at += two ? 2 : 1;
  }
  if (parts && at < text.size() && text[at] == '.') at = std::min(text.size(), text.find_first_not_of("0123456789_", at + 1));
  return parts && at == text.size();
}

bool needs_quotes(std::string_view text) {
  for (std::string_view word : {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"})
    if (text == word) return true;
  std::string_view unsigned_text = text.starts_with('+') || text.starts_with('-') ? text.substr(1) : text;
  for (std::string_view word : {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})
    if (unsigned_text == word) return true;
  return tag_of(text) != Tag::string || is_base_60(text);
}

class Emitter {
 public:
  explicit Emitter(int width) {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_output(&emitter_, append, &out_);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_width(&emitter_, width);
    yaml_emitter_set_indent(&emitter_, 2);
    yaml_event_t event;
    yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
    emit(event);
    yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, 1);
    emit(event);
  }
  Emitter(const Emitter&) = delete;
  ~Emitter() { yaml_emitter_delete(&emitter_); }

  void text(std::string_view text, bool quotes) {
    scalar(text, text.find('\n') != text.npos ? YAML_LITERAL_SCALAR_STYLE
                 : quotes                     ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                                              : YAML_PLAIN_SCALAR_STYLE);
  }
  void quoted(std::string_view text, char quote) {
    scalar(text, quote == '"'    ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                 : quote == '\'' ? YAML_SINGLE_QUOTED_SCALAR_STYLE
                                 : YAML_PLAIN_SCALAR_STYLE);
  }
  void plain(std::string_view text) { scalar(text, YAML_PLAIN_SCALAR_STYLE); }
  void begin_map(bool empty) {
    yaml_event_t event;
    yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1, empty ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
    emit(event);
  }
  void end_map() {
    yaml_event_t event;
    yaml_mapping_end_event_initialize(&event);
    emit(event);
  }
  void begin_list(bool empty) {
    yaml_event_t event;
    yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1,
                                         empty ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
    emit(event);
  }
  void end_list() {
    yaml_event_t event;
    yaml_sequence_end_event_initialize(&event);
    emit(event);
  }
  std::string finish() {
    yaml_event_t event;
    yaml_document_end_event_initialize(&event, 1);
    emit(event);
    yaml_stream_end_event_initialize(&event);
    emit(event);
    yaml_emitter_flush(&emitter_);
    if (out_.ends_with("...\n")) out_.resize(out_.size() - 4);  // libyaml appends it to a plain top-level scalar
    return std::move(out_);
  }

 private:
  static int append(void* out, unsigned char* bytes, size_t size) {
    static_cast<std::string*>(out)->append(reinterpret_cast<char*>(bytes), size);
    return 1;
  }
  void emit(yaml_event_t& event) { (void)yaml_emitter_emit(&emitter_, &event); }  // only fails without memory
  void scalar(std::string_view text, yaml_scalar_style_t style) {
    yaml_event_t event;
    yaml_scalar_event_initialize(&event, nullptr, nullptr, reinterpret_cast<const yaml_char_t*>(text.data()), int(text.size()), 1,
                                 1, style);
    emit(event);
  }

  std::string out_;
  yaml_emitter_t emitter_{};
};

// As Go's %g: with an exponent below 1e-4 and from a million on.
std::string number_text(double number) {
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  std::string scientific(text, end);
  int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 6) return scientific;
  auto [fixed_end, fixed_error] = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed);
  return std::string(text, fixed_end);
}

void put(Emitter& emitter, const json::value& value) {
  switch (value.kind()) {
    case json::kind::object: {
      const auto& object = value.get_object();
      std::vector<const json::key_value_pair*> members;
      for (const auto& member : object) members.push_back(&member);
      std::stable_sort(members.begin(), members.end(),
                       [](auto* left, auto* right) { return natural_less(left->key(), right->key()); });
      emitter.begin_map(object.empty());
      for (const auto* member : members) {
        emitter.text(member->key(), needs_quotes(member->key()));
        put(emitter, member->value());
      }
      emitter.end_map();
      break;
    }
    case json::kind::array:
      emitter.begin_list(value.get_array().empty());
      for (const auto& item : value.get_array()) put(emitter, item);
      emitter.end_list();
      break;
    case json::kind::string: emitter.text(value.get_string(), needs_quotes(value.get_string())); break;
    case json::kind::double_: emitter.plain(number_text(value.get_double())); break;
    default: emitter.plain(to_text(value));
  }
}

void put(Emitter& emitter, const Node& node) {
  switch (node.kind) {
    case Node::Kind::map:
      emitter.begin_map(node.members.empty());
      for (const Member& member : node.members) {
        emitter.text(member.key, needs_quotes(member.key));
        put(emitter, member.value);
      }
      emitter.end_map();
      break;
    case Node::Kind::list:
      emitter.begin_list(node.items.empty());
      for (const Node& item : node.items) put(emitter, item);
      emitter.end_list();
      break;
    case Node::Kind::scalar:
      emitter.text(node.text, node.quoted || (node.tag == Tag::string && tag_of(node.text) != Tag::string));
      break;
  }
}

}  // namespace

std::string write_json(const json::value& value) {
  Emitter emitter(80);
  put(emitter, value);
  return emitter.finish();
}

std::string write_scalar(const std::string& text, char quote) {
  Emitter emitter(-1);
  emitter.quoted(text, quote);
  std::string out = emitter.finish();
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string write_node(const Node& node) {
  Emitter emitter(-1);
  put(emitter, node);
  return emitter.finish();
}

}  // namespace coracle::kustomize
