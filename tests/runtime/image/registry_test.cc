// SPDX-License-Identifier: Apache-2.0
// Pulls from a real registry (Debian's docker-registry, on loopback): by tag and digest; with anonymous, basic and bearer
// authentication; through a proxy that closes connections at random offsets; by a process that is killed at random times. Needs
// root and the programs docker-registry, skopeo, openssl.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/image/digest.h"
#include "runtime/image/fetch/http.h"
#include "runtime/image/manifest.h"
#include "runtime/image/store.h"
#include "runtime/sys/file.h"
#include "runtime/sys/socket.h"
#include "tests/runtime/image/builder.h"
#include "tests/runtime/image/small_server.h"

namespace coracle::image {
namespace {

using namespace test;
namespace fs = std::filesystem;

// Relays data to `upstream`, and closes each connection after `allowance` bytes of the response.
class CuttingProxy {
 public:
  CuttingProxy(uint16_t upstream, std::function<int64_t()> allowance)
      : upstream_(upstream), allowance_(std::move(allowance)), server_([this](int fd) { serve(fd); }) {}
  std::string host() const { return server_.host(); }
  int cuts() const { return cuts_; }
  int64_t passed() const { return passed_; }

 private:
  void serve(int client) {
    int server = connect_to(upstream_);
    if (server < 0) return;
    int64_t left = allowance_();
    char buffer[4096];
    for (;;) {
      pollfd both[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
      if (::poll(both, 2, 5000) <= 0) break;
      if (both[0].revents) {
        ssize_t n = ::read(client, buffer, sizeof buffer);
        if (n <= 0 || ::write(server, buffer, size_t(n)) != n) break;
      }
      if (both[1].revents) {
        ssize_t n = ::read(server, buffer, size_t(std::min<int64_t>(sizeof buffer, left)));
        if (n <= 0 || ::write(client, buffer, size_t(n)) != n) break;
        left -= n;
        passed_ += n;
        if (left <= 0) {
          ++cuts_;
          break;
        }
      }
    }
    ::close(server);
  }
  uint16_t upstream_;
  std::function<int64_t()> allowance_;
  std::atomic<int> cuts_{0};
  std::atomic<int64_t> passed_{0};
  Server server_;
};

// ---- the registry ----

bool have(const char* program) { return ::system(("command -v " + std::string(program) + " >/dev/null 2>&1").c_str()) == 0; }

class Child {  // a program that is killed by the destructor
 public:
  Child(const std::vector<std::string>& argv, const std::string& log) {
    pid_ = ::fork();
    if (pid_ == 0) {
      int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(out, 1);
      ::dup2(out, 2);
      std::vector<char*> args;
      for (const auto& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
      args.push_back(nullptr);
      ::execvp(args[0], args.data());
      ::_exit(127);
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

class DebianRegistry {
 public:
  // `auth`: lines of its configuration; `tls`: the field of its http section.
  DebianRegistry(const std::string& dir, const std::string& auth, const std::string& tls = "") : dir_(dir) {
    // Nobody else gets a port that is bound. A program that sets SO_REUSEADDR, as Go's do, may listen on it nevertheless, because
    // this socket does not. Source: socket(7)
    uint16_t port;
    const Fd reserved(bind_to("127.0.0.1", port, true));
    port_ = port;
    fs::create_directories(dir + "/data");
    write_text(dir + "/config.yml",
               "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage:\n  filesystem: {rootdirectory: " + dir +
                   "/data}\nhttp: {addr: \"127.0.0.1:" + std::to_string(port) + "\"" + tls + "}\n" + auth);
    child_ = std::make_unique<Child>(std::vector<std::string>{"docker-registry", "serve", dir + "/config.yml"}, dir + "/log");
    for (int i = 0; i < 1200; ++i) {
      int fd = connect_to(port);
      if (fd >= 0) {
        ::close(fd);
        return;
      }
      ::usleep(50'000);
    }
    ADD_FAILURE() << "docker-registry does not listen: " << read_text(dir + "/log");
  }
  uint16_t port() const { return port_; }
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

  void push(const TestImage& image, const std::string& name, const std::string& more = "") {
    write_text(dir_ + "/push.tar", archive_of(oci_layout(image, "x:1")));
    std::string command = "skopeo copy --insecure-policy --dest-tls-verify=false --preserve-digests " + more +
                          " oci-archive:" + dir_ + "/push.tar:x:1 docker://" + host() + "/" + name + " >" + dir_ +
                          "/skopeo.log 2>&1";
    ASSERT_EQ(::system(command.c_str()), 0) << read_text(dir_ + "/skopeo.log");
  }

 private:
  std::string dir_;
  uint16_t port_ = 0;
  std::unique_ptr<Child> child_;
};

std::string noise(size_t size, unsigned seed) {  // incompressible data
  std::mt19937 random(seed);
  std::string out(size, '\0');
  for (char& c : out) c = char(random());
  return out;
}

TestImage sample(size_t size = 300'000) {
  return {{{make_tar({{"etc", 'd', "", 0755}, {"etc/one", 'f', "1"}, {"big", 'f', noise(size, 1)}, {"link", 'h', "big"}})},
           {make_tar({{"etc/.wh.one", 'f'}, {"etc/two", 'f', "2"}, {"more", 'f', noise(size / 2, 2), 04755}}), Packing::zstd},
           {make_tar({{"last", 'f', noise(size / 3, 3)}}), Packing::plain},
           {make_tar({{"user", 'f', "u", 0644, 5, 6, 7, {{"user.x", "y"}}}})}}};
}

class Registries : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    for (const char* program : {"docker-registry", "skopeo"})
      if (!have(program)) GTEST_SKIP() << program << " is missing";
  }
  std::unique_ptr<Store> open(const std::string& name, Options options = {}) {
    options.state_dir = dir_.path() + "/" + name;
    options.worker_program = CORACLE_IMAGE;
    options.retry_delay = std::chrono::milliseconds(5);
    auto made = make_store(options);
    EXPECT_TRUE(made.ok()) << made.error().text();
    return made ? std::move(*made) : nullptr;
  }
  // The store is consistent: every listed image has all its files, and no other files are left.
  static std::string content_of(Store& store, const std::string& id) {
    auto mount = store.snapshots().mount_image(id);
    return mount ? digest_text(tree_of("/proc/self/fd/" + std::to_string(mount->get()))) : mount.error().text();
  }
  static Result<runtime::Image> pull(Store& store, const std::string& reference,
                                     const std::vector<runtime::Credentials>& who = {}) {
    return store.pull(reference, who, nullptr, {});
  }
  std::string content_by_import(const TestImage& image) {
    auto store = open("imported");
    write_text(dir_.path() + "/a.tar", archive_of(oci_layout(image, "localhost/x:1")));
    Fd fd = *sys::open(dir_.path() + "/a.tar", O_RDONLY);
    return content_of(*store, store->import(fd, "")->front().id);
  }
  TempDir dir_;
};

TEST_F(Registries, pulls_by_tag_and_by_digest) {
  DebianRegistry registry(dir_.path() + "/r", "");
  registry.push(sample(), "team/app:1.0");
  auto store = open("s");
  std::vector<runtime::PullProgress> seen;
  auto got = store->pull(registry.host() + "/team/app:1.0", {}, [&](const auto& at) { seen.push_back(at); }, {});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->references, (std::vector<std::string>{registry.host() + "/team/app:1.0"}));
  ASSERT_EQ(got->digests.size(), 1u);
  EXPECT_EQ(content_of(*store, got->id), content_by_import(sample()));
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen.back().layers_done, 4);
  EXPECT_EQ(seen.back().done.count, seen.back().total.count);
  EXPECT_GT(seen.back().total.count, 300'000);
  EXPECT_TRUE(fs::is_empty(dir_.path() + "/s/partial")) << "compressed layers are not kept";

  auto other = open("other");
  auto by_digest = pull(*other, got->digests[0]);
  ASSERT_TRUE(by_digest.ok()) << by_digest.error().text();
  EXPECT_EQ(by_digest->id, got->id);
  EXPECT_TRUE(by_digest->references.empty());
  EXPECT_TRUE(other->find(got->digests[0]).ok());

  EXPECT_EQ(pull(*store, registry.host() + "/team/app:2.0").error().code(), Code::not_found);
  EXPECT_EQ(pull(*store, registry.host() + "/none:1").error().code(), Code::not_found);
  EXPECT_EQ(pull(*store, registry.host() + "/team/app@sha256:" + std::string(64, 'a')).error().code(), Code::not_found);
  auto nobody = pull(*store, "127.0.0.1:1/x");
  EXPECT_EQ(nobody.error().code(), Code::unavailable);
  EXPECT_TRUE(runtime::is_registry_unreachable(nobody.error()));
}

TEST_F(Registries, a_tag_that_moved_is_pulled_anew) {
  DebianRegistry registry(dir_.path() + "/r", "");
  auto store = open("s");
  registry.push({{{make_tar({{"one"}})}}}, "app:1");
  auto one = pull(*store, registry.host() + "/app:1");
  registry.push({{{make_tar({{"two"}})}}}, "app:1");
  auto two = pull(*store, registry.host() + "/app:1");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->id, two->id);
  EXPECT_EQ(store->find(registry.host() + "/app:1")->id, two->id);
  EXPECT_TRUE(store->find(one->id)->references.empty());
}

TEST_F(Registries, basic_authentication) {
  if (!have("htpasswd")) GTEST_SKIP() << "htpasswd (apache2-utils) is missing";
  ASSERT_EQ(::system(("htpasswd -Bbn alice 'se:cret' >" + dir_.path() + "/htpasswd").c_str()), 0);
  DebianRegistry registry(dir_.path() + "/r", "auth: {htpasswd: {realm: here, path: " + dir_.path() + "/htpasswd}}\n");
  registry.push(sample(1000), "app:1", "--dest-creds 'alice:se:cret'");
  auto store = open("s");
  std::string name = registry.host() + "/app:1";
  EXPECT_EQ(pull(*store, name).error().code(), Code::unauthorized);
  EXPECT_EQ(pull(*store, name, {{registry.host(), "alice", "wrong", ""}}).error().code(), Code::unauthorized);
  EXPECT_EQ(pull(*store, name, {{"other.example", "alice", "se:cret", ""}}).error().code(), Code::unauthorized);
  EXPECT_TRUE(store->list().empty());
  auto got = pull(*store, name, {{registry.host(), "alice", "wrong", ""}, {registry.host(), "alice", "se:cret", ""}});
  EXPECT_TRUE(got.ok()) << "the second of two is tried: " << got.error().text();
}

TEST_F(Registries, an_image_is_for_whom_its_registry_gave_it) {
  if (!have("htpasswd")) GTEST_SKIP() << "htpasswd (apache2-utils) is missing";
  ASSERT_EQ(::system(("htpasswd -Bbn alice secret >" + dir_.path() + "/htpasswd").c_str()), 0);
  DebianRegistry closed(dir_.path() + "/c", "auth: {htpasswd: {realm: here, path: " + dir_.path() + "/htpasswd}}\n");
  DebianRegistry open_one(dir_.path() + "/o", "");
  closed.push(sample(1000), "app:1", "--dest-creds alice:secret");
  open_one.push(sample(1000), "app:1");
  const std::string name = closed.host() + "/app:1", free_name = open_one.host() + "/app:1";
  const runtime::Credentials alice{closed.host(), "alice", "secret", "", "a/key/1"};
  const runtime::Credentials copied{closed.host(), "alice", "secret", "", "b/key/2"};
  const runtime::Credentials rotated{closed.host(), "alice", "new", "", "b/key/2"};
  const runtime::Credentials bob{closed.host(), "bob", "secret", "", "b/other/3"};
  auto store = open("s");
  auto got = pull(*store, name, {bob, alice});
  ASSERT_TRUE(got.ok()) << got.error().text();
  auto access = [&](const std::string& reference, const std::vector<runtime::Credentials>& who) {
    return store->access(*store->find(got->id), reference, who);
  };
  EXPECT_EQ(access(name, {alice}), runtime::ImageAccess::proven);
  EXPECT_EQ(access(name, {bob}), runtime::ImageAccess::unproven) << "the registry did not take these";
  EXPECT_EQ(access(name, {}), runtime::ImageAccess::unproven);
  EXPECT_EQ(access(got->id, {}), runtime::ImageAccess::unproven) << "nor by its id";
  EXPECT_EQ(access(got->digests[0], {}), runtime::ImageAccess::unproven);
  EXPECT_EQ(access(name, {rotated}), runtime::ImageAccess::unproven);
  EXPECT_EQ(access(name, {bob, copied}), runtime::ImageAccess::proven);
  store.reset();
  store = open("s");
  EXPECT_EQ(access(name, {rotated}), runtime::ImageAccess::proven) << "the other secret was noted, and is there after a restart";
  EXPECT_EQ(access(free_name, {}), runtime::ImageAccess::unproven) << "nobody has pulled it under this name";
  ASSERT_TRUE(pull(*store, free_name).ok());
  EXPECT_EQ(access(free_name, {}), runtime::ImageAccess::proven);
  EXPECT_EQ(access(name, {}), runtime::ImageAccess::unproven) << "the other name is as it was";

  write_text(dir_.path() + "/a.tar", archive_of(oci_layout(sample(1000), name)));
  Fd fd = *sys::open(dir_.path() + "/a.tar", O_RDONLY);
  ASSERT_TRUE(store->import(fd, "").ok());
  EXPECT_EQ(access(name, {}), runtime::ImageAccess::preloaded) << "what the administrator imports is for all";
  ASSERT_TRUE(store->remove(name).ok());
  ASSERT_TRUE(pull(*store, name, {alice}).ok());
  EXPECT_EQ(access(free_name, {}), runtime::ImageAccess::proven);

  write_text(dir_.path() + "/s/pulled/" + got->id.substr(7), "{");
  store.reset();
  store = open("s");
  EXPECT_EQ(access(free_name, {alice}), runtime::ImageAccess::unproven) << "a damaged record proves nothing";
  ASSERT_TRUE(store->remove(got->id).ok());
  EXPECT_TRUE(fs::is_empty(dir_.path() + "/s/pulled")) << "the record goes with its image";
}

// A token server whose signatures docker-registry accepts: full tokens for alice; anonymous clients only get a token for "open".
class TokenServer {
 public:
  explicit TokenServer(const std::string& dir) : dir_(dir), server_([this](int fd) { serve(fd); }) {
    std::string command = "cd " + dir +
                          " && openssl ecparam -name prime256v1 -genkey -noout -out key.pem 2>/dev/null && "
                          "openssl req -x509 -new -key key.pem -subj /CN=token -days 30 -out cert.pem 2>/dev/null && "
                          "openssl x509 -in cert.pem -outform der -out cert.der";
    EXPECT_EQ(::system(command.c_str()), 0);
  }
  std::string realm() const { return "http://" + server_.host() + "/token"; }
  std::string cert() const { return dir_ + "/cert.pem"; }
  std::atomic<int> asked{0}, with_password{0};

