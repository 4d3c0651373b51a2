// SPDX-License-Identifier: Apache-2.0
// See config.h. One table defines how each field is read; it also serves to detect unknown fields.
#include "daemon/config.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

#include "daemon/registries_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/quantity.h"
#include "store/object/yaml.h"
#include "store/object/yaml_lines.h"

namespace coracle {
namespace {

using Read = std::function<Result<void>(Config&, const json::value&)>;

Error wrong(std::string_view want, const json::value& got) {
  return Error(Code::invalid, "must be " + std::string(want) + ", is " + to_text(got));
}

Read text(std::string Config::*member) {
  return [member](Config& config, const json::value& value) -> Result<void> {
    if (!value.is_string()) return wrong("text", value);
    config.*member = value.get_string();
    return {};
  };
}

Read path(std::string Config::*member) {
  return [member](Config& config, const json::value& value) -> Result<void> {
    if (!value.is_string() || !value.get_string().starts_with('/')) return wrong("an absolute path", value);
    config.*member = value.get_string();
    return {};
  };
}

Result<std::vector<std::string>> texts_of(const json::value& value) {
  const json::array* list = value.if_array();
  if (!list) return wrong("a list of texts", value);
  std::vector<std::string> texts;
  for (const auto& item : *list) {
    if (!item.is_string()) return wrong("a list of texts", value);
    texts.emplace_back(item.get_string());
  }
  return texts;
}

Read texts(std::vector<std::string> Config::*member) {
  return [member](Config& config, const json::value& value) -> Result<void> {
    config.*member = TRY(texts_of(value));
    return {};
  };
}

Read flag(bool Config::*member) {
  return [member](Config& config, const json::value& value) -> Result<void> {
    if (!value.is_bool()) return wrong("true or false", value);
    config.*member = value.get_bool();
    return {};
  };
}

Result<int64_t> number_of(const json::value& value, int64_t first, int64_t last) {
  std::optional<int64_t> number;
  if (value.is_int64()) number = value.get_int64();
  if (!number || *number < first || *number > last)
    return wrong("a number from " + std::to_string(first) + " to " + std::to_string(last), value);
  return *number;
}

Read percent(int Config::*member) {
  return [member](Config& config, const json::value& value) -> Result<void> {
    int64_t number = TRY(number_of(value, 0, 100));
    config.*member = int(number);
    return {};
  };
}

// A duration such as "2m" or "30s": whole seconds, at most an hour.
Read seconds(int Config::*member) {
  return [member](Config& config, const json::value& value) -> Result<void> {
    constexpr std::chrono::seconds kMax{3600};
    auto span = value.is_string() ? parse_duration(value.get_string()) : Error(Code::invalid, "no text");
    if (!span || *span < std::chrono::seconds(0) || *span > kMax || *span % std::chrono::seconds(1) != std::chrono::seconds(0))
      return wrong("a duration of whole seconds like \"30s\" or \"2m\", one hour at the most", value);
    config.*member = int(std::chrono::duration_cast<std::chrono::seconds>(*span).count());
    return {};
  };
}

// Megabytes as a number or a quantity: "100", "100Mi".
Result<int> megabytes_of(const json::value& value, int64_t first, int64_t last) {
  constexpr int64_t kMegabyte = 1 << 20;
  std::optional<int64_t> megabytes;
  if (value.is_int64()) megabytes = value.get_int64();
  if (value.is_string()) {
    std::string_view text(value.get_string());
    megabytes = parse_number<int64_t>(text);
    if (auto quantity = Quantity::parse(text); quantity && !megabytes)
      megabytes = quantity->value() / kMegabyte + (quantity->value() % kMegabyte > 0);
  }
  if (!megabytes || *megabytes < first || *megabytes > last)
    return wrong("a number of megabytes from " + std::to_string(first) + " to " + std::to_string(last) +
                     ", or a quantity of bytes such as \"256Mi\"",
                 value);
  return int(*megabytes);
}

Result<void> read_node_ports(Config& config, const json::value& value) {
  auto invalid = [&] { return wrong("a range of ports like \"30000-32767\"", value); };
  if (!value.is_string()) return invalid();
  std::string_view range(value.get_string());
  size_t dash = range.find('-');
  if (dash == range.npos) return invalid();
  auto first = parse_number<uint16_t>(range.substr(0, dash)), last = parse_number<uint16_t>(range.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last) return invalid();
  config.node_port_first = *first;
  config.node_port_last = *last;
  return {};
}

Result<void> read_mirrors(Config& config, const json::value& value) {
  const json::object* map = value.if_object();
  // Errors are without the values, in which a password may stand.
  if (!map) return Error(Code::invalid, "must be a map of registries to lists of URLs");
  std::map<std::string, std::vector<std::string>> mirrors;
  for (const auto& [name, urls] : *map) {
    const std::string registry(name);
    auto list = texts_of(urls);
    if (!list) return Error(Code::invalid, shown_path({registry}) + ": must be a list of URLs");
    for (const std::string& url : *list)
      if (std::string fault = registry_url_fault(url); !fault.empty())
        return Error(Code::invalid, shown_path({registry}) + ": " + fault);
    mirrors[registry] = *std::move(list);
  }
  config.mirrors = std::move(mirrors);
  return {};
}

Result<void> read_volume_dirs(Config& config, const json::value& value) {
  std::vector<std::string> list = TRY(texts_of(value));
  for (const std::string& one : list)
    if (!one.starts_with('/') || one.size() == 1 || one.ends_with('/'))
      return Error(Code::invalid, coracle::quoted(one) + " must be an absolute path of a directory, without a slash at its end");
  config.volume_dirs = std::move(list);
  return {};
}

Result<void> read_image_verification(Config& config, const json::value& value) {
  constexpr std::string_view kPolicies[] = {"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages",
                                            "AlwaysVerify"};
  bool known =
      value.is_string() && std::find(std::begin(kPolicies), std::end(kPolicies), value.get_string()) != std::end(kPolicies);
  if (!known) return wrong("one of NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify", value);
  config.image_verification = value.get_string();
  return {};
}

Result<void> read_image_allowlist(Config& config, const json::value& value) {
  std::vector<std::string> list = TRY(texts_of(value));
  for (const std::string& entry : list) {
    size_t star = entry.find('*'), name = entry.rfind('/') == entry.npos ? 0 : entry.rfind('/') + 1;
    bool good_star = star == entry.npos || (star + 1 == entry.size() && entry.ends_with("/*"));
    if (entry.empty() || !good_star || entry.find_first_of(":@", name) != entry.npos)
      return Error(Code::invalid, coracle::quoted(entry) +
                                      " must be a repository without tag or digest; * may stand for all below a / at its end");
  }
  config.image_verification_allowlist = std::move(list);
  return {};
}

Result<void> read_log_level(Config& config, const json::value& value) {
  static const std::map<std::string, LogLevel, std::less<>> levels = {{"error", LogLevel::error},
                                                                      {"warning", LogLevel::warning},
                                                                      {"notice", LogLevel::notice},
                                                                      {"info", LogLevel::info},
                                                                      {"debug", LogLevel::debug}};
  auto found = value.is_string() ? levels.find(std::string_view(value.get_string())) : levels.end();
  if (found == levels.end()) return wrong("one of error, warning, notice, info, debug", value);
  config.log_level = found->second;
  return {};
}

const std::map<std::string, Read, std::less<>>& fields() {
  static const std::map<std::string, Read, std::less<>> table = {
      {"nodeName", text(&Config::node_name)},
      {"nodeAddress", text(&Config::node_address)},
      {"listen", texts(&Config::listen)},
      {"port",
       [](Config& config, const json::value& value) -> Result<void> {
         int64_t port = TRY(number_of(value, 0, 65535));
         config.port = uint16_t(port);
         return {};
       }},
      {"tlsSANs", texts(&Config::tls_san)},
      {"tokenAuthFile", path(&Config::token_auth_file)},
      {"auditPolicyFile", path(&Config::audit_policy_file)},
      {"auditLogPath", path(&Config::audit_log_path)},
      {"auditLogMaxSize",
       [](Config& config, const json::value& value) -> Result<void> {
         config.audit_log_max_size = TRY(megabytes_of(value, 1, 1024));
         return {};
       }},
      {"auditLogMaxBackup",
       [](Config& config, const json::value& value) -> Result<void> {
         int64_t files = TRY(number_of(value, 0, 100));
         config.audit_log_max_backup = int(files);
         return {};
       }},
      {"stateDir", path(&Config::state_dir)},
      {"runDir", path(&Config::run_dir)},
      {"configDir", path(&Config::config_dir)},
      {"manifestsDir", path(&Config::manifests_dir)},
      {"logDir", path(&Config::log_dir)},
      {"logLinksDir", path(&Config::log_links_dir)},
      {"pauseProgram", path(&Config::pause_program)},
      {"imageProgram", path(&Config::image_program)},
      {"cgroupRoot", path(&Config::cgroup_root)},
      {"podCIDR", text(&Config::pod_cidr)},
      {"serviceCIDR", text(&Config::service_cidr)},
      {"clusterDNS", text(&Config::cluster_dns)},
      {"clusterDomain", text(&Config::cluster_domain)},
      {"nodePortRange", read_node_ports},
      {"nodeMonitorGracePeriod",
       [](Config& config, const json::value& value) -> Result<void> {
         int64_t seconds = TRY(number_of(value, 1, 86400));
         config.node_monitor_grace = int(seconds);
         return {};
       }},
      {"maxPods",
       [](Config& config, const json::value& value) -> Result<void> {
         int64_t pods = TRY(number_of(value, 1, 1000));
         config.max_pods = int(pods);
         return {};
       }},
      {"shutdownGracePeriod", seconds(&Config::shutdown_grace_period)},
      {"shutdownGracePeriodCriticalPods", seconds(&Config::shutdown_grace_period_critical_pods)},
      {"podPidsLimit",
       [](Config& config, const json::value& value) -> Result<void> {
         constexpr int64_t kPidsOfKernelMax = 4194304;  // PID_MAX_LIMIT
         config.pod_pids_limit = TRY(number_of(value, 0, kPidsOfKernelMax));
         return {};
       }},
      {"denyServiceExternalIPs", flag(&Config::deny_service_external_ips)},
      {"eventsOnDisk", flag(&Config::events_on_disk)},
      {"storeMaxSize",
       [](Config& config, const json::value& value) -> Result<void> {
         config.store_max_size = TRY(megabytes_of(value, 0, 1 << 20));
         return {};
       }},
      {"volumeDirs", read_volume_dirs},
      {"storageClasses", flag(&Config::storage_classes)},
      {"schedulerConfigFile", path(&Config::scheduler_config_file)},
      {"insecureRegistries", texts(&Config::insecure_registries)},
      {"mirrors", read_mirrors},
      {"imagesDir", path(&Config::images_dir)},
      {"imageGCHighThresholdPercent", percent(&Config::image_gc_high_percent)},
      {"imageGCLowThresholdPercent", percent(&Config::image_gc_low_percent)},
      {"imageMinimumGCAge", seconds(&Config::image_gc_least_age)},
      {"runPresentImagesOffline", flag(&Config::run_present_images_offline)},
      {"imagePullCredentialsVerificationPolicy", read_image_verification},
      {"preloadedImagesVerificationAllowlist", read_image_allowlist},
      {"logLevel", read_log_level},
  };
  return table;
}

Error at_line_of(const std::string& name, std::string_view yaml, Error error) {
  const size_t line = line_in_yaml(yaml, {name});
  return line == 0 ? std::move(error) : std::move(error).wrap("line " + std::to_string(line));
}

struct ConfigText {
  std::string path, yaml;
};

// An error about several settings together, with the place of the first of them that is set: in the last file that has it.
Error wrong_together(const std::vector<ConfigText>& texts, const std::vector<std::string>& names, const std::string& what) {
  for (const std::string& name : names)
    for (auto text = texts.rbegin(); text != texts.rend(); ++text)
      if (line_in_yaml(text->yaml, {name}) > 0) return at_line_of(name, text->yaml, Error(Code::invalid, what)).wrap(text->path);
  return Error(Code::invalid, what);
}

// Addresses for pods: without those of the network, of the gateway and for broadcasts. 0: the range cannot be read, which the
// network reports.
int64_t addresses_in(std::string_view pod_cidr) {
  auto bits = parse_number<uint32_t>(pod_cidr.substr(std::min(pod_cidr.find('/'), pod_cidr.size() - 1) + 1));
  return bits && *bits <= 30 ? (int64_t(1) << (32 - *bits)) - 3 : 0;
}

}  // namespace

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const auto& [name, read] : fields()) names.push_back(name);
  return names;
}

