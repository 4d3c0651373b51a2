// SPDX-License-Identifier: Apache-2.0
// See stats.h.
#include "runtime/cgroup/stats.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::cgroup {
namespace {

// The text of a file; empty if it does not exist. Other failures mean that the cgroup has been removed; reading cpu.stat reports
// that.
std::string text_of(const Fd& cgroup, const std::string& file) {
  auto text = sys::read_file_at(cgroup, file);
  return text ? std::move(*text) : std::string();
}

uint64_t amount(std::string_view text) { return parse_limit(trim(text)).value_or(0); }

std::map<std::string, uint64_t> flat(std::string_view text) {  // "key value" lines
  std::map<std::string, uint64_t> out;
  for (std::string_view line : split(text, '\n'))
    if (size_t space = line.find(' '); space != line.npos)
      out[std::string(line.substr(0, space))] = amount(line.substr(space + 1));
  return out;
}

// Lines "word key=value key=value": calls each(word, key, value).
template <typename Each>
void nested(std::string_view text, Each each) {
  for (std::string_view line : split(text, '\n')) {
    auto words = split(trim(line), ' ');
    for (size_t i = 1; i < words.size(); ++i)
      if (size_t equals = words[i].find('='); equals != words[i].npos)
        each(words[0], words[i].substr(0, equals), words[i].substr(equals + 1));
  }
}

std::optional<Pressure> read_pressure(const Fd& cgroup, const char* file) {
  std::string text = text_of(cgroup, file);
  if (text.empty()) return std::nullopt;  // disabled, or not supported by the kernel
  Pressure out;
  nested(text, [&](std::string_view kind, std::string_view key, std::string_view value) {
    PressureLine& line = kind == "full" ? out.full : out.some;
    if (key == "total") line.total_us = amount(value);
    double average = std::strtod(std::string(value).c_str(), nullptr);
    if (key == "avg10") line.avg10 = average;
    if (key == "avg60") line.avg60 = average;
    if (key == "avg300") line.avg300 = average;
  });
  return out;
}

Result<CpuStats> read_cpu(const Fd& cgroup) {
  std::string text = TRY(sys::read_file_at(cgroup, "cpu.stat"));  // exists with and without the controller
  auto stat = flat(text);
  CpuStats out;
  out.usage_ns = stat["usage_usec"] * 1000;
  out.user_ns = stat["user_usec"] * 1000;
  out.system_ns = stat["system_usec"] * 1000;
  out.periods = stat["nr_periods"];
  out.throttled_periods = stat["nr_throttled"];
  out.throttled_ns = stat["throttled_usec"] * 1000;
  out.bursts = stat["nr_bursts"];
  out.burst_ns = stat["burst_usec"] * 1000;
  out.pressure = read_pressure(cgroup, "cpu.pressure");
  return out;
}

MemoryUse read_use(const Fd& cgroup, const std::string& prefix) {  // "memory", "memory.swap"
  MemoryUse out;
  out.current = amount(text_of(cgroup, prefix + ".current"));
  out.limit = amount(text_of(cgroup, prefix + ".max"));
  out.peak = amount(text_of(cgroup, prefix + ".peak"));
  return out;
}

MemoryStats read_memory(const Fd& cgroup) {
  MemoryStats out;
  out.memory = read_use(cgroup, "memory");
  out.swap = read_use(cgroup, "memory.swap");
  out.stat = flat(text_of(cgroup, "memory.stat"));
  auto events = flat(text_of(cgroup, "memory.events"));
  out.memory.failures = events["max"];
  out.oom_kills = events["oom_kill"];
  out.swap.failures = flat(text_of(cgroup, "memory.swap.events"))["max"];
  out.pressure = read_pressure(cgroup, "memory.pressure");
  return out;
}

IoStats read_io(const Fd& cgroup) {
  IoStats out;
  nested(text_of(cgroup, "io.stat"), [&](std::string_view device, std::string_view key, std::string_view value) {
    auto numbers = split(device, ':');
    static const std::map<std::string_view, std::pair<const char*, bool>> kKeys = {
        {"rbytes", {"Read", true}}, {"wbytes", {"Write", true}}, {"dbytes", {"Discard", true}},
        {"rios", {"Read", false}},  {"wios", {"Write", false}},  {"dios", {"Discard", false}}};
    auto known = kKeys.find(key);
    if (numbers.size() != 2 || known == kKeys.end()) return;
    auto& [op, is_bytes] = known->second;
    (is_bytes ? out.bytes : out.operations).push_back({amount(numbers[0]), amount(numbers[1]), op, amount(value)});
  });
  out.pressure = read_pressure(cgroup, "io.pressure");
  return out;
}

// From the existing files: "hugetlb.2MB.current".
std::map<std::string, MemoryUse> read_hugepages(const Fd& cgroup, const std::vector<sys::DirEntry>& files) {
  std::map<std::string, MemoryUse> out;
  for (const sys::DirEntry& file : files) {
    std::string_view name = file.name;
    if (!name.starts_with("hugetlb.") || !name.ends_with("B.current")) continue;
    std::string size(name.substr(8, name.size() - 8 - 8));
    std::string prefix = "hugetlb." + size;
    // If reservations are accounted, they are limited first and reported, as by runc.
    bool is_reserved = !text_of(cgroup, prefix + ".rsvd.current").empty();
    MemoryUse use = read_use(cgroup, prefix + (is_reserved ? ".rsvd" : ""));
    use.failures = flat(text_of(cgroup, prefix + ".events"))["max"];
    out[size] = use;
  }
  return out;
}

RdmaUse read_rdma(const Fd& cgroup, const char* file) {
  RdmaUse out;
  nested(text_of(cgroup, file), [&](std::string_view device, std::string_view key, std::string_view value) {
    if (key == "hca_handle") out.hca_handles[std::string(device)] = amount(value);
    if (key == "hca_object") out.hca_objects[std::string(device)] = amount(value);
  });
  return out;
}

std::map<std::string, MemoryUse> read_misc(const Fd& cgroup) {
  std::map<std::string, MemoryUse> out;
  for (const auto& [key, value] : flat(text_of(cgroup, "misc.current"))) out[key].current = value;
  for (const auto& [key, value] : flat(text_of(cgroup, "misc.max"))) out[key].limit = value;
  for (const auto& [key, value] : flat(text_of(cgroup, "misc.events")))
    if (key.ends_with(".max")) out[key.substr(0, key.size() - 4)].failures = value;
  return out;
}

std::vector<uint16_t> numbers_of(std::string_view list) {  // "0-3,7"
  std::vector<uint16_t> out;
  for (std::string_view part : split(trim(list), ',')) {
    auto ends = split(part, '-');
    auto first = parse_number<uint16_t>(ends.front()), last = parse_number<uint16_t>(ends.back());
    if (!first || !last) continue;
    for (uint32_t each = *first; each <= *last && out.size() < kProcessorsMax; ++each) out.push_back(uint16_t(each));
  }
  return out;
}

uint64_t read_pids(const Fd& cgroup) {
  std::string counted = text_of(cgroup, "pids.current");
  if (!counted.empty()) return amount(counted);
  std::string listed = text_of(cgroup, "cgroup.procs");  // without the controller; descendants are not counted
  return uint64_t(std::count(listed.begin(), listed.end(), '\n'));
}

// ---- cgroup v1 ----

// A maximum in bytes; the kernel writes "no limit" as the largest multiple of the page size.
uint64_t v1_limit(std::string_view text) {
  constexpr uint64_t kNone = uint64_t(1) << 62;
  const uint64_t limit = amount(text);
  return limit >= kNone ? kUnlimited : limit;
}

MemoryUse read_v1_use(const Fd& cgroup, const std::string& prefix) {  // "memory", "memory.memsw", "hugetlb.2MB"
  MemoryUse out;
  out.current = amount(text_of(cgroup, prefix + ".usage_in_bytes"));
  out.limit = v1_limit(text_of(cgroup, prefix + ".limit_in_bytes"));
  out.peak = amount(text_of(cgroup, prefix + ".max_usage_in_bytes"));
  out.failures = amount(text_of(cgroup, prefix + ".failcnt"));
  return out;
}

void add_v1_memory(const Fd& cgroup, MemoryStats& to) {
  to.memory = read_v1_use(cgroup, "memory");
  to.stat = flat(text_of(cgroup, "memory.stat"));
  to.stat.try_emplace("file", to.stat["cache"]);
  to.oom_kills = flat(text_of(cgroup, "memory.oom_control"))["oom_kill"];
  MemoryUse both = read_v1_use(cgroup, "memory.memsw");
  to.swap = {};
  to.swap.current = both.current > to.memory.current ? both.current - to.memory.current : 0;
  to.swap.limit = both.limit == kUnlimited || to.memory.limit == kUnlimited ? kUnlimited
                  : both.limit > to.memory.limit                            ? both.limit - to.memory.limit
                                                                            : 0;
  to.swap.failures = both.failures;
}

void add_v1_cpu(const Fd& cgroup, CpuStats& to) {
  auto stat = flat(text_of(cgroup, "cpu.stat"));
  to.periods = stat["nr_periods"];
  to.throttled_periods = stat["nr_throttled"];
  to.throttled_ns = stat["throttled_time"];
  to.bursts = stat["nr_bursts"];
  to.burst_ns = stat["burst_time"];
}

void add_v1_time(const Fd& cgroup, CpuStats& to) {
  to.usage_ns = amount(text_of(cgroup, "cpuacct.usage"));
  to.user_ns = amount(text_of(cgroup, "cpuacct.usage_user"));
  to.system_ns = amount(text_of(cgroup, "cpuacct.usage_sys"));
}

std::vector<IoEntry> read_v1_io(const Fd& cgroup, const char* file) {  // "8:0 Read 4096" lines, and totals
  std::vector<IoEntry> out;
  const std::string text = text_of(cgroup, file);
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ' ');
    auto numbers = split(words[0], ':');
    if (words.size() == 3 && numbers.size() == 2)
      out.push_back({amount(numbers[0]), amount(numbers[1]), std::string(words[1]), amount(words[2])});
  }
  return out;
}