 private:
  void serve(int fd) {
    std::string head = read_head(fd);
    ++asked;
    bool alice = head.find("Authorization: Basic " + base64_encode("alice:secret")) != head.npos;
    if (alice) ++with_password;
    if (!alice && head.find("Authorization:") != head.npos) return answer(fd, "401 Unauthorized", "", "{}");
    std::string scope;
    if (size_t at = head.find("scope="); at != head.npos)
      scope = *percent_decode(head.substr(at + 6, head.find_first_of("& ", at) - at - 6));
    auto parts = split(scope, ':');
    json::array access;
    if (parts.size() == 3 && (alice || parts[1] == "open"))
      access.push_back({{"type", "repository"}, {"name", parts[1]}, {"actions", {"pull", "push"}}});
    int64_t now = ::time(nullptr);
    std::string header =
        to_text(json::object{{"alg", "ES256"}, {"typ", "JWT"}, {"x5c", {base64_encode(read_text(dir_ + "/cert.der"))}}});
    std::string payload = to_text(json::object{{"iss", "token"},
                                               {"sub", "x"},
                                               {"aud", "reg"},
                                               {"exp", now + 60},
                                               {"nbf", now - 10},
                                               {"iat", now},
                                               {"jti", std::to_string(asked)},
                                               {"access", access}});
    std::string text = base64url_encode(header) + "." + base64url_encode(payload);
    answer(fd, "200 OK", "", to_text(json::object{{"token", text + "." + sign(text)}}));
  }
  std::string sign(const std::string& text) {  // converts openssl's ASN.1 to the two numbers of JWS
    std::string name = dir_ + "/t" + std::to_string(asked) + std::to_string(std::hash<std::string>()(text));
    write_text(name, text);
    EXPECT_EQ(::system(("openssl dgst -sha256 -sign " + dir_ + "/key.pem -out " + name + ".sig " + name).c_str()), 0);
    std::string der = read_text(name + ".sig"), out;
    size_t at = 2;
    for (int i = 0; i < 2; ++i) {
      size_t length = uint8_t(der[at + 1]);
      std::string number = der.substr(at + 2, length);
      at += 2 + length;
      if (number.size() > 32) number.erase(0, number.size() - 32);
      out += std::string(32 - number.size(), '\0') + number;
    }
    return base64url_encode(out);
  }
  std::string dir_;
  Server server_;
};

TEST_F(Registries, bearer_authentication) {
  if (!have("openssl")) GTEST_SKIP() << "openssl is missing";
  fs::create_directory(dir_.path() + "/t");
  TokenServer tokens(dir_.path() + "/t");
  DebianRegistry registry(dir_.path() + "/r", "auth: {token: {realm: \"" + tokens.realm() +
                                                  "\", service: reg, issuer: token, rootcertbundle: " + tokens.cert() + "}}\n");
  registry.push(sample(1000), "open:1", "--dest-creds alice:secret");
  registry.push(sample(1000), "closed:1", "--dest-creds alice:secret");
  auto store = open("s");
  auto anonymous = pull(*store, registry.host() + "/open:1");
  EXPECT_TRUE(anonymous.ok()) << anonymous.error().text();
  EXPECT_EQ(pull(*store, registry.host() + "/closed:1").error().code(), Code::unauthorized);
  EXPECT_EQ(pull(*store, registry.host() + "/closed:1", {{registry.host(), "alice", "wrong", ""}}).error().code(),
            Code::unauthorized);
  int before = tokens.asked;
  auto known = pull(*store, registry.host() + "/closed:1", {{registry.host(), "alice", "secret", ""}});
  EXPECT_TRUE(known.ok()) << known.error().text();
  EXPECT_LE(tokens.asked - before, 4) << "a token is used again";
}

TEST_F(Registries, authorisation_stays_with_its_host) {
  std::atomic<int> leaked{0}, reached{0};
  Server elsewhere([&](int fd) {
    std::string head = read_head(fd);
    ++reached;
    if (to_lower(head).find("authorization:") != head.npos) ++leaked;
    answer(fd, "404 Not Found", "", "");
  });
  Server front([&](int fd) {
    std::string head = read_head(fd);
    if (to_lower(head).find("authorization:") == head.npos)
      return answer(fd, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "");
    answer(fd, "307 Temporary Redirect", "Location: http://" + elsewhere.host() + "/v2/x\r\n", "");
  });
  auto store = open("s");
  EXPECT_FALSE(pull(*store, front.host() + "/app:1", {{front.host(), "alice", "secret", ""}}).ok());
  EXPECT_GE(reached, 1);
  EXPECT_EQ(leaked, 0);
}

TEST(Http, may_be_kept_from_this_machine) {
  std::atomic<int> reached{0};
  Server here([&](int fd) {
    ++reached;
    read_head(fd);
    answer(fd, "200 OK", "", "secret");
  });
  Http http({});
  for (const std::string& host : {here.host(), "localhost:" + std::to_string(here.port())}) {
    Request request;
    request.url = "http://" + host + "/";
    auto allowed = http.start(request);
    ASSERT_TRUE(allowed.ok()) << allowed.error().text();
    EXPECT_TRUE((*allowed)->is_local());
    allowed->reset();
    int before = reached;
    request.may_be_local = false;
    auto refused = http.start(request);
    ASSERT_FALSE(refused.ok()) << host;
    EXPECT_EQ(refused.error().code(), Code::forbidden) << refused.error().text();
    EXPECT_EQ(reached, before) << "nothing was sent to " << host;
  }
}

// Pulls from a registry at a local address other than loopback, which is treated like a remote one.
class Elsewhere : public Registries {
 protected:
  void SetUp() override {
    Registries::SetUp();
    for (const std::string& address : sys::interface_addresses())
      if (address.find(':') == address.npos && address_.empty()) address_ = address;
    if (address_.empty()) GTEST_SKIP() << "this machine has no address beside loopback";
  }
  Options trusting(const Server& server) {
    Options options;
    options.registries = [host = server.host()] { return runtime::RegistrySettings{{host}, {}}; };
    return options;
  }
  std::string address_;
};

TEST_F(Elsewhere, a_registry_s_realm_is_no_way_to_this_machine) {
  std::atomic<int> reached{0}, sent_on{0};
  Server inside([&](int fd) {
    ++reached;
    read_head(fd);
    answer(fd, "200 OK", "", R"({"token":"metadata"})");
  });
  Server front(
      [&](int fd) {
        std::string head = read_head(fd);
        sent_on += head.find("metadata") != head.npos;
        answer(fd, "401 Unauthorized", "WWW-Authenticate: Bearer realm=\"http://" + inside.host() + "/token\"\r\n", "");
      },
      address_);
  auto store = open("s", trusting(front));
  auto got = pull(*store, front.host() + "/app:1", {{front.host(), "alice", "secret", ""}});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().text().find("this machine itself"), std::string::npos) << got.error().text();
  EXPECT_EQ(reached, 0);
  EXPECT_EQ(sent_on, 0);
}

TEST_F(Elsewhere, nor_is_a_redirect) {
  std::atomic<int> reached{0};
  Server inside([&](int fd) {
    ++reached;
    read_head(fd);
    answer(fd, "200 OK", "", "{}");
  });
  Server front(
      [&](int fd) {
        read_head(fd);
        answer(fd, "307 Temporary Redirect", "Location: http://" + inside.host() + "/metrics\r\n", "");
      },
      address_);
  auto store = open("s", trusting(front));
  auto got = pull(*store, front.host() + "/app:1");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::forbidden) << got.error().text();
  EXPECT_EQ(reached, 0);
}

TEST_F(Registries, a_password_goes_unencrypted_to_no_other_host) {
  std::atomic<int> asked{0}, leaked{0};
  Server tokens([&](int fd) {
    std::string head = read_head(fd);
    ++asked;
    leaked += to_lower(head).find("authorization:") != head.npos;
    answer(fd, "200 OK", "", R"({"token":"t"})");
  });
  // The name resolves to the same address, but is a different name.
  std::string realm = "http://tokens.example.invalid:" + std::to_string(tokens.port()) + "/token";
  Server front([&](int fd) {
    read_head(fd);
    answer(fd, "401 Unauthorized", "WWW-Authenticate: Bearer realm=\"" + realm + "\"\r\n", "");
  });
  auto store = open("s");
  auto got = pull(*store, front.host() + "/app:1", {{front.host(), "alice", "secret", ""}});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().text().find("another host"), std::string::npos) << got.error().text();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(leaked, 0);
}

// The target of a redirect sends a challenge; its realm is an untrusted server.
TEST_F(Registries, only_the_registry_s_own_challenge_is_answered) {
  std::atomic<int> asked{0};
  Server tokens([&](int fd) {
    read_head(fd);
    ++asked;
    answer(fd, "200 OK", "", R"({"token":"t"})");
  });
  Server elsewhere([&](int fd) {
    read_head(fd);
    answer(fd, "401 Unauthorized", "WWW-Authenticate: Bearer realm=\"http://" + tokens.host() + "/token\"\r\n", "");
  });
  Server front([&](int fd) {
    read_head(fd);
    answer(fd, "307 Temporary Redirect", "Location: http://" + elsewhere.host() + "/v2/x\r\n", "");
  });
  auto store = open("s");
  auto got = pull(*store, front.host() + "/app:1", {{front.host(), "alice", "secret", ""}});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::unauthorized) << got.error().text();
  EXPECT_EQ(asked, 0);
}

