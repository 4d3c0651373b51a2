// SPDX-License-Identifier: Apache-2.0
// See node_object.h.
#include "daemon/node/node_object.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/object.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr size_t kImagesShownMax = 50;
constexpr size_t kImageNamesMax = 5;
constexpr Bytes kMemoryLow = 100_MiB;  // kubelet's eviction thresholds: memory.available<100Mi, nodefs.available<10%
constexpr std::chrono::seconds kNodeStatusRetry{5};

std::string first_line(const char* path) {
  std::string text = sys::read_file(path, 4096).value_or("");
  return std::string(trim(text.substr(0, text.find('\n'))));
}

std::string os_image() {
  std::string text = sys::read_file("/etc/os-release", 1 << 16).value_or("");
  for (auto line : split(text, '\n'))
    if (line.starts_with("PRETTY_NAME=")) {
      line.remove_prefix(12);
      if (line.size() >= 2 && line.front() == '"') line = line.substr(1, line.size() - 2);
      return std::string(line);
    }
  return "Linux";
}

std::string go_arch(std::string_view machine) {
  if (sizeof(void*) == 4 && machine == "aarch64") return "arm";  // as kubelet's: of the program, not of the kernel
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  if (machine.starts_with("arm")) return "arm";
  if (machine == "i686" || machine == "i386") return "386";
  return std::string(machine);
}

json::object labels_of(const AgentConfig& config, const MachineInfo& machine) {
  return {{"kubernetes.io/hostname", config.node_name},
          {"kubernetes.io/arch", machine.arch},
          {"kubernetes.io/os", "linux"},
          {"beta.kubernetes.io/arch", machine.arch},
          {"beta.kubernetes.io/os", "linux"}};
}

json::object condition(const json::value& before, std::string_view type, bool value, std::string_view reason,
                       std::string_view message, WallTime now) {
  std::string since = format_time(now);
  for (view::NodeCondition old : view::Node(before).status().conditions())
    if (old.type() == type && old.status() == (value ? "True" : "False")) since = old.last_transition_time();
  return {{"type", type},
          {"status", value ? "True" : "False"},
          {"lastHeartbeatTime", format_time(now)},
          {"lastTransitionTime", since},
          {"reason", reason},
          {"message", message}};
}

json::array conditions(const MachineInfo& machine, const runtime::Enforcement& enforcement, const json::value& before,
                       WallTime now) {
  const auto [memory_low, disk_low, processes_low] = pressure_on(machine);
  json::array list;
  list.push_back(
      condition(before, "MemoryPressure", memory_low, memory_low ? "KubeletHasInsufficientMemory" : "KubeletHasSufficientMemory",
                memory_low ? "kubelet has insufficient memory available" : "kubelet has sufficient memory available", now));
  list.push_back(condition(before, "DiskPressure", disk_low, disk_low ? "KubeletHasDiskPressure" : "KubeletHasNoDiskPressure",
                           disk_low ? "kubelet has disk pressure" : "kubelet has no disk pressure", now));
  list.push_back(
      condition(before, "PIDPressure", processes_low, processes_low ? "KubeletHasInsufficientPID" : "KubeletHasSufficientPID",
                processes_low ? "kubelet has insufficient PID available" : "kubelet has sufficient PID available", now));
  bool held = enforcement.missing.empty();
  list.push_back(condition(before, "LimitsUnenforced", !held, held ? "AllLimitsEnforced" : "ControllersMissing",
                           held ? "all resource limits can be enforced" : enforcement.missing, now));
  list.push_back(condition(before, "Ready", true, "KubeletReady", "kubelet is posting ready status", now));
  return list;
}

json::array images_shown(const std::vector<runtime::Image>& images) {
  std::vector<const runtime::Image*> sorted;
  for (const auto& image : images) sorted.push_back(&image);
  std::sort(sorted.begin(), sorted.end(),
            [](auto* a, auto* b) { return a->size != b->size ? a->size > b->size : a->id < b->id; });
  if (sorted.size() > kImagesShownMax) sorted.resize(kImagesShownMax);
  json::array list;
  for (const auto* image : sorted) {
    json::array names;
    for (const auto* from : {&image->digests, &image->references})
      for (const auto& name : *from)
        if (names.size() < kImageNamesMax) names.push_back(json::value(name));
    list.push_back(json::object{{"names", std::move(names)}, {"sizeBytes", image->size.count}});
  }
  return list;
}

// Whether the conditions differ in their heartbeat times only; heartbeats have their own interval.
bool same_but_for_heartbeats(const json::value& before, const json::value& after) {
  if (!before.is_array() || !after.is_array() || before.get_array().size() != after.get_array().size())
    return same_json(before, after);
  auto without = [](const json::value& condition) {
    json::value rest = condition;
    if (auto* object = rest.if_object()) object->erase("lastHeartbeatTime");
    return rest;
  };
  const auto &old = before.get_array(), &now = after.get_array();
  return std::equal(old.begin(), old.end(), now.begin(),
                    [&](const auto& a, const auto& b) { return same_json(without(a), without(b)); });
}

