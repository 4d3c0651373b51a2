// SPDX-License-Identifier: Apache-2.0
// set image, env, resources, serviceaccount, selector. The object is changed here, and the difference is sent as a patch; a dry
// run prints the same result. See set.h.
#include "ctl/set.h"

#include <algorithm>

#include "ctl/escape.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

constexpr const char* kContainerLists[] = {"containers", "initContainers"};

// Calls `act` for the containers named `name` ("" or "*": all). Errors: not_found, with the names that exist.
Result<void> each_container(json::value& object, const std::string& name, bool init_too,
                            const std::function<void(json::value&)>& act) {
  json::value* spec = pod_spec_of(object);
  bool all = name.empty() || name == "*", known = all;
  std::vector<std::string> names;
  for (const char* list : kContainerLists) {
    json::value* containers = spec && spec->is_object() ? spec->as_object().if_contains(list) : nullptr;
    if (!containers || !containers->is_array()) continue;
    for (auto& container : containers->as_array()) {
      if (!container.is_object()) continue;
      names.emplace_back(get_string(container, "name"));
      if (all ? list != kContainerLists[0] && !init_too : names.back() != name) continue;
      known = true;
      act(container);
    }
  }
  if (!known)
    return Error(Code::not_found,
                 "unable to find container named " + coracle::quoted(name) + "; there are: " + join(names, ", "));
  return {};
}

json::value* step_into(json::value* from, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) from = from && from->is_object() ? from->as_object().if_contains(key) : nullptr;
  return from;
}

void put_variable(json::array& env, json::value variable) {
  std::string name(get_string(variable, "name"));
  auto found = std::find_if(env.begin(), env.end(), [&](const json::value& one) { return get_string(one, "name") == name; });
  if (found == env.end()) env.push_back(std::move(variable));
  else *found = std::move(variable);
}

Result<json::object> quantities_of(const std::string& text, const char* flag) {
  json::object amounts;
  if (text.empty()) return amounts;
  for (std::string_view pair : split(text, ',')) {
    size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0)
      return Error(Code::bad_request, "invalid argument syntax " + std::string(pair) + ", expected <resource>=<value>");
    Quantity amount = TRY(Quantity::parse(pair.substr(equals + 1)).wrap(flag));
    amounts[pair.substr(0, equals)] = amount.text();
  }
  return amounts;
}

std::string source_text(const json::value& from) {
  if (const json::value* key = find(from, "configMapKeyRef"))
    return "configmap " + std::string(get_string(*key, "name")) + ", key " + std::string(get_string(*key, "key"));
  if (const json::value* key = find(from, "secretKeyRef"))
    return "secret " + std::string(get_string(*key, "name")) + ", key " + std::string(get_string(*key, "key"));
  if (find(from, "fieldRef")) return "field path " + std::string(get_string(from, "fieldRef.fieldPath"));
  return "resource " + std::string(get_string(from, "resourceFieldRef.resource"));
}

}  // namespace

json::value* pod_spec_of(json::value& object) {
  json::value* spec = step_into(&object, {"spec", "jobTemplate", "spec", "template", "spec"});
  if (spec && spec->is_object()) return spec;
  spec = step_into(&object, {"spec", "template", "spec"});
  if (spec && spec->is_object()) return spec;
  spec = step_into(&object, {"spec"});
  return step_into(spec, {"containers"}) ? spec : nullptr;
}

Result<void> set_images(json::value& object, const std::vector<Change>& changes) {
  for (const auto& change : changes) {
    if (!change.value) return Error(Code::bad_request, "expected CONTAINER=IMAGE, got " + coracle::quoted(change.key + "-"));
    TRY(each_container(object, change.key, true,
                       [&](json::value& container) { container.as_object()["image"] = *change.value; }));
  }
  return {};
}

json::array env_of(const EnvFrom& from) {
  json::array env;
  for (const auto& key : from.keys) {
    std::string name = from.prefix;
    for (char c : key)
      name += c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
    json::object reference{{"name", from.name}, {"key", key}}, source;
    source[from.kind == "secret" ? "secretKeyRef" : "configMapKeyRef"] = std::move(reference);
    env.push_back(json::object{{"name", name}, {"valueFrom", std::move(source)}});
  }
  return env;
}

