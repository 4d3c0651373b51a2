// SPDX-License-Identifier: Apache-2.0
// cordon, uncordon, drain, taint: keep new pods off a node or evict the pods on it. See node.h.
#include "ctl/node.h"

#include <algorithm>
#include <array>

#include "ctl/paged_list.h"
#include "ctl/print.h"
#include "ctl/target.h"
#include "ctl/wait.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/selector.h"

namespace coracle::ctl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEvictAgain{5000};  // delay after a 429 from a PodDisruptionBudget
constexpr std::array kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

std::string pod_name(const json::value& pod) {
  return std::string(metadata_of(pod).namespace_()) + "/" + std::string(metadata_of(pod).name());
}

view::OwnerReference controller_of(view::Pod pod) {  // absent if it has none
  for (view::OwnerReference owner : pod.metadata().owner_references())
    if (owner.controller()) return owner;
  return {};
}

bool has_empty_dir(view::Pod pod) {
  for (view::Volume volume : pod.spec().volumes())
    if (volume.has_empty_dir()) return true;
  return false;
}

}  // namespace

DrainPlan plan_drain(const std::vector<json::value>& pods, const DrainRules& rules) {
  DrainPlan plan;
  std::vector<std::string> daemons, local, lonely;
  for (const auto& object : pods) {
    view::Pod pod(object);
    if (is_mirror(pod)) continue;
    view::OwnerReference controller = controller_of(pod);
    bool ended = is_terminal(pod), daemon = controller.kind() == "DaemonSet";
    if (!ended && daemon) {  // the DaemonSet controller ignores cordons and would recreate it at once
      daemons.push_back(pod_name(object));
      continue;
    }
    if (!ended && has_empty_dir(pod)) local.push_back(pod_name(object));
    if (!ended && !controller) lonely.push_back(pod_name(object));
    plan.evict.push_back(&object);
  }
  auto judge = [&](const std::vector<std::string>& found, bool allowed, const char* warning, const char* refusal) {
    if (found.empty()) return;
    if (allowed) plan.warnings.push_back(warning + join(found, ", "));
    else plan.refusals.push_back(refusal + join(found, ", "));
  };
  judge(daemons, rules.ignore_daemonsets,
        "ignoring DaemonSet-managed Pods: ", "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): ");
  judge(local, rules.delete_emptydir_data,
        "deleting Pods with local storage: ", "cannot delete Pods with local storage (use --delete-emptydir-data to override): ");
  judge(lonely, rules.force, "deleting Pods that declare no controller: ",
        "cannot delete Pods that declare no controller (use --force to override): ");
  return plan;
}

Result<TaintChange> parse_taint(std::string_view text) {
  auto wrong = [&](const std::string& why) {
    return Error(Code::bad_request, "invalid taint spec: " + std::string(text) + (why.empty() ? "" : ", " + why));
  };
  TaintChange change;
  std::string_view rest = text;
  if (rest.ends_with('-')) change.remove = true, rest.remove_suffix(1);
  size_t colon = rest.find(':');
  if (colon == rest.npos && !change.remove) return wrong("expected KEY=VALUE:EFFECT, KEY:EFFECT or KEY-");
  if (colon != rest.npos) {
    if (rest.find(':', colon + 1) != rest.npos) return wrong("");
    change.effect = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (std::find(kEffects.begin(), kEffects.end(), change.effect) == kEffects.end())
      return Error(Code::bad_request, "invalid taint effect: " + change.effect +
                                          ", unsupported taint effect; there are NoSchedule, PreferNoSchedule and NoExecute");
  }
  size_t equals = rest.find('=');
  if (equals != rest.npos) change.value = rest.substr(equals + 1);
  change.key = rest.substr(0, equals);
  if (auto fits = check_label_key(change.key); !fits) return wrong(fits.error().text());
  if (auto fits = check_label_value(change.value); !fits) return wrong(fits.error().text());
  return change;
}

Result<void> check_taints(const std::vector<TaintChange>& changes) {
  std::vector<std::string> both;
  for (size_t i = 0; i < changes.size(); ++i)
    for (size_t j = 0; j < changes.size(); ++j) {
      const TaintChange &a = changes[i], &b = changes[j];
      if (a.key != b.key || a.remove) continue;
      if (!b.remove && j < i && a.effect == b.effect)
        return Error(Code::bad_request, "duplicated taints with the same key and effect: " + b.key + ":" + b.effect);
      if (b.remove && (b.effect.empty() || a.effect == b.effect)) both.push_back(b.key + "=" + b.effect);
    }
  if (both.empty()) return {};
  return Error(Code::bad_request,
               "can not both modify and remove the following taint(s) in the same command: " + join(both, ", "));
}

