// SPDX-License-Identifier: Apache-2.0
// See control.h.
#include "runtime/cgroup/control.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "runtime/base/text.h"
#include "runtime/cgroup/hierarchy.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"

namespace coracle::cgroup {
namespace {

constexpr size_t kCgroupsMax = 1 << 20;  // visited in one walk

std::optional<uint64_t> value_in(std::string_view text, std::string_view key) {  // "key value" lines
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') continue;
    return parse_number<uint64_t>(trim(line.substr(key.size() + 1)));
  }
  return std::nullopt;
}

// Waits until cgroup.events contains the line "key wanted". Errors: timeout, with the text `late`; not_found if the cgroup has
// been removed.
Result<void> wait_event(const Fd& cgroup, const char* key, uint64_t wanted, std::chrono::milliseconds timeout, const char* late) {
  Fd events = TRY(sys::open_at(cgroup, "cgroup.events", O_RDONLY));
  auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    std::string text = TRY(sys::read_from_start(events));  // also arms the notification
    if (value_in(text, key) == wanted) return {};
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error(Code::timeout, late);
    TRY(sys::wait_priority(events, left));
  }
}

// ---- limits ----

// Explains why a limit cannot be enforced. Reads the controllers only once, for the first missing limit.
class Lacks {
 public:
  explicit Lacks(const Fd& cgroup) : cgroup_(cgroup) {}
  struct Lack {
    std::string text;
    bool is_held_by_v1 = false;
  };
  Lack explain(const Setting& setting) {
    look();
    std::string controller = controller_of(setting.file);
    if (has_word(*available_, controller)) return {setting.field + ": this kernel has no " + setting.file};
    bool is_held = std::count(v1_.begin(), v1_.end(), controller);
    return {setting.field + ": the controller " + controller + " is not available in this cgroup" +
                (is_held ? ": cgroup v1 holds it" : ""),
            is_held};
  }

 private:
  void look() {
    if (available_) return;
    available_ = read_words(cgroup_, "cgroup.controllers");
    if (auto mine = sys::read_file("/proc/self/cgroup")) v1_ = held_by_v1(*mine);
  }
  const Fd& cgroup_;
  std::optional<std::string> available_;
  std::vector<std::string> v1_;
};

struct Outcome {
  bool is_written = false;
  bool is_worth_another_try = false;
  std::string warning;
};

Result<Outcome> write_one(const Fd& cgroup, const Setting& setting, Unenforceable unenforceable, Lacks& lacks, bool is_last_try) {
  auto write = [&](const std::string& file, const std::string& value) {
    return sys::write_control(cgroup, file, value.empty() ? "\n" : value);
  };
  auto written = write(setting.file, setting.value);
  bool is_absent = !written && written.error().err() == ENOENT;
  if (is_absent && !setting.other_file.empty()) {
    written = write(setting.other_file, setting.other_value);
    is_absent = !written && written.error().err() == ENOENT;
  }
  if (written) return Outcome{.is_written = true};
  if (!is_absent) {
    // Some settings depend on each other: a burst may not exceed the quota, which is written separately.
    if (written.error().err() == EINVAL && !is_last_try) return Outcome{.is_worth_another_try = true};
    return written.take_error().wrap(setting.field);
  }
  if (is_no_op(setting)) return Outcome{};
  Lacks::Lack lack = lacks.explain(setting);
  // "The runtime MUST generate an error when the configuration refers to a cgroup controller that is not present":
  // config-linux.md
  const bool is_of_v2 = setting.field.starts_with("linux.resources.unified.");
  const bool is_excused = unenforceable == Unenforceable::warn_on_v1 && lack.is_held_by_v1 && !is_of_v2;
  const bool is_left_out = unenforceable == Unenforceable::warn || is_excused;
  if (!is_left_out) return Error(Code::unsupported, lack.text);
  return Outcome{.warning = lack.text + "; the limit is not enforced"};
}

// ---- descendants ----