void add_v1(const std::map<std::string, const Fd*>& v1, Stats& to) {
  auto at = [&](const char* controller) {
    auto found = v1.find(controller);
    return found == v1.end() ? nullptr : found->second;
  };
  if (const Fd* memory = at("memory")) add_v1_memory(*memory, to.memory);
  if (const Fd* cpu = at("cpu")) add_v1_cpu(*cpu, to.cpu);
  if (const Fd* time = at("cpuacct")) add_v1_time(*time, to.cpu);
  if (const Fd* pids = at("pids")) {
    to.pids = amount(text_of(*pids, "pids.current"));
    to.pids_limit = amount(text_of(*pids, "pids.max"));
  }
  if (const Fd* io = at("blkio")) {
    to.io.bytes = read_v1_io(*io, "blkio.throttle.io_service_bytes_recursive");
    to.io.operations = read_v1_io(*io, "blkio.throttle.io_serviced_recursive");
  }
  if (const Fd* set = at("cpuset")) {
    to.cpus = numbers_of(text_of(*set, "cpuset.effective_cpus"));
    to.mems = numbers_of(text_of(*set, "cpuset.effective_mems"));
  }
  const Fd* hugepages = at("hugetlb");
  auto files = hugepages ? sys::list(*hugepages) : Result<std::vector<sys::DirEntry>>(std::vector<sys::DirEntry>());
  for (const sys::DirEntry& file : files ? *files : std::vector<sys::DirEntry>()) {
    constexpr std::string_view kEnd = ".usage_in_bytes";
    std::string_view name = file.name;
    if (!name.starts_with("hugetlb.") || !name.ends_with(kEnd) || name.find(".rsvd.") != name.npos) continue;
    std::string size(name.substr(8, name.size() - 8 - kEnd.size()));
    to.hugepages[size] = read_v1_use(*hugepages, "hugetlb." + size);
  }
}

