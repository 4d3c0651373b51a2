// SPDX-License-Identifier: Apache-2.0
// See output.h.
#include "ctl/output.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "ctl/command.h"
#include "ctl/custom_columns.h"
#include "ctl/go_format.h"
#include "ctl/go_template.h"
#include "ctl/go_text.h"
#include "ctl/jsonpath.h"
#include "ctl/kyaml.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

// The formats that take a template, "FORMAT=TEMPLATE", in kubectl's groups.
constexpr std::string_view kJsonPathFormats[] = {"jsonpath", "jsonpath-as-json", "jsonpath-file"};
constexpr std::string_view kTemplateFormats[] = {"go-template", "go-template-file", "template", "templatefile"};
constexpr std::string_view kColumnFormats[] = {"custom-columns", "custom-columns-file"};

Error unusable(std::string text) { return Error(Code::bad_request, std::move(text)); }

std::string allowed_formats(OutputSet set) {
  std::vector<std::string> all = {"json", "kyaml", "name", "yaml"};
  auto add = [&](std::span<const std::string_view> more) { all.insert(all.end(), more.begin(), more.end()); };
  if (set != OutputSet::objects) all.push_back("wide");
  if (set != OutputSet::resources) add(kTemplateFormats), add(kJsonPathFormats);
  if (set == OutputSet::get) add(kColumnFormats);
  std::sort(all.begin(), all.end());
  return join(all, ",");
}

struct Chosen {
  std::string format, value;
};

// Splits "FORMAT=VALUE" if FORMAT is one of `formats`. With --template that is the value, and -o the format alone.
std::optional<Chosen> choose(std::string_view text, const std::string& argument, std::span<const std::string_view> formats) {
  Chosen chosen{std::string(text), argument};
  if (size_t equals = text.find('='); argument.empty() && equals != text.npos)
    chosen = {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  if (std::find(formats.begin(), formats.end(), chosen.format) == formats.end()) return std::nullopt;
  return chosen;
}

Result<std::string> read_template(const std::string& path, const char* what) {
  auto content = sys::read_file(path);
  if (content) return content;
  int failed = content.error().err();
  return unusable(std::string("error reading ") + what + " " + path + (failed == EISDIR ? ", read " : ", open ") + path + ": " +
                  to_lower(failed ? std::strerror(failed) : content.error().text()));
}

}  // namespace

struct Output::State {
  OutputSet set = OutputSet::objects;
  std::string text, argument;  // of -o and --template
  bool allow_missing_keys = true, show_managed_fields = false, headers = true, prepared = false;
  Flag flag;

  OutputFormat format = OutputFormat::none;
  std::optional<GoTemplate> go_template;
  std::optional<JsonPath> path;
  std::optional<CustomColumns> columns;
  size_t printed = 0;  // objects
  std::vector<Error> failures;

  Result<bool> prepare_plain(const std::string& lower);
  Result<bool> prepare_jsonpath(std::string_view chosen_text);
  Result<bool> prepare_template(std::string_view chosen_text);
  Result<bool> prepare_columns(std::string_view chosen_text);
  Result<std::string> run_template(const json::value& object);
  Result<std::string> run_jsonpath(const json::value& object);
  Result<std::string> run_columns(const json::value& object);
};

Output::Output(OutputSet set, std::string otherwise) : state_(std::make_shared<State>()) {
  state_->set = set;
  state_->text = std::move(otherwise);
}

void Output::add_to(Command command) const {
  State& state = *state_;
  std::string about = "yaml, json, kyaml, name";
  if (state.set != OutputSet::objects) about.insert(0, "wide, ");
  if (state.set != OutputSet::resources)
    about += ", jsonpath=…, jsonpath-as-json=…, jsonpath-file=…, go-template=…, go-template-file=…";
  if (state.set == OutputSet::get) about += ", custom-columns=…, custom-columns-file=…";
  state.flag = command.add_option("-o,--output", state.text, about);
  command.add_flag("--show-managed-fields", state.show_managed_fields, "keep managedFields in YAML and JSON");
  if (state.set == OutputSet::resources) return;
  command.add_option("--template", state.argument, "the template for -o go-template, jsonpath and their files");
  command.add_flag("--allow-missing-template-keys", state.allow_missing_keys, "=false: a key that is absent is an error");
}

