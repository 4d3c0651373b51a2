// SPDX-License-Identifier: Apache-2.0
// Findings and the syntaxes of names. See findings.h.
#include "store/schema/validate/findings.h"

#include <arpa/inet.h>

#include <algorithm>

#include "runtime/base/text.h"
#include "store/object/status.h"
#include "store/schema/validate.h"

namespace coracle::schema {
namespace {

constexpr size_t kValueShownMax = 4096;  // bytes of a value
constexpr size_t kLabelMax = 63, kSubdomainMax = 253, kPortNameMax = 15, kConfigKeyMax = 253;

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool small(char c) { return lower(c) || digit(c); }
bool alnum(char c) { return small(c) || upper(c); }

bool all(std::string_view text, bool (*good)(char)) { return std::all_of(text.begin(), text.end(), good); }

bool is_label(std::string_view text) {
  return !text.empty() && small(text.front()) && small(text.back()) && all(text, [](char c) { return small(c) || c == '-'; });
}

bool is_subdomain(std::string_view text) {
  for (std::string_view part : split(text, '.')) {
    if (!is_label(part)) return false;
  }
  return true;
}

bool is_name_part(std::string_view text) {
  return !text.empty() && alnum(text.front()) && alnum(text.back()) &&
         all(text, [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

// A shortened value for a message: two hundred causes about one large value must not repeat it completely.
std::string_view beginning_of(std::string_view text) { return text.substr(0, kValueShownMax); }
template <typename Json>  // value, array or object
std::string beginning_of_json(const Json& value) {
  json::serializer serializer;
  serializer.reset(&value);
  char buffer[kValueShownMax];
  std::string text(serializer.read(buffer, sizeof buffer));
  return serializer.done() ? text : text + "...";
}

std::string longer_than(size_t max) { return "must be no more than " + std::to_string(max) + " characters"; }

std::string pattern(std::string_view what, std::string_view expression, std::initializer_list<std::string_view> examples) {
  std::string text(what);
  text += " (e.g. ";
  for (auto example = examples.begin(); example != examples.end(); ++example) {
    if (example != examples.begin()) text += " or ";
    text += "'" + std::string(*example) + "', ";
  }
  return text + "regex used for validation is '" + std::string(expression) + "')";
}

}  // namespace

bool Findings::full() const { return causes_.size() >= kCausesMax; }
void Findings::add(Cause cause) {
  if (!full()) causes_.push_back(std::move(cause));
}
void Findings::required(const std::string& path, std::string_view detail) { add(coracle::required(path, detail)); }
void Findings::invalid_json(const std::string& path, const json::value& value, std::string_view detail) {
  if (!full()) add(invalid_value(path, beginning_of_json(value), detail));
}
template <JsonContainer Container>
void Findings::invalid_json(const std::string& path, const Container& value, std::string_view detail) {
  if (!full()) add(invalid_value(path, beginning_of_json(value), detail));
}
template void Findings::invalid_json(const std::string&, const json::array&, std::string_view);
template void Findings::invalid_json(const std::string&, const json::object&, std::string_view);
void Findings::invalid(const std::string& path, std::string_view value, std::string_view detail) {
  if (!full()) add(invalid_value(path, quoted(beginning_of(value)), detail));
}
void Findings::invalid(const std::string& path, int64_t value, std::string_view detail) {
  add(invalid_value(path, std::to_string(value), detail));
}
void Findings::not_supported(const std::string& path, std::string_view value, std::vector<std::string> supported) {
  std::sort(supported.begin(), supported.end());
  if (!full()) add(coracle::not_supported(path, quoted(beginning_of(value)), supported));
}
void Findings::invalid_without(const std::string& path, std::string_view detail) {
  add({"FieldValueInvalid", "Invalid value: " + std::string(detail), path});
}
void Findings::not_supported_json(const std::string& path, const json::value& value, const std::vector<std::string>& supported) {
  if (!full()) add(coracle::not_supported(path, beginning_of_json(value), supported));
}
void Findings::duplicate_json(const std::string& path, const json::value& value) {
  if (!full()) add(coracle::duplicate(path, beginning_of_json(value)));
}
void Findings::too_many(const std::string& path, size_t count, size_t max) {
  add({"FieldValueTooMany",
       "Too many: " + std::to_string(count) + ": must have at most " + std::to_string(max) + (max == 1 ? " item" : " items"),
       path});
}
void Findings::forbidden(const std::string& path, std::string_view detail) { add(forbidden_field(path, detail)); }
void Findings::duplicate(const std::string& path, std::string_view value) {
  if (!full()) add(coracle::duplicate(path, quoted(beginning_of(value))));
}
void Findings::not_found(const std::string& path, std::string_view value) {
  if (!full()) add({"FieldValueNotFound", "Not found: " + quoted(beginning_of(value)), path});
}
void Findings::too_long(const std::string& path, size_t bytes_max) { add(coracle::too_long(path, bytes_max)); }

void Findings::invalid_all(const std::string& path, std::string_view value, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) invalid(path, value, problem);
}
void Findings::not_negative(const std::string& path, int64_t value) {
  if (value < 0) invalid(path, value, "must be greater than or equal to 0");
}
void Findings::between(const std::string& path, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return;
  invalid(path, value, "must be between " + std::to_string(low) + " and " + std::to_string(high) + ", inclusive");
}

std::vector<std::string> dns_label_problems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > kLabelMax) out.push_back(longer_than(kLabelMax));
  if (!is_label(text)) {
    out.push_back(
        pattern("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
                "start and end with an alphanumeric character",
                "[a-z0-9]([-a-z0-9]*[a-z0-9])?", {"my-name", "123-abc"}));
  }
  return out;
}

std::vector<std::string> dns_1035_problems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > kLabelMax) out.push_back(longer_than(kLabelMax));
  if (!is_label(text) || !lower(text.front())) {
    out.push_back(
        pattern("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                "alphabetic character, and end with an alphanumeric character",
                "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return out;
}

std::vector<std::string> dns_subdomain_problems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > kSubdomainMax) out.push_back(longer_than(kSubdomainMax));
  if (!is_subdomain(text)) {
    out.push_back(
        pattern("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
                "must start and end with an alphanumeric character",
                "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", {"example.com"}));
  }
  return out;
}

