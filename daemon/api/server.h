// SPDX-License-Identifier: Apache-2.0
// Server: the Kubernetes API over HTTPS. It contains only HTTP; the registry stores objects and the node runs pods.
//   connection (http_server) ▸ authentication (user) ▸ route (route, catalog) ▸ authorization ▸ verb (resources, watch, …) ▸
//   response
// It owns the certificates (certificates.h): it creates them on the first start and renews them while it runs. Threads:
// "acceptor" (one), the worker pool (http_server.h), and "maintenance" (one, runs once an hour for the certificates).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/api/certificates.h"
#include "daemon/api/http_server.h"
#include "daemon/auth/audit_log.h"
#include "daemon/auth/authentication.h"
#include "daemon/auth/certificate_request.h"
#include "daemon/auth/write_guard.h"
#include "daemon/backup/store_maintenance.h"
#include "daemon/flowcontrol/body_places.h"
#include "daemon/flowcontrol/flow_controller.h"
#include "daemon/registry/registry.h"
#include "daemon/stream/stream.h"
#include "runtime/base/clock.h"

namespace coracle::api {

struct HealthCheck {
  std::string name;
  std::function<bool()> good;  // does not block
  bool live = false;           // also part of /livez
};

struct Config {
  std::string pki_dir;                // /var/lib/coracle/pki
  std::vector<sys::Endpoint> listen;  // numeric; port 0 picks a free one. Empty: nothing listens, not even loopback
  std::string node_name;
  std::vector<std::string> dns_names;  // additional names of the serving certificate
  std::vector<std::string> addresses;  // additional addresses: the node's, the first of the service range
  std::string cluster_domain = "cluster.local";
  std::string system_logs = "/var/log";  // directory that a node's proxy serves at /logs/
  std::string kubeconfig_path;           // "": none is written
  std::string local_socket_dir;          // /run/coracle; "": no local socket. It is made only for the kubeconfig
  auth::AuditSettings audit;             // without paths: no audit
  auth::TokenSettings tokens;            // an empty issuer is derived from cluster_domain
  std::vector<HealthCheck> checks;       // for /readyz and /livez, in addition to the server's own
  // Of the store's file: serves /coracle/v1/store and runs once an hour. It must outlive the server. Null: neither.
  backup::StoreMaintenance* maintenance = nullptr;
  HttpServerLimits limits;
  flowcontrol::FlowControllerLimits flow_controller;
  std::function<void(std::string&)> metrics;  // appends further metrics as text
  std::function<void()> when_asked;           // called for each request, concurrently by many threads; must be fast
  // Where a pod could be scheduled, and why not elsewhere. Thread-safe. Errors: unavailable while no scheduler runs.
  std::function<Result<json::value>(const Object& pod)> placement;
};

class Server {
 public:
  // `registry`, `streams`, `images` and `volumes` must outlive the server. Does nothing before start().
  Server(Config config, registry::Registry& registry, PodStreams& streams, NodeImages& images, NodeVolumes& volumes,
         const Clock& clock = system_clock());
  ~Server();
  // Renews at once the certificates that have expired by the new time. Does not block.
  void clock_was_set();

  // Creates or reads the certificates, becomes the registry's token issuer, listens, and writes the kubeconfig (for the first
  // listener). Errors: of files and of the network; without the local socket it goes on, with a warning.
  Result<void> start();
  void stop();  // closes all connections and blocks until no handler runs

  const std::vector<sys::Endpoint>& bound() const;
  const std::string& ca_certificate() const;  // PEM; for kube-root-ca.crt
  KeyPair admin() const;                      // the administrator's certificate and key
  auth::Authority authority() const;          // signs certificate signing requests
  const auth::Authorizer& authorizer() const;
  const auth::Tokens& tokens() const;
  HttpServer::Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::api
