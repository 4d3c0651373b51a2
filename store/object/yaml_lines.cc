// SPDX-License-Identifier: Apache-2.0
// See yaml_lines.h.
#include "store/object/yaml_lines.h"

#include "runtime/base/json.h"
#include "store/object/yaml.h"
#include "store/object/yaml_events.h"

namespace coracle {
namespace {

class LineFinder : YamlEvents {
 public:
  LineFinder(std::string_view text, const std::vector<std::string>& path) : YamlEvents(text), path_(path) {}

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
  // False: the end, or an error.
  bool next() { return advance() && event_.type != YAML_NO_EVENT; }
  // An empty document is none.
  bool is_empty() const {
    return event_.type == YAML_SCALAR_EVENT && event_.data.scalar.length == 0 && event_.data.scalar.plain_implicit;
  }

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

  const std::vector<std::string>& path_;
  size_t found_ = 0;
};

}  // namespace

size_t line_in_yaml(std::string_view text, const std::vector<std::string>& path) {
  return LineFinder(without_byte_order_mark(text), path).find();
}

}  // namespace coracle