// ---- as JSON ----

json::object pressure_line(const PressureLine& line) {
  return {{"avg10", line.avg10}, {"avg60", line.avg60}, {"avg300", line.avg300}, {"total", line.total_us}};
}
void put_pressure(json::object& to, const std::optional<Pressure>& pressure) {
  if (pressure) to["psi"] = json::object{{"some", pressure_line(pressure->some)}, {"full", pressure_line(pressure->full)}};
}
json::object use_object(const MemoryUse& use) {
  return {{"limit", use.limit}, {"usage", use.current}, {"max", use.peak}, {"failcnt", use.failures}};
}

json::object cpu_object(const CpuStats& cpu) {
  json::object out{
      {"usage", json::object{{"total", cpu.usage_ns}, {"kernel", cpu.system_ns}, {"user", cpu.user_ns}}},
      {"throttling",
       json::object{{"periods", cpu.periods}, {"throttledPeriods", cpu.throttled_periods}, {"throttledTime", cpu.throttled_ns}}}};
  if (cpu.bursts) out["burst"] = json::object{{"periods", cpu.bursts}, {"time", cpu.burst_ns}};
  put_pressure(out, cpu.pressure);
  return out;
}

json::object memory_object(const MemoryStats& memory) {
  json::object out, raw;
  for (const auto& [key, value] : memory.stat) raw[key] = value;
  // In v1's terms, as consumers expect: memory and swap together. There is no common peak.
  MemoryUse both = memory.swap;
  both.current += memory.memory.current;
  bool is_limited = memory.swap.limit != kUnlimited && memory.memory.limit != kUnlimited;
  both.limit = is_limited ? memory.swap.limit + memory.memory.limit : kUnlimited;
  both.peak = 0;
  auto file = memory.stat.find("file");
  out["cache"] = file == memory.stat.end() ? 0 : file->second;
  out["usage"] = use_object(memory.memory);
  out["swap"] = use_object(both);
  out["swapOnly"] = use_object(memory.swap);
  out["raw"] = std::move(raw);
  put_pressure(out, memory.pressure);
  return out;
}