TEST_F(Registries, every_credential_is_tried_until_one_may) {
  std::atomic<int> tried{0};
  Server front([&](int fd) {
    std::string head = read_head(fd);
    ++tried;
    if (head.find("Authorization:") == head.npos)
      return answer(fd, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "");
    if (head.find(base64_encode("bob:b")) != head.npos) return answer(fd, "404 Not Found", "", "");
    if (head.find(base64_encode("carol:c")) != head.npos) return answer(fd, "403 Forbidden", "", "");
    answer(fd, "200 OK", "", "<html>");  // alice is authenticated
  });
  auto store = open("s");
  auto got = pull(*store, front.host() + "/app:1",
                  {{front.host(), "bob", "b", ""}, {front.host(), "carol", "c", ""}, {front.host(), "alice", "a", ""}});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code(), Code::invalid) << "what she was given is no manifest: " << got.error().text();
  EXPECT_GE(tried, 4);
}

// CVE-2020-15157: a layer's "urls" name another host, which asks for credentials.
TEST_F(Registries, a_layer_s_foreign_address_is_not_asked) {
  std::atomic<int> reached{0};
  Server elsewhere([&](int fd) {
    ++reached;
    read_head(fd);
    answer(fd, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "");
  });
  const std::string layer = make_tar({{"a"}}), config = oci_config({{{layer, Packing::plain}}});
  const std::string manifest =
      R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":")" +
      digest_text(config) + R"(","size":)" + std::to_string(config.size()) +
      R"(},"layers":[{"mediaType":"application/vnd.oci.image.layer.nondistributable.v1.tar","digest":")" + digest_text(layer) +
      R"(","size":)" + std::to_string(layer.size()) + R"(,"urls":["http://)" + elsewhere.host() +
      R"(/layer","http://alice:secret@)" + elsewhere.host() + R"(/layer"]}]})";
  std::atomic<int> asked{0};
  Server front([&](int fd) {
    std::string head = read_head(fd);
    if (to_lower(head).find("authorization:") == head.npos)
      return answer(fd, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "");
    asked += head.find(digest_text(layer)) != head.npos;
    if (head.find("/manifests/") != head.npos)
      return answer(fd, "200 OK", "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n", manifest);
    if (head.find(digest_text(config)) != head.npos) return answer(fd, "200 OK", "", config);
    answer(fd, "404 Not Found", "", "");
  });
  auto store = open("s");
  EXPECT_FALSE(pull(*store, front.host() + "/app:1", {{front.host(), "alice", "secret", ""}}).ok());
  EXPECT_GE(asked, 1) << "the attack came as far as the layer";
  EXPECT_EQ(reached, 0);
}

