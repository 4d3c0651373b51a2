// SPDX-License-Identifier: Apache-2.0
// A disk for SQLite with power failures: files are in memory, with their synced and their unsynced content. At a chosen operation
// the power fails: every later call fails, and unsynced writes survive in part, torn at sector boundaries, in any combination.
// After the power is restored, the next open sees what survived.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

struct sqlite3_vfs;

namespace coracle::engine {

class PowerCutDisk {
 public:
  explicit PowerCutDisk(unsigned seed);  // registers a VFS
  ~PowerCutDisk();
  const char* vfs() const { return name_.c_str(); }

  void cut_power_after(int operations);  // counts writes, truncations and syncs from now
  bool power_is_off() const { return off_; }
  void restore_power();  // decides which unsynced writes survive
  int64_t size(const std::string& path) const;
  void set_full(bool full) { full_ = full; }  // files can be overwritten, but cannot grow
  bool is_full() const { return full_; }

  // Interface for the VFS.
  struct Change {
    int64_t offset = 0;
    std::string bytes;
    int64_t truncate_to = -1;  // if set, replaces the bytes
  };
  struct File {
    std::string synced;           // content that survives a power failure
    std::string now;              // content for the running system
    std::vector<Change> pending;  // the writes between synced and now
    bool durable = false;         // its directory entry is synced
  };
  bool spend();  // counts one operation; returns false when the power is off
  std::shared_ptr<File> find(const std::string& path, bool create);
  void remove(const std::string& path);
  static void apply(std::string& content, const Change& change);

 private:
  void survive(File& file);
  std::string name_;
  std::unique_ptr<sqlite3_vfs> registered_;
  std::mt19937 random_;
  std::map<std::string, std::shared_ptr<File>> files_;
  int left_ = -1;  // operations until the power failure; -1 = none planned
  bool off_ = false, full_ = false;
};

}  // namespace coracle::engine
