// SPDX-License-Identifier: Apache-2.0
// How describe shows pods and pod templates. See describe.h.
#include <algorithm>
#include <ctime>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "ctl/last_applied.h"
#include "ctl/pods.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/quantity.h"
#include "store/schema/table.h"
#include "store/schema/views.h"

namespace coracle::ctl {
namespace {

constexpr size_t kAnnotationMax = 140;                                   // characters per line
constexpr std::string_view kNoTime = "Mon, 01 Jan 0001 00:00:00 +0000";  // Go's time 0

std::string indent(size_t level) { return std::string(2 * level, ' '); }

std::vector<std::string> sorted_keys(const json::object& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

void put_lines(std::string& text, size_t level, std::string_view title, view::Range<std::string_view> words) {
  if (words.empty()) return;
  text += indent(level) + std::string(title) + ":\n";
  for (std::string_view word : words)
    for (std::string_view line : split(word, '\n')) text += indent(level + 1) + std::string(line) + "\n";
}

std::string port_text(view::ContainerPort port, int64_t number) {
  std::string name(port.name());
  return std::to_string(number) + "/" + or_else(port.protocol(), "TCP") + (name.empty() ? "" : " (" + name + ")");
}

void put_ports(std::string& text, view::Range<view::ContainerPort> ports) {
  std::vector<std::string> inside, of_host;
  for (view::ContainerPort port : ports) {
    inside.push_back(port_text(port, port.container_port()));
    of_host.push_back(port_text(port, port.host_port()));
  }
  bool several = ports.size() > 1;
  put(text, 2, several ? "Ports" : "Port", or_else(join(inside, ", "), "<none>"));
  put(text, 2, several ? "Host Ports" : "Host Port", or_else(join(of_host, ", "), "<none>"));
}

void put_state(std::string& text, std::string_view name, view::ContainerState state) {
  if (view::ContainerStateRunning running = state.running()) {
    put(text, 2, name, "Running");
    put(text, 3, "Started", time_text(running.started_at()));
    return;
  }
  view::ContainerStateTerminated ended = state.terminated();
  put(text, 2, name, ended ? "Terminated" : "Waiting");
  std::string_view reason = ended ? ended.reason() : state.waiting().reason();
  if (!reason.empty()) put(text, 3, "Reason", reason);
  if (!ended) return;
  if (!ended.message().empty()) put(text, 3, "Message", ended.message());
  put(text, 3, "Exit Code", std::to_string(ended.exit_code()));
  if (ended.signal() > 0) put(text, 3, "Signal", std::to_string(ended.signal()));
  put(text, 3, "Started", or_else(time_text(ended.started_at()), kNoTime));
  put(text, 3, "Finished", or_else(time_text(ended.finished_at()), kNoTime));
}

std::string upper_hex(char c) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  auto byte = static_cast<unsigned char>(c);
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

// As Go's net/url writes a path.
std::string url_path(const std::string& path) {
  constexpr std::string_view kKept = "/-_.~$&+,:;=@";
  std::string out = path.empty() || path.starts_with('/') ? "" : "/";
  for (char c : path) {
    bool kept = std::isalnum(static_cast<unsigned char>(c)) || kKept.find(c) != kKept.npos;
    out += kept ? std::string(1, c) : "%" + upper_hex(c);
  }
  return out;
}

// As a URL has it before a port.
std::string host_text(std::string_view host) {
  return host.find_first_of(":%") == host.npos ? std::string(host) : "[" + std::string(host) + "]";
}

std::string probe_text(view::Probe probe) {
  std::string times =
      " delay=" + std::to_string(probe.initial_delay_seconds()) + "s timeout=" + std::to_string(probe.timeout_seconds_or(1)) +
      "s period=" + std::to_string(probe.period_seconds_or(10)) + "s #success=" + std::to_string(probe.success_threshold_or(1)) +
      " #failure=" + std::to_string(probe.failure_threshold_or(3));
  if (view::ExecAction exec = probe.exec()) return "exec [" + join(strings(exec.command()), " ") + "]" + times;
  if (view::HTTPGetAction get = probe.http_get())
    return "http-get " + to_lower(or_else(get.scheme(), "HTTP")) + "://" + host_text(get.host()) + ":" +
           text_of_value(get.port()) + url_path(std::string(get.path())) + times;
  if (view::TCPSocketAction socket = probe.tcp_socket())
    return "tcp-socket " + std::string(socket.host()) + ":" + text_of_value(socket.port()) + times;
  if (view::GRPCAction grpc = probe.grpc())
    return "grpc <pod>:" + (grpc.has_port() ? std::to_string(grpc.port()) : "") + " " + std::string(grpc.service()) + times;
  return "unknown" + times;
}

const char* flag_text(bool flag) { return flag ? "true" : "false"; }

void put_env_from(std::string& text, view::Range<view::EnvFromSource> sources) {
  if (sources.empty()) return;
  text += indent(2) + "Environment Variables from:\n";
  for (view::EnvFromSource source : sources) {
    view::ConfigMapEnvSource map = source.config_map_ref();
    view::SecretEnvSource secret = source.secret_ref();
    std::string prefix(source.prefix());
    text += indent(3) + std::string(map ? map.name() : secret.name()) + "\t" + (map ? "ConfigMap" : "Secret") +
            (prefix.empty() ? "" : " with prefix '" + prefix + "'") +
            "\tOptional: " + flag_text(map ? map.optional() : secret.optional()) + "\n";
  }
}

// The value of a reference such as "limits.cpu" in the container, in whole units of the divisor.
std::string container_amount(view::Container container, view::ResourceFieldSelector reference) {
  std::string_view resource = reference.resource(), list = resource.substr(0, resource.find('.'));
  const json::value* given = nullptr;
  if (list == "limits" || list == "requests") {
    view::ResourceRequirements resources = container.resources();
    const json::object& amounts = list == "limits" ? resources.limits() : resources.requests();
    given = amounts.if_contains(resource.substr(std::min(list.size() + 1, resource.size())));
  }
  auto amount = Quantity::parse(or_else(text_of_value(given), "0")),
       divisor = Quantity::parse(or_else(text_of_value(reference.divisor()), "0"));
  if (!amount || !divisor) return {};  // kubectl prints nothing for a malformed one
  bool cpu = resource.ends_with(".cpu");
  int64_t whole = cpu ? amount->milli_value() : amount->value();
  int64_t unit = divisor->is_zero() ? (cpu ? 1000 : 1) : std::max<int64_t>(1, cpu ? divisor->milli_value() : divisor->value());
  return std::to_string((whole + unit - 1) / unit);
}

// What a variable gets from the pod's metadata; kubectl looks at no other fields.
std::string pod_field(view::Pod pod, std::string_view path) {
  view::ObjectMeta metadata = pod.metadata();
  if (path == "metadata.name") return std::string(metadata.name());
  if (path == "metadata.namespace") return std::string(metadata.namespace_());
  if (path == "metadata.uid") return std::string(metadata.uid());
  for (auto [head, map] : {std::pair(std::string_view("metadata.labels['"), &metadata.labels()),
                           std::pair(std::string_view("metadata.annotations['"), &metadata.annotations())}) {
    if (!path.starts_with(head) || !path.ends_with("']")) continue;
    return text_of_value(map->if_contains(path.substr(head.size(), path.size() - head.size() - 2)));
  }
  return {};
}

std::string key_text(std::string_view key, std::string_view place, std::string_view name, bool optional) {
  return "<set to the key '" + std::string(key) + "' " + std::string(place) + " '" + std::string(name) +
         "'>\tOptional: " + flag_text(optional);
}

// `pod`: absent for a pod template.
std::string variable_text(view::Pod pod, view::Container container, view::EnvVarSource from) {
  if (view::ObjectFieldSelector field = from.field_ref()) {
    std::string path(field.field_path());
    return (pod ? pod_field(pod, path) : "") + " (" + or_else(field.api_version(), "v1") + ":" + path + ")";
  }
  if (view::ResourceFieldSelector amount = from.resource_field_ref()) {
    std::string value = container_amount(container, amount), resource(amount.resource());
    bool unlimited = value == "0" && (resource == "limits.cpu" || resource == "limits.memory");
    return (unlimited ? "node allocatable" : value) + " (" + resource + ")";
  }
  if (view::SecretKeySelector key = from.secret_key_ref()) return key_text(key.key(), "in secret", key.name(), key.optional());
  if (view::ConfigMapKeySelector key = from.config_map_key_ref())
    return key_text(key.key(), "of config map", key.name(), key.optional());
  return {};
}

void put_env(std::string& text, view::Pod pod, view::Container container) {
  view::Range<view::EnvVar> env = container.env();
  text += indent(2) + (env.empty() ? "Environment:\t<none>\n" : "Environment:\n");
  for (view::EnvVar entry : env) {
    if (view::EnvVarSource from = entry.value_from()) {
      bool is_told = from.has_field_ref() || from.has_resource_field_ref() || from.has_secret_key_ref() ||
                     from.has_config_map_key_ref();  // and of no file, as kubectl
      if (is_told) put(text, 3, entry.name(), variable_text(pod, container, from));
      continue;
    }
    bool first = true;
    for (std::string_view line : split(entry.value(), '\n'))
      text += indent(3) + (std::exchange(first, false) ? std::string(entry.name()) + ":" : "") + "\t" + std::string(line) + "\n";
  }
}

// The views of a list, sorted by a field.
template <typename View, typename Field>
std::vector<View> sorted_by(view::Range<View> list, Field field) {
  std::vector<View> sorted(list.begin(), list.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&](View a, View b) { return (a.*field)() < (b.*field)(); });
  return sorted;
}

void put_mounts(std::string& text, view::Container container) {
  std::vector<view::VolumeMount> mounts = sorted_by(container.volume_mounts(), &view::VolumeMount::mount_path);
  text += indent(2) + (mounts.empty() ? "Mounts:\t<none>\n" : "Mounts:\n");
  for (view::VolumeMount mount : mounts) {
    std::string path(mount.sub_path());
    text += indent(3) + std::string(mount.mount_path()) + " from " + std::string(mount.name()) +
            (mount.read_only() ? " (ro" : " (rw") + (path.empty() ? "" : ",path=" + coracle::quoted(path)) + ")\n";
  }
  std::vector<std::string> devices;
  for (view::VolumeDevice device : container.volume_devices())
    devices.push_back(std::string(device.device_path()) + " from " + std::string(device.name()));
  std::sort(devices.begin(), devices.end());
  if (!devices.empty()) text += indent(2) + (mounts.empty() ? "Devices:\t<none>\n" : "Devices:\n");
  for (const auto& device : devices) text += indent(3) + device + "\n";
}

void put_resources(std::string& text, size_t level, view::ResourceRequirements resources) {
  for (auto [amounts, label] : {std::pair{&resources.limits(), "Limits"}, std::pair{&resources.requests(), "Requests"}}) {
    if (!amounts->empty()) text += indent(level) + label + ":\n";
    for (const auto& key : sorted_keys(*amounts)) put(text, level + 1, key, amount_text(&amounts->at(key)));
  }
}

void put_seccomp(std::string& text, size_t level, view::SeccompProfile profile, size_t local_level) {
  if (!profile.type().empty()) put(text, level, "SeccompProfile", profile.type());
  if (profile.type() == "Localhost") put(text, local_level, "LocalhostProfile", profile.localhost_profile());
}

void put_status(std::string& text, view::ContainerStatus status) {
  put_state(text, "State", status.state());
  if (status.last_state().has_terminated()) put_state(text, "Last State", status.last_state());
  put(text, 2, "Ready", status.ready() ? "True" : "False");
  put(text, 2, "Restart Count", std::to_string(status.restart_count()));
}

// `pod`: the pod that owns the containers, with `statuses`; absent for a pod template.
void put_containers(std::string& text, view::Pod pod, std::string_view title, const json::array& containers,
                    view::Range<view::ContainerStatus> statuses) {
  std::string_view space = pod ? "" : "  ";
  text.append(space).append(title).append(containers.empty() ? ": <none>\n" : ":\n");
  for (const json::value& one : containers) {
    view::Container container(one);  // debug containers have the same fields
    view::ContainerStatus status;    // absent if there is none
    for (view::ContainerStatus each : statuses)
      if (!status && each.name() == container.name()) status = each;
    text += indent(1) + (space.empty() ? "" : " ") + std::string(container.name()) + ":\n";
    if (status) put(text, 2, "Container ID", status.container_id());
    put(text, 2, "Image", container.image());
    if (status) put(text, 2, "Image ID", status.image_id());
    put_ports(text, container.ports());
    put_seccomp(text, 2, container.security_context().seccomp_profile(), 3);
    put_lines(text, 2, "Command", container.command());
    put_lines(text, 2, "Args", container.args());
    if (status) put_status(text, status);
    put_resources(text, 2, container.resources());
    for (auto [probe, label] :
         {std::pair{container.liveness_probe(), "Liveness"}, std::pair{container.readiness_probe(), "Readiness"},
          std::pair{container.startup_probe(), "Startup"}})
      if (probe) put(text, 2, label, probe_text(probe));
    put_env_from(text, container.env_from());
    put_env(text, pod, container);
    put_mounts(text, container);
  }
}

void put_volumes(std::string& text, std::string_view space, view::Range<view::Volume> volumes) {
  text.append(space).append(volumes.empty() ? "Volumes:\t<none>\n" : "Volumes:\n");
  for (view::Volume volume : volumes) {
    text += indent(1) + (space.empty() ? "" : " ") + std::string(volume.name()) + ":\n";
    put_volume_source(text, volume.raw(), false);
  }
}

std::string toleration_text(view::Toleration toleration) {
  std::string text(toleration.key()), value(toleration.value()), effect(toleration.effect());
  if (!value.empty()) text += "=" + value;
  if (!effect.empty()) text += ":" + effect;
  if (toleration.operator_() == "Exists" && value.empty()) text += text.empty() ? "op=Exists" : " op=Exists";
  if (toleration.has_toleration_seconds()) text += " for " + std::to_string(toleration.toleration_seconds()) + "s";
  return text;
}

void put_tolerations(std::string& text, std::string_view name, view::Range<view::Toleration> tolerations) {
  if (tolerations.empty()) return put(text, 0, name, "<none>");
  bool first = true;
  for (view::Toleration toleration : sorted_by(tolerations, &view::Toleration::key))
    text += (std::exchange(first, false) ? std::string(name) + ":" : "") + "\t" + toleration_text(toleration) + "\n";
}

void put_spread(std::string& text, std::string_view space, view::Range<view::TopologySpreadConstraint> constraints) {
  if (constraints.empty()) return;
  text.append(space).append("Topology Spread Constraints:");
  bool first = true;
  for (view::TopologySpreadConstraint constraint : sorted_by(constraints, &view::TopologySpreadConstraint::topology_key)) {
    text.append(std::exchange(first, false) ? "" : space).append("\t").append(constraint.topology_key()).append(":");
    text.append(constraint.when_unsatisfiable()).append(" when max skew ");
    text += (constraint.has_max_skew() ? std::to_string(constraint.max_skew()) : "") + " is exceeded";
    if (view::LabelSelector selector = constraint.label_selector()) text += " for selector " + selector_or(selector, "<none>");
    text += "\n";
  }
}

void put_group(std::string& text, std::string_view space, view::PodSchedulingGroup group) {
  if (!group) return;
  text.append(space).append("SchedulingGroup:\n");
  put(text, 1, "PodGroupName", group.pod_group_name());
}

// What the annotation coracle.io/after waits for. Like kubectl we show conditions without their messages, and the events of it
// are gone after an hour.
void put_start_order(std::string& text, view::Pod pod) {
  for (view::PodCondition condition : pod.status().conditions())
    if (condition.reason() == "SchedulingGated" && condition.message().starts_with("coracle.io/after: "))
      put(text, 0, "Start Order", condition.message());
}

}  // namespace

void put(std::string& text, size_t level, std::string_view name, std::string_view value) {
  text.append(2 * level, ' ').append(name).append(":\t").append(value).append("\n");
}

void put_name(std::string& text, const json::value& object) {
  view::ObjectMeta metadata = metadata_of(object);
  put(text, 0, "Name", metadata.name());
  if (metadata.has_namespace_()) put(text, 0, "Namespace", metadata.namespace_());
}

void put_marks(std::string& text, const json::value& object) {
  put_labels(text, "Labels", metadata_of(object).labels());
  put_annotations(text, "Annotations", metadata_of(object).annotations());
}

void put_head(std::string& text, const json::value& object) {
  put_name(text, object);
  put_marks(text, object);
}

void put_labels(std::string& text, std::string_view name, const json::object& labels) {
  if (labels.empty()) return put(text, 0, name, "<none>");
  text.append(name).append(":");
  for (const auto& key : sorted_keys(labels)) text += "\t" + key + "=" + jsonpath_text(labels.at(key)) + "\n";
}

void put_annotations(std::string& text, std::string_view name, const json::object& annotations) {
  std::vector<std::string> keys = sorted_keys(annotations);
  std::erase(keys, kLastApplied);
  if (keys.empty()) return put(text, 0, name, "<none>");
  text.append(name).append(":");
  for (const auto& key : keys) {
    std::string value = jsonpath_text(annotations.at(key));
    if (value.ends_with('\n')) value.pop_back();
    if (value.find('\n') == value.npos && key.size() + value.size() + 2 <= kAnnotationMax) {
      text += "\t" + key + ": " + value + "\n";
      continue;
    }
    text += "\t" + key + ":\n";
    for (std::string_view line : split(value, '\n'))
      text += "\t  " + std::string(line.substr(0, kAnnotationMax - 2)) + (line.size() > kAnnotationMax - 2 ? "..." : "") + "\n";
  }
}

void put_conditions(std::string& text, const json::value& object, bool with_message) {
  view::Range<view::Condition> conditions = conditions_of(object);
  if (conditions.empty()) return;
  text += with_message ? "Conditions:\n  Type\tStatus\tReason\tMessage\n  ----\t------\t------\t-------\n"
                       : "Conditions:\n  Type\tStatus\tReason\n  ----\t------\t------\n";
  for (view::Condition condition : conditions)
    text += "  " + std::string(condition.type()) + (with_message ? "\t" : " \t") + std::string(condition.status()) + "\t" +
            std::string(condition.reason()) + (with_message ? "\t" + std::string(condition.message()) : "") + "\n";
}

void put_conditions_with_time(std::string& text, const json::value& object) {
  view::Range<view::Condition> conditions = conditions_of(object);
  if (!conditions.empty())
    text +=
        "Conditions:\n  Type\tStatus\tLastTransitionTime\tReason\tMessage\n"
        "  ----\t------\t------------------\t------\t-------\n";
  for (view::Condition condition : conditions)
    text += "  " + std::string(condition.type()) + "\t" + std::string(condition.status()) + "\t" +
            or_else(time_text(condition.last_transition_time()), kNoTime) + "\t" + std::string(condition.reason()) + "\t" +
            std::string(condition.message()) + "\n";
}

void put_timed_conditions(std::string& text, std::string_view title, const std::vector<TimedCondition>& conditions) {
  if (!conditions.empty())
    text += "Conditions:\n  Type\tStatus\t" + std::string(title) +
            "\tLastTransitionTime\tReason\tMessage\n"
            "  ----\t------\t-----------------\t------------------\t------\t-------\n";
  for (const TimedCondition& one : conditions)
    text += "  " + std::string(one.condition.type()) + " \t" + std::string(one.condition.status()) + " \t" +
            or_else(time_text(one.time), kNoTime) + " \t" + or_else(time_text(one.condition.last_transition_time()), kNoTime) +
            " \t" + std::string(one.condition.reason()) + " \t" + std::string(one.condition.message()) + "\n";
}

void put_controller(std::string& text, const json::value& object) {
  for (view::OwnerReference owner : metadata_of(object).owner_references())
    if (owner.controller()) put(text, 0, "Controlled By", std::string(owner.kind()) + "/" + std::string(owner.name()));
}

std::string text_of_value(const json::value* value) { return value && !value->is_null() ? jsonpath_text(*value) : std::string(); }

std::string or_else(std::string_view text, std::string_view absent) { return std::string(text.empty() ? absent : text); }

std::string selector_or(view::LabelSelector selector, std::string_view absent) {
  return or_else(selector_text(selector.raw()), absent);
}

std::string local_time_text(std::string_view time, const char* format) {
  auto parsed = parse_time(time);
  if (!parsed) return std::string(time);
  const int64_t since_1970 = std::chrono::floor<std::chrono::seconds>(*parsed).time_since_epoch().count();
  const std::time_t seconds = std::time_t(since_1970);
  if (seconds != since_1970) return std::string(time);  // beyond 2038, where time_t has 32 bits
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[64];
  size_t size = std::strftime(text, sizeof text, format, &local);
  return std::string(text, size);
}

std::string time_text(std::string_view time) { return local_time_text(time, "%a, %d %b %Y %H:%M:%S %z"); }

std::string amount_text(const json::value* amount) {
  if (!amount || amount->is_null()) return {};
  auto parsed = Quantity::from_json(*amount);
  return parsed ? parsed->text() : jsonpath_text(*amount);
}

std::string map_text(const json::object& map) {
  std::vector<std::string> pairs;
  for (const auto& key : sorted_keys(map)) pairs.push_back(key + "=" + jsonpath_text(map.at(key)));
  return pairs.empty() ? "<none>" : join(pairs, ",");
}

std::string unread_text(const std::string& error) { return "<error: " + error + ">"; }

std::string template_text(view::PodTemplateSpec pod_template) {
  view::PodSpec spec = pod_template.spec();
  std::string text = "Pod Template:\n";
  put_labels(text, "  Labels", pod_template.metadata().labels());
  if (const json::object& annotations = pod_template.metadata().annotations(); !annotations.empty())
    put_annotations(text, "  Annotations", annotations);
  if (!spec.service_account_name().empty()) put(text, 1, "Service Account", spec.service_account_name());
  if (const json::array& init = spec.init_containers().raw(); !init.empty())
    put_containers(text, view::Pod(), "Init Containers", init, {});
  put_containers(text, view::Pod(), "Containers", spec.containers().raw(), {});
  put_volumes(text, "  ", spec.volumes());
  put_spread(text, "  ", spec.topology_spread_constraints());
  if (!spec.priority_class_name().empty()) put(text, 1, "Priority Class Name", spec.priority_class_name());
  put_labels(text, "  Node-Selectors", spec.node_selector());
  put_tolerations(text, "  Tolerations", spec.tolerations());
  put_group(text, "  ", spec.scheduling_group());
  return text;
}

std::string pod_text(const json::value& object, WallTime now) {
  view::Pod pod(object);
  view::ObjectMeta metadata = pod.metadata();
  view::PodSpec spec = pod.spec();
  view::PodStatus status = pod.status();
  std::string text;
  auto put_unless_empty = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) put(text, 0, name, value);
  };
  put(text, 0, "Name", metadata.name());
  put(text, 0, "Namespace", metadata.namespace_());
  if (spec.has_priority()) put(text, 0, "Priority", std::to_string(spec.priority()));
  put_unless_empty("Priority Class Name", spec.priority_class_name());
  put_unless_empty("Runtime Class Name", spec.runtime_class_name());
  put_unless_empty("Service Account", spec.service_account_name());
  std::string node(spec.node_name());
  put(text, 0, "Node", node.empty() ? "<none>" : node + "/" + std::string(status.host_ip()));
  if (status.has_start_time()) put(text, 0, "Start Time", time_text(status.start_time()));
  put_marks(text, object);
  if (std::string_view end = metadata.deletion_timestamp(); !end.empty() && !is_terminal(pod)) {
    put(text, 0, "Status", "Terminating (lasts " + schema::human_age(end, now) + ")");
    bool has_grace = metadata.has_deletion_grace_period_seconds();
    put(text, 0, "Termination Grace Period", (has_grace ? std::to_string(metadata.deletion_grace_period_seconds()) : "") + "s");
  } else {
    put(text, 0, "Status", status.phase());
  }
  put_unless_empty("Reason", status.reason());
  put_unless_empty("Message", status.message());
  put_start_order(text, pod);
  put_seccomp(text, 0, spec.security_context().seccomp_profile(), 0);
  put(text, 0, "IP", status.pod_ip());
  view::Range<view::PodIP> addresses = status.pod_ips();
  text += addresses.empty() ? "IPs:\t<none>\n" : "IPs:\n";
  for (view::PodIP address : addresses) put(text, 1, "IP", address.ip());
  put_controller(text, object);
  put_unless_empty("NominatedNodeName", status.nominated_node_name());
  if (spec.has_resources()) {
    text += "Resources:\n";
    put_resources(text, 1, spec.resources());
  }
  if (const json::array& init = spec.init_containers().raw(); !init.empty())
    put_containers(text, pod, "Init Containers", init, status.init_container_statuses());
  put_containers(text, pod, "Containers", spec.containers().raw(), status.container_statuses());
  if (const json::array& guests = spec.ephemeral_containers().raw(); !guests.empty())
    put_containers(text, pod, "Ephemeral Containers", guests, status.ephemeral_container_statuses());
  if (!spec.readiness_gates().empty()) text += "Readiness Gates:\n  Type\tStatus\n";
  for (view::PodReadinessGate gate : spec.readiness_gates()) {
    std::string gate_status = "<none>";
    for (view::PodCondition condition : status.conditions())
      if (condition.type() == gate.condition_type()) gate_status = condition.status();
    text += "  " + std::string(gate.condition_type()) + " \t" + gate_status + " \n";
  }
  if (!status.conditions().empty()) text += "Conditions:\n  Type\tStatus\n";
  for (view::PodCondition condition : status.conditions())
    text += "  " + std::string(condition.type()) + " \t" + std::string(condition.status()) + " \n";
  put_volumes(text, "", spec.volumes());
  put_unless_empty("QoS Class", status.qos_class());
  put_labels(text, "Node-Selectors", spec.node_selector());
  put_tolerations(text, "Tolerations", spec.tolerations());
  put_spread(text, "", spec.topology_spread_constraints());
  put_group(text, "", spec.scheduling_group());
  return text;
}

}  // namespace coracle::ctl