TEST_F(Registries, a_server_that_lies_or_misbehaves_is_an_error) {
  struct Row {
    std::string name, status, headers, body;
    Code code;
  };
  const std::string manifest = R"({"schemaVersion":2,"manifests":[]})";
  for (const Row& row : {
           Row{"wrong digest header", "200 OK", "Docker-Content-Digest: sha256:" + std::string(64, 'a') + "\r\n", manifest,
               Code::invalid},
           Row{"no manifest", "200 OK", "", "<html>", Code::invalid},
           Row{"an index of nothing", "200 OK", "", manifest, Code::not_found},
           Row{"too large", "200 OK", "", std::string(5 << 20, ' '), Code::too_large},
           Row{"forbidden", "403 Forbidden", "", R"({"errors":[{"message":"not for you"}]})", Code::forbidden},
           Row{"broken", "500 Oops", "", "", Code::unavailable},
           Row{"busy", "429 Slow down", "Retry-After: 0\r\n", "", Code::too_many_requests},
           Row{"redirects for ever", "302 Found", "Location: /v2/again\r\n", "", Code::unavailable},
           Row{"redirects to a file", "302 Found", "Location: file:///etc/passwd\r\n", "", Code::forbidden},
       }) {
    Server server([&](int fd) {
      read_head(fd);
      answer(fd, row.status, row.headers, row.body);
    });
    auto store = open("lies");
    auto got = pull(*store, server.host() + "/app:1");
    ASSERT_FALSE(got.ok()) << row.name;
    EXPECT_EQ(got.error().code(), row.code) << row.name << ": " << got.error().text();
    EXPECT_EQ(runtime::is_registry_unreachable(got.error()), row.name == "broken") << row.name << ": the others have answered";
  }
}

