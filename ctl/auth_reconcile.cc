// SPDX-License-Identifier: Apache-2.0
// auth reconcile: roles and bindings get what files say, and keep what they have.
#include <algorithm>

#include "ctl/auth.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

using Operation = Reconciliation::Operation;

constexpr int kAttemptsMax = 3;
constexpr const char* kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

// Labels and annotations of the file that the object lacks are added. True: there were some.
bool merge_metadata(json::value& object, const json::value& expected) {
  bool changed = false;
  for (const char* field : {"metadata.annotations", "metadata.labels"})
    for (const auto& [key, value] : get_object(expected, field)) {
      json::value& members = make(object, field);
      if (!members.is_object()) members.emplace_object();
      changed = members.get_object().emplace(key, value).second || changed;
    }
  return changed;
}

bool is_protected(const json::value& existing) {
  const json::value* flag = metadata_of(existing).annotations().if_contains(kAutoUpdate);
  return flag && flag->is_string() && flag->get_string() == "false";
}

using Values = std::vector<json::value>;

Values without(const json::array& list, const json::array& other) {
  Values rest;
  for (const auto& value : list)
    if (std::find(other.begin(), other.end(), value) == other.end() && std::find(rest.begin(), rest.end(), value) == rest.end())
      rest.push_back(value);
  return rest;
}

void append(json::value& list, const json::array& more) {
  if (!list.is_array()) list.emplace_array();
  for (const auto& value : more) list.get_array().push_back(value);
}

// The roles whose rules a ClusterRole gathers.
void reconcile_aggregation(Reconciliation& plan, const json::value& existing, const json::value& expected, bool remove_extra) {
  view::AggregationRule had = view::ClusterRole(existing).aggregation_rule(),
                        wanted = view::ClusterRole(expected).aggregation_rule();
  const json::array &had_selectors = had.cluster_role_selectors().raw(),
                    &wanted_selectors = wanted.cluster_role_selectors().raw();
  Values missing = without(wanted_selectors, had_selectors), extra = without(had_selectors, wanted_selectors);
  if (had && !wanted) {
    plan.object.get_object().erase("aggregationRule");
  } else if (!remove_extra && !missing.empty()) {
    append(make(plan.object, "aggregationRule.clusterRoleSelectors"), json::array(missing.begin(), missing.end()));
  } else if (remove_extra && (!missing.empty() || (had && wanted && !extra.empty()))) {
    plan.object.get_object()["aggregationRule"] = wanted.raw();
  } else {
    return;
  }
  plan.operation = Operation::update;
}

// Groups that a reader of the file takes for granted, as Kubernetes' defaults have them.
json::value with_defaults(json::value binding) {
  auto settle = [](json::value& reference, std::string_view group) {
    if (reference.is_object() && view::Subject(reference).api_group().empty() && !group.empty())
      reference.get_object()["apiGroup"] = group;
  };
  if (json::value* role = binding.get_object().if_contains("roleRef")) settle(*role, "rbac.authorization.k8s.io");
  if (json::value* subjects = binding.get_object().if_contains("subjects"); subjects && subjects->is_array())
    for (auto& subject : subjects->get_array()) {
      bool account = view::Subject(subject).kind() == "ServiceAccount";
      settle(subject, account ? "" : "rbac.authorization.k8s.io");
    }
  return binding;
}

}  // namespace

Reconciliation reconcile_role(const json::value& existing, const json::value& expected, bool remove_extra) {
  Reconciliation plan;
  view::ClusterRole wanted_role(expected), had_role(existing);  // or Roles, which have no aggregation rule
  std::vector<PolicyRule> wanted = policy_rules_of(wanted_role.rules().raw());
  if (existing.is_null()) {
    plan.operation = Operation::create, plan.object = expected, plan.missing_rules = wanted;
    return plan;
  }
  plan.is_protected = is_protected(existing), plan.object = existing;
  if (merge_metadata(plan.object, expected)) plan.operation = Operation::update;
  std::vector<PolicyRule> had = policy_rules_of(had_role.rules().raw());
  if (!wanted_role.has_aggregation_rule() || !had_role.has_aggregation_rule()) plan.extra_rules = uncovered(wanted, had);
  plan.missing_rules = uncovered(had, wanted);
  if (!remove_extra && !plan.missing_rules.empty()) {
    append(make(plan.object, "rules"), to_json(plan.missing_rules));
    plan.operation = Operation::update;
  } else if (remove_extra && (!plan.missing_rules.empty() || !plan.extra_rules.empty())) {
    plan.object.get_object()["rules"] = wanted_role.rules().raw();
    plan.operation = Operation::update;
  }
  reconcile_aggregation(plan, existing, expected, remove_extra);
  return plan;
}

