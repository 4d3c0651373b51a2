// SPDX-License-Identifier: Apache-2.0
// See state.h.
#include "runtime/cli/state.h"

#include <cstdlib>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/oci/parse.h"
#include "runtime/sys/file.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/process.h"

namespace coracle::cli {
namespace {

constexpr const char* kStateFile = "state.json";
constexpr const char* kLockFile = "lock";

std::string text(const json::value& in, std::string_view name) { return std::string(get_string(in, name)); }

std::string default_root() {
  auto is_initial = sys::in_initial_user_namespace();
  if (sys::own_uid() == 0 && is_initial && *is_initial) return "/run/coracle-oci";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return (runtime && *runtime ? std::string(runtime) : "/run/user/" + std::to_string(sys::own_uid())) + "/coracle-oci";
}

json::object write_cgroup(const cgroup::Record& in) {
  return {{"manager", cgroup::name_of(in.manager)}, {"path", in.path}, {"unit", in.unit}, {"user", in.is_user}};
}

Result<cgroup::Record> read_cgroup(const json::value& in) {
  cgroup::Record out;
  out.manager = TRY(cgroup::manager_of(text(in, "cgroup.manager")));
  out.path = text(in, "cgroup.path");
  out.unit = text(in, "cgroup.unit");
  out.is_user = get_bool(in, "cgroup.user");
  return out;
}

// The rest is stored as a config.json, which parse.h reads and writes.
oci::Spec spec_of(const Saved& saved) {
  oci::Spec out;
  out.process = saved.process;
  out.root.path = saved.rootfs;
  out.hooks = saved.hooks;
  out.linux_.resources = saved.resources;
  out.linux_.personality = saved.personality;
  out.linux_.memory_policy = saved.memory_policy;
  out.annotations = saved.annotations;
  return out;
}

Result<Saved> parse(const std::string& content) {
  json::value in = TRY(parse_json(content));
  Saved out;
  out.id = text(in, "id");
  out.bundle = text(in, "bundle");
  out.version = text(in, "ociVersion");
  out.pid = int(get_int(in, "pid"));
  out.pid_started = uint64_t(get_int(in, "pidStarted"));
  out.boot_id = text(in, "bootId");
  out.created = WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(get_int(in, "created"))));
  out.owner = uint32_t(get_int(in, "owner"));
  out.cgroup = TRY(read_cgroup(in));
  out.seccomp_name = text(in, "seccomp");
  out.has_user_namespace = get_bool(in, "userNamespace");
  out.has_pid_namespace = get_bool(in, "pidNamespace");
  out.has_mount_namespace = get_bool(in, "mountNamespace");
  out.keeps_keyring = get_bool(in, "keepsKeyring");
  const json::value* config = find(in, "config");
  if (!config) return Error(Code::invalid, "config is missing");
  oci::Spec spec = TRY(oci::parse_spec(*config));
  out.rootfs = spec.root.path;
  out.process = std::move(spec.process);
  out.hooks = std::move(spec.hooks);
  out.resources = std::move(spec.linux_.resources);
  out.personality = std::move(spec.linux_.personality);
  out.memory_policy = std::move(spec.linux_.memory_policy);
  out.annotations = std::move(spec.annotations);
  return out;
}

Result<Status> paused_or_running(const cgroup::Container& cgroup) {
  if (!cgroup.exists()) return Status::running;
  auto frozen = cgroup.is_frozen();
  if (!frozen && frozen.error().code() == Code::not_found) return Status::running;  // just removed
  const bool is_frozen = TRY(std::move(frozen));
  return is_frozen ? Status::paused : Status::running;
}

}  // namespace

const char* name_of(Status status) {
  switch (status) {
    case Status::creating: return "creating";
    case Status::created: return "created";
    case Status::running: return "running";
    case Status::paused: return "paused";
    case Status::stopped: break;
  }
  return "stopped";
}

std::string keyring_of(const std::string& id) { return "_ses." + id; }

