// SPDX-License-Identifier: Apache-2.0
// See tokens.h.
#include "daemon/auth/tokens.h"

#include <algorithm>
#include <optional>

#include "daemon/auth/authorizer.h"
#include "daemon/auth/bootstrap_tokens.h"
#include "daemon/auth/rules.h"
#include "daemon/auth/secret_text.h"
#include "daemon/auth/string_lists.h"
#include "daemon/registry/identity.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::auth {
namespace {

constexpr std::string_view kLastingIssuer = "kubernetes/serviceaccount", kLastingClaims = "kubernetes.io/serviceaccount/";
constexpr int64_t kLeewaySeconds = 60;
// The lifetime that a pod's projected token requests. For clients that never reload it, it is extended to a year, with a warning
// in the audit log.
constexpr int64_t kProjectedSeconds = 3607, kExtendedSeconds = 365 * 24 * 3600;

int64_t seconds_of(WallTime time) { return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count(); }

// A claim may be a string or a list of strings.
std::vector<std::string> string_or_strings(const json::value& value) {
  if (const json::string* one = value.if_string()) return {std::string(one->data(), one->size())};
  const json::array* list = value.if_array();
  return list ? strings_of(*list) : std::vector<std::string>();
}

json::value part(const json::value& of, std::string_view name) {
  const json::value* found = of.is_object() ? of.get_object().if_contains(name) : nullptr;
  return found ? *found : json::value();
}

int64_t number_at(const json::value& of, std::string_view name) { return get_int(of, name); }

std::string text_at(const json::value& of, std::string_view name) {
  json::value found = part(of, name);
  return found.is_string() ? std::string(found.get_string()) : std::string();
}

}  // namespace

// ---- issue ----

Result<json::object> Tokens::bind(const Object& account, view::BoundObjectReference reference) const {
  std::string kind(reference.kind()), name(reference.name()), uid(reference.uid());
  json::object claim;
  if (kind.empty()) return claim;
  std::string cannot = "cannot bind token for serviceaccount " + coracle::quoted(std::string_view(account.name()));
  const Kind* what = kind == "Pod" ? &kPod : kind == "Secret" ? &kSecret : kind == "Node" ? &kNode : nullptr;
  if (!what) return bad_request("cannot bind token to object of type " + std::string(reference.api_version()) + ", Kind=" + kind);
  ObjectPtr bound = TRY(registry_.get(*what, {what->namespaced ? account.ns() : "", name}));
  if (!uid.empty() && uid != bound->uid())
    return conflict(*what, name,
                    "the UID in the bound object reference (" + uid +
                        ") does not match the UID in record. The object might have been deleted and then recreated");
  if (*what == kPod && view::Pod(*bound).spec().service_account_name() != account.name())
    return bad_request(cannot + " to pod running with different serviceaccount name.");
  claim[to_lower(kind)] = json::object{{"name", name}, {"uid", bound->uid()}};
  if (std::string node(*what == kPod ? view::Pod(*bound).spec().node_name() : ""); !node.empty()) {
    json::object& of_node = claim["node"].emplace_object();
    of_node["name"] = node;
    if (auto found = registry_.get(kNode, {"", node})) of_node["uid"] = (*found)->uid();
  }
  return claim;
}

Result<json::value> Tokens::issue(const Object& account, json::value request) {
  view::TokenRequestSpec wanted = view::TokenRequest(request).spec();
  json::object kubernetes = TRY(bind(account, wanted.bound_object_ref()));
  bool of_pod = kubernetes.contains("pod");
  kubernetes["namespace"] = account.ns();
  kubernetes["serviceaccount"] = json::object{{"name", account.name()}, {"uid", account.uid()}};
  auto audiences = strings_of(wanted.audiences().raw());
  if (audiences.empty()) audiences = {settings_.issuer};
  json::array aud;
  for (const auto& audience : audiences) aud.emplace_back(audience);
  const int64_t asked = wanted.expiration_seconds();
  make(request, "spec.audiences") = aud;  // from here on `wanted` is not valid

  WallTime now = registry_.clock().now();
  int64_t issued = seconds_of(now), lifetime = asked;
  bool for_us =
      std::all_of(audiences.begin(), audiences.end(), [&](const std::string& audience) { return audience == settings_.issuer; });
  if (of_pod && for_us && asked == kProjectedSeconds) {
    kubernetes["warnafter"] = issued + asked;
    lifetime = kExtendedSeconds;
  }
  json::object claims{{"aud", std::move(aud)},
                      {"exp", issued + lifetime},
                      {"iat", issued},
                      {"iss", settings_.issuer},
                      {"jti", registry::make_uid()},
                      {"kubernetes.io", std::move(kubernetes)},
                      {"nbf", issued},
                      {"sub", std::string(kServiceAccountPrefix) + account.ns() + ":" + account.name()}};
  std::string token = TRY(signer_.sign(claims));
  request.get_object()["status"] =
      json::object{{"token", std::move(token)}, {"expirationTimestamp", format_time(now + std::chrono::seconds(asked))}};
  return request;
}

