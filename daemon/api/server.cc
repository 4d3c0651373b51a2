// SPDX-License-Identifier: Apache-2.0
// See server.h: creates the parts, and processes each request in order.
#include "daemon/api/server.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <thread>
#include <utility>

#include "daemon/api/audit.h"
#include "daemon/api/flow.h"
#include "daemon/api/handlers.h"
#include "daemon/api/user.h"
#include "daemon/flowcontrol/body_places.h"
#include "daemon/flowcontrol/flow_objects.h"
#include "daemon/registry/identity.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"
#include "store/client/local_socket.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::chrono::hours kCertificateCheck{1};
constexpr int kWatchesKept = 16;  // reserved for administrators
constexpr size_t kAuditIdMax = 64;

std::string audit_id(const Head& head) {
  std::string_view given = head.headers.get("Audit-ID");
  return given.empty() || given.size() > kAuditIdMax ? registry::make_uid() : std::string(given);
}

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
  // Without the addresses of pods, which are on the bridge and change: only addresses that other machines use matter.
  bool everywhere = std::any_of(config.listen.begin(), config.listen.end(),
                                [](const auto& endpoint) { return endpoint.address == "0.0.0.0" || endpoint.address == "::"; });
  if (everywhere)
    for (const auto& address : sys::interface_addresses()) names.addresses.push_back(address);
  return names;
}

// A quick test: most paths have none of the words that make a request long, and need not be parsed for that.
bool may_be_long(const Head& head) {
  static constexpr std::string_view kWords[] = {"watch", "exec", "attach", "portforward", "proxy", "log", "/coracle/", "%"};
  return head.query.has("watch") ||
         std::any_of(std::begin(kWords), std::end(kWords), [&](auto word) { return head.path.find(word) != head.path.npos; });
}

bool is_long(const Head& head) {
  if (!may_be_long(head)) return false;
  auto route = read_route(head.path);
  if (!route) return false;
  if (route->what != Route::What::resource)
    return route->path.starts_with("/coracle/v1/") && (head.method == "POST" || route->path.ends_with("/export"));
  if (asks_for_watch(*route, head)) return true;
  const std::string& sub = route->subresource;
  return sub == "exec" || sub == "attach" || sub == "portforward" || sub == "proxy" ||
         (sub == "log" && head.query.flag("follow"));
}

// The labels of the request metrics, as dashboards expect them.
RequestLabels labels_of(const Call& call) {
  const Route& route = call.route;
  std::string verb = route.verb(call.head());
  RequestLabels labels;
  static constexpr std::pair<std::string_view, std::string_view> kVerbs[] = {
      {"create", "POST"}, {"update", "PUT"},    {"deletecollection", "DELETECOLLECTION"},
      {"patch", "PATCH"}, {"delete", "DELETE"}, {"get", "GET"},
      {"list", "LIST"},   {"watch", "WATCH"}};
  auto found = std::find_if(std::begin(kVerbs), std::end(kVerbs), [&](const auto& row) { return row.first == verb; });
  labels.verb = found == std::end(kVerbs) ? "OTHER" : std::string(found->second);
  if (labels.verb == "PATCH" && call.head().headers.get("Content-Type").starts_with("application/apply-patch"))
    labels.verb = "APPLY";
  labels.dry_run = call.head().query.has("dryRun");
  if (!call.info) return labels;  // names that a client invents are not used as labels
  const schema::Subresource* sub = call.info->subresource(route.subresource);
  if (sub && (sub->name == "exec" || sub->name == "attach" || sub->name == "portforward" || sub->name == "proxy"))
    labels.verb = "CONNECT";
  labels.group = call.kind().group, labels.version = call.kind().version, labels.resource = call.kind().resource;
  if (sub) labels.subresource = sub->name;
  bool creates = labels.verb == "POST" && !sub;
  labels.scope = !route.name.empty() || creates ? "resource" : route.ns.empty() ? "cluster" : "namespace";
  return labels;
}

Result<flowcontrol::FlowController::Seat> too_many_watches() { return Error(Code::too_many_requests, "too many watches"); }

}  // namespace

struct Server::State {
  State(Config c, registry::Registry& registry, PodStreams& streams, NodeImages& images, NodeVolumes& volumes, const Clock& clock)
      : config(std::move(c)),
        clock(clock),
        authorizer(registry),
        guard(authorizer),
        flow_controller(flowcontrol::stored_rules(registry), config.flow_controller, clock),
        flow_objects(registry, flow_controller),
        bodies(flowcontrol::BodyLimits{.places = config.limits.bodies}),
        context{registry,
                streams,
                images,
                volumes,
                config,
                clock,
                nullptr,
                &authorizer,
                nullptr,
                [this] { return http_server.counts(); },
                [this] { return bound; },
                flow_controller},
        http_server(
            tls, [this](Exchange& exchange) { serve(exchange); }, is_long,
            [](Exchange& exchange, const Error& why) { answer_error(exchange, why); }, config.limits) {}

