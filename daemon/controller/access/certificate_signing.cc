// SPDX-License-Identifier: Apache-2.0
// Certificate signing requests: approves requests of nodes, signs approved requests of built-in signers, and deletes old
// requests. The rules of approval and signing are in daemon/auth; they are passed in Config.
//   request ──judge──▶ /approval;   approved ──sign──▶ /status;   decided and old ──▶ deleted
// Source: Kubernetes pkg/controller/certificates: approver, signer, cleaner (times, texts).
#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

constexpr std::chrono::hours kDecidedLifetime{1}, kPendingLifetime{24};

bool has(const json::value& request, std::string_view type) { return find_condition(request, type) != nullptr; }
bool decided(const json::value& request) { return has(request, "Approved") || has(request, "Denied"); }
bool issued(const json::value& request) { return !view::CertificateSigningRequest(request).status().certificate().empty(); }

json::value with_condition(const json::value& request, std::string_view type, std::string_view reason, std::string_view message,
                           WallTime now) {
  json::value out = request;
  json::array& conditions = make_array(out, "status.conditions");
  conditions.push_back(json::object{
      {"type", type}, {"status", "True"}, {"reason", reason}, {"message", message}, {"lastUpdateTime", format_time(now)}});
  return out;
}

// When a request is deleted: an hour after its decision, a day after its creation.
WallTime end_of(view::CertificateSigningRequest request) {
  WallTime end = parse_time(request.metadata().creation_timestamp()).value_or(WallTime{}) + kPendingLifetime;
  for (view::CertificateSigningRequestCondition condition : request.status().conditions()) {
    auto time = parse_time(condition.last_update_time());
    if (time) end = std::min(end, *time + kDecidedLifetime);
  }
  return end;
}

class Certificates : public Controller {
 public:
  explicit Certificates(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        config_(context.config),
        requests_(context.informers.of(kCertificateSigningRequest)) {}

  std::string_view name() const override { return "certificates"; }

  void subscribe(const Enqueue& enqueue) override {
    requests_.on_change([=](const Informer::Change& change) {
      if (change.after) enqueue.now(change.after->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr request = requests_.get(key);
    if (!request || request->deleting()) return Outcome{};
    const json::value& body = request->json();
    view::CertificateSigningRequest view(body);
    if (end_of(view) <= clock_.now()) {
      auto removed = client_.remove(kCertificateSigningRequest, key, {.uid = request->uid()});
      bool gone = removed || removed.error().code() == Code::not_found || removed.error().code() == Code::conflict;
      if (!gone) return removed.take_error().wrap("remove an old request");
      return Outcome{};
    }
    if (!decided(body) && config_.judge_request) TRY(approve(body));
    else if (has(body, "Approved") && !has(body, "Denied") && !has(body, "Failed") && !issued(body) && config_.sign_request)
      TRY(sign(body));
    return Outcome{std::chrono::nanoseconds(end_of(view) - clock_.now())};
  }

 private:
  Result<void> approve(const json::value& request) {
    std::optional<std::string> message = TRY(config_.judge_request(request));
    if (!message) return {};
    TRY(client_.update(kCertificateSigningRequest, with_condition(request, "Approved", "AutoApproved", *message, clock_.now()),
                       {.subresource = "approval"}));
    return {};
  }

  Result<void> sign(const json::value& request) {
    SignedRequest result = TRY(config_.sign_request(request));
    if (result.certificate.empty() && result.failure.empty()) return {};  // for another signer
    json::value out = request;
    if (!result.failure.empty()) out = with_condition(request, "Failed", "SignerValidationFailure", result.failure, clock_.now());
    else make(out, "status.certificate") = base64_encode(result.certificate);
    TRY(client_.update(kCertificateSigningRequest, out, {.subresource = "status"}));
    return {};
  }

  Client& client_;
  const Clock& clock_;
  const Config& config_;
  Informer& requests_;
};

}  // namespace

std::unique_ptr<Controller> make_certificates_controller(const Context& context) {
  return std::make_unique<Certificates>(context);
}

}  // namespace coracle::controller