Result<std::string> Tokens::issue_lasting(const Object& account, std::string_view secret) const {
  std::string prefix(kLastingClaims);
  return signer_.sign(json::object{{"iss", kLastingIssuer},
                                   {prefix + "namespace", account.ns()},
                                   {prefix + "secret.name", secret},
                                   {prefix + "service-account.name", account.name()},
                                   {prefix + "service-account.uid", account.uid()},
                                   {"sub", std::string(kServiceAccountPrefix) + account.ns() + ":" + account.name()}});
}

// ---- verification ----

namespace {

bool is_usable_at(const Finding& finding, WallTime now) {
  std::chrono::seconds at(seconds_of(now));
  return finding.from <= at && at < finding.until;
}

void end_by(Finding& finding, std::chrono::seconds end) { finding.until = std::min(finding.until, end); }

std::vector<std::string> those_in_both(const std::vector<std::string>& wanted, const std::vector<std::string>& meant) {
  std::vector<std::string> both;
  for (const auto& audience : wanted)
    if (has(meant, audience)) both.push_back(audience);
  return both;
}

}  // namespace

Tokens::Tokens(TokenSigner signer, TokenSettings settings, registry::Registry& registry)
    : signer_(std::move(signer)), settings_(std::move(settings)), registry_(registry) {
  for (auto& [token, user] : settings_.static_tokens) static_tokens_.emplace(sha256_of(token), std::move(user));
  settings_.static_tokens.clear();
}

Result<Tokens::Verified> Tokens::verify(std::string_view token, const std::vector<std::string>& audiences) const {
  if (token.size() > kTokenBytesMax) return unauthorized();
  TokenDigest digest = sha256_of(token);
  std::optional<User> known;  // of static and bootstrap tokens, which have no audience: they are for the API server
  if (auto found = static_tokens_.find(digest); found != static_tokens_.end()) known = found->second;
  else known = bootstrap_user(registry_, token);
  if (known) {
    bool for_us = audiences.empty() || has(audiences, settings_.issuer);
    if (!for_us) return unauthorized("the token is not meant for " + describe(audiences));
    return Verified{std::make_shared<const User>(*std::move(known)), {settings_.issuer}, nullptr};
  }
  FindingPtr finding = TRY(finding_on(token, digest));
  const std::vector<std::string> ours{settings_.issuer}, &wanted = audiences.empty() ? ours : audiences;
  Verified out{UserPtr(finding, &finding->user), those_in_both(wanted, finding->audiences), finding};
  if (out.audiences.empty())
    return unauthorized("token audiences " + describe(finding->audiences) + " is invalid for the target audiences " +
                        describe(wanted));
  return out;
}

Result<UserPtr> Tokens::user_of(std::string_view token, RecentToken& recent) const {
  const SteadyTime now = registry_.clock().steady();
  const Revision revision = registry_.engine().revision();  // read first: what holds afterwards has held at this revision
  bool is_known =
      recent.finding && now < recent.until && same_secret(token, recent.token) && holds(*recent.finding, recent.held_at);
  if (!is_known) {
    recent = {};
    Verified verified = TRY(verify(token, {}));
    if (!verified.finding) return std::move(verified.user);
    recent = {std::string(token), std::move(verified.finding), now + kTokenRemembered};
  }
  recent.held_at = revision;
  return UserPtr(recent.finding, &recent.finding->user);
}

// Whether what was found is as true now as when it was found.
bool Tokens::holds(const Finding& finding, Revision held_at) const {
  const engine::Engine& engine = registry_.engine();
  return is_usable_at(finding, registry_.clock().now()) && (engine.revision() == held_at || engine.unchanged(finding.rests_on));
}