Result<void> apply_config(Config& config, std::string_view yaml_text) {
  std::vector<json::value> documents = TRY(parse_yaml(yaml_text));
  if (documents.empty()) return {};
  if (documents.size() > 1) return Error(Code::invalid, "more than one document");
  const json::object* object = documents.front().if_object();
  if (!object) return Error(Code::invalid, "expected fields like \"port: 6443\"");
  for (const auto& [key, value] : *object) {
    const std::string name(key);
    auto field = fields().find(name);
    if (field == fields().end()) return at_line_of(name, yaml_text, Error(Code::invalid, "unknown field " + quoted(name)));
    if (value.is_null()) continue;  // an empty value means the default
    if (auto read = field->second(config, value).wrap(name); !read) return at_line_of(name, yaml_text, read.take_error());
  }
  return {};
}

Result<Config> read_config(const std::string& path, const std::string& vendor_path) {
  Config config;
  config.path = path;
  config.vendor_path = vendor_path;
  std::vector<ConfigText> texts;
  for (const std::string& file : {vendor_path, path}) {
    auto text = sys::read_file(file);
    if (!text) {
      if (text.error().code() == Code::not_found) continue;
      return text.take_error();
    }
    TRY(apply_config(config, *text).wrap(file));
    texts.push_back({file, *std::move(text)});
  }
  if (config.shutdown_grace_period_critical_pods > config.shutdown_grace_period)
    return wrong_together(texts, {"shutdownGracePeriodCriticalPods", "shutdownGracePeriod"},
                          "shutdownGracePeriodCriticalPods: must not be longer than shutdownGracePeriod; it is " +
                              format_duration(std::chrono::seconds(config.shutdown_grace_period_critical_pods)) +
                              ", unless the settings say otherwise");
  // A smaller range is enough where pods are few, or in the network of the machine.
  const int64_t addresses = addresses_in(config.pod_cidr);
  if (config.max_pods > Config::kPodsInAnyRange && addresses > 0 && config.max_pods > addresses)
    return wrong_together(texts, {"maxPods", "podCIDR"},
                          "maxPods: " + std::to_string(config.max_pods) + " pods need a larger podCIDR: " + config.pod_cidr +
                              " has " + std::to_string(addresses) + " addresses for pods");
  if (config.image_gc_low_percent >= config.image_gc_high_percent)
    return wrong_together(texts, {"imageGCLowThresholdPercent", "imageGCHighThresholdPercent"},
                          "imageGCLowThresholdPercent: must be less than imageGCHighThresholdPercent, which is " +
                              std::to_string(config.image_gc_high_percent) + "; it is " +
                              std::to_string(config.image_gc_low_percent));
  if (!config.image_verification_allowlist.empty() && config.image_verification != "NeverVerifyAllowlistedImages")
    return wrong_together(texts, {"preloadedImagesVerificationAllowlist"},
                          "preloadedImagesVerificationAllowlist: can be set only where "
                          "imagePullCredentialsVerificationPolicy is NeverVerifyAllowlistedImages");
  return config;
}

Error at_setting(const Config& config, Error error) {
  if (config.path.empty()) return error;
  std::vector<ConfigText> texts;
  for (const std::string& file : {config.path, config.vendor_path})  // the owner's settings are used where both have one
    texts.push_back({file, sys::read_file(file).value_or("")});
  const std::string text(error.text());
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    for (end = begin; end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]));) ++end;
    const std::string word = text.substr(begin, end - begin);
    if (!fields().contains(word)) continue;
    for (const ConfigText& of : texts)
      if (line_in_yaml(of.yaml, {word}) > 0) return at_line_of(word, of.yaml, std::move(error)).wrap(of.path);
  }
  return std::move(error).wrap(config.path);
}

}  // namespace coracle
