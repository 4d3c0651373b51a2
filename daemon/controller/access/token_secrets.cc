// SPDX-License-Identifier: Apache-2.0
// Token Secrets. A Secret of type service-account-token names its account in an annotation and gets a token, the CA certificate
// and the namespace; it is deleted with the account. A bootstrap token is deleted when it expires. Source: Kubernetes "Configure
// Service Accounts", long-lived tokens; controllers tokens and tokencleaner.
#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kAccountType = "kubernetes.io/service-account-token", kBootstrapType = "bootstrap.kubernetes.io/token";
constexpr std::string_view kAccountName = "kubernetes.io/service-account.name", kAccountUid = "kubernetes.io/service-account.uid";

bool is_type(const Object& secret, std::string_view type) { return view::Secret(secret).type() == type; }

bool holds(view::Secret secret, std::string_view key) { return secret.data().contains(key); }

bool holds(view::Secret secret, std::string_view key, const std::string& plain) {
  const json::value* found = secret.data().if_contains(key);
  return found && *found == json::value(base64_encode(plain));
}

class TokenSecrets : public Controller {
 public:
  explicit TokenSecrets(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        config_(context.config),
        secrets_(context.informers.of(kSecret)),
        accounts_(context.informers.of(kServiceAccount)) {}

  std::string_view name() const override { return "tokensecrets"; }

  void subscribe(const Enqueue& enqueue) override {
    secrets_.on_change([=](const Informer::Change& change) {
      if (change.after && (is_type(*change.after, kAccountType) || is_type(*change.after, kBootstrapType)))
        enqueue.now(change.after->key());
    });
    secrets_.add_index("account", [](const Object& secret) -> std::vector<std::string> {
      if (!is_type(secret, kAccountType)) return {};
      return {secret.ns() + "/" + std::string(secret.annotation(kAccountName))};
    });
    accounts_.on_change([=, this](const Informer::Change& change) {
      for (const ObjectPtr& secret : secrets_.by_index("account", change.any().key().text())) enqueue.now(secret->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr secret = secrets_.get(key);
    if (!secret || secret->deleting()) return Outcome{};
    if (is_type(*secret, kBootstrapType)) return clean(*secret);
    ObjectPtr account = TRY(account_of(*secret));
    std::string_view uid = secret->annotation(kAccountUid);
    if (!account || (!uid.empty() && uid != account->uid())) return remove(*secret);
    view::Secret body(*secret);
    bool complete = holds(body, "token") && holds(body, "ca.crt", config_.root_ca) && holds(body, "namespace") && !uid.empty();
    if (complete || !config_.lasting_token) return Outcome{};
    json::value wanted = body.raw();
    json::object& data = make_object(wanted, "data");
    if (!holds(body, "token")) {
      std::string token = TRY(config_.lasting_token(*account, key.name));
      data["token"] = base64_encode(token);
    }
    data["ca.crt"] = base64_encode(config_.root_ca), data["namespace"] = base64_encode(key.ns);
    make_object(wanted, "metadata.annotations")[kAccountUid] = account->uid();
    auto written = client_.update(kSecret, wanted);
    if (!written && written.error().code() != Code::not_found)
      return written.take_error().wrap("fill the token of " + key.text());
    return Outcome{};
  }

 private:
  // The account's cache may lag behind that of Secrets, so an unknown account is read from the store. Null: it does not exist.
  Result<ObjectPtr> account_of(const Object& secret) {
    Key key{secret.ns(), std::string(secret.annotation(kAccountName))};
    if (ObjectPtr cached = accounts_.get(key)) return cached;
    auto found = client_.get(kServiceAccount, key);
    if (!found && found.error().code() == Code::not_found) return ObjectPtr();
    return found;
  }

  Result<Outcome> remove(const Object& secret) {
    auto removed = client_.remove(kSecret, secret.key(), {.uid = secret.uid()});
    bool gone = removed || removed.error().code() == Code::not_found || removed.error().code() == Code::conflict;
    if (!gone) return removed.take_error().wrap("remove the token " + secret.key().text());
    return Outcome{};
  }

  Result<Outcome> clean(const Object& secret) {
    if (secret.ns() != "kube-system") return Outcome{};
    const json::value* text = view::Secret(secret).data().if_contains("expiration");
    if (!text) return Outcome{};
    auto plain = text->is_string() ? base64_decode(std::string_view(text->get_string())) : Result<std::string>(std::string());
    auto end = parse_time(plain ? *plain : std::string());
    if (!end || *end <= clock_.now()) return remove(secret);  // an unreadable expiration counts as expired
    return Outcome{std::chrono::nanoseconds(*end - clock_.now())};
  }

  Client& client_;
  const Clock& clock_;
  const Config& config_;
  Informer& secrets_;
  Informer& accounts_;
};

}  // namespace

std::unique_ptr<Controller> make_token_secrets(const Context& context) { return std::make_unique<TokenSecrets>(context); }

}  // namespace coracle::controller
