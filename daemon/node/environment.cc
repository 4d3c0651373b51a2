// SPDX-License-Identifier: Apache-2.0
// See environment.h.
#include "daemon/node/environment.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

using Variables = std::map<std::string, std::string>;

std::string map_as_lines(const json::object& map) {  // name="value" lines, sorted, the downward API's format of maps
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : map) sorted[std::string(name)] = value.is_string() ? std::string(value.get_string()) : "";
  std::string text;
  for (const auto& [name, value] : sorted) text += (text.empty() ? "" : "\n") + name + "=" + coracle::quoted(value);
  return text;
}

// metadata.labels['name'] → name; "" when `path` does not index `field`.
std::string subscript(std::string_view path, std::string_view field) {
  std::string opening = std::string(field) + "['";
  if (!path.starts_with(opening) || !path.ends_with("']")) return "";
  return std::string(path.substr(opening.size(), path.size() - opening.size() - 2));
}

std::string first(const std::vector<std::string>& ips) { return ips.empty() ? "" : ips.front(); }

std::string env_name(std::string_view text) {  // redis-master → REDIS_MASTER
  std::string name(text);
  for (char& c : name) c = c == '-' ? '_' : c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return name;
}

// The lines of an environment file with their numbers.
class EnvFile {
 public:
  struct Entry {
    std::string_view key;
    std::string value;
  };
  explicit EnvFile(std::string_view text) : rest_(text) {}

  Result<std::optional<Entry>> next() {
    while (next_line()) {
      std::string_view line = trim(line_);
      if (line.empty() || line.front() == '#') continue;
      line = line_.substr(line_.find_first_not_of(" \t"));
      size_t equals = line.find('=');
      if (equals == line.npos) return malformed("missing '='");
      Entry entry{line.substr(0, equals), ""};
      if (entry.key.empty()) return malformed("empty variable name");
      if (entry.key.find_first_of(" \t") != entry.key.npos) return malformed("whitespace before '='");
      entry.value = TRY(value(line.substr(equals + 1)));
      return std::optional(std::move(entry));
    }
    return std::optional<Entry>();
  }

 private:
  Result<std::string> value(std::string_view text) {
    if (text.starts_with('\'')) return quoted_value(text.substr(1));
    if (text.empty() || text.front() == ' ' || text.front() == '\t') return std::string();  // as in a shell
    if (size_t comment = text.find(" #"); comment != text.npos) text = text.substr(0, comment);
    if (text.find_first_of("'\"`$\\") != text.npos) return malformed("such a value must stand in single quotes");
    return std::string(trim(text));
  }

  Result<std::string> quoted_value(std::string_view text) {
    const size_t begin = number_;
    std::string value;
    size_t end;
    while ((end = text.find('\'')) == text.npos) {
      value.append(text).append("\n");
      if (!next_line()) return Error(Code::invalid, "line " + std::to_string(begin) + ": unclosed single quote");
      text = line_;
    }
    std::string_view after = trim(text.substr(end + 1));
    if (!after.empty() && after.front() != '#') return malformed("unexpected content after closing quote");
    return value.append(text.substr(0, end));
  }

  bool next_line() {
    if (rest_.empty()) return false;
    size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    number_++;
    return true;
  }

  Error malformed(const char* why) const { return Error(Code::invalid, "line " + std::to_string(number_) + ": " + why); }

  std::string_view rest_, line_;
  size_t number_ = 0;
};

std::string string_of(const json::value& value) { return value.is_string() ? std::string(value.get_string()) : to_text(value); }

class Maker {
 public:
  Maker(view::Pod pod, view::Container container, const Lookup& lookup, const PodIdentity& identity)
      : pod_(pod), container_(container), lookup_(lookup), identity_(identity) {}

