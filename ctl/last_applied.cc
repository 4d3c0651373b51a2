// SPDX-License-Identifier: Apache-2.0
// See last_applied.h.
#include "ctl/last_applied.h"

#include "ctl/generate.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

json::object* written_annotations(json::value& object) {
  json::object* whole = object.if_object();
  json::value* metadata = whole ? whole->if_contains("metadata") : nullptr;
  json::object* fields = metadata ? metadata->if_object() : nullptr;
  json::value* annotations = fields ? fields->if_contains("annotations") : nullptr;
  return annotations ? annotations->if_object() : nullptr;
}

json::object& made_annotations(json::value& object) {
  json::value& annotations = make(object, "metadata.annotations");
  if (!annotations.is_object()) annotations.emplace_object();
  return annotations.get_object();
}

}  // namespace

std::string escaped_markup(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') escaped += "\\u003c";
    else if (text[i] == '>') escaped += "\\u003e";
    else if (text[i] == '&') escaped += "\\u0026";
    else if (text.compare(i, 3, "\xe2\x80\xa8") == 0) escaped += "\\u2028", i += 2;
    else if (text.compare(i, 3, "\xe2\x80\xa9") == 0) escaped += "\\u2029", i += 2;
    else escaped += text[i];
  }
  return escaped;
}

std::optional<std::string_view> last_applied_text(const json::value& live) {
  const json::value* text = metadata_of(live).annotations().if_contains(kLastApplied);
  if (!text || !text->is_string()) return std::nullopt;
  return std::string_view(text->get_string());
}

json::value last_applied_of(const json::value& live) {
  auto text = last_applied_text(live);
  auto parsed = text ? parse_json(*text) : Result<json::value>(json::value(nullptr));
  return parsed ? std::move(*parsed) : json::value(nullptr);
}

std::string applied_text(const json::value& object) {
  json::value remembered = object;
  made_annotations(remembered).erase(kLastApplied);
  return escaped_markup(to_sorted_text(remembered)) + "\n";
}

json::value with_last_applied(const json::value& object) {
  json::value modified = object;
  made_annotations(modified)[kLastApplied] = applied_text(object);
  return modified;
}

void save_config(json::value& object) {
  json::value remembered = object;
  if (json::object* annotations = written_annotations(remembered)) {
    annotations->erase(kLastApplied);
    if (annotations->empty()) make(remembered, "metadata").get_object().erase("annotations");
  }
  order_metadata(remembered);
  made_annotations(object)[kLastApplied] = escaped_markup(to_text(remembered)) + "\n";
  order_metadata(object);
}

}  // namespace coracle::ctl
