// SPDX-License-Identifier: Apache-2.0
// See flag_values.h.
#include "ctl/flag_values.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/object/selector.h"

namespace coracle::ctl {
namespace {

constexpr size_t kDataKeyBytesMax = 253;
constexpr size_t kSubdomainBytesMax = 253;
constexpr size_t kPortNameBytesMax = 15;
constexpr size_t kLabelBytesMax = 63;
constexpr size_t kTagLettersMax = 128;
constexpr size_t kDigestLettersMin = 32;
constexpr const char* kQuantityFault =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_key_letter(char c) { return is_small(c) || (c >= 'A' && c <= 'Z') || is_decimal(c) || c == '-' || c == '_' || c == '.'; }
bool all_are(std::string_view text, bool (*fits)(char)) { return !text.empty() && std::all_of(text.begin(), text.end(), fits); }

json::object to_object(const std::map<std::string, std::string>& sorted) {
  json::object object;
  for (const auto& [key, value] : sorted) object[key] = value;
  return object;
}

std::string fault_of_dots(std::string_view text) {
  if (text == "." || text == "..") return "must not be '" + std::string(text) + "'";
  return text.starts_with("..") ? "must not start with '..'" : "";
}

// The terms of a selector: commas within parentheses separate values.
std::vector<std::string_view> terms_of(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t start = 0;
  bool inside = false;
  for (size_t at = 0; at <= text.size(); ++at) {
    char c = at < text.size() ? text[at] : ',';
    inside = (inside || c == '(') && c != ')';
    if (c != ',' || (inside && at < text.size())) continue;
    if (std::string_view term = trim(text.substr(start, at - start)); !term.empty()) terms.push_back(term);
    start = at + 1;
  }
  return terms;
}

json::object expression_of(std::string_view key, const char* op, const std::vector<std::string>& values) {
  json::object expression{{"key", key}, {"operator", op}};
  if (!values.empty()) expression["values"] = json::value_from(values);
  return expression;
}

// A term without a comparison sign: "a", "!a", "a in (b,c)", "a notin (b)". It can be parsed.
json::object expression_of(std::string_view term) {
  size_t open = term.find('(');
  if (open == term.npos) {
    bool absent = term.starts_with('!');
    return expression_of(trim(term.substr(absent ? 1 : 0)), absent ? "DoesNotExist" : "Exists", {});
  }
  std::vector<std::string> values;
  for (std::string_view value : split(term.substr(open + 1, term.rfind(')') - open - 1), ',')) values.emplace_back(trim(value));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::string_view head = trim(term.substr(0, open));
  size_t space = head.find_first_of(" \t");
  return expression_of(head.substr(0, space), head.ends_with("notin") ? "NotIn" : "In", values);
}

bool is_letter(char c) { return is_small(c) || (c >= 'A' && c <= 'Z') || is_decimal(c); }

// Runs of letters with single separators between them: [a-z0-9]+(([._]|__|-+)[a-z0-9]+)*
bool is_path_component(std::string_view text) {
  std::string separator;
  for (char c : text) {
    bool is_word = is_small(c) || is_decimal(c);
    if (!is_word && c != '.' && c != '_' && c != '-') return false;
    if (!is_word) separator += c;
    else if (separator.size() > 1 && separator != "__" && separator.find_first_not_of('-') != separator.npos) return false;
    else separator.clear();
  }
  return !text.empty() && separator.empty() && (is_small(text[0]) || is_decimal(text[0]));
}

bool is_registry_host(std::string_view text) {
  size_t colon = text.find(':');
  if (colon != text.npos && !all_are(text.substr(colon + 1), is_decimal)) return false;
  std::vector<std::string_view> labels = split(text.substr(0, colon), '.');
  return std::all_of(labels.begin(), labels.end(), [](std::string_view label) {
    return all_are(label, [](char c) { return is_letter(c) || c == '-'; }) && is_letter(label.front()) && is_letter(label.back());
  });
}

}  // namespace

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::string_view word : split(text, separator)) words.emplace_back(word);
  return words;
}

json::value count_or_text(const std::string& text) {
  if (auto number = parse_number<int32_t>(text)) return *number;
  return json::value(text);
}

