// SPDX-License-Identifier: Apache-2.0
// set image, resources, serviceaccount, selector, and what they share with env and subject. See set.h, set_command.h.
// Source: kubectl pkg/cmd/set.
#include "ctl/set.h"

#include <algorithm>

#include "ctl/flag_values.h"
#include "ctl/set_command.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/schema/decode.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

json::value* step_into(json::value* from, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) from = from && from->is_object() ? from->as_object().if_contains(key) : nullptr;
  return from;
}

// As kubectl: with the name of Go's type.
Error no_pods(const json::value& object) {
  std::string_view version = api_version_in(object);
  version.remove_prefix(version.rfind('/') + 1);  // npos + 1 is 0
  return Error(Code::bad_request, "the object is not a pod or does not have a pod template: *" + std::string(version) + "." +
                                      std::string(kind_in(object)));
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

bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::vector<std::string_view> parts = split(pattern, '*');
  if (parts.size() == 1) return name == pattern;
  if (!name.starts_with(parts.front())) return false;
  name.remove_prefix(parts.front().size());
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    size_t at = name.find(parts[i]);
    if (at == name.npos) return false;
    name.remove_prefix(at + parts[i].size());
  }
  return name.ends_with(parts.back());
}

Result<size_t> each_container(json::value& object, const std::string& pattern, const std::function<void(json::value&)>& act) {
  json::value* spec = pod_spec_of(object);
  if (!spec) return no_pods(object);
  size_t found = 0;
  for (const char* list : {"containers", "initContainers"}) {
    json::value* containers = step_into(spec, {list});
    if (!containers || !containers->is_array()) continue;
    for (auto& container : containers->as_array()) {
      if (!container.is_object() || !matches_pattern(view::Container(container).name(), pattern)) continue;
      ++found;
      act(container);
    }
  }
  return found;
}

namespace {

std::vector<std::string> container_names(const json::value& object) {
  std::vector<std::string> names;
  json::value copy = object;
  (void)each_container(copy, "*",
                       [&](json::value& one) { names.emplace_back(view::Container(one).name()); });  // called where it has pods
  return names;
}

Error no_container(const json::value& object, const std::string& name) {
  return Error(Code::not_found, "unable to find container named " + name + "; there are: " + join(container_names(object), ", "));
}

}  // namespace

Result<std::vector<Error>> set_images(json::value& object, const std::vector<Change>& changes) {
  std::vector<Error> missing;
  for (const auto& change : changes) {
    if (!change.value) return Error(Code::bad_request, "invalid image format: " + change.key + "-");
    size_t found = 0;
    // A name is no pattern here, but for "*".
    size_t all = TRY(each_container(object, "*", [&](json::value& container) {
      if (change.key != "*" && view::Container(container).name() != change.key) return;
      ++found;
      container.as_object()["image"] = *change.value;
    }));
    if (all == 0 || found == 0) missing.push_back(no_container(object, coracle::quoted(change.key)));
  }
  return missing;
}

Result<void> set_resources(json::value& object, const std::string& containers, const std::string& limits,
                           const std::string& requests) {
  json::object limit = TRY(quantities_of(limits, "Invalid argument syntax "));
  json::object request = TRY(quantities_of(requests, "Invalid argument syntax "));
  size_t found = TRY(each_container(object, containers, [&](json::value& one) {
    for (auto [field, amounts] : {std::pair{"resources.limits", &limit}, std::pair{"resources.requests", &request}}) {
      if (amounts->empty()) continue;
      json::value& into = make(one, field);
      if (!into.is_object()) into.emplace_object();
      for (const auto& [name, amount] : *amounts) into.as_object()[name] = amount;
    }
  }));
  if (found == 0) return no_container(object, containers);
  return {};
}