bool is_valid_id(const std::string& id) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-";
  return !id.empty() && id.size() <= 255 && id[0] != '.' && id.find_first_not_of(kAllowed) == id.npos;
}

Result<ProcessStat> process_stat(int pid) {
  std::string stat = TRY(sys::read_file("/proc/" + std::to_string(pid) + "/stat"));
  size_t name_end = stat.rfind(") ");  // the name may contain any character
  auto words = split(std::string_view(stat).substr(name_end == stat.npos ? stat.size() : name_end + 2), ' ');
  constexpr size_t kState = 0, kStartTime = 19;
  if (words.size() <= kStartTime) return Error(Code::not_found, "process " + std::to_string(pid));
  return ProcessStat{parse_number<uint64_t>(words[kStartTime]).value_or(0), words[kState] == "Z" || words[kState] == "X"};
}

Result<void> Container::save() const {
  const Saved& in = saved_;
  json::object out{{"ociVersion", in.version}, {"id", in.id},         {"pid", in.pid},    {"pidStarted", in.pid_started},
                   {"bootId", in.boot_id},     {"bundle", in.bundle}, {"owner", in.owner}};
  out["created"] = std::chrono::duration_cast<std::chrono::nanoseconds>(in.created.time_since_epoch()).count();
  out["cgroup"] = write_cgroup(in.cgroup);
  out["seccomp"] = in.seccomp_name;
  out["userNamespace"] = in.has_user_namespace;
  out["pidNamespace"] = in.has_pid_namespace;
  out["mountNamespace"] = in.has_mount_namespace;
  out["keepsKeyring"] = in.keeps_keyring;
  out["config"] = oci::to_json(spec_of(in));
  return sys::replace_file_at(directory_, kStateFile, to_text(out), 0600, sys::Durability::volatile_);
}

Result<Fd> Container::pidfd() const {
  const Error ended(Code::not_found, "the container's process has ended");
  std::string boot_id = TRY(sys::boot_id());
  if (saved_.pid <= 0 || saved_.boot_id != boot_id) return ended;
  auto found = sys::open_pidfd(saved_.pid);
  if (!found && found.error().code() == Code::not_found) return ended;
  Fd fd = TRY(std::move(found));
  auto info = process_stat(saved_.pid);  // valid if the pidfd's process still exists afterwards
  if (!info && info.error().code() == Code::not_found) return ended;
  ProcessStat now = TRY(std::move(info));
  if (now.has_ended || now.started != saved_.pid_started) return ended;
  return fd;
}

Result<bool> Container::is_held() const {
  auto socket = sys::stat_at(directory_, kStartSocket);
  if (!socket && socket.error().code() != Code::not_found) return socket.take_error();
  return bool(socket);
}

// If the status cannot be determined it is an error: a caller that reads "stopped" would delete a running container.
Result<Status> Container::status() const {
  if (saved_.pid == 0) return Status::creating;
  auto process = pidfd();
  if (!process && process.error().code() == Code::not_found) return Status::stopped;
  TRY(std::move(process));
  const bool is_waiting = TRY(is_held());
  if (is_waiting) return Status::created;
  if (saved_.cgroup.path.empty()) return Status::running;
  cgroup::Container cgroup = TRY(find_cgroup());
  return paused_or_running(cgroup);
}

Result<Alive> Container::alive() const {
  auto process = pidfd();
  if (!process && process.error().code() == Code::not_found) {
    const Status status = saved_.pid == 0 ? Status::creating : Status::stopped;
    return Error(Code::conflict, "container " + coracle::quoted(saved_.id) + " is " + name_of(status) + ", not running");
  }
  Alive out;
  out.process = TRY(std::move(process));
  if (auto cgroup = find_cgroup(); cgroup || cgroup.error().code() != Code::not_found) out.cgroup = TRY(std::move(cgroup));
  out.status = TRY(paused_or_running(out.cgroup));
  const bool is_waiting = TRY(is_held());
  if (is_waiting) out.status = Status::created;
  return out;
}

