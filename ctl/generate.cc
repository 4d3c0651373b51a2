// SPDX-License-Identifier: Apache-2.0
// See generate.h.
#include "ctl/generate.h"

#include <algorithm>
#include <array>
#include <map>

#include "ctl/flag_values.h"
#include "runtime/base/json.h"
#include "runtime/base/random.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

constexpr size_t kSuffixLetters = 5;

// "nginx:1.27" → "nginx", "my_app" → "my-app-x8k2p": the default container name for an image, as in kubectl.
std::string container_name(std::string_view image) {
  image.remove_prefix(image.rfind('/') + 1);  // npos + 1 is 0
  std::string name(image.substr(0, image.find_first_of(":@")));
  if (name.find_first_of("_.") == name.npos) return name;
  std::ranges::replace_if(
      name, [](char c) { return c == '_' || c == '.'; }, '-');
  return name + "-" + random_suffix();
}

json::object container_of(const std::string& name, const std::string& image, const std::vector<std::string>& command) {
  json::object container{{"name", name}, {"image", image}};
  if (!command.empty()) container["command"] = json::value_from(command);
  return container;
}

}  // namespace

std::string random_suffix() {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::array<uint8_t, kSuffixLetters> bytes{};
  fill_random(bytes);
  std::string text;
  for (uint8_t byte : bytes) text += kLetters[byte % kLetters.size()];
  return text;
}

json::object named_object(std::string_view api_version, std::string_view kind, const std::string& name) {
  return {{"kind", kind}, {"apiVersion", api_version}, {"metadata", {{"name", name}}}};
}

void order_metadata(json::value& object) {
  json::object& metadata = make(object, "metadata").get_object();
  json::object ordered(metadata.storage());
  for (std::string_view name : {"name", "generateName", "namespace", "labels", "annotations"})
    if (json::value* field = metadata.if_contains(name)) ordered.emplace(name, *field);
  for (auto& [name, field] : metadata)
    if (!ordered.contains(name)) ordered.emplace(name, field);
  metadata = std::move(ordered);
}

json::value new_namespace(const std::string& name) {
  json::object object = named_object("v1", "Namespace", name);
  object["spec"].emplace_object();
  object["status"].emplace_object();
  return object;
}

json::value deployment_of(const DeploymentFlags& flags) {
  json::array containers;
  for (const std::string& image : flags.images) {
    json::object container = container_of(container_name(image), image, flags.command);
    if (flags.port >= 0 && containers.empty()) container["ports"] = json::array{json::object{{"containerPort", flags.port}}};
    container["resources"].emplace_object();
    containers.push_back(std::move(container));
  }
  json::object labels{{"app", flags.name}}, object = named_object("apps/v1", "Deployment", flags.name);
  object["metadata"].get_object()["labels"] = labels;
  json::object spec{{"replicas", flags.replicas},
                    {"selector", {{"matchLabels", labels}}},
                    {"template", {{"metadata", {{"labels", labels}}}, {"spec", {{"containers", std::move(containers)}}}}}};
  spec["strategy"].emplace_object();
  object["spec"] = std::move(spec);
  object["status"].emplace_object();
  return object;
}

json::value job_of(const JobFlags& flags) {
  bool repeated = !flags.schedule.empty();
  json::object container = container_of(flags.name, flags.image, flags.command), pod_template;
  container["resources"].emplace_object();
  std::string restart = flags.restart.empty() ? (repeated ? "OnFailure" : "Never") : flags.restart;
  pod_template["metadata"].emplace_object();
  pod_template["spec"] = json::object{{"containers", json::array{std::move(container)}}, {"restartPolicy", restart}};
  json::object spec{{"template", std::move(pod_template)}};
  json::object object = named_object("batch/v1", repeated ? "CronJob" : "Job", flags.name);
  if (repeated)
    spec = {{"schedule", flags.schedule}, {"jobTemplate", {{"metadata", {{"name", flags.name}}}, {"spec", std::move(spec)}}}};
  object["spec"] = std::move(spec);
  object["status"].emplace_object();
  return object;
}

json::value job_from(const json::value& cron_job, const std::string& name) {
  json::object object = named_object("batch/v1", "Job", name);
  json::object& metadata = object["metadata"].get_object();
  view::JobTemplateSpec job_template = view::CronJob(cron_job).spec().job_template();
  if (const json::object& labels = job_template.metadata().labels(); !labels.empty()) metadata["labels"] = labels;
  json::object annotations{{"cronjob.kubernetes.io/instantiate", "manual"}};
  for (const auto& [key, value] : job_template.metadata().annotations()) annotations[key] = value;
  metadata["annotations"] = std::move(annotations);
  metadata["ownerReferences"] = json::array{json::object{{"apiVersion", "batch/v1"},
                                                         {"kind", "CronJob"},
                                                         {"name", metadata_of(cron_job).name()},
                                                         {"uid", metadata_of(cron_job).uid()},
                                                         {"controller", true}}};
  object["spec"] = job_template.spec().members();
  object["status"].emplace_object();
  return object;
}

