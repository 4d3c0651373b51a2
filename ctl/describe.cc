// SPDX-License-Identifier: Apache-2.0
// describe: shows one object for people: its fields, its status, what belongs to it, and its events. What it looks like: see
// describe.h.
#include "ctl/describe.h"

#include <algorithm>

#include "ctl/escape.h"
#include "ctl/paged_list.h"
#include "ctl/pods.h"
#include "ctl/print.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

std::string part_text(view::Event event) {  // the part of the object that the event is about
  std::string path(event.involved_object().field_path());
  return path.empty() ? path : path + ": ";
}

// True if the user may not read this: what he may read is shown all the same.
bool is_refusal(const Error& error) { return error.code() == Code::forbidden; }

// The object's events, oldest first, or why they are not told. Those of a node have its uid or, from its own agent, its name in
// place of the uid.
Result<std::string> events_text(Session& session, const json::value& object) {
  view::ObjectMeta metadata = metadata_of(object);
  std::string path = session.path(schema::catalog().of(kEvent), metadata.namespace_());
  std::vector<std::string> uids{std::string(uid_in_events(object))};
  if (kind_in(object) == "Node") uids.emplace_back(metadata.uid());
  std::vector<json::value> sorted;
  for (const auto& uid : uids) {
    auto list = session.json(
        {.path = path,
         .query = {{"fieldSelector", "involvedObject.name=" + std::string(metadata.name()) + ",involvedObject.uid=" + uid}}});
    if (!list && is_refusal(list.error())) return "Events:\t" + unread_text(list.error().text()) + "\n";
    json::value events = TRY(std::move(list));
    sorted.insert(sorted.end(), items_of(events).begin(), items_of(events).end());
  }
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return event_time(a) < event_time(b); });
  if (sorted.empty()) return std::string("Events:\t<none>\n");
  std::string text = "Events:\n  Type\tReason\tAge\tFrom\tMessage\n  ----\t------\t----\t----\t-------\n";
  WallTime now = system_clock().now();
  for (const auto& one : sorted) {
    view::Event event(one);
    text += "  " + std::string(event.type()) + "\t" + std::string(event.reason()) + "\t" + event_age(one, now) + "\t" +
            or_else(event.source().component(), event.reporting_component()) + "\t" + part_text(event) +
            std::string(trim(event.message())) + "\n";
  }
  return text;
}

struct DescribeFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string selector;
  int64_t chunk_size = 500;
  bool all_namespaces = false, show_events = true;
  Flag events_flag;  // if it is not given, several objects are shown without their events
};

// ---- related objects ----

class Fetcher {
 public:
  Fetcher(Session& session, const json::value& object, int64_t chunk_size)
      : session_(session), object_(object), ns_(metadata_of(object).namespace_()), chunk_size_(chunk_size) {}

  Result<Related> related(const schema::KindInfo& kind) {
    Related related;
    std::string_view name = kind.kind.kind;
    std::string own(metadata_of(object_).name());
    if (kind.kind == kDeployment) related.replica_sets = TRY(told_or_refused(selected(kReplicaSet)));
    if (name == "ReplicaSet" || name == "ReplicationController" || name == "StatefulSet" || name == "DaemonSet")
      related.pods = TRY(told_or_refused(selected(kPod)));
    if (kind.kind == kService) related.slices = TRY(told_or_refused(slices_of(own)));
    if (kind.kind == kPersistentVolumeClaim) related.pods = TRY(told_or_refused(list(kPod, ns_)));
    if (kind.kind == kNamespace) {
      related.quotas = TRY(told_or_refused(list(kResourceQuota, own)));
      related.limits = TRY(told_or_refused(list(kLimitRange, own)));
    }
    if (name == "Ingress") find_backends(related);
    if (kind.kind == kNode) TRY(find_use(related, own));
    return related;
  }

 private:
  Result<std::vector<json::value>> list(const Kind& kind, std::string_view ns, Query query = {}) {
    const schema::KindInfo& info = schema::catalog().of(kind);
    json::value list = TRY(paged_list(session_, {.path = session_.path(info, ns), .query = std::move(query)}, chunk_size_));
    return std::vector<json::value>(items_of(list).begin(), items_of(list).end());
  }

  static Result<RelatedList> told_or_refused(Result<std::vector<json::value>> got) {
    if (got) return RelatedList{std::move(*got), {}};
    if (is_refusal(got.error())) return RelatedList{{}, got.error().text()};
    return got.take_error();
  }

  Result<std::vector<json::value>> selected(const Kind& kind) {
    const json::value* selector = selector_of(object_);
    return list(kind, ns_, {{"labelSelector", selector ? selector_text(*selector) : ""}});
  }

  Result<std::vector<json::value>> slices_of(const std::string& service) {
    return list(kEndpointSlice, ns_, {{"labelSelector", "kubernetes.io/service-name=" + service}});
  }

  void find_backend(Related& related, view::IngressBackend backend) {
    std::string name(backend.service().name());
    if (name.empty() || related.backends.contains(name)) return;
    Backend& found = related.backends[name];
    auto slices = slices_of(name);
    auto service = session_.json({.path = session_.path(schema::catalog().of(kService), ns_, name)});
    if (!slices || !service) {
      found.error = (slices ? service.error() : slices.error()).text();
      return;
    }
    found.slices = std::move(*slices);
    found.service = std::move(*service);
  }