std::vector<std::string> dns_search_problems(std::string_view text) {
  auto is_part = [](std::string_view part) {
    if (part.starts_with('_')) part.remove_prefix(1);
    return !part.empty() && small(part.front()) && small(part.back()) &&
           all(part, [](char c) { return small(c) || c == '-' || c == '_'; });
  };
  std::vector<std::string> out;
  if (text.size() > kSubdomainMax) out.push_back(longer_than(kSubdomainMax));
  std::vector<std::string_view> parts = split(text, '.');
  if (!std::all_of(parts.begin(), parts.end(), is_part)) {
    out.push_back(
        pattern("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
                "start and end with an alphanumeric character",
                "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*", {"example.com"}));
  }
  return out;
}

std::vector<std::string> qualified_name_problems(std::string_view text) {
  constexpr std::string_view kMustConsist =
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  constexpr std::string_view kExpression = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
  std::vector<std::string> out;
  const size_t slash = text.find('/');
  const bool has_prefix = slash != text.npos;
  const std::string_view prefix = text.substr(0, has_prefix ? slash : 0), name = text.substr(has_prefix ? slash + 1 : 0);
  if (name.find('/') != name.npos) {
    out.push_back("a qualified name " + pattern(kMustConsist, kExpression, {"MyName", "my.name", "123-abc"}) +
                  " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
    return out;
  }
  if (has_prefix && prefix.empty()) out.push_back("prefix part must be non-empty");
  else if (has_prefix) {
    for (const std::string& problem : dns_subdomain_problems(prefix)) out.push_back("prefix part " + problem);
  }
  if (name.empty()) out.push_back("name part must be non-empty");
  else if (name.size() > kLabelMax) out.push_back("name part " + longer_than(kLabelMax));
  if (!is_name_part(name)) out.push_back("name part " + pattern(kMustConsist, kExpression, {"MyName", "my.name", "123-abc"}));
  return out;
}

std::vector<std::string> label_value_problems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > kLabelMax) out.push_back(longer_than(kLabelMax));
  if (!text.empty() && !is_name_part(text)) {
    out.push_back(
        pattern("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
                "must start and end with an alphanumeric character",
                "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", {"MyValue", "my_value", "12345"}));
  }
  return out;
}

std::vector<std::string> config_key_problems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > kConfigKeyMax) out.push_back(longer_than(kConfigKeyMax));
  if (text.empty() || !all(text, [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; })) {
    out.push_back(pattern("a valid config key must consist of alphanumeric characters, '-', '_' or '.'", "[-._a-zA-Z0-9]+",
                          {"key.name", "KEY_NAME", "key-name"}));
  }
  if (text == "." || text == "..") out.push_back("must not be '" + std::string(text) + "'");
  else if (text.starts_with("..")) out.push_back("must not start with '..'");
  return out;
}

std::vector<std::string> env_name_problems(std::string_view text) {
  if (text.empty()) return {"environment variable name must be non-empty"};
  if (all(text, [](char c) { return c >= ' ' && c <= '~' && c != '='; })) return {};
  return {"a valid environment variable name must consist only of printable ASCII characters other than '='"};
}

std::vector<std::string> port_name_problems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > kPortNameMax) out.push_back(longer_than(kPortNameMax));
  if (!all(text, [](char c) { return small(c) || c == '-'; })) {
    out.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (std::none_of(text.begin(), text.end(), lower)) out.push_back("must contain at least one letter (a-z)");
  if (text.find("--") != text.npos) out.push_back("must not contain consecutive hyphens");
  if (text.starts_with('-') || text.ends_with('-')) out.push_back("must not begin or end with a hyphen");
  return out;
}

bool is_ip(std::string_view text) {
  if (text.find('\0') != text.npos) return false;
  std::string copy(text);
  unsigned char address[16];
  return ::inet_pton(AF_INET, copy.c_str(), address) == 1 || ::inet_pton(AF_INET6, copy.c_str(), address) == 1;
}

void check_port_number(Findings& out, const std::string& path, int64_t port) { out.between(path, port, 1, 65535); }

void check_port_or_name(Findings& out, const std::string& path, const json::value* port) {
  if (!port) return;
  if (port->is_int64()) return check_port_number(out, path, port->get_int64());
  if (!port->is_string()) return;
  std::string_view name = port->get_string();
  out.invalid_all(path, name, port_name_problems(name));
}

void check_labels(Findings& out, const std::string& path, const json::object& labels) {
  for (const auto& pair : labels) {
    out.invalid_all(path, pair.key(), qualified_name_problems(pair.key()));
    if (!pair.value().is_string()) continue;
    std::string_view value = pair.value().get_string();
    out.invalid_all(path, value, label_value_problems(value));
  }
}

void check_immutable(Findings& out, std::string_view path, const json::value* now, const json::value* before) {
  static const json::value absent;
  const json::value& left = now ? *now : absent;
  const json::value& right = before ? *before : absent;
  if (!same_json(left, right)) out.invalid_json(std::string(path), left, "field is immutable");
}

void check_immutable(Findings& out, const std::string& path, std::string_view now, std::string_view before) {
  if (now != before) out.invalid(path, now, "field is immutable");
}

}  // namespace coracle::schema