Result<TaintResult> change_taints(const json::array& taints, const std::vector<TaintChange>& changes, bool overwrite,
                                  const std::string& node) {
  TaintResult result{taints, overwrite, overwrite};  // --overwrite permits modification
  for (const auto& change : changes) {
    auto same = [&](const json::value& one) {
      view::Taint taint(one);
      return taint.key() == change.key && (change.effect.empty() || taint.effect() == change.effect);
    };
    auto& list = result.taints;
    auto found = std::find_if(list.begin(), list.end(), same);
    if (change.remove) {
      if (found == list.end())
        return Error(
            Code::not_found,
            "taint " + coracle::quoted(change.effect.empty() ? change.key : change.key + ":" + change.effect) + " not found");
      while ((found = std::find_if(list.begin(), list.end(), same)) != list.end()) list.erase(found);
      result.removed = true;
      continue;
    }
    if (found != list.end() && !overwrite)
      return Error(Code::conflict,
                   "node " + node + " already has " + change.key + " taint(s) with same effect(s) and --overwrite is false");
    json::object taint{{"key", change.key}, {"effect", change.effect}};
    if (!change.value.empty()) taint["value"] = change.value;
    if (found != list.end()) *found = std::move(taint);
    else list.push_back(std::move(taint));
    result.added = true;
  }
  return result;
}

namespace {

struct NodeFlags : DrainRules {
  std::string command;  // "drain"
  std::vector<std::string> args;
  std::string selector, pod_selector, timeout = "0s", field_manager = "kubectl";  // kubectl cordon sets no other
  Output output;
  DryRun dry_run = DryRun::none;
  int64_t grace_period = -1;
  int64_t skip_gone_seconds = 0, chunk_size = 500;
  std::string validate = "strict";
  bool disable_eviction = false, overwrite = false, all = false;
};

const schema::KindInfo& nodes() { return schema::catalog().of(kNode); }

// "edge" of "edge" and "node/edge". Errors: bad_request for another kind's.
Result<std::string> node_name(const std::string& word) {
  if (word.find('/') == word.npos) return word;
  std::vector<Named> named = TRY(parse_named({word}));
  if (named.front().kind == &nodes()) return named.front().name;
  return Error(Code::bad_request,
               "expected resource of type node, got " + coracle::quoted(named.front().kind->kind.resource) + ": " + word);
}

// The nodes given by name ("edge", "node/edge"), by selector, or all. These exclude each other: who gives two means fewer nodes
// than one of them. With `missing`, those that cannot be read are told there, and the others are still given.
Result<std::vector<json::value>> find_nodes(Session& session, const NodeFlags& flags, const std::vector<std::string>& names,
                                            std::vector<Error>* missing = nullptr) {
  std::vector<json::value> found;
  std::string labels(trim(flags.selector));  // spaces select nothing
  const std::string help = "\nSee 'coraclectl " + flags.command + " -h' for help and examples";
  auto wrong = [](const std::string& text) { return Error(Code::bad_request, text); };
  if (!names.empty() && !labels.empty()) return wrong("cannot specify both a node name and a --selector option" + help);
  if (!names.empty() && flags.all) return wrong("cannot specify both a node name and --all");
  if (!labels.empty() && flags.all) return wrong("setting 'all' parameter with a non empty selector is prohibited");
  if (names.empty() && flags.selector.empty() && !flags.all)
    return wrong(flags.command == "taint" ? "at least one resource name must be specified since 'all' parameter is not set"
                                          : "USAGE: " + flags.command + " NODE [flags]" + help);
  if (names.empty() && labels.empty() && !flags.all)
    return wrong("a node's name, or --selector, is required; see: coraclectl get nodes");
  if (names.empty()) {
    Request request{.path = session.path(nodes(), "")};
    if (!labels.empty()) request.query.emplace_back("labelSelector", labels);
    json::value list = TRY(session.json(request));
    for (const auto& item : items_of(list)) found.push_back(item);
    return found;
  }
  for (const auto& name : names) {
    std::string plain = TRY(node_name(name));
    auto node = session.json({.path = session.path(nodes(), "", plain)});
    if (node) found.push_back(*std::move(node));
    else if (!missing) return node.take_error();
    else missing->push_back(node.take_error());
  }
  return found;
}

// The node after a merge patch, or the expected node in a dry run.
Result<json::value> patch_node(Session& session, const NodeFlags& flags, const json::value& node, json::object patch) {
  std::string name(metadata_of(node).name());
  Live live{&nodes(), "", name, node};
  std::string validation = TRY(field_validation_of(flags.validate));
  if (flags.dry_run == DryRun::client) return patched_here(live, std::move(patch), kMergePatch);
  return session.json({.method = "PATCH",
                       .path = session.path(nodes(), "", name),
                       .query = {{"fieldManager", flags.field_manager}, {"fieldValidation", validation}},
                       .body = to_text(patch),
                       .content_type = kMergePatch});
}

Result<void> set_cordon(Session& session, const NodeFlags& flags, const json::value& node, bool closed) {
  std::string name(metadata_of(node).name());
  const char* word = closed ? "cordoned" : "uncordoned";
  if (view::Node(node).spec().unschedulable() == closed) {
    out("node/" + name + " already " + word + dry_run_note(flags.dry_run) + "\n");
    return {};
  }
  json::object spec;
  spec["unschedulable"] = closed ? json::value(true) : json::value(nullptr);
  TRY(patch_node(session, flags, node, {{"spec", std::move(spec)}}));
  out("node/" + name + " " + word + dry_run_note(flags.dry_run) + "\n");
  return {};
}

Result<int> run_cordon(Commands& commands, const NodeFlags& flags, bool closed) {
  Session* session = TRY(commands.session());
  std::vector<json::value> found = TRY(find_nodes(*session, flags, flags.args));
  for (const auto& node : found) TRY(set_cordon(*session, flags, node, closed));
  return 0;
}

// ---- drain ----

class Drain {
 public:
  Drain(Session& session, const NodeFlags& flags, milliseconds timeout)
      : session_(session), flags_(flags), timeout_(timeout), deadline_(std::chrono::steady_clock::now() + timeout) {}

