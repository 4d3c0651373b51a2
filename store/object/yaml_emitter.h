// SPDX-License-Identifier: Apache-2.0
// Writes one YAML document, event by event, in the form that kubectl and kustomize print: block style, lists not indented beneath
// their key, `|` for texts of several lines, double quotes where a plain text would be another type for a reader of YAML 1.1.
//
//   json::value ─▶ to_yaml() (yaml.h) ─┐
//   kustomize's Node ─▶ its write.h ───┴▶ YamlEmitter ─▶ libyaml ─▶ text
//
// Pure. Source: YAML 1.1; sigs.k8s.io/yaml (goyaml.v2), whose emitter is a port of libyaml's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/json.h"

namespace coracle {

constexpr int kYamlWidth = 80;      // characters after which kubectl breaks a line at the next space
constexpr int kYamlUnlimited = -1;  // lines are never broken

class YamlEmitter {
 public:
  explicit YamlEmitter(int width = kYamlWidth);
  YamlEmitter(const YamlEmitter&) = delete;
  ~YamlEmitter();

  // Each document has one value: a text or another scalar, a list, or a map, in which keys and values alternate.
  void text(std::string_view text, bool quotes);  // a block if it has several lines. Quotes are also added where YAML needs them
  void line(std::string_view text, char quote);   // between ' or " or, with any other character, without quotes if possible
  void key(std::string_view text);                // of a map; between quotes if it needs them
  void plain(std::string_view text);              // a number, true, false or null
  void begin_map(bool empty);
  void end_map();
  void begin_list(bool empty);
  void end_list();
  void value(const json::value& value);  // of any kind; keys are sorted with yaml_key_less()

  std::string finish();  // the document, without "---"; nothing may be added then

 private:
  struct State;
  void scalar(std::string_view text, int style);
  void emit();
  std::unique_ptr<State> state_;
};

// True if a reader of YAML 1.1 may take the plain text for a null, a boolean, a number or a time.
bool yaml_needs_quotes(std::string_view text);

// The order of keys: a9 before a10, letters after everything else.
bool yaml_key_less(std::string_view left, std::string_view right);

// A number as Go's %g prints it, with an exponent below 1e-4 and from 1e21 on if it is whole, else from 1e6 on.
std::string yaml_number(double number);

}  // namespace coracle
