// SPDX-License-Identifier: Apache-2.0
// See generate_ingress.h.
#include "ctl/generate_ingress.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ctl/flag_values.h"
#include "ctl/generate.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

struct IngressRule {
  std::string host, path, service, port;
  bool encrypted = false;
  std::string secret;
};

bool is_word(std::string_view text) {  // [\w-]+
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::optional<IngressRule> parsed_rule(std::string_view text) {
  IngressRule rule;
  size_t comma = text.find(',');
  std::string_view target = text.substr(0, comma);
  if (comma != text.npos) {
    std::string_view tls = text.substr(comma + 1);
    size_t equals = std::min(tls.find('='), tls.size());
    rule.encrypted = tls.substr(0, equals) == "tls";
    rule.secret = tls.substr(std::min(equals + 1, tls.size()));
    if (!rule.encrypted || (!rule.secret.empty() && !is_word(rule.secret))) return std::nullopt;
  }
  size_t slash = target.find('/'), equals = target.find('=', std::min(slash, target.size())), colon = target.rfind(':');
  if (slash == target.npos || equals == target.npos || colon == target.npos || colon < equals) return std::nullopt;
  rule.host = target.substr(0, slash), rule.path = target.substr(slash, equals - slash);
  rule.service = target.substr(equals + 1, colon - equals - 1), rule.port = target.substr(colon + 1);
  bool good_host = std::all_of(rule.host.begin(), rule.host.end(),
                               [](char c) { return c == '*' || c == '.' || is_word(std::string_view(&c, 1)); });
  if (!good_host || !is_word(rule.service) || !is_word(rule.port)) return std::nullopt;
  return rule;
}

json::object backend_of(const std::string& service, const std::string& port) {
  json::value number = count_or_text(port);
  json::object to{{number.is_string() ? "name" : "number", number}};
  return {{"service", {{"name", service}, {"port", std::move(to)}}}};
}

json::object ingress_path_of(const IngressRule& rule) {
  bool prefix = rule.path.ends_with('*');
  return {{"path", prefix ? rule.path.substr(0, rule.path.size() - 1) : rule.path},
          {"pathType", prefix ? "Prefix" : "Exact"},
          {"backend", backend_of(rule.service, rule.port)}};
}

// One rule for each host, in the order of the flags.
json::array ingress_rules_of(const std::vector<IngressRule>& rules) {
  std::vector<std::pair<std::string, json::array>> by_host;
  for (const IngressRule& rule : rules) {
    auto known = std::find_if(by_host.begin(), by_host.end(), [&](const auto& one) { return one.first == rule.host; });
    if (known == by_host.end()) known = by_host.insert(by_host.end(), {rule.host, {}});
    known->second.push_back(ingress_path_of(rule));
  }
  json::array all;
  for (auto& [host, paths] : by_host) {
    json::object rule;
    if (!host.empty()) rule["host"] = host;
    rule["http"] = json::object{{"paths", std::move(paths)}};
    all.push_back(std::move(rule));
  }
  return all;
}

// One entry for each secret. A host is encrypted by the first secret that names it.
json::array tls_of(const std::vector<IngressRule>& rules) {
  struct Entry {
    std::string secret;
    std::vector<std::string> hosts;
  };
  std::vector<Entry> entries;
  std::set<std::string> known_hosts;
  for (const IngressRule& rule : rules) {
    if (!rule.encrypted || !known_hosts.insert(rule.host).second) continue;
    auto known = std::find_if(entries.begin(), entries.end(), [&](const Entry& one) { return one.secret == rule.secret; });
    if (known != entries.end()) known->hosts.push_back(rule.host);
    else if (!rule.host.empty()) entries.push_back({rule.secret, {rule.host}});
    else if (!rule.secret.empty()) entries.push_back({rule.secret, {}});
  }
  json::array all;
  for (const Entry& entry : entries) {
    json::object tls;
    if (!entry.hosts.empty()) tls["hosts"] = json::value_from(entry.hosts);
    if (!entry.secret.empty()) tls["secretName"] = entry.secret;
    all.push_back(std::move(tls));
  }
  return all;
}

}  // namespace

Result<json::value> ingress_of(const IngressFlags& flags) {
  if (flags.default_backend.empty() && flags.rules.empty())
    return Error(Code::bad_request,
                 "not enough information provided: every ingress has to either specify a default-backend (which catches all "
                 "traffic) or a list of rules (which catch specific paths)");
  std::vector<IngressRule> rules;
  for (const auto& text : flags.rules) {
    auto rule = parsed_rule(text);
    if (!rule)
      return Error(Code::bad_request,
                   "rule " + text + " is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]");
    rules.push_back(*rule);
  }
  std::map<std::string, std::string> annotations;
  for (const auto& text : flags.annotations) {
    size_t equals = text.find('=');
    if (equals == text.npos)
      return Error(Code::bad_request, "annotation " + text + " is invalid and should be in format key=[value]");
    annotations[text.substr(0, equals)] = text.substr(equals + 1);
  }
  std::vector<std::string> backend = split_words(flags.default_backend, ':');
  if (!flags.default_backend.empty() && backend.size() != 2)
    return Error(Code::bad_request, "default-backend should be in format servicename:serviceport");

  json::object object = named_object("networking.k8s.io/v1", "Ingress", flags.name), spec, notes;
  for (const auto& [key, value] : annotations) notes[key] = value;
  if (!notes.empty()) object["metadata"].get_object()["annotations"] = std::move(notes);
  if (!flags.ingress_class.empty()) spec["ingressClassName"] = flags.ingress_class;
  if (backend.size() == 2) spec["defaultBackend"] = backend_of(backend[0], backend[1]);
  if (json::array tls = tls_of(rules); !tls.empty()) spec["tls"] = std::move(tls);
  if (!rules.empty()) spec["rules"] = ingress_rules_of(rules);
  object["spec"] = std::move(spec);
  make(object["status"], "loadBalancer").emplace_object();
  return json::value(std::move(object));
}

}  // namespace coracle::ctl