  // Errors: conflict where pods must not go; refusals() has the reasons one by one.
  Result<void> run(const json::value& node) {
    std::string name(metadata_of(node).name());
    std::vector<json::value> pods = TRY(pods_on(name));
    DrainPlan plan = plan_drain(pods, flags_);
    refusals_ = plan.refusals;
    if (!refusals_.empty())
      return Error(Code::conflict, refusals_.size() == 1 ? refusals_.front() : "[" + join(refusals_, ", ") + "]");
    if (!plan.warnings.empty()) tell("Warning: " + join(plan.warnings, "; ") + "\n");
    if (!flags_.disable_eviction && flags_.dry_run != DryRun::client) evicts_ = TRY(server_evicts());
    auto sent = send_away(std::move(plan.evict));
    if (!sent) tell_pending(name, sent.error());
    TRY(std::move(sent));
    out("node/" + name + " drained" + dry_run_note(flags_.dry_run) + "\n");
    return {};
  }
  const std::vector<std::string>& refusals() const { return refusals_; }

 private:
  using Pods = std::vector<const json::value*>;
  // Those of the node that have to go, and those that nobody may send away.
  Result<std::vector<json::value>> pods_on(const std::string& node) {
    Request request{.path = session_.path(pods_, ""), .query = {{"fieldSelector", "spec.nodeName=" + node}}};
    if (!flags_.pod_selector.empty()) request.query.emplace_back("labelSelector", flags_.pod_selector);
    json::value list = TRY(paged_list(session_, std::move(request), flags_.chunk_size));
    std::vector<json::value> pods;
    for (const auto& pod : items_of(list))
      if (!long_gone(pod)) pods.push_back(pod);
    return pods;
  }

  void tell_pending(const std::string& node, const Error& error) {
    auto pods = pods_on(node);
    if (!pods) return tell("Following errors occurred while getting the list of pods to delete:\n" + pods.error().text() + "\n");
    Pods pending = plan_drain(*pods, flags_).evict;
    if (pending.empty()) return;
    tell("There are pending pods in node " + coracle::quoted(node) + " when an error occurred: " + error.text() + "\n");
    for (const auto* pod : pending) tell("pod/" + name_of(*pod) + "\n");
  }