  Config config;
  const Clock& clock;
  auth::Authorizer authorizer;
  auth::WriteGuard guard;
  flowcontrol::FlowController flow_controller;
  flowcontrol::FlowObjects flow_objects;
  flowcontrol::BodyPlaces bodies;
  HandlerContext context;
  TlsSettings tls;
  Guarded<std::optional<Pki>> pki;
  Guarded<UserPtr> administrator;  // whom the administrator's certificate names
  std::string ca;
  std::optional<auth::Tokens> tokens;
  std::optional<auth::Authenticator> authenticator;
  std::unique_ptr<Auditor> auditor;
  std::vector<sys::Endpoint> bound;
  HttpServer http_server;
  struct News {  // events for the maintenance thread
    bool any = false, clock_set = false;
  };
  Guarded<News> news;
  void stir(bool clock_set) {  // the flow objects have changed, or the clock was set
    news.with([&](News& now) { now.any = true, now.clock_set |= clock_set; });
    news.notify();
  }
  std::jthread maintenance;

  Result<void> prepare();
  class RequestChain;
  void serve(Exchange& exchange);
  void maintain(std::stop_token stop);
  Result<void> renew();
  Result<void> set_administrator(const KeyPair& admin);
  Result<void> tell_administrator(const KeyPair& admin) const;
};

// One request on its way to its handler. Each stage returns whether the request goes on; otherwise it has made the response.
class Server::State::RequestChain {
 public:
  RequestChain(State& server, Call& call) : server_(server), call_(call) {}
  void run() {
    bool goes_on = find_route() && authenticate() && begin_audit() && check_timeout() && impersonate() && take_seat() &&
                   authorize() && expect_body();
    if (goes_on) handle();
    end_audit();
  }

 private:
  bool find_route() {
    auto route = read_route(call_.head().path);
    if (!route) return refuse(route.error());
    call_.route = *std::move(route);
    asked_ = attributes_of(call_.route, call_.head());
    return true;
  }

  bool authenticate() {
    Connection& connection = call_.exchange.connection;
    auto user = server_.authenticator->authenticate(credentials_of(call_.head(), connection), connection.recent_token());
    if (!user) {
      answer_error(call_, user.error());
      server_.auditor->refused(call_, asked_, server_.clock.now());
      return false;
    }
    call_.user = *std::move(user);
    call_.exchange.known = !call_.user->anonymous();
    call_.exchange.user = call_.user->name;
    return true;
  }

  bool begin_audit() {
    record_ = server_.auditor->begin(call_, asked_, server_.clock.now());
    return true;
  }

  // Requests that are not long take a moment, so the timeout itself has no effect. Source: apiserver
  // endpoints/filters/request_deadline.go; Go's time.ParseDuration.
  bool check_timeout() {
    std::string_view timeout = call_.query().get("timeout");
    if (call_.exchange.is_long || timeout.empty() || parse_duration(timeout)) return true;
    bool lacks_unit =
        timeout.find_first_not_of("+-.0123456789") == timeout.npos && timeout.find_first_of("0123456789") != timeout.npos;
    return refuse(bad_request("invalid timeout specified in the request URL - time: " +
                              std::string(lacks_unit ? "missing unit in" : "invalid") + " duration " + quoted(as_utf8(timeout))));
  }

  bool impersonate() {
    auto other = auth::impersonated(impersonation_of(call_.head()), *call_.user, asked_, server_.authorizer);
    if (!other) return forbid(other.error());
    if (!*other) return true;
    call_.user = std::make_shared<const User>(std::move((*other)->user));
    if (record_) record_->as = call_.user, record_->constraint = std::move((*other)->constraint);
    return true;
  }

  // Streams other than watches are not limited here; watches hold their seats until the initial events were sent (watch.cc).
  bool take_seat() {
    bool watches = asked_.verb == "watch";
    if (call_.exchange.is_long && !watches) return true;
    call_.flow = server_.flow_controller.classify(*call_.user, asked_);
    bool full =
        watches && !call_.flow->exempt() && server_.http_server.counts().watches > server_.config.limits.watches - kWatchesKept;
    auto seat = full ? too_many_watches() : server_.flow_controller.enter(*call_.flow, seats_wanted(call_, asked_));
    if (seat) return call_.exchange.hold(std::make_shared<flowcontrol::FlowController::Seat>(*std::move(seat))), true;
    const ErrorDetails* details = seat.error().details();
    answer_text(call_, 429, "Too many requests, please try again later.\n");
    call_.answer().headers.emplace_back("Retry-After", std::to_string(details ? details->retry_after_seconds : 1));
    return false;
  }

