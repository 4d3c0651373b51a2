// SPDX-License-Identifier: Apache-2.0
// scale and autoscale: set the number of pods, or let it follow their usage. See scale.h.
#include "ctl/scale.h"

#include "ctl/create.h"
#include "ctl/generate.h"
#include "ctl/target.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/quantity.h"
#include "store/object/status.h"

namespace coracle::ctl {
namespace {

// A metric's target. `unit` applies to a bare number.
Result<json::value> metric_of(std::string_view resource, std::string_view text, std::string_view unit) {
  auto wrong = [&] {
    return Error(Code::bad_request, "invalid resource " + std::string(resource) + " value: " + std::string(text));
  };
  json::object target;
  if (text.ends_with('%')) {
    auto percent = parse_number<int32_t>(text.substr(0, text.size() - 1));
    if (!percent || *percent < 1) return wrong();
    target = {{"type", "Utilization"}, {"averageUtilization", *percent}};
  } else {
    std::string amount(text);
    if (parse_number<int64_t>(text)) amount += unit;
    auto quantity = Quantity::parse(amount);
    if (!quantity || quantity->negative() || quantity->is_zero()) return wrong();
    target = {{"type", "AverageValue"}, {"averageValue", quantity->text()}};
  }
  return json::value(json::object{{"type", "Resource"}, {"resource", {{"name", resource}, {"target", std::move(target)}}}});
}

}  // namespace

Result<json::value> autoscaler_of(const AutoscaleFlags& flags, std::string_view api_version, std::string_view kind,
                                  const std::string& target) {
  if (flags.max < 1)
    return Error(Code::bad_request, "--max=MAXPODS is required and must be at least 1, max: " + std::to_string(flags.max));
  if (flags.max < flags.min)
    return Error(Code::bad_request, "--max=MAXPODS must be larger or equal to --min=MINPODS, max: " + std::to_string(flags.max) +
                                        ", min: " + std::to_string(flags.min));
  if (flags.cpu_percent > 0 && !flags.cpu.empty())
    return Error(Code::bad_request, "--cpu-percent and --cpu are mutually exclusive");
  const std::string cpu = flags.cpu_percent > 0 ? std::to_string(flags.cpu_percent) + "%" : flags.cpu;
  json::array metrics;
  for (auto [resource, text, unit] : {std::tuple{"cpu", &cpu, "m"}, std::tuple{"memory", &flags.memory, "Mi"}}) {
    if (text->empty()) continue;
    json::value metric = TRY(metric_of(resource, *text, unit));
    metrics.push_back(std::move(metric));
  }
  json::object object = named_object("autoscaling/v2", "HorizontalPodAutoscaler", flags.name.empty() ? target : flags.name);
  json::object spec{{"scaleTargetRef", {{"kind", kind}, {"name", target}, {"apiVersion", api_version}}}};
  if (flags.min > 0) spec["minReplicas"] = flags.min;
  spec["maxReplicas"] = flags.max;
  if (!metrics.empty()) spec["metrics"] = std::move(metrics);
  object["spec"] = std::move(spec);
  object["status"] = json::object{{"desiredReplicas", 0}, {"currentMetrics", nullptr}};
  return json::value(std::move(object));
}

Result<json::value> old_autoscaler_of(const json::value& scaler) {
  json::value old = scaler;
  json::object& object = old.get_object();
  json::object& spec = object["spec"].as_object();
  object["apiVersion"] = "autoscaling/v1";
  object["status"] = json::object{{"currentReplicas", 0}, {"desiredReplicas", 0}};
  for (view::MetricSpec metric : view::HorizontalPodAutoscaler(scaler).spec().metrics()) {
    view::ResourceMetricSource resource = metric.resource();
    if (resource.name() != "cpu" || resource.target().type() != "Utilization")
      return Error(Code::bad_request,
                   "failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1");
    spec["targetCPUUtilizationPercentage"] = resource.target().average_utilization();
  }
  spec.erase("metrics");
  return old;
}

namespace {

constexpr int kScaleTries = 10;

struct ScaleFlags : TargetFlags {
  std::string resource_version, timeout = "0s";
  int64_t replicas = 0, current = -1;
  Recorder recorder;
};

// Looks at the object again when others changed it between reading and writing, as kubectl.
Result<void> send_replicas(Session& session, const ScaleFlags& flags, const Live& live) {
  bool has_condition = flags.current >= 0 || !flags.resource_version.empty();
  json::value object = live.object;
  for (int attempt = 1;; ++attempt) {
    int64_t now = view::Deployment(object).spec().replicas_or(1);  // at the same place in all kinds
    if (flags.current >= 0 && now != flags.current)
      return Error(Code::conflict, "Expected replicas to be " + std::to_string(flags.current) + ", was " + std::to_string(now));
    std::string version(metadata_of(object).resource_version());
    if (!flags.resource_version.empty() && version != flags.resource_version)
      return Error(Code::conflict, "Expected resource version to be " + flags.resource_version + ", was " + version);
    json::value patch(json::object{{"spec", {{"replicas", flags.replicas}}}});
    if (has_condition) make(patch, "metadata.resourceVersion") = version;  // what was checked still holds
    auto sent = send_patch(session, flags, live, patch, kMergePatch, "scale");
    if (sent) return {};
    bool is_late = sent.error().details() && sent.error().code() == Code::conflict && attempt < kScaleTries;
    if (!is_late) return sent.take_error();
    object = TRY(session.json({.path = session.path(*live.kind, live.ns, live.name)}));
  }
}

Result<void> await_replicas(Session& session, const ScaleFlags& flags, const Live& live, std::chrono::milliseconds timeout) {
  auto look = [&](const json::value* object) -> Result<bool> {
    if (!object) return not_found(live.kind->kind, live.name);
    view::Deployment scaled(*object);
    if (scaled.spec().replicas_or(1) != flags.replicas) return true;  // others have scaled it anew
    return scaled.status().replicas() == flags.replicas;
  };
  auto done = wait_until(session, *live.kind, live.ns, live.name, timeout, look);
  if (!done && done.error().code() == Code::timeout && !done.error().details())
    return Error(Code::timeout, "timed out waiting for " + coracle::quoted(live.name) + " to be synced");
  return done;
}

Result<void> scale_one(Session& session, const ScaleFlags& flags, const Live& live, std::chrono::milliseconds timeout) {
  if (!live.kind->subresource("scale"))
    return Error(Code::not_found,
                 "the server could not find the requested resource: " + message_name(*live.kind, live.name) + " has no scale");
  if (flags.dry_run != DryRun::client) TRY(send_replicas(session, flags, live));
  if (timeout.count() > 0 && flags.dry_run == DryRun::none) TRY(await_replicas(session, flags, live, timeout));
  if (flags.recorder.wanted() && flags.dry_run != DryRun::client)  // as kubectl: it was scaled, whatever becomes of this
    (void)send_patch(session, flags, live, flags.recorder.patch(), kMergePatch);
  json::value scaled = live.object;  // the server responds with a Scale
  make(scaled, "spec.replicas") = flags.replicas;
  print_done(flags, live, std::move(scaled), "scaled");
  return {};
}

Result<int> run_scale(Commands& commands, const ScaleFlags& flags, bool given) {
  if (!given) return Error(Code::bad_request, "required flag(s) \"replicas\" not set");
  if (flags.replicas < 0)
    return Error(Code::bad_request, "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0");
  if (flags.current < -1) return Error(Code::bad_request, "The --current-replicas must specify an integer of -1 or greater");
  auto timeout = TRY(parse_timeout(flags.timeout).wrap("--timeout"));
  Session* session = TRY(commands.session());
  Targets targets = TRY(targets_of(*session, flags, flags.args));
  if (targets.found.empty() && targets.missing.empty()) return Error(Code::not_found, "no objects passed to scale");
  if (!flags.resource_version.empty() && targets.found.size() > 1)
    return Error(Code::bad_request, "cannot use --resource-version with multiple resources");
  return act_on(std::move(targets), [&](const Live& live) { return scale_one(*session, flags, live, timeout); });
}

struct AutoscaleCommand : CreateFlags {
  AutoscaleFlags scaler;
  TargetFlags targets;
};

Result<int> run_autoscale(Commands& commands, AutoscaleCommand& flags, bool given) {
  if (!given) return Error(Code::bad_request, "required flag(s) \"max\" not set");
  TRY(autoscaler_of(flags.scaler, "v1", "none", "none"));  // validates the flags first
  flags.save_only_what_is_sent();
  Session* session = TRY(commands.session());
  flags.targets.files = flags.files;
  Targets targets = TRY(targets_of(*session, flags.targets, flags.targets.args));
  if (targets.found.empty() && targets.missing.empty()) return Error(Code::not_found, "no objects passed to autoscale");
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    const auto& kind = live.kind->kind;
    if (!live.kind->subresource("scale"))
      return Error(Code::bad_request, "cannot autoscale a " + std::string(kind.kind) + ": could not find scale subresource for " +
                                          std::string(kind.group) + "/" + std::string(kind.version) +
                                          ", Resource=" + std::string(kind.resource) + " in discovery information");
    json::value scaler = TRY(autoscaler_of(flags.scaler, kind.api_version(), kind.kind, live.name));
    flags.recorder.record(scaler);
    const schema::KindInfo& scalers = *kind_of(scaler);
    auto made = send_new(*session, flags, scaler, scalers);
    if (!made && made.error().code() == Code::not_found) {  // Kubernetes before 1.23
      json::value old = TRY(old_autoscaler_of(scaler));
      made = send_new(*session, flags, old, *kind_of(old));
    }
    json::value created = TRY(std::move(made));
    print_outcome(flags.output, flags.dry_run, std::move(created), scalers,
                  flags.dry_run == DryRun::client ? "created" : "autoscaled", JsonOrder::given);
    return {};
  });
}

}  // namespace