Result<FindingPtr> Tokens::finding_on(std::string_view token, const TokenDigest& digest) const {
  SteadyTime now = registry_.clock().steady();
  FindingPtr finding = remembered_.find(digest, now);
  if (finding && holds(*finding)) return finding;
  auto found = find_out(token);
  if (!found) {
    if (finding) remembered_.forget(digest);
    return found.take_error();
  }
  finding = std::make_shared<const Finding>(*std::move(found));
  remembered_.put(digest, finding, now);
  return finding;
}

Result<Finding> Tokens::find_out(std::string_view token) const {
  signatures_checked_++;
  json::value claims = TRY(signer_.verify(token));
  if (text_at(claims, "iss") == kLastingIssuer) return find_out_lasting(claims, token);
  return find_out_bound(claims);
}

// An object that is being deleted is accepted for its grace period and one more minute.
Result<void> Tokens::still_there(const Kind& kind, const std::string& ns, const json::value& reference, Finding& finding) const {
  if (!reference.is_object()) return {};
  Key key{kind.namespaced ? ns : "", text_at(reference, "name")};
  auto found = registry_.get(kind, key);
  if (!found || (*found)->uid() != text_at(reference, "uid")) return unauthorized("service account token has been invalidated");
  if ((*found)->deleting())
    if (auto time = parse_time(metadata_of(**found).deletion_timestamp())) {
      WallTime end = *time + std::chrono::seconds(kLeewaySeconds);
      if (end < registry_.clock().now()) return unauthorized("service account token has been invalidated");
      end_by(finding, std::chrono::seconds(seconds_of(end)));
    }
  finding.rests_on.push_back({&kind, std::move(key), (*found)->revision()});
  return {};
}

Result<Finding> Tokens::find_out_lasting(const json::value& claims, std::string_view token) const {
  auto claim = [&](std::string_view name) { return text_at(claims, std::string(kLastingClaims) + std::string(name)); };
  std::string ns = claim("namespace"), name = claim("service-account.name"), uid = claim("service-account.uid"),
              secret = claim("secret.name");
  if (ns.empty() || name.empty() || uid.empty() || secret.empty()) return unauthorized("service account token is malformed");
  Finding out;
  TRY(still_there(kServiceAccount, ns, json::object{{"name", name}, {"uid", uid}}, out));
  auto found = registry_.get(kSecret, {ns, secret});
  bool holds_it = found && !(*found)->deleting() && same_secret(secret_text((*found)->json(), "token"), token);
  if (!holds_it) return unauthorized("service account token has been invalidated");
  out.rests_on.push_back({&kSecret, {ns, secret}, (*found)->revision()});
  out.user = account_user(ns, name, uid);
  out.audiences = {settings_.issuer};
  return out;
}

Result<Finding> Tokens::find_out_bound(const json::value& claims) const {
  int64_t now = seconds_of(registry_.clock().now()), expires = number_at(claims, "exp"), not_before = number_at(claims, "nbf");
  if (text_at(claims, "iss") != settings_.issuer) return unauthorized("service account token was issued by somebody else");
  if (now >= expires) return unauthorized("service account token has expired");
  if (now + kLeewaySeconds < not_before) return unauthorized("service account token is not valid yet");

  Finding out;
  out.from = std::chrono::seconds(not_before - kLeewaySeconds), out.until = std::chrono::seconds(expires);
  out.audiences = string_or_strings(part(claims, "aud"));
  json::value about = part(claims, "kubernetes.io");
  std::string ns = text_at(about, "namespace");
  json::value account = part(about, "serviceaccount"), pod = part(about, "pod"), secret = part(about, "secret"),
              node = part(about, "node");
  if (!account.is_object()) return unauthorized("service account token is malformed");
  TRY(still_there(kServiceAccount, ns, account, out));
  TRY(still_there(kPod, ns, pod, out));
  TRY(still_there(kSecret, ns, secret, out));
  if (!pod.is_object()) TRY(still_there(kNode, ns, node, out));  // a pod's node is only recorded, not checked
  out.user = account_user(ns, text_at(account, "name"), text_at(account, "uid"));
  auto tell = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) out.user.extra["authentication.kubernetes.io/" + name] = {value};
  };
  tell("pod-name", text_at(pod, "name")), tell("pod-uid", text_at(pod, "uid"));
  tell("node-name", text_at(node, "name")), tell("node-uid", text_at(node, "uid"));
  if (std::string id = text_at(claims, "jti"); !id.empty()) tell("credential-id", "JTI=" + id);
  return out;
}

}  // namespace coracle::auth
