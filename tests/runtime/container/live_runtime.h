// SPDX-License-Identifier: Apache-2.0
// A real runtime for tests: its own directories and cgroup, and a root file system with busybox, all removed afterwards. Needs
// root, cgroup v2 and busybox-static; reports what is missing.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "runtime/base/text.h"
#include "runtime/container/local_runtime.h"
#include "runtime/oci/defaults.h"
#include "runtime/sys/file.h"

#ifndef CORACLE_PAUSE
#error "CORACLE_PAUSE names the pause program under test"
#endif

namespace coracle::runtime {

class LiveRuntime {
 public:
  // The reason why the runtime cannot run here; "" if it can.
  static std::string missing() {
    if (::geteuid() != 0) return "needs root";
    if (!sys::exists("/usr/bin/busybox") && !sys::exists("/bin/busybox")) return "needs busybox-static";
    auto mounts = sys::read_file("/proc/self/mountinfo");
    if (!mounts || mounts->find(" - cgroup2 ") == mounts->npos) return "needs cgroup v2";
    return "";
  }

  explicit LiveRuntime(std::string path = "") : is_owner_(path.empty()), path_(std::move(path)) {
    if (is_owner_) {
      char name[] = "/var/tmp/coracle-live-XXXXXX";  // /tmp may be mounted with nodev and nosuid
      path_ = ::mkdtemp(name);
      make_rootfs();
    }
    config.state_dir = path_ + "/state";
    config.run_dir = path_ + "/run";
    config.pause_program = CORACLE_PAUSE;
    config.cgroup_root = cgroup_mount() + "/coracle-test" + path_.substr(path_.rfind('-'));
  }
  ~LiveRuntime() {
    runtime.reset();
    if (!is_owner_) return;
    if (auto cgroups = cgroup::Cgroups::open(config.cgroup_root))
      if (auto entries = sys::list(cgroups->path()))
        for (auto& entry : *entries)
          if (entry.type == 4) (void)cgroups->remove(entry.name, std::chrono::seconds(5));
    (void)::rmdir(config.cgroup_root.c_str());
    (void)sys::remove_tree(path_);
  }

  Result<void> open() {
    runtime = TRY(LocalRuntime::open(config, nullptr, nullptr, nullptr));
    return {};
  }

  std::string rootfs() const { return path_ + "/rootfs"; }
  const std::string& path() const { return path_; }

  // A container that runs `command` in busybox's shell, with the defaults of a pod's container.
  ContainerSpec shell(const std::string& id, const std::string& command) const {
    ContainerSpec out = program(id, {"/bin/sh", "-c", command});
    return out;
  }
  ContainerSpec program(const std::string& id, std::vector<std::string> args) const {
    ContainerSpec out;
    out.id = id;
    out.spec = oci::default_spec();
    out.spec.linux_.seccomp = oci::default_seccomp();
    out.spec.root.path = rootfs();
    out.spec.process.args = std::move(args);
    out.log.path = path_ + "/" + id + ".log";
    return out;
  }
  std::string log(const std::string& id) const {
    auto text = sys::read_file(path_ + "/" + id + ".log");
    return text ? *text : "";
  }
  // The content of one stream in the log, with a newline after each complete line.
  std::string output(const std::string& id, const std::string& stream = "stdout") const {
    std::string out, text = log(id);
    size_t at = 0;
    while (at < text.size()) {
      size_t end = text.find('\n', at);
      if (end == text.npos) end = text.size();
      std::string line = text.substr(at, end - at);
      at = end + 1;
      size_t time = line.find(' '), name = line.find(' ', time + 1), tag = line.find(' ', name + 1);
      if (tag == line.npos || line.substr(time + 1, name - time - 1) != stream) continue;
      out += line.substr(tag + 1);
      if (line.substr(name + 1, tag - name - 1) == "F") out += "\n";
    }
    return out;
  }

  // The container's exit status; none if its sandbox is gone, or if it has not ended after a minute.
  std::optional<ExitStatus> wait_end(const std::string& sandbox, const std::string& id) const {
    for (int i = 0; i < 60'000; ++i) {
      auto state = runtime->sandbox(sandbox);
      if (!state) return std::nullopt;
      for (auto& container : state->containers)
        if (container.id == id && container.exit) return container.exit;
      ::usleep(1000);
    }
    return std::nullopt;
  }
  // Waits until the container's log contains `text`; at most a minute.
  void wait_log(const std::string& id, const std::string& text) const {
    for (int i = 0; i < 60'000 && log(id).find(text) == std::string::npos; ++i) ::usleep(1000);
  }

  Config config;
  std::unique_ptr<LocalRuntime> runtime;

 private:
  static std::string cgroup_mount() {
    auto text = sys::read_file("/proc/self/mountinfo");
    for (std::string_view line : split(*text, '\n'))
      if (line.find(" - cgroup2 ") != line.npos) return std::string(split(line, ' ')[4]);
    return "";
  }
  void make_rootfs() {
    for (const char* dir : {"/rootfs/bin", "/rootfs/etc", "/rootfs/proc", "/rootfs/dev", "/rootfs/sys", "/rootfs/tmp"})
      (void)sys::make_directories(path_ + dir);
    std::string busybox = MUST(sys::read_file(sys::exists("/usr/bin/busybox") ? "/usr/bin/busybox" : "/bin/busybox"));
    MUST(sys::replace_file(rootfs() + "/bin/busybox", busybox, 0755, sys::Durability::volatile_));
    Fd bin = MUST(sys::open_directory(rootfs() + "/bin"));
    for (const char* name :
         {"sh",     "sleep", "cat",  "echo",   "id",   "hostname", "ps",   "kill",   "ls",       "mount",  "mkdir",   "touch",
          "dd",     "grep",  "true", "false",  "head", "seq",      "tty",  "stat",   "readlink", "env",    "unshare", "mknod",
          "chroot", "tr",    "yes",  "usleep", "wc",   "ip",       "stty", "printf", "date",     "ulimit", "df"})
      MUST(sys::symlink_at("busybox", bin, name));
    MUST(sys::replace_file(rootfs() + "/etc/passwd", "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n", 0644,
                           sys::Durability::volatile_));
  }
  bool is_owner_;
  std::string path_;
};

}  // namespace coracle::runtime