Result<int> change_all(Commands& commands, const SetFlags& flags, const std::vector<std::string>& args, const ChangeAll& change) {
  if (flags.local && flags.dry_run == DryRun::server)
    return Error(Code::bad_request, "cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
  Session* session = TRY(target_session(commands, flags));
  Targets targets = TRY(targets_of(*session, flags, args));
  if (!change.resource_version.empty() && targets.found.size() + targets.missing.size() > 1)
    return Error(Code::bad_request, "--resource-version may only be used with a single resource");
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    json::value changed = live.object;
    auto edited = change.edit(changed);
    if (!edited && change.names_object &&
        edited.error().code() != Code::not_found)  // as kubectl: "services/web the object is not a pod"
      return Error(edited.error().code(), std::string(flags.local ? live.kind->singular : live.kind->kind.resource) + "/" +
                                              live.name + " " + edited.error().text());
    TRY(std::move(edited));
    flags.recorder.record(changed);
    json::value patch = schema::strategic_diff(*live.kind, live.object, changed);
    bool same = patch.is_object() && patch.get_object().empty();
    if (same && !change.tells_always) return {};  // no output, as kubectl
    if (!change.resource_version.empty()) make(patch, "metadata.resourceVersion") = change.resource_version;
    bool sends = !flags.local && flags.dry_run != DryRun::client && (!same || !change.resource_version.empty());
    if (sends) {
      auto sent = send_patch(*session, flags, live, patch, kStrategicPatch);
      if (!sent && *change.failing) return Error(sent.error().code(), change.failing + sent.error().text());
      changed = TRY(std::move(sent));
    }
    if (flags.local) {  // with the fields that Go's types always have
      schema::Decoded decoded = TRY(schema::decode(live.kind->type(), std::move(changed)));
      changed = std::move(decoded.value);
    }
    print_done(flags, live, std::move(changed), change.done);
    return {};
  });
}

namespace {

Result<int> set_image(Commands& commands, const SetFlags& flags) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  TRY(split_pairs(flags.args, "image", objects, changes));
  for (const auto& change : changes)
    if (!change.value) return Error(Code::bad_request, "invalid image format: " + change.key + "-");
  bool has_objects = !objects.empty() || !flags.files.empty();  // else it is said below that there are none
  if (has_objects && changes.empty()) return Error(Code::bad_request, "at least one image update is required");
  bool all = std::any_of(changes.begin(), changes.end(), [](const Change& change) { return change.key == "*"; });
  if (all && changes.size() > 1)
    return Error(Code::bad_request,
                 "all containers are already specified by *, but saw more than one container_name=container_image pairs");
  std::vector<Error> missing;  // containers; kubectl changes the others
  auto edit = [&](json::value& object) -> Result<void> {
    std::vector<Error> some = TRY(set_images(object, changes));
    for (Error& error : some) missing.push_back(std::move(error));
    return {};
  };
  auto done = change_all(
      commands, flags, objects,
      {.done = "image updated", .edit = edit, .names_object = true, .failing = "failed to patch image update to pod template: "});
  if (missing.empty()) return done;
  for (const Error& error : missing) print_failure(error);
  return done ? Result<int>(1) : std::move(done);
}

struct SetResourcesFlags : SetFlags {
  std::string containers = "*", limits, requests;
};

Result<int> set_amounts(Commands& commands, const SetResourcesFlags& flags) {
  if (flags.limits.empty() && flags.requests.empty())
    return Error(Code::bad_request, "you must specify an update to requests or limits (in the form of --requests/--limits)");
  for (const std::string* amounts : {&flags.limits, &flags.requests}) TRY(quantities_of(*amounts, "Invalid argument syntax "));
  auto edit = [&](json::value& object) { return set_resources(object, flags.containers, flags.limits, flags.requests); };
  return change_all(commands, flags, flags.args,
                    {.done = "resource requirements updated",
                     .edit = edit,
                     .names_object = true,
                     .failing = "failed to patch resources update to pod template "});
}

Result<int> set_account(Commands& commands, const SetFlags& flags) {
  if (flags.args.empty()) return Error(Code::bad_request, "serviceaccount is required");
  std::vector<std::string> objects(flags.args.begin(), flags.args.end() - 1);
  auto edit = [&](json::value& object) -> Result<void> {
    json::value* spec = pod_spec_of(object);
    if (!spec) return no_pods(object);
    spec->as_object()["serviceAccountName"] = flags.args.back();
    spec->as_object().erase("serviceAccount");  // the field's deprecated name, which the server defaults
    return {};
  };
  return change_all(commands, flags, objects,
                    {.done = "serviceaccount updated",
                     .edit = edit,
                     .tells_always = true,
                     .names_object = true,
                     .failing = "failed to patch ServiceAccountName "});
}

