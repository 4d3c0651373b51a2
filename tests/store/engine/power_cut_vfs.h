// SPDX-License-Identifier: Apache-2.0
// A disk for SQLite that can lose its power: files live in memory, and remember what was synced and what was only written.
// At a chosen operation the power goes: every call fails from then on, and what was written but not synced survives in part,
// torn at sector borders, in any combination. Then the power comes back, and the next open sees what is left.
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

  void cut_power_after(int operations);  // writes, truncations and syncs from now
  bool power_is_off() const { return off_; }
  void restore_power();  // what was not synced is now decided
  int64_t size(const std::string& path) const;
  void set_full(bool full) { full_ = full; }  // files can be written to, but not grow
  bool is_full() const { return full_; }

  // For the VFS.
  struct Change {
    int64_t offset = 0;
    std::string bytes;
    int64_t truncate_to = -1;  // instead of bytes
  };
  struct File {
    std::string synced;           // what a power cut cannot touch
    std::string now;              // what the running system reads
    std::vector<Change> pending;  // from synced to now
    bool durable = false;         // its name is in the directory for good
  };
  bool spend();  // one operation; false: the power is off
  std::shared_ptr<File> find(const std::string& path, bool create);
  void remove(const std::string& path);
  static void apply(std::string& content, const Change& change);

 private:
  void survive(File& file);
  std::string name_;
  std::unique_ptr<sqlite3_vfs> registered_;
  std::mt19937 random_;
  std::map<std::string, std::shared_ptr<File>> files_;
  int left_ = -1;  // operations until the cut; -1 = none planned
  bool off_ = false, full_ = false;
};

}  // namespace coracle::engine