Reconciliation reconcile_binding(const json::value& existing, const json::value& expected, bool remove_extra) {
  Reconciliation plan;
  json::value wanted = with_defaults(expected);
  const json::array& wanted_subjects = view::RoleBinding(wanted).subjects().raw();
  if (existing.is_null()) {
    plan.operation = Operation::create, plan.object = expected;
    plan.missing_subjects.assign(wanted_subjects.begin(), wanted_subjects.end());
    return plan;
  }
  plan.is_protected = is_protected(existing);
  json::value had = with_defaults(existing);
  if (!same_json(view::RoleBinding(had).role_ref().members(), view::RoleBinding(wanted).role_ref().members())) {
    plan.operation = Operation::recreate, plan.object = expected;
    return plan;
  }
  plan.object = existing;
  if (merge_metadata(plan.object, expected)) plan.operation = Operation::update;
  const json::array& had_subjects = view::RoleBinding(had).subjects().raw();
  plan.missing_subjects = without(wanted_subjects, had_subjects);
  plan.extra_subjects = without(had_subjects, wanted_subjects);
  if (!remove_extra && !plan.missing_subjects.empty()) {
    append(make(plan.object, "subjects"), json::array(plan.missing_subjects.begin(), plan.missing_subjects.end()));
    plan.operation = Operation::update;
  } else if (remove_extra && (!plan.missing_subjects.empty() || !plan.extra_subjects.empty())) {
    plan.object.get_object()["subjects"] = wanted_subjects;
    plan.operation = Operation::update;
  }
  return plan;
}

namespace {

struct ReconcileFlags {
  std::vector<std::string> args;
  FileFlags files;
  Output output;
  DryRun dry_run = DryRun::none;
  bool remove_extra_permissions = false, remove_extra_subjects = false;
};

// The namespace of a role that is to be made. Who may not look or make one may yet make the role.
Result<void> ensure_namespace(Session& session, const std::string& ns) {
  if (ns.empty()) return {};
  auto tolerated = [](const Error& error, Code also) { return error.code() == also || error.code() == Code::forbidden; };
  const schema::KindInfo& kind = schema::catalog().of(kNamespace);
  auto found = session.json({.path = session.path(kind, "", ns)});
  if (found || found.error().code() == Code::forbidden) return {};
  if (found.error().code() != Code::not_found) return found.take_error();
  json::object object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}};
  auto made = session.json({.method = "POST", .path = session.path(kind, ""), .body = to_text(object)});
  if (!made && !tolerated(made.error(), Code::already_exists)) return made.take_error();
  return {};
}

// Carries a plan out. `again`: somebody else changed the object meanwhile, and it has to be looked at anew.
Result<void> carry_out(Session& session, const Document& document, const std::string& ns, const json::value& existing,
                       Reconciliation& plan, bool& again) {
  const schema::KindInfo& kind = *document.kind;
  std::string name(metadata_of(document.object).name());
  auto settle = [&](Result<json::value> answer, Code meanwhile) -> Result<void> {
    again = !answer && answer.error().code() == meanwhile;
    if (again) return {};
    if (!answer) return answer.take_error();
    plan.object = std::move(*answer);
    return {};
  };
  if (plan.operation == Operation::update)
    return settle(session.json({.method = "PUT", .path = session.path(kind, ns, name), .body = to_text(plan.object)}),
                  Code::not_found);
  if (plan.operation == Operation::recreate) {
    json::object options = session.delete_options();
    options["preconditions"] = json::object{{"uid", metadata_of(existing).uid()}};
    auto gone = session.json({.method = "DELETE", .path = session.path(kind, ns, name), .body = to_text(options)});
    again = !gone && gone.error().code() == Code::conflict;
    if (again) return {};
    if (!gone && gone.error().code() != Code::not_found) return gone.take_error();
  }
  TRY(ensure_namespace(session, ns));
  return settle(session.json({.method = "POST", .path = session.path(kind, ns), .body = to_text(plan.object)}),
                Code::already_exists);
}

