// SPDX-License-Identifier: Apache-2.0
// See cgroup.h.
#include "runtime/container/cgroup.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

constexpr const char* kControllers[] = {"cpu", "memory", "pids", "io", "cpuset"};
constexpr const char* kTopName = "/coracle";

// Where cgroup v2 is mounted: "… - cgroup2 …" in mountinfo, the mount point is its fifth word.
Result<std::string> find_hierarchy() {
  std::string text = TRY(sys::read_file("/proc/self/mountinfo"));
  for (std::string_view line : split(text, '\n')) {
    size_t dash = line.find(" - cgroup2 ");
    auto words = split(line, ' ');
    if (dash != line.npos && words.size() > 5) return std::string(words[4]);
  }
  return Error(Code::unsupported, "cgroup v2 is not mounted on this machine");
}

// Our own place in the hierarchy: the line "0::/path".
Result<std::string> own_path() {
  std::string text = TRY(sys::read_file("/proc/self/cgroup"));
  for (std::string_view line : split(text, '\n'))
    if (line.starts_with("0::")) return std::string(line.substr(3));
  return Error(Code::unsupported, "this process stands in no cgroup v2");
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::string_view each : split(trim(words), ' '))
    if (each == word) return true;
  return false;
}

std::string read_words(const Fd& dir, const char* file) {
  auto text = sys::read_file_at(dir, file);
  return text ? std::string(trim(*text)) : std::string();
}

// Switches on, for what is made inside, the controllers there are: in one write, and each by itself where the kernel
// refuses one of them.
void enable_controllers(const Fd& dir) {
  std::string available = read_words(dir, "cgroup.controllers");
  std::string enabled = read_words(dir, "cgroup.subtree_control");
  std::vector<std::string> wanted;
  for (const char* name : kControllers)
    if (has_word(available, name) && !has_word(enabled, name)) wanted.push_back(std::string("+") + name);
  if (wanted.empty() || sys::write_control(dir, "cgroup.subtree_control", join(wanted, " "))) return;
  for (const std::string& each : wanted) (void)sys::write_control(dir, "cgroup.subtree_control", each);  // enforcement() tells
}

// Where we stand inside a container, the top of our view is a cgroup like any other: its processes keep controllers
// from being enabled, so they go to a leaf. The machine's true root has no such rule, and no cgroup.type.
void clear_top(const Fd& top) {
  if (!sys::read_file_at(top, "cgroup.type")) return;
  std::string pids = read_words(top, "cgroup.procs");
  if (pids.empty()) return;
  (void)sys::make_directory_at(top, "init", 0755);  // there already is as good
  auto leaf = sys::open_at(top, "init", O_RDONLY | O_DIRECTORY);
  if (!leaf) return;
  for (std::string_view pid : split(pids, '\n'))
    (void)sys::write_control(*leaf, "cgroup.procs", pid);  // one that has ended, or may not move: enforcement() tells
}

std::string explain(const Enforcement& what) {
  std::vector<std::string> missing;
  if (!what.memory) missing.push_back("memory");
  if (!what.cpu) missing.push_back("cpu");
  if (!what.pids) missing.push_back("pids");
  if (!what.io) missing.push_back("io");
  if (!what.cpuset) missing.push_back("cpuset");
  if (missing.empty()) return "";
  std::string out = "limits of " + join(missing, ", ") + " are not enforced: ";
  auto v1 = sys::read_file("/proc/self/cgroup");
  bool is_v1 = false;
  for (std::string_view line : split(v1 ? std::string_view(*v1) : std::string_view(), '\n')) {
    auto parts = split(line, ':');
    if (parts.size() > 1)
      for (std::string_view controller : split(parts[1], ','))
        is_v1 |= std::count(missing.begin(), missing.end(), controller);
  }
  if (is_v1) return out + "cgroup v1 holds these controllers; boot with systemd.unified_cgroup_hierarchy=1";
  if (std::count(missing.begin(), missing.end(), "memory"))
    return out + "the kernel has them switched off; add cgroup_enable=memory cgroup_memory=1 to its command line";
  return out + "the kernel does not offer these controllers here";
}

Result<void> remove_tree(const Fd& parent, const std::string& name, int depth = 0) {
  constexpr int kDepthMax = 32;  // containers with their own cgroup namespace may have made some
  if (depth > kDepthMax) return Error(Code::too_large, "cgroup tree is too deep");
  auto dir = sys::open_at(parent, name, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().code() == Code::not_found) return {};
  if (!dir) return dir.take_error();
  auto entries = TRY(sys::list(*dir));
  for (const sys::DirEntry& entry : entries)
    if (entry.type == 4 /* DT_DIR */) TRY(remove_tree(*dir, entry.name, depth + 1));
  auto removed = sys::remove_directory_at(parent, name);
  if (!removed && removed.error().code() != Code::not_found) return removed.take_error();
  return {};
}

