// SPDX-License-Identifier: Apache-2.0
// hollow_node: one node or many that run nothing, for tests that need several machines. It uses the API over HTTPS like a
// kubelet: it registers Node objects, renews their leases, watches the pods bound to them and simulates their life cycle
// (pod_life.h describes the annotations that control it). Killed (KILL), it simulates a node without power.
//
//   hollow_node --kubeconfig FILE --name NAME [flags]
//     --count N            NAME-0 … NAME-(N-1); needs an administrator's kubeconfig. Without it, system:node:NAME is sufficient
//     --labels k=v,…       beside the usual ones           --taints k[=v]:Effect,…   from the start
//     --capacity r=q,…     defaults: cpu=4,memory=8Gi,pods=110,ephemeral-storage=100Gi
//     --allocatable r=q,…  what differs from the capacity
//     --net 10.99          the first half of its addresses: nodes are 10.99.0.1 and up, pods after each 250 of them
//     --pod-delay MS       from a pod's binding until it runs (200)
//     --renew SECONDS      between two renewals of a lease (10); it is valid for four of them
//     --silent             from the start: registers, and then does not report until USR2
//   USR1: silent: neither leases nor status are written, nothing happens to pods.  USR2: reports again.
//   TERM: deletes its Node and Lease and exits.
// Annotations on a Node change its status:
//   hollow/conditions: "Ready=False,MemoryPressure=True"     its conditions, where they differ from those of a healthy node
//   hollow/silent: "true"                                    as USR1, for this node alone
//
//   informers (nodes, pods of these nodes) ── key ──▶ queue ──▶ one worker: read, plan, write what differs
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "daemon/informer/informer.h"
#include "daemon/queue/work_queue.h"
#include "runtime/base/text.h"
#include "store/client/kubeconfig.h"
#include "store/client/remote.h"
#include "tests/hollow/addresses.h"
#include "tests/hollow/pod_life.h"

namespace coracle::hollow {
namespace {

const std::string kLeases = "kube-node-lease";
const std::string kLeaseKey = "/lease";  // no namespace has this name

struct Flags {
  std::string kubeconfig, name, net = "10.99";
  int count = 0;  // 0: one node, with exactly the given name
  json::object labels, capacity{{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "110"}, {"ephemeral-storage", "100Gi"}}, allocatable;
  json::array taints;
  std::chrono::milliseconds pod_delay{200};
  std::chrono::seconds renew{10};
  bool silent = false;
};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "hollow_node: %s\n", why.c_str());
  std::exit(1);
}

std::pair<std::string, std::string> halves(std::string_view text, char at) {
  size_t end = text.find(at);
  return {std::string(text.substr(0, end)), end == text.npos ? std::string() : std::string(text.substr(end + 1))};
}

void add_pairs(json::object& to, std::string_view list) {
  for (std::string_view one : split(list, ',')) {
    auto [name, value] = halves(one, '=');
    if (!name.empty()) to[name] = value;
  }
}

json::array taints_of(std::string_view list) {
  json::array taints;
  for (std::string_view one : split(list, ',')) {
    auto [what, effect] = halves(one, ':');
    auto [key, value] = halves(what, '=');
    if (key.empty()) continue;
    json::object taint{{"key", key}, {"effect", effect}};
    if (!value.empty()) taint["value"] = value;
    taints.push_back(std::move(taint));
  }
  return taints;
}

Flags read_flags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    if (flag == "--silent") {
      flags.silent = true;
      continue;
    }
    if (i + 1 == argc) die("what is " + std::string(flag) + "? hollow_node.cc begins with its flags");
    std::string_view value = argv[++i];
    int number = parse_number<int>(value).value_or(0);
    if (flag == "--kubeconfig") flags.kubeconfig = value;
    else if (flag == "--name") flags.name = value;
    else if (flag == "--count") flags.count = number;
    else if (flag == "--net") flags.net = value;
    else if (flag == "--labels") add_pairs(flags.labels, value);
    else if (flag == "--taints") flags.taints = taints_of(value);
    else if (flag == "--capacity") add_pairs(flags.capacity, value);
    else if (flag == "--allocatable") add_pairs(flags.allocatable, value);
    else if (flag == "--pod-delay") flags.pod_delay = std::chrono::milliseconds(number);
    else if (flag == "--renew") flags.renew = std::chrono::seconds(number);
    else die("what is " + std::string(flag) + "? hollow_node.cc begins with its flags");
  }
  if (flags.count > Addresses::kNodesMax) die("has no addresses for so many nodes");
  if (flags.name.empty() || flags.kubeconfig.empty() || flags.renew.count() <= 0) die("needs --kubeconfig and --name");
  return flags;
}

