// SPDX-License-Identifier: Apache-2.0
// Reviews: questions about who somebody is and what they may, asked as objects that are never stored; and the documents by
// which others can check our tokens. Source: Kubernetes authentication.k8s.io/v1, authorization.k8s.io/v1; OpenID Connect
// Discovery 1.0.
#include "daemon/api/handlers.h"
#include "runtime/base/clock.h"
#include "store/object/status.h"
#include "store/schema/decode.h"

namespace coracle::api {
namespace {

json::array strings(const std::vector<std::string>& all) {
  json::array out;
  for (const auto& text : all) out.emplace_back(text);
  return out;
}

std::vector<std::string> strings_of(const json::array& all) {
  std::vector<std::string> out;
  for (const json::value& item : all)
    if (const json::string* text = item.if_string()) out.emplace_back(text->data(), text->size());
  return out;
}

json::object user_info(const User& user) {
  json::object out{{"username", user.name}};
  if (!user.uid.empty()) out["uid"] = user.uid;
  if (!user.groups.empty()) out["groups"] = strings(user.groups);
  json::object extra;
  for (const auto& [key, values] : user.extra) extra[key] = strings(values);
  if (!extra.empty()) out["extra"] = std::move(extra);
  return out;
}

Attributes asked_about(const json::value& spec) {
  Attributes out;
  const json::value* resource = find(spec, "resourceAttributes");
  const json::value& from = resource && resource->is_object() ? *resource : spec;
  out.is_resource = resource && resource->is_object();
  if (!out.is_resource) {
    out.path = get_string(from, "nonResourceAttributes.path");
    out.verb = get_string(from, "nonResourceAttributes.verb");
    return out;
  }
  out.verb = get_string(from, "verb"), out.group = get_string(from, "group"), out.resource = get_string(from, "resource");
  out.subresource = get_string(from, "subresource"), out.ns = get_string(from, "namespace"), out.name = get_string(from, "name");
  return out;
}

json::object access_status(const User& user, const Attributes& asked) {
  json::object out{{"allowed", allowed(user, asked)}};
  if (!allowed(user, asked)) out["reason"] = denial(user, asked).text();
  return out;
}

User user_of(const json::value& spec) {
  User user;
  user.name = get_string(spec, "user");
  user.uid = get_string(spec, "uid");
  user.groups = strings_of(get_array(spec, "groups"));
  for (const auto& [key, values] : get_object(spec, "extra"))
    if (values.is_array()) user.extra[std::string(key)] = strings_of(values.get_array());
  return user;
}

json::object rules_status(const User& user) {
  json::array resources, others;
  auto all = [] { return json::array{"*"}; };
  if (user.in("system:masters")) {
    resources.push_back(json::object{{"verbs", all()}, {"apiGroups", all()}, {"resources", all()}});
    others.push_back(json::object{{"verbs", all()}, {"nonResourceURLs", all()}});
  } else if (user.in("system:authenticated")) {
    resources.push_back(json::object{{"verbs", json::array{"create"}}, {"apiGroups", json::array{"authorization.k8s.io"}},
                                     {"resources", json::array{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}}});
    resources.push_back(json::object{{"verbs", json::array{"create"}}, {"apiGroups", json::array{"authentication.k8s.io"}},
                                     {"resources", json::array{"selfsubjectreviews"}}});
    others.push_back(json::object{{"verbs", json::array{"get"}},
                                  {"nonResourceURLs", json::array{"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
                                                                  "/readyz", "/version", "/.well-known/openid-configuration", "/openid/v1/jwks"}}});
  }
  return {{"resourceRules", std::move(resources)}, {"nonResourceRules", std::move(others)}, {"incomplete", false}};
}

json::object token_status(const Call& call, const json::value& spec) {
  auto verified = call.house.tokens->verify(get_string(spec, "token"), strings_of(get_array(spec, "audiences")));
  if (!verified) return {{"authenticated", false}, {"user", json::object()}, {"error", "token is not valid here"}};
  return {{"authenticated", true}, {"user", user_info(verified->user)}, {"audiences", strings(verified->audiences)}};
}

Result<json::object> status_of(const Call& call, const json::value& spec) {
  std::string_view kind = call.kind().kind;
  if (kind == "TokenReview") return token_status(call, spec);
  if (kind == "SelfSubjectReview") return json::object{{"userInfo", user_info(call.user)}};
  if (kind == "SelfSubjectRulesReview") return rules_status(call.user);
  Attributes asked = asked_about(spec);
  if (!asked.is_resource && asked.path.empty())
    return invalid(call.kind(), "", {invalid_value("spec.resourceAttributes", "null", "exactly one of nonResourceAttributes or resourceAttributes must be specified")});
  if (kind == "SelfSubjectAccessReview") return access_status(call.user, asked);
  if (kind == "LocalSubjectAccessReview" && asked.ns != call.route.ns)
    return bad_request("spec.resourceAttributes.namespace must match namespace: " + call.route.ns);
  User user = user_of(spec);
  if (user.name.empty() && user.groups.empty())
    return invalid(call.kind(), "", {invalid_value("spec.user", "\"\"", "at least one of user or group must be specified")});
  return access_status(user, asked);
}

Result<void> review(Call& call) {
  if (call.head().method != "POST" || !call.route.name.empty())
    return Error(Code::method_not_allowed, "the server does not allow this method on the requested resource");
  TRY(negotiate(call.head(), Offer::value));  // a Table of it is asked for in vain
  json::value body = TRY(read_value(call, &call.info->type()));
  schema::Decoded decoded = TRY(schema::decode(call.info->type(), std::move(body)));
  json::value answer = std::move(decoded.value);
  json::object status = TRY(status_of(call, make(answer, "spec")));
  answer.get_object()["status"] = std::move(status);
  make(answer, "metadata.creationTimestamp") = format_time(call.house.clock.now());
  schema::Decoded canonical = TRY(schema::decode(call.info->type(), std::move(answer)));
  answer_value(call, canonical.value, 201);
  return {};
}

}  // namespace

bool is_review(const Kind& kind) { return kind.kind.ends_with("Review") && (kind.group == "authentication.k8s.io" || kind.group == "authorization.k8s.io"); }

void serve_review(Call& call) { answer_with(call, review(call)); }

void serve_oidc(Call& call) {
  const std::string& issuer = call.house.tokens->issuer();
  if (call.route.path == "/openid/v1/jwks") {
    answer_value(call, json::object{{"keys", json::array{call.house.tokens->signer().public_jwk()}}});
    if (call.answer().status == 200) call.answer().content_type = "application/jwk-set+json";
    return;
  }
  answer_value(call, json::object{{"issuer", issuer}, {"jwks_uri", issuer + "/openid/v1/jwks"},
                                  {"response_types_supported", json::array{"id_token"}}, {"subject_types_supported", json::array{"public"}},
                                  {"id_token_signing_alg_values_supported", json::array{"ES256"}}});
}

}  // namespace coracle::api