// As Go shows it: "[{a In [b c]}]".
std::string requirements_text(const json::array& expressions) {
  std::vector<std::string> all;
  for (const json::value& one : expressions) {
    view::LabelSelectorRequirement requirement(one);
    all.push_back("{" + std::string(requirement.key()) + " " + std::string(requirement.operator_()) + " [" +
                  join(strings(requirement.values()), " ") + "]}");
  }
  return "[" + join(all, " ") + "]";
}

struct SelectorFlags : SetFlags {
  std::string resource_version;
};

Result<int> set_selector(Commands& commands, const SelectorFlags& flags) {
  if (flags.args.empty()) return Error(Code::bad_request, "one selector is required");
  std::vector<std::string> objects(flags.args.begin(), flags.args.end() - 1);
  json::object selector = TRY(label_selector_of(flags.args.back()));
  auto edit = [&](json::value& object) -> Result<void> {
    if (kind_in(object) != "Service") return Error(Code::bad_request, "setting a selector is only supported for Services");
    if (const json::value* expressions = selector.if_contains("matchExpressions"))
      return Error(Code::bad_request,
                   "match expression " + requirements_text(expressions->get_array()) + " not supported on this object");
    const json::value* labels = selector.if_contains("matchLabels");
    make(object, "spec.selector") = labels ? *labels : json::value(json::object());
    return {};
  };
  return change_all(commands, flags, objects,
                    {.done = "selector updated", .edit = edit, .tells_always = true, .resource_version = flags.resource_version});
}

}  // namespace

void add_set(Commands& commands) {
  Command set = commands.add("set", "Set parts of objects");
  set.require_command();
  auto image_flags = std::make_shared<SetFlags>();
  Command image = commands.add("image", "Images of containers: KIND/NAME CONTAINER=IMAGE", set);
  image_flags->add_to(commands, image);
  image_flags->recorder.add_to(commands, image);
  commands.on(image, [&commands, image_flags] { return set_image(commands, *image_flags); });

  add_set_env(commands, set);

  auto resources_flags = std::make_shared<SetResourcesFlags>();
  Command resources = commands.add("resources", "What containers may use and ask for: KIND/NAME --limits=cpu=1,memory=1Gi", set);
  resources_flags->add_to(commands, resources);
  resources_flags->recorder.add_to(commands, resources);
  resources.add_option("-c,--containers", resources_flags->containers, "only these containers; * stands for any letters");
  resources.add_option("--limits", resources_flags->limits, "cpu=200m,memory=512Mi");
  resources.add_option("--requests", resources_flags->requests, "cpu=100m,memory=256Mi");
  commands.on(resources, [&commands, resources_flags] { return set_amounts(commands, *resources_flags); });

  auto account_flags = std::make_shared<SetFlags>();
  Command account = commands.add("serviceaccount", "Whom the pods are: KIND/NAME ACCOUNT", set).alias("sa");
  account_flags->add_to(commands, account);
  account_flags->recorder.add_to(commands, account);
  commands.on(account, [&commands, account_flags] { return set_account(commands, *account_flags); });

  auto selector_flags = std::make_shared<SelectorFlags>();
  selector_flags->files.recursive = true;  // as in kubectl
  Command selector = commands.add("selector", "Which pods a Service stands for: service/NAME KEY=VALUE,...", set);
  selector_flags->add_to(commands, selector);
  selector_flags->recorder.add_to(commands, selector);
  selector.add_option("--resource-version", selector_flags->resource_version, "only when the object is at this version");
  commands.on(selector, [&commands, selector_flags] { return set_selector(commands, *selector_flags); });

  add_set_subject(commands, set);
}

}  // namespace coracle::ctl
