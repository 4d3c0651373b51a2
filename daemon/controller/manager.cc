// SPDX-License-Identifier: Apache-2.0
// See manager.h.
#include "daemon/controller/manager.h"

#include "runtime/base/log.h"
#include "runtime/base/thread.h"

namespace coracle::controller {
namespace {

// The key in the shared queue, prefixed with the controller's name; namespaces contain no colon.
Key tagged(std::string_view controller, Key key) {
  key.ns.insert(0, ":").insert(0, controller);
  return key;
}

struct Untagged {
  std::string controller;
  Key key;
};
Untagged untagged(const Key& key) {
  size_t colon = key.ns.find(':');
  return {key.ns.substr(0, colon), {key.ns.substr(colon + 1), key.name}};
}

}  // namespace

Manager::Manager(Client& client, Informers& informers, EventSink& events, const schema::CatalogSource& catalogs, Config config,
                 const Clock& clock)
    : config_(std::move(config)),
      informers_(informers),
      queue_(std::make_shared<WorkQueue>(BackoffPolicy{}, clock, [](const Key& key) { return untagged(key).controller; })) {
  Context context{client, informers, events, catalogs, clock, config_};
  add(make_namespace_controller(context));
  add(make_service_account_controller(context));
  add(make_root_ca_publisher(context));
  add(make_cluster_services(context));
  add(make_deployment_controller(context));
  add(make_replica_set_controller(context));
  add(make_replication_controller(context));
  add(make_stateful_set_controller(context));
  add(make_daemon_set_controller(context));
  add(make_job_controller(context));
  add(make_ttl_after_finished(context));
  add(make_cron_job_controller(context));
  add(make_horizontal_autoscaler(context));
  add(make_endpoints_controller(context));
  add(make_endpoint_slice_controller(context));
  add(make_endpoint_slice_mirror(context));
  add(make_load_balancer_controller(context));
  add(make_volume_binder(context));
  add(make_ephemeral_volumes(context));
  add(make_unserved_ingresses(context));
  add(make_garbage_collector(context));
  add(make_pod_collector(context));
  add(make_node_lifecycle(context));
  add(make_taint_eviction(context));
  add(make_event_expiry(context));
  add(make_certificates_controller(context));
  add(make_cluster_role_aggregation(context));
  add(make_token_secrets(context));
  add(make_resource_quota_controller(context));
  add(make_disruption_controller(context));
  add(make_storage_protection(context));
  add(make_start_order(context));
}

Manager::~Manager() {
  workers_.clear();   // stops and joins the workers
  informers_.stop();  // because they call the controllers' handlers
}

void Manager::add(std::unique_ptr<Controller> controller) {
  std::string name(controller->name());
  controller->subscribe(
      {[this, name](Key key) { queue_->add(tagged(name, std::move(key))); },
       [this, name](Key key, std::chrono::nanoseconds delay) { queue_->add_after(tagged(name, std::move(key)), delay); }});
  controllers_.emplace(std::move(name), std::move(controller));
}

Result<Outcome> Manager::reconcile(const Key& key) {
  auto [controller, own] = untagged(key);
  return controllers_.find(controller)->second->reconcile(own);
}

void Manager::start(int workers) {
  for (int i = 0; i < workers; ++i)
    workers_.push_back(start_thread("controllers", [this](std::stop_token stop) {
      if (!informers_.wait_synced(stop)) return;
      run_worker(stop, *queue_, "controller", [this](const Key& key) { return reconcile(key); });
    }));
}

void Manager::clock_was_set() {
  if (!informers_.synced()) return;  // everything will be reconciled anyway
  queue_->add_all_delayed();
}

bool Manager::run_once() {
  auto lease = queue_->try_take();
  if (!lease) return false;
  work_once(*queue_, lease->key(), "controller", [this](const Key& key) { return reconcile(key); });
  return true;
}

}  // namespace coracle::controller
