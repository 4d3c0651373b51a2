// SPDX-License-Identifier: Apache-2.0
// See registry.h.
#include "runtime/image/fetch/registry.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/image/credentials.h"
#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

constexpr size_t kTokenMax = 1 << 20;
constexpr size_t kErrorBodyMax = 16 << 10;
constexpr size_t kSaidMax = 300;                            // bytes of a registry's own words
constexpr size_t kOthersShownMax = 4, kOtherTextMax = 300;  // errors of other servers, bytes of each
constexpr const char* kDockerHub = "registry-1.docker.io";

const std::vector<std::string> kManifestHeaders = {
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"};

bool is_loopback(const std::string& registry) {
  std::string host = registry.substr(0, registry.starts_with('[') ? registry.find(']') + 1 : registry.find(':'));
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

bool is_insecure(const std::string& host, const std::vector<std::string>& insecure) {
  return is_loopback(host) || std::find(insecure.begin(), insecure.end(), host) != insecure.end();
}

std::string host_of(const std::string& url) {
  size_t start = url.find("://");
  start = start == url.npos ? 0 : start + 3;
  return url.substr(start, url.find('/', start) - start);
}

// Where a mirror's API is: at /v2, or at the path that its URL has. Without a scheme it is https, or http on loopback with a port
// that is not that of https. Source: k3s, pkg/agent/containerd (semantics).
std::string mirror_api(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (url.find("://") == url.npos) {
    const std::string host = host_of(url);
    const bool has_port = host.find(':', host.rfind(']') == host.npos ? 0 : host.rfind(']')) != host.npos;
    url.insert(0, is_loopback(host) && has_port && !host.ends_with(":443") ? "http://" : "https://");
  }
  return url.find('/', url.find("://") + 3) == url.npos ? url + "/v2" : url;
}

bool may_pass(const Error& error) {  // true if the same request may succeed later
  return error.code() == Code::unavailable || error.code() == Code::timeout || error.code() == Code::too_many_requests;
}

// Sleeps; returns early on a stop request.
Result<void> pause(std::stop_token stop, std::chrono::milliseconds time) {
  Guarded<bool> nothing(false);
  nothing.wait_until(
      stop, std::chrono::steady_clock::now() + time, [](bool) { return false; }, [](bool) {});
  if (stop.stop_requested()) return Error(Code::cancelled, "cancelled");
  return {};
}

class Backoff {  // delays between consecutive attempts
 public:
  explicit Backoff(std::chrono::milliseconds first) : first_(first), next_(first) {}
  void progress() { attempts_ = 0, next_ = first_; }
  // Waits before the next attempt, or returns the error after the last one.
  Result<void> before_retry(std::stop_token stop, Error error) {
    if (!may_pass(error) || ++attempts_ >= kAttemptsMax) return error;
    auto asked = std::chrono::seconds(error.details() ? error.details()->retry_after_seconds : 0);
    TRY(pause(stop, std::min<std::chrono::milliseconds>(std::max<std::chrono::milliseconds>(next_, asked), kRetryDelayMax)));
    next_ *= 2;
    return {};
  }

 private:
  std::chrono::milliseconds first_, next_;
  int attempts_ = 0;
};

// The Error for a registry's error response. Source: distribution-spec "Error Codes".
Error refusal(Http::Exchange& answer) {
  int status = answer.status();
  Code code = status == 401   ? Code::unauthorized
              : status == 403 ? Code::forbidden
              : status == 404 ? Code::not_found
              : status == 429 ? Code::too_many_requests
              : status >= 500 ? Code::unavailable
                              : Code::invalid;
  std::string said;
  if (auto body = read_all(answer, kErrorBodyMax)) {
    if (auto document = parse_json(*body)) {
      const json::array& errors = get_array(*document, "errors");
      if (!errors.empty()) said = get_string(errors[0], "message");
    }
  }
  std::string text =
      answer.shown() + ": " + std::to_string(status) + (said.empty() ? "" : ": " + one_line(shortened_text(said, kSaidMax)));
  ErrorDetails details;
  details.retry_after_seconds = std::clamp(parse_number<int>(answer.header("retry-after")).value_or(0), 0, 60);
  Error error = Error(code, std::move(text)).with(std::move(details));
  return code == Code::unavailable ? unreachable(std::move(error)) : std::move(error);
}

// The error with what other servers have answered: a mirror that nobody can use would go unnoticed otherwise.
Error with_others(Error error, const std::map<size_t, std::string>& failures) {
  if (failures.empty()) return error;
  std::vector<std::string> texts;
  for (const auto& [server, text] : failures)
    if (texts.size() < kOthersShownMax) texts.push_back(shortened_text(text, kOtherTextMax));
  Error all(error.code(), error.text() + " (also: " + join(texts, "; ") + ")");
  if (error.details()) return std::move(all).with(*error.details());
  return all;
}

// The whole body. Errors name its URL.
Result<std::string> body_of(Http::Exchange& answer, size_t max) {
  auto body = read_all(answer, max);
  if (!body && body.error().code() == Code::too_large) return body.take_error().wrap(answer.shown());
  return body;
}

std::string basic(const runtime::Credentials& who) { return "Basic " + base64_encode(who.username + ":" + who.password); }

}  // namespace

const runtime::RegistryHost* settings_of_host(const RegistryHosts& hosts, const std::string& host) {
  auto found = hosts.find(host);
  if (found == hosts.end() && host == "docker.io") found = hosts.find(kDockerHub);
  if (found == hosts.end()) found = hosts.find("*");
  return found == hosts.end() ? nullptr : &found->second;
}

namespace {

// Loopback needs no certificate, nor does what is called insecure; but what has an authority of its own is held to it.
bool has_own_authority(const RegistryHosts& hosts, const std::string& host) {
  const runtime::RegistryHost* settings = settings_of_host(hosts, host);
  auto others = hosts.find("*");
  const bool is_own = settings && (others == hosts.end() || settings != &others->second);
  return is_own && settings->verify && !settings->tls.authorities.empty();
}

bool is_verified(const RegistryHosts& hosts, const std::vector<std::string>& insecure, const std::string& host) {
  if (has_own_authority(hosts, host)) return true;
  const runtime::RegistryHost* settings = settings_of_host(hosts, host);
  return !is_insecure(host, insecure) && (!settings || settings->verify);
}

}  // namespace

std::vector<Endpoint> plan_endpoints(const std::string& registry, const std::vector<std::string>& insecure,
                                     const std::map<std::string, std::vector<std::string>>& mirrors, const RegistryHosts& hosts) {
  std::vector<Endpoint> out;
  auto own = mirrors.find(registry);
  if (own == mirrors.end()) own = mirrors.find("*");
  if (own != mirrors.end()) {
    for (const std::string& mirror : own->second) {
      const std::string url = mirror_api(mirror);
      std::string host = host_of(url);
      out.push_back({url, host, registry, is_verified(hosts, insecure, host), false});
    }
  }
  std::string host = registry == "docker.io" ? kDockerHub : registry;
  bool unsafe = is_insecure(registry, insecure) && !has_own_authority(hosts, registry);
  out.push_back({"https://" + host + "/v2", registry, "", is_verified(hosts, insecure, registry), false});
  if (unsafe) out.push_back({"http://" + host + "/v2", registry, "", false, true});
  return out;
}

std::vector<Endpoint> plan_servers(const std::string& registry, const std::vector<std::string>& insecure,
                                   const std::vector<runtime::RegistryServer>& servers, const RegistryHosts& hosts) {
  std::vector<Endpoint> out;
  for (const runtime::RegistryServer& server : servers) {
    const std::string host = server.url.empty() ? registry : host_of(server.url);
    const bool is_own = host == registry || (registry == "docker.io" && host == kDockerHub);
    const runtime::RegistryTls& tls = server.tls;
    const bool has_tls = !tls.authorities.empty() || !tls.certificate.empty();
    RegistryHosts with = hosts;
    if (has_tls || !server.verify) with[host] = {server.verify, tls, {}};
    // As a mirror, or as the registry itself, of which there may be two.
    std::vector<Endpoint> planned = plan_endpoints(server.url.empty() ? registry : host, insecure, {}, with);
    if (!server.url.empty()) {
      planned = {{server.url, is_own ? registry : host, is_own ? "" : registry, planned.front().verify, false}};
    }
    for (Endpoint& endpoint : planned) {
      endpoint.resolves = server.resolves;
      if (has_tls) endpoint.tls = tls;
      endpoint.headers = server.headers;
      out.push_back(std::move(endpoint));
    }
  }
  return out;
}

std::string refusal_of(const std::vector<Endpoint>& endpoints, const RegistryHosts& hosts) {
  for (const Endpoint& endpoint : endpoints)
    if (const auto* settings = settings_of_host(hosts, endpoint.host); settings && !settings->refused.empty())
      return settings->refused;
  return {};
}

template <typename T>
Result<T> Registry::at_any_endpoint(std::stop_token stop, const std::function<Result<T>(const Endpoint&)>& f, bool for_tag) {
  for (Backoff backoff(retry_delay_);;) {
    std::optional<Error> last;
    std::map<size_t, std::string> failures;  // by server
    size_t last_server = 0;
    bool half_answered = false;  // the other endpoint of the pair has responded: skip this one
    const std::set<size_t> away = away_.with([](const std::set<size_t>& all) { return all; });
    const std::set<size_t> excluded = excluded_.with([](const std::set<size_t>& all) { return all; });
    std::vector<size_t> order(endpoints_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(), [&](size_t i) { return !away.contains(i); });
    for (size_t i : order) {
      const Endpoint& endpoint = endpoints_[i];
      if (for_tag && !endpoint.resolves) continue;
      if (excluded.contains(server_of(i))) {
        failures[server_of(i)] = host_of(endpoint.base) + ": has sent a damaged layer";
        continue;
      }
      bool has_twin = i + 1 < endpoints_.size() && endpoints_[i + 1].twin;
      if (endpoint.twin ? half_answered : has_twin && twin_answers_) continue;
      auto got = f(endpoint);
      if (got && endpoint.twin) twin_answers_ = true;
      if (got || got.error().code() == Code::cancelled) return got;
      Error error = got.take_error();
      const bool is_temporary = may_pass(error);
      if (is_temporary) set_aside(i);
      half_answered = has_twin && !is_temporary;
      failures[server_of(i)] = error.text();
      if (!last || !away.contains(i)) last = std::move(error), last_server = server_of(i);
    }
    if (!last)
      return Error(Code::invalid,
                   "hosts.toml names no server of " + reference_.registry + (for_tag ? " for tags" : " to pull from"));
    failures.erase(last_server);
    TRY(backoff.before_retry(stop, with_others(*std::move(last), failures)));
  }
}

void Registry::set_aside(size_t endpoint) {
  if (!endpoints_[endpoint].ns.empty()) away_.with([&](std::set<size_t>& all) { all.insert(endpoint); });
}

bool Registry::exclude(const std::set<size_t>& senders) {
  return excluded_.with([&](std::set<size_t>& all) {
    bool may_help = false;
    for (size_t sender : senders) {
      const size_t server = server_of(sender);
      bool has_other = false;
      for (size_t i = 0; i < endpoints_.size(); ++i) has_other |= server_of(i) != server && !all.contains(server_of(i));
      if (has_other) all.insert(server);
      may_help |= all.contains(server);  // perhaps because of another layer
    }
    return may_help;
  });
}

std::string Registry::names_of(const std::set<size_t>& senders) const {
  std::vector<std::string> names;
  for (size_t sender : senders)
    if (const std::string name = host_of(endpoints_[sender].base); names.empty() || names.back() != name) names.push_back(name);
  return join(names, ", ");
}

Result<std::string> Registry::fetch_token(Http& http, const ChallengedBy& by, const Challenge& challenge,
                                          const runtime::Credentials* who, const Endpoint& endpoint) {
  auto param = [&](const char* name) {
    auto found = challenge.params.find(name);
    return found == challenge.params.end() ? std::string() : found->second;
  };
  std::string realm = param("realm"), scope = param("scope");
  if (scope.empty()) scope = "repository:" + repository_at(endpoint) + ":pull";
  TRY(check_realm(realm, by, who != nullptr).wrap(by.origin));
  if (const auto* settings = settings_of_host(hosts_, host_of(realm)); settings && !settings->refused.empty())
    return Error(Code::invalid, settings->refused);
  std::string query = "service=" + percent_encode(param("service")) + "&scope=" + percent_encode(scope);
  Request request;
  // A token server on another host has its own certificate, which is verified.
  bool same_host = host_of_origin(origin_of(realm)) == host_of_origin(by.origin);
  request.verify = same_host ? by.verified : is_verified(hosts_, insecure_, host_of(realm));
  const bool is_endpoint = host_of(realm) == endpoint.host;
  request.tls = is_endpoint ? tls_of(endpoint) : tls_of(host_of(realm));
  if (is_endpoint) request.private_headers = endpoint.headers;
  request.may_be_local = by.is_local;
  if (who && !who->identity_token.empty()) {
    request.url = realm;
    request.form =
        "grant_type=refresh_token&client_id=coracle&" + query + "&refresh_token=" + percent_encode(who->identity_token);
  } else {
    request.url = realm + (realm.find('?') == realm.npos ? "?" : "&") + query;
    if (who) request.authorization = basic(*who);
  }
  Exchange answer = TRY(http.start(request));
  if (answer->status() != 200) return refusal(*answer).wrap("get token");
  std::string body = TRY(body_of(*answer, kTokenMax).wrap("get token"));
  auto document = parse_json(body);
  if (!document) return document.take_error().as(Code::invalid).wrap(answer->shown()).wrap("get token");
  std::string token(get_string(*document, "token"));
  if (token.empty()) token = get_string(*document, "access_token");
  if (token.empty() || token.find_first_of("\r\n") != token.npos)
    return Error(Code::invalid, "get token: " + answer->shown() + ": the answer holds no token");
  return "Bearer " + token;
}

Result<std::string> Registry::authorize(Http& http, const ChallengedBy& by, const std::vector<Challenge>& challenges,
                                        const runtime::Credentials* who, const Endpoint& endpoint) {
  for (const Challenge& challenge : challenges)
    if (challenge.scheme == "bearer") return fetch_token(http, by, challenge, who, endpoint);
  for (const Challenge& challenge : challenges)
    if (challenge.scheme == "basic" && who) return basic(*who);
  std::string schemes;
  for (const Challenge& challenge : challenges) {
    if (challenge.scheme == "basic") return Error(Code::unauthorized, by.origin + " asks for a user name and a password");
    schemes += (schemes.empty() ? "" : ", ") + challenge.scheme;
  }
  if (schemes.empty()) return Error(Code::unauthorized, by.origin + " refuses, and does not say how to authenticate");
  return Error(Code::unauthorized, by.origin + " asks for an authentication that is not supported: " + schemes);
}

void Registry::note_use(size_t credentials) {
  const int64_t now = int64_t(credentials);
  int64_t before = used_;
  while ((before < 0 || now < before) && !used_.compare_exchange_weak(before, now)) {
  }
}

Result<Registry::Exchange> Registry::open(Http& http, const Endpoint& endpoint, const std::string& path,
                                          const std::vector<std::string>& headers, int64_t from) {
  const std::string& repository = repository_at(endpoint);
  Request request;
  request.url = endpoint.base + "/" + repository + "/" + path;
  if (!endpoint.ns.empty()) request.url += "?ns=" + percent_encode(endpoint.ns);
  request.headers = headers;
  request.from = from;
  request.verify = endpoint.verify;
  request.tls = tls_of(endpoint);
  request.private_headers = endpoint.headers;
  request.authorization = authorization_.with([&](auto& known) { return known[endpoint.base]; });
  Exchange answer = TRY(http.start(request));
  auto is_good = [&] { return answer->status() == 200 || (from > 0 && answer->status() == 206); };
  const ChallengedBy by{origin_of(request.url), endpoint.verify, answer->is_local()};
  // A challenge from the target of a redirect is not the registry's, and is not answered.
  if (answer->status() == 401 && origin_of(answer->url()) == by.origin) {
    std::vector<Challenge> challenges;
    for (const std::string& header : answer->headers("www-authenticate"))
      for (Challenge& challenge : parse_challenges(header)) challenges.push_back(std::move(challenge));
    std::vector<std::optional<size_t>> candidates;
    for (size_t place : matching_credentials(credentials_, endpoint.host, repository)) candidates.push_back(place);
    if (candidates.empty()) candidates.push_back(std::nullopt);  // anonymous
    Error denied = refusal(*answer);
    for (std::optional<size_t> candidate : candidates) {
      const runtime::Credentials* who = candidate ? &credentials_[*candidate] : nullptr;
      answer.reset();
      auto authorization = authorize(http, by, challenges, who, endpoint);
      if (!authorization) {
        denied = authorization.take_error();
        continue;
      }
      request.authorization = *authorization;
      answer = TRY(http.start(request));
      if (is_good()) {
        authorization_.with([&](auto& all) { all[endpoint.base] = request.authorization; });
        if (candidate) note_use(*candidate);
        return answer;
      }
      denied = refusal(*answer);
      // Some registries return not found to a client that may not see a repository.
      bool others_may =
          denied.code() == Code::unauthorized || denied.code() == Code::forbidden || denied.code() == Code::not_found;
      if (!others_may) break;
    }
    return denied;
  }
  if (!is_good()) return refusal(*answer);
  return answer;
}

Result<Registry::Document> Registry::manifest(Http& http, const std::string& which) {
  std::optional<Digest> wanted;
  if (auto digest = Digest::parse(which)) wanted = *digest;
  return at_any_endpoint<Document>(
      http.stop(),
      [&](const Endpoint& endpoint) -> Result<Document> {
        Exchange answer = TRY(open(http, endpoint, "manifests/" + which, kManifestHeaders, 0));
        std::string text = TRY(body_of(*answer, kManifestMax));
        Digest digest = digest_of(text);
        auto said = Digest::parse(answer->header("docker-content-digest"));
        if ((wanted && digest != *wanted) || (said && digest != *said))
          return Error(Code::invalid, answer->shown() + ": the manifest is not what its digest says");
        std::string type = answer->header("content-type");
        auto parsed = parse_manifest(text, type.substr(0, type.find(';')));
        if (!parsed) return parsed.take_error().wrap(answer->shown());
        return Document{*std::move(parsed), std::move(digest)};
      },
      !wanted);
}

Result<std::string> Registry::blob(Http& http, const Descriptor& descriptor, size_t max) {
  return at_any_endpoint<std::string>(http.stop(), [&](const Endpoint& endpoint) -> Result<std::string> {
    Exchange answer = TRY(open(http, endpoint, "blobs/" + descriptor.digest.text(), {}, 0));
    std::string text = TRY(body_of(*answer, max));
    if (int64_t(text.size()) != descriptor.size || digest_of(text) != descriptor.digest)
      return Error(Code::invalid, answer->shown() + ": the blob is not what its digest says");
    return text;
  });
}

// First the bytes that are already here, then the network, with as many attempts as needed.
class LayerDownload : public LayerSource {
 public:
  LayerDownload(Registry& registry, Http& http, const Descriptor& descriptor, const Fd& partial, std::atomic<int64_t>& done)
      : registry_(registry),
        http_(http),
        descriptor_(descriptor),
        partial_(partial),
        here_(partial),
        done_(done),
        backoff_(registry.retry_delay_) {}

  Result<std::string_view> next() override {
    auto more = on_disk_ ? from_disk() : from_network();
    if (!more) return more;
    std::string_view piece = *more;
    at_ += int64_t(piece.size());
    done_ += int64_t(piece.size());
    return piece;
  }
  const std::set<size_t>& senders() const override { return senders_; }

 private:
  Result<std::string_view> from_disk() {
    std::string_view piece = TRY(here_.next());
    if (!piece.empty()) return piece;
    on_disk_ = false;
    return from_network();
  }

  Result<std::string_view> from_network() {
    while (at_ < descriptor_.size) {
      auto piece = more();
      if (piece && !piece->empty()) {
        backoff_.progress();
        senders_.insert(asked_);
        TRY(sys::write_all(partial_, *piece));
        return piece;
      }
      if (piece) piece = ended_early();
      if (answer_ && at_ == asked_at_) registry_.set_aside(asked_);  // it answers, and sends nothing more
      answer_.reset();
      leftover_.clear();
      TRY(backoff_.before_retry(http_.stop(), piece.take_error()));
    }
    answer_.reset();
    return std::string_view();
  }

  // The next piece of the exchange; starts one at the current offset if there is none.
  Result<std::string_view> more() {
    if (!answer_) TRY(ask());
    given_ = std::exchange(leftover_, {});
    std::string_view piece = given_;
    if (piece.empty()) {
      auto next = answer_->next();
      if (!next) return next;
      piece = *next;
    }
    int64_t left = descriptor_.size - at_;
    if (int64_t(piece.size()) <= left) return piece;
    senders_.insert(asked_);
    return Error(Code::invalid, answer_->shown() + ": more bytes than the manifest says");
  }

  Result<void> ask() {
    answer_ = TRY(registry_.at_any_endpoint<Registry::Exchange>(
        http_.stop(), [&](const Endpoint& endpoint) -> Result<Registry::Exchange> { return ask_at(endpoint); }));
    asked_at_ = at_;
    const int64_t skip = answer_->status() == 206 ? 0 : at_;
    return skip_bytes(skip);  // a server without range support sends the whole body
  }

  // Errors: also invalid for what is no part of the layer by its headers: then another endpoint may have it.
  Result<Registry::Exchange> ask_at(const Endpoint& endpoint) {
    Registry::Exchange answer = TRY(registry_.open(http_, endpoint, "blobs/" + descriptor_.digest.text(), {}, at_));
    asked_ = size_t(&endpoint - registry_.endpoints_.data());
    const bool is_part = answer->status() == 206;
    if (is_part && !answer->header("content-range").starts_with("bytes " + std::to_string(at_) + "-"))  // "bytes 100-199/200"
      return Error(Code::invalid, answer->shown() + ": sent another range than asked for");
    const int64_t wanted = descriptor_.size - (is_part ? at_ : 0);
    auto length = parse_number<int64_t>(answer->header("content-length"));
    if (length && *length != wanted && answer->header("content-encoding").empty())
      return Error(Code::invalid,
                   answer->shown() + ": sends " + std::to_string(*length) + " bytes, not " + std::to_string(wanted));
    return answer;
  }

  Error ended_early() const { return unreachable(Error(Code::unavailable, answer_->shown() + ": the connection ended early")); }

  Result<void> skip_bytes(int64_t count) {
    if (count == 0) return {};
    while (count > 0) {
      std::string_view piece = TRY(answer_->next());
      if (piece.empty()) return ended_early();
      if (int64_t(piece.size()) > count) {
        leftover_ = piece.substr(size_t(count));
        return {};
      }
      count -= int64_t(piece.size());
    }
    return {};
  }

  Registry& registry_;
  Http& http_;
  const Descriptor& descriptor_;
  const Fd& partial_;
  FileSource here_;
  std::atomic<int64_t>& done_;
  Backoff backoff_;
  Registry::Exchange answer_;
  std::string leftover_, given_;   // the rest of a piece that began before the current offset
  int64_t at_ = 0, asked_at_ = 0;  // the offset; that where the current exchange began
  bool on_disk_ = true;
  size_t asked_ = 0;  // the endpoint of the current exchange
  std::set<size_t> senders_;
};

std::unique_ptr<LayerSource> Registry::layer(Http& http, const Descriptor& descriptor, const Fd& partial,
                                             std::atomic<int64_t>& done) {
  return std::make_unique<LayerDownload>(*this, http, descriptor, partial, done);
}

}  // namespace coracle::image
