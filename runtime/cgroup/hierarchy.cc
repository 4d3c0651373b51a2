// SPDX-License-Identifier: Apache-2.0
// See hierarchy.h.
#include "runtime/cgroup/hierarchy.h"

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::cgroup {

const std::vector<std::string> kControllers = {"cpu", "memory", "pids", "io", "cpuset"};

// Fields 4 and 5 are the root and the mount point; the type follows after the dash. A mount of a subtree (for example in a
// container's root, seen from the host) is only used if the whole hierarchy is not mounted.
Result<std::string> mount_point_in(std::string_view mountinfo) {
  std::string part;
  for (std::string_view line : split(mountinfo, '\n')) {
    auto words = split(line, ' ');
    if (line.find(" - cgroup2 ") == line.npos || words.size() < 6) continue;
    if (words[3] == "/") return std::string(words[4]);
    if (part.empty()) part = words[4];
  }
  if (!part.empty()) return part;
  return Error(Code::unsupported, "cgroup v2 is not mounted on this machine");
}

// Tries the usual mount point first, because the table of mounts may be long.
Result<std::string> mount_point() {
  constexpr int64_t kCgroup2 = 0x63677270;                                // CGROUP2_SUPER_MAGIC
  for (const char* usual : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})  // the second where v1 has its hierarchies beside it
    if (auto magic = sys::magic_of(usual); magic && *magic == kCgroup2) return std::string(usual);
  std::string text = TRY(sys::read_file("/proc/self/mountinfo"));
  return mount_point_in(text);
}

Result<std::string> path_in(std::string_view proc_cgroup) {
  for (std::string_view line : split(proc_cgroup, '\n'))
    if (line.starts_with("0::")) return std::string(line.substr(3));
  return Error(Code::unsupported, "this process stands in no cgroup v2");
}

Result<std::string> own_path() {
  std::string text = TRY(sys::read_file("/proc/self/cgroup"));
  return path_in(text);
}

Result<std::string> path_of(int pid) {
  std::string text = TRY(sys::read_file("/proc/" + std::to_string(pid) + "/cgroup"));
  return path_in(text);
}

std::vector<std::string> held_by_v1(std::string_view proc_cgroup) {
  std::vector<std::string> out;
  for (std::string_view line : split(proc_cgroup, '\n')) {
    auto parts = split(line, ':');
    if (parts.size() < 3 || parts[0] == "0" || parts[1].starts_with("name=")) continue;
    for (std::string_view controller : split(parts[1], ',')) out.emplace_back(controller == "blkio" ? "io" : controller);
  }
  return out;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of_last(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::optional<uint64_t> parse_limit(std::string_view text) {
  if (text == "max") return kUnlimited;
  return parse_number<uint64_t>(text);
}

std::string read_words(const Fd& cgroup, const char* file) {
  auto opened = sys::open_at(cgroup, file, O_RDONLY);
  if (!opened) return "";
  auto text = sys::read_from_start(*opened);
  return text ? std::string(trim(*text)) : std::string();
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::string_view each : split(trim(words), ' '))
    if (each == word) return true;
  return false;
}

namespace {

// In a cgroup with processes the kernel refuses most controllers. It accepts cpu and pids, but then makes the cgroup threaded,
// and a container cannot use that. The root cgroup has no such rule and no cgroup.type.
bool holds_processes(const Fd& cgroup) {
  return !read_words(cgroup, "cgroup.type").empty() && !read_words(cgroup, "cgroup.procs").empty();
}

}  // namespace

void enable_controllers(const Fd& cgroup, const std::vector<std::string>& wanted) {
  std::string available = read_words(cgroup, "cgroup.controllers");
  if (available.empty()) return;  // cgroup v1 holds them all
  std::string enabled = read_words(cgroup, "cgroup.subtree_control");
  std::vector<std::string> missing;
  for (const std::string& name : wanted)
    if (has_word(available, name) && !has_word(enabled, name)) missing.push_back("+" + name);
  if (missing.empty() || holds_processes(cgroup)) return;
  if (sys::write_control(cgroup, "cgroup.subtree_control", join(missing, " "))) return;
  for (const std::string& each : missing)
    (void)sys::write_control(cgroup, "cgroup.subtree_control", each);  // callers check cgroup.subtree_control
}

Result<void> clear(const Fd& cgroup, const std::string& leaf) {
  if (!sys::read_file_at(cgroup, "cgroup.type")) return {};
  std::string pids = TRY(sys::read_file_at(cgroup, "cgroup.procs"));
  if (trim(pids).empty()) return {};
  auto made = sys::make_directory_at(cgroup, leaf, 0755);
  if (!made && made.error().code() != Code::already_exists) return made;
  Fd inside = TRY(sys::open_at(cgroup, leaf, O_RDONLY | O_DIRECTORY));
  Result<void> first;
  for (std::string_view pid : split(trim(pids), '\n')) {
    auto moved = sys::write_control(inside, "cgroup.procs", pid);
    bool has_ended = !moved && moved.error().err() == ESRCH;
    if (!moved && !has_ended && first) first = moved.take_error();
  }
  return first;
}

Result<void> check_domain(const Fd& cgroup, const std::string& path) {
  std::string type = read_words(cgroup, "cgroup.type");
  if (type == "threaded" || type == "domain invalid")
    return Error(Code::unsupported, "cgroup " + path + " is \"" + type +
                                        "\": a container cannot stand in a threaded subtree, only in a domain of its own");
  return {};
}

}  // namespace coracle::cgroup
