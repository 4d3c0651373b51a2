// SPDX-License-Identifier: Apache-2.0
// What there is: explain, version. Beside them, in files of their own: api-resources, api-versions, cluster-info, config, auth.
#include "ctl/about.h"

#include <algorithm>

#include "ctl/auth.h"
#include "ctl/config.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

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

// ---- version ----

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

}  // namespace

void add_about(Commands& commands) {
  add_api_resources(commands);
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

  add_cluster_info(commands);
  add_config(commands);
  add_auth(commands);
}

}  // namespace coracle::ctl
