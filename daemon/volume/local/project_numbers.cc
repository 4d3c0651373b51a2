// SPDX-License-Identifier: Apache-2.0
// See project_numbers.h.
#include "daemon/volume/local/project_numbers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::volume {
namespace {

constexpr const char* kRecords = ".coracle.projects";
constexpr uint32_t kFirstNumber = 0x40000000;  // administrators usually count from 1
constexpr uint32_t kNumbers = 0x20000000;

Result<Fd> open_records(const Fd& root) { return sys::open_at(root, kRecords, O_RDONLY | O_DIRECTORY | O_NOFOLLOW); }

Result<std::string> record_name(const Fd& directory) {
  struct stat about = TRY(sys::stat(directory));
  return std::to_string(about.st_ino);
}

std::optional<uint32_t> number_in(const Fd& records, const std::string& name) {
  auto text = sys::read_link_at(records, name);
  return text ? parse_number<uint32_t>(*text) : std::nullopt;
}

}  // namespace

std::optional<uint32_t> ProjectNumbers::recorded(const Fd& root, const Fd& directory) {
  auto records = open_records(root);
  auto name = record_name(directory);
  return records && name ? number_in(*records, *name) : std::nullopt;
}

bool ProjectNumbers::is_of_another(const Fd& root, const Fd& directory, uint32_t number) {
  auto records = open_records(root);
  auto own = record_name(directory);
  auto all = records ? sys::list(*records) : Result<std::vector<sys::DirEntry>>(records.take_error());
  if (!all || !own) return false;
  return std::ranges::any_of(
      *all, [&](const sys::DirEntry& entry) { return entry.name != *own && number_in(*records, entry.name) == number; });
}

Result<void> ProjectNumbers::record(const Fd& root, const Fd& directory, uint32_t number) {
  if (recorded(root, directory) == number) return {};
  auto made = sys::make_directory_at(root, kRecords, 0700);
  if (!made && made.error().code() != Code::already_exists) return made.take_error().wrap("record a project");
  Fd records = TRY(open_records(root).wrap("record a project"));
  std::string name = TRY(record_name(directory));
  return sys::symlink_at(std::to_string(number), records, name).wrap("record a project");
}

// What the directory says is believed only where nothing else is known, and not if it is another volume's.
std::optional<uint32_t> ProjectNumbers::number_of(const Fd& root, const Fd& directory) const {
  if (auto known = recorded(root, directory)) return known;
  auto shown = calls_.project_of(directory);
  if (!shown || *shown < kFirstNumber || is_of_another(root, directory, *shown)) return std::nullopt;
  return *shown;
}

// A number with a limit or with files is in use. Errors: unsupported if the file system does not count by projects.
Result<uint32_t> ProjectNumbers::free_number(const Fd& directory, const std::string& path) const {
  for (uint32_t number = kFirstNumber + fnv1a(path) % kNumbers;; ++number) {
    auto use = calls_.use(directory, number);
    if (!use && use.error().code() == Code::not_found) return number;
    if (!use) return use.take_error();
    if (use->limit.count == 0 && use->inodes == 0) return number;
  }
}

// The directory gets its number before the limit: a number without files and limit is free again, wherever this is interrupted.
Result<std::string> ProjectNumbers::limit(const Fd& root, const Fd& directory, const std::string& path, Bytes size) {
  auto shown = calls_.project_of(directory);
  if (!shown) return shown.error().text();
  auto number = number_of(root, directory);
  if (!number) {
    auto found = free_number(directory, path);
    if (!found && found.error().code() == Code::unsupported) return found.error().text();
    number = TRY(std::move(found));
  }
  TRY(calls_.set_project(directory, *number));
  TRY(record(root, directory, *number));
  auto done = calls_.set_limit(directory, *number, size);
  if (!done && done.error().code() != Code::unsupported) return done.take_error();
  return done ? std::string() : done.error().text();
}

// The limit is only raised: a larger one is that of an expansion that is under way.
Result<std::optional<ProjectNumbers::Held>> ProjectNumbers::hold(const Fd& root, const Fd& directory, const std::string& path,
                                                                 Bytes size) {
  auto number = number_of(root, directory);
  if (!number) return std::optional<Held>();
  auto use = calls_.use(directory, *number);
  if (!use && use.error().code() != Code::not_found) return std::optional<Held>();  // mounted without quotas now
  uint32_t shown = TRY(calls_.project_of(directory));
  const bool is_right = shown == *number && use && use->limit >= size && recorded(root, directory);
  if (!is_right) {
    Bytes wanted = use ? std::max(use->limit, size) : size;
    std::string why = TRY(limit(root, directory, path, wanted));
    if (!why.empty()) return std::optional<Held>();
    use = TRY(calls_.use(directory, *number));
  }
  return std::optional(Held{*use, shown == *number ? std::nullopt : std::optional(shown)});
}

std::optional<sys::ProjectUse> ProjectNumbers::use_of(const Fd& root, const Fd& directory) const {
  auto number = number_of(root, directory);
  auto use = number ? calls_.use(directory, *number) : Result<sys::ProjectUse>(Error(Code::not_found, "no project"));
  if (!use || use->limit.count == 0) return std::nullopt;
  return *use;
}

void ProjectNumbers::release(const Fd& root, const Fd& directory) {
  auto number = number_of(root, directory);
  if (number) (void)calls_.set_limit(directory, *number, Bytes(0));  // without quotas there is no limit
  forget(root, directory);
}

void ProjectNumbers::forget(const Fd& root, const Fd& directory) {
  auto records = open_records(root);
  auto name = record_name(directory);
  if (records && name) (void)sys::unlink_at(*records, *name);  // often there is none
}

}  // namespace coracle::volume