// Calls `enter` for each descendant of `top`, then `leave` with its parent and its name after its own descendants. Goes up with
// "..", so that the depth of a container's tree needs no memory. That is safe in cgroupfs, where nobody can rename or link.
Result<void> walk(const Fd& top, const std::function<Result<void>(const Fd&)>& enter,
                  const std::function<Result<void>(const Fd&, const std::string&)>& leave) {
  auto children = [](const Fd& dir) -> Result<std::vector<std::string>> {
    auto entries = sys::list(dir);
    std::vector<std::string> out;
    if (!entries && entries.error().code() != Code::not_found) return entries.take_error();
    if (!entries) return out;  // removed meanwhile
    for (const sys::DirEntry& entry : *entries)
      if (entry.type == 4 /* DT_DIR */) out.push_back(entry.name);
    return out;
  };
  Fd at = TRY(sys::open_at(top, ".", O_RDONLY | O_DIRECTORY));
  std::vector<std::vector<std::string>> todo;  // one list per level
  auto first = TRY(children(at));
  todo.push_back(std::move(first));
  for (size_t seen = 0; seen < kCgroupsMax;) {
    if (!todo.back().empty()) {
      auto next = sys::open_at(at, todo.back().back(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (!next && next.error().code() == Code::not_found) {
        todo.back().pop_back();
        continue;
      }
      if (!next) return next.take_error();
      at = std::move(*next);
      ++seen;
      TRY(enter(at));
      auto inside = TRY(children(at));
      todo.push_back(std::move(inside));
      continue;
    }
    todo.pop_back();
    if (todo.empty()) return {};
    at = TRY(sys::open_at(at, "..", O_RDONLY | O_DIRECTORY));
    TRY(leave(at, todo.back().back()));
    todo.back().pop_back();
  }
  return Error(Code::too_large, "too many cgroups");
}

Result<void> nothing(const Fd&) { return {}; }

Result<void> remove_leaf(const Fd& parent, const std::string& name) {
  auto removed = sys::remove_directory_at(parent, name);
  if (!removed && removed.error().code() != Code::not_found) return removed;
  return {};
}

}  // namespace

Result<std::vector<std::string>> write_settings(const Fd& cgroup, const std::vector<Setting>& settings,
                                                Unenforceable unenforceable) {
  std::vector<std::string> warnings;
  Lacks lacks(cgroup);
  std::vector<const Setting*> again;
  for (const Setting& setting : settings) {
    Outcome outcome = TRY(write_one(cgroup, setting, unenforceable, lacks, false));
    if (outcome.is_worth_another_try) again.push_back(&setting);
    if (!outcome.warning.empty()) warnings.push_back(std::move(outcome.warning));
  }
  std::reverse(again.begin(), again.end());  // the last failure may have blocked the others
  for (const Setting* setting : again) TRY(write_one(cgroup, *setting, unenforceable, lacks, true));
  return warnings;
}

Result<void> check_memory_use(const Fd& cgroup, const oci::Resources& resources) {
  if (!resources.memory_check_before_update.value_or(false)) return {};
  auto text = sys::read_file_at(cgroup, "memory.current");
  if (!text) return {};  // no memory accounting, so no limit
  int64_t used = parse_number<int64_t>(trim(*text)).value_or(0);
  for (const auto& [what, limit] : {std::pair("limit: rejecting memory limit ", resources.memory_limit_bytes),
                                    std::pair("swap: rejecting memory+swap limit ", resources.memory_swap_bytes)})
    if (limit.value_or(0) > 0 && *limit <= used)
      return Error(Code::conflict,
                   std::string("linux.resources.memory.") + what + std::to_string(*limit) + " <= usage " + std::to_string(used));
  return {};
}

Result<void> put_in(const Fd& cgroup, int pid) {
  return sys::write_control(cgroup, "cgroup.procs", std::to_string(pid)).wrap("join the cgroup");
}

Result<void> kill(const Fd& cgroup) {
  auto killed = sys::write_control(cgroup, "cgroup.kill", "1");
  bool is_gone = !killed && killed.error().code() == Code::not_found && !sys::stat_at(cgroup, "cgroup.procs");
  if (is_gone) return {};
  return killed;
}

Result<void> freeze(const Fd& cgroup, std::chrono::milliseconds timeout) {
  TRY(sys::write_control(cgroup, "cgroup.freeze", "1"));
  auto frozen = wait_event(cgroup, "frozen", 1, timeout, "processes of the cgroup do not stop");
  if (!frozen) (void)sys::write_control(cgroup, "cgroup.freeze", "0");  // a partly frozen container would hang
  return frozen;
}

Result<void> thaw(const Fd& cgroup, std::chrono::milliseconds timeout) {
  TRY(sys::write_control(cgroup, "cgroup.freeze", "0"));
  return wait_event(cgroup, "frozen", 0, timeout, "the cgroup stays frozen, by one that it stands in");
}

Result<bool> is_frozen(const Fd& cgroup) {
  std::string text = TRY(sys::read_file_at(cgroup, "cgroup.freeze"));
  return trim(text) == "1";
}

Result<bool> is_populated(const Fd& cgroup) {
  std::string text = TRY(sys::read_file_at(cgroup, "cgroup.events"));
  return value_in(text, "populated") == 1u;
}

Result<void> wait_empty(const Fd& cgroup, std::chrono::milliseconds timeout) {
  auto waited = wait_event(cgroup, "populated", 0, timeout, "processes of the cgroup do not end");
  if (!waited && waited.error().code() == Code::not_found) return {};  // removed meanwhile
  return waited;
}

Result<std::vector<int>> pids(const Fd& cgroup) {
  std::vector<int> out;
  auto add = [&](const Fd& dir) -> Result<void> {
    auto text = sys::read_file_at(dir, "cgroup.procs");
    // The processes of a threaded cgroup are listed in its domain; a cgroup may be removed meanwhile.
    bool is_told_elsewhere = !text && (text.error().err() == EOPNOTSUPP || text.error().code() == Code::not_found);
    if (is_told_elsewhere) return {};
    if (!text) return text.take_error();
    for (std::string_view line : split(*text, '\n'))
      if (auto pid = parse_number<int>(line); pid && out.size() < kPidsMax) out.push_back(*pid);
    return {};
  };
  TRY(add(cgroup));
  TRY(walk(cgroup, add, [](const Fd&, const std::string&) { return Result<void>(); }));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());  // a process may have moved meanwhile
  return out;
}