  bool authorize() {
    auth::Decision decision = server_.authorizer.authorize(*call_.user, asked_);
    if (record_) record_->allowed = decision.allowed, record_->reason = decision.reason;
    if (decision.allowed) return true;
    return forbid(auth::denial(*call_.user, asked_, decision.reason));
  }

  // A request whose body has not arrived frees its seats and takes one of its user's places for slow bodies. When the body is
  // complete, it enters its priority level again.
  bool expect_body() {
    if (call_.exchange.body_left() && call_.flow)
      call_.exchange.when_body_waits({[this] { return leave_seats(); }, [this] { return take_seats_again(); }});
    return true;
  }

  Result<void> leave_seats() {
    const Head& head = call_.head();
    bool size_known = head.content_length && !head.headers.has("Content-Encoding");
    uint64_t bytes = size_known ? std::min<uint64_t>(*head.content_length, kBodyBytesMax) : kBodyBytesMax;
    auto place = server_.bodies.take(call_.user->name, bytes);
    if (!place) return place.take_error();
    call_.exchange.hold(std::make_shared<flowcontrol::BodyPlaces::Place>(*std::move(place)));  // replaces its seats
    return {};
  }

  Result<void> take_seats_again() {
    call_.exchange.take_held().reset();
    auto seat = server_.flow_controller.enter(*call_.flow, seats_wanted(call_, asked_));
    if (!seat) return seat.take_error();
    call_.exchange.hold(std::make_shared<flowcontrol::FlowController::Seat>(*std::move(seat)));
    return {};
  }

  void handle() {
    if (!call_.exchange.is_long) return dispatch(call_);
    RequestLabels labels = labels_of(call_);
    server_.context.metrics.begin_long(labels);
    dispatch(call_);
    server_.context.metrics.end_long(labels);
  }

  void end_audit() {
    if (record_) server_.auditor->end(call_, *record_);
    call_.audit = nullptr, call_.exchange.when_taken = nullptr;
  }

  bool refuse(const Error& why) { return answer_error(call_, why), false; }
  bool forbid(const Error& why) {  // Source: apiserver responsewriters/errors.go
    call_.answer().headers.emplace_back("X-Content-Type-Options", "nosniff");
    return refuse(why);
  }

  State& server_;
  Call& call_;
  auth::Attributes asked_;
  std::unique_ptr<auth::AuditRecord> record_;  // null: not audited
};

void Server::State::serve(Exchange& exchange) {
  if (config.when_asked) config.when_asked();
  // Slow readers count against a user's share of waiting requests, as slow bodies do.
  exchange.when_answer_waits = [this, &exchange] {
    auto place = bodies.take(exchange.user, 0);
    if (place) exchange.hold(std::make_shared<flowcontrol::BodyPlaces::Place>(*std::move(place)));
    return place.ok();
  };
  if (exchange.head.path == "*") return;  // OPTIONS *: asks only whether a server responds
  static const UserPtr kNobody = std::make_shared<const User>();
  Call call{exchange, context, {}, kNobody, context.registry.catalogs().now(), nullptr, {}, {}, audit_id(exchange.head), nullptr};
  auto began = std::chrono::steady_clock::now();
  bool occupies = exchange.is_long, writes = exchange.head.method != "GET" && exchange.head.method != "HEAD";
  std::atomic<int>* running = occupies ? nullptr : writes ? &context.writing : &context.reading;
  if (running) ++*running;
  Scope leave([running] {  // runs in all cases
    if (running) --*running;
  });
  RequestChain(*this, call).run();
  context.metrics.count(labels_of(call), exchange.answer.status, std::chrono::steady_clock::now() - began);
}

Result<void> Server::State::prepare() {
  Pki made = TRY(Pki::open(config.pki_dir, names_of(config), clock));
  ca = made.ca().certificate;
  TRY(tls.set(made.serving().certificate, made.serving().key, ca));
  auth::TokenSigner signer = TRY(auth::TokenSigner::make(made.token_key()));
  if (config.tokens.issuer.empty()) config.tokens.issuer = issuer_of(config);
  tokens.emplace(std::move(signer), config.tokens, context.registry);
  authenticator.emplace(*tokens);
  context.tokens = &*tokens;
  context.ca = &ca;
  context.registry.set_token_issuer(&*tokens);
  context.registry.set_guard(&guard);
  TRY(set_administrator(made.admin()));
  pki.with([&](auto& p) { p.emplace(std::move(made)); });
  return {};
}

