// SPDX-License-Identifier: Apache-2.0
// See container.h.
#include "runtime/cgroup/container.h"

#include <algorithm>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/cgroup/bus.h"
#include "runtime/cgroup/hierarchy.h"
#include "runtime/cgroup/unit.h"
#include "runtime/sys/file.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/process.h"

namespace coracle::cgroup {
namespace {

constexpr const char* kBase = "/coracle-oci";  // root's base for relative paths
constexpr int kTries = 8;                      // another caller may be removing a parent
// A child of the scope, whose own files systemd writes. Also, OOM events arrive here at once: a cgroup at its limit has sent so
// many notifications that the kernel delays the last one.
constexpr const char* kInScope = "container";

// Its name, which an annotation may change. "" is the usual one: there always is a child.
Result<std::string> name_in_scope(const std::map<std::string, std::string>& annotations) {
  auto given = annotations.find(kSubgroupAnnotation);
  if (given == annotations.end() || given->second.empty()) return std::string(kInScope);
  const std::string& name = given->second;
  if (name == "." || name == ".." || name.find('/') != name.npos || name.find('\0') != name.npos)
    return Error(Code::invalid,
                 std::string("annotations: ") + kSubgroupAnnotation + ": " + quoted(name) + " is no name of a cgroup");
  return name;
}

bool asks_for_something(const std::vector<Setting>& limits) { return !std::all_of(limits.begin(), limits.end(), is_no_op); }

// The controllers to enable: those that every container has, and those of its limits.
std::vector<std::string> controllers_for(const std::vector<Setting>& limits) {
  std::vector<std::string> out = kControllers;
  for (const Setting& each : limits) {
    std::string controller = controller_of(each.file);
    if (controller != "cgroup" && !std::count(out.begin(), out.end(), controller)) out.push_back(controller);
  }
  return out;
}

// Enables them for the children of `cgroup`. `may_clear`: processes in it may be moved out of the way.
void enable(const Fd& cgroup, const std::vector<std::string>& controllers, bool may_clear) {
  enable_controllers(cgroup, controllers);
  if (!may_clear) return;
  std::string available = read_words(cgroup, "cgroup.controllers"), enabled = read_words(cgroup, "cgroup.subtree_control");
  bool is_refused = std::any_of(controllers.begin(), controllers.end(),
                                [&](const std::string& each) { return has_word(available, each) && !has_word(enabled, each); });
  if (is_refused && clear(cgroup, "init")) enable_controllers(cgroup, controllers);  // the limits report missing ones
}

// Enables the controllers in all ancestors of `path`, for a cgroup that somebody else has created.
Result<void> enable_on_the_way(const std::string& mount_point, const std::string& path,
                               const std::vector<std::string>& controllers) {
  Fd at = TRY(sys::open_directory(mount_point));
  auto parts = split(std::string_view(path).substr(1), '/');
  for (std::string_view part : parts) {
    enable_controllers(at, controllers);
    at = TRY(sys::open_at(at, std::string(part), O_RDONLY | O_DIRECTORY));
  }
  return {};
}

struct Made {
  Fd directory;
  bool is_new = false;
  std::vector<std::string> made;  // paths, the outermost first
};

void take_back(const std::string& mount_point, const std::vector<std::string>& made) {
  for (auto path = made.rbegin(); path != made.rend(); ++path)
    if (auto parent = sys::open_directory(mount_point + parent_of(*path)))
      (void)sys::remove_directory_at(*parent, name_of_last(*path));  // another container may be in it by now
}

// `cleared`: an ancestor whose processes may be moved into a leaf; null: none.
Result<void> make_path(const std::string& mount_point, const std::string& path, const std::vector<std::string>& controllers,
                       const std::string* cleared, Made& out) {
  Fd at = TRY(sys::open_directory(mount_point));
  std::string so_far;
  auto parts = split(std::string_view(path).substr(1), '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    enable(at, controllers, cleared && *cleared == so_far);
    std::string name(parts[i]);
    so_far += "/" + name;
    auto made = sys::make_directory_at(at, name, 0755);
    if (!made && made.error().code() != Code::already_exists) return std::move(made).wrap("cgroup " + so_far);
    if (made) out.made.push_back(so_far);
    out.is_new = made.ok();
    at = TRY(sys::open_at(at, name, O_RDONLY | O_DIRECTORY).wrap("cgroup " + so_far));
  }
  TRY(check_domain(at, path));  // a threaded ancestor makes it invalid
  out.directory = std::move(at);
  return {};
}

// Rejects an existing cgroup with processes: another container would share its limits and be killed with it.
Result<void> check_fit(const Made& made, const std::string& path) {
  if (made.is_new) return {};
  bool populated = TRY(is_populated(made.directory));
  if (populated) return Error(Code::conflict, "linux.cgroupsPath: container's cgroup is not empty: " + path);
  bool frozen = TRY(is_frozen(made.directory));
  if (frozen) return Error(Code::conflict, "linux.cgroupsPath: container's cgroup unexpectedly frozen: " + path);
  return {};
}

// Where an unprivileged caller may create cgroups, in order of preference. Beside its own cgroup, because their common ancestor
// contains no processes; otherwise inside its own.
std::vector<std::string> bases_for(const Caller& caller) {
  if (caller.is_privileged) return {kBase};
  if (caller.own_path.starts_with("/..") || caller.own_path == "/") return {""};
  return {parent_of(caller.own_path), caller.own_path};
}

bool has_counterparts(const Caller& caller, Manager manager) {
  return caller.is_privileged && manager == Manager::cgroupfs && !caller.held_by_v1.empty();
}

Error not_delegated(const std::string& path, const Error& why) {
  return Error(Code::forbidden, "linux.cgroupsPath: " + path + ": " + why.text() +
                                    "; without root, a cgroup can be made where one was delegated: under systemd, by the "
                                    "manager systemd, or started by systemd-run --user --scope -p Delegate=yes");
}

}  // namespace

Result<Caller> Caller::self(std::optional<bool> in_initial_user_namespace) {
  Caller out;
  out.mount_point = TRY(cgroup::mount_point());
  std::string cgroups = TRY(sys::read_file("/proc/self/cgroup"));
  out.own_path = TRY(path_in(cgroups));
  out.held_by_v1 = cgroup::held_by_v1(cgroups);
  if (!in_initial_user_namespace) in_initial_user_namespace = TRY(sys::in_initial_user_namespace());
  out.is_privileged = sys::own_uid() == 0 && *in_initial_user_namespace;
  return out;
}

// ---- creation ----

Result<Container> Container::make(const Caller& caller, const Wanted& wanted, int pid) {
  Place place = TRY(plan_place(wanted.manager, wanted.cgroups_path, wanted.id, !caller.is_privileged));
  Container out;
  out.is_privileged_ = caller.is_privileged;
  out.mount_point_ = caller.mount_point;
  out.record_.manager = place.manager;
  std::vector<V1Hierarchy> hierarchies;
  if (has_counterparts(caller, place.manager)) hierarchies = TRY(v1_hierarchies());
  out.held_by_v1_ = held_and_mounted(caller.held_by_v1, hierarchies);
  V1Limits v1 = v1_limits(of_version(wanted.resources, wanted.oci_version), out.held_by_v1_);
  auto limits = TRY(settings(v1.rest));
  switch (place.manager) {
    case Manager::cgroupfs:
      TRY(out.make_directory(caller, place, limits, wanted.unenforceable, pid));
      TRY(out.make_counterparts(hierarchies, v1.settings, pid));
      break;
    case Manager::systemd: TRY(out.make_scope(place, wanted, limits, pid)); break;
    case Manager::disabled:
      for (const Setting& each : limits)
        if (!is_no_op(each)) out.warnings_.push_back(each.field + ": cgroups are disabled; the limit is not enforced");
      break;
  }
  return out;
}

// On failure, the cgroup is removed too.
Result<void> Container::make_counterparts(const std::vector<V1Hierarchy>& hierarchies, const std::vector<V1Setting>& limits,
                                          int pid) {
  if (held_by_v1_.empty()) return {};
  Scope undo([&] {
    if (pid == 0) (void)remove(std::chrono::milliseconds(0));  // the original error is reported
  });
  V1Cgroup v1 = TRY(V1Cgroup::make(hierarchies, record_.path));
  has_v1_ = true;
  hierarchies_ = hierarchies;
  TRY(v1.write(limits));
  if (pid != 0) TRY(v1.put_in(pid));
  undo.dismiss();
  return {};
}

Result<std::vector<V1Hierarchy>> Container::hierarchies() const {
  if (!has_v1_ || !hierarchies_.empty()) return hierarchies_;
  return v1_hierarchies();
}

Result<std::vector<Fd>> Container::v1_tasks(const SubCgroups& inside) const {
  auto all = TRY(hierarchies());
  return V1Cgroup::open_tasks(all, record_.path, inside);
}

Result<void> Container::make_directory(const Caller& caller, const Place& place, const std::vector<Setting>& limits,
                                       Unenforceable unenforceable, int pid) {
  std::vector<std::string> bases = place.is_relative ? bases_for(caller) : std::vector<std::string>{""};
  Result<void> made;
  for (const std::string& base : bases) {
    // In a container's own hierarchy, and in a delegated cgroup, we may move processes.
    std::string own = caller.own_path == "/" ? "" : caller.own_path;
    bool may_clear = asks_for_something(limits) && (caller.is_privileged ? own.empty() : base == own);
    made = make_directory_at(base + place.path, may_clear ? &own : nullptr, limits, unenforceable, pid);
    bool is_elsewhere = !made && !caller.is_privileged && made.error().code() == Code::forbidden;
    if (!is_elsewhere) return made;
  }
  // Nothing is delegated. Without limits or a path the container gets no cgroup, as with other runtimes.
  if (!place.is_given && !asks_for_something(limits)) return {};
  return not_delegated(bases.back() + place.path, made.error());
}

Result<void> Container::make_directory_at(const std::string& path, const std::string* cleared, const std::vector<Setting>& limits,
                                          Unenforceable unenforceable, int pid) {
  Made made;
  Scope undo([&] {
    directory_.reset();
    take_back(mount_point_, made.made);
  });
  for (int i = 1;; ++i) {
    auto tried = make_path(mount_point_, path, controllers_for(limits), cleared, made);
    bool was_taken_away = !tried && tried.error().code() == Code::not_found && i < kTries;
    if (!was_taken_away) TRY(std::move(tried));
    if (!was_taken_away) break;
  }
  TRY(check_fit(made, path));
  warnings_ = TRY(write_settings(made.directory, limits, unenforceable));
  if (pid) TRY(put_in(made.directory, pid));
  record_.path = path;
  directory_ = std::move(made.directory);
  undo.dismiss();
  return {};
}

Result<void> Container::make_scope(const Place& place, const Wanted& wanted, const std::vector<Setting>& limits, int pid) {
  if (pid == 0) return Error(Code::invalid, "the cgroup manager systemd makes a scope around a process, and there is none");
  const std::string name = TRY(name_in_scope(wanted.annotations));
  auto properties = TRY(scope_properties(place, pid, "container " + wanted.id, limits, wanted.annotations));
  Bus bus = TRY(Bus::open(!is_privileged_));
  record_.unit = place.unit;
  record_.is_user = !is_privileged_;
  TRY(bus.start_scope(place.unit, std::move(properties)));
  Scope undo([&] {
    if (directory_) (void)cgroup::kill(directory_);  // otherwise systemd would wait for a regular end
    (void)bus.stop(place.unit);                      // the original error is reported
  });
  std::string path = TRY(path_of(pid));
  if (name_of_last(path) != place.unit)
    return Error(Code::internal, "systemd: scope " + place.unit + ": the process stands in " + path);
  directory_ = TRY(sys::open_directory(mount_point_ + path));
  TRY(sys::make_directory_at(directory_, name, 0755).wrap("cgroup " + path + "/" + name));
  Fd inside = TRY(sys::open_at(directory_, name, O_RDONLY | O_DIRECTORY));
  TRY(put_in(inside, pid));
  directory_ = std::move(inside);
  record_.path = path + "/" + name;
  // systemd enables the controllers that it supports; a limit may need another one.
  TRY(enable_on_the_way(mount_point_, record_.path, controllers_for(limits)));
  warnings_ = TRY(write_settings(directory_, limits, wanted.unenforceable));
  undo.dismiss();
  return {};
}

Result<Container> Container::find(const Caller& caller, const Record& record) {
  Container out;
  out.record_ = record;
  out.is_privileged_ = caller.is_privileged;
  out.mount_point_ = caller.mount_point;
  if (record.path.empty()) return out;
  auto directory = sys::open_directory(out.host_path());
  if (!directory && directory.error().code() != Code::not_found) return directory.take_error();
  if (directory) out.directory_ = std::move(*directory);
  out.has_v1_ = has_counterparts(caller, record.manager);
  out.held_by_v1_ = caller.held_by_v1;
  return out;
}

// ---- operations ----

Result<void> Container::check_exists() const {
  if (exists()) return {};
  if (!record_.path.empty()) return Error(Code::not_found, "cgroup " + record_.path + " is gone");
  return Error(Code::unsupported, std::string("the container has no cgroup (manager ") + name_of(record_.manager) + ")");
}

Result<void> Container::update(const oci::Resources& resources, Unenforceable unenforceable, const std::string& oci_version) {
  TRY(check_exists());
  auto all = TRY(hierarchies());
  const V1Cgroup counterparts = V1Cgroup::find(all, record_.path);
  V1Limits v1 = v1_limits(of_version(resources, oci_version), counterparts.held_of(held_by_v1_));
  auto limits = TRY(settings(v1.rest));
  TRY(check_memory_use(directory_, resources));
  if (record_.manager == Manager::systemd) {
    Bus bus = TRY(Bus::open(record_.is_user));
    TRY(bus.set_properties(record_.unit, limit_properties(limits)));
  }
  TRY(enable_on_the_way(mount_point_, record_.path, controllers_for(limits)));
  warnings_ = TRY(write_settings(directory_, limits, unenforceable));
  return counterparts.write(v1.settings);
}

Result<void> Container::filter_devices(const std::vector<sys::DeviceMatch>& rules) const {
  if (!is_privileged_) return {};  // cannot create device nodes, and may not attach a filter
  TRY(check_exists());
  if (rules.size() > sys::kDeviceRulesMax)
    return Error(Code::too_large, "linux.resources.devices: more than " + std::to_string(sys::kDeviceRulesMax) + " rules");
  Fd program = TRY(sys::load_device_program(sys::device_program(rules)).wrap("linux.resources.devices"));
  return sys::replace_device_program(directory_, program).wrap("linux.resources.devices");
}

Result<void> Container::give_to(uint32_t uid, uint32_t gid) const {
  TRY(check_exists());
  return cgroup::give_to(directory_, uid, gid);
}

Result<Fd> Container::directory_for(const std::string& inside, int init) const {
  if (!exists() && inside.empty() && !record_.path.empty()) {
    const std::string path = TRY(path_of(init));
    return sys::open_directory(mount_point_ + path).wrap("cgroup " + path);
  }
  TRY(check_exists());
  if (!inside.empty()) return sys::open_no_links(directory_, inside, O_RDONLY | O_DIRECTORY).wrap("cgroup " + inside);
  if (read_words(directory_, "cgroup.subtree_control").empty())
    return sys::open_at(directory_, ".", O_RDONLY | O_DIRECTORY).wrap("cgroup " + record_.path);
  std::string path = TRY(path_of(init));
  if (path == record_.path) return sys::open_at(directory_, ".", O_RDONLY | O_DIRECTORY).wrap("cgroup " + record_.path);
  if (!path.starts_with(record_.path + "/"))
    return Error(Code::conflict,
                 "cgroup " + record_.path + " holds no process of its own, and the container's first stands in " + path);
  return sys::open_no_links(directory_, path.substr(record_.path.size() + 1), O_RDONLY | O_DIRECTORY).wrap("cgroup " + path);
}

Result<void> Container::attach(int pid, const std::string& inside, int init) const {
  Fd target = TRY(directory_for(inside, init));
  auto all = TRY(hierarchies());
  TRY(V1Cgroup::find(all, record_.path).put_in(pid));
  auto moved = put_in(target, pid);
  if (moved || record_.manager != Manager::systemd || moved.error().code() != Code::forbidden) return moved;
  Bus bus = TRY(Bus::open(record_.is_user));
  const std::string in_scope = record_.path.substr(record_.path.rfind(record_.unit) + record_.unit.size());
  return bus.attach(record_.unit, inside.empty() ? in_scope : in_scope + "/" + inside, pid);
}

Result<void> Container::freeze(std::chrono::milliseconds timeout) const {
  TRY(check_exists());
  return cgroup::freeze(directory_, timeout);
}

Result<void> Container::thaw(std::chrono::milliseconds timeout) const {
  TRY(check_exists());
  return cgroup::thaw(directory_, timeout);
}

Result<bool> Container::is_frozen() const {
  TRY(check_exists());
  return cgroup::is_frozen(directory_);
}

Result<void> Container::kill() const {
  TRY(check_exists());
  return cgroup::kill(directory_);
}

Result<std::vector<int>> Container::pids() const {
  TRY(check_exists());
  return cgroup::pids(directory_);
}

Result<Stats> Container::stats() const {
  TRY(check_exists());
  auto all = TRY(hierarchies());
  const V1Cgroup counterparts = V1Cgroup::find(all, record_.path);
  return read_stats(directory_, counterparts.directories());
}

Result<Watch> Container::watch() const {
  TRY(check_exists());
  return Watch::open(host_path());
}

// ---- removal ----

Result<void> Container::remove(std::chrono::milliseconds timeout) {
  bool is_scope = record_.manager == Manager::systemd && !record_.unit.empty();
  // Usually the cgroup is empty and is removed at once. Otherwise wait for the last process: cgroups that a container has created
  // are not removed while it runs.
  bool is_gone = exists() && !is_scope && remove_directory(true);
  if (exists() && !is_gone) TRY(wait_empty(directory_, timeout).wrap("cgroup " + record_.path));
  directory_.reset();
  if (is_scope) {
    Bus bus = TRY(Bus::open(record_.is_user));
    TRY(bus.stop(record_.unit));
  }
  if (!is_gone && !record_.path.empty()) TRY(remove_directory(false));
  auto all = TRY(hierarchies());
  TRY(V1Cgroup::remove(all, record_.path, kBase));
  has_v1_ = false;
  hierarchies_.clear();
  return {};
}

Result<void> Container::remove_directory(bool must_be_plain) const {
  auto parent = sys::open_directory(mount_point_ + parent_of(record_.path));
  if (!parent && parent.error().code() == Code::not_found) return {};
  if (!parent) return parent.take_error();
  std::string name = name_of_last(record_.path);
  TRY((must_be_plain ? sys::remove_directory_at(*parent, name) : cgroup::remove(*parent, name)).wrap("cgroup " + record_.path));
  // Also removes the parents that we have created, with their last child.
  const std::string ours = std::string(kBase) + "/";
  for (std::string path = parent_of(record_.path); (path + "/").starts_with(ours); path = parent_of(path)) {
    auto above = sys::open_directory(mount_point_ + parent_of(path));
    if (!above || !sys::remove_directory_at(*above, name_of_last(path))) break;
  }
  return {};
}

}  // namespace coracle::cgroup