class Fleet {
 public:
  Fleet(const Flags& flags, Client& client)
      : flags_(flags),
        client_(client),
        addresses_(flags.net, std::max(flags.count, 1)),
        pods_(client, kPod, {.field_selector = flags.count ? "" : "spec.nodeName=" + flags.name}),
        nodes_(client, kNode, {.field_selector = flags.count ? "" : "metadata.name=" + flags.name}),
        silent_(flags.silent) {
    for (int i = 0; i < std::max(flags.count, 1); ++i)
      names_.emplace(flags.count ? flags.name + "-" + std::to_string(i) : flags.name, i);
    pods_.on_change([this](const Informer::Change& change) {
      if (names_.contains(std::string(get_string(change.any().json(), "spec.nodeName")))) queue_.add(change.any().key());
    });
    nodes_.on_change([this](const Informer::Change& change) {
      if (names_.contains(change.any().name())) queue_.add(change.any().key());
    });
  }
  ~Fleet() { pods_.stop(), nodes_.stop(); }

  Result<void> start() {
    for (const auto& [name, number] : names_) {
      TRY(register_node(name, number));
      if (!flags_.silent) TRY(renew(name));
      queue_.add_after({kLeaseKey, name}, flags_.renew);
    }
    TRY(nodes_.start());
    TRY(pods_.start());
    worker_ = std::jthread([this](std::stop_token stop) {
      if (!nodes_.wait_synced(stop) || !pods_.wait_synced(stop)) return;
      run_worker(stop, queue_, "hollow", [this](const Key& key) { return reconcile(key); });
    });
    return {};
  }

  void be_silent(bool silent) {
    silent_ = silent;
    if (silent) return;
    for (const auto& [name, number] : names_) queue_.add({kLeaseKey, name}), queue_.add({"", name});
    for (const ObjectPtr& pod : pods_.list()) queue_.add(pod->key());
  }

  void leave() {
    worker_ = {};
    for (const auto& [name, number] : names_)
      for (const auto& [kind, key] : {std::pair{&kLease, Key{kLeases, name}}, {&kNode, Key{"", name}}})
        if (auto removed = client_.remove(*kind, key); !removed && removed.error().code() != Code::not_found)
          std::fprintf(stderr, "%s stays: %s\n", name.c_str(), removed.error().text().c_str());
  }

 private:
  struct Life {
    std::string uid;
    PodLife life;
    bool removed = false;
  };

  bool is_silent(const std::string& node) const {
    ObjectPtr object = nodes_.get({"", node});
    return silent_ || (object && object->annotation("hollow/silent") == "true");
  }

  bool is_ready(const std::string& node) const {
    ObjectPtr object = nodes_.get({"", node});
    return object && ready_of(*object) == "True";
  }
  static std::string_view ready_of(const Object& node) {
    for (const json::value& condition : get_array(node.json(), "status.conditions"))
      if (get_string(condition, "type") == "Ready") return get_string(condition, "status");
    return {};
  }
  // For a node that is down, the controllers set the pods' Ready condition to false; overwriting that would never end.
  static void drop_ready(json::object& status) {
    json::value* conditions = status.if_contains("conditions");
    if (!conditions) return;
    json::array kept;
    for (const json::value& one : conditions->as_array())
      if (get_string(one, "type") != "Ready") kept.push_back(one);
    *conditions = std::move(kept);
  }

  Result<Outcome> reconcile(const Key& key) {
    if (key.ns == kLeaseKey) {
      if (!is_silent(key.name)) {
        TRY(renew(key.name));
      }
      return Outcome{flags_.renew};
    }
    return key.ns.empty() ? look_at_node(key) : look_at_pod(key);
  }

