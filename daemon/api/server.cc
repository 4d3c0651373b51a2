// SPDX-License-Identifier: Apache-2.0
// See server.h: the parts put together, and the order of questions that every request passes.
#include "daemon/api/server.h"

#include <condition_variable>
#include <thread>

#include "daemon/api/handlers.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::chrono::hours kCertificateCheck{1};
constexpr size_t kMetricLabelsMax = 512;

std::string issuer_of(const Config& config) { return "https://kubernetes.default.svc." + config.cluster_domain; }

PkiNames names_of(const Config& config) {
  PkiNames names;
  names.dns_names = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                     "kubernetes.default.svc." + config.cluster_domain};
  if (!config.node_name.empty()) names.dns_names.push_back(config.node_name);
  names.dns_names.insert(names.dns_names.end(), config.dns_names.begin(), config.dns_names.end());
  names.addresses = {"127.0.0.1", "::1"};
  for (const auto& address : config.addresses) names.addresses.push_back(address);
  for (const auto& endpoint : config.listen)
    if (endpoint.address != "0.0.0.0" && endpoint.address != "::") names.addresses.push_back(endpoint.address);
  // Pods come and go with addresses of their own on our bridge; what counts is where others reach this machine.
  bool everywhere = std::any_of(config.listen.begin(), config.listen.end(),
                                [](const auto& endpoint) { return endpoint.address == "0.0.0.0" || endpoint.address == "::"; });
  if (everywhere)
    for (const auto& address : sys::interface_addresses()) names.addresses.push_back(address);
  return names;
}

bool is_long(const Head& head) {
  auto route = read_route(head.path);
  if (!route) return false;
  if (route->what != Route::What::resource) return (route->path.starts_with("/coracle/v1/images") || route->path.starts_with("/coracle/v1/store")) && head.method == "POST";
  if (asks_for_watch(*route, head)) return true;
  const std::string& sub = route->subresource;
  return sub == "exec" || sub == "attach" || sub == "portforward" || sub == "proxy" || (sub == "log" && head.query.flag("follow"));
}

}  // namespace

struct Server::State {
  State(Config c, registry::Registry& registry, PodStreams& streams, NodeImages& images, const Clock& clock)
      : config(std::move(c)), clock(clock),
        house{registry, streams, images, config, clock, nullptr, nullptr, nullptr, [this] { return front.counts(); }, [this] { return bound; }},
        front(tls, [this](Exchange& exchange) { serve(exchange); }, is_long,
              [](Exchange& exchange, const Error& why) { answer_error(exchange, why); }, config.limits) {}

  Config config;
  const Clock& clock;
  House house;
  TlsSettings tls;
  Guarded<std::optional<Pki>> pki;
  std::string ca;
  std::optional<Tokens> tokens;
  std::optional<Authenticator> authenticator;
  std::vector<sys::Endpoint> bound;
  Front front;
  Guarded<bool> resting;  // what the keeper sleeps on
  std::jthread keeper;

  Result<void> prepare();
  void serve(Exchange& exchange);
  void answer(Call& call);
  void count(const Call& call);
  void keep(std::stop_token stop);
  Result<void> renew();
  Result<void> tell_administrator(const KeyPair& admin) const;
};

// Who, where, may they: then the handler.
void Server::State::serve(Exchange& exchange) {
  Call call{exchange, house, {}, {}, nullptr, {}};
  answer(call);
  count(call);
}

void Server::State::answer(Call& call) {
  auto route = read_route(call.head().path);
  if (!route) return answer_error(call, route.error());
  call.route = *std::move(route);
  auto user = authenticator->authenticate(call.head(), call.exchange.connection);
  if (!user) return answer_error(call, user.error());
  call.user = *std::move(user);
  Attributes attributes = attributes_of(call.route, call.head());
  if (!allowed(call.user, attributes))
    return answer_error(call, call.user.anonymous() ? Error(Code::unauthorized, "Unauthorized") : denial(call.user, attributes));
  dispatch(call);
}

