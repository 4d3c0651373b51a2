// SPDX-License-Identifier: Apache-2.0
// See log_buffer.h. A file of the log is a Log, followed by the file of the VFS below in the same memory, which SQLite provides.
#include "store/engine/log_buffer.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace coracle::engine {

struct LogBuffer::Vfs {
  sqlite3_vfs vfs;  // first: SQLite passes it back
  sqlite3_vfs* below;
};

namespace {

constexpr size_t kKeptBytes = 16 << 10;  // so much of the buffer may stay in memory between commits

struct Log {
  sqlite3_file base;               // first: SQLite passes it back
  std::unique_ptr<char[]> buffer;  // of kLogPieceBytes; may be absent while it is empty
  size_t size = 0;                 // of what is in it
  size_t used = 0;                 // bytes of the buffer that have been used
  sqlite3_int64 at = 0;            // the place of its content in the file

  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  sqlite3_int64 end() const { return at + sqlite3_int64(size); }
  int flush() {
    const size_t flushed = std::exchange(size, 0);
    return flushed ? below()->pMethods->xWrite(below(), buffer.get(), int(flushed), at) : SQLITE_OK;
  }
  int append(const char* bytes, size_t count) {
    if (!buffer) buffer.reset(new (std::nothrow) char[kLogPieceBytes]);
    if (!buffer) return SQLITE_IOERR_NOMEM;
    std::memcpy(buffer.get() + size, bytes, count);
    size += count;
    used = std::max(used, size);
    return SQLITE_OK;
  }
  void release_memory() {
    if (std::exchange(used, 0) > kKeptBytes) buffer.reset();
  }
};
static_assert(alignof(Log) <= 8 && sizeof(Log) % 8 == 0);  // as SQLite aligns files

Log& log_of(sqlite3_file* file) { return *reinterpret_cast<Log*>(file); }

int close(sqlite3_file* file) {
  Log& log = log_of(file);
  const int flushed = log.flush();
  const int closed = log.below()->pMethods->xClose(log.below());
  log.~Log();
  return flushed == SQLITE_OK ? closed : flushed;
}

int read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
  Log& log = log_of(file);
  const bool is_collected = log.size > 0 && offset < log.end() && offset + amount > log.at;
  if (const int done = is_collected ? log.flush() : SQLITE_OK; done != SQLITE_OK) return done;
  return log.below()->pMethods->xRead(log.below(), into, amount, offset);
}

int write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  Log& log = log_of(file);
  const size_t count = size_t(amount);
  const bool follows = log.size > 0 && offset == log.end();
  if (!follows || log.size + count > kLogPieceBytes) {
    if (const int done = log.flush(); done != SQLITE_OK) return done;
    log.at = offset;
  }
  if (count > kLogPieceBytes) return log.below()->pMethods->xWrite(log.below(), bytes, amount, offset);
  return log.append(static_cast<const char*>(bytes), count);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  Log& log = log_of(file);
  if (const int done = log.flush(); done != SQLITE_OK) return done;
  return log.below()->pMethods->xTruncate(log.below(), size);
}

int sync(sqlite3_file* file, int flags) {
  Log& log = log_of(file);
  if (const int done = log.flush(); done != SQLITE_OK) return done;
  log.release_memory();
  return log.below()->pMethods->xSync(log.below(), flags);
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  Log& log = log_of(file);
  if (const int done = log.flush(); done != SQLITE_OK) return done;
  return log.below()->pMethods->xFileSize(log.below(), size);
}

int lock(sqlite3_file* file, int how) { return log_of(file).below()->pMethods->xLock(log_of(file).below(), how); }
int unlock(sqlite3_file* file, int how) { return log_of(file).below()->pMethods->xUnlock(log_of(file).below(), how); }
int check_lock(sqlite3_file* file, int* locked) {
  return log_of(file).below()->pMethods->xCheckReservedLock(log_of(file).below(), locked);
}
int control(sqlite3_file* file, int what, void* argument) {
  return log_of(file).below()->pMethods->xFileControl(log_of(file).below(), what, argument);
}
int sector_size(sqlite3_file* file) { return log_of(file).below()->pMethods->xSectorSize(log_of(file).below()); }
int characteristics(sqlite3_file* file) { return log_of(file).below()->pMethods->xDeviceCharacteristics(log_of(file).below()); }

// Version 1: SQLite asks a log for no shared memory and no mapping.
const sqlite3_io_methods kMethods = {1,       close,      read,    write,       truncate,        sync,    file_size, lock,
                                     unlock,  check_lock, control, sector_size, characteristics, nullptr, nullptr,   nullptr,
                                     nullptr, nullptr,    nullptr};

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out) {
  sqlite3_vfs* below = reinterpret_cast<LogBuffer::Vfs*>(vfs)->below;
  if (!(flags & SQLITE_OPEN_WAL)) return below->xOpen(below, name, file, flags, out);
  Log* log = new (file) Log();
  log->base.pMethods = log->below()->pMethods = nullptr;  // not open
  const int done = below->xOpen(below, name, log->below(), flags, out);
  if (done == SQLITE_OK) {
    log->base.pMethods = &kMethods;
    return done;
  }
  if (log->below()->pMethods) log->below()->pMethods->xClose(log->below());
  log->~Log();
  return done;
}

std::string unused_name() {
  static std::atomic<int> count = 0;
  return "log-buffer-" + std::to_string(++count);
}

}  // namespace

LogBuffer::LogBuffer(const char* below) : name_(unused_name()), registered_(std::make_unique<Vfs>()) {
  registered_->below = sqlite3_vfs_find(below);
  registered_->vfs = *registered_->below;  // its functions for names, times and so on
  registered_->vfs.szOsFile += int(sizeof(Log));
  registered_->vfs.zName = name_.c_str();
  registered_->vfs.pNext = nullptr;
  registered_->vfs.xOpen = open;
  sqlite3_vfs_register(&registered_->vfs, 0);
}

LogBuffer::~LogBuffer() { sqlite3_vfs_unregister(&registered_->vfs); }

}  // namespace coracle::engine
