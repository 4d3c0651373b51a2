// SPDX-License-Identifier: Apache-2.0
// One repository of a registry, at whichever of its endpoints answers: mirrors first, then the registry itself.
//
//   request ─▶ 401 ─▶ challenge ─▶ token (or basic) ─▶ the same request again ─▶ redirect to storage ─▶ bytes
//
// What fails for a while is tried again with growing pauses; a layer goes on at the byte where it stopped.
// Source: opencontainers/distribution-spec "Pull"; distribution/distribution docs "Token Authentication Specification".
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/image/fetch/auth.h"
#include "runtime/image/fetch/http.h"
#include "runtime/image/manifest.h"
#include "runtime/image/reference.h"
#include "runtime/runtime.h"

namespace coracle::image {

constexpr int kAttemptsMax = 5;  // in a row without progress
constexpr std::chrono::seconds kRetryDelayMax{30};

struct Endpoint {
  std::string base;  // "https://registry-1.docker.io/v2", no slash at the end
  std::string host;  // host[:port], to choose credentials by
  std::string ns;    // for a mirror: the registry it stands for
  bool verify = true;
  bool twin = false;  // the same server as the one before, spoken to otherwise
};

// In the order in which they are tried. Pure.
std::vector<Endpoint> plan_endpoints(const std::string& registry, const std::vector<std::string>& insecure,
                                     const std::map<std::string, std::vector<std::string>>& mirrors);

class Registry {  // thread-safe; each thread brings its own Http
 public:
  Registry(Reference reference, std::vector<Endpoint> endpoints, std::vector<runtime::Credentials> credentials,
           const std::vector<std::string>& insecure, std::chrono::milliseconds retry_delay)
      : reference_(std::move(reference)),
        endpoints_(std::move(endpoints)),
        insecure_(insecure),
        credentials_(std::move(credentials)),
        retry_delay_(retry_delay) {}

  struct Document {
    std::string text, content_type;
    Digest digest;
  };
  // `which` is a tag or a digest. The text is what its digest says. Errors: not_found, unauthorized, forbidden, invalid,
  // too_large, unavailable, cancelled.
  Result<Document> manifest(Http& http, const std::string& which);
  // A small blob, whole and verified.
  Result<std::string> blob(Http& http, const Descriptor& descriptor, size_t max);

  // A layer: what `partial` (read from its start) already holds, then the rest from the network, appended to it. Counts
  // what it gives into `done`. Does not verify: the bytes are hashed on their way. The Registry must outlive it.
  std::unique_ptr<Source> layer(Http& http, const Descriptor& descriptor, const Fd& partial, std::atomic<int64_t>& done);

  // Which of the credentials the registry took last, if it has asked for any.
  std::optional<size_t> used_credentials() const { return used_ < 0 ? std::nullopt : std::optional(size_t(used_)); }

 private:
  friend class LayerDownload;
  using Exchange = std::unique_ptr<Http::Exchange>;

  // A request with whatever authorisation it takes. The status is 200, or 206 where `from` was given.
  Result<Exchange> open(Http& http, const Endpoint& endpoint, const std::string& path, const std::vector<std::string>& headers,
                        int64_t from);
  Result<std::string> authorize(Http& http, const ChallengedBy& by, const std::vector<Challenge>& challenges,
                                const runtime::Credentials* who);
  Result<std::string> fetch_token(Http& http, const ChallengedBy& by, const Challenge& challenge,
                                  const runtime::Credentials* who);
  // Calls f with one endpoint after the other until one succeeds, and again after a pause where that may help.
  template <typename T>
  Result<T> at_any_endpoint(std::stop_token stop, const std::function<Result<T>(const Endpoint&)>& f);

  const Reference reference_;
  const std::vector<Endpoint> endpoints_;
  const std::vector<std::string> insecure_;  // as plan_endpoints
  const std::vector<runtime::Credentials> credentials_;
  const std::chrono::milliseconds retry_delay_;
  std::atomic<bool> twin_answers_{false};                      // so that its other half need not be asked any more
  Guarded<std::map<std::string, std::string>> authorization_;  // by endpoint's base
  std::atomic<int64_t> used_{-1};                              // a place in credentials_
};

}  // namespace coracle::image
