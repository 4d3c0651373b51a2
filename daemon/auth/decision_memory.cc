// SPDX-License-Identifier: Apache-2.0
// See decision_memory.h.
#include "daemon/auth/decision_memory.h"

#include <span>
#include <string_view>
#include <utility>

namespace coracle::auth {
namespace {

// Each text is preceded by its length, so that no two lists of texts have one key, whatever bytes are in them.
void append_part(std::string& key, std::string_view text) {
  uint32_t length = uint32_t(text.size());
  key.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
}

size_t entry_bytes(const std::string& key, const Decision& decision) {
  constexpr size_t kNode = sizeof(std::pair<const std::string, Decision>) + 4 * sizeof(void*);
  return kNode + key.size() + decision.reason.size();
}

}  // namespace

std::string DecisionMemory::key_of(const User& user, const Attributes& asked, std::string key) {
  const std::string_view of_resource[] = {asked.group, asked.resource, asked.subresource, asked.ns}, of_path[] = {asked.path};
  const std::span<const std::string_view> where =
      asked.is_resource ? std::span<const std::string_view>(of_resource) : std::span<const std::string_view>(of_path);
  size_t bytes = 0;
  auto count = [&](std::string_view text) { bytes += sizeof(uint32_t) + text.size(); };
  count(user.name), count(asked.verb);
  for (std::string_view text : where) count(text);
  for (const std::string& group : user.groups) {
    if (bytes > kDecisionKeyBytesMax) return {};
    count(group);
  }
  if (bytes > kDecisionKeyBytesMax) return {};
  key.clear();
  key.reserve(bytes + 1);
  key += asked.is_resource ? 'r' : 'p';
  append_part(key, user.name), append_part(key, asked.verb);
  for (std::string_view text : where) append_part(key, text);
  for (const std::string& group : user.groups) append_part(key, group);
  return key;
}

// Forgets what older generations have decided. Returns false if `generation` is itself an older one.
bool DecisionMemory::is_of(uint64_t generation) {
  if (generation > generation_) young_ = {}, old_ = {}, generation_ = generation;
  return generation == generation_;
}

std::optional<Decision> DecisionMemory::find(uint64_t generation, const std::string& key) {
  if (!is_of(generation)) return std::nullopt;
  if (auto found = young_.decisions.find(key); found != young_.decisions.end()) return found->second;
  auto found = old_.decisions.find(key);
  if (found == old_.decisions.end()) return std::nullopt;
  Decision decision = std::move(found->second);
  --old_.size.entries, old_.size.bytes -= entry_bytes(key, decision);
  old_.decisions.erase(found);
  add(key, decision);
  return decision;
}

void DecisionMemory::put(uint64_t generation, const std::string& key, const Decision& decision) {
  if (!is_of(generation) || young_.decisions.contains(key) || old_.decisions.contains(key)) return;
  add(key, decision);
}

void DecisionMemory::add(std::string key, Decision decision) {
  const size_t bytes = entry_bytes(key, decision);
  if (bytes > most_.bytes / 2) return;
  if (young_.size.entries >= most_.entries / 2 || young_.size.bytes + bytes > most_.bytes / 2) old_ = std::exchange(young_, {});
  ++young_.size.entries, young_.size.bytes += bytes;
  young_.decisions.emplace(std::move(key), std::move(decision));
}

}  // namespace coracle::auth
