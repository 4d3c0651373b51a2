// SPDX-License-Identifier: Apache-2.0
// See machine.h.
#include "tests/faults/machine.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace coracle::faults {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string out;
  std::getline(file, out);
  return out;
}

void add_processes(Machine& out) {
  std::error_code wrong;
  for (const auto& entry : fs::directory_iterator("/proc", wrong)) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    for (const char* type : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
      fs::path link = fs::read_symlink(entry.path() / "ns" / type, wrong);
      if (wrong) continue;
      auto& namespaces = out["namespaces"];
      if (!namespaces.count(link)) namespaces.insert(link);
    }
    if (name != std::to_string(::getpid())) out["processes"].insert(first_line(entry.path() / "comm"));
  }
}

struct Mount {
  std::string id, place, options;
};

std::vector<Mount> mounts() {
  std::vector<Mount> out;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, place, options;
    words >> id >> parent >> device >> root >> place >> options;
    out.push_back({id, place, options});
  }
  return out;
}

// Temporary mounts that others had when we began, by id and place. They vanish from our namespace too when their mount point is
// removed.
std::set<std::pair<std::string, std::string>> others_mounts;

void note_others_mounts() {
  for (const Mount& each : mounts())
    if (each.place.starts_with("/tmp/") || each.place.starts_with("/var/tmp/") || each.place.starts_with("/run/"))
      others_mounts.emplace(each.id, each.place);
}

void add_mounts(Machine& out) {
  for (const Mount& each : mounts())
    if (!others_mounts.contains({each.id, each.place})) out["mounts"].insert(each.place + " " + each.options);
}

void add_cgroups(Machine& out, const std::string& token) {
  std::error_code wrong;
  for (auto at = fs::recursive_directory_iterator("/sys/fs/cgroup", wrong); at != fs::recursive_directory_iterator();
       at.increment(wrong)) {
    if (wrong) break;
    if (!at->is_directory(wrong)) continue;
    if (at->path().native().find(token) != std::string::npos) out["cgroups"].insert(at->path());
  }
}

void add_files(Machine& out, const Places& places) {
  std::error_code wrong;
  for (const std::string& top : {places.directory, std::string("/run/coracle-oci"), std::string("/dev/shm")}) {
    for (auto at = fs::recursive_directory_iterator(top, wrong); at != fs::recursive_directory_iterator(); at.increment(wrong)) {
      if (wrong) break;
      if (at->path() == places.own) {
        at.disable_recursion_pending();
        continue;
      }
      out["files"].insert(at->path());
    }
  }
}

volatile sig_atomic_t is_told_to_end = 0;
pid_t inner = 0;

void note_end(int) { is_told_to_end = 1; }
void pass_end_on(int) { ::kill(inner, SIGTERM); }

}  // namespace

bool is_to_end() { return is_told_to_end != 0; }

void enter_own_machine() {
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
    std::printf("ok 1 - faults # SKIP needs root\n");
    std::exit(77);
  }
  pid_t child = inner = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int each : {SIGTERM, SIGINT}) ::signal(each, note_end);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 || ::mount("proc", "/proc", "proc", 0, nullptr) != 0 ||
        ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0 ||
        ::mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0) {
      std::perror("mount");
      std::exit(1);
    }
    note_others_mounts();
    return;
  }
  for (int each : {SIGTERM, SIGINT}) ::signal(each, pass_end_on);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

Machine look(const Places& places) {
  Machine out;
  for (const char* each : {"processes", "namespaces", "mounts", "cgroups", "files"}) out[each];
  add_processes(out);
  add_mounts(out);
  add_cgroups(out, places.token);
  add_files(out, places);
  return out;
}

std::string difference(const Machine& before, const Machine& after) {
  std::string out;
  auto add = [&](const char* sign, const std::string& kind, const std::multiset<std::string>& from,
                 const std::multiset<std::string>& what) {
    std::multiset<std::string> only;
    std::set_difference(what.begin(), what.end(), from.begin(), from.end(), std::inserter(only, only.end()));
    for (const std::string& each : only) out += (out.empty() ? "" : "; ") + std::string(sign) + kind + ": " + each;
  };
  for (const auto& [kind, lines] : before) {
    add("+", kind, lines, after.at(kind));
    add("-", kind, after.at(kind), lines);
  }
  return out;
}

std::string cgroup2_mount() {
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.find(" - cgroup2 ") == line.npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, place;
    words >> id >> parent >> device >> root >> place;
    return place;
  }
  return "";
}

void remove_cgroups(const std::string& path) {
  std::error_code wrong;
  std::ofstream(path + "/cgroup.kill") << "1";
  for (int i = 0; i < 100 && fs::exists(path, wrong); ++i) {
    std::vector<fs::path> all;
    for (auto at = fs::recursive_directory_iterator(path, wrong); at != fs::recursive_directory_iterator(); at.increment(wrong)) {
      if (wrong) break;
      if (at->is_directory(wrong)) all.push_back(at->path());
    }
    std::sort(all.rbegin(), all.rend());
    for (const fs::path& each : all) ::rmdir(each.c_str());
    if (::rmdir(path.c_str()) == 0) return;
    ::usleep(10000);
  }
}

}  // namespace coracle::faults