Result<void> set_env(json::value& object, const std::string& container, const std::vector<Change>& changes,
                     const json::array& from, bool overwrite) {
  std::string taken;
  TRY(each_container(object, container, false, [&](json::value& one) {
    json::array env = get_array(one, "env");
    auto has = [&](std::string_view name) {
      return std::any_of(env.begin(), env.end(), [&](const json::value& entry) { return get_string(entry, "name") == name; });
    };
    for (const auto& variable : from) put_variable(env, variable);
    for (const auto& change : changes) {
      if (change.value && !overwrite && has(change.key)) taken = change.key;
      if (change.value) put_variable(env, json::object{{"name", change.key}, {"value", *change.value}});
      else
        env.erase(std::remove_if(env.begin(), env.end(),
                                 [&](const json::value& entry) { return get_string(entry, "name") == change.key; }),
                  env.end());
    }
    if (env.empty()) one.as_object().erase("env");
    else one.as_object()["env"] = std::move(env);
  }));
  if (!taken.empty()) return Error(Code::conflict, "'" + taken + "' already has a value, and --overwrite is false");
  return {};
}

std::string env_text(const json::value& object) {
  std::string text;
  json::value copy = object;
  (void)each_container(copy, "", false, [&](json::value& container) {  // all containers: never not_found
    text += "# " + std::string(get_string(object, "kind")) + " " + std::string(get_string(object, "metadata.name")) +
            ", container " + std::string(get_string(container, "name")) + "\n";
    for (const auto& entry : get_array(container, "env")) {
      const json::value* from = find(entry, "valueFrom");
      std::string name(get_string(entry, "name"));
      text +=
          from ? "# " + name + " from " + source_text(*from) + "\n" : name + "=" + std::string(get_string(entry, "value")) + "\n";
    }
  });
  return text;
}

Result<void> set_resources(json::value& object, const std::string& container, const std::string& limits,
                           const std::string& requests) {
  json::object limit = TRY(quantities_of(limits, "--limits")), request = TRY(quantities_of(requests, "--requests"));
  return each_container(object, container, false, [&](json::value& one) {
    for (auto [field, amounts] : {std::pair{"resources.limits", &limit}, std::pair{"resources.requests", &request}}) {
      if (amounts->empty()) continue;
      json::value& into = make(one, field);
      if (!into.is_object()) into.emplace_object();
      for (const auto& [name, amount] : *amounts) into.as_object()[name] = amount;
    }
  });
}

namespace {

struct SetFlags : TargetFlags {
  std::vector<std::string> env, keys;
  std::string container, from, prefix, limits, requests;
  bool list = false, overwrite = true;
};

using Edit = std::function<Result<void>(json::value& object)>;

Result<int> change_all(Commands& commands, const SetFlags& flags, const std::vector<std::string>& args, const char* done,
                       const Edit& edit) {
  if (flags.local && flags.dry_run == DryRun::server)
    return Error(Code::bad_request, "cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
  Session* session = TRY(commands.session());
  Targets targets = TRY(targets_of(*session, flags, args));
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    json::value changed = live.object;
    TRY(edit(changed));
    json::value patch = schema::strategic_diff(*live.kind, live.object, changed);
    bool same = patch.is_object() && patch.get_object().empty();
    if (same && flags.output.empty()) return {};  // no output, as kubectl
    if (!same && !flags.local && flags.dry_run != DryRun::client)
      changed = TRY(send_patch(*session, flags, live, patch, kStrategicPatch));
    print_done(flags, live, std::move(changed), done);
    return {};
  });
}

Result<int> set_image(Commands& commands, const SetFlags& flags) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  split_changes(flags.args, objects, changes);
  if (changes.empty()) return Error(Code::bad_request, "at least one image update is required");
  return change_all(commands, flags, objects, "image updated", [&](json::value& object) { return set_images(object, changes); });
}

// The keys of the ConfigMap or Secret in --from: all, or those in --keys.
Result<json::array> env_from(Session& session, const SetFlags& flags) {
  if (flags.from.empty()) return json::array();
  std::vector<Named> named = TRY(parse_named({flags.from}));
  const Named& one = named.front();
  if (one.name.empty() || !(one.kind->kind == kConfigMap || one.kind->kind == kSecret))
    return Error(Code::bad_request, "unsupported resource specified in --from: " + coracle::quoted(flags.from) +
                                        ", expected configmap/NAME or secret/NAME");
  json::value object = TRY(session.json({.path = session.path(*one.kind, session.ns(), one.name)}));
  EnvFrom from{std::string(one.kind->singular), one.name, flags.prefix, {}};
  for (const auto& [key, value] : get_object(object, "data"))
    if (flags.keys.empty() || std::find(flags.keys.begin(), flags.keys.end(), std::string_view(key)) != flags.keys.end())
      from.keys.emplace_back(key);
  std::sort(from.keys.begin(), from.keys.end());
  return env_of(from);
}