  static std::string ns_of(const json::value& pod) { return std::string(metadata_of(pod).namespace_()); }
  static std::string name_of(const json::value& pod) { return std::string(metadata_of(pod).name()); }
  static std::string uid_of(const json::value& pod) { return std::string(metadata_of(pod).uid()); }
  bool tries_only() const { return flags_.dry_run != DryRun::none; }

  // The pod has been terminating for longer than --skip-wait-for-delete-timeout.
  bool long_gone(const json::value& pod) const {
    auto since = parse_time(metadata_of(pod).deletion_timestamp());
    return flags_.skip_gone_seconds > 0 && since &&
           system_clock().now() - *since > std::chrono::seconds(flags_.skip_gone_seconds);
  }

  Result<bool> server_evicts() {  // an older or restricted server may lack evictions
    json::value core = TRY(session_.json({.path = "/api/v1"}));
    for (view::APIResource resource : view::APIResourceList(core).resources())
      if (resource.name() == "pods/eviction") return true;
    return false;
  }

  // The time left to wait for `pod`; 0: no limit. Errors: timeout.
  Result<milliseconds> time_left(const json::value& pod) {
    if (timeout_.count() == 0) return milliseconds(0);
    auto left = std::chrono::duration_cast<milliseconds>(deadline_ - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return Error(Code::timeout, "error when " + std::string(evicts_ ? "evicting" : "waiting for") + " pods/" +
                                      coracle::quoted(name_of(pod)) + " -n " + coracle::quoted(ns_of(pod)) +
                                      ": global timeout reached: " + flags_.timeout);
    return left;
  }

  Request request_for(const json::value& pod) {
    json::object options = session_.delete_options();
    options["preconditions"] = json::object{{"uid", uid_of(pod)}};
    if (flags_.grace_period >= 0) options["gracePeriodSeconds"] = flags_.grace_period;
    Request request{.method = "DELETE", .path = session_.path(pods_, ns_of(pod), name_of(pod)), .body = to_text(options)};
    if (evicts_) {
      json::object eviction{{"apiVersion", "policy/v1"},
                            {"kind", "Eviction"},
                            {"metadata", {{"name", name_of(pod)}, {"namespace", ns_of(pod)}}},
                            {"deleteOptions", std::move(options)}};
      request = {.method = "POST", .path = session_.path(pods_, ns_of(pod), name_of(pod), "eviction"), .body = to_text(eviction)};
    }
    return request;
  }

  // Evicts all pods that may go now. Pods held by a disruption budget are retried after a delay, or when one of them has gone.
  Result<void> send_away(Pods held) {
    for (;;) {
      Pods going, still_held;
      for (const auto* pod : held) {
        bool goes = TRY(send_one(*pod));
        (goes ? going : still_held).push_back(pod);
      }
      for (const auto* pod : tries_only() ? Pods() : going) {
        milliseconds left = TRY(time_left(*pod));
        TRY(wait_gone(session_, pods_, ns_of(*pod), name_of(*pod), uid_of(*pod), left));
        out("pod/" + name_of(*pod) + (evicts_ ? " evicted\n" : " deleted\n"));
      }
      if (still_held.empty()) return {};
      const json::value& first = *still_held.front();
      milliseconds left = TRY(time_left(first));
      auto gone = wait_gone(session_, pods_, ns_of(first), name_of(first), uid_of(first),
                            left.count() ? std::min(left, kEvictAgain) : kEvictAgain);
      if (!gone && gone.error().code() != Code::timeout) return gone;
      TRY(time_left(first));
      held = std::move(still_held);
    }
  }

  // Returns false if a disruption budget forbids the eviction.
  Result<bool> send_one(const json::value& pod) {
    std::string shown = pod_name(pod);
    if (evicts_ || flags_.dry_run == DryRun::client) out("evicting pod " + shown + dry_run_note(flags_.dry_run) + "\n");
    else if (tries_only()) out("deleting pod " + shown + dry_run_note(flags_.dry_run) + "\n");
    if (flags_.dry_run == DryRun::client) return true;
    auto answer = session_.json(request_for(pod));
    if (answer || answer.error().code() == Code::not_found) return true;
    if (answer.error().code() == Code::conflict) return true;  // another pod has this name now
    std::string when = "error when evicting pods/" + coracle::quoted(name_of(pod)) + " -n " + coracle::quoted(ns_of(pod));
    if (!evicts_ || answer.error().code() != Code::too_many_requests) return answer.take_error().wrap(when);
    tell(when + " (will retry after 5s): " + answer.error().text() + "\n");
    return false;
  }

  Session& session_;
  const NodeFlags& flags_;
  const schema::KindInfo& pods_ = schema::catalog().of(kPod);
  milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
  bool evicts_ = false;
  std::vector<std::string> refusals_;
};

// What stands at the end, without "error: ", as kubectl has it: of one node the reasons one by one, of several nodes a line each.
void print_undrained(const std::vector<std::vector<Error>>& failures) {
  for (const auto& reasons : failures) {
    std::vector<std::string> texts;
    for (const Error& reason : reasons) {
      if (failures.size() == 1 && reason.details()) print_failure(reason);
      else texts.push_back(reason.text());
    }
    if (failures.size() == 1)
      for (const auto& text : texts) tell(text + "\n");
    else tell(texts.size() == 1 ? texts.front() + "\n" : "[" + join(texts, ", ") + "]\n");
  }
}

Result<int> run_drain(Commands& commands, const NodeFlags& flags) {
  milliseconds timeout = TRY(parse_timeout(flags.timeout).wrap("--timeout"));
  if (!LabelSelector::parse(flags.pod_selector))  // said now, before the node is cordoned
    return Error(Code::bad_request, "--pod-selector=<pod_selector> must be a valid label selector");
  Session* session = TRY(commands.session());
  std::vector<json::value> found = TRY(find_nodes(*session, flags, flags.args));
  for (const auto& node : found) TRY(set_cordon(*session, flags, node, true));
  std::vector<std::vector<Error>> failures;
  std::string pending;
  for (const auto& node : found) {
    Drain drain(*session, flags, timeout);
    auto drained = drain.run(node);
    if (drained) continue;
    std::string name(metadata_of(node).name());
    tell("error: unable to drain node " + coracle::quoted(name) + " due to error: " + drained.error().text() +
         ", continuing command...\n");
    pending += " " + name + "\n";
    std::vector<Error>& reasons = failures.emplace_back();
    for (const auto& refusal : drain.refusals()) reasons.emplace_back(Code::conflict, refusal);
    if (reasons.empty()) reasons.push_back(drained.take_error());
  }
  if (!failures.empty()) tell("There are pending nodes to be drained:\n" + pending);
  print_undrained(failures);
  return failures.empty() ? 0 : 1;
}

// ---- taint ----

struct TaintWords {
  bool has_kind = false;  // "nodes"
  std::vector<std::string> names;
  std::vector<TaintChange> changes;
};

Result<TaintWords> read_taint_words(const NodeFlags& flags) {
  TaintWords words;
  for (size_t i = 0; i < flags.args.size(); ++i) {
    const std::string& word = flags.args[i];
    const schema::KindInfo* kind = i == 0 ? schema::catalog().by_name(word) : nullptr;
    if (kind == &nodes()) {  // the word "nodes" of "taint nodes edge …"
      words.has_kind = true;
      continue;
    }
    if (kind) return Error(Code::bad_request, "invalid resource type " + word + ", only node types are supported");
    bool is_change = word.find_first_of("=:") != word.npos ||
                     (word.ends_with('-') && (!words.names.empty() || flags.all || !flags.selector.empty()));
    if (!is_change && !words.changes.empty())
      return Error(Code::bad_request, "all resources must be specified before taint changes: " + word);
    if (!is_change) {
      words.names.push_back(word);
      continue;
    }
    auto change = parse_taint(word);
    if (!change) return Error(Code::bad_request, change.error().text() + "\nSee 'coraclectl taint -h' for help and examples");
    words.changes.push_back(*std::move(change));
  }
  bool has_nodes = words.has_kind || !words.names.empty() || flags.all || !flags.selector.empty();
  if (!has_nodes) return Error(Code::bad_request, "one or more resources must be specified as <resource> <name>");
  if (words.changes.empty()) return Error(Code::bad_request, "at least one taint update is required");
  TRY(check_taints(words.changes));
  return words;
}

Result<void> taint_one(Session& session, const NodeFlags& flags, const json::value& node,
                       const std::vector<TaintChange>& changes) {
  std::string name(metadata_of(node).name());
  TaintResult result = TRY(change_taints(view::Node(node).spec().taints().raw(), changes, flags.overwrite, name));
  json::object metadata{{"resourceVersion", metadata_of(node).resource_version()}}, spec;
  spec["taints"] = std::move(result.taints);
  json::value changed = TRY(patch_node(session, flags, node, {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}}));
  name_kind(changed, nodes());
  print_outcome(flags.output, flags.dry_run, std::move(changed), nodes(),
                result.added && result.removed ? "modified"
                : result.added                 ? "tainted"
                                               : "untainted");
  return {};
}

// A failure does not stop the other nodes.
Result<int> run_taint(Commands& commands, const NodeFlags& flags) {
  TaintWords words = TRY(read_taint_words(flags));
  TRY(field_validation_of(flags.validate));
  Session* session = TRY(commands.session());
  std::vector<Error> failures;
  std::vector<json::value> found = TRY(find_nodes(*session, flags, words.names, &failures));
  for (const auto& node : found)
    if (auto done = taint_one(*session, flags, node, words.changes); !done) failures.push_back(done.take_error());
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

void add_node_flags(Commands& commands, Command command, NodeFlags& flags) {
  flags.command = command.name();
  commands.add_dry_run(command, flags.dry_run);
  command.add_option("-l,--selector", flags.selector, "label selector, of nodes");
}

}  // namespace

void add_node(Commands& commands) {
  for (bool closed : {true, false}) {
    auto flags = std::make_shared<NodeFlags>();
    Command command =
        closed ? commands.add("cordon", "Let no new pods come to a node") : commands.add("uncordon", "Let new pods come again");
    command.add_option("args", flags->args, "NODE ...");
    add_node_flags(commands, command, *flags);
    commands.on(command, [&commands, flags, closed] { return run_cordon(commands, *flags, closed); });
  }
  auto flags = std::make_shared<NodeFlags>();
  Command drain = commands.add("drain", "Cordon a node and send its pods away, before work on it");
  drain.add_option("args", flags->args, "NODE ...");
  add_node_flags(commands, drain, *flags);
  drain.add_option("--pod-selector", flags->pod_selector, "only pods with these labels");
  drain.add_option("--grace-period", flags->grace_period, "seconds a pod gets to stop; -1: its own");
  drain.add_option("--skip-wait-for-delete-timeout", flags->skip_gone_seconds,
                   "do not wait for pods that were asked to go longer ago than these seconds");
  drain.add_option("--chunk-size", flags->chunk_size, "pods that one answer of the server holds; 0: all");
  drain.add_option("--timeout", flags->timeout, "how long to wait; 0s: as long as it takes").as_duration();
  drain.add_flag("--ignore-daemonsets", flags->ignore_daemonsets, "leave pods of DaemonSets where they are");
  drain.add_flag("--delete-emptydir-data,--delete-local-data", flags->delete_emptydir_data,
                 "also pods whose emptyDir goes with them");
  drain.add_flag("--force", flags->force, "also pods that nobody will make again");
  drain.add_flag("--disable-eviction", flags->disable_eviction, "delete instead of evicting: disruption budgets are not asked");
  commands.on(drain, [&commands, flags] { return run_drain(commands, *flags); });

  auto taint_flags = std::make_shared<NodeFlags>();
  Command taint = commands.add("taint", "Keep pods away that do not tolerate it: nodes NAME KEY=VALUE:EFFECT, KEY-");
  taint.add_option("args", taint_flags->args, "KIND NAME KEY=VALUE:EFFECT ... KEY- ..., KIND being nodes");
  add_node_flags(commands, taint, *taint_flags);
  taint_flags->field_manager = "kubectl-taint";
  taint.add_option("--field-manager", taint_flags->field_manager, "who owns the fields");
  commands.add_output(taint, taint_flags->output);
  taint.add_option("--validate", taint_flags->validate, "strict, warn or ignore: what the server does about unknown fields")
      .optional_value("strict");
  taint.add_flag("--overwrite", taint_flags->overwrite, "replace a taint that is there");
  taint.add_flag("--all", taint_flags->all, "all nodes");
  commands.on(taint, [&commands, taint_flags] { return run_taint(commands, *taint_flags); });
}

}  // namespace coracle::ctl
