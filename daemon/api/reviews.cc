// SPDX-License-Identifier: Apache-2.0
// Reviews: questions about authentication and authorization, sent as objects that are never stored; and the OpenID documents for
// verifying service account tokens. Source: Kubernetes authentication.k8s.io/v1, authorization.k8s.io/v1; OpenID Connect
// Discovery 1.0.
#include "daemon/api/handlers.h"
#include "daemon/api/options.h"
#include "daemon/auth/string_lists.h"
#include "daemon/auth/user_info.h"
#include "daemon/registry/metadata.h"
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

// Errors: invalid.
Result<auth::Attributes> asked_about(const Kind& kind, const json::value& spec) {
  const json::value *resource = find(spec, "resourceAttributes"), *other = find(spec, "nonResourceAttributes");
  bool of_resource = resource && resource->is_object(), of_path = other && other->is_object();
  constexpr std::string_view kExactlyOne = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
  if (of_resource && of_path)
    return invalid(kind, "",
                   {invalid_value("spec.nonResourceAttributes", to_text(*other),
                                  "cannot be specified in combination with resourceAttributes")});
  if (!of_resource && !of_path) return invalid(kind, "", {invalid_value("spec.resourceAttributes", "null", kExactlyOne)});
  auth::Attributes out;
  out.is_resource = of_resource;
  if (of_path) return out.path = get_string(*other, "path"), out.verb = get_string(*other, "verb"), out;
  out.verb = get_string(*resource, "verb"), out.group = get_string(*resource, "group"),
  out.resource = get_string(*resource, "resource");
  out.subresource = get_string(*resource, "subresource"), out.ns = get_string(*resource, "namespace"),
  out.name = get_string(*resource, "name");
  out.field_selector = get_string(*resource, "fieldSelector.rawSelector");
  for (const json::value& term : get_array(*resource, "fieldSelector.requirements")) {
    auto values = auth::strings_at(term, "values");
    if (get_string(term, "operator") != "In" || values.size() != 1) continue;
    out.field_selector += (out.field_selector.empty() ? "" : ",") + std::string(get_string(term, "key")) + "=" + values[0];
  }
  return out;
}

json::object access_status(const Call& call, const User& user, const auth::Attributes& asked) {
  auth::Decision decision = call.context.authorizer->authorize(user, asked);
  json::object out{{"allowed", decision.allowed}};
  if (!decision.reason.empty()) out["reason"] = decision.reason;
  return out;
}

User user_of(const json::value& spec) {
  User user;
  user.name = get_string(spec, "user");
  user.uid = get_string(spec, "uid");
  user.groups = auth::strings_at(spec, "groups");
  for (const auto& [key, values] : get_object(spec, "extra"))
    if (values.is_array()) user.extra[std::string(key)] = auth::strings_of(values.get_array());
  return user;
}

json::object rules_status(const Call& call, const json::value& spec) {
  auth::Authorizer::Held held = call.context.authorizer->rules_for(call.user, std::string(get_string(spec, "namespace")));
  json::array resources, others;
  for (const auth::Rule& rule : held.rules) {
    if (!rule.resources.empty()) {
      json::object to{
          {"verbs", strings(rule.verbs)}, {"apiGroups", strings(rule.groups)}, {"resources", strings(rule.resources)}};
      if (!rule.names.empty()) to["resourceNames"] = strings(rule.names);
      resources.push_back(std::move(to));
    }
    if (!rule.urls.empty())
      others.push_back(json::object{{"verbs", strings(rule.verbs)}, {"nonResourceURLs", strings(rule.urls)}});
  }
  json::object out{
      {"resourceRules", std::move(resources)}, {"nonResourceRules", std::move(others)}, {"incomplete", held.incomplete}};
  if (!held.error.empty()) out["evaluationError"] = held.error;
  return out;
}

Result<json::object> token_status(const Call& call, const json::value& spec) {
  std::string_view token = get_string(spec, "token");
  if (token.empty()) return bad_request("token is required for TokenReview in authentication");
  auto verified = call.context.tokens->verify(token, auth::strings_at(spec, "audiences"));
  if (!verified)
    return json::object{{"user", json::object()}, {"error", "[invalid bearer token, " + verified.error().text() + "]"}};
  json::object out{{"authenticated", true}, {"user", auth::user_info(verified->user)}};
  if (!get_array(spec, "audiences").empty() || !verified->audiences.empty()) out["audiences"] = strings(verified->audiences);
  return out;
}

Result<json::object> status_of(const Call& call, const json::value& spec) {
  std::string_view kind = call.kind().kind;
  if (kind == "TokenReview") return token_status(call, spec);
  if (kind == "SelfSubjectReview") return json::object{{"userInfo", auth::user_info(call.user)}};
  if (kind == "SelfSubjectRulesReview") {
    if (get_string(spec, "namespace").empty()) return bad_request("no namespace on request");
    return rules_status(call, spec);
  }
  auth::Attributes asked = TRY(asked_about(call.kind(), spec));
  if (kind == "SelfSubjectAccessReview") return access_status(call, call.user, asked);
  if (kind == "LocalSubjectAccessReview") {
    if (!asked.is_resource)
      return invalid(call.kind(), "", {forbidden_field("spec.nonResourceAttributes", "disallowed on this kind of request")});
    if (asked.ns != call.route.ns) return bad_request("spec.resourceAttributes.namespace must match namespace: " + call.route.ns);
  }
  User user = user_of(spec);
  if (user.name.empty() && user.groups.empty())
    return invalid(call.kind(), "", {invalid_value("spec.user", "\"\"", "at least one of user or group must be specified")});
  return access_status(call, user, asked);
}

Result<void> review(Call& call) {
  if (call.head().method != "POST" || !call.route.name.empty())
    return Error(Code::method_not_allowed, "the server does not allow this method on the requested resource");
  TRY(negotiate(call.head(), Offer::value));                          // it has no Table form
  registry::Writer writer = TRY(read_writer(call, "CreateOptions"));  // a review changes nothing, so dryRun has no effect
  json::value body = TRY(read_value(call, &call.info->type(), &writer.duplicates));
  TRY(registry::settle_place(call.kind(), body, call.key()));
  schema::Decoded decoded = TRY(schema::decode(call.info->type(), std::move(body)));
  TRY(registry::tell_unknown(call.info->type(), std::move(decoded.warnings), writer));
  json::value answer = std::move(decoded.value);
  json::object status = TRY(status_of(call, make(answer, "spec")));
  answer.get_object()["status"] = std::move(status);
  make(answer, "metadata.creationTimestamp") = format_time(call.context.clock.now());
  schema::Decoded canonical = TRY(schema::decode(call.info->type(), std::move(answer)));
  answer_value(call, canonical.value, 201);
  return {};
}

}  // namespace

void serve_review(Call& call) { answer_with(call, review(call)); }

void serve_oidc(Call& call) {
  const std::string& issuer = call.context.tokens->issuer();
  if (call.route.path == "/openid/v1/jwks") {
    answer_value(call, json::object{{"keys", json::array{call.context.tokens->signer().public_jwk()}}});
    if (call.answer().status == 200) call.answer().content_type = "application/jwk-set+json";
    return;
  }
  answer_value(call, json::object{{"issuer", issuer},
                                  {"jwks_uri", issuer + "/openid/v1/jwks"},
                                  {"response_types_supported", json::array{"id_token"}},
                                  {"subject_types_supported", json::array{"public"}},
                                  {"id_token_signing_alg_values_supported", json::array{"ES256"}}});
}

}  // namespace coracle::api