  void find_backends(Related& related) {
    view::IngressSpec spec = view::Ingress(object_).spec();
    find_backend(related, spec.default_backend());
    for (view::IngressRule rule : spec.rules())
      for (view::HTTPIngressPath path : rule.http().paths()) find_backend(related, path.backend());
  }

  Result<void> find_use(Related& related, const std::string& node) {
    auto lease = session_.json({.path = session_.path(schema::catalog().of(kLease), "kube-node-lease", node)});
    if (lease) related.lease = std::move(*lease);
    else related.lease_error = lease.error().text();
    auto slices = list(kResourceSlice, "", {{"fieldSelector", "spec.nodeName=" + node}});
    if (slices) related.device_slices = std::move(*slices);  // a server may have no such thing
    related.pods = TRY(told_or_refused(
        list(kPod, "", {{"fieldSelector", "spec.nodeName=" + node + ",status.phase!=Succeeded,status.phase!=Failed"}})));
    return {};
  }

  Session& session_;
  const json::value& object_;
  const std::string ns_;
  const int64_t chunk_size_;
};

bool has_no_events(const schema::KindInfo& kind) {
  for (std::string_view name : {"Secret", "ResourceQuota", "LimitRange", "Namespace", "Role", "ClusterRole", "RoleBinding",
                                "ClusterRoleBinding", "NetworkPolicy"})
    if (kind.kind.kind == name) return true;
  return false;
}

// "" for a kind without a description of its own, among them those of other vendors' groups.
std::string text_of(const schema::KindInfo& kind, const json::value& object, const Related& related) {
  if (kind.kind.group.find('.') != kind.kind.group.npos && !kind.kind.group.ends_with(".k8s.io")) return {};
  WallTime now = system_clock().now();
  if (kind_in(object) == "Pod") return pod_text(object, now);
  for (std::string text : {workload_text(object, related), machine_text(object, related, now), network_text(object, related),
                           storage_text(object, related, now), access_text(object)})
    if (!text.empty()) return text;
  return {};
}

Result<std::string> told(Session& session, const schema::KindInfo& kind, const json::value& object, const DescribeFlags& flags) {
  Related related = TRY(Fetcher(session, object, flags.chunk_size).related(kind));
  std::string text = text_of(kind, object, related);
  bool with_events = flags.show_events && !(has_no_events(kind) && !text.empty());
  if (text.empty() && kind.kind != kConfigMap) text = plain_text(object);
  std::string events;
  if (with_events) events = TRY(events_text(session, object));
  if (kind.kind == kConfigMap) {
    put_head(text, object);
    return align_tabs(text) + data_text(object) + "\n" + align_tabs(events);
  }
  // The rows of events get their own column widths.
  if (events.starts_with("Events:\n")) return align_tabs(text) + align_tabs(events);
  return align_tabs(text + events);
}

// `describe pod web` means all pods whose names begin with "web" if none has that name. Returns false if there is none either.
Result<bool> tell_by_prefix(Session& session, const DescribeFlags& flags) {
  std::vector<Named> named = TRY(parse_named({flags.args[0]}));
  if (named.size() != 1) return false;
  const schema::KindInfo& kind = *named[0].kind;
  json::value list = TRY(paged_list(session, {.path = session.path(kind, session.ns())}, flags.chunk_size));
  bool any = false;
  for (json::value object : items_of(list)) {
    if (!metadata_of(object).name().starts_with(flags.args[1])) continue;
    name_kind(object, kind);
    std::string text = TRY(told(session, kind, object, flags));
    out(visible_lines(text) + "\n");
    any = true;
  }
  return any;
}

Result<int> run_describe(Commands& commands, DescribeFlags flags) {
  if (flags.args.empty() && flags.files.empty())
    return Error(Code::bad_request,
                 "You must specify the type of resource to describe. Use \"coraclectl api-resources\" for a complete list of "
                 "supported resources.");
  Session* session = TRY(commands.session());
  TargetFlags wanted{.args = flags.args, .files = flags.files, .selector = flags.selector};
  wanted.chunk_size = flags.chunk_size;
  Targets targets = TRY(targets_of(*session, wanted, flags.args, true, flags.all_namespaces));
  if (targets.found.empty() && targets.missing.empty()) {
    tell(flags.all_namespaces ? "No resources found\n" : "No resources found in " + session->ns() + " namespace.\n");
    return 0;
  }
  if (flags.args.size() == 2 && targets.found.empty() && targets.missing[0].code() == Code::not_found) {
    DescribeFlags by_prefix = flags;
    if (flags.events_flag.count() == 0) by_prefix.show_events = false;
    bool any = TRY(tell_by_prefix(*session, by_prefix));
    if (any) return 0;
  }
  if (targets.found.size() + targets.missing.size() > 1 && flags.events_flag.count() == 0) flags.show_events = false;
  bool first = true;
  return act_on(std::move(targets), [&](const Live& live) -> Result<void> {
    std::string text = TRY(told(*session, *live.kind, live.object, flags));
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
  flags->events_flag = describe.add_flag("--show-events,!--no-show-events", flags->show_events, "with its events");
  commands.on(describe, [&commands, flags] { return run_describe(commands, *flags); });
}

}  // namespace coracle::ctl
