// SPDX-License-Identifier: Apache-2.0
// See horizontal_autoscaler_metrics.h.
#include "daemon/controller/autoscaler/horizontal_autoscaler_metrics.h"

#include <algorithm>

#include "daemon/controller/autoscaler/custom_metrics.h"
#include "store/object/quantity.h"
#include "store/object/selector.h"
#include "store/schema/catalog.h"

namespace coracle::controller {
namespace {

constexpr std::chrono::seconds kCustomWindow{60};  // of a custom metric without a window
constexpr std::string_view kCustomGroup = "custom.metrics.k8s.io", kExternalGroup = "external.metrics.k8s.io";
constexpr std::string_view kCustomVersions[] = {"v1beta2", "v1beta1"};

// A *LabelSelector in Go's format, as in Kubernetes' messages.
std::string go_selector(view::LabelSelector selector) {
  if (!selector) return "nil";
  std::string out = "&LabelSelector{MatchLabels:map[string]string{";
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : selector.match_labels())
    if (value.is_string()) labels[std::string(key)] = value.get_string();
  for (const auto& [key, value] : labels) out += key + ": " + value + ",";
  out += "},MatchExpressions:[]LabelSelectorRequirement{";
  for (view::LabelSelectorRequirement term : selector.match_expressions()) {
    out += "LabelSelectorRequirement{Key:" + std::string(term.key()) + ",Operator:" + std::string(term.operator_()) + ",Values:[";
    bool first = true;
    for (std::string_view value : term.values()) {
      if (!std::exchange(first, false)) out += " ";
      out += value;
    }
    out += "],},";
  }
  return out + "},}";
}

Result<std::string> selector_text(view::LabelSelector selector) {
  if (!selector) return std::string();
  LabelSelector parsed = TRY(LabelSelector::from_json(&selector.raw()));
  return parsed.text();
}

int64_t milli_value_or_0(const json::value* quantity) { return quantity ? milli_value_of(*quantity) : 0; }

std::string milli_text(int64_t amount) { return Quantity::of(Millicores(amount)).text(); }

std::chrono::nanoseconds window_of(view::PodMetrics measured) {
  return parse_duration(measured.window()).value_or(std::chrono::nanoseconds(0));
}

// nullopt if one of its containers was not measured.
Result<std::optional<int64_t>> amount_of(const Object& measured, const std::string& resource, const std::string& container) {
  int64_t sum = 0;
  bool found = false;
  for (view::ContainerMetrics one : view::PodMetrics(measured).containers()) {
    if (!container.empty() && one.name() != container) continue;
    found = true;
    std::optional<Quantity> amount = amount_in(one.usage(), resource);
    if (!amount) return std::optional<int64_t>();
    sum += amount->milli_value();
  }
  if (!container.empty() && !found)
    return Error(Code::not_found, "failed to get container metrics: container " + container + " not present in metrics for pod " +
                                      measured.key().text());
  return std::optional(sum);
}

}  // namespace

// ---- requests of metrics ----

const std::vector<ObjectPtr>& AutoscalerMetrics::pods(const std::string& ns) {
  auto known = pods_.find(ns);
  return known == pods_.end() ? pods_.emplace(ns, cache_.list(ns)).first->second : known->second;
}

Result<PodMetrics> AutoscalerMetrics::of_resource(const std::vector<ObjectPtr>& pods, const std::string& resource,
                                                  const std::string& container) {
  TRY(measure(pods).wrap("unable to fetch metrics from resource metrics API"));
  PodMetrics out;
  bool any = false;
  for (const ObjectPtr& pod : pods) {
    auto found = measured_.find(pod->key());
    if (found == measured_.end()) continue;
    any = true;
    auto value = TRY(amount_of(*found->second, resource, container));
    view::PodMetrics measured(*found->second);
    if (value) out[pod->name()] = {*value, parse_time(measured.timestamp()).value_or(WallTime{}), window_of(measured)};
  }
  if (!any) return Error(Code::not_found, "no metrics returned from resource metrics API");
  return out;
}