void add_scale(Commands& commands) {
  auto flags = std::make_shared<ScaleFlags>();
  Command scale = commands.add("scale", "Set the number of replicas");
  flags->field_manager = "kubectl";  // as kubectl scale, which sets no other
  flags->add_to(commands, scale);
  Flag replicas = scale.add_option("--replicas", flags->replicas, "how many");
  scale.add_option("--current-replicas", flags->current, "only when there are this many now");
  scale.add_option("--resource-version", flags->resource_version, "only when it is at this version");
  scale.add_option("--timeout", flags->timeout, "wait until there are as many; 0s: do not").as_duration();
  flags->recorder.add_to(commands, scale);
  commands.on(scale, [&commands, flags, replicas] { return run_scale(commands, *flags, replicas.count() > 0); });

  auto scaler = std::make_shared<AutoscaleCommand>();
  scaler->field_manager = "kubectl-autoscale";
  Command autoscale = commands.add("autoscale", "Let the number of replicas follow what the pods use");
  autoscale.add_option("args", scaler->targets.args, "KIND NAME or KIND/NAME");
  scaler->files.add_to(autoscale);
  scaler->add_to(commands, autoscale);
  scaler->recorder.add_to(commands, autoscale);
  autoscale.add_option("--min", scaler->scaler.min, "no fewer pods than this");
  Flag max = autoscale.add_option("--max", scaler->scaler.max, "no more pods than this");
  autoscale.add_option("--cpu", scaler->scaler.cpu, "the average to aim at: 70% of the request, or an amount as 500m");
  autoscale.add_option("--memory", scaler->scaler.memory, "the average to aim at: 70% of the request, or an amount as 200Mi");
  Flag percent = autoscale.add_option("--cpu-percent", scaler->scaler.cpu_percent, "as --cpu in percent");
  autoscale.add_option("--name", scaler->scaler.name, "the autoscaler's name; else that of the object");
  commands.deprecate(
      percent, "Use --cpu with percentage or resource quantity format (e.g., '70%' for utilization or '500m' for milliCPU).");
  commands.on(autoscale, [&commands, scaler, max] { return run_autoscale(commands, *scaler, max.count() > 0); });
}

}  // namespace coracle::ctl