TEST_F(Registries, mirrors_come_first_and_the_registry_last) {
  DebianRegistry mirror(dir_.path() + "/m", ""), registry(dir_.path() + "/r", "");
  mirror.push({{{make_tar({{"mirrored"}})}}}, "app:1");
  registry.push({{{make_tar({{"own"}})}}}, "app:1");
  registry.push({{{make_tar({{"own"}})}}}, "only-here:1");
  Options options;
  std::vector<std::string> mirrors = {"http://127.0.0.1:1", "http://" + mirror.host()};
  options.registries = [&] { return runtime::RegistrySettings{{}, {{registry.host(), mirrors}}}; };
  auto store = open("s", options);
  auto mirrored = pull(*store, registry.host() + "/app:1");
  ASSERT_TRUE(mirrored.ok()) << mirrored.error().text();
  auto mount = store->snapshots().mount_image(mirrored->id);
  EXPECT_TRUE(fs::exists("/proc/self/fd/" + std::to_string(mount->get()) + "/mirrored"));
  EXPECT_EQ(mirrored->references[0], registry.host() + "/app:1") << "the name is the registry's";
  EXPECT_TRUE(pull(*store, registry.host() + "/only-here:1").ok());
}

TEST_F(Registries, a_mirror_that_misbehaves_is_passed_over) {
  DebianRegistry registry(dir_.path() + "/r", "");
  registry.push(sample(1000), "app:1");
  struct Row {
    const char *name, *status, *headers, *body;
    bool is_away = false;  // it may take long until that is known
  };
  for (const Row& row : {
           Row{"garbage", "200 OK", "", "\x01\x02<html>"},
           Row{"another digest", "200 OK", "Docker-Content-Digest: sha256:0\r\n", "{}"},
           Row{"broken", "500 Oops", "", "", true},
           Row{"closed", "403 Forbidden", "", ""},
           Row{"a challenge that leads nowhere", "401 Unauthorized", "WWW-Authenticate: Bearer realm=\"nowhere\"\r\n", ""},
           Row{"nothing at all", nullptr, "", "", true},
       }) {
    std::atomic<int> asked{0};
    Server mirror([&](int fd) {
      read_head(fd);
      ++asked;
      if (row.status) answer(fd, row.status, row.headers, row.body);
    });
    Options options;
    runtime::RegistrySettings settings;
    settings.mirrors[registry.host()] = {"http://" + mirror.host()};
    settings.servers["only.invalid"] = {{"http://" + mirror.host() + "/v2"}};
    options.registries = [&] { return settings; };
    auto store = open("s", options);
    auto got = pull(*store, registry.host() + "/app:1");
    EXPECT_TRUE(got.ok()) << row.name << ": " << (got ? "" : got.error().text());
    EXPECT_GE(asked, 1) << row.name;
    if (row.is_away) {
      EXPECT_EQ(asked, 1) << row.name << ": it is not asked for the configuration and the layers too";
    }
    auto only = pull(*store, "only.invalid/app:1");
    ASSERT_FALSE(only.ok()) << row.name;
    EXPECT_NE(only.error().text().find(mirror.host()), std::string::npos) << row.name << ": " << only.error().text();
  }
}

