// SPDX-License-Identifier: Apache-2.0
// Disk: the volume directories of all nodes in a scenario, without files. It outlives the daemon, and records for whom each
// directory was created. While it is away, nothing on it can be made, changed or deleted.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/volume/local/directories.h"

namespace coracle::simulation {

class Disk : public volume::Directories {
 public:
  Result<Made> make(const Key& claim, const std::string& uid, Bytes size, const std::string& = "") override {
    if (away) return absent();
    std::string path = path_of(volume::directory_name(claim, uid));
    if (reached() && !directories_.contains(path)) new_[path] = size;
    return Made{path, ""};
  }
  Result<void> publish(const std::string& path) override {
    if (away) return absent();
    if (auto made = new_.find(path); reached() && made != new_.end()) directories_[path] = made->second, new_.erase(made);
    return {};
  }
  Result<Made> set_size(const std::string& path, Bytes size) override {
    if (away) return absent();
    if (!directories_.contains(path)) return Error(Code::not_found, "no such directory");
    if (reached()) directories_[path] = size;
    return Made{path, ""};
  }
  Result<void> set_aside(const std::string& path) override {
    if (!reached()) return {};
    if (away) return absent();
    if (directories_.contains(path)) when_set_aside(path);
    directories_.erase(path), new_.erase(path);
    return {};
  }
  Result<bool> holds(const std::string& path, const std::string& place, const Answers&) const override { return path == place; }
  Result<std::optional<Held>> hold(const std::string&, Bytes) override { return std::optional<Held>(); }
  // No scenario imports volumes.
  Result<Fd> stage(const std::string&, Bytes) override { return Error(Code::unsupported, "no files"); }
  Result<std::optional<Staged>> stage_first(const Key&, const std::string&, Bytes, const std::string& = "") override {
    return Error(Code::unsupported, "no files");
  }
  Result<void> put_staged(const std::string&) override { return Error(Code::unsupported, "no files"); }
  Result<void> unstage(const std::string&) override { return {}; }
  const std::vector<std::string>& roots() const override { return roots_; }
  std::string disk_of(const std::string& root) const override { return root; }
  bool needs_clearing(const std::string&) const override { return true; }
  Result<void> clear(const std::string&, const Waits& waits, std::stop_token) override {
    if (away) return absent();
    if (reached()) std::erase_if(new_, [&](const auto& made) { return !waits(made.first.substr(path_of("").size())); });
    return {};
  }

  const std::map<std::string, Bytes>& directories() const { return directories_; }
  const std::map<std::string, Bytes>& unpublished() const { return new_; }
  std::function<void(const std::string& path)> when_set_aside;
  bool away = false;              // not mounted
  std::function<bool()> reached;  // whether operations reach the disk: not those of a dead daemon

 private:
  static Error absent() { return Error(Code::unavailable, "the disk is not mounted"); }
  static std::string path_of(const std::string& name) { return "/volumes/" + name; }
  const std::vector<std::string> roots_ = {"/volumes"};
  std::map<std::string, Bytes> directories_, new_;  // the capacity of each directory
};

}  // namespace coracle::simulation