// A merge patch that replaces `there` by `wanted`, with null for the members that must be removed.
json::value in_place_of(const json::value* there, json::value wanted) {
  json::object* members = wanted.if_object();
  if (there && members && there->is_object())
    for (const auto& [name, value] : there->get_object())
      if (!members->contains(name)) (*members)[name] = nullptr;
  return wanted;
}

// The kernel's huge page pools by Kubernetes' names: ".../hugepages-2048kB" is "hugepages-2Mi".
std::map<std::string, Bytes> read_huge_pages() {
  const std::string root = "/sys/kernel/mm/hugepages";
  std::map<std::string, Bytes> found;
  auto sizes = sys::list(root);
  if (!sizes) return found;
  for (const auto& entry : *sizes) {
    std::string_view name = entry.name;
    if (!name.starts_with("hugepages-") || !name.ends_with("kB")) continue;
    auto size = parse_number<int64_t>(name.substr(10, name.size() - 12));
    auto count = parse_number<int64_t>(first_line((root + "/" + entry.name + "/nr_hugepages").c_str()));
    if (size && count) found["hugepages-" + Quantity::of(Bytes(*size << 10)).text()] = Bytes(*count * (*size << 10));
  }
  return found;
}

}  // namespace

Bytes memory_field(const std::string& meminfo, std::string_view name) {  // "MemTotal:  16303428 kB"
  size_t at = meminfo.find(name);
  if (at == meminfo.npos) return {};
  std::string_view rest = trim(std::string_view(meminfo).substr(at + name.size(), 40));
  return Bytes(parse_number<int64_t>(rest.substr(0, rest.find(' '))).value_or(0) << 10);
}

MachineInfo read_machine(const AgentConfig& config) {
  MachineInfo info;
  utsname name{};
  (void)::uname(&name);
  info.arch = go_arch(name.machine);
  info.kernel_version = config.kernel_version.empty() ? name.release : config.kernel_version;
  info.os_image = config.os_image.empty() ? os_image() : config.os_image;
  info.machine_id = config.machine_id.empty() ? first_line("/etc/machine-id") : config.machine_id;
  info.boot_id = config.boot_id.empty() ? first_line("/proc/sys/kernel/random/boot_id") : config.boot_id;
  info.system_uuid = to_lower(first_line("/sys/class/dmi/id/product_uuid"));
  if (info.system_uuid.empty()) info.system_uuid = info.machine_id;
  info.cpus = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  info.huge_pages = read_huge_pages();
  read_load(config, info);
  return info;
}

void read_load(const AgentConfig& config, MachineInfo& info) {
  std::string memory = sys::read_file("/proc/meminfo", 1 << 16).value_or("");
  info.memory = memory_field(memory, "MemTotal:");
  info.memory_available = memory_field(memory, "MemAvailable:");
  info.processes_max = parse_number<int64_t>(first_line("/proc/sys/kernel/pid_max")).value_or(0);
  auto load = first_line("/proc/loadavg");  // "0.00 0.01 0.05 1/123 4567"
  auto parts = split(load, ' ');
  if (parts.size() >= 4 && parts[3].find('/') != parts[3].npos)
    info.processes = parse_number<int64_t>(parts[3].substr(parts[3].find('/') + 1)).value_or(0);
  if (auto directory = sys::open_directory(config.state_dir)) {
    if (auto usage = sys::disk_usage(*directory)) {
      info.disk = usage->total;
      info.disk_available = usage->available;
    }
  }
}

Pressure pressure_on(const MachineInfo& info) {
  Pressure now;
  now.memory = info.memory_available.count > 0 && info.memory_available < kMemoryLow;
  now.disk = info.disk.count > 0 && info.disk_available.count < info.disk.count / 10;
  now.processes = info.processes_max > 0 && info.processes > info.processes_max * 9 / 10;
  return {now.memory || info.held.memory, now.disk || info.held.disk, now.processes || info.held.processes};
}

json::object extended_resources(const json::value& node) {
  json::object found;
  for (const auto& [name, amount] : view::Node(node).status().capacity())
    if (name.find('/') != name.npos) found[name] = amount;
  return found;
}

json::object node_capacity(const AgentConfig& config, const MachineInfo& machine, const json::object& extended) {
  json::object all{{"cpu", std::to_string(machine.cpus)},
                   {"memory", std::to_string(machine.memory.count >> 10) + "Ki"},
                   {"ephemeral-storage", std::to_string(machine.disk.count >> 10) + "Ki"},
                   {"pods", std::to_string(config.pods_max)},
                   {"hugepages-2Mi", "0"}};
  for (const auto& [name, bytes] : machine.huge_pages) all[name] = Quantity::of(bytes).text();
  for (const auto& [name, amount] : extended) all[name] = amount;
  return all;
}