void Server::State::count(const Call& call) {
  int status = call.exchange.taken() ? 200 : call.exchange.answer.status;
  std::string labels = "verb=\"" + call.route.verb(call.head()) + "\",resource=\"" + (call.info ? std::string(call.kind().resource) : "") +
                       "\",code=\"" + std::to_string(status) + "\"";
  house.metrics.with([&](Metrics& metrics) {
    if (metrics.requests.size() < kMetricLabelsMax || metrics.requests.contains(labels)) metrics.requests[labels]++;
  });
}

Result<void> Server::State::prepare() {
  Pki made = TRY(Pki::open(config.pki_dir, names_of(config), clock));
  ca = made.ca().certificate;
  TRY(tls.set(made.serving().certificate, made.serving().key, ca));
  TokenSigner signer = TRY(TokenSigner::make(made.token_key()));
  if (config.tokens.issuer.empty()) config.tokens.issuer = issuer_of(config);
  tokens.emplace(std::move(signer), config.tokens, house.registry);
  authenticator.emplace(*tokens);
  house.tokens = &*tokens;
  house.ca = &ca;
  house.registry.set_token_issuer(&*tokens);
  pki.with([&](auto& p) { p.emplace(std::move(made)); });
  return {};
}

Result<void> Server::State::tell_administrator(const KeyPair& admin) const {
  if (config.kubeconfig_path.empty() || bound.empty()) return {};
  sys::Endpoint at = bound.front();
  if (at.address == "0.0.0.0") at.address = "127.0.0.1";
  if (at.address == "::") at.address = "::1";
  return write_kubeconfig(config.kubeconfig_path, make_kubeconfig("https://" + at.text(), ca, admin));
}

Result<void> Server::State::renew() {
  Pki now = pki.with([](const auto& p) { return *p; });
  bool changed = TRY(now.renew(names_of(config), clock));
  if (!changed) return {};
  TRY(tls.set(now.serving().certificate, now.serving().key, ca));
  TRY(tell_administrator(now.admin()));
  pki.with([&](auto& p) { p.emplace(std::move(now)); });
  log_notice("api", "certificates were renewed");
  return {};
}

void Server::State::keep(std::stop_token stop) {
  while (!stop.stop_requested()) {
    resting.wait_until(stop, std::chrono::steady_clock::now() + kCertificateCheck, [](bool) { return false; }, [](bool) {});
    if (stop.stop_requested()) return;
    if (auto renewed = renew(); !renewed) log_error("api", "renew certificates: " + renewed.error().text());
    if (house.keeper) house.keeper->tend();
  }
}

Server::Server(Config config, registry::Registry& registry, PodStreams& streams, NodeImages& images, const Clock& clock)
    : state_(std::make_unique<State>(std::move(config), registry, streams, images, clock)) {}

Server::~Server() {
  stop();
  state_->house.registry.set_token_issuer(nullptr);
}

void Server::set_keeper(backup::Keeper& keeper) { state_->house.keeper = &keeper; }

Result<void> Server::start() {
  TRY(state_->prepare().wrap("prepare certificates"));
  state_->bound = TRY(state_->front.start(state_->config.listen));
  TRY(state_->tell_administrator(admin()));
  state_->keeper = std::jthread([state = state_.get()](std::stop_token stop) { state->keep(stop); });
  return {};
}

void Server::stop() {
  state_->keeper.request_stop();
  if (state_->keeper.joinable()) state_->keeper.join();
  state_->front.stop();
}

const std::vector<sys::Endpoint>& Server::bound() const { return state_->bound; }
const std::string& Server::ca_certificate() const { return state_->ca; }
KeyPair Server::admin() const {
  return state_->pki.with([](const auto& p) { return p ? p->admin() : KeyPair{}; });
}
Front::Counts Server::counts() const { return state_->front.counts(); }

}  // namespace coracle::api
