// SPDX-License-Identifier: Apache-2.0
// User: what people do to a cluster in a scenario, at random: every kind of workload created, scaled, changed, paused, rolled
// back and deleted; pods deleted, evicted, given other labels; nodes cordoned, drained and tainted; claims, volumes, autoscalers
// and loads, budgets, quotas, services, namespaces, priorities. A scenario has only some of that, so that each is met alone as
// well as with all others.
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
  // `ranks`: whether pods are of different importance, and short of space; but not where what is ready stays so.
  User(const ClusterState& cluster_state, Cluster& cluster, Dice& dice, const Trace& trace, bool ranks);
  void begin();
  void act();     // one thing; errors are the user's own affair
  void relent();  // takes back what keeps a cluster from coming to rest: cordons, taints, pauses
  // Whether ready pods stay so but for what controllers do: no deletions, evictions, taints, foreign labels, scaling.
  bool calm() const { return calm_; }
  std::string text() const;  // what this user does

 private:
  using Deed = std::function<void()>;
  void may(double probability, const std::string& name, const std::vector<Deed>& deeds);
  void drop_some();
  void say(const std::string& what, const Kind& kind, const Key& key, bool done);

  void create(const Kind& kind, json::value body);
  void change(const Kind& kind, const std::function<void(json::value& body)>& how);  // of some object of that kind
  void remove(const Kind& kind, bool any_propagation);
  ObjectPtr some(const Kind& kind);  // null when there is none
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
  std::vector<std::pair<std::string, std::vector<Deed>>> deeds_;  // by what they are about
  bool calm_ = false, breaks_ = false, big_ = false, autoscales_ = false, ranks_ = false, stores_ = false;
};

}  // namespace coracle::simulation
