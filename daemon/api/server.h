// SPDX-License-Identifier: Apache-2.0
// Server: the Kubernetes API over HTTPS. HTTP only: what is written is the registry's business, what runs is the node's.
//   connection (front) ▸ who (user) ▸ where (route, catalog) ▸ may they? ▸ verb (resources, watch, streams, ...) ▸ answer
// It owns its certificates (certificates.h): makes them on first start, renews them while it runs.
// Threads: "doorman" (one), the crew (front.h), and "keeper" (one, wakes once an hour for the certificates).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/access/audit_log.h"
#include "daemon/access/authentication.h"
#include "daemon/access/certificate_request.h"
#include "daemon/access/write_guard.h"
#include "daemon/api/certificates.h"
#include "daemon/api/front.h"
#include "daemon/backup/keeper.h"
#include "daemon/fairness/body_places.h"
#include "daemon/fairness/fairness.h"
#include "daemon/registry/registry.h"
#include "daemon/stream/stream.h"
#include "runtime/base/clock.h"

namespace coracle::api {

struct HealthCheck {
  std::string name;
  std::function<bool()> good;  // does not block
  bool live = false;           // also asked by /livez
};

struct Config {
  std::string pki_dir;                // /var/lib/coracle/pki
  std::vector<sys::Endpoint> listen;  // numeric; port 0 picks one. Empty: 127.0.0.1 and ::1 are not implied
  std::string node_name;
  std::vector<std::string> dns_names;  // further names of the serving certificate
  std::vector<std::string> addresses;  // further addresses: the node's, the service range's first
  std::string cluster_domain = "cluster.local";
  std::string system_logs = "/var/log";  // shown by a node's proxy
  std::string kubeconfig_path;           // "" = none is written
  access::AuditSettings audit;           // without paths: nothing is written down
  access::TokenSettings tokens;          // an empty issuer follows from cluster_domain
  std::vector<HealthCheck> checks;       // for /readyz and /livez, beside our own
  FrontLimits limits;
  fairness::FairnessLimits fairness;
  std::function<void(std::string&)> metrics;  // writes further ones, as text
  std::function<void()> when_asked;           // called with each request, by many threads at once: short
  // Where a pod could stand, and why not elsewhere; thread-safe. Errors: unavailable while nobody schedules.
  std::function<Result<json::value>(const Object& pod)> placement;
};

class Server {
 public:
  // `registry`, `streams`, `images` and `volumes` must outlive it. Does nothing before start().
  Server(Config config, registry::Registry& registry, PodStreams& streams, NodeImages& images, NodeVolumes& volumes,
         const Clock& clock = system_clock());
  ~Server();
  // Serves /coracle/v1/store, and lets it do its upkeep once an hour. It must outlive the server. Before start().
  void set_keeper(backup::Keeper& keeper);

  // Certificates that are over by the new time are made anew, at once. Does not block.
  void clock_was_set();

  // Makes or reads the certificates, becomes the registry's token issuer, listens, writes the kubeconfig (for the first
  // listener). Errors: what the disk or the network said.
  Result<void> start();
  void stop();  // ends every connection and returns when no handler runs

  const std::vector<sys::Endpoint>& bound() const;
  const std::string& ca_certificate() const;  // PEM; for kube-root-ca.crt
  KeyPair admin() const;                      // the administrator's certificate and key
  access::Authority authority() const;        // by which certificate requests are signed
  const access::Authorizer& authorizer() const;
  const access::Tokens& tokens() const;
  Front::Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::api
