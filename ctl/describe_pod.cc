// SPDX-License-Identifier: Apache-2.0
// How describe shows pods and pod templates. See describe.h.
#include <algorithm>
#include <ctime>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "ctl/last_applied.h"
#include "ctl/pods.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/schema/table.h"

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

void put_lines(std::string& text, size_t level, std::string_view title, const json::array& words) {
  if (words.empty()) return;
  text += indent(level) + std::string(title) + ":\n";
  for (const auto& word : words) {
    std::string whole = jsonpath_text(word);
    for (std::string_view line : split(whole, '\n')) text += indent(level + 1) + std::string(line) + "\n";
  }
}

std::string ports_text(const json::value& container, const char* field) {
  std::vector<std::string> parts;
  for (const auto& port : get_array(container, "ports")) {
    std::string name = text_at(port, "name");
    parts.push_back(std::to_string(get_int(port, field)) + "/" + or_else(text_at(port, "protocol"), "TCP") +
                    (name.empty() ? "" : " (" + name + ")"));
  }
  return join(parts, ", ");
}

void put_state(std::string& text, std::string_view name, const json::value* state) {
  const json::value none, &given = state ? *state : none;
  if (const json::value* running = find(given, "running")) {
    put(text, 2, name, "Running");
    put(text, 3, "Started", time_text(text_at(*running, "startedAt")));
    return;
  }
  const json::value *ended = find(given, "terminated"), *waiting = find(given, "waiting");
  put(text, 2, name, ended ? "Terminated" : "Waiting");
  if (const json::value* detail = ended ? ended : waiting; detail && !text_at(*detail, "reason").empty())
    put(text, 3, "Reason", text_at(*detail, "reason"));
  if (!ended) return;
  if (std::string message = text_at(*ended, "message"); !message.empty()) put(text, 3, "Message", message);
  put(text, 3, "Exit Code", std::to_string(get_int(*ended, "exitCode")));
  if (int64_t signal = get_int(*ended, "signal"); signal > 0) put(text, 3, "Signal", std::to_string(signal));
  for (auto [field, label] : {std::pair{"startedAt", "Started"}, std::pair{"finishedAt", "Finished"}})
    put(text, 3, label, or_else(time_text(text_at(*ended, field)), kNoTime));
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

std::string probe_text(const json::value& probe) {
  std::string times = " delay=" + std::to_string(get_int(probe, "initialDelaySeconds")) +
                      "s timeout=" + std::to_string(get_int(probe, "timeoutSeconds", 1)) +
                      "s period=" + std::to_string(get_int(probe, "periodSeconds", 10)) +
                      "s #success=" + std::to_string(get_int(probe, "successThreshold", 1)) +
                      " #failure=" + std::to_string(get_int(probe, "failureThreshold", 3));
  if (find(probe, "exec")) {
    std::vector<std::string> words;
    for (const auto& word : get_array(probe, "exec.command")) words.push_back(jsonpath_text(word));
    return "exec [" + join(words, " ") + "]" + times;
  }
  if (find(probe, "httpGet"))
    return "http-get " + to_lower(or_else(text_at(probe, "httpGet.scheme"), "HTTP")) + "://" + text_at(probe, "httpGet.host") +
           ":" + text_at(probe, "httpGet.port") + url_path(text_at(probe, "httpGet.path")) + times;
  if (find(probe, "tcpSocket"))
    return "tcp-socket " + text_at(probe, "tcpSocket.host") + ":" + text_at(probe, "tcpSocket.port") + times;
  if (find(probe, "grpc")) return "grpc <pod>:" + text_at(probe, "grpc.port") + " " + text_at(probe, "grpc.service") + times;
  return "unknown" + times;
}

std::string optional_text(const json::value& reference) { return get_bool(reference, "optional") ? "true" : "false"; }

void put_env_from(std::string& text, const json::value& container) {
  const json::array& sources = get_array(container, "envFrom");
  if (sources.empty()) return;
  text += indent(2) + "Environment Variables from:\n";
  for (const auto& source : sources) {
    const json::value* map = find(source, "configMapRef");
    json::value reference = map ? *map : json::value(get_object(source, "secretRef"));
    std::string prefix = text_at(source, "prefix");
    text += indent(3) + text_at(reference, "name") + "\t" + (map ? "ConfigMap" : "Secret") +
            (prefix.empty() ? "" : " with prefix '" + prefix + "'") + "\tOptional: " + optional_text(reference) + "\n";
  }
}

// The value of a reference such as "limits.cpu" in the container, in whole units of the divisor.
std::string container_amount(const json::value& container, const json::value& reference) {
  std::string resource = text_at(reference, "resource"), divisor_text = or_else(text_at(reference, "divisor"), "0");
  auto amount = Quantity::parse(or_else(text_at(container, "resources." + resource), "0")),
       divisor = Quantity::parse(divisor_text);
  if (!amount || !divisor) return {};  // kubectl prints nothing for a malformed one
  bool cpu = resource.ends_with(".cpu");
  int64_t whole = cpu ? amount->milli_value() : amount->value();
  int64_t unit = divisor->is_zero() ? (cpu ? 1000 : 1) : std::max<int64_t>(1, cpu ? divisor->milli_value() : divisor->value());
  return std::to_string((whole + unit - 1) / unit);
}

// What a variable gets from the pod's metadata; kubectl looks at no other fields.
std::string pod_field(const json::value& pod, const std::string& path) {
  if (path == "metadata.name" || path == "metadata.namespace" || path == "metadata.uid") return text_at(pod, path);
  for (std::string_view map : {"labels", "annotations"}) {
    std::string head = "metadata." + std::string(map) + "['";
    if (!path.starts_with(head) || !path.ends_with("']")) continue;
    std::string key = path.substr(head.size(), path.size() - head.size() - 2);
    const json::value* value = find_keys(pod, {"metadata", map, key});
    return value ? jsonpath_text(*value) : "";
  }
  return {};
}

std::string variable_text(const json::value* pod, const json::value& container, const json::value& from) {
  if (const json::value* field = find(from, "fieldRef")) {
    std::string path = text_at(*field, "fieldPath");
    return (pod ? pod_field(*pod, path) : "") + " (" + or_else(text_at(*field, "apiVersion"), "v1") + ":" + path + ")";
  }
  if (const json::value* amount = find(from, "resourceFieldRef")) {
    std::string value = container_amount(container, *amount), resource = text_at(*amount, "resource");
    bool unlimited = value == "0" && (resource == "limits.cpu" || resource == "limits.memory");
    return (unlimited ? "node allocatable" : value) + " (" + resource + ")";
  }
  if (const json::value* key = find(from, "secretKeyRef"))
    return "<set to the key '" + text_at(*key, "key") + "' in secret '" + text_at(*key, "name") +
           "'>\tOptional: " + optional_text(*key);
  if (const json::value* key = find(from, "configMapKeyRef"))
    return "<set to the key '" + text_at(*key, "key") + "' of config map '" + text_at(*key, "name") +
           "'>\tOptional: " + optional_text(*key);
  return {};
}

void put_env(std::string& text, const json::value* pod, const json::value& container) {
  const json::array& env = get_array(container, "env");
  text += indent(2) + (env.empty() ? "Environment:\t<none>\n" : "Environment:\n");
  for (const auto& entry : env) {
    if (const json::value* from = find(entry, "valueFrom")) {
      put(text, 3, text_at(entry, "name"), variable_text(pod, container, *from));
      continue;
    }
    bool first = true;
    for (std::string_view line : split(get_string(entry, "value"), '\n'))
      text += indent(3) + (std::exchange(first, false) ? text_at(entry, "name") + ":" : "") + "\t" + std::string(line) + "\n";
  }
}

void put_mounts(std::string& text, const json::value& container) {
  std::vector<json::value> mounts(get_array(container, "volumeMounts").begin(), get_array(container, "volumeMounts").end());
  std::stable_sort(mounts.begin(), mounts.end(),
                   [](const auto& a, const auto& b) { return get_string(a, "mountPath") < get_string(b, "mountPath"); });
  text += indent(2) + (mounts.empty() ? "Mounts:\t<none>\n" : "Mounts:\n");
  for (const auto& mount : mounts) {
    std::string path = text_at(mount, "subPath");
    text += indent(3) + text_at(mount, "mountPath") + " from " + text_at(mount, "name") +
            (get_bool(mount, "readOnly") ? " (ro" : " (rw") + (path.empty() ? "" : ",path=" + coracle::quoted(path)) + ")\n";
  }
  std::vector<std::string> devices;
  for (const auto& device : get_array(container, "volumeDevices"))
    devices.push_back(text_at(device, "devicePath") + " from " + text_at(device, "name"));
  std::sort(devices.begin(), devices.end());
  if (!devices.empty()) text += indent(2) + (mounts.empty() ? "Devices:\t<none>\n" : "Devices:\n");
  for (const auto& device : devices) text += indent(3) + device + "\n";
}

void put_resources(std::string& text, size_t level, const json::value& object, const std::string& path) {
  for (auto [field, label] : {std::pair{".limits", "Limits"}, std::pair{".requests", "Requests"}}) {
    const json::object& amounts = get_object(object, path + field);
    if (!amounts.empty()) text += indent(level) + label + ":\n";
    for (const auto& key : sorted_keys(amounts)) put(text, level + 1, key, amount_text(&amounts.at(key)));
  }
}

void put_seccomp(std::string& text, size_t level, const json::value& object, const std::string& path, size_t local_level) {
  std::string type = text_at(object, path + ".seccompProfile.type");
  if (!type.empty()) put(text, level, "SeccompProfile", type);
  if (type == "Localhost") put(text, local_level, "LocalhostProfile", text_at(object, path + ".seccompProfile.localhostProfile"));
}

// `pod`: the pod that owns the containers, with `statuses`; nullptr for a pod template.
void put_containers(std::string& text, const json::value* pod, std::string_view title, const json::array& containers,
                    const json::array& statuses) {
  std::string_view space = pod ? "" : "  ";
  text.append(space).append(title).append(containers.empty() ? ": <none>\n" : ":\n");
  for (const auto& container : containers) {
    std::string name = text_at(container, "name");
    auto status =
        std::find_if(statuses.begin(), statuses.end(), [&](const json::value& one) { return get_string(one, "name") == name; });
    bool known = status != statuses.end();
    text += indent(1) + (space.empty() ? "" : " ") + name + ":\n";
    if (known) put(text, 2, "Container ID", text_at(*status, "containerID"));
    put(text, 2, "Image", text_at(container, "image"));
    if (known) put(text, 2, "Image ID", text_at(*status, "imageID"));
    bool several = get_array(container, "ports").size() > 1;
    put(text, 2, several ? "Ports" : "Port", or_else(ports_text(container, "containerPort"), "<none>"));
    put(text, 2, several ? "Host Ports" : "Host Port", or_else(ports_text(container, "hostPort"), "<none>"));
    put_seccomp(text, 2, container, "securityContext", 3);
    put_lines(text, 2, "Command", get_array(container, "command"));
    put_lines(text, 2, "Args", get_array(container, "args"));
    if (known) {
      put_state(text, "State", find(*status, "state"));
      if (const json::value* last = find(*status, "lastState"); last && find(*last, "terminated"))
        put_state(text, "Last State", last);
      put(text, 2, "Ready", get_bool(*status, "ready") ? "True" : "False");
      put(text, 2, "Restart Count", std::to_string(get_int(*status, "restartCount")));
    }
    put_resources(text, 2, container, "resources");
    for (auto [field, label] :
         {std::pair{"livenessProbe", "Liveness"}, std::pair{"readinessProbe", "Readiness"}, std::pair{"startupProbe", "Startup"}})
      if (const json::value* probe = find(container, field)) put(text, 2, label, probe_text(*probe));
    put_env_from(text, container);
    put_env(text, pod, container);
    put_mounts(text, container);
  }
}

void put_volumes(std::string& text, std::string_view space, const json::array& volumes) {
  text.append(space).append(volumes.empty() ? "Volumes:\t<none>\n" : "Volumes:\n");
  for (const auto& volume : volumes) {
    text += indent(1) + (space.empty() ? "" : " ") + text_at(volume, "name") + ":\n";
    put_volume_source(text, volume, false);
  }
}

std::string toleration_text(const json::value& toleration) {
  std::string text = text_at(toleration, "key"), value = text_at(toleration, "value"), effect = text_at(toleration, "effect");
  if (!value.empty()) text += "=" + value;
  if (!effect.empty()) text += ":" + effect;
  if (text_at(toleration, "operator") == "Exists" && value.empty()) text += text.empty() ? "op=Exists" : " op=Exists";
  if (find(toleration, "tolerationSeconds")) text += " for " + text_at(toleration, "tolerationSeconds") + "s";
  return text;
}

void put_tolerations(std::string& text, std::string_view name, const json::array& tolerations) {
  if (tolerations.empty()) return put(text, 0, name, "<none>");
  std::vector<json::value> sorted(tolerations.begin(), tolerations.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return get_string(a, "key") < get_string(b, "key"); });
  for (size_t i = 0; i < sorted.size(); ++i)
    text += (i ? "" : std::string(name) + ":") + "\t" + toleration_text(sorted[i]) + "\n";
}

