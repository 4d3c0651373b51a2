// SPDX-License-Identifier: Apache-2.0
// describe: shows one object for people: its fields, its status and its events. describe_pod.cc covers pods and pod templates,
// describe_workload.cc the kinds that create pods; nodes, Services and Secrets are covered here.
#include "ctl/describe.h"

#include <algorithm>

#include "ctl/escape.h"
#include "ctl/jsonpath.h"
#include "ctl/pods.h"
#include "ctl/print.h"
#include "ctl/target.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

std::string head_text(const json::value& object) {
  std::string text;
  put(text, 0, "Name", text_at(object, "metadata.name"));
  if (find(object, "metadata.namespace")) put(text, 0, "Namespace", text_at(object, "metadata.namespace"));
  put_labels(text, "Labels", get_object(object, "metadata.labels"));
  put_annotations(text, "Annotations", get_object(object, "metadata.annotations"));
  return text;
}

void put_amounts(std::string& text, std::string_view name, const json::object& amounts) {
  text.append(name).append(":\n");
  for (const auto& [key, value] : amounts) put(text, 1, key, jsonpath_text(value));
}

std::string node_text(const json::value& node) {
  std::string text = head_text(node);
  put(text, 0, "CreationTimestamp", time_text(text_at(node, "metadata.creationTimestamp")));
  const json::array& taints = get_array(node, "spec.taints");
  if (taints.empty()) put(text, 0, "Taints", "<none>");
  for (size_t i = 0; i < taints.size(); ++i) {
    std::string value = text_at(taints[i], "value");
    text += (i ? "" : "Taints:") + ("\t" + text_at(taints[i], "key")) + (value.empty() ? "" : "=" + value) + ":" +
            text_at(taints[i], "effect") + "\n";
  }
  put(text, 0, "Unschedulable", get_bool(node, "spec.unschedulable") ? "true" : "false");
  put_conditions(text, node, true);
  text += "Addresses:\n";
  for (const auto& address : get_array(node, "status.addresses"))
    put(text, 1, text_at(address, "type"), text_at(address, "address"));
  put_amounts(text, "Capacity", get_object(node, "status.capacity"));
  put_amounts(text, "Allocatable", get_object(node, "status.allocatable"));
  text += "System Info:\n";
  for (const auto& [key, value] : get_object(node, "status.nodeInfo")) put(text, 1, key, jsonpath_text(value));
  return text;
}

std::string service_text(const json::value& service) {
  std::string text = head_text(service);
  put(text, 0, "Selector", selector_or(service, "spec.selector", "<none>"));
  put(text, 0, "Type", text_at(service, "spec.type"));
  put(text, 0, "IP", text_at(service, "spec.clusterIP"));
  for (const auto& port : get_array(service, "spec.ports")) {
    put(text, 0, "Port",
        or_else(text_at(port, "name"), "<unset>") + "\t" + text_at(port, "port") + "/" + text_at(port, "protocol"));
    put(text, 0, "TargetPort", text_at(port, "targetPort") + "/" + text_at(port, "protocol"));
    if (find(port, "nodePort"))
      put(text, 0, "NodePort",
          or_else(text_at(port, "name"), "<unset>") + "\t" + text_at(port, "nodePort") + "/" + text_at(port, "protocol"));
  }
  return text;
}

std::string secret_text(const json::value& secret) {  // prints sizes, never the values
  std::string text = head_text(secret) + "\nType:\t" + text_at(secret, "type") + "\n\nData\n====\n";
  for (const auto& [key, value] : get_object(secret, "data")) {
    auto bytes = base64_decode(value.is_string() ? std::string_view(value.get_string()) : std::string_view());
    put(text, 0, key, std::to_string(bytes ? bytes->size() : 0) + " bytes");
  }
  return text;
}

std::string data_text(const json::value& map) {  // printed unchanged: the tabs belong to the data
  std::string text = "\nData\n====\n";
  for (const auto& [key, value] : get_object(map, "data")) text += std::string(key) + ":\n----\n" + jsonpath_text(value) + "\n\n";
  text += "\nBinaryData\n====\n";
  for (const auto& [key, value] : get_object(map, "binaryData")) {
    auto bytes = base64_decode(value.is_string() ? std::string_view(value.get_string()) : std::string_view());
    text += std::string(key) + ": " + std::to_string(bytes ? bytes->size() : 0) + " bytes\n";
  }
  return text;
}

std::string part_text(const json::value& event) {  // the part of the object that the event is about
  std::string path = text_at(event, "involvedObject.fieldPath");
  return path.empty() ? path : path + ": ";
}