std::optional<uint64_t> value_in(std::string_view text, std::string_view key) {  // "key value" lines
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    return parse_number<uint64_t>(trim(line.substr(key.size() + 1)));
  }
  return std::nullopt;
}

std::string controller_of(const std::string& file) { return file.substr(0, file.find('.')); }

std::string amount(int64_t bytes) { return bytes < 0 ? "max" : std::to_string(bytes); }

Result<void> wait_empty(const Fd& cgroup, std::chrono::milliseconds patience) {
  Fd events = TRY(sys::open_at(cgroup, "cgroup.events", O_RDONLY));
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    std::string text = TRY(sys::read_from_start(events));  // and arms the notification
    if (value_in(text, "populated") == 0u) return {};
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(Code::timeout, "processes of the cgroup do not end");
    TRY(sys::wait_priority(events, left));
  }
}

}  // namespace

uint64_t weight_of_shares(uint64_t shares) {
  if (shares == 0) return 0;
  shares = std::clamp<uint64_t>(shares, 2, 262144);
  return 1 + (shares - 2) * 9999 / 262142;
}

Result<std::vector<std::pair<std::string, std::string>>> cgroup_settings(const oci::Resources& in, bool is_container) {
  std::vector<std::pair<std::string, std::string>> out;
  if (in.memory_swap_bytes && *in.memory_swap_bytes >= 0) {
    if (!in.memory_limit_bytes || *in.memory_limit_bytes < 0)
      return Error(Code::invalid, "memory.swap is set without memory.limit");
    if (*in.memory_swap_bytes < *in.memory_limit_bytes)
      return Error(Code::invalid, "memory.swap is below memory.limit");
    out.emplace_back("memory.swap.max", std::to_string(*in.memory_swap_bytes - *in.memory_limit_bytes));
  } else if (in.memory_swap_bytes) {
    out.emplace_back("memory.swap.max", "max");
  }
  if (in.memory_limit_bytes) {
    out.emplace_back("memory.max", amount(*in.memory_limit_bytes));
    // One process over the limit takes the container down as a whole: half a container helps nobody.
    if (is_container && *in.memory_limit_bytes >= 0) out.emplace_back("memory.oom.group", "1");
  }
  if (in.memory_reservation_bytes)
    out.emplace_back("memory.low", amount(std::max<int64_t>(0, *in.memory_reservation_bytes)));
  if (in.cpu_shares && *in.cpu_shares) out.emplace_back("cpu.weight", std::to_string(weight_of_shares(*in.cpu_shares)));
  if (in.cpu_idle) out.emplace_back("cpu.idle", std::to_string(*in.cpu_idle));
  if (in.cpu_quota_us || in.cpu_period_us) {
    constexpr uint64_t kPeriodDefault = 100000;
    bool is_limited = in.cpu_quota_us && *in.cpu_quota_us > 0;
    out.emplace_back("cpu.max", (is_limited ? std::to_string(*in.cpu_quota_us) : "max") + " " +
                                    std::to_string(in.cpu_period_us.value_or(kPeriodDefault)));
  }
  if (in.cpu_burst_us) out.emplace_back("cpu.max.burst", std::to_string(*in.cpu_burst_us));
  if (in.pids_limit) out.emplace_back("pids.max", *in.pids_limit <= 0 ? "max" : std::to_string(*in.pids_limit));
  if (!in.cpuset_cpus.empty()) out.emplace_back("cpuset.cpus", in.cpuset_cpus);
  if (!in.cpuset_mems.empty()) out.emplace_back("cpuset.mems", in.cpuset_mems);
  for (const auto& setting : in.unified) out.push_back(setting);
  return out;
}

