// SPDX-License-Identifier: Apache-2.0
// describe: one object told for people: what it is, what state it is in, and what happened to it. Pods, nodes, Deployments,
// ReplicaSets and Services have sections of their own; every kind has its metadata, its fields and its events.
#include <algorithm>

#include "ctl/command.h"
#include "ctl/jsonpath.h"
#include "ctl/pods.h"
#include "ctl/print.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"
#include "store/schema/table.h"

namespace coracle::ctl {
namespace {

constexpr size_t kNameWidth = 18;  // of the left column

void line(std::string& text, size_t indent, std::string_view name, std::string_view value) {
  std::string head = std::string(indent, ' ') + std::string(name) + ":";
  if (!value.empty()) head.append(head.size() < kNameWidth ? kNameWidth - head.size() : 1, ' ').append(value);
  text += head + "\n";
}

std::string value_text(const json::value* value) { return value && !value->is_null() ? jsonpath_text(*value) : std::string(); }
std::string at(const json::value& object, std::string_view path) { return value_text(find(object, path)); }

void map_lines(std::string& text, size_t indent, std::string_view name, const json::object& map) {
  if (map.empty()) return line(text, indent, name, "<none>");
  bool first = true;
  for (const auto& [key, value] : map) {
    std::string pair = std::string(key) + "=" + jsonpath_text(value);
    if (std::exchange(first, false)) line(text, indent, name, pair);
    else text += std::string(kNameWidth, ' ') + pair + "\n";
  }
}

void metadata_lines(std::string& text, const json::value& object) {
  line(text, 0, "Name", at(object, "metadata.name"));
  if (find(object, "metadata.namespace")) line(text, 0, "Namespace", at(object, "metadata.namespace"));
  json::object annotations = get_object(object, "metadata.annotations");
  annotations.erase("kubectl.kubernetes.io/last-applied-configuration");
  map_lines(text, 0, "Labels", get_object(object, "metadata.labels"));
  map_lines(text, 0, "Annotations", annotations);
  line(text, 0, "Created", at(object, "metadata.creationTimestamp"));
  if (find(object, "metadata.deletionTimestamp")) line(text, 0, "Deleting since", at(object, "metadata.deletionTimestamp"));
  for (const auto& owner : get_array(object, "metadata.ownerReferences"))
    if (get_bool(owner, "controller")) line(text, 0, "Controlled By", at(owner, "kind") + "/" + at(owner, "name"));
}

void condition_lines(std::string& text, const json::value& object) {
  const json::array& conditions = get_array(object, "status.conditions");
  if (conditions.empty()) return;
  Columns columns;
  columns.add({"  Type", "Status", "Reason", "Message"});
  for (const auto& condition : conditions)
    columns.add({"  " + at(condition, "type"), at(condition, "status"), at(condition, "reason"), at(condition, "message")});
  text += "Conditions:\n" + columns.text();
}

void state_lines(std::string& text, std::string_view name, const json::value& state) {
  if (!state.is_object() || state.get_object().empty()) return;
  const auto& [kind, detail] = *state.get_object().begin();
  std::string title(kind);
  title[0] = char(title[0] - 'a' + 'A');
  line(text, 4, name, title);
  for (const auto& [key, label] : {std::pair("reason", "Reason"), std::pair("message", "Message"), std::pair("exitCode", "Exit Code"),
                                   std::pair("startedAt", "Started"), std::pair("finishedAt", "Finished")})
    if (const json::value* value = find(detail, key)) line(text, 6, label, jsonpath_text(*value));
}

void words_line(std::string& text, std::string_view name, const json::array& words) {
  if (words.empty()) return;
  std::vector<std::string> list;
  for (const auto& word : words) list.push_back(jsonpath_text(word));
  line(text, 4, name, join(list, " "));
}

void env_lines(std::string& text, const json::value& container) {
  const json::array& env = get_array(container, "env");
  if (env.empty()) return;
  text += "    Environment:\n";
  for (const auto& entry : env) {
    std::string value = at(entry, "value");
    if (const json::value* from = find(entry, "valueFrom")) value = "<from " + std::string(from->get_object().begin()->key()) + ">";
    text += "      " + at(entry, "name") + ": " + value + "\n";
  }
}

void container_lines(std::string& text, const json::value& pod, std::string_view spec_list, std::string_view status_list, std::string_view title) {
  const json::array& containers = get_array(pod, spec_list);
  if (containers.empty()) return;
  text.append(title).append(":\n");
  for (const auto& container : containers) {
    text += "  " + at(container, "name") + ":\n";
    for (const auto& status : get_array(pod, status_list))
      if (at(status, "name") == at(container, "name")) {
        line(text, 4, "Container ID", at(status, "containerID"));
        line(text, 4, "Image ID", at(status, "imageID"));
        state_lines(text, "State", *find(status, "state"));
        if (const json::value* last = find(status, "lastState")) state_lines(text, "Last State", *last);
        line(text, 4, "Ready", get_bool(status, "ready") ? "True" : "False");
        line(text, 4, "Restart Count", at(status, "restartCount"));
      }
    line(text, 4, "Image", at(container, "image"));
    words_line(text, "Command", get_array(container, "command"));
    words_line(text, "Args", get_array(container, "args"));
    for (const auto& port : get_array(container, "ports")) line(text, 4, "Port", at(port, "containerPort") + "/" + at(port, "protocol"));
    for (const char* kind : {"limits", "requests"})
      for (const auto& [resource, amount] : get_object(container, std::string("resources.") + kind))
        line(text, 4, std::string(kind) + " " + std::string(resource), jsonpath_text(amount));
    env_lines(text, container);
    for (const auto& mount : get_array(container, "volumeMounts"))
      line(text, 4, "Mount", at(mount, "mountPath") + " from " + at(mount, "name") + (get_bool(mount, "readOnly") ? " (ro)" : " (rw)"));
  }
}

void pod_lines(std::string& text, const json::value& pod) {
  std::string node = at(pod, "spec.nodeName");
  line(text, 0, "Node", node.empty() ? "<none>" : node + "/" + at(pod, "status.hostIP"));
  line(text, 0, "Service Account", at(pod, "spec.serviceAccountName"));
  line(text, 0, "Start Time", at(pod, "status.startTime"));
  line(text, 0, "Status", find(pod, "metadata.deletionTimestamp") ? "Terminating" : at(pod, "status.phase"));
  if (find(pod, "status.reason")) line(text, 0, "Reason", at(pod, "status.reason"));
  if (find(pod, "status.message")) line(text, 0, "Message", at(pod, "status.message"));
  line(text, 0, "IP", at(pod, "status.podIP"));
  line(text, 0, "QoS Class", at(pod, "status.qosClass"));
  container_lines(text, pod, "spec.initContainers", "status.initContainerStatuses", "Init Containers");
  container_lines(text, pod, "spec.containers", "status.containerStatuses", "Containers");
  condition_lines(text, pod);
  const json::array& volumes = get_array(pod, "spec.volumes");
  if (!volumes.empty()) text += "Volumes:\n";
  for (const auto& volume : volumes)
    for (const auto& [key, value] : volume.get_object())
      if (key != "name") line(text, 2, at(volume, "name"), std::string(key) + " " + to_text(value));
}

void node_lines(std::string& text, const json::value& node) {
  for (const auto& address : get_array(node, "status.addresses")) line(text, 0, at(address, "type"), at(address, "address"));
  line(text, 0, "Unschedulable", get_bool(node, "spec.unschedulable") ? "true" : "false");
  for (const auto& taint : get_array(node, "spec.taints")) line(text, 0, "Taint", at(taint, "key") + "=" + at(taint, "value") + ":" + at(taint, "effect"));
  condition_lines(text, node);
  map_lines(text, 0, "Capacity", get_object(node, "status.capacity"));
  map_lines(text, 0, "Allocatable", get_object(node, "status.allocatable"));
  text += "System Info:\n";
  for (const auto& [key, value] : get_object(node, "status.nodeInfo")) line(text, 2, key, jsonpath_text(value));
}

void workload_lines(std::string& text, const json::value& object) {
  if (const json::value* selector = find(object, "spec.selector")) line(text, 0, "Selector", selector_text(*selector));
  std::string replicas = at(object, "spec.replicas") + " desired";
  for (const auto& [field, what] : {std::pair("updatedReplicas", "updated"), std::pair("replicas", "total"), std::pair("availableReplicas", "available"),
                                    std::pair("unavailableReplicas", "unavailable"), std::pair("readyReplicas", "ready")})
    if (const json::value* count = find(object, std::string("status.") + field)) replicas += " | " + jsonpath_text(*count) + " " + what;
  line(text, 0, "Replicas", replicas);
  if (find(object, "spec.strategy.type")) line(text, 0, "StrategyType", at(object, "spec.strategy.type"));
  text += "Pod Template:\n";
  map_lines(text, 2, "Labels", get_object(object, "spec.template.metadata.labels"));
  container_lines(text, object, "spec.template.spec.containers", "none", "  Containers");
  condition_lines(text, object);
}

void service_lines(std::string& text, const json::value& service) {
  const json::value* selector = find(service, "spec.selector");
  line(text, 0, "Selector", selector ? selector_text(*selector) : "<none>");
  line(text, 0, "Type", at(service, "spec.type"));
  line(text, 0, "IP", at(service, "spec.clusterIP"));
  for (const auto& port : get_array(service, "spec.ports")) {
    line(text, 0, "Port", (find(port, "name") ? at(port, "name") : "<unset>") + "  " + at(port, "port") + "/" + at(port, "protocol"));
    line(text, 0, "TargetPort", at(port, "targetPort") + "/" + at(port, "protocol"));
    if (find(port, "nodePort")) line(text, 0, "NodePort", at(port, "nodePort") + "/" + at(port, "protocol"));
  }
}

void other_lines(std::string& text, const json::value& object) {  // every field, as YAML
  json::value rest = object;
  for (const char* shown : {"apiVersion", "kind", "metadata"}) rest.as_object().erase(shown);
  if (get_string(object, "kind") == "Secret") {  // sizes, not secrets
    text += "Data:\n";
    for (const auto& [key, value] : get_object(object, "data")) {
      auto bytes = base64_decode(value.is_string() ? std::string_view(value.get_string()) : std::string_view());
      line(text, 2, key, std::to_string(bytes ? bytes->size() : 0) + " bytes");
    }
    rest.as_object().erase("data");
  }
  if (!rest.as_object().empty()) text += to_yaml(rest);
}

Result<std::string> events_of(Session& session, const json::value& object) {
  const schema::KindInfo& events = schema::catalog().of(kEvent);
  std::string ns = at(object, "metadata.namespace");
  Request request{.path = session.path(events, ns.empty() ? "" : ns)};
  std::string uid = get_string(object, "kind") == "Node" ? at(object, "metadata.name") : at(object, "metadata.uid");
  request.query = {{"fieldSelector", "involvedObject.name=" + at(object, "metadata.name") + ",involvedObject.uid=" + uid}};
  json::value list = TRY(session.json(request));
  std::vector<json::value> sorted(get_array(list, "items").begin(), get_array(list, "items").end());
  auto when = [](const json::value& event) { return std::max(at(event, "lastTimestamp"), at(event, "eventTime")); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return when(a) < when(b); });
  if (sorted.empty()) return std::string("Events:           <none>\n");
  Columns columns;
  columns.add({"  Type", "Reason", "Age", "From", "Message"});
  for (const auto& event : sorted) {
    auto time = parse_time(when(event));
    std::string age = time ? schema::human_duration(std::chrono::duration_cast<std::chrono::seconds>(system_clock().now() - *time)) : "<unknown>";
    if (int64_t count = get_int(event, "count"); count > 1) age += " (x" + std::to_string(count) + ")";
    std::string from = at(event, "source.component");
    columns.add({"  " + at(event, "type"), at(event, "reason"), age, from.empty() ? at(event, "reportingComponent") : from, at(event, "message")});
  }
  return "Events:\n" + columns.text();
}

struct DescribeFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string selector;
  bool all_namespaces = false, show_events = true;
};

