// SPDX-License-Identifier: Apache-2.0
// See network_files.h.
#include "daemon/node/network_files.h"

#include <algorithm>
#include <sstream>

#include "daemon/node/pod.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr size_t kNameserversMax = 3;  // limit of resolvers
constexpr size_t kSearchesMax = 32;    // limit of Kubernetes' validation
constexpr size_t kSearchTextMax = 2048;

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> list;
  std::istringstream in{std::string(line)};
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

void add_new(std::vector<std::string>& list, const std::string& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

std::string option_name(const std::string& option) { return option.substr(0, option.find(':')); }

// A later option replaces an earlier one with the same name.
void set_option(std::vector<std::string>& options, const std::string& option) {
  for (auto& there : options)
    if (option_name(there) == option_name(option)) return void(there = option);
  options.push_back(option);
}

void add_config(ResolvConf& conf, view::PodDNSConfig config) {
  for (std::string_view server : config.nameservers()) add_new(conf.nameservers, std::string(server));
  for (std::string_view search : config.searches()) add_new(conf.searches, std::string(search));
  for (view::PodDNSConfigOption option : config.options()) {
    std::string text(option.name());
    if (auto value = option.value(); !value.empty()) text += ":" + std::string(value);
    if (!text.empty()) set_option(conf.options, text);
  }
}

// The search domains of a resolv.conf line. The root domain, which systemd adds if the host name is fully qualified, is left out:
// it adds no results, and musl finds nothing with it. A trailing dot is removed.
std::vector<std::string> search_domains(const std::vector<std::string>& line) {
  std::vector<std::string> domains(line.begin() + 1, line.end());
  for (std::string& domain : domains)
    if (domain.ends_with('.')) domain.pop_back();
  std::erase(domains, "");
  return domains;
}

void cut(ResolvConf& conf) {
  if (conf.nameservers.size() > kNameserversMax) conf.nameservers.resize(kNameserversMax);
  if (conf.searches.size() > kSearchesMax) conf.searches.resize(kSearchesMax);
  while (join(conf.searches, " ").size() > kSearchTextMax) conf.searches.pop_back();
}

}  // namespace

ResolvConf ResolvConf::parse(std::string_view text) {
  ResolvConf conf;
  for (auto line : split(text, '\n')) {
    line = trim(line.substr(0, line.find_first_of("#;")));
    auto list = words(line);
    if (list.size() < 2) continue;
    if (list[0] == "nameserver") conf.nameservers.push_back(list[1]);
    if (list[0] == "search" || list[0] == "domain") conf.searches = search_domains(list);
    if (list[0] == "options") conf.options.insert(conf.options.end(), list.begin() + 1, list.end());
  }
  return conf;
}

std::string ResolvConf::text() const {
  std::string out;
  if (!searches.empty()) out += "search " + join(searches, " ") + "\n";
  for (const auto& server : nameservers) out += "nameserver " + server + "\n";
  if (!options.empty()) out += "options " + join(options, " ") + "\n";
  return out;
}

ResolvConf make_resolv_conf(const json::value& pod, const ResolvConf& host, const PodNetworkHooks& network) {
  view::PodSpec spec = view::Pod(pod).spec();
  auto policy = spec.dns_policy();
  bool on_host = spec.host_network();
  bool cluster = policy == "ClusterFirstWithHostNet" || ((policy.empty() || policy == "ClusterFirst") && !on_host);
  ResolvConf conf;
  if (policy == "None") {
    // only the entries of dnsConfig
  } else if (cluster && !network.nameservers.empty()) {
    const std::string& domain = network.cluster_domain;
    conf.nameservers = network.nameservers;
    if (!domain.empty())
      conf.searches = {std::string(view::Pod(pod).metadata().namespace_()) + ".svc." + domain, "svc." + domain, domain};
    for (const auto& search : host.searches) add_new(conf.searches, search);
    conf.options = {"ndots:5"};
  } else {
    conf = host;
  }
  add_config(conf, spec.dns_config());
  cut(conf);
  return conf;
}

std::string make_hosts_file(const json::value& pod, const std::vector<std::string>& ips, std::string_view host,
                            std::string_view cluster_domain) {
  std::string text;
  if (view::Pod(pod).spec().host_network()) {
    text = "# Kubernetes-managed hosts file (host network).\n" + std::string(host);
    if (!text.ends_with('\n')) text += '\n';
  } else {
    text =
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n";
    std::string fqdn = fqdn_of(pod, cluster_domain), name = hostname_of(pod);
    for (const auto& ip : ips) text += ip + "\t" + (fqdn.empty() ? "" : fqdn + "\t") + name + "\n";
  }
  view::Range<view::HostAlias> aliases = view::Pod(pod).spec().host_aliases();
  if (!aliases.empty()) text += "\n# Entries added by HostAliases.\n";
  for (view::HostAlias alias : aliases) {
    text += std::string(alias.ip());
    for (std::string_view name : alias.hostnames()) text += "\t" + std::string(name);
    text += "\n";
  }
  return text;
}

}  // namespace coracle::node