  Result<Variables> make() {
    const bool all = pod_.spec().enable_service_links_or(true);
    // The pod's own variables override those of services, and env may refer to all that were set before.
    variables_ = service_variables(lookup_.services(all), all, pod_.metadata().namespace_());
    for (view::EnvFromSource source : container_.env_from()) TRY(add_from(source));
    for (view::EnvVar entry : container_.env()) {
      std::string name(entry.name());
      bool absent = false;
      std::string value = TRY(value_of(entry, absent));
      if (absent) continue;  // an optional reference to a missing object defines no variable
      TRY(budget_.take(name.size() + value.size()));
      variables_.insert_or_assign(std::move(name), std::move(value));
    }
    return std::move(variables_);
  }

 private:
  Result<void> add_from(view::EnvFromSource source) {
    std::string prefix(source.prefix());
    if (source.has_config_map_ref()) {
      auto name = source.config_map_ref().name();
      ObjectPtr map = TRY(objects_.config_map(name));
      if (!map && source.config_map_ref().optional()) return {};
      if (!map) return Error(Code::not_found, "configmap " + quoted(name) + " not found");
      for (const auto& [key, value] : view::ConfigMap(*map).data()) TRY(add(prefix, key, string_of(value)));
    }
    if (source.has_secret_ref()) {
      auto name = source.secret_ref().name();
      ObjectPtr secret = TRY(objects_.secret(name));
      if (!secret && source.secret_ref().optional()) return {};
      if (!secret) return Error(Code::not_found, "secret " + quoted(name) + " not found");
      for (const auto& [key, value] : view::Secret(*secret).data()) {
        std::string decoded = TRY(base64_decode(string_of(value)));
        TRY(add(prefix, key, std::move(decoded)));
      }
    }
    return {};
  }

  Result<void> add(const std::string& prefix, std::string_view key, std::string value) {
    TRY(budget_.take(prefix.size() + key.size() + value.size()));
    variables_[prefix + std::string(key)] = std::move(value);
    return {};
  }

  Result<std::string> value_of(view::EnvVar entry, bool& absent) {
    view::EnvVarSource from = entry.value_from();
    if (from.members().empty()) return expand(entry.value(), variables_, budget_);
    if (from.has_field_ref()) return field_value(pod_.raw(), from.field_ref().field_path(), identity_);
    if (from.has_resource_field_ref()) return resource_of(from.resource_field_ref());
    if (from.has_config_map_key_ref()) return config_map_key(from.config_map_key_ref(), absent);
    if (from.has_secret_key_ref()) return secret_key(from.secret_key_ref(), absent);
    if (from.has_file_key_ref()) return file_key(from.file_key_ref(), absent);
    return Error(Code::invalid, "env " + quoted(entry.name()) + ": valueFrom names no source that is known here");
  }

  Result<std::string> resource_of(view::ResourceFieldSelector reference) {
    const json::value* container = &container_.raw();
    std::optional<ContainerRef> other;
    if (auto name = reference.container_name(); !name.empty()) {
      other = find_container(pod_.raw(), name);
      if (!other) return Error(Code::invalid, "container " + quoted(name) + " not found");
      container = other->spec;
    }
    return resource_value(*container, reference.resource(), reference.divisor(), identity_);
  }

  Result<std::string> config_map_key(view::ConfigMapKeySelector reference, bool& absent) {
    auto name = reference.name(), key = reference.key();
    bool optional = reference.optional();
    ObjectPtr map = TRY(objects_.config_map(name));
    if (!map) {
      absent = optional;
      if (optional) return std::string();
      return Error(Code::not_found, "configmap " + quoted(name) + " not found");
    }
    const json::value* value = view::ConfigMap(*map).data().if_contains(key);
    if (value) return string_of(*value);
    absent = optional;
    if (optional) return std::string();
    return Error(Code::not_found, "couldn't find key " + std::string(key) + " in ConfigMap " + map->key().text());
  }

  Result<std::string> secret_key(view::SecretKeySelector reference, bool& absent) {
    auto name = reference.name(), key = reference.key();
    bool optional = reference.optional();
    ObjectPtr secret = TRY(objects_.secret(name));
    if (!secret) {
      absent = optional;
      if (optional) return std::string();
      return Error(Code::not_found, "secret " + quoted(name) + " not found");
    }
    const json::value* value = view::Secret(*secret).data().if_contains(key);
    if (value) return base64_decode(string_of(*value));
    absent = optional;
    if (optional) return std::string();
    return Error(Code::not_found, "couldn't find key " + std::string(key) + " in Secret " + secret->key().text());
  }

