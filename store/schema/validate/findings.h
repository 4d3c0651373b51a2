// SPDX-License-Identifier: Apache-2.0
// Findings: collects the causes of one validation, at most kCausesMax; and the checks that rules of several kinds share. The
// rules themselves are in store/kinds (see schema/kind_family.h). Pure.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

template <typename T>
concept JsonContainer = std::same_as<T, json::array> || std::same_as<T, json::object>;

class Findings {
 public:
  // `old`: the object before an update, for rules that were loosened or tightened; nullptr on create.
  explicit Findings(const json::value* old = nullptr) : old_(old) {}
  const json::value* old() const { return old_; }

  void add(Cause cause);
  void required(const std::string& path, std::string_view detail = {});
  void invalid_json(const std::string& path, const json::value& value, std::string_view detail);
  template <JsonContainer Container>
  void invalid_json(const std::string& path, const Container& value, std::string_view detail);  // of which it makes no copy
  void invalid(const std::string& path, std::string_view value, std::string_view detail);
  void invalid(const std::string& path, int64_t value, std::string_view detail);
  void invalid_without(const std::string& path, std::string_view detail);  // the message does not contain the value
  void not_supported(const std::string& path, std::string_view value, std::vector<std::string> supported);  // sorted
  void not_supported_json(const std::string& path, const json::value& value, const std::vector<std::string>& supported);
  void forbidden(const std::string& path, std::string_view detail);
  void duplicate(const std::string& path, std::string_view value);
  void duplicate_json(const std::string& path, const json::value& value);
  void not_found(const std::string& path, std::string_view value);
  void too_long(const std::string& path, size_t bytes_max);
  void too_many(const std::string& path, size_t count, size_t max);

  // Adds one cause for each of `problems`.
  void invalid_all(const std::string& path, std::string_view value, const std::vector<std::string>& problems);
  // The same for one of many values: its path is made if there is a problem.
  template <std::invocable PathOf>
  void invalid_all(PathOf&& path_of, std::string_view value, const std::vector<std::string>& problems) {
    if (!problems.empty()) invalid_all(path_of(), value, problems);
  }
  void not_negative(const std::string& path, int64_t value);
  void between(const std::string& path, int64_t value, int64_t low, int64_t high);

  bool full() const;  // further causes are dropped
  std::vector<Cause> take() { return std::move(causes_); }

 private:
  const json::value* old_;
  std::vector<Cause> causes_;
};

inline std::string sub(const std::string& path, std::string_view field) {
  std::string out;
  out.reserve(path.size() + 1 + field.size());
  out.append(path).append(path.empty() ? "" : ".").append(field);
  return out;
}
inline std::string item(const std::string& path, size_t index) { return path + "[" + std::to_string(index) + "]"; }
constexpr size_t kKeyShownMax = 320;  // bytes of a key in a path: more than a qualified name has; limits repetition
inline std::string entry(const std::string& path, std::string_view key) {
  return path + "[" + std::string(key.substr(0, kKeyShownMax)) + "]";
}

// The problems of a text, in Kubernetes' wording; empty: none. Source: RFC 1123, RFC 1035, RFC 6335.
std::vector<std::string> dns_label_problems(std::string_view text);
std::vector<std::string> dns_1035_problems(std::string_view text);
std::vector<std::string> dns_subdomain_problems(std::string_view text);
std::vector<std::string> dns_search_problems(std::string_view text);      // a subdomain that may contain underscores
std::vector<std::string> qualified_name_problems(std::string_view text);  // label keys, resource and finalizer names
std::vector<std::string> label_value_problems(std::string_view text);
std::vector<std::string> config_key_problems(std::string_view text);
std::vector<std::string> env_name_problems(std::string_view text);
std::vector<std::string> port_name_problems(std::string_view text);
bool is_ip(std::string_view text);

// Each adds a finding for a value that is not what its name says. check_immutable: for one that has changed.
void check_port_number(Findings& out, const std::string& path, int64_t port);
void check_port_or_name(Findings& out, const std::string& path, const json::value* port);
void check_labels(Findings& out, const std::string& path, const json::object& labels);
void check_annotations(Findings& out, const std::string& path, const json::object& annotations);
void check_immutable(Findings& out, std::string_view path, const json::value* now, const json::value* before);
void check_immutable(Findings& out, const std::string& path, std::string_view now, std::string_view before);

// `old`: nullptr on create. A name cannot change and is not checked again.
void check_metadata(Findings& out, const KindInfo& kind, const json::value& object, const json::value* old);
void check_metadata_update(Findings& out, const json::value& object, const json::value& old);

}  // namespace coracle::schema