json::object node_allocatable(const AgentConfig& config, const MachineInfo& machine, const json::object& extended) {
  json::object left = node_capacity(config, machine, extended);
  int64_t memory = machine.memory.count;
  for (const auto& [name, bytes] : machine.huge_pages) memory -= bytes.count;
  if (machine.pods_memory) memory = std::min(memory, machine.pods_memory->count);
  left["memory"] = std::to_string(std::max<int64_t>(memory, 0) >> 10) + "Ki";
  left["ephemeral-storage"] = std::to_string(machine.disk.count / 10 * 9);
  return left;
}

json::value make_node(const AgentConfig& config, const MachineInfo& machine) {
  json::object metadata{{"name", config.node_name}, {"labels", labels_of(config, machine)}};
  return json::object{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", std::move(metadata)}, {"spec", json::object{}}};
}

namespace {

// The single runtime, under each of its names.
json::array runtime_handlers(const AgentConfig& config) {
  json::array list;
  for (std::string_view name : kRuntimeHandlers)
    list.push_back(json::object{
        {"name", name}, {"features", json::object{{"recursiveReadOnlyMounts", true}, {"userNamespaces", config.has_own_users}}}});
  return list;
}

}  // namespace

json::object make_node_status(const AgentConfig& config, const MachineInfo& machine, const runtime::Enforcement& enforcement,
                              const std::vector<runtime::Image>& images, const json::value& before, WallTime now) {
  json::array addresses;
  for (const auto& ip : config.node_ips) addresses.push_back(json::object{{"type", "InternalIP"}, {"address", ip}});
  addresses.push_back(json::object{{"type", "Hostname"}, {"address", config.node_name}});
  json::object info{
      {"machineID", machine.machine_id}, {"systemUUID", machine.system_uuid},
      {"bootID", machine.boot_id},       {"kernelVersion", machine.kernel_version},
      {"osImage", machine.os_image},     {"containerRuntimeVersion", "coracle://" + std::string(kVersion).substr(1)},
      {"kubeletVersion", kVersion},      {"kubeProxyVersion", ""},
      {"operatingSystem", "linux"},      {"architecture", machine.arch}};
  const json::object extended = extended_resources(before);
  return {{"capacity", node_capacity(config, machine, extended)},
          {"allocatable", node_allocatable(config, machine, extended)},
          {"conditions", conditions(machine, enforcement, before, now)},
          {"addresses", std::move(addresses)},
          {"nodeInfo", std::move(info)},
          {"images", images_shown(images)},
          {"runtimeHandlers", runtime_handlers(config)}};
}

NodeObject::NodeObject(const AgentConfig& config, Client& client, runtime::Runtime& runtime, const Clock& clock,
                       ReadLoad read_load)
    : config_(config),
      client_(client),
      runtime_(runtime),
      clock_(clock),
      read_load_(std::move(read_load)),
      machine_(read_machine_info()) {}

MachineInfo NodeObject::read_machine_info() const {
  MachineInfo info = read_machine(config_);
  info.pods_memory = runtime_.memory_bound();
  return info;
}

json::object NodeObject::allocatable() const {
  json::object extended = extended_.with([](const json::object& known) { return known; });
  return machine_.with([&](const MachineInfo& machine) { return node_allocatable(config_, machine, extended); });
}

Result<void> NodeObject::refresh() {
  MachineInfo machine = read_machine_info();
  if (read_load_) read_load_(machine);
  hold(machine);
  machine_.with([&](MachineInfo& known) { known = machine; });
  auto found = client_.get(kNode, {"", config_.node_name});
  if (!found && found.error().code() == Code::not_found) found = client_.create(kNode, make_node(config_, machine));
  ObjectPtr node = TRY(std::move(found).wrap("register the node"));
  extended_.with([&](json::object& known) { known = extended_resources(node->json()); });
  json::object missing;
  for (const auto& [name, value] : labels_of(config_, machine))
    if (node->label(name) != std::string_view(value.get_string())) missing[name] = value;
  if (!missing.empty()) {
    json::object labels{{"metadata", json::object{{"labels", std::move(missing)}}}};
    node = TRY(client_.patch(kNode, node->key(), PatchType::merge, labels, {.field_manager = "coracled"}).wrap("label the node"));
  }
  json::object wanted =
      make_node_status(config_, machine, runtime_.enforcement(), runtime_.images().list(), node->json(), clock_.now());
  json::object changed;
  for (const auto& [name, value] : wanted) {
    const json::value* there = view::Node(*node).status().members().if_contains(name);
    bool both_empty = !there && value.is_array() && value.get_array().empty();
    bool same = there && (name == "conditions" ? same_but_for_heartbeats(*there, value) : same_json(*there, value));
    if (!both_empty && !same) changed[name] = in_place_of(there, value);
  }
  SteadyTime now = clock_.steady();
  bool beats = !told_at_ || now >= *told_at_ + kHeartbeat;
  told_ = pressure_on(machine);
  if (changed.empty() && !beats) return {};
  changed["conditions"] = wanted["conditions"];
  json::object patch{{"status", std::move(changed)}};
  TRY(client_.patch(kNode, node->key(), PatchType::merge, patch, {.subresource = "status", .field_manager = "coracled"})
          .wrap("write the node's status"));
  told_at_ = now;
  return {};
}

// Marks pressure observed within kPressureHeld. Without that, a node whose pressure fluctuates would be tainted, and its pods
// evicted, every few seconds.
void NodeObject::hold(MachineInfo& info) {
  SteadyTime now = clock_.steady();
  info.held = {};
  Pressure seen = pressure_on(info);
  auto held = [&](bool is_seen, std::optional<SteadyTime>& last) {
    if (is_seen) last = now;
    return last && now < *last + kPressureHeld;
  };
  info.held = {held(seen.memory, memory_low_at_), held(seen.disk, disk_low_at_), held(seen.processes, processes_low_at_)};
}

Result<void> NodeObject::renew_lease() {
  constexpr const char* kLeases = "kube-node-lease";
  std::string now = format_micro_time(clock_.now());
  json::object spec{{"holderIdentity", config_.node_name}, {"leaseDurationSeconds", kLeaseDuration.count()}, {"renewTime", now}};
  auto patched = client_.patch(kLease, {kLeases, config_.node_name}, PatchType::merge, json::object{{"spec", spec}},
                               {.field_manager = "coracled"});
  if (patched) return {};
  if (patched.error().code() != Code::not_found) return patched.take_error().wrap("renew the node's lease");
  json::object metadata{{"namespace", kLeases}, {"name", config_.node_name}};
  if (auto node = client_.get(kNode, {"", config_.node_name}))  // deleted together with the Node
    metadata["ownerReferences"] =
        json::array{json::object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", config_.node_name}, {"uid", (*node)->uid()}}};
  TRY(client_
          .create(kLease, json::object{{"apiVersion", "coordination.k8s.io/v1"},
                                       {"kind", "Lease"},
                                       {"metadata", std::move(metadata)},
                                       {"spec", std::move(spec)}})
          .wrap("make the node's lease"));
  return {};
}

Result<void> NodeObject::housekeep() {
  News news = news_.with([](News& news) { return std::exchange(news, {}); });
  if (news.clock_set) told_at_.reset(), renewed_at_.reset();
  SteadyTime now = clock_.steady();
  refresh_due_ |= news.touched || !told_at_ || now >= *told_at_ + kHeartbeat;
  if (!refresh_due_) {
    MachineInfo machine = machine_.with([](const MachineInfo& known) { return known; });
    read_load_ ? read_load_(machine) : read_load(config_, machine);
    hold(machine);
    refresh_due_ = told_ != pressure_on(machine) || machine.pods_memory != runtime_.memory_bound();
  }
  if (refresh_due_) TRY(refresh());
  refresh_due_ = false;
  if (renewed_at_ && now < *renewed_at_ + kLeaseRenewal) return {};
  TRY(renew_lease());
  renewed_at_ = now;
  return {};
}

void NodeObject::run(std::stop_token stop, const std::function<void()>& beside) {
  while (!stop.stop_requested()) {
    auto kept = housekeep();
    if (!kept) log_warning("node", kept.error().text());
    if (beside) beside();
    std::chrono::nanoseconds rest = kNodeStatusRetry;
    if (kept)  // an early pass does not delay the next renewal
      rest = std::clamp<std::chrono::nanoseconds>(*renewed_at_ + kLeaseRenewal - clock_.steady(), {}, kHousekeeping);
    auto until = std::chrono::steady_clock::now() + rest;
    (void)news_.wait_until(
        stop, until, [](const News& news) { return news.touched; }, [](const News& news) { return news.touched; });
  }
}

void NodeObject::node_changed(const json::value& node) {
  const json::object extended = extended_resources(node);
  if (extended_.with([&](const json::object& known) { return !same_json(known, extended); })) touch();
}

void NodeObject::touch() {
  news_.with([](News& news) { news.touched = true; });
  news_.notify();
}

void NodeObject::clock_was_set() {
  news_.with([](News& news) { news.touched = news.clock_set = true; });
  news_.notify();
}

}  // namespace coracle::node