  Result<std::string> file_key(view::FileKeySelector reference, bool& absent) {
    std::string key(reference.key()), path(reference.path());
    auto volume = reference.volume_name();
    const std::string file = "file " + quoted(path) + " of volume " + quoted(volume);
    absent = reference.optional();
    auto text = lookup_.file(volume, path);
    if (!text && text.error().code() == Code::not_found && absent) return std::string();
    if (!text) return text.take_error().wrap(file);
    TRY(files_budget_.take(text->size()));
    auto value = TRY(value_in_env_file(*text, key).wrap(file));
    if (value) absent = false;
    if (value || absent) return value.value_or("");
    return Error(Code::not_found, "environment variable key " + quoted(key) + " not found in " + file);
  }

  const view::Pod pod_;
  const view::Container container_;
  const Lookup& lookup_;
  const PodIdentity& identity_;
  TextBudget budget_{"the container's environment", kEnvironmentBytesMax};
  TextBudget files_budget_{"the files of the container's environment", kEnvFilesBytesMax};
  NamedObjects objects_{lookup_, budget_};
  Variables variables_;
};

}  // namespace

Result<std::optional<std::string>> value_in_env_file(std::string_view text, std::string_view key) {
  EnvFile file(text);
  for (;;) {
    auto entry = TRY(file.next());
    if (!entry) return std::optional<std::string>();
    if (entry->key == key) return std::optional(std::move(entry->value));
  }
}

Result<void> TextBudget::take(size_t bytes) {
  if (bytes > left_) {
    std::string most = bytes_ % (1 << 20) == 0 ? std::to_string(bytes_ >> 20) + " MiB" : std::to_string(bytes_) + " bytes";
    return Error(Code::invalid, std::string(what_) + " would take more than " + most);
  }
  left_ -= bytes;
  return {};
}

Result<ObjectPtr> NamedObjects::read_once(Known& known, const std::function<ObjectPtr(std::string_view)>& read,
                                          std::string_view name) {
  auto found = known.find(name);
  if (found != known.end()) return found->second;
  ObjectPtr object = read(name);
  TRY(budget_.take(name.size() + (object ? object->text().size() : 0)));
  known.emplace(name, object);
  return object;
}

Result<std::string> expand(std::string_view text, const Variables& variables, TextBudget& budget) {
  TRY(budget.take(text.size()));
  const size_t last_close = text.rfind(')');  // nothing is searched after it, so that a text of many "$(" is scanned once
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == '$') {
      out += '$';
      ++i;
    } else if (text[i + 1] == '(' && last_close != text.npos && last_close > i) {
      const size_t close = text.find(')', i);
      std::string_view name = text.substr(i + 2, close - i - 2);
      auto found = variables.find(std::string(name));
      if (found != variables.end()) TRY(budget.take(found->second.size()));
      out += found == variables.end() ? std::string(text.substr(i, close - i + 1)) : found->second;
      i = close;
    } else {
      out += text[i];
    }
  }
  return out;
}

Result<std::string> field_value(const json::value& pod, std::string_view path, const PodIdentity& identity) {
  view::ObjectMeta metadata = view::Pod(pod).metadata();
  if (auto label = subscript(path, "metadata.labels"); !label.empty()) {
    const auto* value = metadata.labels().if_contains(label);
    return value ? string_of(*value) : std::string();
  }
  if (auto annotation = subscript(path, "metadata.annotations"); !annotation.empty()) {
    const auto* value = metadata.annotations().if_contains(annotation);
    return value ? string_of(*value) : std::string();
  }
  if (path == "metadata.labels") return map_as_lines(metadata.labels());
  if (path == "metadata.annotations") return map_as_lines(metadata.annotations());
  if (path == "metadata.name") return std::string(metadata.name());
  if (path == "metadata.namespace") return std::string(metadata.namespace_());
  if (path == "metadata.uid") return std::string(metadata.uid());
  if (path == "spec.serviceAccountName") return std::string(view::Pod(pod).spec().service_account_name());
  if (path == "spec.nodeName") return identity.node_name;
  if (path == "status.podIP") return first(identity.pod_ips);
  if (path == "status.podIPs") return join(identity.pod_ips, ",");
  if (path == "status.hostIP") return first(identity.host_ips);
  if (path == "status.hostIPs") return join(identity.host_ips, ",");
  return Error(Code::invalid, "unsupported fieldPath: " + std::string(path));
}

