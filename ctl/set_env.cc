// SPDX-License-Identifier: Apache-2.0
// set env: the environment of containers. See set.h. Source: kubectl pkg/cmd/set/set_env.go, env/env_parse.go,
// env/env_resolve.go.
#include <algorithm>
#include <cstdio>
#include <map>

#include "ctl/escape.h"
#include "ctl/flag_values.h"
#include "ctl/set.h"
#include "ctl/set_command.h"
#include "runtime/base/text.h"
#include "store/client/exec_credential.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/quantity.h"

namespace coracle::ctl {
namespace {

const json::value* variable_named(const json::array& env, std::string_view name) {
  auto found = std::find_if(env.begin(), env.end(), [&](const json::value& one) { return view::EnvVar(one).name() == name; });
  return found == env.end() ? nullptr : &*found;
}

// The variables of a container with the changes. Those that are there keep their places.
json::array changed_env(const json::array& existing, const json::array& variables, const std::vector<std::string>& removed) {
  json::array env;
  std::vector<std::string> done = removed;
  auto is_done = [&](const std::string& name) { return std::find(done.begin(), done.end(), name) != done.end(); };
  for (const json::array* list : {&existing, &variables})
    for (const json::value& variable : *list) {
      std::string name(view::EnvVar(variable).name());
      if (is_done(name)) continue;
      const json::value* newer = variable_named(variables, name);
      env.push_back(newer ? *newer : variable);
      if (newer) done.push_back(name);
    }
  return env;
}

std::string reference_text(view::EnvVarSource from) {
  if (view::ConfigMapKeySelector key = from.config_map_key_ref())
    return "configmap " + std::string(key.name()) + ", key " + std::string(key.key());
  if (view::SecretKeySelector key = from.secret_key_ref())
    return "secret " + std::string(key.name()) + ", key " + std::string(key.key());
  if (from.has_field_ref()) return "field path " + std::string(from.field_ref().field_path());
  view::ResourceFieldSelector reference = from.resource_field_ref();
  if (!reference) return "invalid valueFrom";
  std::string container(reference.container_name());
  return "resource field " + (container.empty() ? "" : container + "/") + std::string(reference.resource());
}

std::string map_lines(const json::object& map) {  // as a volume of the downward API has it
  std::map<std::string, std::string> sorted;
  for (const auto& [key, value] : map)
    if (value.is_string()) sorted[std::string(key)] = std::string(value.get_string());
  std::vector<std::string> lines;
  for (const auto& [key, value] : sorted) lines.push_back(key + "=" + coracle::quoted(value));
  return join(lines, "\n");
}

Result<std::string> value_of_path(const json::value& object, const std::string& path) {
  view::ObjectMeta metadata = metadata_of(object);
  for (auto [whole, map] : {std::pair(std::string("metadata.annotations"), &metadata.annotations()),
                            std::pair(std::string("metadata.labels"), &metadata.labels())}) {
    const json::object& entries = *map;
    if (path == whole) return map_lines(entries);
    if (!path.starts_with(whole + "['") || !path.ends_with("']")) continue;
    const json::value* entry = entries.if_contains(path.substr(whole.size() + 2, path.size() - whole.size() - 4));
    return std::string(entry && entry->is_string() ? std::string_view(entry->get_string()) : "");
  }
  if (path == "metadata.name") return std::string(metadata.name());
  if (path == "metadata.namespace") return std::string(metadata.namespace_());
  if (path == "metadata.uid") return std::string(metadata.uid());
  return Error(Code::bad_request, "unsupported fieldPath: " + path);
}

Result<std::string> value_of_resource(view::Container container, view::ResourceFieldSelector reference) {
  std::string resource(reference.resource());
  size_t dot = std::min(resource.find('.'), resource.size());
  std::string list = resource.substr(0, dot), name = resource.substr(std::min(dot + 1, resource.size()));
  bool known = (list == "limits" || list == "requests") &&
               (name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-"));
  if (!known) return Error(Code::bad_request, "Unsupported container resource : " + resource);
  view::ResourceRequirements resources = container.resources();
  const json::value* amount = (list == "limits" ? resources.limits() : resources.requests()).if_contains(name);
  const json::value* divisor_text = reference.divisor();
  Quantity quantity, divisor;
  if (amount) quantity = TRY(Quantity::from_json(*amount));
  if (divisor_text) divisor = TRY(Quantity::from_json(*divisor_text));
  if (divisor.is_zero()) divisor = Quantity::of_count(1);
  auto units = [&](const Quantity& of) { return name == "cpu" ? of.milli_value() : of.value(); };
  int64_t whole = units(quantity), part = std::max<int64_t>(1, units(divisor));
  return std::to_string(whole / part + (whole % part > 0 ? 1 : 0));
}

}  // namespace

std::string variable_of_key(std::string_view key) {
  std::string name;
  for (char c : key)
    name += c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  return name;
}

json::array env_of(const EnvFrom& from) {
  json::array env;
  for (const auto& key : from.keys) {
    json::object reference{{"name", from.name}, {"key", key}}, source;
    source[from.kind == "secret" ? "secretKeyRef" : "configMapKeyRef"] = std::move(reference);
    env.push_back(json::object{{"name", variable_of_key(key)}, {"valueFrom", std::move(source)}});
  }
  return env;
}

Result<size_t> set_env(json::value& object, const std::string& containers, const json::array& variables,
                       const std::vector<std::string>& removed, bool overwrite) {
  std::string refused;
  auto check = [&](const json::value& container) {
    for (const json::value& variable : variables) {
      view::EnvVar wanted(variable);
      const json::value* now = variable_named(view::Container(container).env().raw(), wanted.name());
      if (now && refused.empty() && view::EnvVar(*now).value() != wanted.value())
        refused = "'" + std::string(wanted.name()) + "' already has a value (" + std::string(view::EnvVar(*now).value()) +
                  "), and --overwrite is false";
    }
  };
  if (!overwrite) TRY(each_container(object, containers, check));
  if (!refused.empty()) return Error(Code::conflict, refused);
  return each_container(object, containers, [&](json::value& container) {
    json::array env = changed_env(view::Container(container).env().raw(), variables, removed);
    if (env.empty()) container.as_object().erase("env");
    else container.as_object()["env"] = std::move(env);
  });
}

EnvText env_text(const json::value& object, const std::string& containers, const ValueOfReference& value_of) {
  EnvText shown;
  json::value copy = object;
  auto show = [&](json::value& container) {
    std::map<std::string, std::vector<std::string>> faults;  // by what is wrong
    shown.text += "# " + std::string(kind_in(object)) + " " + std::string(metadata_of(object).name()) + ", container " +
                  std::string(view::Container(container).name()) + "\n";
    for (view::EnvVar variable : view::Container(container).env()) {
      view::EnvVarSource from = variable.value_from();
      std::string name(variable.name());
      auto value = from && value_of ? value_of(from.raw(), container) : Result<std::string>(std::string(variable.value()));
      bool is_reference = from && (!value_of || !value);
      shown.text += is_reference ? "# " + name + " from " + reference_text(from) + "\n" : name + "=" + *value + "\n";
      if (!value) faults[value.error().text()].push_back(name);
    }
    for (const auto& [fault, names] : faults)
      shown.faults.push_back("error retrieving reference for " + join(names, ", ") + ": " + fault);
  };
  (void)each_container(copy, containers, show);  // an object without pods has no environment
  return shown;
}

Result<std::string> value_of_field(const json::value& object, const json::value& container, const json::value& from) {
  view::EnvVarSource source(from);
  if (source.has_field_ref()) return value_of_path(object, std::string(source.field_ref().field_path()));
  if (view::ResourceFieldSelector reference = source.resource_field_ref())
    return value_of_resource(view::Container(container), reference);
  return Error(Code::bad_request, "invalid valueFrom");
}

namespace {

struct EnvFlags : SetFlags {
  std::vector<std::string> env, keys;
  std::string containers = "*", from, prefix;
  bool list = false, resolve = false;
  EnvFlags() { overwrite = true; }
};

struct EnvChanges {
  json::array variables;
  std::vector<std::string> removed;
};

// The lines of standard input: NAME=VALUE, and comments behind #.
json::array variables_of_input() {
  keep_input_from_plugins();
  std::string text;
  char buffer[4096];
  while (size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, got);
  json::array variables;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = line.substr(0, line.find('#'));
    size_t equals = line.find('=');
    if (equals != line.npos)
      variables.push_back(json::object{{"name", line.substr(0, equals)}, {"value", line.substr(equals + 1)}});
  }
  return variables;
}

Result<EnvChanges> env_changes(const std::vector<std::string>& specs) {
  EnvChanges changes;
  std::vector<std::string> set;
  for (const std::string& spec : specs) {
    size_t equals = spec.find('=');
    if (spec == "-") {
      for (json::value& variable : variables_of_input()) changes.variables.push_back(std::move(variable));
    } else if (equals != spec.npos) {
      std::string name = spec.substr(0, equals), fault = fault_of_variable(name);
      if (!fault.empty()) return Error(Code::bad_request, coracle::quoted(name) + " is not a valid key name: " + fault);
      set.push_back(name);
      changes.variables.push_back(json::object{{"name", name}, {"value", spec.substr(equals + 1)}});
    } else if (spec.ends_with('-')) {
      changes.removed.push_back(spec.substr(0, spec.size() - 1));
    } else {
      return Error(Code::bad_request, "unknown environment variable: " + spec);
    }
  }
  for (const auto& name : changes.removed)
    if (std::find(set.begin(), set.end(), name) != set.end())
      return Error(Code::bad_request, "can not both modify and remove the same environment variable in the same command");
  return changes;
}

// Divides the arguments: the first change ends the names of objects.
Result<void> split_env(const std::vector<std::string>& args, std::vector<std::string>& objects, std::vector<std::string>& specs) {
  for (const auto& arg : args) {
    size_t equals = arg.find('=', 1);
    bool is_change = (!arg.empty() && equals != arg.npos) || arg.ends_with('-');
    if (!is_change && !specs.empty())
      return Error(Code::bad_request, "all resources must be specified before environment changes: " + join(args, " "));
    (is_change ? specs : objects).push_back(arg);
  }
  return {};
}

// The keys of the ConfigMap or Secret in --from: all, or those in --keys.
Result<json::array> env_from(Session& session, const EnvFlags& flags) {
  if (flags.from.empty()) return json::array();
  std::vector<Named> named = TRY(parse_named({flags.from}));
  const Named& one = named.front();
  if (one.name.empty() || !(one.kind->kind == kConfigMap || one.kind->kind == kSecret))
    return Error(Code::bad_request, "unsupported resource specified in --from: " + coracle::quoted(flags.from) +
                                        ", expected configmap/NAME or secret/NAME");
  json::value object = TRY(session.json({.path = session.path(*one.kind, session.ns(), one.name)}));
  EnvFrom from{std::string(one.kind->singular), one.name, {}};
  // Both kinds have their entries at the same place.
  for (const auto& [key, value] : view::ConfigMap(object).data())
    if (flags.keys.empty() || std::find(flags.keys.begin(), flags.keys.end(), std::string_view(key)) != flags.keys.end())
      from.keys.emplace_back(key);
  std::sort(from.keys.begin(), from.keys.end());
  for (const auto& key : from.keys)
    if (std::string name = variable_of_key(key); name != key) tell("Warning: key " + key + " transferred to " + name + "\n");
  return env_of(from);
}

// Reads what valueFrom refers to, each ConfigMap and Secret once.
class References {
 public:
  References(Session& session, std::string ns) : session_(session), ns_(std::move(ns)) {}

