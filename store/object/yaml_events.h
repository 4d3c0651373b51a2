// SPDX-License-Identifier: Apache-2.0
// libyaml's events of one text, one after the other, for those who read YAML in their own ways.
#pragma once

#include <yaml.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace coracle {

class YamlEvents {
 public:
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;

 protected:
  // The text, in UTF-8, has to outlive this.
  explicit YamlEvents(std::string_view text) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  ~YamlEvents() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  // Reads the next event into event_. False: the text is malformed, see fault(). After that libyaml succeeds with events of the
  // type YAML_NO_EVENT.
  bool advance() {
    yaml_event_delete(&event_);
    return yaml_parser_parse(&parser_, &event_) != 0;
  }
  const char* fault() const { return parser_.problem ? parser_.problem : "malformed text"; }
  size_t fault_line() const { return std::max(parser_.problem_mark.line, parser_.context_mark.line) + 1; }
  size_t line() const { return event_.start_mark.line + 1; }  // of the event

  yaml_event_t event_{};

 private:
  yaml_parser_t parser_{};
};

}  // namespace coracle
