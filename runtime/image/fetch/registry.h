// SPDX-License-Identifier: Apache-2.0
// A repository of a registry, accessed through the first endpoint that answers: mirrors, then the registry itself.
//
//   request ─▶ 401 ─▶ challenge ─▶ token (or basic) ─▶ the same request again ─▶ redirect to storage ─▶ bytes
//
// Temporary failures are retried with increasing delays; a layer is resumed at the byte where it stopped.
// Source: opencontainers/distribution-spec "Pull"; distribution/distribution docs "Token Authentication Specification".
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/image/fetch/auth.h"
#include "runtime/image/fetch/http.h"
#include "runtime/image/manifest.h"
#include "runtime/image/reference.h"
#include "runtime/runtime.h"

namespace coracle::image {

constexpr int kAttemptsMax = 5;  // without progress
constexpr std::chrono::seconds kRetryDelayMax{30};

struct Endpoint {
  std::string base;  // "https://registry-1.docker.io/v2", without a trailing slash
  std::string host;  // host[:port], for the choice of credentials
  std::string ns;    // for a mirror: the registry that it mirrors
  bool verify = true;
  bool twin = false;  // the same server as the previous entry, with http
  // Of hosts.toml:
  bool resolves = true;                          // false: for digests only, not for tags
  std::optional<runtime::RegistryTls> tls = {};  // otherwise that of its host
  std::vector<std::string> headers = {};         // for its host only
};

// A layer's bytes, with the servers that have sent some of them: their numbers in the list of endpoints.
class LayerSource : public Source {
 public:
  virtual const std::set<size_t>& senders() const = 0;
};

using RegistryHosts = std::map<std::string, runtime::RegistryHost>;
// The settings of a host[:port], otherwise those of "*"; null: none. docker.io is also known as registry-1.docker.io. Pure.
const runtime::RegistryHost* settings_of_host(const RegistryHosts& hosts, const std::string& host);

// The endpoints in the order of use. Pure.
std::vector<Endpoint> plan_endpoints(const std::string& registry, const std::vector<std::string>& insecure,
                                     const std::map<std::string, std::vector<std::string>>& mirrors,
                                     const RegistryHosts& hosts = {});
// Why one of the endpoints may not be asked: RegistryHost::refused. "": none. Pure.
std::string refusal_of(const std::vector<Endpoint>& endpoints, const RegistryHosts& hosts);
// The endpoints of RegistrySettings::servers. Pure.
std::vector<Endpoint> plan_servers(const std::string& registry, const std::vector<std::string>& insecure,
                                   const std::vector<runtime::RegistryServer>& servers, const RegistryHosts& hosts);

class Registry {  // thread-safe; each thread brings its own Http
 public:
  Registry(Reference reference, std::vector<Endpoint> endpoints, std::vector<runtime::Credentials> credentials,
           const std::vector<std::string>& insecure, std::chrono::milliseconds retry_delay, RegistryHosts hosts = {},
           std::string mirror_repository = {})
      : reference_(std::move(reference)),
        mirror_repository_(mirror_repository.empty() ? reference_.repository : std::move(mirror_repository)),
        hosts_(std::move(hosts)),
        endpoints_(std::move(endpoints)),
        insecure_(insecure),
        credentials_(std::move(credentials)),
        retry_delay_(retry_delay) {}

  struct Document {
    ManifestOrIndex parsed;
    Digest digest;
  };
  // `which` is a tag or a digest, which the text matches. An endpoint whose answer is no manifest, as from the login page of a
  // network, is passed over. Errors name the URL, and those of the other servers that were asked: not_found, unauthorized,
  // forbidden, invalid, unsupported (of its format), too_large, unavailable, cancelled.
  Result<Document> manifest(Http& http, const std::string& which);
  // Reads a small blob completely and verifies it.
  Result<std::string> blob(Http& http, const Descriptor& descriptor, size_t max);

  // Reads a layer: first the bytes in `partial` (read from its start), then the rest from the network, which is appended to
  // `partial`. Adds the bytes that it returns to `done`. Does not verify: the caller hashes the bytes. The Registry must outlive
  // it.
  std::unique_ptr<LayerSource> layer(Http& http, const Descriptor& descriptor, const Fd& partial, std::atomic<int64_t>& done);

  // Excludes servers that have sent a damaged layer from all further requests, as long as another one is left. True: one of them
  // is excluded, now or before, and another attempt may help.
  bool exclude(const std::set<size_t>& senders);
  std::string names_of(const std::set<size_t>& senders) const;  // "host:port, …"

  // The index of the first of the credentials that a registry or mirror has accepted, if one has required any: the machine's are
  // the last ones, and what a pod's secret has helped to bring is not for all.
  std::optional<size_t> used_credentials() const { return used_ < 0 ? std::nullopt : std::optional(size_t(used_)); }

 private:
  friend class LayerDownload;
  using Exchange = std::unique_ptr<Http::Exchange>;

  // Sends a request with authorisation if required. The status is 200, or 206 with `from`.
  Result<Exchange> open(Http& http, const Endpoint& endpoint, const std::string& path, const std::vector<std::string>& headers,
                        int64_t from);
  Result<std::string> authorize(Http& http, const ChallengedBy& by, const std::vector<Challenge>& challenges,
                                const runtime::Credentials* who, const Endpoint& endpoint);
  Result<std::string> fetch_token(Http& http, const ChallengedBy& by, const Challenge& challenge, const runtime::Credentials* who,
                                  const Endpoint& endpoint);
  const std::string& repository_at(const Endpoint& endpoint) const {
    return endpoint.ns.empty() ? reference_.repository : mirror_repository_;
  }
  const runtime::RegistryTls* tls_of(const std::string& host) const {
    const runtime::RegistryHost* settings = settings_of_host(hosts_, host);
    return settings ? &settings->tls : nullptr;
  }
  void note_use(size_t credentials);
  // An entry and its twin are one server.
  size_t server_of(size_t endpoint) const { return endpoints_[endpoint].twin ? endpoint - 1 : endpoint; }
  void set_aside(size_t endpoint);  // a mirror: it is asked last from now on
  const runtime::RegistryTls* tls_of(const Endpoint& endpoint) const {
    return endpoint.tls ? &*endpoint.tls : tls_of(endpoint.host);
  }
  // Calls `f` for one endpoint after another until one succeeds; retries all after a delay for temporary errors. `for_tag`: only
  // for those that resolve tags.
  template <typename T>
  Result<T> at_any_endpoint(std::stop_token stop, const std::function<Result<T>(const Endpoint&)>& f, bool for_tag = false);

  const Reference reference_;
  const std::string mirror_repository_;
  const RegistryHosts hosts_;
  const std::vector<Endpoint> endpoints_;
  const std::vector<std::string> insecure_;  // as for plan_endpoints
  const std::vector<runtime::Credentials> credentials_;
  const std::chrono::milliseconds retry_delay_;
  std::atomic<bool> twin_answers_{false};                      // the https endpoint of the pair is not tried any more
  Guarded<std::set<size_t>> away_;                             // mirrors that did not answer: tried last from then on
  Guarded<std::set<size_t>> excluded_;                         // not asked any more
  Guarded<std::map<std::string, std::string>> authorization_;  // by endpoint's base
  std::atomic<int64_t> used_{-1};                              // an index into credentials_
};

}  // namespace coracle::image
