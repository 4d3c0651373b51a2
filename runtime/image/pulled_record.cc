// SPDX-License-Identifier: Apache-2.0
// See pulled_record.h.
#include "runtime/image/pulled_record.h"

#include <algorithm>

#include "runtime/image/digest.h"

namespace coracle::image {
namespace {

constexpr int kPulledVersion = 1;

// Makes space for one more repository by dropping a pulled one; the administrator's imports stay.
void drop_one(std::map<std::string, PulledFrom>& repositories) {
  auto is_pulled = [](const auto& each) { return !each.second.imported; };
  if (size_t(std::count_if(repositories.begin(), repositories.end(), is_pulled)) < kPulledRepositoriesMax) return;
  repositories.erase(std::find_if(repositories.begin(), repositories.end(), is_pulled));
}

PulledFrom& entry_of(PulledRecord& record, const std::string& repository) {
  auto found = record.repositories.find(repository);
  if (found != record.repositories.end()) return found->second;
  drop_one(record.repositories);
  return record.repositories[repository];
}

// True if the credentials match an earlier pull completely or in part. `learned`: as for find_access.
bool is_known(const PulledFrom& from, const runtime::Credentials& credentials, std::optional<PulledWith>& learned) {
  const PulledWith wanted = pulled_with(credentials);
  bool in_part = false;
  for (const PulledWith& with : from.credentials) {
    if (with == wanted) return true;
    bool same_source = !wanted.source.empty() && with.source == wanted.source && with.registry == wanted.registry;
    in_part = in_part || same_source || with.hash == wanted.hash;
  }
  if (in_part) learned = wanted;
  return in_part;
}

runtime::ImageAccess access_from(const PulledFrom& from, const std::vector<runtime::Credentials>& credentials,
                                 std::optional<PulledWith>& learned) {
  if (from.anonymous) return runtime::ImageAccess::proven;
  for (const runtime::Credentials& each : credentials)
    if (is_known(from, each, learned)) return runtime::ImageAccess::proven;
  return from.imported ? runtime::ImageAccess::preloaded : runtime::ImageAccess::unproven;
}

}  // namespace

json::object PulledRecord::to_json() const {
  json::object all;
  for (const auto& [repository, from] : repositories) {
    json::array with;
    for (const PulledWith& each : from.credentials)
      with.push_back(json::object{{"source", each.source}, {"registry", each.registry}, {"hash", each.hash}});
    all[repository] = json::object{{"imported", from.imported}, {"anonymous", from.anonymous}, {"credentials", std::move(with)}};
  }
  return {{"version", kPulledVersion}, {"repositories", std::move(all)}};
}

Result<PulledRecord> PulledRecord::from_json(const json::value& from) {
  if (get_int(from, "version") != kPulledVersion) return Error(Code::unsupported, "the record of pulls is of another version");
  PulledRecord record;
  record.noted = true;
  for (const auto& [repository, said] : get_object(from, "repositories")) {
    PulledFrom& entry = record.repositories[std::string(repository)];
    entry.imported = get_bool(said, "imported");
    entry.anonymous = get_bool(said, "anonymous");
    for (const json::value& each : get_array(said, "credentials"))
      entry.credentials.push_back({std::string(get_string(each, "source")), std::string(get_string(each, "registry")),
                                   std::string(get_string(each, "hash"))});
  }
  return record;
}

PulledWith pulled_with(const runtime::Credentials& credentials) {
  std::string text;
  for (const std::string* part : {&credentials.username, &credentials.password, &credentials.identity_token})
    text += std::to_string(part->size()) + ":" + *part;  // unambiguous
  return {credentials.source, credentials.registry, digest_of(text).hex()};
}

runtime::ImageAccess find_access(const PulledRecord& record, const std::string& repository,
                                 const std::vector<runtime::Credentials>& credentials, std::optional<PulledWith>& learned) {
  if (!record.noted) return runtime::ImageAccess::preloaded;
  if (!repository.empty()) {
    auto found = record.repositories.find(repository);
    return found == record.repositories.end() ? runtime::ImageAccess::unproven : access_from(found->second, credentials, learned);
  }
  bool is_preloaded = false;
  std::optional<PulledWith> unused;
  for (const auto& [name, from] : record.repositories) {
    runtime::ImageAccess access = access_from(from, credentials, unused);
    if (access == runtime::ImageAccess::proven) return access;
    is_preloaded = is_preloaded || access == runtime::ImageAccess::preloaded;
  }
  return is_preloaded ? runtime::ImageAccess::preloaded : runtime::ImageAccess::unproven;
}

void note_import(PulledRecord& record, const std::string& repository) {
  record.noted = true;
  record.repositories[repository].imported = true;
}

void note_pull(PulledRecord& record, const std::string& repository, const PulledWith* with) {
  record.noted = true;
  PulledFrom& from = entry_of(record, repository);
  if (!with) {
    from.anonymous = true;
    from.credentials.clear();  // not needed any more
    return;
  }
  // One entry per source: the new password of a secret replaces the old one.
  std::erase_if(from.credentials,
                [&](const PulledWith& each) { return each.source == with->source && each.registry == with->registry; });
  if (from.credentials.size() >= kPulledCredentialsMax) from.credentials.erase(from.credentials.begin());
  from.credentials.push_back(*with);
}

}  // namespace coracle::image