Result<json::object> labels_of(const std::vector<std::string>& words) {
  std::map<std::string, std::string> sorted;
  for (const auto& word : words) {
    size_t equals = word.find('=');
    if (equals == word.npos || word.find('=', equals + 1) != word.npos)
      return Error(Code::bad_request, "unexpected label spec: " + word);
    if (equals == 0) return Error(Code::bad_request, "unexpected empty label key");
    sorted[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return to_object(sorted);
}

Result<json::object> quantities_of(const std::string& text, std::string_view fault) {
  std::map<std::string, std::string> amounts;
  if (text.empty()) return to_object(amounts);
  for (const std::string& pair : split_words(text, ',')) {
    size_t equals = pair.find('=');
    if (equals == pair.npos || pair.find('=', equals + 1) != pair.npos)
      return Error(Code::bad_request, std::string(fault) + pair + ", expected <resource>=<value>");
    auto amount = Quantity::parse(std::string_view(pair).substr(equals + 1));
    if (!amount) return Error(Code::bad_request, kQuantityFault);
    amounts[pair.substr(0, equals)] = amount->text();
  }
  return to_object(amounts);
}

Result<json::object> label_selector_of(const std::string& text) {
  if (auto parsed = LabelSelector::parse(text); !parsed)
    return Error(Code::bad_request, "couldn't parse the selector string " + coracle::quoted(text) + ": " + parsed.error().text());
  std::map<std::string, std::string> labels;
  std::vector<json::object> expressions;
  for (std::string_view term : terms_of(text)) {
    size_t sign = term.find_first_of("=<>(");
    if (sign != term.npos && term[sign] == '=') {
      if (term[sign - 1] == '!') return Error(Code::bad_request, R"("!=" is not a valid label selector operator)");
      labels[std::string(trim(term.substr(0, sign)))] =
          trim(term.substr(std::min(term.find_first_not_of('=', sign), term.size())));
    } else if (sign != term.npos && term[sign] != '(') {
      return Error(Code::bad_request,
                   std::string(term[sign] == '>' ? R"("gt")" : R"("lt")") + " isn't supported in label selectors");
    } else {
      expressions.push_back(expression_of(term));
    }
  }
  std::stable_sort(expressions.begin(), expressions.end(), [](const auto& left, const auto& right) {
    return left.at("key").get_string() < right.at("key").get_string();
  });
  json::object selector;
  if (!labels.empty()) selector["matchLabels"] = to_object(labels);
  if (!expressions.empty()) selector["matchExpressions"] = json::array(expressions.begin(), expressions.end());
  return selector;
}

std::string errno_text(int err) {
  std::string text = std::strerror(err);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = char(text[0] - 'A' + 'a');
  return text;
}

bool is_dns_subdomain(std::string_view text) {
  if (text.size() > kSubdomainBytesMax) return false;
  auto is_label = [](std::string_view label) {
    return all_are(label, [](char c) { return is_small(c) || is_decimal(c) || c == '-'; }) && !label.starts_with('-') &&
           !label.ends_with('-');
  };
  std::vector<std::string_view> labels = split(text, '.');
  return std::all_of(labels.begin(), labels.end(), is_label);
}

std::string fault_of_key(std::string_view key) {
  std::vector<std::string> faults;
  if (key.size() > kDataKeyBytesMax) faults.push_back("must be no more than " + std::to_string(kDataKeyBytesMax) + " characters");
  if (!all_are(key, is_key_letter))
    faults.emplace_back(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
        "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')");
  if (std::string dots = fault_of_dots(key); !dots.empty()) faults.push_back(dots);
  return join(faults, ",");
}

std::string fault_of_variable(std::string_view name) {
  if (!all_are(name, is_key_letter) || is_decimal(name[0]))
    return "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
           "start "
           "with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
           "'[-._a-zA-Z][-._a-zA-Z0-9]*')";
  return fault_of_dots(name);
}

bool is_image_reference(std::string_view text) {
  size_t at = text.find('@');
  if (at != text.npos) {
    std::string_view digest = text.substr(at + 1), value = digest.substr(std::min(digest.find(':') + 1, digest.size()));
    bool is_hex = value.size() >= kDigestLettersMin && value.find_first_not_of("0123456789abcdefABCDEF") == value.npos;
    if (digest.find(':') == digest.npos || digest[0] == ':' || !is_hex) return false;
    text = text.substr(0, at);
  }
  size_t slash = text.rfind('/'), colon = text.find(':', slash == text.npos ? 0 : slash);
  if (colon != text.npos) {
    std::string_view tag = text.substr(colon + 1);
    if (!all_are(tag, is_key_letter) || tag.size() > kTagLettersMax || tag[0] == '.' || tag[0] == '-') return false;
    text = text.substr(0, colon);
  }
  std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() > 1 && is_registry_host(parts.front())) parts.erase(parts.begin());
  return std::all_of(parts.begin(), parts.end(), is_path_component);
}

std::string fault_of_label(std::string_view value) {
  auto is_edge = [](char c) { return is_key_letter(c) && c != '-' && c != '_' && c != '.'; };
  std::vector<std::string> faults;
  if (value.size() > kLabelBytesMax) faults.push_back("must be no more than " + std::to_string(kLabelBytesMax) + " bytes");
  if (!value.empty() && !(all_are(value, is_key_letter) && is_edge(value.front()) && is_edge(value.back())))
    faults.emplace_back(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
        "with "
        "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
  return join(faults, ";");
}

std::string fault_of_port(std::string_view text) {
  if (parse_number<uint16_t>(text)) return {};
  return "strconv.ParseUint: parsing " + coracle::quoted(text) +
         (all_are(text, is_decimal) ? ": value out of range" : ": invalid syntax");
}

std::string fault_of_time(std::string_view text) {
  struct Element {
    std::string_view before, sample;
    const char* name;  // of a fault of its range; null: that is checked later
    size_t digits_min;
    int least, most;
  };
  static constexpr Element kElements[] = {{"", "2006", nullptr, 4, 0, 9999}, {"-", "01", "month", 2, 1, 12},
                                          {"-", "02", nullptr, 2, 0, 99},    {"T", "15", "hour", 1, 0, 23},
                                          {":", "04", "minute", 2, 0, 59},   {":", "05", "second", 2, 0, 59}};
  const std::string failing = "parsing time " + coracle::quoted(text);
  auto unlike = [&](std::string_view rest, std::string_view sample) {
    return failing + " as \"2006-01-02T15:04:05Z07:00\": cannot parse " + coracle::quoted(rest) + " as " +
           coracle::quoted(sample);
  };
  auto digits_of = [](std::string_view rest) {
    return size_t(std::find_if_not(rest.begin(), rest.end(), is_decimal) - rest.begin());
  };
  std::vector<int> numbers;
  std::string_view rest = text;
  for (const Element& element : kElements) {
    if (!rest.starts_with(element.before)) return unlike(rest, element.before);
    rest.remove_prefix(element.before.size());
    size_t digits = std::min(digits_of(rest), element.sample.size());
    if (digits < element.digits_min) return unlike(rest, element.sample);
    numbers.push_back(*parse_number<int>(rest.substr(0, digits)));
    rest.remove_prefix(digits);
    if (element.name && (numbers.back() < element.least || numbers.back() > element.most))
      return failing + ": " + element.name + " out of range";
  }
  if (rest.size() > 1 && (rest[0] == '.' || rest[0] == ',') && is_decimal(rest[1]))
    rest.remove_prefix(1 + digits_of(rest.substr(1)));
  if (rest.starts_with('Z')) {
    rest.remove_prefix(1);
  } else {  // "+01:00"
    bool is_zone = rest.size() >= 6 && (rest[0] == '+' || rest[0] == '-') && digits_of(rest.substr(1, 2)) == 2 &&
                   rest[3] == ':' && digits_of(rest.substr(4, 2)) == 2;
    if (!is_zone) return unlike(rest, "Z07:00");
    if (*parse_number<int>(rest.substr(1, 2)) > 24) return failing + ": time zone offset hour out of range";
    if (*parse_number<int>(rest.substr(4, 2)) > 60) return failing + ": time zone offset minute out of range";
    rest.remove_prefix(6);
  }
  if (!rest.empty()) return failing + ": extra text: " + coracle::quoted(rest);
  std::chrono::year_month_day day{std::chrono::year(numbers[0]), std::chrono::month(unsigned(numbers[1])),
                                  std::chrono::day(unsigned(numbers[2]))};
  return day.ok() ? "" : failing + ": day out of range";
}

Result<void> check_port_name(std::string_view name) {
  std::vector<std::string> faults;
  if (name.size() > kPortNameBytesMax)
    faults.push_back("must be no more than " + std::to_string(kPortNameBytesMax) + " characters");
  if (!all_are(name, [](char c) { return is_small(c) || is_decimal(c) || c == '-'; }))
    faults.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (std::none_of(name.begin(), name.end(), is_small)) faults.emplace_back("must contain at least one letter (a-z)");
  if (name.find("--") != name.npos) faults.emplace_back("must not contain consecutive hyphens");
  if (name.starts_with('-') || name.ends_with('-')) faults.emplace_back("must not begin or end with a hyphen");
  if (faults.empty()) return {};
  return Error(Code::bad_request, join(faults, ","));
}

}  // namespace coracle::ctl
