// SPDX-License-Identifier: Apache-2.0
// port-forward: forwards ports of this machine to ports of a pod. Each local connection gets its own connection to the server
// (forward.h), so none waits for another.
#include <poll.h>

#include <atomic>
#include <list>
#include <optional>
#include <thread>

#include "ctl/channels.h"
#include "ctl/command.h"
#include "ctl/forward.h"
#include "ctl/pods.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/sys/socket.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr size_t kConnectionsMax = 128;  // limit of open connections; others wait to be accepted

struct PortForwardFlags {
  std::vector<std::string> args;
  std::vector<std::string> addresses{"localhost"};
  std::string running_timeout = "1m0s";
};

struct Port {
  uint16_t local = 0, remote = 0;
};

struct ListeningPort {
  Fd fd;
  Port port;
};

struct ForwardTarget {
  std::string path;  // path of the pod's portforward subresource
  std::vector<Port> ports;
};

// Finds the pod and resolves each port argument.
Result<ForwardTarget> find_target(Session& session, const std::vector<std::string>& args, std::chrono::milliseconds patience) {
  std::vector<std::string> named{args.front()};
  size_t used = 1;
  if (args.front().find('/') == std::string::npos && args.size() > 2 && schema::catalog().by_name(args.front()))
    named.push_back(args[1]), used = 2;
  if (args.size() == used) return Error(Code::bad_request, "at least one port is required: port-forward POD [LOCAL:]REMOTE");
  std::optional<json::value> service;
  if (named.front().find('/') != std::string::npos || named.size() > 1) {
    std::vector<Named> parsed = TRY(parse_named(named));
    if (parsed.front().kind->kind == kService)
      service = TRY(session.json({.path = session.path(*parsed.front().kind, session.ns(), parsed.front().name)}));
  }
  json::value pod = TRY(one_pod(session, named, PodUse::attach, patience));
  std::string_view phase = view::Pod(pod).status().phase();
  if (phase != "Running")
    return Error(Code::bad_request, "unable to forward port because pod is not running. Current status=" + std::string(phase));
  ForwardTarget target{session.path(schema::catalog().of(kPod), session.ns(), metadata_of(pod).name(), "portforward"), {}};
  for (size_t i = used; i < args.size(); ++i) {
    PortMapping mapping = TRY(parse_mapping(args[i]));
    uint16_t remote = TRY(pod_port(pod, service ? &*service : nullptr, mapping.remote));
    bool by_name = mapping.same_local && mapping.local == 0;
    target.ports.push_back({by_name ? remote : mapping.local, remote});
  }
  return target;
}

// Listens on the port at every address. "localhost" is 127.0.0.1 and, if available, ::1.
Result<void> listen(Port port, const std::vector<std::string>& addresses, std::vector<ListeningPort>& listeners) {
  for (const std::string& word : addresses) {
    std::vector<std::string> numeric{word};
    if (word == "localhost") numeric = {"127.0.0.1", "::1"};
    for (const auto& address : numeric) {
      auto fd = sys::listen_tcp(address, port.local);
      if (!fd && word == "localhost" && address == "::1") continue;
      if (!fd && fd.error().code() == Code::invalid) return Error(Code::invalid, word + " is not a valid IP");
      if (!fd) return fd.take_error().wrap("unable to listen on port " + std::to_string(port.local));
      sys::Endpoint at = sys::local_endpoint(*fd);
      port.local = at.port;  // the same port at all addresses
      out("Forwarding from " + at.text() + " -> " + std::to_string(port.remote) + "\n");
      listeners.push_back({*std::move(fd), port});
    }
  }
  return {};
}

class Forwarder {
 public:
  Forwarder(Session& session, ForwardTarget target) : session_(session), target_(std::move(target)) {}

  // Runs until the pod is gone. Errors: unavailable then.
  Result<int> run(const std::vector<ListeningPort>& listeners) {
    while (!lost_) {
      std::erase_if(running_, [](const Running& one) { return one.over.load(); });
      std::vector<pollfd> waits{{changed_.fd(), POLLIN, 0}};
      if (running_.size() < kConnectionsMax)
        for (const auto& listener : listeners) waits.push_back({listener.fd.get(), POLLIN, 0});
      if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return Error::from_errno("poll");
      changed_.clear();
      for (size_t i = 1; i < waits.size(); ++i)
        if (waits[i].revents) accept(listeners[i - 1]);
    }
    return Error(Code::unavailable, "lost connection to pod");
  }

 private:
  struct Running {
    std::atomic<bool> over = false;
    std::jthread thread;
  };

  void accept(const ListeningPort& listener) {
    auto local = sys::accept_tcp(listener.fd);
    if (!local) return;  // the client has already disconnected
    out("Handling connection for " + std::to_string(listener.port.local) + "\n");
    Running& one = running_.emplace_back();
    one.thread = start_thread("forward", [this, &one, port = listener.port, fd = std::make_shared<Fd>(*std::move(local))] {
      forward(port, std::move(*fd));
      one.over = true;
      changed_.signal();
    });
  }

  void forward(Port port, Fd local) {
    auto socket = session_.upgrade({.path = target_.path, .query = {{"ports", std::to_string(port.remote)}}}, kChannelProtocol);
    if (!socket && socket.error().code() == Code::not_found) lost_ = true;
    Result<void> tied = socket ? tie(**socket, std::move(local)) : Result<void>(socket.take_error());
    if (!tied)
      print_failure(Error(tied.error().code(), "an error occurred forwarding " + std::to_string(port.local) + " -> " +
                                                   std::to_string(port.remote) + ": " + tied.error().text()));
  }

  Session& session_;
  const ForwardTarget target_;
  sys::Wakeup changed_;
  std::atomic<bool> lost_ = false;
  std::list<Running> running_;
};

Result<int> run_port_forward(Commands& commands, const PortForwardFlags& flags) {
  if (flags.args.size() < 2)
    return Error(
        Code::bad_request,
        "TYPE/NAME and list of ports are required for port-forward\nSee 'coraclectl port-forward -h' for help and examples");
  auto patience = TRY(parse_timeout(flags.running_timeout).wrap("--pod-running-timeout"));
  if (patience.count() <= 0)
    return Error(Code::bad_request,
                 "--pod-running-timeout must be higher than zero\nSee 'coraclectl port-forward -h' for help and examples");
  Session* session = TRY(commands.session());
  ForwardTarget target = TRY(find_target(*session, flags.args, patience));
  std::vector<ListeningPort> listeners;
  for (const Port& port : target.ports) TRY(listen(port, flags.addresses, listeners));
  return Forwarder(*session, std::move(target)).run(listeners);
}

}  // namespace

void add_port_forward(Commands& commands) {
  auto flags = std::make_shared<PortForwardFlags>();
  Command command = commands.add(
      "port-forward", "Make a pod's ports reachable here: POD, deployment/NAME or service/NAME, then [LOCAL:]REMOTE ...");
  command.add_option("args", flags->args, "POD or KIND/NAME, then ports: LOCAL:REMOTE, :REMOTE, PORT");
  command.add_option("--address", flags->addresses, "addresses to listen on").delimiter(',');
  command.add_option("--pod-running-timeout", flags->running_timeout, "how long to wait until the object has a pod")
      .as_duration();
  commands.on(command, [&commands, flags] { return run_port_forward(commands, *flags); });
}

}  // namespace coracle::ctl
