// SPDX-License-Identifier: Apache-2.0
// See parse.h.
#include "runtime/oci/parse.h"

#include <limits>

namespace coracle::oci {
namespace {

// One value and where it stands. Reading never fails on the spot: the first complaint of a document is kept by its
// root, and looked at once at the end, so that what reads a struct is a plain list of its fields.
class Field {
 public:
  Field(const json::value* value, std::string path, std::optional<Error>* error)
      : value_(value), path_(std::move(path)), error_(error) {}

  bool has(std::string_view name) const {
    return object() && object()->contains(name) && !(*object()).at(name).is_null();
  }
  Field at(std::string_view name) const {
    const json::value* found = object() ? object()->if_contains(name) : nullptr;
    if (found && found->is_null()) found = nullptr;
    return Field(found, path_.empty() ? std::string(name) : path_ + "." + std::string(name), error_);
  }
  template <typename F>
  void each(F&& f) const {
    if (!value_) return;
    if (!value_->is_array()) return complain("not a list");
    size_t i = 0;
    for (const json::value& item : value_->get_array())
      f(Field(&item, path_ + "[" + std::to_string(i++) + "]", error_));
  }
  template <typename F>
  void each_entry(F&& f) const {  // of an object
    if (!value_) return;
    if (!object()) return complain("not an object");
    for (const auto& [name, item] : *object())
      f(std::string(name), Field(&item, path_ + "." + std::string(name), error_));
  }

  void read(std::string& out) const {
    if (!value_) return;
    if (!value_->is_string()) return complain("not a string");
    out.assign(value_->get_string().data(), value_->get_string().size());
    if (out.find('\0') != out.npos) complain("holds a NUL byte");
  }
  void read(bool& out) const {
    if (!value_) return;
    if (!value_->is_bool()) return complain("not true or false");
    out = value_->get_bool();
  }
  template <std::integral T>
  void read(T& out) const {
    if (!value_) return;
    constexpr bool kSigned = std::is_signed_v<T>;
    bool fits = false;
    if (value_->is_int64()) {
      int64_t number = value_->get_int64();
      fits = kSigned
                 ? number >= int64_t(std::numeric_limits<T>::min()) && number <= int64_t(std::numeric_limits<T>::max())
                 : number >= 0 && uint64_t(number) <= uint64_t(std::numeric_limits<T>::max());
      if (fits) out = T(number);
    } else if (value_->is_uint64()) {
      uint64_t number = value_->get_uint64();
      fits = number <= uint64_t(std::numeric_limits<T>::max());
      if (fits) out = T(number);
    } else {
      return complain("not a whole number");
    }
    if (!fits) complain("out of range");
  }
  template <typename T>
  void read(std::optional<T>& out) const {
    if (!value_) return;
    T value{};
    read(value);
    out = std::move(value);
  }
  template <typename T>
  void read(std::vector<T>& out) const {
    each([&](const Field& item) {
      T value{};
      item.read(value);
      out.push_back(std::move(value));
    });
  }
  void read(std::map<std::string, std::string>& out) const {
    each_entry([&](const std::string& name, const Field& item) { item.read(out[name]); });
  }

  void complain(const std::string& what) const {
    if (!error_->has_value()) *error_ = Error(Code::invalid, (path_.empty() ? "config" : path_) + ": " + what);
  }
  const json::value* raw() const { return value_; }
  void must_be_object() const {
    if (value_ && !value_->is_object()) complain("not an object");
  }