Result<void> remove(const Fd& parent, const std::string& name) {
  auto removed = remove_leaf(parent, name);  // usually it has no children
  if (removed || removed.error().code() != Code::conflict) return removed;
  auto dir = sys::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!dir && dir.error().code() == Code::not_found) return {};
  if (!dir) return dir.take_error();
  TRY(walk(*dir, nothing, remove_leaf));
  return remove_leaf(parent, name);
}

Result<void> give_to(const Fd& cgroup, uint32_t uid, uint32_t gid) {
  TRY(sys::change_owner(cgroup, uid, gid).wrap("delegate the cgroup"));
  auto list = sys::read_file("/sys/kernel/cgroup/delegate");
  std::string files = list ? *list : "cgroup.procs\ncgroup.subtree_control\ncgroup.threads\n";
  for (std::string_view file : split(files, '\n')) {
    if (file.empty()) continue;
    auto given = sys::change_owner_at(cgroup, std::string(file), uid, gid);
    if (!given && given.error().code() != Code::not_found) return std::move(given).wrap("delegate the cgroup");
  }
  return {};
}

Result<uint64_t> oom_kills(const Fd& cgroup) {
  std::string text = TRY(sys::read_file_at(cgroup, "memory.events"));
  return value_in(text, "oom_kill").value_or(0);
}

namespace {

// The proportional set size of a process; without smaps_rollup its resident set size.
Bytes mapped_by(int pid) {
  std::string about = "/proc/" + std::to_string(pid);
  if (auto rollup = sys::read_file(about + "/smaps_rollup", 1 << 14))
    if (size_t at = rollup->find("\nPss:"); at != rollup->npos)
      return Bytes(int64_t(std::strtoull(rollup->c_str() + at + 5, nullptr, 10)) << 10);
  auto pages = sys::read_file(about + "/statm", 256);  // none if the process has ended
  auto numbers = pages ? split(*pages, ' ') : std::vector<std::string_view>();
  return numbers.size() < 2 ? Bytes(0) : Bytes(parse_number<int64_t>(numbers[1]).value_or(0) * ::sysconf(_SC_PAGESIZE));
}

}  // namespace

Result<runtime::Usage> usage(const Fd& cgroup) {
  runtime::Usage out;
  std::string cpu = TRY(sys::read_file_at(cgroup, "cpu.stat"));
  out.cpu = std::chrono::microseconds(value_in(cpu, "usage_usec").value_or(0));
  if (auto text = sys::read_file_at(cgroup, "memory.current")) {
    out.memory = Bytes(int64_t(parse_number<uint64_t>(trim(*text)).value_or(0)));
    auto stat = sys::read_file_at(cgroup, "memory.stat");
    int64_t inactive = stat ? int64_t(value_in(*stat, "inactive_file").value_or(0)) : 0;
    out.memory_working_set = Bytes(std::max<int64_t>(0, out.memory.count - inactive));
  } else {
    std::vector<int> inside = TRY(pids(cgroup));
    for (int pid : inside) out.memory.count += mapped_by(pid).count;
    out.memory_working_set = out.memory;
  }
  if (auto text = sys::read_file_at(cgroup, "pids.current")) out.processes = parse_number<int64_t>(trim(*text)).value_or(0);
  return out;
}

}  // namespace coracle::cgroup