void put_spread(std::string& text, std::string_view space, const json::array& constraints) {
  if (constraints.empty()) return;
  std::vector<json::value> sorted(constraints.begin(), constraints.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return get_string(a, "topologyKey") < get_string(b, "topologyKey"); });
  text.append(space).append("Topology Spread Constraints:");
  for (const auto& constraint : sorted)
    text += (&constraint == sorted.data() ? "\t" : std::string(space) + "\t") + text_at(constraint, "topologyKey") + ":" +
            text_at(constraint, "whenUnsatisfiable") + " when max skew " + text_at(constraint, "maxSkew") + " is exceeded" +
            (find(constraint, "labelSelector") ? " for selector " + selector_or(constraint, "labelSelector", "<none>") : "") +
            "\n";
}

// What the annotation coracle.io/after waits for. Like kubectl we show conditions without their messages, and the events of it
// are gone after an hour.
void put_start_order(std::string& text, const json::value& pod) {
  for (const auto& condition : get_array(pod, "status.conditions"))
    if (get_string(condition, "reason") == "SchedulingGated" &&
        get_string(condition, "message").starts_with("coracle.io/after: "))
      put(text, 0, "Start Order", get_string(condition, "message"));
}

}  // namespace

void put(std::string& text, size_t level, std::string_view name, std::string_view value) {
  text.append(2 * level, ' ').append(name).append(":\t").append(value).append("\n");
}

