// SPDX-License-Identifier: Apache-2.0
// SlowDisk. See slow_disk.h. The VFS is the system's, with another xOpen; each open file has the system's methods, with another
// xSync and xRead.
#include "tests/store/engine/slow_disk.h"

#include <sqlite3.h>

#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace coracle::engine {

struct SlowDisk::Methods {
  sqlite3_io_methods methods;  // first: files point to it
  const sqlite3_io_methods* real;
  SlowDisk* disk;
};

struct SlowDisk::Vfs {
  sqlite3_vfs vfs;  // first: SQLite passes it back
  sqlite3_vfs* real;
  SlowDisk* disk;
  std::mutex mutex;
  std::map<std::pair<const sqlite3_io_methods*, bool>, std::unique_ptr<Methods>> methods;  // by the system's; for reading only
};

namespace {

int slow_sync(sqlite3_file* file, int flags) {
  const auto& methods = *reinterpret_cast<const SlowDisk::Methods*>(file->pMethods);
  return methods.disk->sync() ? methods.real->xSync(file, flags) : SQLITE_IOERR_FSYNC;
}

int counted_write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  const auto& methods = *reinterpret_cast<const SlowDisk::Methods*>(file->pMethods);
  methods.disk->write();
  return methods.real->xWrite(file, bytes, amount, offset);
}

int slow_read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
  const auto& methods = *reinterpret_cast<const SlowDisk::Methods*>(file->pMethods);
  methods.disk->read();
  return methods.real->xRead(file, into, amount, offset);
}

int slow_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
  auto& slow = *reinterpret_cast<SlowDisk::Vfs*>(vfs);
  int done = slow.real->xOpen(slow.real, name, file, flags, out);
  if (done != SQLITE_OK || !file->pMethods) return done;
  std::lock_guard lock(slow.mutex);
  bool reads = (flags & SQLITE_OPEN_READONLY) != 0;
  std::unique_ptr<SlowDisk::Methods>& methods = slow.methods[{file->pMethods, reads}];
  if (!methods) {
    methods = std::make_unique<SlowDisk::Methods>(SlowDisk::Methods{*file->pMethods, file->pMethods, slow.disk});
    methods->methods.xSync = slow_sync;
    methods->methods.xWrite = counted_write;
    if (reads) methods->methods.xRead = slow_read;
  }
  file->pMethods = &methods->methods;
  return SQLITE_OK;
}

std::string unused_name() {
  static std::atomic<int> count = 0;
  return "slow-disk-" + std::to_string(++count);
}

}  // namespace

SlowDisk::SlowDisk(std::chrono::milliseconds for_each_sync) : name_(unused_name()), delay_(for_each_sync) {
  sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
  registered_ = std::make_unique<Vfs>();
  registered_->vfs = *real;
  registered_->vfs.zName = name_.c_str();
  registered_->vfs.pNext = nullptr;
  registered_->vfs.xOpen = slow_open;
  registered_->real = real;
  registered_->disk = this;
  sqlite3_vfs_register(&registered_->vfs, 0);
}

SlowDisk::~SlowDisk() { sqlite3_vfs_unregister(&registered_->vfs); }

void SlowDisk::read() {
  ++held_;
  while (hold_) std::this_thread::yield();
  --held_;
}

bool SlowDisk::sync() {
  ++syncs_;
  ++held_syncs_;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto is_free = [](bool held) { return !held; };
  if (!hold_syncs_.wait_until({}, end, is_free, is_free)) hold_syncs(false);
  --held_syncs_;
  std::this_thread::sleep_for(delay_.load());
  return !failing_;
}

}  // namespace coracle::engine