Result<void> Server::State::set_administrator(const KeyPair& admin) {
  CertificateInfo info = TRY(read_certificate_info(admin.certificate));
  UserPtr user = auth::user_of_certificate(info.common_name, info.organizations, sha256_fingerprint(admin.certificate));
  administrator.with([&](UserPtr& now) { now = std::move(user); });
  return {};
}

Result<void> Server::State::tell_administrator(const KeyPair& admin) const {
  if (config.kubeconfig_path.empty() || bound.empty()) return {};
  sys::Endpoint at = bound.front();
  if (at.address == "0.0.0.0") at.address = "127.0.0.1";
  if (at.address == "::") at.address = "::1";
  const std::string server = "https://" + at.text();
  const std::string& socket = http_server.local_socket();
  if (!socket.empty())
    TRY(sys::replace_file(local_socket_identity_path(socket), local_socket_identity(server, ca, admin.certificate), 0600,
                          sys::Durability::volatile_));
  return write_kubeconfig(config.kubeconfig_path, make_kubeconfig(server, ca, admin, socket));
}

Result<void> Server::State::renew() {
  Pki now = pki.with([](const auto& p) { return *p; });
  bool changed = TRY(now.renew(names_of(config), clock));
  if (!changed) return {};
  TRY(tls.set(now.serving().certificate, now.serving().key, ca));
  TRY(set_administrator(now.admin()));
  TRY(tell_administrator(now.admin()));
  pki.with([&](auto& p) { p.emplace(std::move(now)); });
  log_notice("api", "certificates were renewed");
  return {};
}

void Server::State::maintain(std::stop_token stop) {
  SteadyTime next = std::chrono::steady_clock::now() + kCertificateCheck;
  while (!stop.stop_requested()) {
    News told = news.wait_until(
        stop, next, [](const News& now) { return now.any; }, [](News& now) { return std::exchange(now, {}); });
    if (stop.stop_requested()) return;
    flow_objects.reconcile();
    if (!told.clock_set && std::chrono::steady_clock::now() < next) continue;
    next = std::chrono::steady_clock::now() + kCertificateCheck;
    if (auto renewed = renew(); !renewed) log_error("api", "renew certificates: " + renewed.error().text());
    if (config.maintenance) config.maintenance->maintain();
  }
}

Server::Server(Config config, registry::Registry& registry, PodStreams& streams, NodeImages& images, NodeVolumes& volumes,
               const Clock& clock)
    : state_(std::make_unique<State>(std::move(config), registry, streams, images, volumes, clock)) {}

Server::~Server() {
  stop();
  state_->context.registry.set_token_issuer(nullptr);
  state_->context.registry.set_guard(nullptr);
}

void Server::clock_was_set() { state_->stir(true); }

Result<void> Server::start() {
  state_->auditor = TRY(Auditor::open(state_->config.audit));
  TRY(state_->prepare().wrap("prepare certificates"));
  auto wake_maintenance = [state = state_.get()] { state->stir(false); };
  TRY(state_->flow_objects.follow(wake_maintenance).wrap("follow the flow schemas"));
  state_->flow_objects.reconcile();
  LocalSocket local;
  if (!state_->config.local_socket_dir.empty() && !state_->config.kubeconfig_path.empty() && !state_->config.listen.empty())
    local = {state_->config.local_socket_dir + "/api.sock",
             [state = state_.get()] { return state->administrator.with([](const UserPtr& now) { return now; }); }};
  state_->bound = TRY(state_->http_server.start(state_->config.listen, std::move(local)));
  TRY(state_->tell_administrator(admin()));
  state_->maintenance = start_thread("maintenance", [state = state_.get()](std::stop_token stop) { state->maintain(stop); });
  return {};
}

void Server::stop() {
  state_->maintenance.request_stop();
  if (state_->maintenance.joinable()) state_->maintenance.join();
  state_->http_server.stop();
  state_->flow_objects.unfollow();
}

const std::vector<sys::Endpoint>& Server::bound() const { return state_->bound; }
const std::string& Server::ca_certificate() const { return state_->ca; }
KeyPair Server::admin() const {
  return state_->pki.with([](const auto& p) { return p ? p->admin() : KeyPair{}; });
}
auth::Authority Server::authority() const {
  return state_->pki.with([](const auto& p) {
    return p ? auth::Authority{p->ca().certificate, p->ca().key} : auth::Authority{};
  });
}
const auth::Authorizer& Server::authorizer() const { return state_->authorizer; }
const auth::Tokens& Server::tokens() const { return *state_->tokens; }
HttpServer::Counts Server::counts() const { return state_->http_server.counts(); }

}  // namespace coracle::api