Result<Reconciliation> try_reconcile(Session& session, const Document& document, const std::string& ns,
                                     const ReconcileFlags& flags) {
  std::string name(metadata_of(document.object).name());
  bool role = document.kind->kind.kind.ends_with("Role");
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    auto found = session.json({.path = session.path(*document.kind, ns, name)});
    if (!found && found.error().code() != Code::not_found) return found.take_error();
    json::value existing = found ? std::move(*found) : json::value();
    Reconciliation plan = role ? reconcile_role(existing, document.object, flags.remove_extra_permissions)
                               : reconcile_binding(existing, document.object, flags.remove_extra_subjects);
    bool again = false;
    if (plan.operation != Operation::none && !plan.is_protected && flags.dry_run == DryRun::none)
      TRY(carry_out(session, document, ns, existing, plan, again));
    if (!again) return plan;
  }
  return Error(Code::conflict, "exceeded maximum attempts");
}

// An object that somebody else changed between reading and writing is read again.
Result<Reconciliation> reconcile_one(Session& session, const Document& document, const std::string& ns,
                                     const ReconcileFlags& flags) {
  for (int attempt = 1;; ++attempt) {
    auto plan = try_reconcile(session, document, ns, flags);
    bool is_late = !plan && plan.error().details() && plan.error().code() == Code::conflict;
    if (!is_late || attempt == kAttemptsMax) return plan;
  }
}

std::string subject_text(const json::value& subject) {
  auto field = [&](const char* name) { return std::string(get_string(subject, name)); };
  return "{Kind:" + field("kind") + " APIGroup:" + field("apiGroup") + " Name:" + field("name") +
         " Namespace:" + field("namespace") + "}";
}

void tell_list(const char* head, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  tell(std::string("\t") + head + ":\n");
  for (const auto& line : lines) tell("\t\t" + line + "\n");
}

void tell_plan(const Reconciliation& plan, const ReconcileFlags& flags) {
  if (plan.operation == Operation::none) return;
  const char* done = plan.operation == Operation::create ? "create" : plan.operation == Operation::update ? "update" : "recreate";
  tell(std::string("\treconciliation required ") + done +
       (plan.is_protected ? ", but object opted out (rbac.authorization.kubernetes.io/autoupdate: false)" : "") + "\n");
  auto texts = [](const auto& all, auto&& text) {
    std::vector<std::string> lines;
    for (const auto& one : all) lines.push_back(text(one));
    return lines;
  };
  tell_list("missing subjects added", texts(plan.missing_subjects, subject_text));
  if (flags.remove_extra_subjects) tell_list("extra subjects removed", texts(plan.extra_subjects, subject_text));
  tell_list("missing rules added", texts(plan.missing_rules, go_text));
  if (flags.remove_extra_permissions) tell_list("extra rules removed", texts(plan.extra_rules, go_text));
}

Result<int> run_reconcile(Commands& commands, const ReconcileFlags& flags) {
  if (flags.files.empty()) return Error(Code::bad_request, "must specify one of -f and -k");
  if (!flags.args.empty()) return Error(Code::bad_request, "no arguments are allowed");
  if (flags.dry_run == DryRun::server)
    return Error(Code::bad_request, "--dry-run=server for command reconcile is not supported yet");
  Session* session = TRY(commands.session());
  std::vector<Error> failures;
  std::vector<Document> documents = TRY(read_documents(flags.files, &failures));
  for (auto& document : documents) {
    auto ns = settle_namespace(*session, document);
    if (!ns) {
      failures.push_back(ns.take_error());
      continue;
    }
    if (document.kind->kind.group != "rbac.authorization.k8s.io") continue;  // as kubectl: files may hold other objects, too
    auto plan = reconcile_one(*session, document, *ns, flags);
    if (!plan) {
      failures.push_back(plan.take_error());
      continue;
    }
    print_outcome(flags.output, flags.dry_run, plan->object, *document.kind, "reconciled");
    tell_plan(*plan, flags);
  }
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_auth_reconcile(Commands& commands, Command auth) {
  auto flags = std::make_shared<ReconcileFlags>();
  Command reconcile = commands.add("reconcile", "Give roles and bindings what files say; they keep what they have", auth);
  reconcile.add_option("args", flags->args, "none");
  flags->files.add_to(reconcile);
  commands.add_output(reconcile, flags->output);
  reconcile.add_flag("--remove-extra-permissions", flags->remove_extra_permissions, "roles lose what the files do not have");
  reconcile.add_flag("--remove-extra-subjects", flags->remove_extra_subjects, "bindings lose whom the files do not name");
  commands.add_dry_run(reconcile, flags->dry_run);
  commands.on(reconcile, [&commands, flags] { return run_reconcile(commands, *flags); });
}

}  // namespace coracle::ctl