Result<PodMetrics> AutoscalerMetrics::of_pods(const std::string& ns, std::string_view metric, const std::string& pods,
                                              const std::string& selector) {
  json::value list = TRY(ask_custom("pods", {ns, "*"}, metric, pods, selector));
  PodMetrics out;
  for (const MetricValue& value : metric_values(list))
    out[std::string(value.object)] = {value.milli_value, parse_time(value.timestamp).value_or(WallTime{}),
                                      value.window.value_or(kCustomWindow)};
  if (out.empty()) return Error(Code::not_found, "no metrics returned from custom metrics API");
  return out;
}

Result<int64_t> AutoscalerMetrics::of_object(const std::string& ns, view::CrossVersionObjectReference object,
                                             std::string_view metric, const std::string& selector) {
  std::string kind(object.kind()), name(object.name());
  std::string resource;
  schema::GroupVersion version = schema::split_api_version(object.api_version());
  const schema::CatalogPtr catalog = catalogs_.now();
  for (const schema::KindInfo& info : catalog->kinds())
    if (info.kind.group == version.group && info.kind.kind == kind) resource = info.kind.qualified_resource();
  if (resource.empty())
    return Error(Code::not_found, "no matches for kind \"" + kind + "\" in group \"" + std::string(version.group) + "\"");
  bool namespace_itself = resource == kNamespace.resource;
  json::value list = TRY(ask_custom(resource, {namespace_itself ? "" : ns, name},
                                    (namespace_itself ? "metrics/" : "") + std::string(metric), {}, selector));
  std::vector<MetricValue> values = metric_values(list);
  if (values.empty()) return Error(Code::not_found, "no metrics returned from custom metrics API");
  return values.front().milli_value;
}

Result<int64_t> AutoscalerMetrics::of_outside(const std::string& ns, std::string_view metric, const std::string& selector) {
  Kind kind{kExternalGroup, "v1beta1", "ExternalMetricValueList", metric};
  ReadParameters parameters;
  if (!selector.empty()) parameters.emplace_back("labelSelector", selector);
  auto list = client_.read(kind, {ns, ""}, {}, parameters);
  if (!list) {
    std::string text = list.error().text();
    if (list.error().code() == Code::not_found) text += " (get " + std::string(metric) + "." + std::string(kExternalGroup) + ")";
    return Error(list.error().code(), "unable to fetch metrics from external metrics API: " + text);
  }
  std::vector<MetricValue> values = metric_values(*list);
  if (values.empty()) return Error(Code::not_found, "no metrics returned from external metrics API");
  int64_t sum = 0;
  for (const MetricValue& value : values) sum += value.milli_value;
  return sum;
}

// The first call measures the pods of all targets. A target whose selector has just changed is measured in addition.
Result<void> AutoscalerMetrics::measure(const std::vector<ObjectPtr>& pods) {
  ListOptions options;
  if (!asked_) {
    asked_ = true;
    std::optional<std::vector<Key>> targets = targets_(*this);
    asked_for_all_ = !targets;
    if (asked_for_all_) return ask({});
    for (Key& pod : *targets)
      if (asked_for_.insert(pod).second) options.only.push_back(std::move(pod));
  }
  if (!asked_for_all_)
    for (const ObjectPtr& pod : pods)
      if (asked_for_.insert(pod->key()).second) options.only.push_back(pod->key());
  if (!failure_ && !options.only.empty()) return ask(options);
  return failure_ ? Result<void>(*failure_) : Result<void>();
}

Result<void> AutoscalerMetrics::ask(const ListOptions& options) {
  auto list = client_.list(kPodMetrics, options);
  if (!list) failure_ = list.take_error();
  if (failure_) return *failure_;
  for (ObjectPtr& pod : list->items) measured_[pod->key()] = std::move(pod);
  return {};
}