  Result<std::string> value_of(const json::value& object, const json::value& container, const json::value& from) {
    view::EnvVarSource source(from);
    if (view::ConfigMapKeySelector reference = source.config_map_key_ref())
      return value_of_key(schema::catalog().of(kConfigMap), "config map", reference);
    if (view::SecretKeySelector reference = source.secret_key_ref())
      return value_of_key(schema::catalog().of(kSecret), "secret", reference);
    return value_of_field(object, container, from);
  }

 private:
  template <typename Reference>
  Result<std::string> value_of_key(const schema::KindInfo& kind, const std::string& called, Reference reference) {
    std::string name(reference.name()), key(reference.key());
    std::string path = session_.path(kind, ns_, name);
    if (!read_.contains(path)) {
      json::value object = TRY(session_.json({.path = path}));
      read_[path] = std::move(object);
    }
    const json::value* value = view::ConfigMap(read_[path]).data().if_contains(key);
    if (!value || !value->is_string()) return Error(Code::not_found, "key " + key + " not found in " + called + " " + name);
    if (kind.kind == kSecret) return base64_decode(value->get_string());
    return std::string(value->get_string());
  }

  Session& session_;
  std::string ns_;
  std::map<std::string, json::value> read_;
};

Result<void> list_env(Session& session, const EnvFlags& flags, const Live& live, const json::value& changed) {
  References references(session, live.ns.empty() ? session.ns() : live.ns);
  ValueOfReference value_of;
  if (flags.resolve)
    value_of = [&](const json::value& from, const json::value& container) {
      return references.value_of(changed, container, from);
    };
  EnvText shown = env_text(changed, flags.containers, value_of);
  out(visible_lines(shown.text));
  for (const auto& fault : shown.faults) tell(fault + "\n");
  return {};
}

Result<void> check_env_flags(const EnvFlags& flags, const std::vector<std::string>& objects) {
  if (flags.all && !flags.selector.empty()) return Error(Code::bad_request, "cannot set --all and --selector at the same time");
  if (flags.local && flags.dry_run == DryRun::server)
    return Error(Code::bad_request, "cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
  if (objects.empty() && flags.files.empty())
    return Error(Code::bad_request, "one or more resources must be specified as <resource> <name> or <resource>/<name>");
  if (flags.list && !flags.output.empty()) return Error(Code::bad_request, "--list and --output may not be specified together");
  if (!flags.keys.empty() && flags.from.empty())
    return Error(Code::bad_request, "when specifying --keys, a configmap or secret must be provided with --from");
  return {};
}

Result<int> set_environment(Commands& commands, const EnvFlags& flags) {
  std::vector<std::string> objects, specs, words;
  TRY(split_env(flags.args, objects, words));
  TRY(check_env_flags(flags, objects));
  specs = flags.env;
  specs.insert(specs.end(), words.begin(), words.end());
  EnvChanges changes = TRY(env_changes(specs));
  Session* session = TRY(target_session(commands, flags));
  json::array from = TRY(env_from(*session, flags));
  for (json::value& variable : from) changes.variables.push_back(std::move(variable));
  for (json::value& variable : changes.variables)
    variable.get_object()["name"] = flags.prefix + std::string(view::EnvVar(variable).name());
  auto edit = [&](json::value& object) -> Result<void> {
    size_t found = TRY(set_env(object, flags.containers, changes.variables, changes.removed, flags.overwrite));
    if (found == 0)
      tell("Warning: " + std::string(kind_in(object)) + "/" + std::string(metadata_of(object).name()) +
           " does not have any containers matching " + coracle::quoted(flags.containers) + "\n");
    return {};
  };
  if (flags.list) {
    Targets targets = TRY(targets_of(*session, flags, objects));
    return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
      json::value changed = live.object;
      TRY(edit(changed));
      return list_env(*session, flags, live, changed);
    });
  }
  if (changes.variables.empty() && changes.removed.empty() && flags.from.empty())
    return Error(Code::bad_request, "at least one environment variable must be provided");
  return change_all(
      commands, flags, objects,
      {.done = "env updated", .edit = edit, .names_object = true, .failing = "failed to patch env update to pod template: "});
}

}  // namespace

void add_set_env(Commands& commands, Command set) {
  auto flags = std::make_shared<EnvFlags>();
  Command env = commands.add("env", "Environment of containers: KIND/NAME NAME=VALUE NAME-", set);
  flags->add_to(commands, env);
  env.add_option("-c,--containers", flags->containers, "only these containers; * stands for any letters");
  env.add_option("-e,--env", flags->env, "NAME=VALUE; - for lines of standard input");
  env.add_option("--from", flags->from, "configmap/NAME or secret/NAME: a variable for each key");
  env.add_option("--keys", flags->keys, "with --from: only these").delimiter(',');
  env.add_option("--prefix", flags->prefix, "in front of each name");
  env.add_flag("--overwrite", flags->overwrite, "replace values that are there (--overwrite=false: do not)");
  env.add_flag("--list", flags->list, "show it");
  env.add_flag("--resolve", flags->resolve, "with --list: show the values that references have");
  commands.on(env, [&commands, flags] { return set_environment(commands, *flags); });
}

}  // namespace coracle::ctl
