// SPDX-License-Identifier: Apache-2.0
// See config_property.h.
#include "ctl/config_property.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "ctl/flags.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

enum class Form { text, flag, bytes, list, other };

using Fields = std::map<std::string, Form, std::less<>>;

const Fields& fields_of(const KubeconfigList& list) {
  static const Fields cluster{{"server", Form::text},
                              {"tls-server-name", Form::text},
                              {"insecure-skip-tls-verify", Form::flag},
                              {"certificate-authority", Form::text},
                              {"certificate-authority-data", Form::bytes},
                              {"proxy-url", Form::text},
                              {"disable-compression", Form::flag},
                              {"extensions", Form::other}};
  static const Fields context{
      {"cluster", Form::text}, {"user", Form::text}, {"namespace", Form::text}, {"extensions", Form::other}};
  static const Fields user{{"client-certificate", Form::text},
                           {"client-certificate-data", Form::bytes},
                           {"client-key", Form::text},
                           {"client-key-data", Form::bytes},
                           {"token", Form::text},
                           {"tokenFile", Form::text},
                           {"as", Form::text},
                           {"as-uid", Form::text},
                           {"as-groups", Form::list},
                           {"as-user-extra", Form::other},
                           {"username", Form::text},
                           {"password", Form::text},
                           {"auth-provider", Form::other},
                           {"exec", Form::other},
                           {"extensions", Form::other}};
  std::string_view name = list.list;
  return name == "clusters" ? cluster : name == "contexts" ? context : user;
}

// kubectl calls some fields otherwise here than in the file.
std::string field_in_file(std::string_view name) { return std::string(name.starts_with("act-as") ? name.substr(4) : name); }

struct Property {
  const KubeconfigList* list = nullptr;  // none: the document's own
  std::string name;                      // of the entry; "" = the whole list
  std::string field;                     // of the entry or document; "" = the whole entry
  Form form = Form::text;
};

std::string names_of(const Fields& fields) {
  std::vector<std::string> names;
  for (const auto& [name, form] : fields) names.push_back(name);
  return join(names, ", ");
}

Result<Property> parse_property(const std::string& text) {
  std::vector<std::string_view> parts = split(text, '.');
  if (text == "current-context") return Property{nullptr, "", text, Form::text};
  if (text == "preferences.colors") return Property{nullptr, "", text, Form::flag};
  for (const auto& list : kKubeconfigLists) {
    if (parts.front() != list.list) continue;
    if (parts.size() == 1) return Property{&list, "", "", Form::other};
    const Fields& fields = fields_of(list);
    size_t end = 2;  // the first part that may be a field
    while (end < parts.size() && !fields.contains(field_in_file(parts[end]))) ++end;
    std::string name(parts[1]);
    for (size_t i = 2; i < end; ++i) name.append(".").append(parts[i]);
    if (end == parts.size()) return Property{&list, name, "", Form::other};
    std::string field = field_in_file(parts[end]);
    Form form = fields.find(field)->second;
    if (end + 1 < parts.size())
      return Error(Code::bad_request, "unable to parse one or more field values of " + text +
                                          (form == Form::other ? ": set-credentials changes exec and auth-provider" : ""));
    return Property{&list, name, field, form};
  }
  return Error(Code::bad_request, "unable to parse " + text +
                                      ": it begins with none of clusters, contexts, users, "
                                      "current-context, preferences.colors");
}

Result<json::value> value_of(const Property& property, const std::string& text, bool raw) {
  switch (property.form) {
    case Form::text: return json::value(text);
    case Form::flag: {
      auto flag = parse_bool(text);
      if (!flag) return Error(Code::bad_request, "strconv.ParseBool: parsing " + coracle::quoted(text) + ": invalid syntax");
      return json::value(*flag);
    }
    case Form::bytes: {
      if (raw) return json::value(base64_encode(text));
      auto bytes = base64_decode(text);
      if (!bytes) return Error(Code::bad_request, "error decoding input value: " + bytes.error().text());
      return json::value(text);
    }
    case Form::list: return Error(Code::bad_request, "unrecognized slice type. string");
    case Form::other: break;
  }
  return Error(Code::bad_request, property.field + " is no single value");
}

}  // namespace

Result<void> set_property(KubeconfigFiles& files, const std::string& text, const std::string& value, bool raw) {
  Property property = TRY(parse_property(text));
  if (property.field.empty())
    return Error(Code::bad_request,
                 "can't set a map to a value: " + text + " names no field; there are: " + names_of(fields_of(*property.list)));
  json::value parsed = TRY(value_of(property, value, raw));
  if (property.list) {
    files.entry(*property.list, property.name).get_object()[property.field] = std::move(parsed);
  } else if (property.field == "current-context") {
    files.set_current_context(value);
  } else {
    json::value& preferences = files.member("preferences");
    if (!preferences.is_object()) preferences.emplace_object();
    preferences.get_object()["colors"] = std::move(parsed);
  }
  return {};
}

Result<void> unset_property(KubeconfigFiles& files, const std::string& text) {
  Property property = TRY(parse_property(text));
  if (!property.list) {
    if (property.field == "current-context") files.set_current_context("");
    else if (json::value& preferences = files.member("preferences"); preferences.is_object())
      preferences.get_object().erase("colors");
    return {};
  }
  if (property.name.empty()) {
    for (const auto& name : files.names(*property.list)) files.remove(*property.list, name);
  } else if (property.field.empty()) {
    files.remove(*property.list, property.name);
  } else {
    if (!files.find(*property.list, property.name))
      return Error(Code::bad_request, "current map key `" + property.name + "` is invalid");
    files.entry(*property.list, property.name).get_object().erase(property.field);
  }
  return {};
}

}  // namespace coracle::ctl
