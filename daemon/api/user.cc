// SPDX-License-Identifier: Apache-2.0
// See user.h.
#include "daemon/api/user.h"

#include <algorithm>

#include "daemon/registry/identity.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kAdministrators = "system:masters", kAuthenticated = "system:authenticated";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";
constexpr int64_t kClockLeewaySeconds = 60;

Error refused() { return Error(Code::unauthorized, "Unauthorized"); }

User anonymous() { return {"system:anonymous", "", {"system:unauthenticated"}, {}}; }

User account_user(std::string_view ns, std::string_view name, std::string_view uid) {
  User user;
  user.name = std::string(kAccountPrefix) + std::string(ns) + ":" + std::string(name);
  user.uid = uid;
  user.groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(ns), std::string(kAuthenticated)};
  return user;
}

int64_t seconds_of(WallTime time) { return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count(); }

std::vector<std::string> strings_of(const json::value* value) {
  std::vector<std::string> out;
  if (!value) return out;
  if (const json::string* one = value->if_string()) out.emplace_back(one->data(), one->size());
  if (const json::array* list = value->if_array())
    for (const json::value& item : *list)
      if (const json::string* text = item.if_string()) out.emplace_back(text->data(), text->size());
  return out;
}

bool ours(const std::string& path, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return path == prefix || path.starts_with(std::string(prefix) + "/"); });
}

}  // namespace

bool User::in(std::string_view group) const { return std::find(groups.begin(), groups.end(), group) != groups.end(); }

// ---- tokens ----

Result<json::object> Tokens::bind(const Object& account, const json::value& reference) const {
  std::string kind(get_string(reference, "kind")), name(get_string(reference, "name")), uid(get_string(reference, "uid"));
  json::object claim;
  if (kind.empty()) return claim;
  const Kind* what = kind == "Pod" ? &kPod : kind == "Secret" ? &kSecret : kind == "Node" ? &kNode : nullptr;
  if (!what) return bad_request("cannot bind token for serviceaccount " + coracle::quoted(account.name()) + " to object of kind " + kind);
  ObjectPtr bound = TRY(registry_.get(*what, {what->namespaced ? account.ns() : "", name}));
  if (!uid.empty() && uid != bound->uid())
    return conflict(*what, name, "the UID in the bound object reference (" + uid + ") does not match the UID in record. The object might have been deleted and then recreated");
  if (*what == kPod && get_string(bound->json(), "spec.serviceAccountName") != account.name())
    return bad_request("cannot bind token for serviceaccount " + coracle::quoted(account.name()) + " to pod running with different serviceaccount name.");
  claim[to_lower(kind)] = json::object{{"name", name}, {"uid", bound->uid()}};
  if (*what == kPod)
    if (std::string node(get_string(bound->json(), "spec.nodeName")); !node.empty())
      if (auto found = registry_.get(kNode, {"", node})) claim["node"] = json::object{{"name", node}, {"uid", (*found)->uid()}};
  return claim;
}

Result<json::value> Tokens::issue(const Object& account, json::value request) {
  json::object kubernetes = TRY(bind(account, json::value(get_object(request, "spec.boundObjectRef"))));
  kubernetes["namespace"] = account.ns();
  kubernetes["serviceaccount"] = json::object{{"name", account.name()}, {"uid", account.uid()}};
  auto audiences = strings_of(find(request, "spec.audiences"));
  if (audiences.empty()) audiences = {settings_.issuer};
  json::array aud;
  for (const auto& audience : audiences) aud.emplace_back(audience);
  make(request, "spec.audiences") = aud;

  WallTime now = registry_.clock().now();
  int64_t issued = seconds_of(now), lifetime = get_int(request, "spec.expirationSeconds");
  json::object claims{{"aud", std::move(aud)}, {"exp", issued + lifetime}, {"iat", issued}, {"iss", settings_.issuer},
                      {"jti", registry::make_uid()}, {"kubernetes.io", std::move(kubernetes)}, {"nbf", issued},
                      {"sub", std::string(kAccountPrefix) + account.ns() + ":" + account.name()}};
  std::string token = TRY(signer_.sign(claims));
  request.get_object()["status"] =
      json::object{{"token", std::move(token)}, {"expirationTimestamp", format_time(now + std::chrono::seconds(lifetime))}};
  return request;
}

bool Tokens::still_there(const Kind& kind, const std::string& ns, const json::value& reference) const {
  if (!reference.is_object()) return true;
  auto found = registry_.get(kind, {kind.namespaced ? ns : "", std::string(get_string(reference, "name"))});
  return found && (*found)->uid() == get_string(reference, "uid");
}

