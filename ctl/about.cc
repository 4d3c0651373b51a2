// SPDX-License-Identifier: Apache-2.0
// What there is and who we are: api-resources, api-versions, explain, version, cluster-info, auth.
#include <algorithm>
#include <set>

#include "ctl/command.h"
#include "ctl/config.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

// ---- api-resources, api-versions ----

struct ResourcesFlags {
  std::string output, group, namespaced;
  bool no_headers = false, has_group = false;
};

Result<int> run_resources(Commands& commands, const ResourcesFlags& flags) {
  Session* session = TRY(commands.session());
  Columns columns;
  if (!flags.no_headers && flags.output != "name") columns.add({"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"});
  std::vector<std::string> paths = {"/api/v1"};
  json::value groups = TRY(session->json({.path = "/apis"}));
  for (const auto& group : get_array(groups, "groups"))
    paths.push_back("/apis/" + std::string(get_string(group, "preferredVersion.groupVersion")));
  for (const auto& path : paths) {
    json::value list = TRY(session->json({.path = path}));
    std::string version(get_string(list, "groupVersion")),
        group = version.find('/') == version.npos ? "" : version.substr(0, version.find('/'));
    if (flags.has_group && group != flags.group) continue;
    std::vector<const json::value*> resources;
    for (const auto& resource : get_array(list, "resources"))
      if (get_string(resource, "name").find('/') == std::string_view::npos) resources.push_back(&resource);
    std::sort(resources.begin(), resources.end(),
              [](auto* a, auto* b) { return get_string(*a, "name") < get_string(*b, "name"); });
    for (const auto* resource : resources) {
      std::string name(get_string(*resource, "name"));
      bool namespaced = get_bool(*resource, "namespaced");
      if (!flags.namespaced.empty() && (flags.namespaced == "true") != namespaced) continue;
      std::vector<std::string> short_names;
      for (const auto& word : get_array(*resource, "shortNames")) short_names.emplace_back(word.get_string());
      if (flags.output == "name") columns.add({group.empty() ? name : name + "." + group});
      else
        columns.add(
            {name, join(short_names, ","), version, namespaced ? "true" : "false", std::string(get_string(*resource, "kind"))});
    }
  }
  out(columns.text());
  return 0;
}

Result<int> run_versions(Commands& commands) {
  Session* session = TRY(commands.session());
  json::value groups = TRY(session->json({.path = "/apis"}));
  std::set<std::string> versions = {"v1"};
  for (const auto& group : get_array(groups, "groups"))
    for (const auto& version : get_array(group, "versions")) versions.emplace(get_string(version, "groupVersion"));
  for (const auto& version : versions) out(version + "\n");
  return 0;
}

// ---- explain: from the schema, no server needed ----

std::string form_name(const schema::Field& field) {
  std::string name;
  switch (field.form) {
    case schema::Form::int32:
    case schema::Form::int64: name = "integer"; break;
    case schema::Form::boolean: name = "boolean"; break;
    case schema::Form::number: name = "number"; break;
    case schema::Form::quantity: name = "Quantity"; break;
    case schema::Form::int_or_string: name = "IntOrString"; break;
    case schema::Form::object: name = field.type().name(); break;
    case schema::Form::any:
    case schema::Form::fields: name = "Object"; break;
    default: name = "string";
  }
  if (field.shape == schema::Shape::list) return "[]" + name;
  return field.shape == schema::Shape::map ? "map[string]" + name : name;
}

