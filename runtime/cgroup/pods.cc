// SPDX-License-Identifier: Apache-2.0
// See pods.h.
#include "runtime/cgroup/pods.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/cgroup/control.h"
#include "runtime/cgroup/hierarchy.h"
#include "runtime/cgroup/settings.h"
#include "runtime/sys/file.h"

namespace coracle::cgroup {
namespace {

using runtime::Enforcement;

constexpr const char* kTopName = "/coracle";

std::string explain(const Enforcement& what) {
  std::vector<std::string> missing;
  if (!what.memory) missing.push_back("memory");
  if (!what.cpu) missing.push_back("cpu");
  if (!what.pids) missing.push_back("pids");
  if (!what.io) missing.push_back("io");
  if (!what.cpuset) missing.push_back("cpuset");
  if (missing.empty()) return "";
  std::string out = "limits of " + join(missing, ", ") + " are not enforced: ";
  auto mine = sys::read_file("/proc/self/cgroup");
  auto v1 = held_by_v1(mine ? std::string_view(*mine) : std::string_view());
  bool is_v1 = std::any_of(v1.begin(), v1.end(),
                           [&](const std::string& each) { return std::count(missing.begin(), missing.end(), each); });
  if (is_v1) return out + "cgroup v1 holds these controllers; boot with systemd.unified_cgroup_hierarchy=1";
  if (std::count(missing.begin(), missing.end(), "memory"))
    return out + "the kernel has them switched off; add cgroup_enable=memory cgroup_memory=1 to its command line";
  return out + "the kernel does not offer these controllers here";
}

// True if the controller is available according to enforcement(); limits of the pods need these controllers.
bool is_held(const Enforcement& what, const std::string& controller) {
  if (controller == "memory") return what.memory;
  if (controller == "cpu") return what.cpu;
  if (controller == "pids") return what.pids;
  if (controller == "io") return what.io;
  if (controller == "cpuset") return what.cpuset;
  return true;  // written; a warning reports missing ones
}

// Sets a limit if there is none. If the kernel refuses, there is no memory controller, which enforcement() reports.
void bound_memory(const Fd& root) {
  auto now = sys::read_file_at(root, "memory.max");
  if (!now || parse_limit(trim(*now)) != kUnlimited) return;
  const int64_t bytes = int64_t(::sysconf(_SC_PHYS_PAGES)) / 100 * kPodsMemoryPercent * ::sysconf(_SC_PAGESIZE);
  (void)sys::write_control(root, "memory.max", std::to_string(bytes));
}

}  // namespace

Result<Cgroups> Cgroups::open(const std::string& wanted, const std::string& delegated) {
  Cgroups out;
  std::string hierarchy = TRY(mount_point());
  std::string own = TRY(own_path());
  if (!own.starts_with("/..")) own = hierarchy + (own == "/" ? "" : own);
  out.path_ = wanted;
  const bool is_delegated = wanted.empty() && !delegated.empty() && sys::exists(hierarchy + "/" + delegated);
  if (is_delegated) out.path_ = hierarchy + "/" + delegated;
  if (out.path_.empty()) {
    out.path_ = hierarchy + kTopName;
    Fd top = TRY(sys::open_directory(hierarchy));
    // In a container, the visible top is an ordinary cgroup. Processes that cannot be moved there show up in enforcement().
    if (own == hierarchy) (void)clear(top, "init");
    enable_controllers(top);
  }
  TRY(sys::make_directories(out.path_).wrap("cgroup root"));
  if (own == out.path_) {  // this process was started in the delegated cgroup
    TRY(sys::make_directories(out.path_ + "/daemon"));
    Fd leaf = TRY(sys::open_directory(out.path_ + "/daemon"));
    TRY(sys::write_control(leaf, "cgroup.procs", "0").wrap("leave the cgroup root"));
    Fd left = TRY(sys::open_directory(out.path_));
    enable_controllers(left);
    out.path_ += "/pods";
    TRY(sys::make_directories(out.path_));
  }
  out.root_ = TRY(sys::open_directory(out.path_));
  if (!sys::read_file_at(out.root_, "cgroup.procs")) return Error(Code::unsupported, out.path_ + " is not a cgroup v2");
  enable_controllers(out.root_);
  if (!is_delegated) bound_memory(out.root_);
  const std::string enabled = out.enabled_ = read_words(out.root_, "cgroup.subtree_control");
  out.enforcement_.memory = has_word(enabled, "memory");
  out.enforcement_.cpu = has_word(enabled, "cpu");
  out.enforcement_.pids = has_word(enabled, "pids");
  out.enforcement_.io = has_word(enabled, "io");
  out.enforcement_.cpuset = has_word(enabled, "cpuset");
  out.enforcement_.missing = explain(out.enforcement_);
  return out;
}

std::optional<Bytes> Cgroups::memory_bound() const {
  std::optional<Bytes> least;
  for (std::string at = path_; sys::exists(at + "/cgroup.controllers"); at.resize(at.rfind('/'))) {
    auto text = sys::read_file(at + "/memory.max");  // the root cgroup has none
    auto limit = text ? parse_limit(trim(*text)) : std::nullopt;
    if (!limit || *limit == kUnlimited) continue;
    const Bytes here(int64_t(std::min<uint64_t>(*limit, INT64_MAX)));
    if (!least || here < *least) least = here;
  }
  return least;
}

Result<Fd> Cgroups::make(const std::string& path, bool has_children) const {
  Fd at = TRY(sys::open_at(root_, ".", O_RDONLY | O_DIRECTORY));
  auto parts = split(path, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string name(parts[i]);
    auto made = sys::make_directory_at(at, name, 0755);
    if (!made && made.error().code() != Code::already_exists) return std::move(made.take_error()).wrap("cgroup " + path);
    at = TRY(sys::open_at(at, name, O_RDONLY | O_DIRECTORY));
    // An existing cgroup may have been created a moment ago, or by a daemon that was killed before it enabled the controllers.
    bool is_leaf = i + 1 == parts.size() && !has_children;
    if (!is_leaf && !enabled_.empty() && read_words(at, "cgroup.subtree_control") != enabled_) enable_controllers(at);
  }
  return at;
}

Result<Fd> Cgroups::find(const std::string& path) const { return sys::open_at(root_, path, O_RDONLY | O_DIRECTORY); }

Result<void> Cgroups::remove(const std::string& path, std::chrono::milliseconds timeout) const {
  auto cgroup = find(path);
  if (!cgroup && cgroup.error().code() == Code::not_found) return {};
  if (!cgroup) return cgroup.take_error();
  TRY(kill(*cgroup));
  TRY(wait_empty(*cgroup, timeout).wrap("cgroup " + path));
  size_t slash = path.rfind('/');
  if (slash == path.npos) return cgroup::remove(root_, path);
  Fd parent = TRY(find(path.substr(0, slash)));
  return cgroup::remove(parent, path.substr(slash + 1));
}

Result<void> Cgroups::apply(const Fd& cgroup, const oci::Resources& resources, bool is_container) const {
  auto wanted = TRY(settings(resources));
  // One process over the limit ends the whole container: a partly killed container does not work.
  bool is_limited = is_container && resources.memory_limit_bytes.value_or(0) > 0;
  if (is_limited && !resources.unified.count("memory.oom.group"))
    wanted.push_back({.file = "memory.oom.group", .value = "1", .field = "linux.resources.memory.limit"});
  std::erase_if(wanted, [&](const Setting& each) { return !is_held(enforcement_, controller_of(each.file)); });
  TRY(write_settings(cgroup, wanted, Unenforceable::warn));  // enforcement() reports what is missing
  return {};
}

}  // namespace coracle::cgroup
