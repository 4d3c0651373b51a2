// SPDX-License-Identifier: Apache-2.0
// explain: what a kind or a field means. From the schema: no server is asked. It prints what kubectl makes of our OpenAPI
// documents, in either of its forms: plaintext, and the older one, plaintext-openapiv2.
// Source: kubectl pkg/explain and pkg/explain/v2/templates/plaintext.tmpl.
#include <algorithm>

#include "ctl/about.h"
#include "runtime/base/text.h"
#include "store/schema/form_doc.h"

namespace coracle::ctl {
namespace {

struct ExplainFlags {
  std::vector<std::string> args;
  std::string api_version, output = "plaintext";
  bool recursive = false;
};

// What the line names: a kind, or a field of it.
struct Explained {
  const schema::KindInfo* kind = nullptr;
  const schema::Field* field = nullptr;  // null: the kind itself
  const schema::Type* type = nullptr;    // of its fields; null where it has none
};

std::string_view doc_of(const schema::Type& type) { return type.doc().empty() ? type.name() : type.doc(); }

std::vector<const schema::Field*> sorted_fields(const schema::Type& type) {
  std::vector<const schema::Field*> fields;
  for (const auto& field : type.fields()) fields.push_back(&field);
  std::sort(fields.begin(), fields.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  return fields;
}

// The words of `text` in lines of at most `width` characters, without the indent. A single longer word has a line of its own.
void put_wrapped(std::string& out, size_t indent, size_t width, std::string_view text) {
  std::string line;
  for (std::string_view word : split(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line.append(line.empty() ? "" : " ").append(word);
  }
  out += std::string(indent, ' ') + line + "\n";
}

std::string with_shape(const schema::Field& field, const std::string& name) {
  if (field.shape == schema::Shape::list) return "[]" + name;
  return field.shape == schema::Shape::map ? "map[string]" + name : name;
}

// Lists what is below a field, each type once on every way down: types may contain themselves.
class Nesting {
 public:
  // The type of the field's values, where they have fields and it is not one that leads here.
  const schema::Type* enter(const schema::Field& field) {
    if (field.form != schema::Form::object) return nullptr;
    const schema::Type* type = &field.type();
    if (std::find(above_.begin(), above_.end(), type) != above_.end()) return nullptr;
    above_.push_back(type);
    return type;
  }
  void leave() { above_.pop_back(); }

 private:
  std::vector<const schema::Type*> above_;
};

// ---- plaintext ----

constexpr size_t kExplainWidth = 76;

std::string form_name(const schema::Field& field) {
  switch (field.form) {
    case schema::Form::int32:
    case schema::Form::int64: return with_shape(field, "integer");
    case schema::Form::boolean: return with_shape(field, "boolean");
    case schema::Form::number: return with_shape(field, "number");
    case schema::Form::quantity: return with_shape(field, "Quantity");
    case schema::Form::int_or_string: return with_shape(field, "IntOrString");
    case schema::Form::object: return with_shape(field, std::string(field.type().name()));
    case schema::Form::fields: return with_shape(field, "FieldsV1");
    case schema::Form::any: return with_shape(field, "RawExtension");
    case schema::Form::strings: return with_shape(field, "[]string");
    default: return with_shape(field, "string");
  }
}

std::string shown_value(std::string_view value) { return value.empty() ? "\"\"" : std::string(value); }

bool has_enum(const schema::Field& field) { return field.closed && field.shape == schema::Shape::one; }

void put_enum(std::string& text, size_t indent, const schema::Field& field) {
  constexpr size_t kValuesShown = 4;
  if (!has_enum(field)) return;
  std::vector<std::string> shown;
  for (auto value : field.values())
    if (shown.size() < kValuesShown) shown.push_back(shown_value(value));
  bool more = field.values().size() > kValuesShown;
  text += std::string(indent, ' ') + "enum: " + join(shown, ", ") + (more ? ", ...." : "") + "\n";
}

void put_fields(const schema::Type& type, size_t indent, bool deep, Nesting& nesting, std::string& text) {
  for (const schema::Field* field : sorted_fields(type)) {
    text += std::string(indent, ' ') + std::string(field->name()) + "\t<" + form_name(*field) + ">" +
            (field->required ? " -required-" : "") + "\n";
    put_enum(text, indent, *field);
    if (!deep) {
      put_wrapped(text, indent + 2, kExplainWidth, field->doc().empty() ? "<no description>" : field->doc());
      text += "\n";
    } else if (const schema::Type* below = nesting.enter(*field)) {
      put_fields(*below, indent + 2, deep, nesting, text);
      nesting.leave();
    }
  }
}

std::string plain_head(const Explained& explained) {
  const Kind& kind = explained.kind->kind;
  return (kind.group.empty() ? "" : "GROUP:      " + std::string(kind.group) + "\n") + "KIND:       " + std::string(kind.kind) +
         "\nVERSION:    " + std::string(kind.version) + "\n\n";
}

std::string plain_text(const Explained& explained, bool deep) {
  std::string text = plain_head(explained);
  const schema::Field* field = explained.field;
  if (field) {
    text += "FIELD: " + std::string(field->name()) + " <" + form_name(*field) + ">\n";
    if (has_enum(*field)) text += "ENUM:\n";
    if (has_enum(*field))
      for (auto value : field->values()) text += "    " + shown_value(value) + "\n";
    else text += "\n";
    text += "\n";
  }
  text += "DESCRIPTION:\n";
  if (field && !field->doc().empty()) put_wrapped(text, 4, kExplainWidth, field->doc());
  if (field && !schema::form_doc(field->form).empty()) put_wrapped(text, 4, kExplainWidth, schema::form_doc(field->form));
  if (explained.type) put_wrapped(text, 4, kExplainWidth, doc_of(*explained.type));
  text += "    \n";
  if (explained.type && explained.type->fields().size() > 0) {
    Nesting nesting;
    text += "FIELDS:\n";
    put_fields(*explained.type, 2, deep, nesting, text);
  }
  return text + "\n";
}

// ---- plaintext-openapiv2 ----

constexpr size_t kOldFieldIndent = 3, kOldTextIndent = 5, kOldWidth = 80 - kOldTextIndent;

// Of values of a type in version 2 of OpenAPI: an object, a map of anything, or anything.
enum class OldForm : uint8_t { plain, object, map, any };

OldForm old_form(const schema::Field& field) {
  if (field.form == schema::Form::any || field.form == schema::Form::fields) return OldForm::map;
  if (field.form != schema::Form::object) return OldForm::plain;
  if (field.type().either) return OldForm::any;
  return field.type().fields().size() > 0 ? OldForm::object : OldForm::map;
}

std::string old_form_name(const schema::Field& field) {
  switch (old_form(field)) {
    case OldForm::object: return with_shape(field, "Object");
    case OldForm::map: return with_shape(field, "map[string]");
    case OldForm::any: return with_shape(field, "");
    case OldForm::plain: break;
  }
  bool is_text = field.form == schema::Form::quantity || field.form == schema::Form::int_or_string;
  return is_text ? with_shape(field, "string") : form_name(field);
}

// The descriptions on the way from the field to its values' type. An empty one is left out, but it separates.
std::vector<std::string_view> old_docs(const Explained& explained) {
  const schema::Field* field = explained.field;
  if (!field) return {doc_of(*explained.type)};
  std::vector<std::string_view> docs = {field->doc()};
  if (field->shape != schema::Shape::one) docs.emplace_back();
  std::string_view of_values = explained.type ? doc_of(*explained.type) : schema::form_doc(field->form);
  docs.push_back(of_values);
  if (old_form(*field) == OldForm::map) docs.push_back(of_values);  // of the map, and of what is in it
  return docs;
}

void put_old_fields(const schema::Type& type, size_t indent, bool deep, Nesting& nesting, std::string& text) {
  for (const schema::Field* field : sorted_fields(type)) {
    text += std::string(indent, ' ') + std::string(field->name()) + "\t<" + old_form_name(*field) + ">" +
            (field->required && !deep ? " -required-" : "") + "\n";
    if (!deep) {
      if (!field->doc().empty()) put_wrapped(text, kOldTextIndent, kOldWidth, field->doc());
      text += "\n";
    } else if (const schema::Type* below = nesting.enter(*field)) {
      put_old_fields(*below, indent + kOldFieldIndent, deep, nesting, text);
      nesting.leave();
    }
  }
}

std::string old_text(const Explained& explained, bool deep) {
  const Kind& kind = explained.kind->kind;
  const schema::Field* field = explained.field;
  std::string text =
      "KIND:     " + std::string(kind.kind) + "\nVERSION:  " + std::string(explained.kind->type().api_version()) + "\n\n";
  OldForm form = field ? old_form(*field) : OldForm::object;
  if (field && (form == OldForm::object || form == OldForm::plain))
    text += (form == OldForm::object ? "RESOURCE: " : "FIELD:    ") + std::string(field->name()) + " <" + old_form_name(*field) +
            ">\n\n";
  text += "DESCRIPTION:\n";
  std::vector<std::string_view> docs = old_docs(explained);
  size_t before = text.size();
  for (size_t i = 0; i < docs.size(); ++i) {
    if (docs[i].empty()) continue;
    if (i > 0) text += "\n";
    put_wrapped(text, kOldTextIndent, kOldWidth, docs[i]);
  }
  if (text.size() == before) text += std::string(kOldTextIndent, ' ') + "<empty>\n";
  if (form != OldForm::object) return text;
  Nesting nesting;
  text += "\nFIELDS:\n";
  put_old_fields(*explained.type, kOldFieldIndent, deep, nesting, text);
  return text;
}

// ---- the command ----

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
  bool old = flags.output == "plaintext-openapiv2";
  if (!old && flags.output != "plaintext") return Error(Code::bad_request, "unrecognized format: " + flags.output);
  std::string_view path = flags.args.front();
  if (path.ends_with('.')) path.remove_suffix(1);
  std::vector<std::string_view> words = split(path, '.');
  Explained explained;
  explained.kind = TRY(explained_kind(flags, words.front()));
  if (!explained.kind) {
    tell("the server doesn't have a resource type " + coracle::quoted(words.front()) + "\n");
    return 1;
  }
  const std::string resource = explained.kind->kind.qualified_resource();
  bool has_group = !explained.kind->kind.group.empty() && (path == resource || path.starts_with(resource + "."));
  if (flags.api_version.empty() && has_group) words = split(path.substr(resource.size()), '.');  // "deployments.apps.spec"
  explained.type = &explained.kind->type();
  for (size_t i = 1; i < words.size(); ++i) {
    explained.field = explained.type ? explained.type->field(words[i]) : nullptr;
    if (!explained.field) {
      if (!old) out(plain_head(explained));
      return Error(Code::not_found, "field " + coracle::quoted(old ? words[i] : words.back()) + " does not exist");
    }
    explained.type = explained.field->form == schema::Form::object ? &explained.field->type() : nullptr;
  }
  out(old ? old_text(explained, flags.recursive) : plain_text(explained, flags.recursive));
  return 0;
}

}  // namespace

void add_explain(Commands& commands) {
  auto flags = std::make_shared<ExplainFlags>();
  Command explain = commands.add("explain", "What a field means: explain pod.spec.containers");
  explain.add_option("path", flags->args, "KIND[.FIELD...]");
  explain.add_flag("-R,--recursive", flags->recursive, "names of all fields below");
  explain.add_option("--api-version", flags->api_version, "the version of the kind: GROUP/VERSION");
  explain.add_option("-o,--output", flags->output, "plaintext or plaintext-openapiv2");
  commands.on(explain, [flags] { return run_explain(*flags); });
}

}  // namespace coracle::ctl
