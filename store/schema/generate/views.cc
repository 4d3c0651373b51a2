// SPDX-License-Identifier: Apache-2.0
// Writes views.h: a class for every type, which reads a JSON value by the type's field names in snake_case.
#include <cctype>
#include <cstdint>
#include <set>
#include <sstream>

#include "store/schema/generate/model.h"

namespace generate {
namespace {

bool upper(const std::string& name, size_t at) { return at < name.size() && std::isupper(uint8_t(name[at])); }

// podIP → pod_ip, clusterIPs → cluster_ips, hostIPC → host_ipc, fieldsV1 → fields_v1. A word begins at a capital after a
// lower-case letter or digit, and at the last capital of a sequence that is followed by a lower-case letter (except a plural s).
std::string snake(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(name, i)) {
      bool after_small = !upper(name, i - 1);
      bool small_follows = i + 1 < name.size() && !upper(name, i + 1);
      bool plural = small_follows && name[i + 1] == 's' && (i + 2 == name.size() || upper(name, i + 2));
      if (after_small || (small_follows && !plural)) out += '_';
    }
    if (name[i] != '$') out += name[i] == '-' ? '_' : char(std::tolower(uint8_t(name[i])));
  }
  static const std::set<std::string> reserved = {"template", "namespace", "operator", "default", "continue", "class",
                                                 "export",   "linux",     "unix",     "private", "public",   "raw",
                                                 "pointer",  "members",   "bool",     "int",     "not",      "enum"};
  return reserved.count(out) ? out + "_" : out;
}

std::string element(const Model& model, const Field& field) {
  const std::string& form = field.form;
  if (form == "object" && model.types[field.type].either) return "const json::value*";
  if (form == "object") return model.types[field.type].view;
  if (form == "int32" || form == "int64") return "int64_t";
  if (form == "boolean") return "bool";
  if (form == "number") return "double";
  if (form == "quantity" || form == "int_or_string" || form == "any" || form == "fields") return "const json::value*";
  if (form == "strings") return "Range<std::string_view>";
  return "std::string_view";  // string, bytes (base64), times
}

}  // namespace

std::string write_views(const Model& model) {
  std::ostringstream out;
  out << "// Generated from the text in store/kinds. Not to be edited. See store/schema/view.h.\n"
      << "#pragma once\n\n#include \"store/schema/view.h\"\n\nnamespace coracle::view {\n\n";
  for (const Type& type : model.types) out << "class " << type.view << ";\n";
  std::ostringstream bodies;
  for (const Type& type : model.types) {
    out << "\nclass " << type.view << " : public View {";
    if (!type.doc.empty()) out << "  // " << type.doc;
    out << "\n public:\n  using View::View;\n";
    for (const Field& field : type.fields) {
      std::string name = snake(field.name);
      std::string result = element(model, field);
      if (field.shape == "list") result = "Range<" + result + ">";
      if (field.shape == "map") result = "const json::object&";
      out << "  " << result << " " << name << "() const;\n"
          << "  bool has_" << name << "() const { return has(\"" << field.name << "\"); }\n";
      bool is_plain = field.shape == "one" && (result == "int64_t" || result == "bool" || result == "double");
      if (is_plain && (field.pointer || field.default_by_rule || !field.default_json.empty()))
        out << "  " << result << " " << name << "_or(" << result << " absent) const { return read_or(\"" << field.name
            << "\", absent); }\n";
      bodies << "inline " << result << " " << type.view << "::" << name << "() const { return read<" << result << ">(\""
             << field.name << "\"); }\n";
    }
    out << "};\n";
  }
  out << "\n" << bodies.str() << "\n}  // namespace coracle::view\n";
  return out.str();
}

}  // namespace generate
