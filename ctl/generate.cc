// SPDX-License-Identifier: Apache-2.0
// See generate.h.
#include "ctl/generate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "store/object/patch.h"

namespace coracle::ctl {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;  // limit for one file in a ConfigMap or Secret

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::from_errno("read " + path);
  std::string text(kFileBytesMax + 1, '\0');
  file.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(file.gcount()));
  if (text.size() > kFileBytesMax) return Error(Code::too_large, path + " is larger than 1 MiB, more than an object can hold");
  return text;
}

// "nginx:1.27" → "nginx": the default container name for an image, as in kubectl.
std::string container_name(std::string_view image) {
  image.remove_prefix(image.rfind('/') + 1);  // npos + 1 is 0
  std::string name(image.substr(0, image.find_first_of(":@")));
  std::ranges::replace_if(
      name, [](char c) { return c == '_' || c == '.'; }, '-');
  return name;
}

// A port as a number or a name.
json::value port_value(const std::string& text) {
  if (auto number = parse_number<uint16_t>(text)) return *number;
  return json::value(text);
}

// Adds "KEY=VALUE" pairs of `flag` to an object.
Result<json::object> pairs_of(const std::vector<std::string>& pairs, const char* flag) {
  json::object object;
  for (const auto& pair : pairs) {
    size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0)
      return Error(Code::bad_request, std::string(flag) + ": expected KEY=VALUE, got " + coracle::quoted(pair));
    object[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return object;
}

}  // namespace

void DataFlags::add_to(Command command) {
  command.add_option("--from-literal", literals, "KEY=VALUE");
  command.add_option("--from-file", files, "[KEY=]PATH; a directory gives all its files");
  command.add_option("--from-env-file", env_files, "a file of KEY=VALUE lines");
}

