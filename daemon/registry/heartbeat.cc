// SPDX-License-Identifier: Apache-2.0
// See heartbeat.h.
#include "daemon/registry/heartbeat.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace coracle::registry {
namespace {

using Paths = std::vector<std::string_view>;  // such as "status.conditions[].lastHeartbeatTime"

// The rest of the paths that begin with this member; `list`: of each of its items.
Paths below(const Paths& paths, std::string_view member, bool list) {
  const std::string_view then = list ? "[]." : ".";
  Paths rest;
  for (std::string_view path : paths)
    if (path.starts_with(member) && path.substr(member.size()).starts_with(then))
      rest.push_back(path.substr(member.size() + then.size()));
  return rest;
}

// Whether both are equal, whatever is at these paths.
bool same_but_for(const Paths& paths, const json::value& a, const json::value& b) {
  const json::object *left = a.if_object(), *right = b.if_object();
  if (paths.empty() || !left || !right) return same_json(a, b);
  auto counts = [&](const auto& member) { return std::ranges::find(paths, std::string_view(member.key())) == paths.end(); };
  auto same_member = [&](const auto& member) {
    if (!counts(member)) return true;
    const json::value* other = right->if_contains(member.key());
    if (!other) return false;
    const json::array *items = member.value().if_array(), *others = other->if_array();
    const Paths inner = below(paths, member.key(), items);
    if (inner.empty() || !items || !others) return same_but_for(inner, member.value(), *other);
    auto same_item = [&](const json::value& one, const json::value& two) { return same_but_for(inner, one, two); };
    return std::ranges::equal(*items, *others, same_item);
  };
  return std::ranges::count_if(*left, counts) == std::ranges::count_if(*right, counts) && std::ranges::all_of(*left, same_member);
}

// Whether the same managers own the same fields, whenever each of them has written last: the times decide the order too. Of more
// entries than any object has, it is not asked.
bool same_owners(const json::value& before, const json::value& after) {
  constexpr std::string_view kPath = "metadata.managedFields";
  constexpr size_t kEntriesMax = 64;
  const json::array &olds = get_array(before, kPath), &news = get_array(after, kPath);
  auto same = [](const json::value& one, const json::value& other) { return same_but_for({"time"}, one, other); };
  return olds.size() <= kEntriesMax && std::ranges::is_permutation(olds, news, same);
}

}  // namespace

bool is_heartbeat(const schema::KindInfo& stored, const json::value& before, const json::value& after) {
  std::string_view path = stored.traits.heartbeat;
  return !path.empty() && same_but_for({"metadata.resourceVersion", "metadata.managedFields", path}, before, after) &&
         same_owners(before, after);
}

}  // namespace coracle::registry
