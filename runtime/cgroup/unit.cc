// SPDX-License-Identifier: Apache-2.0
// See unit.h.
#include "runtime/cgroup/unit.h"

#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "runtime/cgroup/hierarchy.h"

namespace coracle::cgroup {
namespace {

constexpr uint64_t kSecond = 1000000;  // in microseconds

// "0-2,9" as a bit mask; the lowest bit of the first byte is 0.
std::optional<std::vector<uint8_t>> bits_of(std::string_view list) {
  std::vector<uint8_t> out;
  for (std::string_view part : split(list, ',')) {
    auto ends = split(trim(part), '-');
    auto first = parse_number<uint32_t>(ends.front()), last = parse_number<uint32_t>(ends.back());
    if (ends.size() > 2 || !first || !last || *last < *first || *last >= kProcessorsMax) return std::nullopt;
    out.resize(std::max<size_t>(out.size(), *last / 8 + 1));
    for (uint32_t each = *first; each <= *last; ++each) out[each / 8] |= uint8_t(1 << each % 8);
  }
  return out;
}

using Properties = std::vector<Property>;

void add_quota(std::string_view value, Properties& to) {  // "max 100000", "5000"
  auto words = split(trim(value), ' ');
  auto quota = parse_limit(words.front()), period = words.size() > 1 ? parse_limit(words[1]) : 100000;
  if (!quota || !period || *period == 0 || *period > kSecond || (*quota != kUnlimited && *quota > kUnlimited / kSecond)) return;
  uint64_t per_second = kUnlimited;
  if (*quota != kUnlimited) {
    // systemd stores whole percents in its unit file, and reads them after a reload: rounded up, so that the quota is not
    // reduced.
    constexpr uint64_t kPercent = kSecond / 100;
    per_second = (*quota * kSecond / *period + kPercent - 1) / kPercent * kPercent;
  }
  to.push_back({"CPUQuotaPeriodUSec", *period, true});
  to.push_back({"CPUQuotaPerSecUSec", per_second, true});
}

void add_limit(const Setting& setting, Properties& to) {
  static const std::map<std::string, const char*> kAmounts = {{"memory.max", "MemoryMax"},
                                                              {"memory.low", "MemoryLow"},
                                                              {"memory.min", "MemoryMin"},
                                                              {"memory.high", "MemoryHigh"},
                                                              {"pids.max", "TasksMax"},
                                                              {"memory.swap.max", "MemorySwapMax"},
                                                              {"memory.zswap.max", "MemoryZSwapMax"},
                                                              {"cpu.weight", "CPUWeight"}};
  static const std::map<std::string, const char*> kSets = {{"cpuset.cpus", "AllowedCPUs"}, {"cpuset.mems", "AllowedMemoryNodes"}};
  if (auto known = kAmounts.find(setting.file); known != kAmounts.end()) {
    auto value = parse_limit(setting.value);
    if (value && setting.file == "pids.max") value = std::max<uint64_t>(*value, 1);  // 0 from unified is out of its range
    if (value) to.push_back({known->second, *value, true});
  } else if (auto set = kSets.find(setting.file); set != kSets.end()) {
    if (auto bits = bits_of(setting.value)) to.push_back({set->second, std::move(*bits), true});
  } else if (setting.file == "cpu.max") {
    add_quota(setting.value, to);
  } else if (setting.file == "cpu.idle" && setting.value == "1") {
    to.push_back({"CPUWeight", uint64_t(0), true});
  } else if (setting.file == "memory.oom.group") {
    to.push_back({"OOMPolicy", std::string(setting.value == "1" ? "kill" : "continue"), true});
  }
  // "default 50" or "50"; weights of single devices are not passed to systemd.
  std::string_view weight = setting.file == "io.weight" ? std::string_view(setting.value) : std::string_view(setting.other_value);
  if (setting.file != "io.weight" && setting.other_file != "io.weight") return;
  if (weight.starts_with("default ")) weight.remove_prefix(8);
  if (auto value = parse_number<uint64_t>(weight)) to.push_back({"IOWeight", *value, true});
}

// ---- annotations: a subset of GVariant's text format ----

Error invalid_property(const std::string& name, const std::string& text) {
  return Error(Code::invalid, std::string("annotations.") + kPropertyPrefix + name + ": " + quoted(text) +
                                  " is no value: true, 'text', ['a', 'b'], 5, uint64 5");
}

// Removes one quoted string from the front of `text` and returns it.
std::optional<std::string> take_string(std::string_view& text) {
  text = trim(text);
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return std::nullopt;
  const char mark = text[0];
  std::string out;
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == mark) {
      text = trim(text.substr(at + 1));
      return out;
    }
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    out += text[at];
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> strings_of(std::string_view text) {  // ['a', 'b']
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = trim(text.substr(1, text.size() - 2));
  std::vector<std::string> out;
  while (!text.empty()) {
    auto each = take_string(text);
    if (!each) return std::nullopt;
    out.push_back(std::move(*each));
    if (text.empty()) break;
    if (text[0] != ',') return std::nullopt;
    text = trim(text.substr(1));
    if (text.empty()) return std::nullopt;
  }
  return out;
}

template <typename T>
std::optional<Property::Value> number(std::string_view text, bool is_seconds) {
  auto value = parse_number<T>(trim(text));
  if (!value) return std::nullopt;
  if (!is_seconds) return Property::Value(*value);
  // Seconds are sent over the bus as unsigned 64-bit microseconds.
  if (*value < T(0) || uint64_t(*value) > kUnlimited / kSecond) return std::nullopt;
  return Property::Value(uint64_t(*value) * kSecond);
}

std::optional<Property::Value> number_of(std::string_view text, bool is_seconds) {
  if (text.starts_with("uint64 ")) return number<uint64_t>(text.substr(7), is_seconds);
  if (text.starts_with("int64 ")) return number<int64_t>(text.substr(6), is_seconds);
  if (text.starts_with("uint32 ")) return number<uint32_t>(text.substr(7), is_seconds);
  if (text.starts_with("int32 ")) return number<int32_t>(text.substr(6), is_seconds);
  return number<int32_t>(text, is_seconds);
}

}  // namespace

std::vector<Property> limit_properties(const std::vector<Setting>& settings) {
  Properties out;
  for (const Setting& setting : settings) add_limit(setting, out);
  return out;
}

Result<Property> parse_property(const std::string& name, const std::string& text) {
  // systemd's property is "TimeoutStopUSec" where unit files use "TimeoutStopSec".
  bool is_seconds = name.size() > 4 && name.ends_with("Sec") && !name.ends_with("USec");
  std::string own = is_seconds ? name.substr(0, name.size() - 3) + "USec" : name;
  bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  if (!is_name) return Error(Code::invalid, std::string("annotations.") + kPropertyPrefix + name + ": no name of a property");
  std::string_view value = trim(text);
  if (value == "true" || value == "false") return Property{own, value == "true"};
  if (auto list = strings_of(value)) return Property{own, std::move(*list)};
  std::string_view rest = value;
  if (auto string = take_string(rest); string && rest.empty()) return Property{own, std::move(*string)};
  if (auto parsed = number_of(value, is_seconds)) return Property{own, std::move(*parsed)};
  return invalid_property(name, text);
}

Result<std::vector<Property>> scope_properties(const Place& place, int pid, const std::string& description,
                                               const std::vector<Setting>& settings,
                                               const std::map<std::string, std::string>& annotations) {
  Properties out = {
      {"Description", description},
      {"Slice", place.slice},
      {"Delegate", true},
      // The engine stops the container, not systemd's shutdown order.
      {"DefaultDependencies", false},
      {"PIDs", std::vector<uint32_t>{uint32_t(pid)}},
      {"MemoryAccounting", true},
      {"CPUAccounting", true},
      {"IOAccounting", true},
      {"TasksAccounting", true},
      {"CollectMode", std::string("inactive-or-failed")},  // a killed scope is not kept as failed
  };
  // Annotations may not change the slice or the limits, or add other processes (CVE-2024-3154).
  std::set<std::string> settled = {"Slice", "Delegate", "PIDs"};
  for (Property& each : limit_properties(settings)) {
    settled.insert(each.name);
    out.push_back(std::move(each));
  }
  for (const auto& [key, text] : annotations) {
    if (!key.starts_with(kPropertyPrefix)) continue;
    Property given = TRY(parse_property(key.substr(std::string_view(kPropertyPrefix).size()), text));
    if (settled.count(given.name))
      return Error(Code::forbidden, "annotations." + key + ": it is settled by the rest of the configuration");
    std::erase_if(out, [&](const Property& each) { return each.name == given.name; });
    out.push_back(std::move(given));
  }
  return out;
}

}  // namespace coracle::cgroup
