// SPDX-License-Identifier: Apache-2.0
// See field_check.h.
#include "ctl/field_check.h"

#include "runtime/base/text.h"
#include "store/schema/decode.h"

namespace coracle::ctl {
namespace {

// "spec.containers[0].foo" of a Pod: "ValidationError(Pod.spec.containers[0]): unknown field "foo" in …v1.Container".
std::string unknown_field(const schema::Type& root, std::string_view path) {
  const size_t dot = path.rfind('.');
  const std::string_view above = dot == path.npos ? std::string_view() : path.substr(0, dot);
  const schema::Type* type = &root;
  std::string text = "ValidationError(" + std::string(root.name());
  if (!above.empty()) {
    text.append(".").append(above);
    for (std::string_view part : split(above, '.')) {
      const schema::Field* field = type ? type->field(part.substr(0, part.find('['))) : nullptr;
      type = field && field->form == schema::Form::object ? &field->type() : nullptr;
    }
  }
  text += "): unknown field " + quoted(path.substr(dot == path.npos ? 0 : dot + 1));
  return type ? text + " in " + type->openapi_name() : text;
}

}  // namespace

std::string unknown_fields_of(const schema::Type& type, const json::value& object) {
  auto decoded = schema::decode(type, object);
  if (!decoded) return "";  // values of other types every server refuses
  std::vector<std::string> found;
  for (std::string_view warning : decoded->warnings) {  // unknown field "spec.foo"
    const size_t start = warning.find('"'), end = warning.rfind('"');
    found.push_back(start < end ? unknown_field(type, warning.substr(start + 1, end - start - 1)) : std::string(warning));
  }
  return found.size() > 1 ? "[" + join(found, ", ") + "]" : join(found, "");
}

Result<void> check_fields(Session& session, const Document& document) {
  const std::string found = unknown_fields_of(document.kind->type(), document.object);
  if (found.empty() || session.server_checks_fields()) return {};
  std::string file = document.source.substr(0, document.source.rfind(':'));
  if (file == "standard input") file = "STDIN";
  return Error(Code::bad_request, "error validating " + quoted(file) + ": error validating data: " + found +
                                      "; if you choose to ignore these errors, turn validation off with --validate=false");
}

}  // namespace coracle::ctl