void put_name(std::string& text, const json::value& object) {
  put(text, 0, "Name", text_at(object, "metadata.name"));
  if (find(object, "metadata.namespace")) put(text, 0, "Namespace", text_at(object, "metadata.namespace"));
}

void put_marks(std::string& text, const json::value& object) {
  put_labels(text, "Labels", get_object(object, "metadata.labels"));
  put_annotations(text, "Annotations", get_object(object, "metadata.annotations"));
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
  const json::array& conditions = get_array(object, "status.conditions");
  if (conditions.empty()) return;
  text += with_message ? "Conditions:\n  Type\tStatus\tReason\tMessage\n  ----\t------\t------\t-------\n"
                       : "Conditions:\n  Type\tStatus\tReason\n  ----\t------\t------\n";
  for (const auto& condition : conditions)
    text += "  " + text_at(condition, "type") + (with_message ? "\t" : " \t") + text_at(condition, "status") + "\t" +
            text_at(condition, "reason") + (with_message ? "\t" + text_at(condition, "message") : "") + "\n";
}

void put_conditions_with_time(std::string& text, const json::value& object) {
  const json::array& conditions = get_array(object, "status.conditions");
  if (!conditions.empty())
    text +=
        "Conditions:\n  Type\tStatus\tLastTransitionTime\tReason\tMessage\n"
        "  ----\t------\t------------------\t------\t-------\n";
  for (const auto& condition : conditions)
    text += "  " + text_at(condition, "type") + "\t" + text_at(condition, "status") + "\t" +
            or_else(time_text(text_at(condition, "lastTransitionTime")), kNoTime) + "\t" + text_at(condition, "reason") + "\t" +
            text_at(condition, "message") + "\n";
}