Result<int> set_environment(Commands& commands, const SetFlags& flags) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  split_changes(flags.args, objects, changes);
  for (const auto& pair : flags.env) {
    std::vector<std::string> rest = {"-"};  // so that KEY- counts as a change
    split_changes({pair}, rest, changes);
  }
  Session* session = TRY(commands.session());
  if (flags.list) {
    Targets targets = TRY(targets_of(*session, flags, objects));
    return act_on(std::move(targets),
                  [](const Live& live) -> Result<void> { return out(visible_lines(env_text(live.object))), Result<void>(); });
  }
  json::array from = TRY(env_from(*session, flags));
  if (changes.empty() && from.empty()) return Error(Code::bad_request, "at least one environment variable must be provided");
  return change_all(commands, flags, objects, "env updated",
                    [&](json::value& object) { return set_env(object, flags.container, changes, from, flags.overwrite); });
}

Result<int> set_amounts(Commands& commands, const SetFlags& flags) {
  if (flags.limits.empty() && flags.requests.empty())
    return Error(Code::bad_request, "you must specify an update to requests or limits (in the form of --requests/--limits)");
  return change_all(commands, flags, flags.args, "resource requirements updated",
                    [&](json::value& object) { return set_resources(object, flags.container, flags.limits, flags.requests); });
}

Result<int> set_account(Commands& commands, const SetFlags& flags) {
  if (flags.args.empty()) return Error(Code::bad_request, "serviceaccount is required");
  std::vector<std::string> objects(flags.args.begin(), flags.args.end() - 1);
  return change_all(commands, flags, objects, "serviceaccount updated", [&](json::value& object) -> Result<void> {
    json::value* spec = pod_spec_of(object);
    if (!spec) return Error(Code::bad_request, "there are no pods that could have a service account");
    spec->as_object()["serviceAccountName"] = flags.args.back();
    spec->as_object().erase("serviceAccount");  // the field's deprecated name, which the server defaults
    return {};
  });
}

Result<int> set_selector(Commands& commands, const SetFlags& flags) {
  if (flags.args.empty()) return Error(Code::bad_request, "one or more selectors must be specified: KIND NAME KEY=VALUE,...");
  std::vector<std::string> objects(flags.args.begin(), flags.args.end() - 1), rest;
  std::vector<Change> labels;
  for (std::string_view pair : split(flags.args.back(), ',')) split_changes({std::string(pair)}, rest, labels);
  if (!rest.empty()) return Error(Code::bad_request, "expected KEY=VALUE, got " + coracle::quoted(rest.front()));
  return change_all(commands, flags, objects, "selector updated", [&](json::value& object) -> Result<void> {
    if (get_string(object, "kind") != "Service")
      return Error(Code::bad_request, "setting a selector is only supported for Services");
    json::object selector;
    for (const auto& label : labels) selector[label.key] = *label.value;
    make(object, "spec.selector") = std::move(selector);
    return {};
  });
}

}  // namespace

void add_set(Commands& commands) {
  Command set = commands.add("set", "Set parts of objects");
  set.require_command();
  auto add = [&](const char* word, const char* description, Result<int> (*run)(Commands&, const SetFlags&)) {
    auto flags = std::make_shared<SetFlags>();
    flags->field_manager = "kubectl-set";
    Command command = commands.add(word, description, set);
    flags->add_to(commands, command);
    command.add_flag("--local", flags->local, "of the files, without asking the server");
    commands.on(command, [&commands, flags, run] { return run(commands, *flags); });
    return std::pair(command, flags);
  };
  add("image", "Images of containers: KIND/NAME CONTAINER=IMAGE", set_image);
  auto [env, env_flags] = add("env", "Environment of containers: KIND/NAME NAME=VALUE NAME-", set_environment);
  env.add_option("-c,--containers", env_flags->container, "only this container");
  env.add_option("-e,--env", env_flags->env, "NAME=VALUE");
  env.add_option("--from", env_flags->from, "configmap/NAME or secret/NAME: a variable for each key");
  env.add_option("--keys", env_flags->keys, "with --from: only these").delimiter(',');
  env.add_option("--prefix", env_flags->prefix, "with --from: in front of each name");
  env.add_flag("--overwrite", env_flags->overwrite, "replace values that are there (--overwrite=false: do not)");
  env.add_flag("--list", env_flags->list, "show it");
  auto [resources, resources_flags] =
      add("resources", "What containers may use and ask for: KIND/NAME --limits=cpu=1,memory=1Gi", set_amounts);
  resources.add_option("-c,--containers", resources_flags->container, "only this container");
  resources.add_option("--limits", resources_flags->limits, "cpu=200m,memory=512Mi");
  resources.add_option("--requests", resources_flags->requests, "cpu=100m,memory=256Mi");
  add("serviceaccount", "Whom the pods are: KIND/NAME ACCOUNT", set_account).first.alias("sa");
  add("selector", "Which pods a Service stands for: service/NAME KEY=VALUE,...", set_selector);
}

}  // namespace coracle::ctl
