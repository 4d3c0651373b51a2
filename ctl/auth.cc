// SPDX-License-Identifier: Apache-2.0
// auth can-i, whoami: who we are for the server, and what we may do. auth_reconcile.cc has auth reconcile.
// Source: kubectl pkg/cmd/auth.
#include "ctl/auth.h"

#include <algorithm>

#include "ctl/discovery.h"
#include "ctl/policy_rules.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"
#include "store/schema/views.h"

namespace coracle::ctl {
namespace {

// ---- can-i ----

struct CanIFlags {
  std::vector<std::string> args;
  std::string subresource;
  bool all_namespaces = false, quiet = false, list = false, no_headers = false;
};

struct AskedResource {
  std::string group, resource;
  bool known = true, namespaced = true;
};

void warn(const std::string& text) { tell("Warning: " + text + "\n\n"); }  // with kubectl's empty line

// Our own kinds need no request; of others the server is asked.
AskedResource resource_asked(Session& session, const std::string& word) {
  if (word == "*") return {"", word};
  std::string lower = to_lower(word);
  if (const schema::KindInfo* kind = schema::catalog().by_name(lower))
    return {std::string(kind->kind.group), std::string(kind->kind.resource), true, kind->kind.namespaced};
  if (lower == "users" || lower == "groups") return {"", word, false};  // to impersonate; no server lists them
  std::vector<Error> ignored;
  auto resources = discover_resources(session, ignored);
  const ApiResource* found = resources ? resource_named(*resources, lower) : nullptr;
  if (found) return {found->group, found->name, true, found->namespaced};
  size_t dot = lower.find('.');
  warn("the server doesn't have a resource type '" + lower.substr(0, dot) + "'" +
       (dot == lower.npos ? "" : " in group '" + lower.substr(dot + 1) + "'"));
  return {"", word, false};
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

bool is_resource_verb(std::string_view verb) {
  return is_one_of(verb, {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind",
                          "impersonate", "*", "approve", "sign", "escalate", "attest"});
}

bool is_path_verb(std::string_view verb) {
  return is_one_of(verb, {"get", "put", "post", "head", "options", "delete", "patch", "*"});
}

Result<void> check_can_i_flags(const CanIFlags& flags) {
  if (flags.list && !flags.args.empty()) return Error(Code::bad_request, "list option must be specified with no arguments");
  if (flags.list && (flags.quiet || flags.all_namespaces || !flags.subresource.empty()))
    return Error(Code::bad_request, "list option can't be specified with neither quiet, all-namespaces nor subresource options");
  if (flags.list) return {};
  if (flags.args.size() != 2)
    return Error(Code::bad_request,
                 "you must specify two arguments: verb resource or verb resource/resourceName.\n"
                 "See 'coraclectl auth can-i -h' for help and examples.");
  if (flags.args[1].starts_with('/') && !flags.subresource.empty())
    return Error(Code::bad_request, "--subresource can not be used with NonResourceURL");
  return {};
}

json::value access_review(Session& session, const CanIFlags& flags) {
  const std::string &verb = flags.args[0], &what = flags.args[1];
  json::value review = json::object{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SelfSubjectAccessReview"}};
  if (what.starts_with('/')) {
    if (!is_path_verb(verb)) warn("verb '" + verb + "' is not a known verb");
    make(review, "spec.nonResourceAttributes") = json::object{{"verb", verb}, {"path", what}};
    return review;
  }
  size_t slash = std::min(what.find('/'), what.size());
  AskedResource resource = resource_asked(session, what.substr(0, slash));
  if (resource.known && !resource.namespaced && !flags.all_namespaces)
    warn("resource '" + resource.resource + "' is not namespace scoped" +
         (resource.group.empty() ? "" : " in group '" + resource.group + "'"));
  if (!flags.all_namespaces && !is_resource_verb(verb)) warn("verb '" + verb + "' is not a known verb");
  json::object asked{{"verb", verb}, {"resource", resource.resource}};
  auto add_field = [&](const char* name, const std::string& value) {
    if (!value.empty()) asked[name] = value;
  };
  add_field("namespace", flags.all_namespaces ? "" : session.ns());
  add_field("group", resource.group);
  add_field("subresource", flags.subresource);
  add_field("name", slash < what.size() ? what.substr(slash + 1) : "");
  make(review, "spec.resourceAttributes") = std::move(asked);
  return review;
}

Result<json::value> post_review(Session& session, const char* path, const json::value& review) {
  return session.json({.method = "POST", .path = path, .body = to_text(review)});
}

Result<int> list_rules(Session& session, const CanIFlags& flags) {
  json::value review = json::object{
      {"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SelfSubjectRulesReview"}, {"spec", {{"namespace", session.ns()}}}};
  json::value answer = TRY(post_review(session, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review));
  view::SubjectRulesReviewStatus found = view::SelfSubjectRulesReview(answer).status();
  if (found.incomplete()) tell("Warning: the list may be incomplete: " + std::string(found.evaluation_error()) + "\n");
  std::vector<PolicyRule> rules = policy_rules_of(found.resource_rules().raw());
  for (const auto& rule : policy_rules_of(found.non_resource_rules().raw())) rules.push_back(rule);
  Columns columns;
  if (!flags.no_headers) columns.add({"Resources", "Non-Resource URLs", "Resource Names", "Verbs"});
  for (const auto& rule : compacted(rules))
    columns.add({resource_and_group(rule), go_list(rule.non_resource_urls), go_list(rule.resource_names), go_list(rule.verbs)});
  out(columns.text());
  return 0;
}

Result<int> run_can_i(Commands& commands, const CanIFlags& flags) {
  TRY(check_can_i_flags(flags));
  Session* session = TRY(commands.session());
  if (flags.list) return list_rules(*session, flags);
  json::value review = access_review(*session, flags);
  if (flags.no_headers) return Error(Code::bad_request, "--no-headers cannot be set without --list specified");
  json::value answer = TRY(post_review(*session, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review));
  view::SubjectAccessReviewStatus status = view::SelfSubjectAccessReview(answer).status();
  bool allowed = status.allowed();
  std::string text = allowed ? "yes" : "no";
  for (std::string_view why : {status.reason(), status.evaluation_error()})
    if (!allowed && !why.empty()) text.append(" - ").append(why);
  if (!flags.quiet) out(text + "\n");
  return allowed ? 0 : 1;
}

// ---- whoami ----

Result<json::value> review_self(Session& session) {
  auto failed = [](const char* text) { return Error(Code::not_found, text); };
  for (const char* version : {"v1", "v1beta1", "v1alpha1"}) {  // servers from 1.26 on have one of them
    std::string api = std::string("authentication.k8s.io/") + version;
    json::value review = json::object{{"apiVersion", api}, {"kind", "SelfSubjectReview"}};
    auto answer = post_review(session, ("/apis/" + api + "/selfsubjectreviews").c_str(), review);
    if (answer || (answer.error().code() != Code::not_found && answer.error().code() != Code::forbidden)) return answer;
    if (answer.error().code() == Code::forbidden)
      return failed("the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it");
  }
  return failed("the selfsubjectreviews API is not enabled in the cluster");
}

std::string whoami_table(view::UserInfo user) {
  Columns columns;
  columns.add({"ATTRIBUTE", "VALUE"});
  auto add_text = [&](const char* name, std::string_view value) {
    if (!value.empty()) columns.add({name, std::string(value)});
  };
  add_text("Username", user.username());
  add_text("UID", user.uid());
  if (!user.groups().empty()) columns.add({"Groups", go_list(strings(user.groups()))});
  const json::object& extra = user.extra();
  std::vector<std::string> keys;
  for (const auto& [key, values] : extra) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  for (const auto& key : keys) {
    std::vector<std::string> words;
    if (const json::array* values = extra.at(key).if_array())
      for (const auto& value : *values)
        if (value.is_string()) words.emplace_back(value.get_string());
    columns.add({"Extra: " + key, go_list(words)});
  }
  return columns.text();
}

Result<int> run_whoami(Commands& commands, const Output& output) {
  Session* session = TRY(commands.session());
  json::value answer = TRY(review_self(*session));
  json::object ordered{{"kind", "SelfSubjectReview"}};  // kubectl's order
  for (const auto& [name, value] : answer.get_object()) ordered.emplace(name, value);
  if (!output.empty()) output.print(std::move(ordered), JsonOrder::given);
  else if (view::UserInfo user = view::SelfSubjectReview(answer).status().user_info()) out(whoami_table(user));
  return 0;
}

}  // namespace

void add_auth(Commands& commands) {
  Command auth = commands.add("auth", "Who we are, and what we may do");
  auth.require_command();
  auto flags = std::make_shared<CanIFlags>();
  Command can_i = commands.add("can-i", "VERB KIND[/NAME] or VERB /PATH: yes or no", auth);
  can_i.add_option("args", flags->args, "VERB KIND");
  can_i.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  can_i.add_flag("-q,--quiet", flags->quiet, "only by the exit code");
  can_i.add_option("--subresource", flags->subresource, "of the kind: log, scale, status");
  can_i.add_flag("--list", flags->list, "all that we may do in the namespace");
  can_i.add_flag("--no-headers", flags->no_headers, "with --list: no line of column names");
  commands.on(can_i, [&commands, flags] { return run_can_i(commands, *flags); });
  auto output = std::make_shared<Output>();
  Command whoami = commands.add("whoami", "Our name and groups", auth);
  commands.ignore_words(whoami);
  commands.add_output(whoami, *output);
  commands.on(whoami, [&commands, output] { return run_whoami(commands, *output); });
  add_auth_reconcile(commands, auth);
}

}  // namespace coracle::ctl
