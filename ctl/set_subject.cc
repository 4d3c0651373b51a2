// SPDX-License-Identifier: Apache-2.0
// set subject: more users, groups or ServiceAccounts for a RoleBinding or ClusterRoleBinding.
// Source: kubectl pkg/cmd/set/set_subject.go.
#include <algorithm>
#include <tuple>

#include "ctl/generate_rbac.h"
#include "ctl/set.h"
#include "ctl/set_command.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/patch.h"

namespace coracle::ctl {

Result<void> add_subjects(json::value& object, const json::array& subjects) {
  std::string_view kind = kind_in(object);
  if (kind != "RoleBinding" && kind != "ClusterRoleBinding")
    return Error(Code::bad_request, "setting subjects is only supported for RoleBinding/ClusterRoleBinding");
  const json::array& given = view::RoleBinding(object).subjects().raw();
  json::array all = given;
  for (const json::value& subject : subjects) {
    auto parts = [](view::Subject one) { return std::tuple(one.kind(), one.api_group(), one.name(), one.namespace_()); };
    auto is_same = [&](const json::value& one) { return parts(view::Subject(one)) == parts(view::Subject(subject)); };
    if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(subject);
  }
  if (all.size() > given.size()) make(object, "subjects") = std::move(all);
  return {};
}

namespace {

struct SetSubjectFlags : SetFlags {
  SubjectFlags subjects;
};

void sort_without_repeats(std::vector<std::string>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

Result<int> set_subject(Commands& commands, SetSubjectFlags& flags) {
  SubjectFlags& wanted = flags.subjects;
  if (wanted.users.empty() && wanted.groups.empty() && wanted.service_accounts.empty())
    return Error(Code::bad_request, "you must specify at least one value of user, group or serviceaccount");
  for (auto* words : {&wanted.users, &wanted.groups, &wanted.service_accounts}) sort_without_repeats(*words);
  Session* session = TRY(target_session(commands, flags));
  json::array subjects = TRY(subjects_of(wanted, session->ns()));
  bool in_our_namespace = std::any_of(wanted.service_accounts.begin(), wanted.service_accounts.end(),
                                      [](const std::string& account) { return account.starts_with(':'); });
  auto edit = [&](json::value& object) -> Result<void> {
    if (in_our_namespace && kind_in(object) == "ClusterRoleBinding")
      return Error(Code::bad_request, "serviceaccount must be <namespace>:<name>, namespace must be specified");
    return add_subjects(object, subjects);
  };
  return change_all(
      commands, flags, flags.args,
      {.done = "subjects updated", .edit = edit, .names_object = true, .failing = "failed to patch subjects to rolebinding: "});
}

}  // namespace

void add_set_subject(Commands& commands, Command set) {
  auto flags = std::make_shared<SetSubjectFlags>();
  Command subject = commands.add("subject", "Whom a binding gives its role: rolebinding/NAME --user=NAME", set);
  flags->add_to(commands, subject);
  subject.add_option("--user", flags->subjects.users, "a user; may be repeated");
  subject.add_option("--group", flags->subjects.groups, "a group; may be repeated");
  subject.add_option("--serviceaccount", flags->subjects.service_accounts, "NAMESPACE:NAME; may be repeated");
  commands.on(subject, [&commands, flags] { return set_subject(commands, *flags); });
}

}  // namespace coracle::ctl
