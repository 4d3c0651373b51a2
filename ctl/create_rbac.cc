// SPDX-License-Identifier: Apache-2.0
// create role, clusterrole, rolebinding, clusterrolebinding. Resources are looked up among our own kinds, then at the server.
// Source: kubectl pkg/cmd/create.
#include "ctl/create.h"
#include "ctl/discovery.h"
#include "ctl/generate_rbac.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

// Asks the server at most once.
FindResource resource_finder(Commands& commands) {
  auto known = std::make_shared<std::vector<ApiResource>>();
  return [&commands, known](const RuleResource& typed) -> Result<RuleResource> {
    std::string word = to_lower(typed.name + (typed.group.empty() ? "" : "." + typed.group));
    if (const schema::KindInfo* kind = schema::catalog().by_name(word))
      return RuleResource{std::string(kind->kind.resource), std::string(kind->kind.group), ""};
    if (known->empty()) {
      Session* session = TRY(commands.session());
      std::vector<Error> ignored;
      *known = TRY(discover_resources(*session, ignored));
    }
    if (const ApiResource* found = resource_named(*known, word)) return RuleResource{found->name, found->group, ""};
    return Error(Code::not_found, "the server doesn't have a resource type " + coracle::quoted(typed.name) +
                                      (typed.group.empty() ? "" : " in group " + coracle::quoted(typed.group)));
  };
}

void warn_of_verb(const std::string& text) { tell("Warning: " + text + "\n"); }

void add_roles(Commands& commands, Command create) {
  struct NewRoleFlags : NewObjectFlags {
    RoleFlags role;
  };
  auto add = [&](const char* word, const char* about) {
    auto flags = std::make_shared<NewRoleFlags>();
    Command command = commands.add(word, about, create);
    command.add_option("--verb", flags->role.verbs, "get, list, watch, ...; * for all").delimiter(',');
    command.add_option("--resource", flags->role.resources, "RESOURCE[.GROUP][/SUBRESOURCE]; * for all").delimiter(',');
    command.add_option("--resource-name", flags->role.resource_names, "only the object of this name; may be repeated");
    return std::pair(command, flags);
  };
  auto [role, role_flags] = add("role", "Create a Role with one rule");
  add_new_object(commands, role, role_flags, "",
                 [flags = role_flags.get(), find = resource_finder(commands)](const std::string& name) {
                   flags->role.name = name;
                   return role_of(flags->role, find, warn_of_verb);
                 });
  auto [cluster_role, cluster_flags] = add("clusterrole", "Create a ClusterRole with one rule, or of others");
  cluster_role.add_option("--non-resource-url", cluster_flags->role.non_resource_urls, "a path of the API; /PATH* with all below")
      .delimiter(',');
  cluster_role
      .add_option("--aggregation-rule", cluster_flags->role.aggregation, "KEY=VALUE,...: labels of the ClusterRoles it is of")
      .delimiter(',')
      .as_text();
  add_new_object(commands, cluster_role, cluster_flags, "",
                 [flags = cluster_flags.get(), find = resource_finder(commands)](const std::string& name) {
                   flags->role.name = name;
                   return cluster_role_of(flags->role, find, warn_of_verb);
                 });
}

void add_bindings(Commands& commands, Command create) {
  struct NewBindingFlags : NewObjectFlags {
    BindingFlags binding;
  };
  auto add = [&](const char* word, const char* about) {
    auto flags = std::make_shared<NewBindingFlags>();
    Command command = commands.add(word, about, create);
    Flag role = command.add_option("--clusterrole", flags->binding.cluster_role, "the ClusterRole it gives");
    command.add_option("--user", flags->binding.users, "a user who gets it; may be repeated");
    command.add_option("--group", flags->binding.groups, "a group that gets it; may be repeated");
    command.add_option("--serviceaccount", flags->binding.service_accounts, "NAMESPACE:NAME that gets it; may be repeated");
    return std::tuple(command, flags, role);
  };
  auto [binding, flags, ignored] = add("rolebinding", "Give a Role or ClusterRole within a namespace");
  binding.add_option("--role", flags->binding.role, "the Role it gives");
  add_new_object(commands, binding, flags, "failed to create rolebinding: ", [flags = flags.get()](const std::string& name) {
    flags->binding.name = name;
    return role_binding_of(flags->binding);
  });
  auto [cluster_binding, cluster_flags, role] = add("clusterrolebinding", "Give a ClusterRole in all namespaces");
  cluster_flags->required = {role};
  add_new_object(commands, cluster_binding, cluster_flags,
                 "failed to create clusterrolebinding: ", [flags = cluster_flags.get()](const std::string& name) {
                   flags->binding.name = name;
                   return cluster_role_binding_of(flags->binding);
                 });
}

}  // namespace

void add_create_rbac(Commands& commands, Command create) {
  add_roles(commands, create);
  add_bindings(commands, create);
}

}  // namespace coracle::ctl
