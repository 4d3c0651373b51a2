// SPDX-License-Identifier: Apache-2.0
// cordon, uncordon, drain, taint: keep new pods off a node or evict the pods on it. See node.h.
#include "ctl/node.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

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
constexpr milliseconds kLookAgain{1000};   // with --skip-wait-for-delete-timeout, or without watching: nothing tells then
constexpr milliseconds kWatchLongest{std::chrono::minutes(30)};
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

std::string daemon_set_of(const json::value& object) {
  view::Pod pod(object);
  view::OwnerReference controller = controller_of(pod);
  if (is_terminal(pod) || controller.kind() != "DaemonSet" || controller.api_version() != "apps/v1") return {};
  return std::string(pod.metadata().namespace_()) + "/" + std::string(controller.name());
}

DrainPlan plan_drain(const std::vector<json::value>& pods, const DrainRules& rules, const LostDaemonSets& lost) {
  DrainPlan plan;
  std::vector<std::string> daemons, local, lonely;
  std::map<std::string, std::vector<std::string>> of_lost;  // by what is wrong with their DaemonSet
  for (const auto& object : pods) {
    view::Pod pod(object);
    const bool ended = is_terminal(pod);
    if (std::string set = daemon_set_of(object);
        !set.empty()) {  // its controller ignores cordons, and would make it again at once
      auto found = lost.find(set);
      bool goes = found != lost.end() && found->second.is_gone && rules.force;
      if (!goes) {
        (found == lost.end() ? daemons : of_lost[found->second.why]).push_back(pod_name(object));
        continue;
      }
    }
    if (is_mirror(pod)) continue;
    if (!ended && has_empty_dir(pod) && !rules.delete_emptydir_data) {  // kubectl says nothing of those that may go
      local.push_back(pod_name(object));
      continue;
    }
    if (!ended && !controller_of(pod)) {
      lonely.push_back(pod_name(object));
      if (!rules.force) continue;
    }
    plan.evict.push_back(&object);
  }
  auto judge = [&](const std::vector<std::string>& found, bool allowed, const std::string& warning, const std::string& refusal) {
    if (found.empty()) return;
    if (allowed) plan.warnings.push_back(warning + join(found, ", "));
    else plan.refusals.push_back("cannot delete " + refusal + ": " + join(found, ", "));
  };
  judge(daemons, rules.ignore_daemonsets,
        "ignoring DaemonSet-managed Pods: ", "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)");
  for (const auto& [why, names] : of_lost) judge(names, false, "", why);
  judge(local, false, "", "Pods with local storage (use --delete-emptydir-data to override)");
  judge(lonely, rules.force,
        "deleting Pods that declare no controller: ", "Pods that declare no controller (use --force to override)");
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
  const Kind& kind = named.front().kind->kind;
  return Error(Code::bad_request, "expected resource of type node, got " +
                                      coracle::quoted(std::string(kind.group) + "/" + std::string(kind.version) +
                                                      ", Resource=" + std::string(kind.resource)));
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

bool says_that_namespace_ends(const Error& error) {
  if (error.code() != Code::forbidden || !error.details()) return false;
  return std::ranges::any_of(error.details()->causes, [](const Cause& cause) { return cause.reason == "NamespaceTerminating"; });
}

class Drain {
 public:
  Drain(Session& session, const NodeFlags& flags, milliseconds timeout)
      : session_(session), flags_(flags), timeout_(timeout), deadline_(std::chrono::steady_clock::now() + timeout) {}

  // Errors: conflict where pods must not go or one could not be sent away; reasons() has them one by one.
  Result<void> run(const json::value& node) {
    std::string name(metadata_of(node).name());
    std::vector<json::value> pods = TRY(pods_on(name));
    DrainPlan plan = plan_drain(pods, flags_, lost_daemon_sets(pods));
    for (const auto& refusal : plan.refusals) reasons_.emplace_back(Code::conflict, refusal);
    if (!reasons_.empty()) return all_reasons();
    if (!plan.warnings.empty()) tell("Warning: " + join(plan.warnings, "; ") + "\n");
    if (!flags_.disable_eviction && flags_.dry_run != DryRun::client) TRY(find_eviction());
    auto sent = send_away(name, plan.evict);
    if (sent && !reasons_.empty()) sent = all_reasons();
    if (!sent) tell_pending(name, sent.error());
    TRY(std::move(sent));
    out("node/" + name + " drained" + dry_run_note(flags_.dry_run) + "\n");
    return {};
  }
  const std::vector<Error>& reasons() const { return reasons_; }

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

  // The DaemonSets of these pods that cannot be read.
  LostDaemonSets lost_daemon_sets(const std::vector<json::value>& pods) {
    LostDaemonSets lost;
    std::set<std::string> seen;
    for (const auto& pod : pods) {
      std::string set = daemon_set_of(pod);
      if (set.empty() || !seen.insert(set).second) continue;
      auto found =
          session_.json({.path = session_.path(schema::catalog().of(kDaemonSet), ns_of(pod), set.substr(set.find('/') + 1))});
      if (!found) lost[set] = {found.error().text(), found.error().code() == Code::not_found};
    }
    return lost;
  }

  Error all_reasons() const {
    std::vector<std::string> texts;
    for (const Error& reason : reasons_) texts.push_back(reason.text());
    return Error(Code::conflict, texts.size() == 1 ? texts.front() : "[" + join(texts, ", ") + "]");
  }

  void tell_pending(const std::string& node, const Error& error) {
    auto pods = pods_on(node);
    if (!pods) return tell("Following errors occurred while getting the list of pods to delete:\n" + pods.error().text() + "\n");
    Pods pending = plan_drain(*pods, flags_, lost_daemon_sets(*pods)).evict;
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

  // An older or restricted server may lack evictions, or have them in an older version only.
  Result<void> find_eviction() {
    json::value core = TRY(session_.json({.path = "/api/v1"}));
    for (view::APIResource resource : view::APIResourceList(core).resources()) {
      if (resource.name() != "pods/eviction" || resource.kind() != "Eviction") continue;
      if (resource.group().empty() || resource.version().empty()) continue;
      evicts_ = true;
      const bool is_new = resource.group() == "policy" && resource.version() == "v1";
      eviction_version_ = is_new ? "policy/v1" : "policy/v1beta1";  // all that have evictions have that one, until 1.24
    }
    return {};
  }

  // What is left of --timeout; nothing where there is no limit.
  std::optional<milliseconds> left() const {
    if (timeout_.count() == 0) return std::nullopt;
    return std::chrono::duration_cast<milliseconds>(deadline_ - std::chrono::steady_clock::now());
  }

  Request request_for(const json::value& pod) {
    json::object options = session_.delete_options();
    options["preconditions"] = json::object{{"uid", uid_of(pod)}};
    if (flags_.grace_period >= 0) options["gracePeriodSeconds"] = flags_.grace_period;
    Request request{.method = "DELETE", .path = session_.path(pods_, ns_of(pod), name_of(pod)), .body = to_text(options)};
    if (evicts_) {
      json::object eviction{{"apiVersion", eviction_version_},
                            {"kind", "Eviction"},
                            {"metadata", {{"name", name_of(pod)}, {"namespace", ns_of(pod)}}},
                            {"deleteOptions", std::move(options)}};
      request = {.method = "POST", .path = session_.path(pods_, ns_of(pod), name_of(pod), "eviction"), .body = to_text(eviction)};
    }
    return request;
  }

  using Moment = std::chrono::steady_clock::time_point;
  struct Held {
    const json::value* pod;
    Moment again;  // when it is tried again
  };

  // Sends all pods away, each on its own: those that a disruption budget holds are tried again after a delay, whichever others
  // have not ended yet. What fails of one pod is a reason, and the others go all the same. Errors: of a deletion, at which it
  // ends as kubectl does.
  Result<void> send_away(const std::string& node, const Pods& pods) {
    std::vector<Held> held;
    Pods going;
    for (const auto* pod : pods) held.push_back({pod, Moment::min()});
    for (;;) {
      TRY(send_due(held, going));
      if (tries_only()) going.clear();
      if (going.empty() && held.empty()) return {};
      TRY(await_some(node, held, going));
    }
  }

  // Sends those whose time has come; those that go are added to `going`.
  Result<void> send_due(std::vector<Held>& held, Pods& going) {
    for (const Held& one : std::exchange(held, {})) {
      if (one.again > std::chrono::steady_clock::now() && !is_over()) {
        held.push_back(one);
        continue;
      }
      auto sent = send_one(*one.pod);
      if (!sent && !evicts_) return sent.take_error();
      if (!sent) reasons_.push_back(sent.take_error());
      else if (*sent == Sent::goes) going.push_back(one.pod);
      else if (*sent == Sent::is_held) held.push_back({one.pod, std::chrono::steady_clock::now() + kEvictAgain});
    }
    return {};
  }

  // Tells which of `going` have ended, and waits until others have or one of `held` may be tried again, at most for what is left
  // of --timeout. Who may not watch looks again and again: kubectl does not watch, so who drains need not be let.
  Result<void> await_some(const std::string& node, std::vector<Held>& held, Pods& going) {
    const auto start = std::chrono::steady_clock::now();
    Request request{.path = session_.path(pods_, ""), .query = {{"fieldSelector", "spec.nodeName=" + node}}};
    auto list = paged_list(session_, request, flags_.chunk_size);
    if (list) look_at(items_of(*list), held, going);
    else TRY(give_up(going, list.error().text()));
    if (is_over()) TRY(give_up(going, "context deadline exceeded"));
    const milliseconds rest = until_next(held);
    if ((going.empty() && held.empty()) || rest.count() <= 0) return {};
    if (list) {
      request.query.emplace_back("resourceVersion", view::List(*list).metadata().resource_version());
      if (watch_ends(std::move(request), rest, held, going)) return {};
    }
    const auto over = start + std::min(rest, kLookAgain);  // after a watch that was refused, or ended too soon
    const auto pause = std::chrono::ceil<milliseconds>(over - std::chrono::steady_clock::now()).count();
    if (pause > 0) (void)::poll(nullptr, 0, int(pause));
    return {};
  }

  // `pods` are all that the node has now.
  void look_at(const json::array& pods, std::vector<Held>& held, Pods& going) {
    std::map<std::string, const json::value*> by_uid;
    for (const json::value& pod : pods) by_uid[uid_of(pod)] = &pod;
    for (Held& one : held)
      if (!by_uid.contains(uid_of(*one.pod))) one.again = Moment::min();
    std::erase_if(going, [&](const json::value* pod) {
      auto now = by_uid.find(uid_of(*pod));
      if (now == by_uid.end()) return tell_end(*pod), true;
      if (!long_gone(*now->second)) return false;
      out("pod " + coracle::quoted(name_of(*pod)) + " has DeletionTimestamp older than " +
          std::to_string(flags_.skip_gone_seconds) + " seconds, skipping\n");
      return true;
    });
  }

  // Tells which pods end, until all have, one of `held` has, or the time is over. False if none has.
  bool watch_ends(Request request, milliseconds span, std::vector<Held>& held, Pods& going) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(span).count();
    request.query.insert(request.query.end(), {{"watch", "true"}, {"timeoutSeconds", std::to_string(seconds)}});
    bool has_ended = false, is_held = false;
    std::string partial;
    (void)session_.watch(request, [&](std::string_view bytes) {  // what is wrong with it, the next list tells
      partial += bytes;
      for (size_t end; (end = partial.find('\n')) != partial.npos; partial.erase(0, end + 1)) {
        auto event = parse_json(std::string_view(partial).substr(0, end));
        if (!event || view::WatchEvent(*event).type() != "DELETED" || !view::WatchEvent(*event).object()) continue;
        const std::string uid = uid_of(*view::WatchEvent(*event).object());
        for (Held& one : held)
          if (uid_of(*one.pod) == uid) one.again = Moment::min(), is_held = true;
        has_ended |= std::erase_if(going, [&](const auto* pod) { return uid_of(*pod) == uid && (tell_end(*pod), true); }) > 0;
        if (is_held || going.empty()) return false;
      }
      return true;
    });
    return has_ended || is_held;
  }

  void tell_end(const json::value& pod) { out("pod/" + name_of(pod) + (evicts_ ? " evicted\n" : " deleted\n")); }

  // Nobody waits for these any more. Errors: of a deletion.
  Result<void> give_up(Pods& going, const std::string& why) {
    for (const auto* pod : std::exchange(going, {})) {
      if (!evicts_) return not_ended(*pod, why);
      reasons_.push_back(not_ended(*pod, why));
    }
    return {};
  }

  bool is_over() const { return left() && left()->count() <= 0; }

  // For how long there is nothing to do but to wait for pods that go.
  milliseconds until_next(const std::vector<Held>& held) const {
    milliseconds rest = left().value_or(kWatchLongest);
    if (flags_.skip_gone_seconds > 0) rest = std::min(rest, kLookAgain);
    for (const Held& one : held) {
      if (one.again == Moment::min()) return milliseconds(0);
      rest = std::min(rest, std::chrono::ceil<milliseconds>(one.again - std::chrono::steady_clock::now()));
    }
    return rest;
  }

  Error not_ended(const json::value& pod, const std::string& why) const {
    if (!evicts_) return Error(Code::timeout, why);
    return Error(Code::timeout, "error when waiting for pod " + coracle::quoted(name_of(pod)) + " in namespace " +
                                    coracle::quoted(ns_of(pod)) + " to terminate: " + why);
  }

  enum class Sent : uint8_t { is_gone, goes, is_held };  // held: by a disruption budget, or by its namespace, which ends

  Result<Sent> send_one(const json::value& pod) {
    std::string shown = pod_name(pod);
    if (evicts_ || flags_.dry_run == DryRun::client) out("evicting pod " + shown + dry_run_note(flags_.dry_run) + "\n");
    else if (tries_only()) out("deleting pod " + shown + dry_run_note(flags_.dry_run) + "\n");
    if (flags_.dry_run == DryRun::client) return Sent::goes;
    std::string when = "error when evicting pods/" + coracle::quoted(name_of(pod)) + " -n " + coracle::quoted(ns_of(pod));
    if (auto most = left(); evicts_ && most && most->count() <= 0)
      return Error(Code::timeout, when + ": global timeout reached: " + duration_text(timeout_));
    auto answer = session_.json(request_for(pod));
    if (answer) return Sent::goes;
    const Error& error = answer.error();
    if (error.code() == Code::not_found) return evicts_ ? Sent::is_gone : Sent::goes;
    if (error.code() == Code::conflict) return Sent::goes;  // another pod has this name now
    if (!evicts_) return answer.take_error();
    if (error.code() == Code::too_many_requests) {
      tell(when + " (will retry after 5s): " + error.text() + "\n");
      return Sent::is_held;
    }
    if (!says_that_namespace_ends(error)) return Error(error.code(), when + ": " + error.text());
    auto now = session_.json({.path = session_.path(pods_, ns_of(pod), name_of(pod))});
    if (now && !metadata_of(*now).has_deletion_timestamp()) {
      tell("error when evicting pod " + coracle::quoted(name_of(pod)) + " from terminating namespace " +
           coracle::quoted(ns_of(pod)) + " (will retry after 5s): " + error.text() + "\n");
      return Sent::is_held;
    }
    return Sent::goes;  // with its namespace
  }

  Session& session_;
  const NodeFlags& flags_;
  const schema::KindInfo& pods_ = schema::catalog().of(kPod);
  milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
  bool evicts_ = false;
  std::string eviction_version_ = "policy/v1";
  std::vector<Error> reasons_;
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
    reasons = drain.reasons();
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
