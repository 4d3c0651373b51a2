// SPDX-License-Identifier: Apache-2.0
// cluster-info: where the server and its services are; cluster-info dump: what one sends to somebody who is to help.
// Source: kubectl pkg/cmd/clusterinfo.
#include <array>
#include <cstdlib>

#include "ctl/about.h"
#include "ctl/print.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

// ---- cluster-info ----

std::string colored(bool colors, const char* code, const std::string& text) {
  return colors ? "\x1b[0;" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

std::string proxy_link(const Session& session, view::Service service) {
  std::string name(service.metadata().name());
  view::Range<view::ServicePort> ports = service.spec().ports();
  if (!ports.empty()) {  // SCHEME:NAME:PORT, where either is known
    std::string port(ports[0].name());
    bool https = port == "https" || ports[0].port() == 443;
    if (https || !port.empty()) name = (https ? "https:" : "") + name + (https || !port.empty() ? ":" + port : "");
  }
  return session.server() + "/api/v1/namespaces/" + std::string(service.metadata().namespace_()) + "/services/" + name + "/proxy";
}

std::string link_of(const Session& session, view::Service service) {
  view::Range<view::LoadBalancerIngress> ingress = service.status().load_balancer().ingress();
  if (ingress.empty()) return proxy_link(session, service);
  std::string host(ingress[0].ip()), link;
  if (host.empty()) host = ingress[0].hostname();
  for (view::ServicePort port : service.spec().ports()) link += "http://" + host + ":" + std::to_string(port.port()) + " ";
  return link;
}

Result<int> run_cluster_info(Commands& commands) {
  Session* session = TRY(commands.session());
  const schema::KindInfo& services = schema::catalog().of(kService);
  json::value list = TRY(session->json({.path = session->path(services, session->ns_given() ? session->ns() : "kube-system"),
                                        .query = {{"labelSelector", "kubernetes.io/cluster-service=true"}}}));
  bool colors = terminal_width() > 0 && !std::getenv("NO_COLOR");
  auto print_place = [&](const std::string& name, const std::string& link) {
    out(colored(colors, "32", name) + " is running at " + colored(colors, "33", link) + "\n");
  };
  print_place("Kubernetes control plane", session->server());
  for (const auto& item : items_of(list)) {
    view::Service service(item);
    const json::value* label = service.metadata().labels().if_contains("kubernetes.io/name");
    print_place(label && label->is_string() ? std::string(label->get_string()) : std::string(service.metadata().name()),
                link_of(*session, service));
  }
  out("\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n");
  return 0;
}

// ---- cluster-info dump ----

struct DumpFlags {
  Output output{OutputSet::objects, "json"};
  std::string directory, pod_running_timeout = "20s";
  std::vector<std::string> namespaces;
  bool all_namespaces = false;
};

constexpr std::array<std::pair<const char*, const char*>, 7> kDumped = {{{"events", "events"},
                                                                         {"replication-controllers", "replicationcontrollers"},
                                                                         {"services", "services"},
                                                                         {"daemonsets", "daemonsets"},
                                                                         {"deployments", "deployments"},
                                                                         {"replicasets", "replicasets"},
                                                                         {"pods", "pods"}}};

class Dump {
 public:
  Dump(Session& session, const DumpFlags& flags) : session_(session), flags_(flags), output_(flags.output) {}

  Result<void> run() {
    TRY(list("nodes", "nodes", ""));
    std::vector<std::string> namespaces = TRY(this->namespaces());
    for (const auto& ns : namespaces) {
      json::value pods;
      for (const auto& [file, resource] : kDumped) pods = TRY(list(ns + "/" + file, resource, ns));
      for (const auto& pod : items_of(pods)) TRY(logs(ns, view::Pod(pod)));
    }
    return {};
  }

 private:
  bool to_files() const { return !flags_.directory.empty() && flags_.directory != "-"; }

  Result<std::vector<std::string>> namespaces() {
    if (flags_.all_namespaces) {
      std::vector<std::string> names;
      json::value all = TRY(session_.json({.path = session_.path(schema::catalog().of(kNamespace), "")}));
      for (const auto& one : items_of(all)) names.emplace_back(metadata_of(one).name());
      return names;
    }
    return flags_.namespaces.empty() ? std::vector<std::string>{"kube-system", session_.ns()} : flags_.namespaces;
  }

  Result<void> write(const std::string& file, const std::string& text) {
    if (!to_files()) return out(text), Result<void>();
    std::string path = flags_.directory + "/" + file;
    TRY(sys::make_directories(path.substr(0, path.rfind('/'))));
    return sys::replace_file(path, text, 0644, sys::Durability::volatile_).wrap("write " + path);
  }

  Result<json::value> list(const std::string& file, const char* resource, const std::string& ns) {
    const schema::KindInfo& kind = *schema::catalog().by_name(resource);
    json::value all = TRY(session_.json({.path = session_.path(kind, ns)}));
    json::value shown = all;
    if (items_of(shown).empty()) shown.get_object()["items"] = nullptr;  // as kubectl shows it
    const char* ending = output_ == "json" ? ".json" : output_ == "yaml" ? ".yaml" : ".txt";
    auto text = output_.rendered(std::move(shown), JsonOrder::given);
    TRY(write(file + ending, text.value_or("")));
    return all;
  }

  Result<void> logs(const std::string& ns, view::Pod pod) {
    std::string name(pod.metadata().name()), text;
    for (const auto& containers : {pod.spec().init_containers(), pod.spec().containers()})
      for (view::Container container : containers) {
        std::string title = "logs for container " + std::string(container.name()) + " of pod " + ns + "/" + name + " ====\n";
        auto log = session_.text({.path = session_.path(schema::catalog().of(kPod), ns, name, "log"),
                                  .query = {{"container", std::string(container.name())}},
                                  .accept = "*/*"});
        text += "==== START " + title + (log ? *log : "Request log error: " + log.error().text() + "\n") + "==== END " + title;
      }
    return write(ns + "/" + name + "/logs.txt", text);
  }

  Session& session_;
  const DumpFlags& flags_;
  Output output_;
};

Result<int> run_dump(Commands& commands, const DumpFlags& flags) {
  TRY(parse_timeout(flags.pod_running_timeout).wrap("--pod-running-timeout"));
  Session* session = TRY(commands.session());
  TRY(Dump(*session, flags).run());
  if (!flags.directory.empty() && flags.directory != "-") out("Cluster info dumped to " + flags.directory + "\n");
  return 0;
}

}  // namespace

void add_cluster_info(Commands& commands) {
  Command info = commands.add("cluster-info", "Where the server is");
  commands.ignore_words(info);
  commands.on(info, [&commands] { return run_cluster_info(commands); });
  auto flags = std::make_shared<DumpFlags>();
  Command dump = commands.add("dump", "Objects and logs, for who is to help", info);
  commands.ignore_words(dump);
  commands.add_output(dump, flags->output);
  dump.add_option("--output-directory", flags->directory, "write files there, not to standard output");
  dump.add_option("--namespaces", flags->namespaces, "of these; else of kube-system and the one in force").delimiter(',');
  dump.add_flag("-A,--all-namespaces", flags->all_namespaces, "of all namespaces");
  dump.add_option("--pod-running-timeout", flags->pod_running_timeout, "as in kubectl, where it has no effect either")
      .as_duration();
  commands.on(dump, [&commands, flags] { return run_dump(commands, *flags); });
}

}  // namespace coracle::ctl