Result<bool> Output::State::prepare_plain(const std::string& lower) {
  if (lower == "json") format = OutputFormat::json;
  else if (lower == "yaml") format = OutputFormat::yaml;
  else if (lower == "kyaml") format = OutputFormat::kyaml;
  else if (lower == "name") format = OutputFormat::name;
  else if (lower == "wide" && set != OutputSet::objects) format = OutputFormat::wide;
  else if (lower.empty()) format = OutputFormat::none;
  else return false;
  return true;
}

Result<bool> Output::State::prepare_jsonpath(std::string_view chosen_text) {
  auto chosen = choose(chosen_text, argument, kJsonPathFormats);
  if (!chosen) return false;
  if (chosen->value.empty()) return unusable("template format specified but no template given");
  if (chosen->format == "jsonpath-file") chosen->value = TRY(read_template(chosen->value, "--template"));
  auto parsed = JsonPath::parse(chosen->value);
  if (!parsed) return unusable("error parsing jsonpath " + chosen->value + ", " + parsed.error().text());
  path.emplace(std::move(*parsed));
  format = chosen->format == "jsonpath-as-json" ? OutputFormat::jsonpath_as_json : OutputFormat::jsonpath;
  return true;
}

Result<bool> Output::State::prepare_template(std::string_view chosen_text) {
  auto chosen = choose(chosen_text, argument, kTemplateFormats);
  if (!chosen) return false;
  if (chosen->value.empty()) return unusable("template format specified but no template given");
  bool file = chosen->format == "templatefile" || chosen->format == "go-template-file";
  if (file) chosen->value = TRY(read_template(chosen->value, "--template"));
  auto parsed = GoTemplate::parse(chosen->value);
  if (!parsed) return unusable("error parsing template " + chosen->value + ", " + parsed.error().text());
  go_template.emplace(std::move(*parsed));
  format = OutputFormat::go_template;
  return true;
}

Result<bool> Output::State::prepare_columns(std::string_view chosen_text) {
  auto chosen = choose(chosen_text, argument, kColumnFormats);
  if (!chosen) return false;
  if (chosen->value.empty()) return unusable("custom-columns format specified but no custom columns given");
  bool file = chosen->format == "custom-columns-file";
  if (file) chosen->value = TRY(read_template(chosen->value, "template"));
  CustomColumns parsed = TRY(file ? CustomColumns::parse_file(chosen->value) : CustomColumns::parse(chosen->value));
  columns.emplace(std::move(parsed));
  format = OutputFormat::custom_columns;
  return true;
}

Result<void> Output::prepare() const {
  State& state = *state_;
  state.prepared = true;
  std::string text = state.text;
  bool given = state.flag && state.flag.count() > 0;
  if (!state.argument.empty() && (state.set == OutputSet::get ? text.empty() : !given)) text = "go-template";
  bool plain = TRY(state.prepare_plain(to_lower(text)));
  if (plain) return {};
  if (state.set != OutputSet::resources) {
    bool found = TRY(state.prepare_jsonpath(text));
    if (!found) found = TRY(state.prepare_template(text));
    if (!found && state.set == OutputSet::get) found = TRY(state.prepare_columns(text));
    if (found) return {};
  }
  return unusable("unable to match a printer suitable for the output format " + go_quoted(text) +
                  ", allowed formats are: " + allowed_formats(state.set));
}

OutputFormat Output::format() const {
  if (!state_->prepared) (void)state_->prepare_plain(to_lower(state_->text));  // the text of a default, which is good
  return state_->format;
}

const std::string& Output::text() const { return state_->text; }

bool Output::operator==(std::string_view name) const {
  switch (format()) {
    case OutputFormat::none: return name.empty();
    case OutputFormat::json: return name == "json";
    case OutputFormat::yaml: return name == "yaml";
    case OutputFormat::kyaml: return name == "kyaml";
    case OutputFormat::name: return name == "name";
    case OutputFormat::wide: return name == "wide";
    default: return false;
  }
}

void Output::set_headers(bool wanted) const { state_->headers = wanted; }

std::vector<Error> Output::take_failures() const { return std::exchange(state_->failures, {}); }