TEST_F(Registries, a_mirror_may_have_other_names) {
  DebianRegistry mirror(dir_.path() + "/m", "");
  mirror.push({{{make_tar({{"mirrored"}})}}}, "hub/app:1");
  Options options;
  runtime::RegistrySettings settings;
  settings.mirrors["registry.invalid"] = {"http://" + mirror.host()};
  settings.rewrites["registry.invalid"] = {{"^team/(.*)", "hub/$1"}};
  options.registries = [&] { return settings; };
  auto store = open("s", options);
  auto got = pull(*store, "registry.invalid/team/app:1");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->references[0], "registry.invalid/team/app:1") << "the name is the registry's";
}

TEST_F(Registries, hosts_toml_says_who_is_asked_for_what) {
  DebianRegistry mirror(dir_.path() + "/m", ""), registry(dir_.path() + "/r", "");
  mirror.push({{{make_tar({{"mirrored"}})}}}, "app:1");
  registry.push({{{make_tar({{"own"}})}}}, "app:1");
  registry.push({{{make_tar({{"own"}})}}}, "only-here:1");
  Options options;
  runtime::RegistrySettings settings;
  settings.mirrors[registry.host()] = {"http://" + registry.host()};
  runtime::RegistryServer far;
  far.url = "http://" + mirror.host() + "/v2";
  settings.servers[registry.host()] = {far};
  options.registries = [&] { return settings; };
  auto store = open("s", options);
  auto has = [&](const std::string& id, const std::string& file) {
    auto mount = store->snapshots().mount_image(id);
    return mount && fs::exists("/proc/self/fd/" + std::to_string(mount->get()) + "/" + file);
  };
  auto mirrored = pull(*store, registry.host() + "/app:1");
  ASSERT_TRUE(mirrored.ok()) << mirrored.error().text();
  EXPECT_TRUE(has(mirrored->id, "mirrored"));
  EXPECT_FALSE(pull(*store, registry.host() + "/only-here:1").ok()) << "the registry itself is not asked";
  far.resolves = false;
  settings.servers[registry.host()] = {far, {}};
  auto own = pull(*store, registry.host() + "/app:1");
  ASSERT_TRUE(own.ok()) << own.error().text();
  EXPECT_TRUE(has(own->id, "own")) << "the mirror is not asked for tags";
  settings.servers[registry.host()] = {far};
  auto nobody = pull(*store, registry.host() + "/app:1");
  ASSERT_FALSE(nobody.ok());
  EXPECT_NE(nobody.error().text().find("no server of " + registry.host() + " for tags"), std::string::npos)
      << nobody.error().text();
}

TEST_F(Registries, a_header_of_hosts_toml_goes_to_its_host_only) {
  const std::string config = R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}})";
  const std::string manifest =
      R"({"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":")" + digest_text(config) +
      R"(","size":)" + std::to_string(config.size()) + R"(},"layers":[]})";
  std::atomic<int> with{0}, elsewhere_with{0}, elsewhere_asked{0};
  auto has_header = [](const std::string& head) { return to_lower(head).find("x-team: shop") != head.npos; };
  Server storage([&](int fd) {
    const std::string head = read_head(fd);
    ++elsewhere_asked;
    elsewhere_with += has_header(head);
    answer(fd, "200 OK", "", config);
  });
  Server front([&](int fd) {
    const std::string head = read_head(fd);
    with += has_header(head);
    if (head.find("/manifests/") != head.npos)
      return answer(fd, "200 OK", "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n", manifest);
    answer(fd, "307 Temporary Redirect", "Location: http://" + storage.host() + "/config\r\n", "");
  });
  Options options;
  runtime::RegistrySettings settings;
  runtime::RegistryServer server;
  server.url = "http://" + front.host() + "/v2";
  server.headers = {"X-Team: shop"};
  settings.servers["registry.invalid"] = {server};
  options.registries = [&] { return settings; };
  auto store = open("s", options);
  (void)pull(*store, "registry.invalid/app:1");
  EXPECT_GE(with, 2) << "the manifest and the configuration";
  EXPECT_GE(elsewhere_asked, 1);
  EXPECT_EQ(elsewhere_with, 0);
}

