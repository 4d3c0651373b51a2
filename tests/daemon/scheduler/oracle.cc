// SPDX-License-Identifier: Apache-2.0
// A direct implementation of the rules. See oracle.h.
#include "tests/daemon/scheduler/oracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "store/object/quantity.h"

namespace coracle::oracle {
namespace {

using std::string;
using Labels = std::map<string, string>;

string text(const json::value& value) { return value.is_string() ? string(value.get_string()) : ""; }
string at(const json::value& object, const string& path) { return string(get_string(object, path)); }
string name_of(const json::value& object) { return at(object, "metadata.name"); }
string ns_of(const json::value& object) { return at(object, "metadata.namespace"); }

Labels labels_of(const json::value& object) {
  Labels labels;
  for (const auto& [key, value] : get_object(object, "metadata.labels")) labels[string(key)] = text(value);
  return labels;
}

// In, NotIn, Exists, DoesNotExist, Gt, Lt.
bool requirement_holds(const json::value& requirement, const std::optional<string>& value) {
  string op = at(requirement, "operator");
  std::vector<string> values;
  for (const json::value& one : get_array(requirement, "values")) values.push_back(text(one));
  bool listed = value && std::find(values.begin(), values.end(), *value) != values.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value.has_value();
  if (!value || values.size() != 1 || value->empty() || value->find_first_not_of("0123456789") != string::npos) return false;
  return op == "Gt" ? std::stoll(*value) > std::stoll(values[0]) : std::stoll(*value) < std::stoll(values[0]);
}

std::optional<string> look(const Labels& labels, const string& key) {
  auto found = labels.find(key);
  if (found == labels.end()) return std::nullopt;
  return found->second;
}

bool selects(const json::value* selector, const Labels& labels) {
  if (!selector || !selector->is_object()) return false;  // no selector matches nothing, {} matches everything
  for (const auto& [key, value] : get_object(*selector, "matchLabels"))
    if (look(labels, string(key)) != text(value)) return false;
  for (const json::value& requirement : get_array(*selector, "matchExpressions"))
    if (!requirement_holds(requirement, look(labels, at(requirement, "key")))) return false;
  return true;
}

// ---- nodes ----

bool term_holds(const json::value& term, const json::value& node) {
  const json::array &expressions = get_array(term, "matchExpressions"), &fields = get_array(term, "matchFields");
  if (expressions.empty() && fields.empty()) return false;
  for (const json::value& one : expressions)
    if (!requirement_holds(one, look(labels_of(node), at(one, "key")))) return false;
  for (const json::value& one : fields)
    if (!requirement_holds(one, name_of(node))) return false;
  return true;
}

bool wants_node(const json::value& pod, const json::value& node) {
  Labels labels = labels_of(node);
  for (const auto& [key, value] : get_object(pod, "spec.nodeSelector"))
    if (look(labels, string(key)) != text(value)) return false;
  const json::value* required = find(pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution");
  if (!required) return true;
  for (const json::value& term : get_array(*required, "nodeSelectorTerms"))
    if (term_holds(term, node)) return true;
  return false;
}

bool tolerates(const json::value& pod, const json::value& taint) {
  for (const json::value& one : get_array(pod, "spec.tolerations")) {
    string key = at(one, "key"), op = at(one, "operator"), effect = at(one, "effect");
    if (!effect.empty() && effect != at(taint, "effect")) continue;
    if (key.empty() && op == "Exists") return true;
    if (key.empty() || key != at(taint, "key")) continue;
    if (op == "Exists" || at(one, "value") == at(taint, "value")) return true;
  }
  return false;
}

bool tolerates_hard_taints(const json::value& pod, const json::value& node) {
  for (const json::value& taint : get_array(node, "spec.taints"))
    if (at(taint, "effect") != "PreferNoSchedule" && !tolerates(pod, taint)) return false;
  return true;
}

// ---- resources ----

int64_t amount(const json::object& amounts, const string& name) {
  const json::value* value = amounts.if_contains(name);
  if (!value) return 0;
  auto quantity = Quantity::from_json(*value);
  if (!quantity) return 0;
  return name == "cpu" ? quantity->milli_value() : quantity->value();
}

int64_t container_request(const json::value& container, const string& name, bool with_defaults) {
  const json::object& requests = get_object(container, "resources.requests");
  if (with_defaults && !requests.contains(name) && name == "cpu") return 100;
  if (with_defaults && !requests.contains(name) && name == "memory") return 200ll * 1024 * 1024;
  return amount(requests, name);
}

int64_t request(const json::value& pod, const string& name, bool with_defaults = false) {
  const json::object& whole = get_object(pod, "spec.resources.requests");
  int64_t needs = 0;
  if (whole.contains(name) && (name == "cpu" || name == "memory")) {
    needs = amount(whole, name);
  } else {
    for (const json::value& one : get_array(pod, "spec.containers")) needs += container_request(one, name, with_defaults);
    int64_t sidecars = 0, starting = 0;
    for (const json::value& one : get_array(pod, "spec.initContainers")) {
      int64_t own = container_request(one, name, with_defaults);
      if (at(one, "restartPolicy") == "Always") {
        sidecars += own;
        starting = std::max(starting, sidecars);
      } else {
        starting = std::max(starting, sidecars + own);
      }
    }
    needs = std::max(needs + sidecars, starting);
  }
  return needs + amount(get_object(pod, "spec.overhead"), name);
}

std::set<string> asked_resources(const json::value& pod) {
  std::set<string> names{"cpu", "memory", "ephemeral-storage"};
  for (const char* list : {"spec.containers", "spec.initContainers"})
    for (const json::value& one : get_array(pod, list))
      for (const auto& [name, value] : get_object(one, "resources.requests")) names.insert(string(name));
  return names;
}

struct Port {
  string protocol, ip;
  int64_t number;
};
std::vector<Port> ports_of(const json::value& pod) {
  std::vector<Port> out;
  auto add = [&](const json::value& container) {
    for (const json::value& port : get_array(container, "ports"))
      if (int64_t number = get_int(port, "hostPort"))
        out.push_back({at(port, "protocol").empty() ? "TCP" : at(port, "protocol"), at(port, "hostIP"), number});
  };
  for (const json::value& one : get_array(pod, "spec.containers")) add(one);
  for (const json::value& one : get_array(pod, "spec.initContainers"))
    if (at(one, "restartPolicy") == "Always") add(one);
  return out;
}

struct Oracle {
  const ClusterState& cluster_state;
  const json::value& pod;

  std::vector<const json::value*> pods_on(const json::value& node) const {
    std::vector<const json::value*> out;
    for (const json::value& one : cluster_state.pods)
      if (at(one, "spec.nodeName") == name_of(node)) out.push_back(&one);
    return out;
  }
  int64_t used(const json::value& node, const string& name, bool with_defaults = false) const {
    int64_t sum = 0;
    for (const json::value* one : pods_on(node)) sum += request(*one, name, with_defaults);
    return sum;
  }
  static int64_t allocatable(const json::value& node, const string& name) {
    return amount(get_object(node, "status.allocatable"), name);
  }

  // ---- filters ----

  bool has_space(const json::value& node) const {
    if (int64_t(pods_on(node).size()) + 1 > allocatable(node, "pods")) return false;
    for (const string& name : asked_resources(pod)) {
      int64_t wanted = request(pod, name);
      if (wanted > 0 && wanted > allocatable(node, name) - used(node, name)) return false;
    }
    return true;
  }
  bool has_ports(const json::value& node) const {
    auto any = [](const string& ip) { return ip.empty() || ip == "0.0.0.0"; };
    for (const Port& a : ports_of(pod))
      for (const json::value* other : pods_on(node))
        for (const Port& b : ports_of(*other))
          if (a.number == b.number && a.protocol == b.protocol && (any(a.ip) || any(b.ip) || a.ip == b.ip)) return false;
    return true;
  }
  bool is_open(const json::value& node) const {
    return !get_bool(node, "spec.unschedulable") ||
           tolerates(pod, {{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}});
  }

  // Whether `term` of the pod `owner` matches `other`.
  bool means(const json::value& term, const json::value& owner, const json::value& other) const {
    std::set<string> namespaces;
    for (const json::value& one : get_array(term, "namespaces")) namespaces.insert(text(one));
    const json::value* selector = find(term, "namespaceSelector");
    if (namespaces.empty() && !selector) namespaces.insert(ns_of(owner));
    bool in_namespace = namespaces.contains(ns_of(other));
    if (!in_namespace && selector)
      for (const json::value& one : cluster_state.namespaces)
        in_namespace |= name_of(one) == ns_of(other) && selects(selector, labels_of(one));
    return in_namespace && selects(find(term, "labelSelector"), labels_of(other));
  }
  const json::value* node_named(const string& name) const {
    for (const json::value& one : cluster_state.nodes)
      if (name_of(one) == name) return &one;
    return nullptr;
  }
  // Whether the other pod's node and this node are in the same domain.
  bool together(const json::value& other, const json::value& node, const string& key) const {
    const json::value* where = node_named(at(other, "spec.nodeName"));
    if (!where) return false;
    auto a = look(labels_of(*where), key), b = look(labels_of(node), key);
    return a && b && *a == *b;
  }
  static const json::array& terms(const json::value& pod, const string& kind, const string& when) {
    return get_array(pod, "spec.affinity." + kind + "." + when + "DuringSchedulingIgnoredDuringExecution");
  }

  bool has_company(const json::value& node) const {
    const json::array& wanted = terms(pod, "podAffinity", "required");
    auto means_all = [&](const json::value& other) {
      return std::all_of(wanted.begin(), wanted.end(), [&](const json::value& term) { return means(term, pod, other); });
    };
    bool all_met = true, has_keys = true, anywhere = false;
    for (const json::value& term : wanted) {
      string key = at(term, "topologyKey");
      has_keys &= look(labels_of(node), key).has_value();
      bool met = false;
      for (const json::value& other : cluster_state.pods) {
        if (!means_all(other)) continue;
        met |= together(other, node, key);
        const json::value* where = node_named(at(other, "spec.nodeName"));
        anywhere |= where && look(labels_of(*where), key);
      }
      all_met &= met;
    }
    return has_keys && (all_met || (!anywhere && means_all(pod)));  // the first pod of a group with affinity to itself
  }
  bool is_undisturbed(const json::value& node) const {
    for (const json::value& term : terms(pod, "podAntiAffinity", "required"))
      for (const json::value& other : cluster_state.pods)
        if (means(term, pod, other) && together(other, node, at(term, "topologyKey"))) return false;
    for (const json::value& other : cluster_state.pods)
      for (const json::value& term : terms(other, "podAntiAffinity", "required"))
        if (means(term, other, pod) && together(other, node, at(term, "topologyKey"))) return false;
    return true;
  }

  std::vector<json::value> constraints(const string& when) const {
    std::vector<json::value> out;
    for (const json::value& one : get_array(pod, "spec.topologySpreadConstraints"))
      if (at(one, "whenUnsatisfiable") == when) {
        json::value with = one;  // matchLabelKeys are added to the selector
        for (const json::value& key : get_array(one, "matchLabelKeys")) {
          auto value = look(labels_of(pod), text(key));
          json::value& list = make(with, "labelSelector.matchExpressions");
          if (!list.is_array()) list.emplace_array();
          if (value)
            list.get_array().push_back({{"key", key}, {"operator", "In"}, {"values", json::array{json::string(*value)}}});
        }
        out.push_back(std::move(with));
      }
    return out;
  }
  int64_t matching_on(const json::value& node, const json::value& constraint) const {
    int64_t count = 0;
    for (const json::value* other : pods_on(node))
      count += ns_of(*other) == ns_of(pod) && at(*other, "metadata.deletionTimestamp").empty() &&
               selects(find(constraint, "labelSelector"), labels_of(*other));
    return count;
  }
  bool has_all_keys(const json::value& node, const std::vector<json::value>& all) const {
    return std::all_of(all.begin(), all.end(),
                       [&](const json::value& one) { return look(labels_of(node), at(one, "topologyKey")).has_value(); });
  }
  bool counts(const json::value& node, const json::value& constraint) const {
    if (at(constraint, "nodeAffinityPolicy") != "Ignore" && !wants_node(pod, node)) return false;
    return at(constraint, "nodeTaintsPolicy") != "Honor" || tolerates_hard_taints(pod, node);
  }
  bool is_level(const json::value& node) const {
    auto all = constraints("DoNotSchedule");
    for (const json::value& one : all) {
      string key = at(one, "topologyKey");
      auto here = look(labels_of(node), key);
      if (!here) return false;
      std::map<string, int64_t> domains;
      for (const json::value& other : cluster_state.nodes)
        if (has_all_keys(other, all) && counts(other, one)) domains[*look(labels_of(other), key)] += matching_on(other, one);
      int64_t least = INT32_MAX;
      for (const auto& [domain, count] : domains) least = std::min(least, count);
      if (int64_t(domains.size()) < get_int(one, "minDomains", 1)) least = 0;
      int64_t self = selects(find(one, "labelSelector"), labels_of(pod));
      int64_t count = domains.contains(*here) ? domains[*here] : 0;
      if (count + self - least > get_int(one, "maxSkew")) return false;
    }
    return true;
  }

  bool fits(const json::value& node) const {
    return is_open(node) && tolerates_hard_taints(pod, node) && wants_node(pod, node) && has_ports(node) && has_space(node) &&
           is_level(node) && has_company(node) && is_undisturbed(node);
  }

  // ---- scores ----

  using Scores = std::map<string, int64_t>;
  std::vector<const json::value*> feasible;
  template <typename F>
  Scores each(F score) const {
    Scores out;
    for (const json::value* node : feasible) out[name_of(*node)] = score(*node);
    return out;
  }
  static Scores to_max(Scores scores, bool reverse) {
    int64_t most = 0;
    for (const auto& [name, score] : scores) most = std::max(most, score);
    for (auto& [name, score] : scores) {
      if (most > 0) score = 100 * score / most;
      if (reverse) score = 100 - score;
    }
    return scores;
  }

  Scores least_allocated() const {
    return each([&](const json::value& node) {
      int64_t sum = 0, count = 0;
      for (const char* name : {"cpu", "memory"}) {
        int64_t all = allocatable(node, name), taken = used(node, name, true) + request(pod, name, true);
        if (all == 0) continue;
        ++count;
        sum += taken > all ? 0 : (all - taken) * 100 / all;
      }
      return count ? sum / count : 0;
    });
  }
  Scores balanced() const {
    if (request(pod, "cpu") == 0 && request(pod, "memory") == 0) return each([](const json::value&) { return 0; });
    return each([&](const json::value& node) -> int64_t {
      std::vector<double> shares;
      for (const char* name : {"cpu", "memory"})
        if (int64_t all = allocatable(node, name))
          shares.push_back(std::min(1.0, double(used(node, name) + request(pod, name)) / double(all)));
      double deviation = shares.size() == 2 ? std::fabs((shares[0] - shares[1]) / 2) : 0;
      return int64_t((1 - deviation) * 100);
    });
  }
  Scores by_images() const {
    auto full = [](string image) { return image.rfind(':') == string::npos ? image + ":latest" : image; };
    auto size_on = [](const json::value& node, const string& image) -> int64_t {
      for (const json::value& one : get_array(node, "status.images"))
        for (const json::value& name : get_array(one, "names"))
          if (text(name) == image) return get_int(one, "sizeBytes");
      return -1;
    };
    return each([&](const json::value& node) {
      int64_t sum = 0, containers = 0;
      for (const char* list : {"spec.initContainers", "spec.containers"})
        for (const json::value& one : get_array(pod, list)) {
          ++containers;
          string image = full(at(one, "image"));
          int64_t size = size_on(node, image), nodes = 0;
          for (const json::value& other : cluster_state.nodes) nodes += size_on(other, image) >= 0;
          if (size >= 0) sum += int64_t(double(size) * (double(nodes) / double(cluster_state.nodes.size())));
        }
      const int64_t mb = 1024 * 1024, least = 23 * mb, most = 1000 * mb * containers;
      return 100 * (std::clamp(sum, least, most) - least) / (most - least);
    });
  }
  Scores by_taints() const {
    return to_max(each([&](const json::value& node) {
                    int64_t count = 0;
                    for (const json::value& taint : get_array(node, "spec.taints"))
                      count += at(taint, "effect") == "PreferNoSchedule" && !tolerates(pod, taint);
                    return count;
                  }),
                  true);
  }
  Scores by_node_preference() const {
    return to_max(each([&](const json::value& node) {
                    int64_t sum = 0;
                    for (const json::value& one :
                         get_array(pod, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"))
                      if (term_holds(*find(one, "preference"), node)) sum += get_int(one, "weight");
                    return sum;
                  }),
                  false);
  }
  Scores by_company() const {
    Scores scores = each([&](const json::value& node) {
      int64_t sum = 0;
      auto add = [&](const json::value& holder, const json::value& meant, const json::value& placed, const json::value& term,
                     int64_t weight) {
        if (means(term, holder, meant) && together(placed, node, at(term, "topologyKey"))) sum += weight;
      };
      for (const json::value& other : cluster_state.pods) {
        for (const auto& [kind, sign] : {std::pair("podAffinity", 1), std::pair("podAntiAffinity", -1)}) {
          for (const json::value& one : terms(pod, kind, "preferred"))
            add(pod, other, other, *find(one, "podAffinityTerm"), sign * get_int(one, "weight"));
          for (const json::value& one : terms(other, kind, "preferred"))
            add(other, pod, other, *find(one, "podAffinityTerm"), sign * get_int(one, "weight"));
        }
        for (const json::value& term : terms(other, "podAffinity", "required")) add(other, pod, other, term, 1);
      }
      return sum;
    });
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (const auto& [name, score] : scores) low = std::min(low, score), high = std::max(high, score);
    for (auto& [name, score] : scores) score = high > low ? int64_t(100.0 * (double(score - low) / double(high - low))) : 0;
    return scores;
  }

  // The default constraints from the Services that select the pod, if it has none of its own.
  std::vector<json::value> soft_constraints() const {
    if (!get_array(pod, "spec.topologySpreadConstraints").empty()) return constraints("ScheduleAnyway");
    json::object selector;
    for (const json::value& service : cluster_state.services) {
      const json::object& chosen = get_object(service, "spec.selector");
      json::value as_selector = {{"matchLabels", chosen}};
      if (ns_of(service) != ns_of(pod) || chosen.empty() || !selects(&as_selector, labels_of(pod))) continue;
      for (const auto& [key, value] : chosen) selector[key] = value;
    }
    if (selector.empty()) return {};
    auto one = [&](const char* key, int skew) {
      return json::value{{"topologyKey", key}, {"maxSkew", skew}, {"labelSelector", {{"matchLabels", selector}}}};
    };
    return {one("kubernetes.io/hostname", 3), one("topology.kubernetes.io/zone", 5)};
  }
  Scores by_level() const {
    auto all = soft_constraints();
    if (all.empty()) return each([](const json::value&) { return 0; });
    bool defaults = get_array(pod, "spec.topologySpreadConstraints").empty();
    auto ignored = [&](const json::value& node) { return !defaults && !has_all_keys(node, all); };
    std::vector<const json::value*> seen;
    for (const json::value* node : feasible)
      if (!ignored(*node)) seen.push_back(node);
    Scores scores = each([&](const json::value& node) -> int64_t {
      if (ignored(node)) return 0;
      double sum = 0;
      for (const json::value& one : all) {
        string key = at(one, "topologyKey");
        auto here = look(labels_of(node), key);
        if (!here) continue;
        std::set<string> domains;
        for (const json::value* other : seen)
          if (auto domain = look(labels_of(*other), key)) domains.insert(*domain);
        bool by_host = key == "kubernetes.io/hostname";
        double weight = std::log(double(by_host ? seen.size() : domains.size()) + 2);
        int64_t count = 0;
        if (by_host) count = matching_on(node, one);
        else
          for (const json::value& other : cluster_state.nodes)
            if (look(labels_of(other), key) == here && counts(other, one) && (defaults || has_all_keys(other, all)))
              count += matching_on(other, one);
        sum += double(count) * weight + double(get_int(one, "maxSkew") - 1);
      }
      return int64_t(std::round(sum));
    });
    int64_t low = INT64_MAX, high = 0;
    for (const json::value* node : seen)
      low = std::min(low, scores[name_of(*node)]), high = std::max(high, scores[name_of(*node)]);
    for (const json::value* node : feasible) {
      int64_t& score = scores[name_of(*node)];
      score = ignored(*node) ? 0 : high == 0 ? 100 : 100 * (high + low - score) / high;
    }
    return scores;
  }
};

}  // namespace

Answer consult(const ClusterState& cluster_state, const json::value& pod) {
  Oracle oracle{cluster_state, pod, {}};
  Answer answer;
  for (const json::value& node : cluster_state.nodes)
    if (oracle.fits(node)) {
      oracle.feasible.push_back(&node);
      answer.feasible.insert(name_of(node));
    }
  answer.scores["NodeResourcesFit"] = oracle.least_allocated();
  answer.scores["NodeResourcesBalancedAllocation"] = oracle.balanced();
  answer.scores["ImageLocality"] = oracle.by_images();
  answer.scores["TaintToleration"] = oracle.by_taints();
  answer.scores["NodeAffinity"] = oracle.by_node_preference();
  answer.scores["InterPodAffinity"] = oracle.by_company();
  answer.scores["PodTopologySpread"] = oracle.by_level();
  static const std::map<string, int64_t> weights = {
      {"TaintToleration", 3}, {"NodeAffinity", 2}, {"PodTopologySpread", 2}, {"InterPodAffinity", 2}};
  for (const auto& [plugin, scores] : answer.scores)
    for (const auto& [node, score] : scores) answer.totals[node] += score * (weights.contains(plugin) ? weights.at(plugin) : 1);
  return answer;
}

// ---- preemption ----

namespace {

int64_t priority_of(const json::value& pod) { return get_int(pod, "spec.priority"); }
string start_of(const json::value& pod) { return at(pod, "status.startTime"); }

// The pods whose eviction would violate a budget, counted in the order of importance; terminating pods are not counted.
std::set<string> beyond_budget(const ClusterState& cluster_state, const std::vector<json::value>& pods) {
  std::set<string> names;
  for (const json::value& budget : cluster_state.budgets) {
    int64_t allowed = get_int(budget, "status.disruptionsAllowed");
    for (const json::value& pod : pods) {
      bool covered = ns_of(pod) == ns_of(budget) && selects(find(budget, "spec.selector"), labels_of(pod));
      if (!covered || get_object(budget, "status.disruptedPods").contains(name_of(pod))) continue;
      if (--allowed < 0) names.insert(name_of(pod));
    }
  }
  return names;
}

struct Loss {
  std::vector<json::value> victims;  // the most important first
  size_t beyond_budget = 0;
};

bool more_important(const json::value& a, const json::value& b) {
  return priority_of(a) != priority_of(b) ? priority_of(a) > priority_of(b) : start_of(a) < start_of(b);
}

// Removes all less important pods, then adds back each one beside which the pod still fits: first those protected by a budget,
// and the more important before the less important ones. Returns nothing if the pod does not fit at all.
std::optional<Loss> loss_on(const ClusterState& cluster_state, const json::value& pod, const json::value& node) {
  std::vector<json::value> lesser;
  ClusterState without = cluster_state;
  std::erase_if(without.pods, [&](const json::value& other) {
    bool goes = at(other, "spec.nodeName") == name_of(node) && priority_of(other) < priority_of(pod);
    if (goes) lesser.push_back(other);
    return goes;
  });
  auto fits = [&] { return Oracle{without, pod, {}}.fits(node); };
  if (lesser.empty() || !fits()) return std::nullopt;
  std::sort(lesser.begin(), lesser.end(), more_important);
  std::set<string> beyond = beyond_budget(cluster_state, lesser);
  Loss loss;
  for (bool protects : {true, false})
    for (const json::value& other : lesser) {
      if (beyond.contains(name_of(other)) != protects) continue;
      without.pods.push_back(other);
      if (fits()) continue;
      without.pods.pop_back();
      loss.victims.push_back(other);
      loss.beyond_budget += protects;
    }
  std::sort(loss.victims.begin(), loss.victims.end(), more_important);
  return loss;
}

// The criteria of Kubernetes, in order; each is used only while several nodes are equal.
bool matters_less(const Loss& a, const Loss& b) {
  if (a.beyond_budget != b.beyond_budget) return a.beyond_budget < b.beyond_budget;
  int64_t highest_a = priority_of(a.victims.front()), highest_b = priority_of(b.victims.front());
  if (highest_a != highest_b) return highest_a < highest_b;
  auto sum = [](const Loss& loss) {
    int64_t all = 0;
    for (const json::value& victim : loss.victims)
      all += priority_of(victim) + (int64_t(1) << 31);  // each victim counts, also one with a negative priority
    return all;
  };
  if (sum(a) != sum(b)) return sum(a) < sum(b);
  if (a.victims.size() != b.victims.size()) return a.victims.size() < b.victims.size();
  return start_of(a.victims.front()) >
         start_of(b.victims.front());  // the start time of the oldest victim with the highest priority: later is better
}

}  // namespace

Sacrifice consult_preemption(const ClusterState& cluster_state, const json::value& pod) {
  Sacrifice out;
  if (at(pod, "spec.preemptionPolicy") == "Never") return out;
  std::optional<Loss> least;
  for (const json::value& node : cluster_state.nodes) {
    if (!Oracle{cluster_state, pod, {}}.has_company(node)) continue;  // removing pods does not improve affinity
    auto loss = loss_on(cluster_state, pod, node);
    if (!loss) continue;
    for (const json::value& victim : loss->victims) out.victims[name_of(node)].push_back(name_of(victim));
    if (least && !matters_less(*loss, *least)) continue;
    least = std::move(loss);
    out.best = name_of(node);
  }
  return out;
}

}  // namespace coracle::oracle
