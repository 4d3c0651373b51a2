// SPDX-License-Identifier: Apache-2.0
// See horizontal_autoscaler_metrics.h.
#include "daemon/controller/autoscaler/horizontal_autoscaler_metrics.h"

#include <algorithm>

#include "store/object/quantity.h"
#include "store/object/selector.h"
#include "store/schema/catalog.h"

namespace coracle::controller {
namespace {

constexpr std::chrono::seconds kCustomWindow{60};  // of a custom metric without a window
constexpr std::string_view kCustomGroup = "custom.metrics.k8s.io", kExternalGroup = "external.metrics.k8s.io";
constexpr std::string_view kCustomVersions[] = {"v1beta2", "v1beta1"};

// A *LabelSelector in Go's format, as in Kubernetes' messages.
std::string go_selector(const json::value* selector) {
  if (!selector || !selector->is_object()) return "nil";
  std::string out = "&LabelSelector{MatchLabels:map[string]string{";
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : get_object(*selector, "matchLabels"))
    if (value.is_string()) labels[std::string(key)] = value.get_string();
  for (const auto& [key, value] : labels) out += key + ": " + value + ",";
  out += "},MatchExpressions:[]LabelSelectorRequirement{";
  for (const json::value& term : get_array(*selector, "matchExpressions")) {
    out += "LabelSelectorRequirement{Key:" + std::string(get_string(term, "key")) +
           ",Operator:" + std::string(get_string(term, "operator")) + ",Values:[";
    bool first = true;
    for (const json::value& value : get_array(term, "values")) {
      if (!std::exchange(first, false)) out += " ";
      if (value.is_string()) out += std::string_view(value.get_string());
    }
    out += "],},";
  }
  return out + "},}";
}

Result<std::string> selector_text(const json::value* selector) {
  if (!selector || !selector->is_object()) return std::string();
  LabelSelector parsed = TRY(LabelSelector::from_json(selector));
  return parsed.text();
}

int64_t milli_value_at(const json::value& holder, std::string_view name) {
  const json::value* quantity = find(holder, name);
  return quantity ? milli_value_of(*quantity) : 0;
}

std::string milli_text(int64_t amount) { return Quantity::of(Millicores(amount)).text(); }

std::chrono::nanoseconds window_of(const Object& measured) {
  return parse_duration(get_string(measured.json(), "window")).value_or(std::chrono::nanoseconds(0));
}

// nullopt if one of its containers was not measured.
Result<std::optional<int64_t>> amount_of(const Object& measured, const std::string& resource, const std::string& container) {
  int64_t sum = 0;
  bool found = false;
  for (const json::value& one : get_array(measured.json(), "containers")) {
    if (!container.empty() && get_string(one, "name") != container) continue;
    found = true;
    const json::value* used = find_keys(one, {"usage", resource});
    auto amount = used ? Quantity::from_json(*used) : Quantity();
    if (!used || !amount) return std::optional<int64_t>();
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
    if (value)
      out[pod->name()] = {*value, parse_time(get_string(found->second->json(), "timestamp")).value_or(WallTime{}),
                          window_of(*found->second)};
  }
  if (!any) return Error(Code::not_found, "no metrics returned from resource metrics API");
  return out;
}

Result<PodMetrics> AutoscalerMetrics::of_pods(const std::string& ns, std::string_view metric, const std::string& pods,
                                              const std::string& selector) {
  json::value list = TRY(ask_custom("pods", {ns, "*"}, metric, pods, selector));
  PodMetrics out;
  for (const json::value& item : get_array(list, "items")) {
    std::chrono::seconds window = find(item, "windowSeconds") ? bounded_seconds(get_int(item, "windowSeconds")) : kCustomWindow;
    out[std::string(get_string(item, "describedObject.name"))] = {
        milli_value_at(item, "value"), parse_time(get_string(item, "timestamp")).value_or(WallTime{}), window};
  }
  if (out.empty()) return Error(Code::not_found, "no metrics returned from custom metrics API");
  return out;
}

Result<int64_t> AutoscalerMetrics::of_object(const std::string& ns, const json::value& object, std::string_view metric,
                                             const std::string& selector) {
  std::string kind(get_string(object, "kind")), name(get_string(object, "name"));
  std::string resource;
  schema::GroupVersion version = schema::split_api_version(get_string(object, "apiVersion"));
  const schema::CatalogPtr catalog = catalogs_.now();
  for (const schema::KindInfo& info : catalog->kinds())
    if (info.kind.group == version.group && info.kind.kind == kind) resource = info.kind.qualified_resource();
  if (resource.empty())
    return Error(Code::not_found, "no matches for kind \"" + kind + "\" in group \"" + std::string(version.group) + "\"");
  bool namespace_itself = resource == kNamespace.resource;
  json::value list = TRY(ask_custom(resource, {namespace_itself ? "" : ns, name},
                                    (namespace_itself ? "metrics/" : "") + std::string(metric), {}, selector));
  const json::array& items = get_array(list, "items");
  if (items.empty()) return Error(Code::not_found, "no metrics returned from custom metrics API");
  return milli_value_at(items.front(), "value");
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
  const json::array& items = get_array(*list, "items");
  if (items.empty()) return Error(Code::not_found, "no metrics returned from external metrics API");
  int64_t sum = 0;
  for (const json::value& item : items) sum += milli_value_at(item, "value");
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

json::object identifier_of(const json::value& source) {
  json::object out{{"name", get_string(source, "metric.name")}};
  if (const json::value* selector = find(source, "metric.selector")) out["selector"] = *selector;
  return out;
}

Result<MetricAnswer> answer_resource(const MetricQuestion& question, const json::value& source, std::string_view type) {
  std::string resource(get_string(source, "name")), container(get_string(source, "container"));
  bool of_container = type == "ContainerResource", is_cpu = resource == "cpu";
  auto metrics = [&]() -> Result<PodMetrics> {
    auto found = question.metrics.of_resource(question.target.pods, resource, container);
    if (!found)
      return Error(found.error().code(), "unable to get metrics for resource " + resource + ": " + found.error().text());
    return found;
  };
  MetricAnswer out;
  json::object current;
  if (find(source, "target.averageValue")) {
    auto propose = [&]() -> Result<Proposal> {
      PodMetrics measured = TRY(metrics());
      return propose_by_average(question.target, std::move(measured), milli_value_at(source, "target.averageValue"), is_cpu);
    };
    out.proposal = TRY(propose().wrap("failed to get " + resource + " usage"));
    out.name = resource + " resource";
  } else if (find(source, "target.averageUtilization")) {
    auto propose = [&]() -> Result<Proposal> {
      PodMetrics measured = TRY(metrics());
      auto requests = TRY(pod_requests(question.target.pods, resource, container));
      return propose_by_utilization(question.target, std::move(measured), requests, get_int(source, "target.averageUtilization"),
                                    is_cpu);
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

Result<MetricAnswer> answer_pods(const MetricQuestion& question, const json::value& source) {
  std::string metric(get_string(source, "metric.name"));
  std::string selector = TRY(selector_text(find(source, "metric.selector")));
  auto measured = question.metrics.of_pods(question.ns, metric, question.pods, selector);
  if (!measured) return Error(measured.error().code(), "unable to get metric " + metric + ": " + measured.error().text());
  MetricAnswer out;
  out.proposal =
      TRY(propose_by_average(question.target, std::move(*measured), milli_value_at(source, "target.averageValue"), false));
  out.name = "pods metric " + metric;
  out.status = json::object{{"type", "Pods"},
                            {"pods", json::object{{"metric", identifier_of(source)},
                                                  {"current", json::object{{"averageValue", milli_text(out.proposal.amount)}}}}}};
  return out;
}

Result<MetricAnswer> answer_object(const MetricQuestion& question, const json::value& source) {
  std::string metric(get_string(source, "metric.name"));
  std::string selector = TRY(selector_text(find(source, "metric.selector")));
  const json::value* object = find(source, "describedObject");
  static const json::value kNothing = json::object();
  const json::value& described = object ? *object : kNothing;
  bool by_value = get_string(source, "target.type") == "Value" && find(source, "target.value");
  if (!by_value && !find(source, "target.averageValue"))
    return Error(Code::invalid, "invalid object metric source: neither a value target nor an average value target was set");
  auto measured = question.metrics.of_object(question.ns, described, metric, selector);
  if (!measured) {
    std::string where = " on " + std::string(get_string(described, "kind")) + " " + question.ns + "/" +
                        std::string(get_string(described, "name"));
    return Error(measured.error().code(), "unable to get metric " + metric + ":" + where + " " + measured.error().text());
  }
  MetricAnswer out;
  if (by_value) out.proposal = TRY(propose_by_value(question.target, *measured, milli_value_at(source, "target.value")));
  else out.proposal = propose_per_pod(question.target, *measured, milli_value_at(source, "target.averageValue"));
  out.name = std::string(get_string(described, "kind")) + " metric " + metric;
  json::object status{{"metric", identifier_of(source)},
                      {"current", json::object{{by_value ? "value" : "averageValue", milli_text(out.proposal.amount)}}},
                      {"describedObject", described}};
  out.status = json::object{{"type", "Object"}, {"object", std::move(status)}};
  return out;
}

Result<MetricAnswer> answer_external(const MetricQuestion& question, const json::value& source) {
  std::string metric(get_string(source, "metric.name"));
  std::string selector = TRY(selector_text(find(source, "metric.selector")));
  bool per_pod = find(source, "target.averageValue");
  if (!per_pod && !find(source, "target.value"))
    return Error(Code::invalid, "invalid external metric source: neither a value target nor an average value target was set");
  std::string shown = go_selector(find(source, "metric.selector"));
  auto measured = question.metrics.of_outside(question.ns, metric, selector);
  if (!measured)
    return Error(measured.error().code(),
                 "unable to get external metric " + question.ns + "/" + metric + "/" + shown + ": " + measured.error().text());
  MetricAnswer out;
  if (per_pod) out.proposal = propose_per_pod(question.target, *measured, milli_value_at(source, "target.averageValue"));
  else out.proposal = TRY(propose_by_value(question.target, *measured, milli_value_at(source, "target.value")));
  out.name = "external metric " + metric + "(" + shown + ")";
  out.status = json::object{
      {"type", "External"},
      {"external",
       json::object{{"metric", identifier_of(source)},
                    {"current", json::object{{per_pod ? "averageValue" : "value", milli_text(out.proposal.amount)}}}}}};
  return out;
}

}  // namespace

Result<MetricAnswer> answer_metric(const MetricQuestion& question, const json::value& metric, MetricFailure& failure) {
  std::string_view type = get_string(metric, "type");
  static const json::value kNothing = json::object();
  auto source = [&](std::string_view member) -> const json::value& {
    const json::value* found = find(metric, member);
    return found ? *found : kNothing;
  };
  auto name = [&](std::string_view path) { return std::string(get_string(metric, path)); };
  if (type == "Resource") {
    failure = {"FailedGetResourceMetric", "failed to get " + name("resource.name") + " resource metric value: "};
    return answer_resource(question, source("resource"), type);
  }
  if (type == "ContainerResource") {
    failure = {"FailedGetContainerResourceMetric",
               "failed to get " + name("containerResource.container") + " container metric value: "};
    return answer_resource(question, source("containerResource"), type);
  }
  if (type == "Pods") {
    failure = {"FailedGetPodsMetric", "failed to get pods metric value: "};
    return answer_pods(question, source("pods"));
  }
  if (type == "Object") {
    bool per_pod = name("object.target.type") == "AverageValue";
    failure = {"FailedGetObjectMetric", "failed to get object metric value: " +
                                            (per_pod ? "failed to get " + name("object.metric.name") + " object metric: " : "")};
    return answer_object(question, source("object"));
  }
  if (type == "External") {
    std::string metric_name = name("external.metric.name");
    bool per_pod = find(metric, "external.target.averageValue");
    failure = {"FailedGetExternalMetric",
               "failed to get " + metric_name + " external metric value: failed to get " +
                   (per_pod ? metric_name + " external metric: " : "external metric " + metric_name + ": ")};
    return answer_external(question, source("external"));
  }
  failure = {"InvalidMetricSourceType", ""};
  return Error(Code::invalid, "unknown metric source type \"" + std::string(type) + "\"");
}

}  // namespace coracle::controller