Result<std::string> events_text(Session& session, const json::value& object) {
  const schema::KindInfo& events = schema::catalog().of(kEvent);
  std::string ns = text_at(object, "metadata.namespace");
  Request request{.path = session.path(events, ns)};
  request.query = {{"fieldSelector", "involvedObject.name=" + text_at(object, "metadata.name") +
                                         ",involvedObject.uid=" + std::string(uid_in_events(object))}};
  json::value list = TRY(session.json(request));
  std::vector<json::value> sorted(get_array(list, "items").begin(), get_array(list, "items").end());
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return event_time(a) < event_time(b); });
  if (sorted.empty()) return std::string("Events:\t<none>\n");
  std::string text = "Events:\n  Type\tReason\tAge\tFrom\tMessage\n  ----\t------\t----\t----\t-------\n";
  WallTime now = system_clock().now();
  for (const auto& event : sorted)
    text += "  " + text_at(event, "type") + "\t" + text_at(event, "reason") + "\t" + event_age(event, now) + "\t" +
            or_else(text_at(event, "source.component"), text_at(event, "reportingComponent")) + "\t" + part_text(event) +
            std::string(trim(text_at(event, "message"))) + "\n";
  return text;
}

struct DescribeFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string selector;
  int64_t chunk_size = 500;
  bool all_namespaces = false, show_events = true;
};

Result<std::vector<json::value>> selected(Session& session, const Kind& kind, const json::value& object) {
  const json::value* selector = find(object, "spec.selector");
  json::value list = TRY(session.json({.path = session.path(schema::catalog().of(kind), text_at(object, "metadata.namespace")),
                                       .query = {{"labelSelector", selector ? selector_text(*selector) : ""}}}));
  return std::vector<json::value>(get_array(list, "items").begin(), get_array(list, "items").end());
}

Result<std::string> told(Session& session, const schema::KindInfo& kind, const json::value& object, bool show_events) {
  std::string text;
  if (kind.kind == kPod) text = pod_text(object);
  else if (kind.kind == kNode) text = node_text(object);
  else if (kind.kind == kService) text = service_text(object);
  else if (kind.kind == kSecret) return align_tabs(secret_text(object));
  if (kind.kind == kConfigMap) {
    std::string whole = align_tabs(head_text(object)) + data_text(object);
    if (!show_events) return whole;
    std::string events = TRY(events_text(session, object));
    return whole + "\n" + align_tabs(events);
  }
  if (text.empty()) {
    Related related;
    std::string_view name = kind.kind.kind;
    if (kind.kind == kDeployment) related.replica_sets = TRY(selected(session, kReplicaSet, object));
    if (name == "ReplicaSet" || name == "ReplicationController" || name == "StatefulSet" || name == "DaemonSet")
      related.pods = TRY(selected(session, kPod, object));
    text = workload_text(object, related, system_clock().now());
  }
  if (text.empty()) text = plain_text(object);
  if (!show_events || kind.kind.kind == "ResourceQuota") return align_tabs(text);  // quotas have no events
  std::string events = TRY(events_text(session, object));
  // The rows of events get their own column widths.
  if (events.starts_with("Events:\n")) return align_tabs(text) + align_tabs(events);
  return align_tabs(text + events);
}

Result<int> run_describe(Commands& commands, const DescribeFlags& flags) {
  Session* session = TRY(commands.session());
  TargetFlags wanted{.args = flags.args, .files = flags.files, .selector = flags.selector};
  wanted.chunk_size = flags.chunk_size;
  Targets targets = TRY(targets_of(*session, wanted, flags.args, true, flags.all_namespaces));
  if (targets.found.empty() && targets.missing.empty()) {
    tell(flags.all_namespaces ? "No resources found\n" : "No resources found in " + session->ns() + " namespace.\n");
    return 0;
  }
  bool first = true;
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    std::string text = TRY(told(*session, *live.kind, live.object, flags.show_events));
    out((std::exchange(first, false) ? "" : "\n\n") + visible_lines(text));
    return {};
  });
}

}  // namespace

void add_describe(Commands& commands) {
  auto flags = std::make_shared<DescribeFlags>();
  Command describe = commands.add("describe", "Tell all about objects");
  describe.add_option("args", flags->args, "KIND [NAME ...] or KIND/NAME ...");
  flags->files.add_to(describe);
  describe.add_option("-l,--selector", flags->selector, "label selector");
  describe.add_option("--chunk-size", flags->chunk_size, "objects that one answer of the server holds; 0: all");
  describe.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  describe.add_flag("--show-events,!--no-show-events", flags->show_events, "with its events");
  commands.on(describe, [&commands, flags] { return run_describe(commands, *flags); });
}

}  // namespace coracle::ctl
