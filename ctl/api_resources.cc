// SPDX-License-Identifier: Apache-2.0
// api-resources, api-versions: what the server has.
#include <algorithm>
#include <set>

#include "ctl/about.h"
#include "ctl/discovery.h"
#include "ctl/policy_rules.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

struct ResourcesFlags {
  std::vector<std::string> args, verbs, categories;
  Output output{OutputSet::resources};
  std::string group, sort_by;
  bool namespaced = true, no_headers = false, cached = false;
  Flag group_flag, namespaced_flag;
};

Error unexpected(const char* command, const std::vector<std::string>& args) {
  return Error(Code::bad_request,
               "unexpected arguments: [" + join(args, " ") + "]\nSee 'coraclectl " + command + " -h' for help and examples");
}

Result<void> check_resources_flags(const ResourcesFlags& flags) {
  if (!flags.args.empty()) return unexpected("api-resources", flags.args);
  if (!flags.sort_by.empty() && flags.sort_by != "name" && flags.sort_by != "kind")
    return Error(Code::bad_request, "--sort-by accepts only name or kind");
  return {};
}

bool has_every(const std::vector<std::string>& words, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const auto& one) { return std::find(words.begin(), words.end(), one) != words.end(); });
}

std::string sort_value(const ApiResource& resource, const std::string& by) {
  return by == "name" ? resource.name : by == "kind" ? resource.kind : resource.group;
}

// An APIResourceList of all of them; each with its own group and version.
json::value resource_list(const std::vector<ApiResource>& resources) {
  json::array shown;
  for (const auto& one : resources) {
    json::object resource{{"name", one.name}, {"singularName", one.singular}, {"namespaced", one.namespaced}};
    if (!one.group.empty()) resource["group"] = one.group;
    resource["version"] = one.version;
    resource["kind"] = one.kind;
    resource["verbs"] = json::array(one.verbs.begin(), one.verbs.end());
    for (const auto& [name, words] : {std::pair{"shortNames", &one.short_names}, std::pair{"categories", &one.categories}})
      if (!words->empty()) resource[name] = json::array(words->begin(), words->end());
    shown.push_back(std::move(resource));
  }
  json::object list{{"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", ""}, {"resources", nullptr}};
  if (!shown.empty()) list["resources"] = std::move(shown);
  return list;
}

Result<int> run_resources(Commands& commands, const ResourcesFlags& flags) {
  TRY(check_resources_flags(flags));
  Session* session = TRY(commands.session());
  std::vector<Error> failures;
  std::vector<ApiResource> resources = TRY(discover_resources(*session, failures));
  std::erase_if(resources, [&](const auto& one) {
    return (flags.group_flag.count() > 0 && one.group != flags.group) ||
           (flags.namespaced_flag.count() > 0 && one.namespaced != flags.namespaced) || !has_every(one.verbs, flags.verbs) ||
           !has_every(one.categories, flags.categories);
  });
  std::stable_sort(resources.begin(), resources.end(), [&](const auto& a, const auto& b) {
    return std::pair(sort_value(a, flags.sort_by), a.name) < std::pair(sort_value(b, flags.sort_by), b.name);
  });
  if (flags.output.prints_objects()) {
    flags.output.print(resource_list(resources), JsonOrder::given);
    print_failures(failures);
    return failures.empty() ? 0 : 1;
  }
  bool wide = flags.output == "wide";
  Columns columns;
  if (!flags.no_headers && !(flags.output == "name")) {
    std::vector<std::string> head = {"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"};
    if (wide) head.insert(head.end(), {"VERBS", "CATEGORIES"});
    columns.add(std::move(head));
  }
  for (const auto& one : resources) {
    if (flags.output == "name") {
      columns.add({one.group.empty() ? one.name : one.name + "." + one.group});
      continue;
    }
    std::vector<std::string> row = {one.name, join(one.short_names, ","), one.group_version(), one.namespaced ? "true" : "false",
                                    one.kind};
    if (wide) row.insert(row.end(), {join(one.verbs, ","), join(one.categories, ",")});
    columns.add(std::move(row));
  }
  out(columns.text());
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<int> run_versions(Commands& commands, const std::vector<std::string>& args) {
  if (!args.empty()) return unexpected("api-versions", args);
  Session* session = TRY(commands.session());
  std::vector<ApiGroup> groups = TRY(discover_groups(*session));
  std::set<std::string> versions;
  for (const auto& group : groups)
    for (const auto& version : group.versions) versions.insert(group.name.empty() ? version : group.name + "/" + version);
  for (const auto& version : versions) out(version + "\n");
  return 0;
}

}  // namespace

void add_api_resources(Commands& commands) {
  auto flags = std::make_shared<ResourcesFlags>();
  Command resources = commands.add("api-resources", "The kinds of objects the server serves");
  resources.add_option("args", flags->args, "none");
  commands.add_output(resources, flags->output);
  flags->group_flag = resources.add_option("--api-group", flags->group, "only this group");
  flags->namespaced_flag =
      resources.add_flag("--namespaced", flags->namespaced, "only kinds in namespaces (--namespaced=false: only others)");
  resources.add_option("--verbs", flags->verbs, "only kinds with these verbs").delimiter(',');
  resources.add_option("--categories", flags->categories, "only kinds in these categories: all").delimiter(',');
  resources.add_option("--sort-by", flags->sort_by, "name or kind");
  resources.add_flag("--no-headers", flags->no_headers, "no line of column names");
  resources.add_flag("--cached", flags->cached, "nothing is kept between runs: the server is always asked");
  commands.on(resources, [&commands, flags] { return run_resources(commands, *flags); });
  auto args = std::make_shared<std::vector<std::string>>();
  Command versions = commands.add("api-versions", "The groups and versions the server serves");
  versions.add_option("args", *args, "none");
  commands.on(versions, [&commands, args] { return run_versions(commands, *args); });
}

}  // namespace coracle::ctl