  json::object labels_of(const std::string& name) const {
    json::object labels{{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"}};
    for (const auto& label : flags_.labels) labels[label.key()] = label.value();
    return labels;
  }

  Result<void> register_node(const std::string& name, int number) {
    json::object metadata{{"name", name}, {"labels", labels_of(name)}};
    json::object body{{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"metadata", std::move(metadata)},
                      {"spec", json::object{{"taints", flags_.taints}}}};
    auto made = client_.create(kNode, body);
    if (!made && made.error().code() == Code::already_exists) made = client_.get(kNode, {"", name});
    ObjectPtr node = TRY(std::move(made).wrap("register " + name));
    json::object allocatable = flags_.capacity;
    for (const auto& resource : flags_.allocatable) allocatable[resource.key()] = resource.value();
    json::object info{{"machineID", name},           {"systemUUID", name},     {"bootID", node->uid()},
                      {"kernelVersion", "hollow"},   {"osImage", "hollow"},    {"containerRuntimeVersion", "hollow://1"},
                      {"kubeletVersion", "v1.36.1"}, {"kubeProxyVersion", ""}, {"operatingSystem", "linux"},
                      {"architecture", "amd64"}};
    json::object status{{"capacity", flags_.capacity},
                        {"allocatable", std::move(allocatable)},
                        {"nodeInfo", std::move(info)},
                        {"conditions", conditions_of(*node)},
                        {"addresses", json::array{json::object{{"type", "InternalIP"}, {"address", addresses_.of_node(number)}},
                                                  json::object{{"type", "Hostname"}, {"address", name}}}}};
    TRY(client_
            .patch(kNode, {"", name}, PatchType::strategic, json::object{{"status", std::move(status)}},
                   {.subresource = "status"})
            .wrap("report " + name));
    return {};
  }

  Result<void> renew(const std::string& name) {
    json::object spec{{"holderIdentity", name},
                      {"leaseDurationSeconds", 4 * flags_.renew.count()},
                      {"renewTime", format_micro_time(system_clock().now())}};
    auto renewed = client_.patch(kLease, {kLeases, name}, PatchType::merge, json::object{{"spec", spec}});
    if (renewed) return {};
    if (renewed.error().code() != Code::not_found) return renewed.take_error().wrap("renew the lease of " + name);
    json::object metadata{{"namespace", kLeases}, {"name", name}};
    TRY(client_.create(kLease, json::object{{"apiVersion", "coordination.k8s.io/v1"},
                                            {"kind", "Lease"},
                                            {"metadata", std::move(metadata)},
                                            {"spec", std::move(spec)}}));
    return {};
  }

  static json::array conditions_of(const Object& node) {
    std::map<std::string, std::string> said{
        {"MemoryPressure", "False"}, {"DiskPressure", "False"}, {"PIDPressure", "False"}, {"Ready", "True"}};
    for (std::string_view one : split(node.annotation("hollow/conditions"), ',')) {
      auto [type, status] = halves(one, '=');
      if (!type.empty()) said[type] = status;
    }
    json::array conditions;
    std::string now = format_time(system_clock().now());
    for (const auto& [type, status] : said) {
      std::string since = now, beat = now;
      for (const json::value& before : get_array(node.json(), "status.conditions"))
        if (get_string(before, "type") == type && get_string(before, "status") == status)
          since = get_string(before, "lastTransitionTime"), beat = get_string(before, "lastHeartbeatTime");
      conditions.push_back(json::object{{"type", type},
                                        {"status", status},
                                        {"lastHeartbeatTime", beat},
                                        {"lastTransitionTime", since},
                                        {"reason", "Hollow"},
                                        {"message", "as the hollow node was told"}});
    }
    return conditions;
  }

  Result<Outcome> look_at_node(const Key& key) {
    ObjectPtr node = nodes_.get(key);
    if (!node || is_silent(key.name)) return Outcome{};
    json::array wanted = conditions_of(*node), changed;
    for (const json::value& condition : wanted) {
      const json::array& there = get_array(node->json(), "status.conditions");
      bool same = std::any_of(there.begin(), there.end(), [&](const json::value& one) {
        return get_string(one, "type") == get_string(condition, "type") &&
               get_string(one, "status") == get_string(condition, "status");
      });
      if (!same) changed.push_back(condition);
    }
    if (!changed.empty()) {
      json::object patch{{"status", json::object{{"conditions", std::move(changed)}}}};
      TRY(client_.patch(kNode, key, PatchType::strategic, patch, {.subresource = "status"}).wrap("report " + key.name));
    }
    std::string ready(ready_of(*node));
    bool spoke = lately_silent_.erase(key.name) > 0, changed_its_mind = std::exchange(last_ready_[key.name], ready) != ready;
    if (spoke || changed_its_mind)
      for (const ObjectPtr& pod : pods_.list())
        if (get_string(pod->json(), "spec.nodeName") == key.name) queue_.add(pod->key());
    return Outcome{};
  }

  Result<Outcome> look_at_pod(const Key& key) {
    ObjectPtr pod = pods_.get(key);
    if (!pod) {
      lives_.erase(key);
      return Outcome{};
    }
    std::string node(get_string(pod->json(), "spec.nodeName"));
    auto number = names_.find(node);
    if (number == names_.end()) return Outcome{};
    if (is_silent(node)) {
      lately_silent_.insert(node);
      return Outcome{};
    }
    auto life = lives_.find(key);
    if (life == lives_.end() || life->second.uid != pod->uid()) {
      Place place{addresses_.of_node(number->second), addresses_.next_of_pod(), flags_.pod_delay};
      life = lives_.insert_or_assign(key, Life{pod->uid(), PodLife(std::move(place))}).first;
    }
    if (life->second.removed) return Outcome{};  // others remove its finalizers
    Plan plan = life->second.life.look(*pod, system_clock());
    if (!is_ready(node)) drop_ready(plan.status);
    TRY(write(*pod, std::move(plan.status)));
    if (plan.gone) {
      auto removed = client_.remove(kPod, key, {.grace_period_seconds = 0, .uid = pod->uid()});
      if (!removed && removed.error().code() != Code::not_found && removed.error().code() != Code::conflict)
        return removed.take_error().wrap("remove " + key.text());
      life->second.removed = true;
    }
    if (!plan.again) return Outcome{};
    return Outcome{std::max<std::chrono::nanoseconds>(*plan.again - system_clock().steady(), std::chrono::milliseconds(1))};
  }

  // Writes only the differences: conditions and fields of others stay.
  Result<void> write(const Object& pod, json::object status) {
    const json::object& there = get_object(pod.json(), "status");
    const json::array& known = get_array(pod.json(), "status.conditions");
    json::object changed;
    for (auto& field : status) {
      if (field.key() == "conditions") {
        json::array conditions;
        for (const json::value& one : field.value().get_array())
          if (std::none_of(known.begin(), known.end(), [&](const json::value& old) { return same_condition(old, one); }))
            conditions.push_back(one);
        if (!conditions.empty()) changed["conditions"] = std::move(conditions);
      } else if (const json::value* before = there.if_contains(field.key()); !before || *before != field.value()) {
        changed[field.key()] = field.value();
      }
    }
    if (changed.empty()) return {};
    json::object patch{{"metadata", json::object{{"uid", pod.uid()}}}, {"status", std::move(changed)}};
    auto written = client_.patch(kPod, pod.key(), PatchType::strategic, patch, {.subresource = "status"});
    if (!written && written.error().code() != Code::not_found && written.error().code() != Code::conflict)
      return written.take_error().wrap("report " + pod.key().text());
    return {};
  }

  static bool same_condition(const json::value& a, const json::value& b) {
    return get_string(a, "type") == get_string(b, "type") && get_string(a, "status") == get_string(b, "status") &&
           get_string(a, "reason") == get_string(b, "reason") &&
           get_int(a, "observedGeneration") == get_int(b, "observedGeneration");
  }

  const Flags& flags_;
  Client& client_;
  Addresses addresses_;  // of pods: used only by the worker
  std::map<std::string, int> names_;
  WorkQueue queue_;
  Informer pods_, nodes_;
  std::atomic<bool> silent_;
  std::map<Key, Life> lives_;                      // used only by the worker
  std::set<std::string> lately_silent_;            // used only by the worker: nodes whose pods were not handled
  std::map<std::string, std::string> last_ready_;  // used only by the worker
  std::jthread worker_;
};

int run(const Flags& flags, const sigset_t& signals) {
  auto access = read_kubeconfig(flags.kubeconfig);
  if (!access) die(access.error().text());
  auto client = Remote::make(std::move(*access));
  if (!client) die(client.error().text());
  Fleet fleet(flags, **client);
  if (auto started = fleet.start(); !started) die(started.error().text());
  std::printf("%s registered\n", flags.name.c_str());
  std::fflush(stdout);
  for (int signal = 0;;) {
    if (::sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGUSR1 && signal != SIGUSR2) break;
    fleet.be_silent(signal == SIGUSR1);
  }
  fleet.leave();
  return 0;
}

}  // namespace
}  // namespace coracle::hollow

int main(int argc, char** argv) {
  sigset_t signals;  // blocked in every thread but main
  ::sigemptyset(&signals);
  for (int one : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) ::sigaddset(&signals, one);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return coracle::hollow::run(coracle::hollow::read_flags(argc, argv), signals);
}