Result<std::string> resource_value(const json::value& container, std::string_view resource, const json::value* divisor,
                                   const PodIdentity& identity) {
  size_t dot = resource.find('.');
  std::string_view list = resource.substr(0, dot), name = dot == resource.npos ? "" : resource.substr(dot + 1);
  if ((list != "limits" && list != "requests") || name.empty())
    return Error(Code::invalid, "unsupported container resource: " + std::string(resource));
  view::ResourceRequirements resources = view::Container(container).resources();
  const json::value* found = (list == "limits" ? resources.limits() : resources.requests()).if_contains(name);
  // Without a limit: the node's allocatable amount.
  if (!found && list == "limits") found = identity.allocatable.if_contains(name);
  Quantity amount, unit = Quantity::of_count(1);
  if (found) amount = TRY(Quantity::from_json(*found));
  if (divisor && !divisor->is_null()) {
    Quantity given = TRY(Quantity::from_json(*divisor));
    if (!given.is_zero()) unit = given;
  }
  auto divided = [](int64_t a, int64_t b) { return a / b + (a % b != 0); };
  // In thousandths if they fit, otherwise in whole units, so that bytes do not overflow.
  bool fine = name == "cpu" || unit < Quantity::of_count(1);
  int64_t quotient = fine ? divided(amount.milli_value(), std::max<int64_t>(unit.milli_value(), 1))
                          : divided(amount.value(), std::max<int64_t>(unit.value(), 1));
  return std::to_string(quotient);
}

Variables service_variables(const std::vector<ObjectPtr>& services, bool all, std::string_view ns) {
  Variables variables;
  auto add = [&](const Object& service) {
    view::ServiceSpec spec = view::Service(service).spec();
    auto ip = spec.cluster_ip();
    if (ip.empty() || ip == "None") return;
    std::string name = env_name(service.name()), address(ip);
    bool first_port = true;
    for (view::ServicePort port : spec.ports()) {
      std::string number = std::to_string(port.port());
      std::string protocol(port.protocol());
      if (protocol.empty()) protocol = "TCP";
      std::string base = name + "_PORT_" + number + "_" + protocol, url = to_lower(protocol) + "://" + address + ":" + number;
      if (first_port) {
        variables[name + "_SERVICE_HOST"] = address;
        variables[name + "_SERVICE_PORT"] = number;
        variables[name + "_PORT"] = url;
      }
      if (auto port_name = port.name(); !port_name.empty()) variables[name + "_SERVICE_PORT_" + env_name(port_name)] = number;
      variables[base] = url;
      variables[base + "_PROTO"] = to_lower(protocol);
      variables[base + "_PORT"] = number;
      variables[base + "_ADDR"] = address;
      first_port = false;
    }
  };
  for (const auto& service : services)  // the API server's first, so that a service of the namespace cannot replace it
    if (all && service->ns() == ns && !(service->ns() != "default" && service->name() == "kubernetes")) add(*service);
  for (const auto& service : services)
    if (service->ns() == "default" && service->name() == "kubernetes") add(*service);
  return variables;
}

Result<Variables> make_environment(const json::value& pod, const json::value& container, const Lookup& lookup,
                                   const PodIdentity& identity) {
  return Maker(view::Pod(pod), view::Container(container), lookup, identity).make();
}

}  // namespace coracle::node