Result<json::value> budget_of(const BudgetFlags& flags) {
  if (flags.selector.empty()) return Error(Code::bad_request, "a selector must be specified");
  if (flags.min_available.empty() && flags.max_unavailable.empty())
    return Error(Code::bad_request, "one of min-available or max-unavailable must be specified");
  if (!flags.min_available.empty() && !flags.max_unavailable.empty())
    return Error(Code::bad_request, "min-available and max-unavailable cannot be both specified");
  auto is_amount = [](std::string_view text) {  // "10", "30%"
    if (text.ends_with('%')) text.remove_suffix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  for (auto [flag, text] :
       {std::pair{"min-available", &flags.min_available}, std::pair{"max-unavailable", &flags.max_unavailable}})
    if (!text->empty() && !is_amount(*text)) return Error(Code::bad_request, std::string("invalid format specified for ") + flag);
  json::object spec;
  if (!flags.min_available.empty()) spec["minAvailable"] = count_or_text(flags.min_available);
  spec["selector"] = TRY(label_selector_of(flags.selector));
  if (!flags.max_unavailable.empty()) spec["maxUnavailable"] = count_or_text(flags.max_unavailable);
  json::object object = named_object("policy/v1", "PodDisruptionBudget", flags.name);
  object["spec"] = std::move(spec);
  object["status"] = json::object{{"disruptionsAllowed", 0}, {"currentHealthy", 0}, {"desiredHealthy", 0}, {"expectedPods", 0}};
  return json::value(std::move(object));
}

Result<json::value> quota_of(const std::string& name, const std::string& hard, const std::string& scopes) {
  json::object object = named_object("v1", "ResourceQuota", name), spec;
  json::object limits = TRY(quantities_of(hard, "Invalid argument syntax "));
  if (!limits.empty()) spec["hard"] = std::move(limits);
  json::array listed;
  for (const std::string& scope : scopes.empty() ? std::vector<std::string>() : split_words(scopes, ',')) {
    if (scope.empty()) return Error(Code::bad_request, "invalid resource quota scope \"\"");
    listed.push_back(json::value(scope));
  }
  if (!listed.empty()) spec["scopes"] = std::move(listed);
  object["spec"] = std::move(spec);
  object["status"].emplace_object();
  return json::value(std::move(object));
}

json::value priority_class_of(const PriorityFlags& flags) {
  json::object object = named_object("scheduling.k8s.io/v1", "PriorityClass", flags.name);
  object["value"] = flags.value;
  if (flags.global_default) object["globalDefault"] = true;
  if (!flags.description.empty()) object["description"] = flags.description;
  object["preemptionPolicy"] = flags.preemption;
  return object;
}

namespace {

// "NAME=VALUE" of --env, in its order.
Result<json::array> variables_of(const std::vector<std::string>& pairs) {
  json::array variables;
  for (const auto& pair : pairs) {
    size_t equals = pair.find('=');
    std::string name = pair.substr(0, equals);
    if (equals == pair.npos || !fault_of_variable(name).empty()) return Error(Code::bad_request, "invalid env: " + pair);
    json::object variable{{"name", name}};
    if (equals + 1 < pair.size()) variable["value"] = pair.substr(equals + 1);
    variables.push_back(std::move(variable));
  }
  return variables;
}

Result<json::object> annotations_of(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> sorted;
  std::vector<std::string> wrong;
  for (const auto& pair : pairs) {
    size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0) wrong.push_back(pair);
    else sorted[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  if (!wrong.empty()) return Error(Code::bad_request, "invalid annotations format: " + join(wrong, ", "));
  json::object annotations;
  for (const auto& [key, value] : sorted) annotations[key] = value;
  return annotations;
}

}  // namespace

Result<json::value> pod_of(const PodFlags& flags) {
  json::object annotations = TRY(annotations_of(flags.annotations));
  json::object labels = TRY(labels_of(flags.labels));
  json::array env = TRY(variables_of(flags.env));
  auto port = parse_number<int32_t>(flags.port);
  if (!flags.port.empty() && !port)
    return Error(Code::bad_request, "strconv.Atoi: parsing " + coracle::quoted(flags.port) + ": invalid syntax");
  json::object container{{"name", flags.name}, {"image", flags.image}};
  if (!flags.words.empty()) container[flags.words_are_command ? "command" : "args"] = json::value_from(flags.words);
  if (!flags.port.empty()) container["ports"] = json::array{json::object{{"containerPort", *port}}};
  if (!env.empty()) container["env"] = std::move(env);
  container["resources"].emplace_object();
  if (!flags.pull_policy.empty()) container["imagePullPolicy"] = flags.pull_policy;
  if (flags.privileged) container["securityContext"] = json::object{{"privileged", true}};
  if (flags.use_stdin) container["stdin"] = true;
  if (flags.stdin_once) container["stdinOnce"] = true;
  if (flags.tty) container["tty"] = true;
  if (labels.empty()) labels["run"] = flags.name;
  json::object object = named_object("v1", "Pod", flags.name);
  object["metadata"].get_object()["labels"] = std::move(labels);
  if (!annotations.empty()) object["metadata"].get_object()["annotations"] = std::move(annotations);
  object["spec"] = json::object{
      {"containers", json::array{std::move(container)}}, {"restartPolicy", flags.restart}, {"dnsPolicy", "ClusterFirst"}};
  object["status"].emplace_object();
  return overridden(std::move(object), flags.overrides, flags.override_type);
}

Result<json::value> overridden(json::value object, const std::string& text, const std::string& type) {
  if (text.empty()) return object;
  if (type != "merge" && type != "json" && type != "strategic") return Error(Code::bad_request, "invalid override type: " + type);
  const schema::KindInfo& kind = *kind_of(object);
  json::value patch = TRY(parse_json(text).wrap("--overrides"));
  if (type == "json") TRY(apply_json_patch(object, patch).wrap("--overrides"));
  else if (type == "merge") apply_merge_patch(object, patch);
  else object = TRY(schema::strategic_merge(kind, std::move(object), patch).wrap("--overrides"));
  if (!object.is_object()) return Error(Code::bad_request, "--overrides: the result is no object");
  return object;
}

}  // namespace coracle::ctl