Result<Cgroups> Cgroups::open(const std::string& wanted, const std::string& delegated) {
  Cgroups out;
  std::string hierarchy = TRY(find_hierarchy());
  std::string own = TRY(own_path());
  if (!own.starts_with("/..")) own = hierarchy + (own == "/" ? "" : own);
  out.path_ = wanted;
  if (wanted.empty() && !delegated.empty() && sys::exists(hierarchy + "/" + delegated)) out.path_ = hierarchy + "/" + delegated;
  if (out.path_.empty()) {
    out.path_ = hierarchy + kTopName;
    Fd top = TRY(sys::open_directory(hierarchy));
    if (own == hierarchy) clear_top(top);
    enable_controllers(top);
  }
  TRY(sys::make_directories(out.path_).wrap("cgroup root"));
  if (own == out.path_) {  // a delegated cgroup that we were started in
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
  const std::string enabled = out.enabled_ = read_words(out.root_, "cgroup.subtree_control");
  out.enforcement_.memory = has_word(enabled, "memory");
  out.enforcement_.cpu = has_word(enabled, "cpu");
  out.enforcement_.pids = has_word(enabled, "pids");
  out.enforcement_.io = has_word(enabled, "io");
  out.enforcement_.cpuset = has_word(enabled, "cpuset");
  out.enforcement_.missing = explain(out.enforcement_);
  return out;
}

Result<Fd> Cgroups::make(const std::string& path, bool has_children) const {
  Fd at = TRY(sys::open_at(root_, ".", O_RDONLY | O_DIRECTORY));
  auto parts = split(path, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string name(parts[i]);
    auto made = sys::make_directory_at(at, name, 0755);
    if (!made && made.error().code() != Code::already_exists)
      return std::move(made.take_error()).wrap("cgroup " + path);
    at = TRY(sys::open_at(at, name, O_RDONLY | O_DIRECTORY));
    // One that is there already may have been made this moment, or by a daemon that was killed before it got here.
    bool is_leaf = i + 1 == parts.size() && !has_children;
    if (!is_leaf && !enabled_.empty() && read_words(at, "cgroup.subtree_control") != enabled_) enable_controllers(at);
  }
  return at;
}

Result<Fd> Cgroups::find(const std::string& path) const { return sys::open_at(root_, path, O_RDONLY | O_DIRECTORY); }

Result<void> Cgroups::remove(const std::string& path, std::chrono::milliseconds patience) const {
  auto cgroup = find(path);
  if (!cgroup && cgroup.error().code() == Code::not_found) return {};
  if (!cgroup) return cgroup.take_error();
  TRY(kill_cgroup(*cgroup));
  TRY(wait_empty(*cgroup, patience).wrap("cgroup " + path));
  size_t slash = path.rfind('/');
  if (slash == path.npos) return remove_tree(root_, path);
  Fd parent = TRY(find(path.substr(0, slash)));
  return remove_tree(parent, path.substr(slash + 1));
}

Result<void> Cgroups::apply(const Fd& cgroup, const oci::Resources& resources, bool is_container) const {
  auto settings = TRY(cgroup_settings(resources, is_container));
  for (const auto& [file, value] : settings) {
    std::string controller = controller_of(file);
    bool is_held = (controller == "memory" && enforcement_.memory) || (controller == "cpu" && enforcement_.cpu) ||
                   (controller == "pids" && enforcement_.pids) || (controller == "io" && enforcement_.io) ||
                   (controller == "cpuset" && enforcement_.cpuset) || controller == "hugetlb" || controller == "misc";
    if (!is_held) continue;  // enforcement() has said so
    auto written = sys::write_control(cgroup, file, value);
    // Kernels without swap accounting, burst or idle groups lack the file; the rest of the limit still holds.
    bool is_absent = !written && written.error().code() == Code::not_found;
    if (!written && !(is_absent && (file == "memory.swap.max" || file == "cpu.max.burst" || file == "cpu.idle")))
      return std::move(written.take_error()).wrap("cgroup limit");
  }
  return {};
}

Result<void> kill_cgroup(const Fd& cgroup) { return sys::write_control(cgroup, "cgroup.kill", "1"); }

Result<uint64_t> oom_kills(const Fd& cgroup) {
  std::string text = TRY(sys::read_file_at(cgroup, "memory.events"));
  return value_in(text, "oom_kill").value_or(0);
}

Result<Usage> cgroup_usage(const Fd& cgroup) {
  Usage out;
  std::string cpu = TRY(sys::read_file_at(cgroup, "cpu.stat"));
  out.cpu = std::chrono::microseconds(value_in(cpu, "usage_usec").value_or(0));
  if (auto text = sys::read_file_at(cgroup, "memory.current")) {
    out.memory = Bytes(int64_t(parse_number<uint64_t>(trim(*text)).value_or(0)));
    auto stat = sys::read_file_at(cgroup, "memory.stat");
    int64_t inactive = stat ? int64_t(value_in(*stat, "inactive_file").value_or(0)) : 0;
    out.memory_working_set = Bytes(std::max<int64_t>(0, out.memory.count - inactive));
  }
  if (auto text = sys::read_file_at(cgroup, "pids.current"))
    out.processes = parse_number<int64_t>(trim(*text)).value_or(0);
  return out;
}

}  // namespace coracle::runtime
