// SPDX-License-Identifier: Apache-2.0
// See yaml_lines.h.
#include "store/object/yaml_lines.h"

#include <yaml.h>

#include "runtime/base/json.h"
#include "store/object/yaml.h"

namespace coracle {
namespace {

class LineFinder {
 public:
  LineFinder(std::string_view text, const std::vector<std::string>& path) : path_(path) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  LineFinder(const LineFinder&) = delete;
  ~LineFinder() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  size_t find() {
    while (next() && event_.type != YAML_STREAM_END_EVENT) {
      if (event_.type != YAML_DOCUMENT_START_EVENT) continue;
      if (next() && !is_empty()) {
        node(0, true);
        break;
      }
    }
    return found_;
  }

 private:
  // False: the end, or an error. (After an error libyaml succeeds with events that are none.)
  bool next() {
    yaml_event_delete(&event_);
    return yaml_parser_parse(&parser_, &event_) != 0 && event_.type != YAML_NO_EVENT;
  }
  // An empty document is none.
  bool is_empty() const {
    return event_.type == YAML_SCALAR_EVENT && event_.data.scalar.length == 0 && event_.data.scalar.plain_implicit;
  }
  size_t line() const { return event_.start_mark.line + 1; }

  // Reads the node that begins with the current event. `is_above`: the path's first `depth` parts lead to it. False: the end.
  bool node(size_t depth, bool is_above) {
    if (depth > kYamlDepthMax) return false;
    const std::string* wanted = is_above && depth < path_.size() ? &path_[depth] : nullptr;
    if (event_.type == YAML_SEQUENCE_START_EVENT) {
      for (size_t index = 0; next(); ++index) {
        if (event_.type == YAML_SEQUENCE_END_EVENT) return true;
        if (!part(depth, wanted && *wanted == std::to_string(index), line())) return false;
      }
      return false;
    }
    if (event_.type == YAML_MAPPING_START_EVENT) {
      while (next()) {
        if (event_.type == YAML_MAPPING_END_EVENT) return true;
        if (event_.type != YAML_SCALAR_EVENT) return false;  // no text that parse_yaml() accepts
        const auto& scalar = event_.data.scalar;
        const std::string_view name(reinterpret_cast<const char*>(scalar.value), scalar.length);
        const bool is_wanted = wanted && name == *wanted;
        const size_t at = line();
        if (!next() || !part(depth, is_wanted, at)) return false;
      }
      return false;
    }
    return true;
  }
  bool part(size_t depth, bool is_wanted, size_t line) {
    if (is_wanted) found_ = line;
    return node(depth + 1, is_wanted);
  }

  yaml_parser_t parser_{};
  yaml_event_t event_{};
  const std::vector<std::string>& path_;
  size_t found_ = 0;
};

}  // namespace

size_t line_in_yaml(std::string_view text, const std::vector<std::string>& path) {
  return LineFinder(without_byte_order_mark(text), path).find();
}

}  // namespace coracle