void explain_fields(const schema::Type& type, size_t indent, bool deep, int depth, std::string& text) {
  constexpr int kDepthMax = 12;  // types may contain themselves
  std::vector<const schema::Field*> fields;
  for (const auto& field : type.fields()) fields.push_back(&field);
  std::sort(fields.begin(), fields.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  for (const auto* field : fields) {
    text += std::string(indent, ' ') + std::string(field->name()) + "\t<" + form_name(*field) + ">" +
            (field->required ? " -required-" : "") + "\n";
    if (deep) {
      if (field->form == schema::Form::object && depth < kDepthMax)
        explain_fields(field->type(), indent + 2, true, depth + 1, text);
      continue;
    }
    if (!field->doc().empty()) text += std::string(indent + 2, ' ') + std::string(field->doc()) + "\n";
    text += "\n";
  }
}

Result<int> run_explain(const std::string& path, bool recursive) {
  std::vector<std::string_view> words = split(path, '.');
  const schema::KindInfo* kind = schema::catalog().by_name(words.front());
  if (!kind) return Error(Code::not_found, "couldn't find resource for " + coracle::quoted(words.front()));
  std::string text = (kind->kind.group.empty() ? "" : "GROUP:      " + std::string(kind->kind.group) + "\n") +
                     "KIND:       " + std::string(kind->kind.kind) + "\nVERSION:    " + std::string(kind->kind.version) + "\n\n";
  const schema::Type* type = &kind->type();
  const schema::Field* field = nullptr;
  for (size_t i = 1; i < words.size(); ++i) {
    field = type ? type->field(words[i]) : nullptr;
    if (!field) return Error(Code::not_found, "field " + coracle::quoted(words[i]) + " does not exist");
    type = field->form == schema::Form::object ? &field->type() : nullptr;
  }
  if (field) text += "FIELD: " + std::string(field->name()) + " <" + form_name(*field) + ">\n\n";
  std::string doc(field && !field->doc().empty() ? field->doc() : type ? type->doc() : std::string_view());
  text += "DESCRIPTION:\n    " + (doc.empty() ? std::string("<empty>") : doc) + "\n";
  if (field)
    if (auto values = field->values(); !values.empty()) {
      text += "ENUM:\n";
      for (auto value : values) text += "    " + std::string(value) + "\n";
    }
  if (type) {
    text += "\nFIELDS:\n";
    explain_fields(*type, 2, recursive, 0, text);
  }
  out(text);
  return 0;
}

// ---- version, cluster-info, auth ----

Result<int> run_version(Commands& commands, bool client_only, const std::string& output) {
  json::object versions{{"clientVersion", {{"gitVersion", "v" CORACLE_VERSION}}}};
  std::string text = "Client Version: " CORACLE_VERSION "\n";
  if (!client_only) {
    Session* session = TRY(commands.session());
    json::value server = TRY(session->json({.path = "/version"}));
    text += "Server Version: " + std::string(get_string(server, "gitVersion")) + "\n";
    versions["serverVersion"] = std::move(server);
  }
  if (output == "json") out(to_pretty(versions) + "\n");
  else if (output == "yaml") out(to_yaml(versions));
  else out(text);
  return 0;
}

Result<int> run_can_i(Commands& commands, const std::vector<std::string>& words) {
  if (words.size() < 2) return Error(Code::bad_request, "you must specify two arguments: verb resource");
  Session* session = TRY(commands.session());
  json::value review = json::object{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SelfSubjectAccessReview"}};
  if (words[1].starts_with('/')) {
    make(review, "spec.nonResourceAttributes") = json::object{{"verb", words[0]}, {"path", words[1]}};
  } else {
    std::string resource = words[1], name;
    if (size_t slash = resource.find('/'); slash != resource.npos) name = resource.substr(slash + 1), resource.resize(slash);
    const schema::KindInfo* kind = schema::catalog().by_name(resource);
    json::object asked{
        {"verb", words[0]}, {"resource", kind ? std::string(kind->kind.resource) : resource}, {"namespace", session->ns()}};
    if (kind && !kind->kind.group.empty()) asked["group"] = kind->kind.group;
    if (!name.empty()) asked["name"] = name;
    make(review, "spec.resourceAttributes") = std::move(asked);
  }
  json::value answer = TRY(session->json(
      {.method = "POST", .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", .body = to_text(review)}));
  bool allowed = get_bool(answer, "status.allowed");
  out(allowed ? "yes\n" : "no\n");
  return allowed ? 0 : 1;
}

Result<int> run_whoami(Commands& commands) {
  Session* session = TRY(commands.session());
  json::value answer = TRY(session->json({.method = "POST",
                                          .path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                                          .body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"}));
  Columns columns;
  columns.add({"ATTRIBUTE", "VALUE"});
  columns.add({"Username", std::string(get_string(answer, "status.userInfo.username"))});
  std::vector<std::string> groups;
  for (const auto& group : get_array(answer, "status.userInfo.groups")) groups.emplace_back(group.get_string());
  columns.add({"Groups", "[" + join(groups, " ") + "]"});
  out(columns.text());
  return 0;
}

}  // namespace

void add_about(Commands& commands) {
  auto resources_flags = std::make_shared<ResourcesFlags>();
  Command resources = commands.add("api-resources", "The kinds of objects the server serves");
  resources.add_option("-o,--output", resources_flags->output, "name or wide");
  Flag group = resources.add_option("--api-group", resources_flags->group, "only this group");
  resources.add_option("--namespaced", resources_flags->namespaced, "true or false").optional_value("true");
  resources.add_flag("--no-headers", resources_flags->no_headers, "no line of column names");
  commands.on(resources, [&commands, resources_flags, group] {
    resources_flags->has_group = group.count() > 0;
    return run_resources(commands, *resources_flags);
  });
  Command versions = commands.add("api-versions", "The groups and versions the server serves");
  commands.on(versions, [&commands] { return run_versions(commands); });

  auto explain_path = std::make_shared<std::string>();
  auto recursive = std::make_shared<bool>(false);
  Command explain = commands.add("explain", "What a field means: explain pod.spec.containers");
  explain.add_option("path", *explain_path, "KIND[.FIELD...]").required();
  explain.add_flag("--recursive", *recursive, "names of all fields below");
  commands.on(explain, [explain_path, recursive] { return run_explain(*explain_path, *recursive); });

  auto client_only = std::make_shared<bool>(false);
  auto version_output = std::make_shared<std::string>();
  Command version = commands.add("version", "Ours and the server's");
  version.add_flag("--client", *client_only, "ours only");
  version.add_option("-o,--output", *version_output, "json or yaml");
  commands.on(version, [&commands, client_only, version_output] { return run_version(commands, *client_only, *version_output); });

  Command cluster = commands.add("cluster-info", "Where the server is");
  commands.on(cluster, [&commands]() -> Result<int> {
    Session* session = TRY(commands.session());
    TRY(session->text({.path = "/readyz", .accept = "*/*"}));
    out("Kubernetes control plane is running at " + session->server() + "\n");
    return 0;
  });

  add_config(commands);
  Command auth = commands.add("auth", "Who we are, and what we may do");
  auth.require_command();
  auto asked = std::make_shared<std::vector<std::string>>();
  Command can_i = commands.add("can-i", "VERB KIND[/NAME]: yes or no", auth);
  can_i.add_option("args", *asked, "VERB KIND").required();
  commands.on(can_i, [&commands, asked] { return run_can_i(commands, *asked); });
  Command whoami = commands.add("whoami", "Our name and groups", auth);
  commands.on(whoami, [&commands] { return run_whoami(commands); });
}

}  // namespace coracle::ctl
