// SPDX-License-Identifier: Apache-2.0
// User: random actions of people in a scenario: every kind of workload is created, scaled, changed, paused, rolled back and
// deleted; pods are deleted, evicted and relabelled; nodes are cordoned, drained and tainted; further actions concern claims,
// volumes, autoscalers and loads, budgets, quotas, services, namespaces and priorities. A scenario has only some of these, so
// that each occurs alone as well as with all others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/cluster_state.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/trace.h"

namespace coracle::simulation {

class User {
 public:
  // `ranks`: whether pods have different priorities and space is short; not together with a calm user.
  User(const ClusterState& cluster_state, Cluster& cluster, Dice& dice, const Trace& trace, bool ranks);
  void begin();
  void act();     // one action; its errors are ignored
  void relent();  // reverts what keeps a cluster from coming to rest: cordons, taints, pauses
  // Whether ready pods stay ready except for what controllers do: no deletions, evictions, taints, label changes or scaling.
  bool calm() const { return calm_; }
  std::string text() const;  // the actions of this user

 private:
  using Deed = std::function<void()>;
  void may(double probability, const std::string& name, const std::vector<Deed>& deeds);
  void drop_some();
  void say(const std::string& what, const Kind& kind, const Key& key, bool done);

  void create(const Kind& kind, json::value body);
  void change(const Kind& kind, const std::function<void(json::value& body)>& how);  // changes a random object of that kind
  void remove(const Kind& kind, bool any_propagation);
  ObjectPtr some(const Kind& kind);  // a random object; null if there is none
  std::string name(const std::string& of) { return of + "-" + std::to_string(dice_.between(0, 1)); }
  std::string ns() { return dice_.pick(namespaces_); }

  json::object pod_template(const std::string& app);
  void create_classes();
  void rank(json::object& spec, json::object& container);
  void create_deployment();
  void create_set(const Kind& kind);
  void create_pod();
  void create_service();
  void create_budget();
  void create_quota();
  void evict();
  void evict(const Object& pod);
  void drain();
  void scale(const Kind& kind);
  void new_template(const Kind& kind);
  void roll_back();

  void may_keep_sets(double rough);  // user_sets.cc
  void create_stateful_set();
  void create_daemon_set();
  json::value update_strategy(const Kind& kind);
  void put_back(const Kind& kind);

  void may_store(double rough);  // user_storage.cc
  void create_storage_classes();
  void create_claim();
  void create_volume();
  void create_pod_with_claim();

  void may_autoscale();  // user_autoscalers.cc
  json::object autoscaler_spec(json::value target);
  json::object scaling_rules(bool up);
  void create_autoscaler();
  void change_load();

  void may_run_jobs(double rough);  // user_jobs.cc
  void relent_jobs();
  json::object job_spec(const std::string& app);
  void create_job();
  void change_job();
  void create_cron_job();
  void change_cron_job();

  const ClusterState& cluster_state_;
  Cluster& cluster_;
  ToldClient client_;
  Dice& dice_;
  const Trace& trace_;
  std::vector<std::string> namespaces_{"default"};
  std::vector<std::pair<std::string, std::vector<Deed>>> deeds_;  // by topic
  bool calm_ = false, breaks_ = false, big_ = false, autoscales_ = false, ranks_ = false, stores_ = false;
};

}  // namespace coracle::simulation