void put_node_conditions(std::string& text, const json::value& object, std::string_view field, std::string_view title) {
  const json::array& conditions = get_array(object, "status.conditions");
  if (!conditions.empty())
    text += "Conditions:\n  Type\tStatus\t" + std::string(title) +
            "\tLastTransitionTime\tReason\tMessage\n"
            "  ----\t------\t-----------------\t------------------\t------\t-------\n";
  for (const auto& condition : conditions)
    text += "  " + text_at(condition, "type") + " \t" + text_at(condition, "status") + " \t" +
            or_else(time_text(text_at(condition, field)), kNoTime) + " \t" +
            or_else(time_text(text_at(condition, "lastTransitionTime")), kNoTime) + " \t" + text_at(condition, "reason") + " \t" +
            text_at(condition, "message") + "\n";
}

void put_controller(std::string& text, const json::value& object) {
  for (const auto& owner : get_array(object, "metadata.ownerReferences"))
    if (get_bool(owner, "controller")) put(text, 0, "Controlled By", text_at(owner, "kind") + "/" + text_at(owner, "name"));
}

std::string text_at(const json::value& object, std::string_view path) {
  const json::value* value = find(object, path);
  return value && !value->is_null() ? jsonpath_text(*value) : std::string();
}

std::string or_else(std::string text, std::string_view absent) { return text.empty() ? std::string(absent) : text; }

