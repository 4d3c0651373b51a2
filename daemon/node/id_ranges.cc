// SPDX-License-Identifier: Apache-2.0
// See id_ranges.h.
#include "daemon/node/id_ranges.h"

#include <algorithm>

#include "daemon/node/files.h"
#include "daemon/node/pod.h"
#include "daemon/node/record.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr const char* kFile = "/user-ids";

bool is_range(int64_t first) { return first >= kFirstPodId && first + kPodIds - 1 <= kLastPodId && first % kPodIds == 0; }

std::optional<uint32_t> range_in(const json::value& value, std::string_view name) {
  int64_t first = get_int(value, name);
  return is_range(first) ? std::optional(uint32_t(first)) : std::nullopt;
}

}  // namespace

bool has_own_users(const json::value& pod) { return !view::Pod(pod).spec().host_users_or(true); }

std::vector<IdSpan> parse_subordinate_ids(std::string_view text) {
  std::vector<IdSpan> out;
  for (std::string_view line : split(text, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() != 3) continue;
    auto first = parse_number<uint32_t>(trim(fields[1])), count = parse_number<uint32_t>(trim(fields[2]));
    if (first && count && *count > 0) out.emplace_back(*first, uint64_t(*first) + *count);
  }
  return out;
}

std::optional<uint32_t> find_free_range(const std::map<std::string, uint32_t>& taken, const std::vector<IdSpan>& others) {
  std::vector<IdSpan> occupied = others;
  for (const auto& [uid, first] : taken) occupied.emplace_back(first, uint64_t(first) + kPodIds);
  std::sort(occupied.begin(), occupied.end());
  uint64_t at = kFirstPodId;
  for (const auto& [first, end] : occupied) {
    if (first >= at + kPodIds) break;  // the gap before it is large enough
    if (end > at) at = (end + kPodIds - 1) / kPodIds * kPodIds;
  }
  if (at + kPodIds - 1 > kLastPodId) return std::nullopt;
  return uint32_t(at);
}

void IdRanges::load(const std::vector<runtime::SandboxState>& sandboxes) {
  std::map<std::string, uint32_t> found;
  for (const auto& uid : files::list(config_.state_dir)) {
    auto text = is_pod_uid(uid) ? sys::read_file(config_.state_dir + "/" + uid + kFile)
                                : Result<std::string>(Error(Code::not_found, uid));
    if (!text) continue;
    auto value = parse_json(*text);
    auto first = value ? range_in(*value, "first") : std::nullopt;
    if (first) found[uid] = *first;
    else log_warning("node", "a pod's range of ids cannot be read", {{"pod", uid}});
  }
  // The metadata of running sandboxes takes precedence over the files.
  for (const auto& sandbox : sandboxes)
    if (uint32_t first = SandboxMark::from_text(sandbox.metadata).first_id; is_range(first)) found[sandbox.id] = first;
  taken_.with([&](auto& taken) { taken = std::move(found); });
}

Result<uint32_t> IdRanges::take(const std::string& uid) {
  std::vector<IdSpan> others;
  for (const char* path : {"/etc/subuid", "/etc/subgid"})
    for (const IdSpan& span : parse_subordinate_ids(sys::read_file(config_.host_root + path).value_or("")))
      others.push_back(span);
  bool is_new = false;
  auto first = taken_.with([&](auto& taken) -> std::optional<uint32_t> {
    if (auto there = taken.find(uid); there != taken.end()) return there->second;
    auto free = find_free_range(taken, others);
    if (free) taken[uid] = *free, is_new = true;
    return free;
  });
  if (!first) return Error(Code::unavailable, "no range of 65536 user ids is free for the pod's user namespace");
  if (!is_new) return *first;
  const std::string directory = config_.state_dir + "/" + uid;
  auto kept = sys::make_directories(directory, 0750);
  if (kept) kept = sys::replace_file(directory + kFile, to_text(json::object{{"first", *first}, {"count", kPodIds}}));
  if (kept) return *first;
  taken_.with([&](auto& taken) { taken.erase(uid); });
  return kept.take_error().wrap("keep the pod's range of ids");
}

void IdRanges::give_back(const std::string& uid) {
  (void)sys::unlink(config_.state_dir + "/" + uid + kFile);  // most pods have no such file
  taken_.with([&](auto& taken) { taken.erase(uid); });
}

}  // namespace coracle::node
