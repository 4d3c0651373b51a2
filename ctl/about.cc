// SPDX-License-Identifier: Apache-2.0
// What there is: explain, version. Beside them, in files of their own: api-resources, api-versions, cluster-info, config, auth.
#include "ctl/about.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

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
    case schema::Form::fields: name = "FieldsV1"; break;
    case schema::Form::any: name = "Object"; break;
    default: name = "string";
  }
  if (field.shape == schema::Shape::list) return "[]" + name;
  return field.shape == schema::Shape::map ? "map[string]" + name : name;
}

constexpr size_t kExplainWidth = 76;  // characters of a line, without its indent

// The words of `text` in lines that are not longer.
void put_wrapped(std::string& out, size_t indent, std::string_view text) {
  std::string line;
  for (std::string_view word : split(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > kExplainWidth) {
      out += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line.append(line.empty() ? "" : " ").append(word);
  }
  out += std::string(indent, ' ') + line + "\n";
}

bool has_enum(const schema::Field& field) { return field.closed && field.shape == schema::Shape::one; }

void put_enum(std::string& text, size_t indent, const schema::Field& field) {
  constexpr size_t kValuesShown = 4;
  if (!has_enum(field)) return;
  std::vector<std::string> shown;
  for (auto value : field.values())
    if (shown.size() < kValuesShown) shown.emplace_back(value.empty() ? "\"\"" : value);
  bool more = field.values().size() > kValuesShown;
  text += std::string(indent, ' ') + "enum: " + join(shown, ", ") + (more ? ", ...." : "") + "\n";
}

void explain_fields(const schema::Type& type, size_t indent, bool deep, int depth, std::string& text) {
  constexpr int kDepthMax = 12;  // types may contain themselves
  std::vector<const schema::Field*> fields;
  for (const auto& field : type.fields()) fields.push_back(&field);
  std::sort(fields.begin(), fields.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  for (const auto* field : fields) {
    text += std::string(indent, ' ') + std::string(field->name()) + "\t<" + form_name(*field) + ">" +
            (field->required ? " -required-" : "") + "\n";
    put_enum(text, indent, *field);
    if (deep) {
      if (field->form == schema::Form::object && depth < kDepthMax)
        explain_fields(field->type(), indent + 2, true, depth + 1, text);
      continue;
    }
    put_wrapped(text, indent + 2, field->doc().empty() ? "<no description>" : field->doc());
    text += "\n";
  }
}

struct ExplainFlags {
  std::vector<std::string> args;
  std::string api_version, output = "plaintext";
  bool recursive = false;
};

Result<const schema::KindInfo*> explained_kind(const ExplainFlags& flags, std::string_view name) {
  const schema::KindInfo* kind = schema::catalog().by_name(name);
  if (!kind || flags.api_version.empty()) return kind;
  const schema::KindInfo* other = schema::catalog().by_kind(flags.api_version, kind->kind.kind);
  if (other) return other;
  std::string slash = flags.api_version.find('/') == std::string::npos ? "/" : "";
  return Error(Code::not_found, "GVR (" + slash + flags.api_version + ", Resource=" + std::string(kind->kind.resource) +
                                    ") not found in OpenAPI schema");
}

Result<int> run_explain(const ExplainFlags& flags) {
  if (flags.args.empty())
    return Error(Code::bad_request,
                 "You must specify the type of resource to explain. Use \"coraclectl api-resources\" for a complete list of "
                 "supported resources.");
  if (flags.args.size() > 1) return Error(Code::bad_request, "We accept only this format: explain RESOURCE");
  if (flags.output != "plaintext" && flags.output != "plaintext-openapiv2")
    return Error(Code::bad_request, "unrecognized format: " + flags.output);
  std::vector<std::string_view> words = split(flags.args.front(), '.');
  const schema::KindInfo* kind = TRY(explained_kind(flags, words.front()));
  if (!kind) {
    tell("the server doesn't have a resource type " + coracle::quoted(words.front()) + "\n");
    return 1;
  }
  std::string text = (kind->kind.group.empty() ? "" : "GROUP:      " + std::string(kind->kind.group) + "\n") +
                     "KIND:       " + std::string(kind->kind.kind) + "\nVERSION:    " + std::string(kind->kind.version) + "\n\n";
  const schema::Type* type = &kind->type();
  const schema::Field* field = nullptr;
  for (size_t i = 1; i < words.size(); ++i) {
    field = type ? type->field(words[i]) : nullptr;
    if (!field) {
      out(text);
      return Error(Code::not_found, "field " + coracle::quoted(words[i]) + " does not exist");
    }
    type = field->form == schema::Form::object ? &field->type() : nullptr;
  }
  if (field) {
    text += "FIELD: " + std::string(field->name()) + " <" + form_name(*field) + ">\n";
    if (has_enum(*field)) text += "ENUM:\n";
    if (has_enum(*field))
      for (auto value : field->values()) text += "    " + std::string(value) + "\n";
    else text += "\n";
    text += "\n";
  }
  text += "DESCRIPTION:\n";
  if (field && !field->doc().empty()) put_wrapped(text, 4, field->doc());
  if (type && !type->doc().empty()) put_wrapped(text, 4, type->doc());
  text += "    \n";
  if (type && type->fields().size() > 0) {
    text += "FIELDS:\n";
    explain_fields(*type, 2, flags.recursive, 0, text);
  }
  out(text + "\n");
  return 0;
}

// ---- version ----

constexpr const char* kGitVersion = "v1.36.1+coracle";  // of the kubectl whose commands and flags these are
constexpr int kMinorVersion = 36, kSkewMax = 1;

json::object client_version() {
  return {{"major", "1"}, {"minor", std::to_string(kMinorVersion)}, {"gitVersion", kGitVersion}, {"platform", "linux"}};
}

// Of "36" or "36+"; nothing of others.
std::optional<int> minor_of(const json::value& server) {
  std::string_view text = get_string(server, "minor");
  return parse_number<int>(text.substr(0, text.find_first_not_of("0123456789")));
}

void warn_of_skew(const json::value& server) {
  auto minor = minor_of(server);
  if (!minor || std::abs(*minor - kMinorVersion) <= kSkewMax) return;
  std::fprintf(stderr,
               "WARNING: version difference between client (1.%d) and server (%s.%d) exceeds the supported minor version skew of "
               "+/-%d\n",
               kMinorVersion, std::string(get_string(server, "major")).c_str(), *minor, kSkewMax);
}

Result<int> run_version(Commands& commands, bool client_only, const std::string& output) {
  if (!output.empty() && output != "json" && output != "yaml")
    return Error(Code::bad_request, "--output must be 'yaml' or 'json'");
  json::object versions{{"clientVersion", client_version()}, {"coracleVersion", "v" CORACLE_VERSION}};
  std::string text = std::string("Client Version: ") + kGitVersion + "\nCoracle Version: v" CORACLE_VERSION "\n";
  Result<json::value> server = json::value();
  if (!client_only) {
    auto session = commands.session();
    server = session ? (*session)->json({.path = "/version"}) : Result<json::value>(session.take_error());
    if (server) text += "Server Version: " + std::string(get_string(*server, "gitVersion")) + "\n";
    if (server) versions["serverVersion"] = *server;
  }
  if (output == "json") out(go_pretty_json(versions, JsonOrder::given) + "\n");
  else if (output == "yaml") out(to_yaml(versions));
  else out(text);  // ours is shown even if the server cannot be asked
  if (!server) return server.take_error();
  if (!client_only) warn_of_skew(*server);
  return 0;
}

}  // namespace

Result<void> check_server_version(Session& session) {
  json::value server = TRY(session.json({.path = "/version"}));
  std::string version(get_string(server, "gitVersion"));
  if (version == kGitVersion) return {};
  return Error(Code::conflict, "server version (" + version + ") differs from client version (" + kGitVersion + ")!");
}

void add_about(Commands& commands) {
  add_api_resources(commands);
  auto explain_flags = std::make_shared<ExplainFlags>();
  Command explain = commands.add("explain", "What a field means: explain pod.spec.containers");
  explain.add_option("path", explain_flags->args, "KIND[.FIELD...]");
  explain.add_flag("-R,--recursive", explain_flags->recursive, "names of all fields below");
  explain.add_option("--api-version", explain_flags->api_version, "the version of the kind: GROUP/VERSION");
  explain.add_option("-o,--output", explain_flags->output, "plaintext or plaintext-openapiv2");
  commands.on(explain, [explain_flags] { return run_explain(*explain_flags); });

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