std::string selector_or(const json::value& object, std::string_view path, std::string_view absent) {
  const json::value* selector = find(object, path);
  return or_else(selector ? selector_text(*selector) : "", absent);
}

std::string local_time_text(std::string_view time, const char* format) {
  auto parsed = parse_time(time);
  if (!parsed) return std::string(time);
  std::time_t seconds = std::chrono::system_clock::to_time_t(*parsed);
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

std::string template_text(const json::value& pod_template) {
  std::string text = "Pod Template:\n";
  put_labels(text, "  Labels", get_object(pod_template, "metadata.labels"));
  if (const json::object& annotations = get_object(pod_template, "metadata.annotations"); !annotations.empty())
    put_annotations(text, "  Annotations", annotations);
  if (std::string account = text_at(pod_template, "spec.serviceAccountName"); !account.empty())
    put(text, 1, "Service Account", account);
  if (const json::array& init = get_array(pod_template, "spec.initContainers"); !init.empty())
    put_containers(text, nullptr, "Init Containers", init, {});
  put_containers(text, nullptr, "Containers", get_array(pod_template, "spec.containers"), {});
  put_volumes(text, "  ", get_array(pod_template, "spec.volumes"));
  put_spread(text, "  ", get_array(pod_template, "spec.topologySpreadConstraints"));
  if (std::string name = text_at(pod_template, "spec.priorityClassName"); !name.empty())
    put(text, 1, "Priority Class Name", name);
  put_labels(text, "  Node-Selectors", get_object(pod_template, "spec.nodeSelector"));
  put_tolerations(text, "  Tolerations", get_array(pod_template, "spec.tolerations"));
  return text;
}

std::string pod_text(const json::value& pod, WallTime now) {
  std::string text;
  put(text, 0, "Name", text_at(pod, "metadata.name"));
  put(text, 0, "Namespace", text_at(pod, "metadata.namespace"));
  if (find(pod, "spec.priority")) put(text, 0, "Priority", text_at(pod, "spec.priority"));
  if (std::string name = text_at(pod, "spec.priorityClassName"); !name.empty()) put(text, 0, "Priority Class Name", name);
  if (std::string name = text_at(pod, "spec.runtimeClassName"); !name.empty()) put(text, 0, "Runtime Class Name", name);
  if (std::string name = text_at(pod, "spec.serviceAccountName"); !name.empty()) put(text, 0, "Service Account", name);
  std::string node = text_at(pod, "spec.nodeName");
  put(text, 0, "Node", node.empty() ? "<none>" : node + "/" + text_at(pod, "status.hostIP"));
  if (find(pod, "status.startTime")) put(text, 0, "Start Time", time_text(text_at(pod, "status.startTime")));
  put_labels(text, "Labels", get_object(pod, "metadata.labels"));
  put_annotations(text, "Annotations", get_object(pod, "metadata.annotations"));
  std::string end = text_at(pod, "metadata.deletionTimestamp"), phase = text_at(pod, "status.phase");
  if (!end.empty() && phase != "Failed" && phase != "Succeeded") {
    put(text, 0, "Status", "Terminating (lasts " + schema::human_age(end, now) + ")");
    put(text, 0, "Termination Grace Period", text_at(pod, "metadata.deletionGracePeriodSeconds") + "s");
  } else {
    put(text, 0, "Status", phase);
  }
  for (auto [field, label] : {std::pair{"status.reason", "Reason"}, std::pair{"status.message", "Message"}})
    if (std::string value = text_at(pod, field); !value.empty()) put(text, 0, label, value);
  put_start_order(text, pod);
  put_seccomp(text, 0, pod, "spec.securityContext", 0);
  put(text, 0, "IP", text_at(pod, "status.podIP"));
  const json::array& addresses = get_array(pod, "status.podIPs");
  text += addresses.empty() ? "IPs:\t<none>\n" : "IPs:\n";
  for (const auto& address : addresses) put(text, 1, "IP", text_at(address, "ip"));
  put_controller(text, pod);
  if (std::string name = text_at(pod, "status.nominatedNodeName"); !name.empty()) put(text, 0, "NominatedNodeName", name);
  if (find(pod, "spec.resources")) {
    text += "Resources:\n";
    put_resources(text, 1, pod, "spec.resources");
  }
  if (const json::array& init = get_array(pod, "spec.initContainers"); !init.empty())
    put_containers(text, &pod, "Init Containers", init, get_array(pod, "status.initContainerStatuses"));
  put_containers(text, &pod, "Containers", get_array(pod, "spec.containers"), get_array(pod, "status.containerStatuses"));
  if (const json::array& guests = get_array(pod, "spec.ephemeralContainers"); !guests.empty())
    put_containers(text, &pod, "Ephemeral Containers", guests, get_array(pod, "status.ephemeralContainerStatuses"));
  if (const json::array& gates = get_array(pod, "spec.readinessGates"); !gates.empty()) {
    text += "Readiness Gates:\n  Type\tStatus\n";
    for (const auto& gate : gates) {
      std::string status = "<none>";
      for (const auto& condition : get_array(pod, "status.conditions"))
        if (get_string(condition, "type") == get_string(gate, "conditionType")) status = text_at(condition, "status");
      text += "  " + text_at(gate, "conditionType") + " \t" + status + " \n";
    }
  }
  if (const json::array& conditions = get_array(pod, "status.conditions"); !conditions.empty()) {
    text += "Conditions:\n  Type\tStatus\n";
    for (const auto& condition : conditions)
      text += "  " + text_at(condition, "type") + " \t" + text_at(condition, "status") + " \n";
  }
  put_volumes(text, "", get_array(pod, "spec.volumes"));
  if (std::string quality = text_at(pod, "status.qosClass"); !quality.empty()) put(text, 0, "QoS Class", quality);
  put_labels(text, "Node-Selectors", get_object(pod, "spec.nodeSelector"));
  put_tolerations(text, "Tolerations", get_array(pod, "spec.tolerations"));
  put_spread(text, "", get_array(pod, "spec.topologySpreadConstraints"));
  return text;
}

}  // namespace coracle::ctl