 private:
  const json::object* object() const { return value_ ? value_->if_object() : nullptr; }
  const json::value* value_;
  std::string path_;
  std::optional<Error>* error_;
};

Mount read_mount(const Field& in) {
  Mount out;
  in.must_be_object();
  in.at("destination").read(out.destination);
  in.at("type").read(out.type);
  in.at("source").read(out.source);
  in.at("options").read(out.options);
  return out;
}

Rlimit read_rlimit(const Field& in) {
  Rlimit out;
  in.must_be_object();
  in.at("type").read(out.type);
  in.at("soft").read(out.soft);
  in.at("hard").read(out.hard);
  return out;
}

Process read_process(const Field& in) {
  Process out;
  in.must_be_object();
  in.at("terminal").read(out.terminal);
  in.at("consoleSize").at("width").read(out.console_width);
  in.at("consoleSize").at("height").read(out.console_height);
  Field user = in.at("user");
  user.must_be_object();
  user.at("uid").read(out.user.uid);
  user.at("gid").read(out.user.gid);
  user.at("umask").read(out.user.umask);
  user.at("additionalGids").read(out.user.additional_gids);
  in.at("args").read(out.args);
  in.at("env").read(out.env);
  in.at("cwd").read(out.cwd);
  if (in.has("capabilities")) {
    Field caps = in.at("capabilities");
    caps.must_be_object();
    out.capabilities.emplace();
    caps.at("bounding").read(out.capabilities->bounding);
    caps.at("effective").read(out.capabilities->effective);
    caps.at("inheritable").read(out.capabilities->inheritable);
    caps.at("permitted").read(out.capabilities->permitted);
    caps.at("ambient").read(out.capabilities->ambient);
  }
  in.at("rlimits").each([&](const Field& item) { out.rlimits.push_back(read_rlimit(item)); });
  in.at("noNewPrivileges").read(out.no_new_privileges);
  in.at("apparmorProfile").read(out.apparmor_profile);
  in.at("selinuxLabel").read(out.selinux_label);
  in.at("oomScoreAdj").read(out.oom_score_adj);
  return out;
}

DeviceRule read_device_rule(const Field& in) {
  DeviceRule out;
  in.must_be_object();
  in.at("allow").read(out.allow);
  in.at("type").read(out.type);
  if (out.type.empty()) out.type = "a";
  in.at("major").read(out.major);
  in.at("minor").read(out.minor);
  in.at("access").read(out.access);
  if (out.access.empty()) out.access = "rwm";
  if (out.major && *out.major < 0) out.major.reset();
  if (out.minor && *out.minor < 0) out.minor.reset();
  return out;
}

Resources read_resources(const Field& in) {
  Resources out;
  in.must_be_object();
  in.at("devices").each([&](const Field& item) { out.devices.push_back(read_device_rule(item)); });
  Field memory = in.at("memory"), cpu = in.at("cpu");
  memory.must_be_object();
  memory.at("limit").read(out.memory_limit_bytes);
  memory.at("reservation").read(out.memory_reservation_bytes);
  memory.at("swap").read(out.memory_swap_bytes);
  cpu.must_be_object();
  cpu.at("shares").read(out.cpu_shares);
  cpu.at("quota").read(out.cpu_quota_us);
  cpu.at("burst").read(out.cpu_burst_us);
  cpu.at("period").read(out.cpu_period_us);
  cpu.at("idle").read(out.cpu_idle);
  cpu.at("cpus").read(out.cpuset_cpus);
  cpu.at("mems").read(out.cpuset_mems);
  in.at("pids").at("limit").read(out.pids_limit);
  in.at("unified").read(out.unified);
  return out;
}

Device read_device(const Field& in) {
  Device out;
  in.must_be_object();
  in.at("path").read(out.path);
  in.at("type").read(out.type);
  in.at("major").read(out.major);
  in.at("minor").read(out.minor);
  in.at("fileMode").read(out.file_mode);
  in.at("uid").read(out.uid);
  in.at("gid").read(out.gid);
  return out;
}

std::vector<IdMapping> read_mappings(const Field& in) {
  std::vector<IdMapping> out;
  in.each([&](const Field& item) {
    IdMapping mapping;
    item.at("containerID").read(mapping.container_id);
    item.at("hostID").read(mapping.host_id);
    item.at("size").read(mapping.size);
    out.push_back(mapping);
  });
  return out;
}

std::vector<Hook> read_hooks(const Field& in) {
  std::vector<Hook> out;
  in.each([&](const Field& item) {
    Hook hook;
    item.at("path").read(hook.path);
    item.at("args").read(hook.args);
    item.at("env").read(hook.env);
    item.at("timeout").read(hook.timeout_seconds);
    out.push_back(std::move(hook));
  });
  return out;
}

Linux read_linux(const Field& in) {
  Linux out;
  in.must_be_object();
  in.at("namespaces").each([&](const Field& item) {
    Namespace ns;
    item.at("type").read(ns.type);
    item.at("path").read(ns.path);
    out.namespaces.push_back(std::move(ns));
  });
  out.uid_mappings = read_mappings(in.at("uidMappings"));
  out.gid_mappings = read_mappings(in.at("gidMappings"));
  in.at("devices").each([&](const Field& item) { out.devices.push_back(read_device(item)); });
  in.at("cgroupsPath").read(out.cgroups_path);
  out.resources = read_resources(in.at("resources"));
  in.at("rootfsPropagation").read(out.rootfs_propagation);
  if (in.has("seccomp")) {
    in.at("seccomp").must_be_object();
    out.seccomp = *in.at("seccomp").raw();
  }
  in.at("sysctl").read(out.sysctl);
  in.at("maskedPaths").read(out.masked_paths);
  in.at("readonlyPaths").read(out.readonly_paths);
  in.at("mountLabel").read(out.mount_label);
  return out;
}

// ---- writing ----

template <typename T>
json::array list(const std::vector<T>& items) {
  json::array out;
  for (const T& item : items) out.emplace_back(item);
  return out;
}

void put(json::object& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out[name] = text;
}
template <typename T>
void put(json::object& out, std::string_view name, const std::optional<T>& value) {
  if (value) out[name] = *value;
}
template <typename T>
void put(json::object& out, std::string_view name, const std::vector<T>& items) {
  if (!items.empty()) out[name] = list(items);
}
void put(json::object& out, std::string_view name, json::object object) {
  if (!object.empty()) out[name] = std::move(object);
}
json::object text_map(const std::map<std::string, std::string>& map) {
  json::object out;
  for (const auto& [name, value] : map) out[name] = value;
  return out;
}

json::object write_resources(const Resources& in) {
  json::object out, memory, cpu;
  json::array devices;
  for (const DeviceRule& rule : in.devices) {
    json::object item{{"allow", rule.allow}};
    if (rule.type != "a") item["type"] = rule.type;
    put(item, "major", rule.major);
    put(item, "minor", rule.minor);
    item["access"] = rule.access;
    devices.push_back(std::move(item));
  }
  if (!devices.empty()) out["devices"] = std::move(devices);
  put(memory, "limit", in.memory_limit_bytes);
  put(memory, "reservation", in.memory_reservation_bytes);
  put(memory, "swap", in.memory_swap_bytes);
  put(out, "memory", std::move(memory));
  put(cpu, "shares", in.cpu_shares);
  put(cpu, "quota", in.cpu_quota_us);
  put(cpu, "burst", in.cpu_burst_us);
  put(cpu, "period", in.cpu_period_us);
  put(cpu, "idle", in.cpu_idle);
  put(cpu, "cpus", in.cpuset_cpus);
  put(cpu, "mems", in.cpuset_mems);
  put(out, "cpu", std::move(cpu));
  if (in.pids_limit) out["pids"] = json::object{{"limit", *in.pids_limit}};
  put(out, "unified", text_map(in.unified));
  return out;
}

json::array write_mappings(const std::vector<IdMapping>& in) {
  json::array out;
  for (const IdMapping& mapping : in)
    out.push_back(
        json::object{{"containerID", mapping.container_id}, {"hostID", mapping.host_id}, {"size", mapping.size}});
  return out;
}

json::object write_linux(const Linux& in) {
  json::object out;
  json::array namespaces, devices;
  for (const Namespace& ns : in.namespaces) {
    json::object item{{"type", ns.type}};
    put(item, "path", ns.path);
    namespaces.push_back(std::move(item));
  }
  if (!namespaces.empty()) out["namespaces"] = std::move(namespaces);
  if (!in.uid_mappings.empty()) out["uidMappings"] = write_mappings(in.uid_mappings);
  if (!in.gid_mappings.empty()) out["gidMappings"] = write_mappings(in.gid_mappings);
  for (const Device& device : in.devices) {
    json::object item{{"path", device.path}, {"type", device.type}, {"major", device.major}, {"minor", device.minor}};
    put(item, "fileMode", device.file_mode);
    put(item, "uid", device.uid);
    put(item, "gid", device.gid);
    devices.push_back(std::move(item));
  }
  if (!devices.empty()) out["devices"] = std::move(devices);
  put(out, "cgroupsPath", in.cgroups_path);
  put(out, "resources", write_resources(in.resources));
  put(out, "rootfsPropagation", in.rootfs_propagation);
  if (in.seccomp) out["seccomp"] = *in.seccomp;
  put(out, "sysctl", text_map(in.sysctl));
  put(out, "maskedPaths", in.masked_paths);
  put(out, "readonlyPaths", in.readonly_paths);
  put(out, "mountLabel", in.mount_label);
  return out;
}

json::array write_hooks(const std::vector<Hook>& hooks) {
  json::array out;
  for (const Hook& hook : hooks) {
    json::object item{{"path", hook.path}};
    put(item, "args", hook.args);
    put(item, "env", hook.env);
    put(item, "timeout", hook.timeout_seconds);
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace

Result<Spec> parse_spec(const json::value& config) {
  std::optional<Error> error;
  Field in(&config, "", &error);
  in.must_be_object();
  Spec out;
  in.at("ociVersion").read(out.version);
  if (!in.has("process")) in.at("process").complain("missing");
  if (!in.has("root")) in.at("root").complain("missing");
  out.process = read_process(in.at("process"));
  in.at("root").must_be_object();
  in.at("root").at("path").read(out.root.path);
  in.at("root").at("readonly").read(out.root.readonly);
  in.at("hostname").read(out.hostname);
  in.at("domainname").read(out.domainname);
  in.at("mounts").each([&](const Field& item) { out.mounts.push_back(read_mount(item)); });
  Field hooks = in.at("hooks");
  hooks.must_be_object();
  out.hooks.prestart = read_hooks(hooks.at("prestart"));
  out.hooks.create_runtime = read_hooks(hooks.at("createRuntime"));
  out.hooks.create_container = read_hooks(hooks.at("createContainer"));
  out.hooks.start_container = read_hooks(hooks.at("startContainer"));
  out.hooks.poststart = read_hooks(hooks.at("poststart"));
  out.hooks.poststop = read_hooks(hooks.at("poststop"));
  out.linux_ = read_linux(in.at("linux"));
  in.at("annotations").read(out.annotations);
  if (error) return std::move(*error);
  return out;
}

Result<Process> parse_process(const json::value& process) {
  std::optional<Error> error;
  Process out = read_process(Field(&process, "process", &error));
  if (error) return std::move(*error);
  return out;
}

json::value to_json(const Process& in) {
  json::object out, user{{"uid", in.user.uid}, {"gid", in.user.gid}};
  if (in.terminal) out["terminal"] = true;
  if (in.console_width && in.console_height)
    out["consoleSize"] = json::object{{"height", in.console_height}, {"width", in.console_width}};
  put(user, "umask", in.user.umask);
  put(user, "additionalGids", in.user.additional_gids);
  out["user"] = std::move(user);
  out["args"] = list(in.args);
  put(out, "env", in.env);
  out["cwd"] = in.cwd;
  if (in.capabilities) {
    json::object caps;
    put(caps, "bounding", in.capabilities->bounding);
    put(caps, "effective", in.capabilities->effective);
    put(caps, "inheritable", in.capabilities->inheritable);
    put(caps, "permitted", in.capabilities->permitted);
    put(caps, "ambient", in.capabilities->ambient);
    out["capabilities"] = std::move(caps);
  }
  json::array rlimits;
  for (const Rlimit& limit : in.rlimits)
    rlimits.push_back(json::object{{"type", limit.type}, {"hard", limit.hard}, {"soft", limit.soft}});
  if (!rlimits.empty()) out["rlimits"] = std::move(rlimits);
  if (in.no_new_privileges) out["noNewPrivileges"] = true;
  put(out, "apparmorProfile", in.apparmor_profile);
  put(out, "selinuxLabel", in.selinux_label);
  put(out, "oomScoreAdj", in.oom_score_adj);
  return out;
}

json::value to_json(const Spec& in) {
  json::object out{{"ociVersion", in.version}, {"process", to_json(in.process)}};
  json::object root{{"path", in.root.path}};
  if (in.root.readonly) root["readonly"] = true;
  out["root"] = std::move(root);
  put(out, "hostname", in.hostname);
  put(out, "domainname", in.domainname);
  json::array mounts;
  for (const Mount& mount : in.mounts) {
    json::object item{{"destination", mount.destination}};
    put(item, "type", mount.type);
    put(item, "source", mount.source);
    put(item, "options", mount.options);
    mounts.push_back(std::move(item));
  }
  if (!mounts.empty()) out["mounts"] = std::move(mounts);
  json::object hooks;
  for (auto [name, list] :
       {std::pair("prestart", &in.hooks.prestart), std::pair("createRuntime", &in.hooks.create_runtime),
        std::pair("createContainer", &in.hooks.create_container),
        std::pair("startContainer", &in.hooks.start_container), std::pair("poststart", &in.hooks.poststart),
        std::pair("poststop", &in.hooks.poststop)})
    if (!list->empty()) hooks[name] = write_hooks(*list);
  put(out, "hooks", std::move(hooks));
  out["linux"] = write_linux(in.linux_);
  put(out, "annotations", text_map(in.annotations));
  return out;
}

}  // namespace coracle::oci