Result<json::value> AutoscalerMetrics::ask_custom(const std::string& resource, const Key& key, std::string_view metric,
                                                  const std::string& pods, const std::string& selector) {
  ReadParameters parameters;
  if (!pods.empty()) parameters.emplace_back("labelSelector", pods);
  if (!selector.empty()) parameters.emplace_back("metricLabelSelector", selector);
  std::optional<Error> why;
  for (std::string_view version : kCustomVersions) {
    Kind kind{kCustomGroup, version, "MetricValueList", resource, !key.ns.empty()};
    auto list = client_.read(kind, key, metric, parameters);
    if (list) return list;
    why = list.take_error();
    if (why->code() != Code::not_found) break;
  }
  bool nobody = why->code() == Code::not_found && why->text().find("could not find the requested resource") != std::string::npos;
  return Error(why->code(), "unable to fetch metrics from custom metrics API: " +
                                (nobody ? "no custom metrics API (custom.metrics.k8s.io) registered" : why->text()));
}

// ---- one metric of an autoscaler ----

namespace {

json::object identifier_of(view::MetricIdentifier metric) {
  json::object out{{"name", metric.name()}};
  if (const json::value* selector = metric.selector().pointer()) out["selector"] = *selector;
  return out;
}

// `container`: "" for all containers of a pod together.
Result<MetricAnswer> answer_resource(const MetricQuestion& question, std::string_view type, const std::string& resource,
                                     const std::string& container, view::MetricTarget target) {
  bool of_container = type == "ContainerResource", is_cpu = resource == "cpu";
  auto metrics = [&]() -> Result<PodMetrics> {
    auto found = question.metrics.of_resource(question.target.pods, resource, container);
    if (!found)
      return Error(found.error().code(), "unable to get metrics for resource " + resource + ": " + found.error().text());
    return found;
  };
  MetricAnswer out;
  json::object current;
  if (target.has_average_value()) {
    auto propose = [&]() -> Result<Proposal> {
      PodMetrics measured = TRY(metrics());
      return propose_by_average(question.target, std::move(measured), milli_value_or_0(target.average_value()), is_cpu);
    };
    out.proposal = TRY(propose().wrap("failed to get " + resource + " usage"));
    out.name = resource + " resource";
  } else if (target.has_average_utilization()) {
    auto propose = [&]() -> Result<Proposal> {
      PodMetrics measured = TRY(metrics());
      auto requests = TRY(pod_requests(question.target.pods, resource, container));
      return propose_by_utilization(question.target, std::move(measured), requests, target.average_utilization(), is_cpu);
    };
    out.proposal = TRY(propose().wrap("failed to get " + resource + " utilization"));
    out.name = resource + (of_container ? " container" : "") + " resource utilization (percentage of request)";
    current["averageUtilization"] = *out.proposal.utilization;
  } else {
    return Error(
        Code::invalid,
        "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set");
  }
  current["averageValue"] = milli_text(out.proposal.amount);
  json::object status{{"name", resource}, {"current", std::move(current)}};
  if (of_container) status["container"] = container;
  out.status = json::object{{"type", type}, {of_container ? "containerResource" : "resource", std::move(status)}};
  return out;
}

Result<MetricAnswer> answer_pods(const MetricQuestion& question, view::PodsMetricSource source) {
  std::string metric(source.metric().name());
  std::string selector = TRY(selector_text(source.metric().selector()));
  auto measured = question.metrics.of_pods(question.ns, metric, question.pods, selector);
  if (!measured) return Error(measured.error().code(), "unable to get metric " + metric + ": " + measured.error().text());
  MetricAnswer out;
  int64_t aim = milli_value_or_0(source.target().average_value());
  out.proposal = TRY(propose_by_average(question.target, std::move(*measured), aim, false));
  out.name = "pods metric " + metric;
  out.status = json::object{{"type", "Pods"},
                            {"pods", json::object{{"metric", identifier_of(source.metric())},
                                                  {"current", json::object{{"averageValue", milli_text(out.proposal.amount)}}}}}};
  return out;
}

Result<MetricAnswer> answer_object(const MetricQuestion& question, view::ObjectMetricSource source) {
  std::string metric(source.metric().name());
  std::string selector = TRY(selector_text(source.metric().selector()));
  view::CrossVersionObjectReference described = source.described_object();
  view::MetricTarget target = source.target();
  bool by_value = target.type() == "Value" && target.has_value();
  if (!by_value && !target.has_average_value())
    return Error(Code::invalid, "invalid object metric source: neither a value target nor an average value target was set");
  auto measured = question.metrics.of_object(question.ns, described, metric, selector);
  if (!measured) {
    std::string where = " on " + std::string(described.kind()) + " " + question.ns + "/" + std::string(described.name());
    return Error(measured.error().code(), "unable to get metric " + metric + ":" + where + " " + measured.error().text());
  }
  MetricAnswer out;
  if (by_value) out.proposal = TRY(propose_by_value(question.target, *measured, milli_value_or_0(target.value())));
  else out.proposal = propose_per_pod(question.target, *measured, milli_value_or_0(target.average_value()));
  out.name = std::string(described.kind()) + " metric " + metric;
  json::object status{{"metric", identifier_of(source.metric())},
                      {"current", json::object{{by_value ? "value" : "averageValue", milli_text(out.proposal.amount)}}},
                      {"describedObject", described.members()}};
  out.status = json::object{{"type", "Object"}, {"object", std::move(status)}};
  return out;
}

Result<MetricAnswer> answer_external(const MetricQuestion& question, view::ExternalMetricSource source) {
  std::string metric(source.metric().name());
  std::string selector = TRY(selector_text(source.metric().selector()));
  view::MetricTarget target = source.target();
  bool per_pod = target.has_average_value();
  if (!per_pod && !target.has_value())
    return Error(Code::invalid, "invalid external metric source: neither a value target nor an average value target was set");
  std::string shown = go_selector(source.metric().selector());
  auto measured = question.metrics.of_outside(question.ns, metric, selector);
  if (!measured)
    return Error(measured.error().code(),
                 "unable to get external metric " + question.ns + "/" + metric + "/" + shown + ": " + measured.error().text());
  MetricAnswer out;
  if (per_pod) out.proposal = propose_per_pod(question.target, *measured, milli_value_or_0(target.average_value()));
  else out.proposal = TRY(propose_by_value(question.target, *measured, milli_value_or_0(target.value())));
  out.name = "external metric " + metric + "(" + shown + ")";
  out.status = json::object{
      {"type", "External"},
      {"external",
       json::object{{"metric", identifier_of(source.metric())},
                    {"current", json::object{{per_pod ? "averageValue" : "value", milli_text(out.proposal.amount)}}}}}};
  return out;
}

}  // namespace