// kubectl prints much for whoever looks for the mistake: on standard output for a template, in the message for a path.
Result<std::string> Output::State::run_template(const json::value& object) {
  std::string text;
  auto run = go_template->execute(object, !allow_missing_keys, text);
  if (run) return text;
  const std::string& what = run.error().text();
  text += "Error executing template: " + what + ". Printing more information for debugging the template:\n\ttemplate was:\n\t\t" +
          go_template->text() + "\n\traw data was:\n\t\t" + go_json(object) + "\n\tobject given to template engine was:\n\t\t" +
          go_text(GoValue::of_json(object, false)) + "\n\n";
  out(text);
  return Error(run.error().code(), "error executing template " + go_quoted(go_template->text()) + ": " + what);
}

Result<std::string> Output::State::run_jsonpath(const json::value& object) {
  auto text = format == OutputFormat::jsonpath_as_json ? path->print_json(object, !allow_missing_keys)
                                                       : path->print(object, !allow_missing_keys);
  if (text) return text;
  return Error(text.error().code(),
               "error executing jsonpath " + go_quoted(path->text()) + ": Error executing template: " + text.error().text() +
                   ". Printing more information for debugging the template:\n\ttemplate was:\n\t\t" + path->text() +
                   "\n\tobject given to jsonpath engine was:\n\t\t" + go_syntax(GoValue::of_json(object, false)) + "\n\n");
}

Result<std::string> Output::State::run_columns(const json::value& object) {
  std::vector<const json::value*> objects;
  const json::value* items = object.is_object() ? object.get_object().if_contains("items") : nullptr;
  if (items && items->is_array())
    for (const auto& item : items->get_array()) objects.push_back(&item);
  else objects.push_back(&object);
  std::string text;
  auto done = columns->print(objects, headers && printed == 1, text);
  if (done) return text;
  out(text);
  return done.take_error();
}

std::optional<std::string> Output::rendered(json::value object, JsonOrder order) const {
  State& state = *state_;
  OutputFormat format = this->format();
  ++state.printed;
  bool hides = format == OutputFormat::json || format == OutputFormat::yaml || format == OutputFormat::kyaml;
  if (hides && !state.show_managed_fields) hide_all_managed_fields(object);
  Result<std::string> text = std::string();
  switch (format) {
    case OutputFormat::json: return go_pretty_json(object, order) + "\n";
    case OutputFormat::yaml: return (state.printed > 1 ? "---\n" : "") + to_yaml(object);
    case OutputFormat::kyaml: return to_kyaml(object, order);
    case OutputFormat::name: return object_names(object);
    case OutputFormat::go_template: text = state.run_template(object); break;
    case OutputFormat::jsonpath:
    case OutputFormat::jsonpath_as_json: text = state.run_jsonpath(object); break;
    case OutputFormat::custom_columns: text = state.run_columns(object); break;
    case OutputFormat::none:
    case OutputFormat::wide: break;
  }
  if (text) return std::move(*text);
  state.failures.push_back(text.take_error());
  return std::nullopt;
}

bool Output::print(json::value object, JsonOrder order) const {
  auto text = rendered(std::move(object), order);
  if (text) out(*text);
  return text.has_value();
}

bool Output::print_event(std::string_view type, json::value object) const {
  OutputFormat format = this->format();
  if (format == OutputFormat::name) return print(std::move(object));
  if (format != OutputFormat::json) return print(json::object{{"object", std::move(object)}, {"type", type}});
  out("{\"type\":" + go_json(json::value(type)) + ",\"object\":" + go_json(object) + "}\n");
  return true;
}

std::string object_names(const json::value& object) {
  std::string_view kind = kind_in(object), version = api_version_in(object);
  const json::value* items = object.is_object() ? object.get_object().if_contains("items") : nullptr;
  if (items && items->is_array()) {
    std::string all;
    for (const auto& item : items->get_array()) all += object_names(item);
    return all;
  }
  size_t slash = version.find('/');
  std::string name(metadata_of(object).name());
  if (name.empty()) name = "<unknown>";
  return to_lower(kind) + (slash == version.npos ? "" : "." + std::string(version.substr(0, slash))) + "/" + name + "\n";
}

void hide_all_managed_fields(json::value& object) {
  hide_managed_fields(object);
  json::value* items = object.is_object() ? object.get_object().if_contains("items") : nullptr;
  if (items && items->is_array())
    for (auto& item : items->get_array()) hide_managed_fields(item);
}

}  // namespace coracle::ctl
