// SPDX-License-Identifier: Apache-2.0
// A whole API server in a temporary directory, on loopback, with a simulated node: the fixture of the API's tests.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "daemon/api/server.h"
#include "daemon/auth/default_roles.h"
#include "daemon/registry/bootstrap.h"
#include "daemon/registry/registry.h"
#include "runtime/base/guarded.h"
#include "runtime/sys/file.h"
#include "store/engine/engine.h"
#include "tests/catalogs.h"

namespace coracle::api {

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kMerge = "Content-Type: application/merge-patch+json\r\n";  // for a patch

class PlayedStreams : public PodStreams {  // scripted logs and execs; ports are those of this machine
 public:
  std::string log_text = "one\ntwo\n";
  int exit_code = 0;
  bool echoes = false;  // the process copies its input to its output until the input ends
  bool follows_for_ever = false;
  std::atomic<int> stdin_ends = 0;  // number of processes whose stdin was closed
  LogRequest last_log;
  ExecRequest last_exec;

  Result<void> logs(const LogRequest& request, const std::function<bool(std::string_view)>& out) override {
    last_log = request;
    if (log_text.empty())
      return Error(Code::bad_request, "container \"main\" in pod \"p\" is waiting to start: ContainerCreating");
    out(log_text);
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    while (follows_for_ever && out({})) never.wait_for(lock, std::chrono::milliseconds(20));
    return {};
  }

  class Session : public ExecSession {
   public:
    Session(PlayedStreams& streams, ExecOutput& out) : streams_(streams), out_(out) {}
    Result<void> write_stdin(std::string_view bytes) override { return out_.write_stdout(bytes), Result<void>(); }
    void close_stdin() override {
      streams_.stdin_ends++;
      hang_up();
    }
    void hang_up() override {
      closed_.with([](bool& closed) { closed = true; });
      closed_.notify();
    }
    void resize(uint16_t width, uint16_t height) override {
      out_.write_stdout(std::to_string(width) + "x" + std::to_string(height));
    }
    Result<int> wait() override {
      if (!streams_.echoes) out_.write_stdout("hello\n"), out_.write_stderr("oops\n");
      else
        closed_.wait(
            {}, [](bool closed) { return closed; }, [](bool) {});
      return streams_.exit_code;
    }

   private:
    PlayedStreams& streams_;
    ExecOutput& out_;
    Guarded<bool> closed_{false};
  };
  Result<std::unique_ptr<ExecSession>> exec(const ExecRequest& request, ExecOutput& out) override {
    last_exec = request;
    return std::unique_ptr<ExecSession>(std::make_unique<Session>(*this, out));
  }

  Result<Fd> connect(const Key&, uint16_t port, std::stop_token) override {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET, at.sin_port = htons(port), at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) < 0)
      return Error(Code::unavailable, "connect: connection refused");
    return socket;
  }
};

class PlayedImages : public NodeImages {
 public:
  size_t imported_bytes = 0;
  json::value list() override { return json::array{json::object{{"id", "sha256:1"}}}; }
  std::string asked;  // user and object name of the last call
  Result<json::value> pull(const std::string& reference, const std::string& user, const std::string& password,
                           const std::function<void(const json::value&)>& progress) override {
    asked = user + ":" + password;
    progress(json::object{{"done", 1}, {"total", 2}});
    if (reference == "missing") return Error(Code::not_found, "no such image");
    return json::value(json::object{{"id", "sha256:2"}});
  }
  Result<json::value> import(const Fd& archive, const std::string&) override {
    char buffer[4096];
    for (ssize_t got; (got = ::read(archive.get(), buffer, sizeof buffer)) > 0;) imported_bytes += size_t(got);
    return json::value(json::array{json::object{{"id", "sha256:3"}}});
  }
  std::string archive;  // the data that write_archive writes, and whether it can write all of it
  bool breaks_off = false;
  Result<void> write_archive(const std::vector<std::string>& references, const Fd& to) override {
    for (const std::string& each : references)
      if (each == "missing") return Error(Code::not_found, "no image \"missing\" here");
    asked = references.front() + " " + std::to_string(references.size());
    TRY(sys::write_all(to, archive));
    return breaks_off ? Result<void>(Error(Code::internal, "the disk broke")) : Result<void>();
  }
  Result<json::value> remove(const std::string&) override { return json::value(json::object{{"deleted", true}}); }
  Result<json::value> tag(const std::string& reference, const std::string& name) override {
    asked = reference + " " + name;
    return json::value(json::object{{"id", "sha256:4"}});
  }
  Result<json::value> prune(bool all) override {
    return json::value(json::array{json::object{{"id", all ? "sha256:6" : "sha256:5"}}});
  }
};