json::object Container::state(Status status) const {
  json::object out{{"ociVersion", saved_.version}, {"id", saved_.id}, {"status", name_of(status)}};
  out["pid"] = status == Status::stopped || status == Status::creating ? 0 : saved_.pid;
  out["bundle"] = saved_.bundle;
  if (saved_.annotations.empty()) return out;
  json::object annotations;
  for (const auto& [name, value] : saved_.annotations) annotations[name] = value;
  out["annotations"] = std::move(annotations);
  return out;
}

Result<cgroup::Container> Container::find_cgroup() const {
  cgroup::Caller caller = TRY(cgroup::Caller::self());
  return cgroup::Container::find(caller, saved_.cgroup);
}

Result<Containers> Containers::open(const std::string& root) {
  Containers out;
  out.is_default_ = root.empty();
  out.path_ = out.is_default_ ? default_root() : root;
  auto opened = sys::open_directory(out.path_);
  if (!opened && opened.error().code() == Code::not_found) return out;
  out.root_ = TRY(std::move(opened).wrap("--root " + out.path_));
  return out;
}

Result<Containers> Containers::open_to_create(const std::string& root) {
  Containers out = TRY(open(root));
  if (out.root_) return out;
  TRY(sys::make_directories(out.path_, 0700).wrap("--root " + out.path_));
  out.root_ = TRY(sys::open_directory(out.path_).wrap("--root " + out.path_));
  return out;
}

Result<Container> Containers::create(const std::string& id) const {
  if (!is_valid_id(id)) return Error(Code::invalid, "container id " + coracle::quoted(id) + " is not of [a-zA-Z0-9_+.-]{1,255}");
  auto made = sys::make_directory_at(root_, id, 0700);
  if (!made && made.error().code() == Code::already_exists)
    return Error(Code::already_exists, "container " + coracle::quoted(id) + " exists already");
  TRY(std::move(made));
  Scope undo([&] { (void)sys::remove_tree(root_, id); });  // the original error is reported
  Container out;
  out.directory_ = TRY(sys::open_at(root_, id, O_RDONLY | O_DIRECTORY));
  out.lock_ = TRY(sys::open_at(out.directory_, kLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::lock(out.lock_, sys::Lock::exclusive));
  out.saved_.id = id;
  undo.dismiss();
  return out;
}

Result<Container> Containers::find(const std::string& id) const {
  auto none = [&] { return Error(Code::not_found, "container " + coracle::quoted(id) + " does not exist"); };
  if (!is_valid_id(id) || !root_) return none();
  Container out;
  auto directory = sys::open_at(root_, id, O_RDONLY | O_DIRECTORY);
  if (!directory && directory.error().code() == Code::not_found) return none();
  out.directory_ = TRY(std::move(directory));
  auto content = sys::read_file_at(out.directory_, kStateFile);
  if (!content && content.error().code() == Code::not_found) {
    if (!sys::stat_at(root_, id)) return none();  // just deleted
    out.saved_.id = id;                           // create has not finished, or was killed
    return out;
  }
  std::string state = TRY(std::move(content));
  out.saved_ = TRY(parse(state).wrap(path_ + "/" + id + "/" + kStateFile));
  return out;
}

Result<Container> Containers::find_to_change(const std::string& id) const {
  Container seen = TRY(find(id));
  Fd lock = TRY(sys::open_at(seen.directory_, kLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::lock(lock, sys::Lock::exclusive));
  Container out = TRY(find(id));  // read under the lock
  out.lock_ = std::move(lock);
  return out;
}

Result<std::vector<std::string>> Containers::list() const {
  if (!root_ && is_default_) return std::vector<std::string>();
  if (!root_) return Error(Code::not_found, "--root " + path_ + " does not exist");
  auto entries = TRY(sys::list(root_));
  std::vector<std::string> out;
  for (const sys::DirEntry& entry : entries)
    if (is_valid_id(entry.name)) out.push_back(entry.name);
  return out;
}

Result<void> Containers::remove(const std::string& id) const { return sys::remove_tree(root_, id); }

}  // namespace coracle::cli
