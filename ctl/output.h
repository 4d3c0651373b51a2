// SPDX-License-Identifier: Apache-2.0
// -o and what belongs to it: --template, --allow-missing-template-keys, --show-managed-fields. A command has one Output for its
// flags, by Commands::add_output, and prints its objects with it.
//   line ──add_to()──▶ text of the flags ──prepare()──▶ format: a parsed template, path, columns ──print()──▶ standard output
// Source: k8s.io/cli-runtime pkg/genericclioptions, pkg/printers; kubectl's pkg/cmd/get.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/flags.h"
#include "ctl/go_json.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

enum class OutputSet : uint8_t {
  objects,    // json, yaml, kyaml, name, templates, jsonpath: what most commands take
  get,        // and wide, custom-columns
  resources,  // json, yaml, kyaml, name, wide
};

enum class OutputFormat : uint8_t {
  none,
  json,
  yaml,
  kyaml,
  name,
  wide,
  go_template,
  jsonpath,
  jsonpath_as_json,
  custom_columns
};

// A handle: copies share one state, so that a command may copy its flags.
class Output {
 public:
  // `otherwise` is what is printed without -o.
  Output() : Output(OutputSet::objects) {}
  explicit Output(OutputSet set, std::string otherwise = {});

  void add_to(Command command) const;
  // Reads the flags and the files that they name. Errors: bad_request, in kubectl's words, for a format that is not in the set,
  // one without its template, and a template that cannot be read or parsed.
  Result<void> prepare() const;

  OutputFormat format() const;
  const std::string& text() const;  // of the flag
  bool empty() const { return format() == OutputFormat::none; }
  bool is_table() const { return empty() || format() == OutputFormat::wide; }
  // Neither a message nor a name stands for the object.
  bool prints_objects() const { return !is_table() && format() != OutputFormat::name; }
  bool operator==(std::string_view format) const;  // json, yaml, kyaml, name, wide

  // Prints an object or a list: its items are columns and names, in other formats it is one document. Members are sorted in JSON
  // and KYAML, unless their order is `given`. False if a template failed; take_failures() has why.
  bool print(json::value object, JsonOrder order = JsonOrder::sorted) const;
  // The same for what happened to an object ("ADDED"): both are members of what is printed, but for names. JSON is one line.
  bool print_event(std::string_view type, json::value object) const;
  // As print(), as a text; nothing if a template failed.
  std::optional<std::string> rendered(json::value object, JsonOrder order = JsonOrder::sorted) const;
  void set_headers(bool wanted) const;  // of custom columns; they stand before the first object only
  std::vector<Error> take_failures() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// "pod/web", "deployment.apps/web": by the object's own kind. For a List, a line for each item.
std::string object_names(const json::value& object);

// The same object without managedFields; in a List, of each item.
void hide_all_managed_fields(json::value& object);

}  // namespace coracle::ctl
