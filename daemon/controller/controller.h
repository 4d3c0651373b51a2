// SPDX-License-Identifier: Apache-2.0
// Controller: a name, event handlers, and a reconcile function that brings the state for one key in line with its spec.
// Level-based: an event only enqueues a key. reconcile reads the caches, makes a plan (pure) and applies it through the Client.
//   informers ── change ──▶ keys ──▶ the manager's queue ──▶ reconcile(key) ── plan ──▶ Client
// There is one file per controller; manager.h runs them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/event/recorder.h"
#include "daemon/informer/informers.h"
#include "daemon/queue/work_queue.h"
#include "store/client/client.h"
#include "store/schema/catalog_source.h"

namespace coracle::controller {

struct SignedRequest {      // neither: it is for another signer
  std::string certificate;  // PEM
  std::string failure;      // why it will never be signed
};

struct Config {
  std::string root_ca;     // PEM, published in each namespace as kube-root-ca.crt
  std::string local_node;  // name of this machine's node, which is never marked unreachable
  std::chrono::seconds event_ttl{3600};
  size_t events_max = 2000;             // beyond that the oldest are deleted
  size_t events_bytes_max = 512 << 10;  // the same, for their size in bytes: they are held in memory
  size_t terminated_pods_max = 500;     // beyond that the oldest are deleted
  std::chrono::seconds node_grace{50};  // a remote node without a heartbeat for longer is not ready

  // Functions that need the CA's key or check permissions. Empty: certificate requests and tokens are not processed.
  std::function<Result<std::optional<std::string>>(const json::value& request)> judge_request;  // the message of the approval
  std::function<Result<SignedRequest>(const json::value& request)> sign_request;
  std::function<Result<std::string>(const Object& account, std::string_view secret)> lasting_token;
};

// Dependencies of every controller. All must outlive it.
struct Context {
  Client& client;
  Informers& informers;
  EventSink& events;
  const schema::CatalogSource& catalogs;
  const Clock& clock;
  const Config& config;
};

// Enqueues keys for the controller that it was made for. Copyable, thread-safe, does not block.
struct Enqueue {
  std::function<void(Key)> now;
  std::function<void(Key, std::chrono::nanoseconds)> after;
};

class Controller {
 public:
  virtual ~Controller() = default;
  virtual std::string_view name() const = 0;
  // Called once, before the informers start. Requests kinds and indexes and registers event handlers that enqueue keys.
  virtual void subscribe(const Enqueue& enqueue) = 0;
  // Called by one worker at a time per key, after all caches have synced. May block for requests of the Client. An error is
  // logged, and the key is tried again with back-off.
  virtual Result<Outcome> reconcile(const Key& key) = 0;
};

// One for each controller; what it does is said in its file. manager.cc makes them.
std::unique_ptr<Controller> make_deployment_controller(const Context& context);
std::unique_ptr<Controller> make_replica_set_controller(const Context& context);
std::unique_ptr<Controller> make_replication_controller(const Context& context);
std::unique_ptr<Controller> make_stateful_set_controller(const Context& context);
std::unique_ptr<Controller> make_daemon_set_controller(const Context& context);
std::unique_ptr<Controller> make_job_controller(const Context& context);
std::unique_ptr<Controller> make_cron_job_controller(const Context& context);
std::unique_ptr<Controller> make_ttl_after_finished(const Context& context);
std::unique_ptr<Controller> make_horizontal_autoscaler(const Context& context);
std::unique_ptr<Controller> make_cluster_services(const Context& context);
std::unique_ptr<Controller> make_endpoints_controller(const Context& context);
std::unique_ptr<Controller> make_endpoint_slice_controller(const Context& context);
std::unique_ptr<Controller> make_endpoint_slice_mirror(const Context& context);
std::unique_ptr<Controller> make_namespace_controller(const Context& context);
std::unique_ptr<Controller> make_service_account_controller(const Context& context);
std::unique_ptr<Controller> make_root_ca_publisher(const Context& context);
std::unique_ptr<Controller> make_garbage_collector(const Context& context);
std::unique_ptr<Controller> make_pod_collector(const Context& context);
std::unique_ptr<Controller> make_node_lifecycle(const Context& context);
std::unique_ptr<Controller> make_taint_eviction(const Context& context);
std::unique_ptr<Controller> make_event_expiry(const Context& context);
std::unique_ptr<Controller> make_resource_quota_controller(const Context& context);
std::unique_ptr<Controller> make_disruption_controller(const Context& context);
std::unique_ptr<Controller> make_storage_protection(const Context& context);
std::unique_ptr<Controller> make_ephemeral_volumes(const Context& context);
std::unique_ptr<Controller> make_volume_binder(const Context& context);
std::unique_ptr<Controller> make_unserved_ingresses(const Context& context);
std::unique_ptr<Controller> make_load_balancer_controller(const Context& context);
std::unique_ptr<Controller> make_certificates_controller(const Context& context);
std::unique_ptr<Controller> make_cluster_role_aggregation(const Context& context);
std::unique_ptr<Controller> make_token_secrets(const Context& context);
std::unique_ptr<Controller> make_start_order(const Context& context);

}  // namespace coracle::controller
