// SPDX-License-Identifier: Apache-2.0
// See records.h.
#include "runtime/container/records.h"

#include <utility>

#include "runtime/base/json.h"
#include "runtime/oci/parse.h"
#include "runtime/sys/file.h"

namespace coracle::runtime {
namespace {

constexpr const char* kSandboxFile = "sandbox.json";
constexpr std::string_view kContainerPrefix = "c-", kSuffix = ".json";

std::string text(const json::value& in, std::string_view name) { return std::string(get_string(in, name)); }

std::string container_file(const std::string& id) { return std::string(kContainerPrefix) + id + std::string(kSuffix); }

json::array write_mappings(const std::vector<oci::IdMapping>& mappings) {
  json::array out;
  for (const oci::IdMapping& map : mappings)
    out.push_back(json::object{{"containerID", map.container_id}, {"hostID", map.host_id}, {"size", map.size}});
  return out;
}

// Strict: a process in a pod with a user namespace must never run in the host's.
Result<std::vector<oci::IdMapping>> parse_mappings(const json::value& in, std::string_view name) {
  std::vector<oci::IdMapping> out;
  const json::value* list = find(in, name);
  if (!list) return out;
  for (const json::value& item : get_array(in, name)) {
    const int64_t inside = get_int(item, "containerID", -1), outside = get_int(item, "hostID", -1), size = get_int(item, "size");
    if (!std::in_range<uint32_t>(inside) || !std::in_range<uint32_t>(outside) || size < 1 || !std::in_range<uint32_t>(size))
      return Error(Code::invalid, "sandbox record is damaged: " + std::string(name));
    out.push_back({uint32_t(inside), uint32_t(outside), uint32_t(size)});
  }
  if (out.empty()) return Error(Code::invalid, "sandbox record is damaged: " + std::string(name));
  return out;
}

Result<ContainerRecord> parse_container(const std::string& content) {
  json::value in = TRY(parse_json(content));
  ContainerRecord out;
  out.id = text(in, "id");
  out.metadata = text(in, "metadata");
  out.snapshot = text(in, "snapshot");
  out.seccomp_name = text(in, "seccomp");
  const json::value* process = find(in, "process");
  if (out.id.empty() || !process) return Error(Code::invalid, "container record is damaged");
  out.process = TRY(oci::parse_process(*process));
  return out;
}

}  // namespace

Result<Records> Records::open(const std::string& state_dir) {
  Records out;
  TRY(sys::make_directories(state_dir + "/sandboxes", 0700));
  out.root_ = TRY(sys::open_directory(state_dir + "/sandboxes"));
  return out;
}

Result<std::vector<std::string>> Records::list() const {
  auto entries = TRY(sys::list(root_));
  std::vector<std::string> out;
  for (const sys::DirEntry& entry : entries)
    if (entry.type == 4 /* DT_DIR */) out.push_back(entry.name);
  return out;
}

Result<void> Records::write(const SandboxRecord& record) const {
  auto made = sys::make_directory_at(root_, record.id, 0700);
  if (!made && made.error().code() != Code::already_exists) return made.take_error();
  Fd dir = TRY(sys::open_at(root_, record.id, O_RDONLY | O_DIRECTORY));
  json::object out{{"id", record.id},
                   {"metadata", record.metadata},
                   {"boot", record.boot_id},
                   {"cgroup", record.cgroup},
                   {"created", record.created_ns},
                   {"launcher", record.launcher},
                   {"hostNetwork", record.host_network},
                   {"hostIPC", record.host_ipc},
                   {"hostPID", record.host_pid},
                   {"shareProcessNamespace", record.shared_pid}};
  if (!record.uid_mappings.empty()) out["uidMappings"] = write_mappings(record.uid_mappings);
  if (!record.gid_mappings.empty()) out["gidMappings"] = write_mappings(record.gid_mappings);
  return sys::replace_file_at(dir, kSandboxFile, to_text(out), 0600, sys::Durability::volatile_);
}

Result<SandboxRecord> Records::read(const std::string& id) const {
  std::string content = TRY(sys::read_file_at(root_, id + "/" + kSandboxFile));
  json::value in = TRY(parse_json(content));
  SandboxRecord out;
  out.id = text(in, "id");
  out.metadata = text(in, "metadata");
  out.boot_id = text(in, "boot");
  out.cgroup = text(in, "cgroup");
  out.created_ns = get_int(in, "created");
  out.launcher = int(get_int(in, "launcher", 1));
  out.host_network = get_bool(in, "hostNetwork");
  out.host_ipc = get_bool(in, "hostIPC");
  out.host_pid = get_bool(in, "hostPID");
  out.shared_pid = get_bool(in, "shareProcessNamespace");
  out.uid_mappings = TRY(parse_mappings(in, "uidMappings"));
  out.gid_mappings = TRY(parse_mappings(in, "gidMappings"));
  if (out.uid_mappings.empty() != out.gid_mappings.empty()) return Error(Code::invalid, "sandbox record is damaged: uidMappings");
  if (out.id != id || out.cgroup.empty()) return Error(Code::invalid, "sandbox record is damaged");
  return out;
}

Result<void> Records::remove(const std::string& id) const { return sys::remove_tree(root_, id); }

Result<void> Records::write(const std::string& sandbox_id, const ContainerRecord& record) const {
  Fd dir = TRY(sys::open_at(root_, sandbox_id, O_RDONLY | O_DIRECTORY));
  json::object out{{"id", record.id}, {"metadata", record.metadata}, {"process", oci::to_json(record.process)}};
  if (!record.snapshot.empty()) out["snapshot"] = record.snapshot;
  if (!record.seccomp_name.empty()) out["seccomp"] = record.seccomp_name;
  return sys::replace_file_at(dir, container_file(record.id), to_text(out), 0600, sys::Durability::volatile_);
}

Result<std::vector<ContainerRecord>> Records::containers(const std::string& sandbox_id) const {
  Fd dir = TRY(sys::open_at(root_, sandbox_id, O_RDONLY | O_DIRECTORY));
  auto entries = TRY(sys::list(dir));
  std::vector<ContainerRecord> out;
  for (const sys::DirEntry& entry : entries) {
    if (!entry.name.starts_with(kContainerPrefix) || !entry.name.ends_with(kSuffix)) continue;
    std::string content = TRY(sys::read_file_at(dir, entry.name));
    auto record = parse_container(content);
    if (record) out.push_back(std::move(*record));
  }
  return out;
}

Result<void> Records::remove(const std::string& sandbox_id, const std::string& container_id) const {
  auto dir = sys::open_at(root_, sandbox_id, O_RDONLY | O_DIRECTORY);
  if (!dir) return {};
  auto removed = sys::unlink_at(*dir, container_file(container_id));
  if (!removed && removed.error().code() != Code::not_found) return removed.take_error();
  return {};
}

}  // namespace coracle::runtime
