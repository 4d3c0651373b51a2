// SPDX-License-Identifier: Apache-2.0
// See yaml.h.
#include "store/object/yaml.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>

#include "runtime/base/go_json.h"
#include "runtime/base/text.h"
#include "store/object/yaml_emitter.h"
#include "store/object/yaml_events.h"
#include "store/object/yaml_numbers.h"

namespace coracle {
namespace {

// ---- scalars ----

std::optional<bool> boolean_of(std::string_view text) {
  for (std::string_view word : {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
    if (text == word) return true;
  for (std::string_view word : {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
    if (text == word) return false;
  return std::nullopt;
}

bool is_null(std::string_view text) { return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL"; }

bool looks_like_number(std::string_view text) {
  return !text.empty() && (std::isdigit(uint8_t(text[0])) || text[0] == '+' || text[0] == '-' || text[0] == '.');
}

// An integer with optional sign and base (0b, 0o, 0x, a leading 0 for octal).
std::optional<json::value> integer_of(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    char kind = text[1];
    base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
    text.remove_prefix(base != 8 || kind == 'o' || kind == 'O' ? 2 : 1);
  }
  auto magnitude = parse_number<uint64_t>(text, base);
  if (!magnitude) return std::nullopt;
  if (!negative) return *magnitude <= uint64_t(INT64_MAX) ? json::value(int64_t(*magnitude)) : json::value(*magnitude);
  if (*magnitude > uint64_t(INT64_MAX) + 1) return std::nullopt;
  return json::value(int64_t(-*magnitude));
}

std::optional<json::value> float_of(std::string_view text) {
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != text.npos || text.find_first_of("0123456789") == text.npos)
    return std::nullopt;
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return json::value(number);
}

bool has_many_tag_directives(std::string_view text) {
  constexpr std::string_view kBreakEnds = "\n\r\x85\xa8\xa9";  // the last byte of libyaml's line breaks
  size_t count = 0;
  for (size_t at = 0; (at = text.find("%TAG", at)) != text.npos; ++at) {
    if (at == 0 || kBreakEnds.find(text[at - 1]) != kBreakEnds.npos) ++count;
  }
  return count > kYamlTagDirectivesMax;
}

// The value of a plain scalar.
json::value resolve_scalar(std::string_view text) {
  if (is_null(text)) return nullptr;
  if (auto flag = boolean_of(text)) return *flag;
  if (looks_like_number(text)) {
    std::string digits;
    for (char c : text)
      if (c != '_' || text[0] == '.') digits += c;
    if (auto number = integer_of(digits)) return std::move(*number);
    if (auto number = float_of(digits)) return std::move(*number);
  }
  return json::value(json::string(text));
}

// ---- reading ----

// Whole numbers become integers, as in Kubernetes, which converts YAML to JSON before it decodes: replicas: 1e3 is 1000.
enum class WholeNumbers : uint8_t { as_integers, as_written };

class Reader : YamlEvents {
 public:
  enum class Duplicates : uint8_t { by_path, by_line };
  Reader(std::string_view text, WholeNumbers numbers, std::vector<std::string>* duplicates, Duplicates told = Duplicates::by_path)
      : YamlEvents(text), numbers_(numbers), duplicates_(duplicates), told_(told) {}

  Result<std::vector<json::value>> documents(std::vector<size_t>* lines) {
    std::vector<json::value> all;
    TRY(next());
    for (;;) {
      TRY(next());
      if (event_.type == YAML_STREAM_END_EVENT) return all;
      anchors_.clear();
      TRY(next());
      size_t line = event_.start_mark.line + 1;
      json::value document = TRY(node(0));
      TRY(next());  // the end of the document
      if (document.is_null()) continue;
      all.push_back(std::move(document));
      if (lines) lines->push_back(line);
    }
  }

 private:
  Error wrong(std::string_view what, size_t line) const {
    return Error(Code::bad_request, "error parsing YAML: line " + std::to_string(line) + ": " + std::string(what));
  }

  Result<void> next() {
    if (!advance()) return wrong(fault(), fault_line());
    return {};
  }

  static std::string anchor_of(const yaml_char_t* name) { return name ? reinterpret_cast<const char*>(name) : std::string(); }

  struct Anchored {
    json::value value;
    size_t nodes, bytes, height;
  };

  static size_t height_of(const json::value& value) {
    size_t highest = 0;
    if (const auto* object = value.if_object())
      for (const auto& [key, child] : *object) highest = std::max(highest, height_of(child));
    if (const auto* array = value.if_array())
      for (const auto& child : *array) highest = std::max(highest, height_of(child));
    return value.is_structured() ? highest + 1 : highest;
  }
  Error too_deep() const {
    return Error(Code::too_large, "error parsing YAML: line " + std::to_string(line()) + ": nested too deeply");
  }

  // Parses the node that starts with the current event; on return the current event is its last one.
  Result<json::value> node(size_t depth) {
    if (depth > kYamlDepthMax) return too_deep();
    if (++nodes_ > kYamlNodesMax) return Error(Code::too_large, "error parsing YAML: too many values");
    size_t nodes_before = nodes_, bytes_before = bytes_;
    std::string anchor;
    json::value value;
    switch (event_.type) {
      case YAML_ALIAS_EVENT: return alias(depth);
      case YAML_SCALAR_EVENT:
        anchor = anchor_of(event_.data.scalar.anchor);
        value = TRY(scalar());
        break;
      case YAML_SEQUENCE_START_EVENT:
        anchor = anchor_of(event_.data.sequence_start.anchor);
        value = TRY(sequence(depth));
        break;
      case YAML_MAPPING_START_EVENT:
        anchor = anchor_of(event_.data.mapping_start.anchor);
        value = TRY(mapping(depth));
        break;
      default: return wrong("unexpected content", line());
    }
    if (anchor.empty()) return value;
    size_t nodes = nodes_ - nodes_before + 1, bytes = bytes_ - bytes_before;
    anchor_nodes_ += nodes;
    anchor_bytes_ += bytes;
    if (anchor_nodes_ > kYamlAnchorNodesMax || anchor_bytes_ > kYamlBytesMax)
      return Error(Code::too_large, "error parsing YAML: line " + std::to_string(line()) + ": anchors stand for too many values");
    anchors_[anchor] = {value, nodes, bytes, height_of(value)};
    return value;
  }

  Result<json::value> alias(size_t depth) {
    std::string name = anchor_of(event_.data.alias.anchor);
    auto found = anchors_.find(name);
    if (found == anchors_.end()) return wrong("unknown alias *" + name, line());
    if (depth + found->second.height > kYamlDepthMax) return too_deep();
    nodes_ += found->second.nodes;
    alias_nodes_ += found->second.nodes;
    bytes_ += found->second.bytes;
    alias_bytes_ += found->second.bytes;
    if (alias_nodes_ > kYamlAliasNodesMax || alias_bytes_ > kYamlBytesMax || nodes_ > kYamlNodesMax)
      return Error(Code::too_large, "error parsing YAML: line " + std::to_string(line()) + ": aliases expand to too many values");
    return found->second.value;
  }

  Result<json::value> scalar() {
    const auto& scalar = event_.data.scalar;
    std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    bytes_ += text.size();
    std::string_view tag = scalar.tag ? reinterpret_cast<const char*>(scalar.tag) : "";
    if (tag == YAML_STR_TAG || tag == "!" || tag == "tag:yaml.org,2002:binary") return json::value(json::string(text));
    if (!tag.empty() || scalar.style == YAML_PLAIN_SCALAR_STYLE) {
      if (tag.empty() && (text == ".inf" || text == ".Inf" || text == ".INF" || text == "-.inf" || text == ".nan" ||
                          text == ".NaN" || text == ".NAN"))
        return wrong("a number that JSON cannot hold", line());
      json::value value = resolve_scalar(text);
      if (numbers_ == WholeNumbers::as_integers) store_whole_numbers_as_integers(value);
      return value;
    }
    return json::value(json::string(text));
  }

  Result<json::value> sequence(size_t depth) {
    json::array items;
    for (;;) {
      TRY(next());
      if (event_.type == YAML_SEQUENCE_END_EVENT) return json::value(std::move(items));
      path_.push_back({{}, items.size()});
      json::value item = TRY(node(depth + 1));
      path_.pop_back();
      items.push_back(std::move(item));
    }
  }

  Result<json::value> mapping(size_t depth) {
    json::object fields;
    std::vector<json::value> merged;
    for (;;) {
      TRY(next());
      if (event_.type == YAML_MAPPING_END_EVENT) break;
      if (event_.type != YAML_SCALAR_EVENT) return wrong("a key must be text", line());
      size_t key_line = line();
      std::string key(reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length);
      bytes_ += key.size();
      bool merge = key == "<<" && event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
      TRY(next());
      path_.push_back({key, std::nullopt});
      json::value value = TRY(node(depth + 1));
      if (!merge && fields.contains(key)) {
        const std::string is_set = "key " + quoted(shortened_path(key)) + " already set in map";
        if (!duplicates_) return wrong(is_set, key_line);
        if (duplicates_->size() < kDuplicateKeysMax)
          duplicates_->push_back(told_ == Duplicates::by_path ? path() : "line " + std::to_string(key_line) + ": " + is_set);
      }
      path_.pop_back();
      if (merge) merged.push_back(std::move(value));
      else fields[key] = std::move(value);
    }
    for (const auto& source : merged) {
      TRY(merge_into(fields, source));
    }
    return json::value(std::move(fields));
  }

  Result<void> merge_into(json::object& fields, const json::value& source) {
    if (const auto* list = source.if_array()) {
      for (const auto& one : *list) {
        TRY(merge_into(fields, one));
      }
      return {};
    }
    const auto* object = source.if_object();
    if (!object) return wrong("map merge requires a map or a list of maps as the value", line());
    for (const auto& [key, value] : *object)
      if (!fields.contains(key)) fields[key] = value;
    return {};
  }

  // "spec.containers[0].name", the form in which parse_json() reports duplicates.
  std::string path() const {
    std::string out;
    for (const Step& step : path_) {
      if (step.index) out += "[" + std::to_string(*step.index) + "]";
      else out += (out.empty() ? "" : ".") + step.key;
    }
    return shortened_path(std::move(out));
  }

  struct Step {
    std::string key;
    std::optional<size_t> index;  // of an item of a sequence
  };
  std::map<std::string, Anchored> anchors_;
  size_t nodes_ = 0, alias_nodes_ = 0, anchor_nodes_ = 0;  // an alias counts as its value
  size_t bytes_ = 0, alias_bytes_ = 0, anchor_bytes_ = 0;  // of keys and scalars
  std::vector<Step> path_;                                 // of the current node
  const WholeNumbers numbers_;
  std::vector<std::string>* const duplicates_;
  const Duplicates told_;
};

Result<std::vector<json::value>> read_documents(std::string_view text, WholeNumbers numbers, std::vector<size_t>* lines,
                                                std::vector<std::string>* duplicates) {
  text = without_byte_order_mark(text);
  if (text.size() > kYamlBytesMax) return Error(Code::too_large, "error parsing YAML: the text is larger than 16 MiB");
  if (has_many_tag_directives(text)) return Error(Code::too_large, "error parsing YAML: too many %TAG directives");
  return Reader(text, numbers, duplicates).documents(lines);
}

}  // namespace

Result<std::vector<json::value>> parse_yaml(std::string_view text, std::vector<size_t>* lines,
                                            std::vector<std::string>* duplicates) {
  return read_documents(text, WholeNumbers::as_integers, lines, duplicates);
}

Result<std::vector<json::value>> parse_yaml_with_floats(std::string_view text, std::vector<std::string>* duplicates) {
  return read_documents(text, WholeNumbers::as_written, nullptr, duplicates);
}

std::vector<std::string> duplicate_keys_by_line(std::string_view text) {
  std::vector<std::string> found;
  text = without_byte_order_mark(text);
  bool read = text.size() <= kYamlBytesMax && !has_many_tag_directives(text) &&
              Reader(text, WholeNumbers::as_written, &found, Reader::Duplicates::by_line).documents(nullptr).ok();
  if (!read) found.clear();
  return found;
}

std::string to_yaml(const json::value& value) {
  YamlEmitter emitter;
  emitter.value(value);
  return emitter.finish();
}

}  // namespace coracle