Result<Tokens::Verified> Tokens::verify(std::string_view token, const std::vector<std::string>& audiences) const {
  if (auto found = settings_.static_tokens.find(std::string(token)); found != settings_.static_tokens.end())
    return Verified{found->second, audiences};
  json::value claims = TRY(signer_.verify(token));
  int64_t now = seconds_of(registry_.clock().now());
  bool in_time = now < get_int(claims, "exp") && now + kClockLeewaySeconds >= get_int(claims, "nbf");
  if (!in_time || get_string(claims, "iss") != settings_.issuer) return refused();

  Verified out;
  auto meant = strings_of(find(claims, "aud"));
  const std::vector<std::string> own{settings_.issuer};
  for (const auto& audience : audiences.empty() ? own : audiences)
    if (std::find(meant.begin(), meant.end(), audience) != meant.end()) out.audiences.push_back(audience);
  if (out.audiences.empty()) return refused();

  const json::value* kubernetes = claims.get_object().if_contains("kubernetes.io");
  if (!kubernetes || !kubernetes->is_object()) return refused();
  const json::object& about = kubernetes->get_object();
  auto part = [&](std::string_view name) { return about.contains(name) ? about.at(name) : json::value(); };
  std::string ns(get_string(*kubernetes, "namespace"));
  json::value account = part("serviceaccount"), pod = part("pod"), secret = part("secret"), node = part("node");
  bool valid = account.is_object() && still_there(kServiceAccount, ns, account) && still_there(kPod, ns, pod) && still_there(kSecret, ns, secret);
  if (!valid) return refused();
  out.user = account_user(ns, get_string(account, "name"), get_string(account, "uid"));
  auto tell = [&](std::string name, std::string_view value) {
    if (!value.empty()) out.user.extra["authentication.kubernetes.io/" + name] = {std::string(value)};
  };
  tell("pod-name", get_string(pod, "name")), tell("pod-uid", get_string(pod, "uid"));
  tell("node-name", get_string(node, "name")), tell("node-uid", get_string(node, "uid"));
  std::string_view id = get_string(claims, "jti");
  if (!id.empty()) tell("credential-id", "JTI=" + std::string(id));
  return out;
}

// ---- authentication ----

namespace {

Result<User> impersonated(const Head& head, const User& user) {
  std::string_view name = head.headers.get("Impersonate-User");
  if (name.empty()) return user;
  if (!user.in(kAdministrators))
    return Error(Code::forbidden, "users " + coracle::quoted(name) + " is forbidden: User " + coracle::quoted(user.name) +
                                      " cannot impersonate resource \"users\" in API group \"\" at the cluster scope");
  User other;
  other.name = name;
  other.uid = head.headers.get("Impersonate-Uid");
  for (std::string_view group : head.headers.all("Impersonate-Group")) other.groups.emplace_back(group);
  if (name.starts_with(kAccountPrefix) && other.groups.empty()) {
    auto parts = split(name.substr(kAccountPrefix.size()), ':');
    if (parts.size() == 2) other.groups = account_user(parts[0], parts[1], {}).groups;
  }
  if (!other.in(kAuthenticated) && !other.anonymous()) other.groups.emplace_back(kAuthenticated);
  constexpr std::string_view kExtra = "Impersonate-Extra-";
  for (const auto& [header, value] : head.headers.items())
    if (header.size() > kExtra.size() && equal_fold(std::string_view(header).substr(0, kExtra.size()), kExtra))
      other.extra[to_lower(std::string_view(header).substr(kExtra.size()))].push_back(value);
  return other;
}

}  // namespace

Result<User> Authenticator::authenticate(const Head& head, const TlsConnection& connection) const {
  std::string_view authorization = head.headers.get("Authorization");
  if (authorization.size() > 7 && equal_fold(authorization.substr(0, 7), "Bearer ")) {
    Tokens::Verified verified = TRY(tokens_.verify(trim(authorization.substr(7)), {}));
    return impersonated(head, verified.user);
  }
  if (!authorization.empty()) return refused();
  PeerCertificate certificate = connection.peer_certificate();
  if (!certificate.presented) return anonymous();
  if (!certificate.valid || certificate.common_name.empty()) return refused();
  User user{certificate.common_name, "", certificate.organizations, {}};
  user.groups.emplace_back(kAuthenticated);
  return impersonated(head, user);
}

// ---- authorization ----

Attributes attributes_of(const Route& route, const Head& head) {
  Attributes out;
  out.verb = route.verb(head);
  out.is_resource = route.what == Route::What::resource;
  if (!out.is_resource) return out.path = route.path, out;
  out.group = route.group, out.resource = route.resource, out.subresource = route.subresource;
  out.ns = route.ns, out.name = route.name;
  return out;
}

bool allowed(const User& user, const Attributes& asked) {
  if (user.in(kAdministrators)) return true;
  if (!asked.is_resource && ours(asked.path, {"/livez", "/readyz", "/healthz", "/version"})) return asked.verb == "get";
  if (!user.in(kAuthenticated)) return false;
  if (!asked.is_resource)
    return asked.verb == "get" && ours(asked.path, {"/api", "/apis", "/openapi", "/.well-known/openid-configuration", "/openid/v1/jwks"});
  bool about_self = asked.group == "authorization.k8s.io" ? asked.resource == "selfsubjectaccessreviews" || asked.resource == "selfsubjectrulesreviews"
                                                          : asked.group == "authentication.k8s.io" && asked.resource == "selfsubjectreviews";
  return about_self && asked.verb == "create";
}

Error denial(const User& user, const Attributes& asked) {
  std::string who = "User " + coracle::quoted(user.name) + " cannot " + asked.verb;
  if (!asked.is_resource) return Error(Code::forbidden, "forbidden: " + who + " path " + coracle::quoted(asked.path));
  std::string resource = asked.subresource.empty() ? asked.resource : asked.resource + "/" + asked.subresource;
  std::string where = asked.ns.empty() ? "at the cluster scope" : "in the namespace " + coracle::quoted(asked.ns);
  std::string subject = asked.group.empty() ? asked.resource : asked.resource + "." + asked.group;
  if (!asked.name.empty()) subject += " " + coracle::quoted(asked.name);
  ErrorDetails details;
  details.name = asked.name, details.group = asked.group, details.kind = asked.resource;
  return Error(Code::forbidden, subject + " is forbidden: " + who + " resource " + coracle::quoted(resource) + " in API group " + coracle::quoted(asked.group) + " " + where)
      .with(std::move(details));
}

}  // namespace coracle::api
