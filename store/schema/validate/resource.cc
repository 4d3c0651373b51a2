// SPDX-License-Identifier: Apache-2.0
// See resource.h.
#include "store/schema/validate/resource.h"

#include <algorithm>

#include "store/object/quantity.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kCounted[] = {
    "pods",       "resourcequotas",         "services",           "replicationcontrollers", "secrets",
    "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"};
constexpr std::string_view kMeasured[] = {"cpu",
                                          "memory",
                                          "ephemeral-storage",
                                          "requests.cpu",
                                          "requests.memory",
                                          "requests.storage",
                                          "requests.ephemeral-storage",
                                          "limits.cpu",
                                          "limits.memory",
                                          "limits.ephemeral-storage"};

template <typename List>
bool contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool has_domain(std::string_view name) { return name.find('/') != name.npos; }
bool is_quota_huge_pages(std::string_view name) { return is_huge_pages(name) || name.starts_with("requests.hugepages-"); }
bool is_standard(std::string_view name) { return name == "storage" || is_quota_resource(name); }

}  // namespace

bool is_native_resource(std::string_view name) { return !has_domain(name) || name.find("kubernetes.io/") != name.npos; }

bool is_extended_resource(std::string_view name) {
  if (is_native_resource(name) || name.starts_with("requests.")) return false;
  return qualified_name_problems("requests." + std::string(name)).empty();
}

bool is_huge_pages(std::string_view name) { return name.starts_with("hugepages-"); }

bool is_counted_resource(std::string_view name) { return contains(kCounted, name) || is_extended_resource(name); }

bool may_overcommit(std::string_view name) { return is_native_resource(name) && !is_huge_pages(name); }

bool is_quota_resource(std::string_view name) {
  return contains(kCounted, name) || contains(kMeasured, name) || is_quota_huge_pages(name);
}

void check_resource_name(Findings& out, const std::string& path, std::string_view name) {
  std::vector<std::string> problems = qualified_name_problems(name);
  out.invalid_all(path, name, problems);
  if (problems.empty() && !has_domain(name) && !is_standard(name)) {
    out.invalid(path, name, "must be a standard resource type or fully qualified");
  }
}

void check_container_resource_name(Findings& out, const std::string& path, std::string_view name) {
  check_resource_name(out, path, name);
  bool standard = name == "cpu" || name == "memory" || name == "ephemeral-storage" || is_huge_pages(name);
  if (!has_domain(name) && !standard) out.invalid(path, name, "must be a standard resource for containers");
  if (has_domain(name) && !is_native_resource(name) && !is_extended_resource(name)) {
    out.invalid(path, name, "doesn't follow extended resource name standard");
  }
}

void check_quota_resource_name(Findings& out, const std::string& path, std::string_view name) {
  check_resource_name(out, path, name);
  if (!has_domain(name) && !is_quota_resource(name)) out.invalid(path, name, "must be a standard resource for quota");
}

void check_resource_amount(Findings& out, const std::string& path, std::string_view name, const json::value& amount) {
  auto quantity = Quantity::from_json(amount);
  if (!quantity) return;
  if (quantity->negative()) out.invalid(path, quantity->text(), "must be greater than or equal to 0");
  if (is_counted_resource(name) && quantity->milli_value() % 1000 != 0) out.invalid(path, quantity->text(), "must be an integer");
}

void check_container_resources(Findings& out, const std::string& path, const json::object& amounts) {
  for (const auto& pair : amounts) {
    std::string at = entry(path, pair.key());
    check_container_resource_name(out, at, pair.key());
    check_resource_amount(out, at, pair.key(), pair.value());
  }
}

}  // namespace coracle::schema
