// SPDX-License-Identifier: Apache-2.0
// A disk for SQLite like an SD card: each sync takes a given time, or fails. Files are those of the system.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "runtime/base/guarded.h"

namespace coracle::engine {

class SlowDisk {
 public:
  explicit SlowDisk(std::chrono::milliseconds for_each_sync = {});  // registers a VFS
  ~SlowDisk();
  SlowDisk(const SlowDisk&) = delete;
  const char* vfs() const { return name_.c_str(); }

  void set_delay(std::chrono::milliseconds for_each_sync) { delay_ = for_each_sync; }
  void set_failing(bool failing) { failing_ = failing; }
  size_t syncs() const { return syncs_; }    // since the start, also failed ones
  size_t writes() const { return writes_; }  // since the start
  // While true, syncs wait: a minute at most, and then none waits any more, so that a test fails and does not hang.
  void hold_syncs(bool held) {
    hold_syncs_.with([&](bool& now) { now = held; });
    hold_syncs_.notify();
  }
  size_t held_syncs() const { return held_syncs_; }
  // While true, reads of files that were opened for reading only wait.
  void hold_readers(bool held) { hold_ = held; }
  size_t held_readers() const { return held_; }

  // Interface for the VFS.
  struct Methods;
  struct Vfs;
  bool sync();  // waits, and returns whether the sync succeeds
  void write() { ++writes_; }
  void read();

 private:
  const std::string name_;
  std::atomic<std::chrono::milliseconds> delay_;
  std::atomic<bool> failing_ = false, hold_ = false;
  Guarded<bool> hold_syncs_{false};
  std::atomic<size_t> syncs_ = 0, writes_ = 0, held_ = 0, held_syncs_ = 0;
  std::unique_ptr<Vfs> registered_;
};

}  // namespace coracle::engine