class PlayedVolumes : public NodeVolumes {
 public:
  std::string archive, asked;
  size_t imported_bytes = 0;
  Result<void> export_volume(const Key& claim, bool while_in_use, const Fd& to) override {
    asked = claim.text() + (while_in_use ? " in use" : "");
    if (claim.name == "used" && !while_in_use) return Error(Code::conflict, "in use by pod db");
    return sys::write_all(to, archive);
  }
  Result<json::value> import_volume(const Key& claim, bool replace, const Fd& from) override {
    asked = claim.text() + (replace ? " replaced" : "");
    if (claim.name == "full" && !replace) return Error(Code::already_exists, "it is not empty");
    char buffer[4096];
    for (ssize_t got; (got = ::read(from.get(), buffer, sizeof buffer)) > 0;) imported_bytes += size_t(got);
    return json::value(json::object{{"entries", 3}, {"bytes", 7}});
  }
};

// Waits for a consequence of a client's disconnect. Returns false if it does not happen within a minute.
inline bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class ServerFixture {
 public:
  // `audit_policy`: YAML; with one, the audit log is audit.log in the directory.
  explicit ServerFixture(HttpServerLimits limits = {}, const schema::CatalogSource& catalogs = built_in_catalogs(),
                         std::string_view audit_policy = {}) {
    char path[] = "/tmp/coracle-api-XXXXXX";
    directory = ::mkdtemp(path);
    engine::Options options;
    options.find_kind = std::bind_front(&schema::CatalogSource::stored_kind, &catalogs);
    engine = MUST(engine::Engine::open(directory + "/store.db", options));
    registry = std::make_unique<registry::Registry>(*engine, catalogs, kinds::Ranges{});
    MUST(registry::bootstrap(*registry, {}, {"192.0.2.1", 6443}));
    MUST(auth::ensure_default_roles(*registry));
    json::value account = MUST(parse_json(R"({"metadata":{"name":"default"}})"));
    MUST(registry->create(kServiceAccount, {"default", ""}, account, {}));
    Config config;
    config.pki_dir = directory + "/pki";
    config.listen = {{"127.0.0.1", 0}};
    config.node_name = "test-node";
    config.system_logs = directory + "/log";
    config.kubeconfig_path = directory + "/admin.kubeconfig";
    config.local_socket_dir = directory;
    config.limits = limits;
    config.tokens.static_tokens["t0ken"] = {"someone", "", {"system:authenticated"}, {}};
    if (!audit_policy.empty()) {
      config.audit.policy_path = directory + "/policy.yaml", config.audit.log_path = directory + "/audit.log";
      std::ofstream(config.audit.policy_path) << audit_policy;
    }
    server = std::make_unique<Server>(config, *registry, streams, images, volumes);
    MUST(server->start());
  }
  ~ServerFixture() {
    server.reset();
    registry.reset();
    engine.reset();
    std::filesystem::remove_all(directory);
  }
  uint16_t port() const { return server->bound().front().port; }
  // Expects that no watch, followed log, exec or forwarded port is left.
  void expect_no_streams() {
    EXPECT_TRUE(comes_true([&] { return server->counts().watches == 0; })) << server->counts().watches << " are left";
  }

  std::string directory;
  PlayedStreams streams;
  PlayedImages images;
  PlayedVolumes volumes;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<registry::Registry> registry;
  std::unique_ptr<Server> server;
};

}  // namespace coracle::api