Result<MetricAnswer> answer_metric(const MetricQuestion& question, view::MetricSpec metric, MetricFailure& failure) {
  std::string_view type = metric.type();
  if (type == "Resource") {
    std::string name(metric.resource().name());
    failure = {"FailedGetResourceMetric", "failed to get " + name + " resource metric value: "};
    return answer_resource(question, type, name, {}, metric.resource().target());
  }
  if (type == "ContainerResource") {
    view::ContainerResourceMetricSource source = metric.container_resource();
    std::string container(source.container());
    failure = {"FailedGetContainerResourceMetric", "failed to get " + container + " container metric value: "};
    return answer_resource(question, type, std::string(source.name()), container, source.target());
  }
  if (type == "Pods") {
    failure = {"FailedGetPodsMetric", "failed to get pods metric value: "};
    return answer_pods(question, metric.pods());
  }
  if (type == "Object") {
    view::ObjectMetricSource source = metric.object();
    bool per_pod = source.target().type() == "AverageValue";
    failure = {"FailedGetObjectMetric",
               "failed to get object metric value: " +
                   (per_pod ? "failed to get " + std::string(source.metric().name()) + " object metric: " : "")};
    return answer_object(question, source);
  }
  if (type == "External") {
    view::ExternalMetricSource source = metric.external();
    std::string name(source.metric().name());
    bool per_pod = source.target().has_average_value();
    failure = {"FailedGetExternalMetric", "failed to get " + name + " external metric value: failed to get " +
                                              (per_pod ? name + " external metric: " : "external metric " + name + ": ")};
    return answer_external(question, source);
  }
  failure = {"InvalidMetricSourceType", ""};
  return Error(Code::invalid, "unknown metric source type \"" + std::string(type) + "\"");
}

}  // namespace coracle::controller