json::array io_array(const std::vector<IoEntry>& entries) {
  json::array out;
  for (const IoEntry& each : entries)
    out.push_back(json::object{{"major", each.major}, {"minor", each.minor}, {"op", each.op}, {"value", each.value}});
  return out;
}

json::object uses_object(const std::map<std::string, MemoryUse>& uses) {
  json::object out;
  for (const auto& [key, use] : uses)
    out[key] = json::object{{"usage", use.current}, {"max", use.peak}, {"limit", use.limit}, {"failcnt", use.failures}};
  return out;
}

json::object rdma_object(const RdmaUse& use) {
  json::object out;
  auto put = [&](const std::map<std::string, uint64_t>& values, const char* key) {
    for (const auto& [device, value] : values) {
      if (!out.contains(device)) out[device] = json::object();
      out[device].as_object()[key] = value;
    }
  };
  put(use.hca_handles, "hcaHandles");
  put(use.hca_objects, "hcaObjects");
  return out;
}

}  // namespace

Result<Stats> read_stats(const Fd& cgroup, const std::map<std::string, const Fd*>& v1) {
  Stats out;
  out.cpu = TRY(read_cpu(cgroup));
  auto files = TRY(sys::list(cgroup));
  out.memory = read_memory(cgroup);
  out.pids = read_pids(cgroup);
  out.pids_limit = amount(text_of(cgroup, "pids.max"));
  out.io = read_io(cgroup);
  out.hugepages = read_hugepages(cgroup, files);
  out.rdma_current = read_rdma(cgroup, "rdma.current");
  out.rdma_limit = read_rdma(cgroup, "rdma.max");
  out.misc = read_misc(cgroup);
  out.cpus = numbers_of(text_of(cgroup, "cpuset.cpus.effective"));
  out.mems = numbers_of(text_of(cgroup, "cpuset.mems.effective"));
  add_v1(v1, out);
  return out;
}

json::object to_json(const Stats& stats) {
  json::object out;
  out["cpu"] = cpu_object(stats.cpu);
  out["cpuset"] = json::object{{"cpus", json::array(stats.cpus.begin(), stats.cpus.end())},
                               {"mems", json::array(stats.mems.begin(), stats.mems.end())}};
  out["memory"] = memory_object(stats.memory);
  // runc prints 0 for no limit.
  out["pids"] = json::object{{"current", stats.pids}, {"limit", stats.pids_limit == kUnlimited ? 0 : stats.pids_limit}};
  json::object io{{"ioServiceBytesRecursive", io_array(stats.io.bytes)}, {"ioServicedRecursive", io_array(stats.io.operations)}};
  put_pressure(io, stats.io.pressure);
  out["blkio"] = std::move(io);
  out["hugetlb"] = uses_object(stats.hugepages);
  if (auto current = rdma_object(stats.rdma_current); !current.empty())
    out["rdma"] = json::object{{"current", std::move(current)}, {"limit", rdma_object(stats.rdma_limit)}};
  if (!stats.misc.empty()) out["misc"] = uses_object(stats.misc);
  return out;
}

}  // namespace coracle::cgroup
