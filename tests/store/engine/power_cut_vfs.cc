// SPDX-License-Identifier: Apache-2.0
// PowerCutDisk. See power_cut_vfs.h. The engine uses its connection from one thread at a time, so this needs no lock.
#include "tests/store/engine/power_cut_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace coracle::engine {
namespace {

constexpr int64_t kSector = 512;

struct Handle {
  sqlite3_file base;
  PowerCutDisk* disk;
  std::shared_ptr<PowerCutDisk::File> file;
};

Handle& of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
PowerCutDisk& disk_of(sqlite3_vfs* vfs) { return *static_cast<PowerCutDisk*>(vfs->pAppData); }

int close(sqlite3_file* file) {
  of(file).file.~shared_ptr();
  return SQLITE_OK;
}

int read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
  if (of(file).disk->power_is_off()) return SQLITE_IOERR_READ;
  const std::string& content = of(file).file->now;
  std::memset(into, 0, size_t(amount));
  int64_t there = std::clamp<int64_t>(int64_t(content.size()) - offset, 0, amount);
  if (there > 0) std::memcpy(into, content.data() + offset, size_t(there));
  return there == amount ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

int change(sqlite3_file* file, PowerCutDisk::Change change, int failure) {
  if (!of(file).disk->spend()) return failure;
  size_t end = size_t(change.offset) + change.bytes.size();
  if (of(file).disk->is_full() && change.truncate_to < 0 && end > of(file).file->now.size()) return SQLITE_FULL;
  PowerCutDisk::apply(of(file).file->now, change);
  of(file).file->pending.push_back(std::move(change));
  return SQLITE_OK;
}

int write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  return change(file, {offset, std::string(static_cast<const char*>(bytes), size_t(amount)), -1}, SQLITE_IOERR_WRITE);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) { return change(file, {0, "", size}, SQLITE_IOERR_TRUNCATE); }

int sync(sqlite3_file* file, int) {
  if (!of(file).disk->spend()) return SQLITE_IOERR_FSYNC;
  PowerCutDisk::File& content = *of(file).file;
  content.synced = content.now;
  content.pending.clear();
  content.durable = true;
  return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = int64_t(of(file).file->now.size());
  return SQLITE_OK;
}

int lock(sqlite3_file*, int) { return SQLITE_OK; }
int check_lock(sqlite3_file*, int* locked) { return *locked = 0, SQLITE_OK; }
int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return kSector; }
int characteristics(sqlite3_file*) { return 0; }

const sqlite3_io_methods kMethods = {1,       close,      read,    write,       truncate,        sync,    file_size, lock,
                                     lock,    check_lock, control, sector_size, characteristics, nullptr, nullptr,   nullptr,
                                     nullptr, nullptr,    nullptr};

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
  file->pMethods = nullptr;
  auto found = disk_of(vfs).find(name ? name : "temporary", (flags & SQLITE_OPEN_CREATE) != 0);
  if (!found) return SQLITE_CANTOPEN;
  of(file).disk = &disk_of(vfs);
  new (&of(file).file) std::shared_ptr<PowerCutDisk::File>(std::move(found));
  file->pMethods = &kMethods;
  if (out) *out = flags;
  return SQLITE_OK;
}

int remove(sqlite3_vfs* vfs, const char* name, int) {
  if (!disk_of(vfs).spend()) return SQLITE_IOERR_DELETE;
  disk_of(vfs).remove(name);
  return SQLITE_OK;
}

int access(sqlite3_vfs* vfs, const char* name, int, int* there) {
  *there = disk_of(vfs).find(name, false) != nullptr;
  return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs*, int size, char* out) { return std::memset(out, 7, size_t(size)), size; }
int sleep_for_nothing(sqlite3_vfs*, int microseconds) { return microseconds; }
int current_time(sqlite3_vfs*, double* now) { return *now = 2460000.5, SQLITE_OK; }
int last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

PowerCutDisk::PowerCutDisk(unsigned seed)
    : name_("power-cut-" + std::to_string(seed)), registered_(new sqlite3_vfs()), random_(seed) {
  registered_->iVersion = 1;
  registered_->szOsFile = sizeof(Handle);
  registered_->mxPathname = 512;
  registered_->zName = name_.c_str();
  registered_->pAppData = this;
  registered_->xOpen = open;
  registered_->xDelete = engine::remove;
  registered_->xAccess = access;
  registered_->xFullPathname = full_path;
  registered_->xRandomness = randomness;
  registered_->xSleep = sleep_for_nothing;
  registered_->xCurrentTime = current_time;
  registered_->xGetLastError = last_error;
  sqlite3_vfs_register(registered_.get(), 0);
}

PowerCutDisk::~PowerCutDisk() { sqlite3_vfs_unregister(registered_.get()); }

void PowerCutDisk::cut_power_after(int operations) { left_ = operations; }

bool PowerCutDisk::spend() {
  if (left_ >= 0 && left_-- == 0) off_ = true;
  return !off_;
}

std::shared_ptr<PowerCutDisk::File> PowerCutDisk::find(const std::string& path, bool create) {
  auto found = files_.find(path);
  if (found != files_.end()) return found->second;
  return create && !off_ ? files_[path] = std::make_shared<File>() : nullptr;
}

void PowerCutDisk::remove(const std::string& path) { files_.erase(path); }

int64_t PowerCutDisk::size(const std::string& path) const {
  auto found = files_.find(path);
  return found == files_.end() ? -1 : int64_t(found->second->now.size());
}

void PowerCutDisk::apply(std::string& content, const Change& change) {
  if (change.truncate_to >= 0) return content.resize(size_t(change.truncate_to));
  if (content.size() < size_t(change.offset) + change.bytes.size()) content.resize(size_t(change.offset) + change.bytes.size());
  content.replace(size_t(change.offset), change.bytes.size(), change.bytes);
}

// For each unsynced write: all, none or some of its sectors reach the disk.
void PowerCutDisk::survive(File& file) {
  for (const Change& change : file.pending) {
    if (change.truncate_to >= 0) {
      if (random_() % 2) apply(file.synced, change);
      continue;
    }
    unsigned fate = random_() % 3;
    for (size_t at = 0; at < change.bytes.size(); at += kSector)
      if (fate == 0 || (fate == 1 && random_() % 2))
        apply(file.synced, {change.offset + int64_t(at), change.bytes.substr(at, kSector), -1});
  }
  file.now = file.synced;
  file.pending.clear();
}

void PowerCutDisk::restore_power() {
  std::erase_if(files_, [&](const auto& named) { return !named.second->durable && random_() % 2; });
  for (auto& [path, file] : files_) {
    auto left = std::make_shared<File>(*file);  // handles of the dead process keep the old file
    survive(*left);
    left->durable = true;
    file = std::move(left);
  }
  off_ = false;
  left_ = -1;
}

}  // namespace coracle::engine