TEST_F(Registries, the_machine_s_credentials_bring_images_for_all) {
  if (!have("htpasswd")) GTEST_SKIP() << "htpasswd (apache2-utils) is missing";
  ASSERT_EQ(::system(("htpasswd -Bbn alice secret >" + dir_.path() + "/htpasswd").c_str()), 0);
  DebianRegistry closed(dir_.path() + "/c", "auth: {htpasswd: {realm: here, path: " + dir_.path() + "/htpasswd}}\n");
  closed.push(sample(1000), "app:1", "--dest-creds alice:secret");
  const std::string name = closed.host() + "/app:1";
  Options options;
  runtime::RegistrySettings settings;
  settings.hosts[closed.host()].credentials = {closed.host(), "alice", "secret", "", ""};
  options.registries = [&] { return settings; };
  auto store = open("s", options);
  const runtime::Credentials bob{closed.host(), "bob", "wrong", "", "b/key/1"};
  auto got = pull(*store, name, {bob});
  ASSERT_TRUE(got.ok()) << "after those of the pod: " << got.error().text();
  EXPECT_EQ(store->access(*store->find(got->id), name, {}), runtime::ImageAccess::proven);
}

TEST_F(Registries, what_a_pod_s_secret_has_helped_to_bring_is_not_for_all) {
  if (!have("htpasswd")) GTEST_SKIP() << "htpasswd (apache2-utils) is missing";
  ASSERT_EQ(::system(("htpasswd -Bbn alice secret >" + dir_.path() + "/htpasswd").c_str()), 0);
  const std::string auth = "auth: {htpasswd: {realm: here, path: " + dir_.path() + "/htpasswd}}\n";
  DebianRegistry mirror(dir_.path() + "/m", auth), registry(dir_.path() + "/r", auth);
  mirror.push(sample(1000), "app:other", "--dest-creds alice:secret");  // it has the layers only
  registry.push(sample(1000), "app:1", "--dest-creds alice:secret");
  const std::string name = registry.host() + "/app:1";
  Options options;
  runtime::RegistrySettings settings;
  settings.mirrors[registry.host()] = {"http://" + mirror.host()};
  settings.hosts[mirror.host()].credentials = {mirror.host(), "alice", "secret", "", ""};
  options.registries = [&] { return settings; };
  auto store = open("s", options);
  auto got = pull(*store, name, {{registry.host(), "alice", "secret", "", "b/key/1"}});
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(store->access(*store->find(got->id), name, {}), runtime::ImageAccess::unproven);
}

TEST_F(Registries, is_held_to_its_own_authority) {
  if (!have("openssl")) GTEST_SKIP() << "openssl is missing";
  for (const char* who : {"own", "other"}) {
    const std::string file = dir_.path() + "/" + who;
    ASSERT_EQ(
        ::system(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + file + ".key -out " +
                  file + ".pem -days 30 -subj /CN=" + who + " -addext subjectAltName=IP:127.0.0.1 2>/dev/null")
                     .c_str()),
        0);
  }
  DebianRegistry registry(dir_.path() + "/r", "",
                          ", tls: {certificate: " + dir_.path() + "/own.pem, key: " + dir_.path() + "/own.key}");
  registry.push(sample(1000), "app:1");
  const std::string name = registry.host() + "/app:1";
  Options options;
  runtime::RegistrySettings settings;
  options.registries = [&] { return settings; };
  auto store = open("s", options);
  settings.hosts[registry.host()].tls.authorities = read_text(dir_.path() + "/other.pem");
  auto refused = pull(*store, name);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::forbidden) << refused.error().text();
  EXPECT_NE(refused.error().text().find(registry.host()), std::string::npos) << refused.error().text();
  settings.hosts[registry.host()].tls.authorities = read_text(dir_.path() + "/own.pem");
  auto got = pull(*store, name);
  EXPECT_TRUE(got.ok()) << got.error().text();
}

TEST_F(Registries, unused_images_are_removed_until_it_is_enough_the_longest_unused_first) {
  DebianRegistry registry(dir_.path() + "/r", "");
  for (const char* name : {"first:1", "second:1", "third:1", "kept:1"})
    registry.push({{{make_tar({{std::string("of-") + name}})}}}, name);
  auto store = open("s");
  auto at = [&](const std::string& name) { return registry.host() + "/" + name; };
  std::string third;
  for (const char* name : {"first:1", "second:1", "third:1", "kept:1"}) {
    auto got = pull(*store, at(name));
    ASSERT_TRUE(got.ok()) << got.error().text();
    if (name == std::string("third:1")) third = got->id;
  }
  ASSERT_TRUE(store->tag(at("kept:1"), "localhost/kept:1").ok()) << "which no registry has";
  write_text(dir_.path() + "/a.tar", archive_of(oci_layout(sample(1000), "r.example/imported:1")));
  Fd fd = *sys::open(dir_.path() + "/a.tar", O_RDONLY);
  ASSERT_TRUE(store->import(fd, "").ok());
  auto names = [](const std::vector<runtime::Image>& images) {
    std::string out;
    for (const auto& each : images) out += each.references[0].substr(each.references[0].find('/') + 1) + " ";
    return out;
  };
  EXPECT_EQ(names(MUST(store->collect(std::chrono::seconds(3600), [] { return false; }))), "") << "they came just now";
  ASSERT_TRUE(store->snapshots().create("user", third, nullptr).ok());
  auto is_pulled_again = [&] {
    EXPECT_TRUE(pull(*store, at("first:1")).ok());
    EXPECT_TRUE(pull(*store, at("second:1")).ok());
    return false;
  };
  EXPECT_EQ(names(MUST(store->collect(std::chrono::seconds(0), is_pulled_again))), "") << "a pod is about to use them";
  int asked = 0;
  EXPECT_EQ(names(MUST(store->collect(std::chrono::seconds(0), [&] { return ++asked > 1; }))), "first:1 ") << "then it is enough";
  EXPECT_EQ(names(MUST(store->collect(std::chrono::seconds(0), [] { return false; }))), "second:1 ") << "the third is in use";
  ASSERT_TRUE(store->snapshots().remove("user").ok());
  EXPECT_EQ(names(MUST(store->collect(std::chrono::seconds(0), [] { return false; }))), "third:1 ");
  EXPECT_TRUE(store->find("r.example/imported:1").ok());
  EXPECT_TRUE(store->find("localhost/kept:1").ok());
}