Result<std::string> told(Session& session, const schema::KindInfo& kind, const json::value& object, bool show_events) {
  std::string text;
  metadata_lines(text, object);
  if (kind.kind == kPod) pod_lines(text, object);
  else if (kind.kind == kNode) node_lines(text, object);
  else if (kind.kind == kDeployment || kind.kind == kReplicaSet) workload_lines(text, object);
  else if (kind.kind == kService) service_lines(text, object);
  else other_lines(text, object);
  if (show_events) text += TRY(events_of(session, object));
  return text;
}

Result<int> run(Commands& commands, const DescribeFlags& flags) {
  Session* session = TRY(commands.session());
  std::vector<std::pair<const schema::KindInfo*, json::value>> found;
  std::vector<Named> named;
  if (!flags.files.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
    for (const auto& document : documents) named.push_back({document.kind, at(document.object, "metadata.name")});
  } else {
    named = TRY(parse_named(flags.args));
  }
  for (const auto& one : named) {
    std::string ns = one.kind->kind.namespaced && !flags.all_namespaces ? session->ns() : "";
    if (!one.name.empty()) {
      json::value object = TRY(session->json({.path = session->path(*one.kind, ns, one.name)}));
      found.emplace_back(one.kind, std::move(object));
      continue;
    }
    Request request{.path = session->path(*one.kind, ns)};
    if (!flags.selector.empty()) request.query.emplace_back("labelSelector", flags.selector);
    json::value list = TRY(session->json(request));
    for (const auto& item : get_array(list, "items")) {
      json::value object = item;
      object.as_object()["kind"] = one.kind->kind.kind;
      found.emplace_back(one.kind, std::move(object));
    }
  }
  if (found.empty()) std::fprintf(stderr, "No resources found in %s namespace.\n", session->ns().c_str());
  for (size_t i = 0; i < found.size(); ++i) {
    std::string text = TRY(told(*session, *found[i].first, found[i].second, flags.show_events));
    out((i ? "\n\n" : "") + text);
  }
  return 0;
}

}  // namespace

void add_describe(Commands& commands) {
  auto flags = std::make_shared<DescribeFlags>();
  CLI::App* describe = commands.add("describe", "Tell all about objects");
  describe->add_option("args", flags->args, "KIND [NAME ...] or KIND/NAME ...");
  flags->files.add_to(describe);
  describe->add_option("-l,--selector", flags->selector, "label selector");
  describe->add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  describe->add_flag("--show-events,!--no-show-events", flags->show_events, "with its events");
  commands.on(describe, [&commands, flags] { return run(commands, *flags); });
}

}  // namespace coracle::ctl
