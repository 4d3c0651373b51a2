// SPDX-License-Identifier: Apache-2.0
// Reviews: questions about authentication and authorization, sent as objects that are never stored; and the OpenID documents for
// verifying service account tokens. Source: Kubernetes authentication.k8s.io/v1, authorization.k8s.io/v1; OpenID Connect
// Discovery 1.0.
#include <algorithm>

#include "daemon/api/handlers.h"
#include "daemon/api/options.h"
#include "daemon/auth/string_lists.h"
#include "daemon/auth/user_info.h"
#include "daemon/registry/metadata.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"
#include "store/schema/decode.h"
#include "store/schema/validate/findings.h"

namespace coracle::api {
namespace {

// A choice of objects by fields or labels: as text or taken apart. Unknown operators are allowed: newer clients may know more.
// Source: pkg/apis/authorization/validation
template <typename Selector>
void check_selector(Selector selector, std::string_view name, schema::Findings& out) {
  using schema::sub, schema::item;
  if (!selector) return;
  const std::string path = sub("spec.resourceAttributes", name), all = sub(path, "requirements");
  auto requirements = selector.requirements();
  std::string_view text = selector.raw_selector();
  if (!text.empty() && !requirements.empty())
    out.invalid(sub(path, "rawSelector"), text, "may not specified at the same time as requirements");
  if (text.empty() && requirements.empty())
    out.required(all, "when " + path + " is specified, requirements or rawSelector is required");
  for (size_t i = 0; i < requirements.size() && !out.full(); ++i) {
    const std::string at = item(all, i), values_path = sub(at, "values");
    std::string_view op = requirements[i].operator_(), key = requirements[i].key();
    view::Range<std::string_view> values = requirements[i].values();
    bool of_labels = name == "labelSelector";
    if (!of_labels && key.empty()) out.required(sub(at, "key"), "must be specified");
    if ((op == "In" || op == "NotIn") && values.empty())
      out.required(values_path, "must be specified when `operator` is 'In' or 'NotIn'");
    if ((op == "Exists" || op == "DoesNotExist") && !values.empty())
      out.forbidden(values_path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    if (!of_labels) continue;
    out.invalid_all(sub(at, "key"), key, schema::qualified_name_problems(key));
    for (size_t j = 0; j < values.size() && !out.full(); ++j)
      out.invalid_all(item(values_path, j), values[j], schema::label_value_problems(values[j]));
  }
}

bool is_left_empty(const json::value& value) {
  if (const json::string* text = value.if_string()) return text->empty();
  if (const json::object* object = value.if_object()) return object->empty();
  return value.is_null() || (value.is_array() && value.get_array().empty());
}

// A review is no object and has no metadata, except what the server ignores or sets.
void check_review_metadata(const json::value& review, bool local, schema::Findings& out) {
  static constexpr std::string_view kIgnored[] = {
      "namespace", "managedFields", "uid", "selfLink", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"};
  const json::object& metadata = metadata_of(review).members();
  bool empty = std::all_of(metadata.begin(), metadata.end(), [](const auto& member) {
    bool ignored = std::find(std::begin(kIgnored), std::end(kIgnored), member.key()) != std::end(kIgnored);
    return ignored || is_left_empty(member.value());
  });
  if (!empty) out.invalid_json("metadata", metadata, local ? "must be empty except for namespace" : "must be empty");
}

// What is wrong with an access review, in Kubernetes' order. `ns`: of the request.
std::vector<Cause> access_review_causes(const Kind& kind, const std::string& ns, const json::value& review) {
  schema::Findings out;
  view::SubjectAccessReviewSpec spec = view::SubjectAccessReview(review).spec();  // that of the other kinds has the same fields
  view::ResourceAttributes resource = spec.resource_attributes();
  view::NonResourceAttributes other = spec.non_resource_attributes();
  bool of_self = kind.kind == "SelfSubjectAccessReview", local = kind.kind == "LocalSubjectAccessReview";
  if (resource && other)
    out.invalid_json("spec.nonResourceAttributes", other.raw(), "cannot be specified in combination with resourceAttributes");
  if (!resource && !other)
    out.invalid_json("spec.resourceAttributes", json::value(),
                     "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  if (!of_self && spec.user().empty() && spec.groups().empty())
    out.invalid("spec.user", "", "at least one of user or group must be specified");
  check_selector(resource.field_selector(), "fieldSelector", out);
  check_selector(resource.label_selector(), "labelSelector", out);
  check_review_metadata(review, local, out);
  if (local && resource && resource.namespace_() != ns)
    out.invalid("spec.resourceAttributes.namespace", resource.namespace_(), "must match metadata.namespace");
  if (local && other) out.invalid_json("spec.nonResourceAttributes", other.raw(), "disallowed on this kind of request");
  return out.take();
}

// Of a valid review.
auth::Attributes asked_about(view::SubjectAccessReviewSpec spec) {
  view::ResourceAttributes resource = spec.resource_attributes();
  view::NonResourceAttributes other = spec.non_resource_attributes();
  auth::Attributes out;
  out.is_resource = bool(resource);
  if (other) return out.path = other.path(), out.verb = other.verb(), out;
  out.verb = resource.verb(), out.group = resource.group(), out.resource = resource.resource();
  out.subresource = resource.subresource(), out.ns = resource.namespace_(), out.name = resource.name();
  out.field_selector = resource.field_selector().raw_selector();
  for (view::FieldSelectorRequirement term : resource.field_selector().requirements()) {
    if (term.operator_() != "In" || term.values().size() != 1) continue;
    out.field_selector += out.field_selector.empty() ? "" : ",";
    out.field_selector.append(term.key()).append("=").append(term.values()[0]);
  }
  return out;
}

json::object access_status(const Call& call, const User& user, const auth::Attributes& asked) {
  auth::Decision decision = call.context.authorizer->authorize(user, asked);
  json::object out{{"allowed", decision.allowed}};
  if (!decision.reason.empty()) out["reason"] = decision.reason;
  return out;
}

User user_of(view::SubjectAccessReviewSpec spec) {
  User user;
  user.name = spec.user();
  user.uid = spec.uid();
  user.groups = auth::strings_of(spec.groups().raw());
  for (const auto& [key, values] : spec.extra())
    if (values.is_array()) user.extra[std::string(key)] = auth::strings_of(values.get_array());
  return user;
}

json::object rules_status(const Call& call, std::string_view ns) {
  auth::Authorizer::Held held = call.context.authorizer->rules_for(*call.user, std::string(ns));
  json::array resources, others;
  for (const auth::Rule& rule : held.rules) {
    if (!rule.resources.empty()) {
      json::object to{
          {"verbs", array_of(rule.verbs)}, {"apiGroups", array_of(rule.groups)}, {"resources", array_of(rule.resources)}};
      if (!rule.names.empty()) to["resourceNames"] = array_of(rule.names);
      resources.push_back(std::move(to));
    }
    if (!rule.urls.empty())
      others.push_back(json::object{{"verbs", array_of(rule.verbs)}, {"nonResourceURLs", array_of(rule.urls)}});
  }
  json::object out{
      {"resourceRules", std::move(resources)}, {"nonResourceRules", std::move(others)}, {"incomplete", held.incomplete}};
  if (!held.error.empty()) out["evaluationError"] = held.error;
  return out;
}

Result<json::object> token_status(const Call& call, view::TokenReviewSpec spec) {
  std::string_view token = spec.token();
  if (token.empty()) return bad_request("token is required for TokenReview in authentication");
  auto verified = call.context.tokens->verify(token, auth::strings_of(spec.audiences().raw()));
  if (!verified)
    return json::object{{"user", json::object()}, {"error", "[invalid bearer token, " + verified.error().text() + "]"}};
  json::object out{{"authenticated", true}, {"user", auth::user_info(*verified->user)}};
  if (!spec.audiences().empty() || !verified->audiences.empty()) out["audiences"] = array_of(verified->audiences);
  return out;
}

Result<json::object> status_of(const Call& call, const json::value& review) {
  std::string_view kind = call.kind().kind;
  if (kind == "TokenReview") return token_status(call, view::TokenReview(review).spec());
  if (kind == "SelfSubjectReview") return json::object{{"userInfo", auth::user_info(*call.user)}};
  if (kind == "SelfSubjectRulesReview") {
    std::string_view ns = view::SelfSubjectRulesReview(review).spec().namespace_();
    if (ns.empty()) return bad_request("no namespace on request");
    return rules_status(call, ns);
  }
  std::vector<Cause> causes = access_review_causes(call.kind(), call.route.ns, review);
  if (!causes.empty()) return invalid(call.kind(), "", std::move(causes));
  view::SubjectAccessReviewSpec spec = view::SubjectAccessReview(review).spec();
  User user = kind == "SelfSubjectAccessReview" ? *call.user : user_of(spec);
  return access_status(call, user, asked_about(spec));
}

Result<void> review(Call& call) {
  if (call.head().method != "POST" || !call.route.name.empty())
    return Error(Code::method_not_allowed, "the server does not allow this method on the requested resource");
  TRY(negotiate(call.head(), Offer::value));                          // it has no Table form
  registry::Writer writer = TRY(read_writer(call, "CreateOptions"));  // a review changes nothing, so dryRun has no effect
  json::value body = TRY(read_value(call, &call.info->type(), &writer.duplicates));
  TRY(registry::settle_place(call.kind(), body, call.key()));
  schema::Decoded decoded = TRY(schema::decode(call.info->type(), std::move(body)));
  TRY(registry::tell_unknown(call.info->type(), decoded, writer));
  json::value answer = std::move(decoded.value);
  json::object status = TRY(status_of(call, answer));
  answer.get_object()["status"] = std::move(status);
  make(answer, "metadata.creationTimestamp") = format_time(call.context.clock.now());
  schema::Decoded canonical = TRY(schema::decode(call.info->type(), std::move(answer)));
  answer_value(call, canonical.value, 201);
  return {};
}

// These documents have one form each, which others may keep for an hour. A key set is sent to a client that accepts JSON as well,
// which Kubernetes refuses: clients of both exist. Source: pkg/routes/openidmetadata.go
void answer_openid(Call& call, std::string_view type, const json::value& document) {
  std::vector<MediaType> wanted = accepted_by(call.head());
  bool readable = wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const MediaType& one) {
                    bool any = one.type == "*/*" || one.type == "application/*" || one.type == "application/json";
                    return one.quality > 0 && (any || one.type == type);
                  });
  if (!readable)
    return answer_error(call, Error(Code::not_acceptable, "only the following media types are accepted: " + std::string(type)));
  call.cache_control = "public, max-age=3600";
  set_answer(call, 200, type, to_text(document));
}

}  // namespace

void serve_review(Call& call) { answer_with(call, review(call)); }

void serve_oidc(Call& call) {
  const std::string& issuer = call.context.tokens->issuer();
  if (call.route.path == "/openid/v1/jwks")
    return answer_openid(call, "application/jwk-set+json",
                         json::object{{"keys", json::array{call.context.tokens->signer().public_jwk()}}});
  answer_openid(call, "application/json",
                json::object{{"issuer", issuer},
                             {"jwks_uri", issuer + "/openid/v1/jwks"},
                             {"response_types_supported", json::array{"id_token"}},
                             {"subject_types_supported", json::array{"public"}},
                             {"id_token_signing_alg_values_supported", json::array{"ES256"}}});
}

}  // namespace coracle::api