TEST_F(Registries, a_pull_can_be_stopped) {
  Server silent([](int fd) {
    pollfd waiting{fd, POLLRDHUP, 0};
    ::poll(&waiting, 1, 600'000);
  });
  auto store = open("s");
  std::stop_source stop;
  std::jthread later([&] {
    ::usleep(200'000);
    stop.request_stop();
  });
  auto started = std::chrono::steady_clock::now();
  auto got = store->pull(silent.host() + "/app:1", {}, nullptr, stop.get_token());
  EXPECT_EQ(got.error().code(), Code::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(60)) << "the server is silent for ten minutes";
}

// ---- interruptions ----

int tries(int usual, int thorough) {
  return std::getenv("CORACLE_LONG") && std::string(std::getenv("CORACLE_LONG")) == "1" ? thorough : usual;
}

TEST_F(Registries, goes_on_where_the_network_was_cut) {
  DebianRegistry registry(dir_.path() + "/r", "");
  registry.push(sample(2'000'000), "app:1");
  std::string want = content_by_import(sample(2'000'000));
  std::random_device seeds;
  unsigned seed = seeds();
  std::mt19937 random(seed);
  std::mutex lock;
  CuttingProxy proxy(registry.port(), [&] {
    std::lock_guard guard(lock);
    return 2000 + int64_t(random() % 60'000);
  });
  auto store = open("s");
  auto got = pull(*store, proxy.host() + "/app:1");
  ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.error().text();
  EXPECT_EQ(content_of(*store, got->id), want) << "seed " << seed;
  EXPECT_GT(proxy.cuts(), 50);
  EXPECT_LT(proxy.passed(), 6'000'000) << "it goes on, it does not begin again: seed " << seed;
}

TEST_F(Registries, killed_at_any_moment_nothing_is_half_made) {
  DebianRegistry registry(dir_.path() + "/r", "");
  TestImage image = sample(400'000);
  registry.push(image, "app:1");
  std::string want = content_by_import(image);
  std::string id = digest_text(oci_config(image));
  std::random_device seeds;
  unsigned seed = seeds();
  std::mt19937 random(seed);
  int whole = 0;
  for (int i = 0; i < tries(60, 600); ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      Options options;
      options.state_dir = dir_.path() + "/killed";
      options.worker_program = CORACLE_IMAGE;
      auto store = make_store(options);
      if (!store) ::_exit(1);
      // Removes an existing image, so that every round has work to do.
      if ((*store)->find(registry.host() + "/app:1")) (void)(*store)->remove(registry.host() + "/app:1");
      auto got = pull(**store, registry.host() + "/app:1");
      if (!got) std::fprintf(stderr, "%s\n", got.error().text().c_str());
      ::_exit(got ? 0 : 2);
    }
    ::usleep(useconds_t(random() % 400'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    auto store = open("killed");
    ASSERT_TRUE(store) << "seed " << seed << " round " << i;
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status)) << "seed " << seed << " round " << i << ": " << WEXITSTATUS(status);
    ASSERT_TRUE(fs::is_empty(dir_.path() + "/killed/staging"));
    for (const auto& listed : store->list()) {
      ++whole;
      ASSERT_EQ(listed.id, id);
      ASSERT_EQ(content_of(*store, listed.id), want) << "seed " << seed << " round " << i;
    }
    if (WIFEXITED(status)) {
      ASSERT_EQ(store->list().size(), 1u) << "it said it was there: seed " << seed << " round " << i;
    }
  }
  auto store = open("killed");
  auto got = pull(*store, registry.host() + "/app:1");
  ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.error().text();
  EXPECT_EQ(content_of(*store, got->id), want);
  std::printf("measured: pull killed at random moments, the image was whole in %d of them\n", whole);
}

TEST_F(Registries, a_damaged_partial_download_begins_again) {
  DebianRegistry registry(dir_.path() + "/r", "");
  TestImage image = sample(50'000);
  registry.push(image, "app:1");
  auto store = open("s");
  std::string packed = pack(image.layers[0].tar, Packing::gzip);
  for (const std::string& bad :
       {std::string(1000, 'x'), packed.substr(0, 500) + "y" + packed.substr(501, 1000), packed + "more"}) {
    write_text(dir_.path() + "/s/partial/" + digest_of(packed).hex(), bad);
    auto got = pull(*store, registry.host() + "/app:1");
    ASSERT_TRUE(got.ok()) << got.error().text();
    EXPECT_EQ(content_of(*store, got->id), content_by_import(image));
    ASSERT_TRUE(store->remove(got->id).ok());
    EXPECT_TRUE(fs::is_empty(dir_.path() + "/s/partial"));
  }
}

TEST_F(Registries, two_pulls_of_one_image_do_not_disturb_each_other) {
  DebianRegistry registry(dir_.path() + "/r", "");
  registry.push(sample(), "app:1");
  registry.push(sample(), "copy:1");
  auto store = open("s");
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> pulls;
    for (int i = 0; i < 6; ++i)
      pulls.emplace_back([&, i] {
        if (pull(*store, registry.host() + (i % 2 ? "/app:1" : "/copy:1"))) ++good;
      });
  }
  EXPECT_EQ(good, 6);
  EXPECT_EQ(store->list().size(), 1u);
  EXPECT_EQ(store->list()[0].references.size(), 2u);
}

}  // namespace
}  // namespace coracle::image