Result<Data> read_data(const DataFlags& flags) {
  Data data;
  for (const auto& literal : flags.literals) {
    size_t equals = literal.find('=');
    if (equals == literal.npos || equals == 0)
      return Error(Code::bad_request, "--from-literal: expected KEY=VALUE, got " + coracle::quoted(literal));
    std::string value = literal.substr(equals + 1);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    data.emplace_back(literal.substr(0, equals), value);
  }
  for (const auto& file : flags.files) {
    size_t equals = file.find('=');
    std::string path = equals == file.npos ? file : file.substr(equals + 1);
    std::error_code failed;
    if (std::filesystem::is_directory(path, failed)) {
      std::vector<std::filesystem::path> entries;
      for (const auto& entry : std::filesystem::directory_iterator(path, failed))
        if (entry.is_regular_file(failed)) entries.push_back(entry.path());
      std::sort(entries.begin(), entries.end());
      for (const auto& entry : entries) {
        std::string text = TRY(read_small_file(entry));
        data.emplace_back(entry.filename(), std::move(text));
      }
      continue;
    }
    std::string text = TRY(read_small_file(path));
    data.emplace_back(equals == file.npos ? std::filesystem::path(path).filename().string() : file.substr(0, equals),
                      std::move(text));
  }
  for (const auto& file : flags.env_files) {
    std::string text = TRY(read_small_file(file));
    for (std::string_view line : split(without_byte_order_mark(text), '\n')) {
      line = trim(line);
      if (line.empty() || line.front() == '#') continue;
      size_t equals = line.find('=');
      data.emplace_back(line.substr(0, equals), equals == line.npos ? "" : line.substr(equals + 1));
    }
  }
  for (size_t i = 0; i < data.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (data[i].first == data[j].first)
        return Error(Code::bad_request, "the key " + coracle::quoted(data[i].first) + " is given twice");
  return data;
}

json::object named_object(std::string_view api_version, std::string_view kind, const std::string& name) {
  return {{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", name}}}};
}

json::value configmap_of(const std::string& name, const Data& data) {
  json::object object = named_object("v1", "ConfigMap", name), text, binary;
  for (const auto& [key, value] : data) {
    if (is_utf8(value)) text[key] = value;
    else binary[key] = base64_encode(value);
  }
  if (!text.empty()) object["data"] = std::move(text);
  if (!binary.empty()) object["binaryData"] = std::move(binary);
  return object;
}

json::value secret_of(const std::string& name, const std::string& type, const Data& data) {
  json::object object = named_object("v1", "Secret", name), encoded;
  for (const auto& [key, value] : data) encoded[key] = base64_encode(value);
  object["data"] = std::move(encoded);
  if (!type.empty()) object["type"] = type;
  return object;
}

json::value deployment_of(const DeploymentFlags& flags) {
  json::array containers;
  for (const std::string& image : flags.images) {
    json::object container{{"name", container_name(image)}, {"image", image}};
    if (!flags.command.empty()) container["command"] = json::value_from(flags.command);
    if (flags.port && containers.empty()) container["ports"] = json::array{json::object{{"containerPort", flags.port}}};
    containers.push_back(std::move(container));
  }
  json::object labels{{"app", flags.name}}, object = named_object("apps/v1", "Deployment", flags.name);
  object["metadata"].as_object()["labels"] = labels;
  object["spec"] =
      json::object{{"replicas", flags.replicas},
                   {"selector", {{"matchLabels", labels}}},
                   {"template", {{"metadata", {{"labels", labels}}}, {"spec", {{"containers", std::move(containers)}}}}}};
  return object;
}

json::value job_of(const JobFlags& flags) {
  bool repeated = !flags.schedule.empty();
  json::object container{{"name", flags.name}, {"image", flags.image}};
  if (!flags.command.empty()) container["command"] = json::value_from(flags.command);
  std::string restart = flags.restart.empty() ? (repeated ? "OnFailure" : "Never") : flags.restart;
  json::object spec{{"template", {{"spec", {{"containers", json::array{std::move(container)}}, {"restartPolicy", restart}}}}}};
  json::object object = named_object("batch/v1", repeated ? "CronJob" : "Job", flags.name);
  if (repeated)
    spec = {{"schedule", flags.schedule}, {"jobTemplate", {{"metadata", {{"name", flags.name}}}, {"spec", std::move(spec)}}}};
  object["spec"] = std::move(spec);
  return object;
}

json::value job_from(const json::value& cron_job, const std::string& name) {
  json::object object = named_object("batch/v1", "Job", name);
  json::object& metadata = object["metadata"].as_object();
  json::object annotations = get_object(cron_job, "spec.jobTemplate.metadata.annotations");
  annotations["cronjob.kubernetes.io/instantiate"] = "manual";
  metadata["annotations"] = std::move(annotations);
  if (const json::object& labels = get_object(cron_job, "spec.jobTemplate.metadata.labels"); !labels.empty())
    metadata["labels"] = labels;
  metadata["ownerReferences"] = json::array{json::object{{"apiVersion", "batch/v1"},
                                                         {"kind", "CronJob"},
                                                         {"name", get_string(cron_job, "metadata.name")},
                                                         {"uid", get_string(cron_job, "metadata.uid")},
                                                         {"controller", true}}};
  object["spec"] = get_object(cron_job, "spec.jobTemplate.spec");
  return object;
}

Result<json::value> budget_of(const BudgetFlags& flags) {
  if (flags.selector.empty()) return Error(Code::bad_request, "a selector must be specified");
  if (flags.min_available.empty() && flags.max_unavailable.empty())
    return Error(Code::bad_request, "one of min-available or max-unavailable must be specified");
  if (!flags.min_available.empty() && !flags.max_unavailable.empty())
    return Error(Code::bad_request, "min-available and max-unavailable cannot be both specified");
  std::vector<std::string> pairs;
  for (std::string_view pair : split(flags.selector, ',')) pairs.emplace_back(pair);
  json::object labels = TRY(pairs_of(pairs, "--selector"));
  json::object spec{{"selector", {{"matchLabels", std::move(labels)}}}};
  for (auto [field, text] :
       {std::pair{"minAvailable", &flags.min_available}, std::pair{"maxUnavailable", &flags.max_unavailable}}) {
    if (text->empty()) continue;
    if (auto number = parse_number<int32_t>(*text)) spec[field] = *number;
    else spec[field] = *text;
  }
  json::object object = named_object("policy/v1", "PodDisruptionBudget", flags.name);
  object["spec"] = std::move(spec);
  return json::value(std::move(object));
}

Result<json::value> quota_of(const std::string& name, const std::string& hard, const std::string& scopes) {
  json::object object = named_object("v1", "ResourceQuota", name), spec;
  if (!hard.empty()) {
    std::vector<std::string> pairs;
    for (std::string_view pair : split(hard, ',')) pairs.emplace_back(pair);
    spec["hard"] = TRY(pairs_of(pairs, "--hard"));
  }
  if (!scopes.empty()) {
    json::array list;
    for (std::string_view scope : split(scopes, ',')) list.push_back(json::value(scope));
    spec["scopes"] = std::move(list);
  }
  object["spec"] = std::move(spec);
  return json::value(std::move(object));
}

Result<json::value> service_of(const ServiceFlags& flags) {
  json::array ports;
  for (const auto& text : flags.tcp) {
    size_t colon = text.find(':');
    auto port = parse_number<uint16_t>(std::string_view(text).substr(0, colon));
    if (!port || !*port) return Error(Code::bad_request, "--tcp: expected PORT[:TARGETPORT], got " + coracle::quoted(text));
    std::string target = colon == text.npos ? text : text.substr(colon + 1);
    std::string name = colon == text.npos ? text : text.substr(0, colon) + "-" + target;
    json::object entry{{"name", name}, {"port", *port}, {"protocol", "TCP"}, {"targetPort", port_value(target)}};
    if (flags.node_port) entry["nodePort"] = flags.node_port;
    ports.push_back(std::move(entry));
  }
  if (ports.empty() && flags.type != "ExternalName" && flags.cluster_ip != "None")
    return Error(Code::bad_request, "at least one --tcp=PORT[:TARGETPORT] is required");
  json::object labels{{"app", flags.name}}, spec{{"selector", labels}, {"type", flags.type}},
      object = named_object("v1", "Service", flags.name);
  object["metadata"].as_object()["labels"] = labels;
  if (!ports.empty()) spec["ports"] = std::move(ports);
  if (!flags.external_name.empty()) spec["externalName"] = flags.external_name;
  if (!flags.cluster_ip.empty()) spec["clusterIP"] = flags.cluster_ip;
  object["spec"] = std::move(spec);
  return json::value(std::move(object));
}

Result<json::value> pod_of(const PodFlags& flags) {
  json::object container{{"name", flags.name}, {"image", flags.image}};
  if (!flags.words.empty()) container[flags.words_are_command ? "command" : "args"] = json::value_from(flags.words);
  if (!flags.pull_policy.empty()) container["imagePullPolicy"] = flags.pull_policy;
  if (flags.port) container["ports"] = json::array{json::object{{"containerPort", flags.port}}};
  if (flags.use_stdin) container["stdin"] = true;
  if (flags.stdin_once) container["stdinOnce"] = true;
  if (flags.tty) container["tty"] = true;
  if (flags.privileged) container["securityContext"] = json::object{{"privileged", true}};
  json::object variables = TRY(pairs_of(flags.env, "--env"));
  json::array env;
  for (const auto& [key, value] : variables) env.push_back(json::object{{"name", key}, {"value", value}});
  if (!env.empty()) container["env"] = std::move(env);
  json::object labels = TRY(pairs_of(flags.labels, "--labels"));
  json::object annotations = TRY(pairs_of(flags.annotations, "--annotations"));
  if (labels.empty()) labels["run"] = flags.name;
  json::object object = named_object("v1", "Pod", flags.name);
  object["metadata"].as_object()["labels"] = std::move(labels);
  if (!annotations.empty()) object["metadata"].as_object()["annotations"] = std::move(annotations);
  object["spec"] = json::object{{"containers", json::array{std::move(container)}}, {"restartPolicy", flags.restart}};
  json::value pod(std::move(object));
  if (flags.overrides.empty()) return pod;
  json::value patch = TRY(parse_json(flags.overrides).wrap("--overrides"));
  apply_merge_patch(pod, patch);
  return pod;
}

namespace {

using OpenPorts = std::vector<std::pair<uint16_t, std::set<std::string>>>;  // port and its protocols, in the order of ports

OpenPorts open_ports(const json::value& object, const schema::KindInfo& kind) {
  OpenPorts all;
  auto add = [&](const json::value& port, std::string_view number_field) {
    auto number = uint16_t(get_int(port, number_field));
    auto known = std::ranges::find(all, number, &OpenPorts::value_type::first);
    if (known == all.end()) known = all.insert(all.end(), {number, {}});
    std::string protocol(get_string(port, "protocol"));
    known->second.insert(protocol.empty() ? "TCP" : protocol);
  };
  if (kind.kind == kService) {
    for (const json::value& port : get_array(object, "spec.ports")) add(port, "port");
    return all;
  }
  for (const json::value& container : get_array(object, kind.kind == kPod ? "spec.containers" : "spec.template.spec.containers"))
    for (const json::value& port : get_array(container, "ports")) add(port, "containerPort");
  return all;
}

// The ports in --port with their protocols from `open`; TCP for a port that is not in it. Errors: bad_request.
Result<OpenPorts> named_ports(const OpenPorts& open, std::string_view names) {
  OpenPorts named;
  for (std::string_view text : split(names, ',')) {
    auto number = parse_number<uint16_t>(text);
    if (!number || !*number) return Error(Code::bad_request, "--port: not a port number: " + coracle::quoted(text));
    auto known = std::ranges::find(open, *number, &OpenPorts::value_type::first);
    named.emplace_back(*number, known == open.end() ? std::set<std::string>{"TCP"} : known->second);
  }
  return named;
}

Result<json::array> exposed_ports(OpenPorts wanted, const ExposeFlags& flags) {
  if (!flags.port.empty()) wanted = TRY(named_ports(wanted, flags.port));
  json::array ports;
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto& [number, protocols] = wanted[i];
    if (!flags.protocol.empty()) protocols = {flags.protocol};
    for (const std::string& protocol : protocols) {
      json::object port{{"port", number}, {"protocol", protocol}};
      std::string name = "port-" + std::to_string(i + 1);
      if (protocols.size() > 1) port["name"] = name + "-" + to_lower(protocol);
      else if (wanted.size() > 1) port["name"] = name;
      port["targetPort"] = flags.target_port.empty() ? json::value(number) : port_value(flags.target_port);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

}  // namespace

Result<json::value> exposing_service_of(const json::value& object, const schema::KindInfo& kind, const ExposeFlags& flags) {
  std::string name(get_string(object, "metadata.name"));
  json::object selector = get_object(object, "spec.selector.matchLabels");
  if (kind.kind == kPod) selector = get_object(object, "metadata.labels");
  if (kind.kind == kService || kind.kind == kReplicationController) selector = get_object(object, "spec.selector");
  if (!flags.selector.empty()) {
    std::vector<std::string> pairs;
    for (std::string_view pair : split(flags.selector, ',')) pairs.emplace_back(pair);
    selector = TRY(pairs_of(pairs, "--selector"));
  }
  if (selector.empty())
    return Error(Code::invalid, "cannot expose " + message_name(kind, name) + ": it has no labels to select pods by");
  json::array ports = TRY(exposed_ports(open_ports(object, kind), flags));
  if (ports.empty()) return Error(Code::bad_request, "couldn't find port via --port flag or introspection");
  json::object service = named_object("v1", "Service", flags.name.empty() ? name : flags.name);
  json::object labels = TRY(pairs_of(flags.labels, "--labels"));
  if (labels.empty()) labels = get_object(object, "metadata.labels");
  if (!labels.empty()) service["metadata"].as_object()["labels"] = std::move(labels);
  json::object spec{{"ports", std::move(ports)}, {"selector", std::move(selector)}};
  if (!flags.type.empty()) spec["type"] = flags.type;
  if (!flags.cluster_ip.empty()) spec["clusterIP"] = flags.cluster_ip;
  service["spec"] = std::move(spec);
  return json::value(std::move(service));
}

}  // namespace coracle::ctl
