// SPDX-License-Identifier: Apache-2.0
// Mirrors and other servers of a registry that behave, and that do not: which server's bytes are used, what is sent to whom, and
// what the error says, which the events of a pod show. The servers are this test's own. Needs root, and openssl for TLS.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "runtime/base/text.h"
#include "runtime/image/store.h"
#include "tests/runtime/image/builder.h"
#include "tests/runtime/image/small_server.h"

namespace coracle::image {
namespace {

using namespace test;

// An image of small layers, each with one file.
struct TinyImage {
  explicit TinyImage(const std::string& file, int count = 1) {
    std::vector<std::string> tars;
    for (int i = 0; i < count; ++i) tars.push_back(make_tar({{file + std::to_string(i), 'f', std::string(3000, 'x')}}));
    *this = TinyImage(tars);
  }
  explicit TinyImage(const std::vector<std::string>& tars) {
    TestImage parts;
    for (const std::string& tar : tars) parts.layers.push_back({tar, Packing::plain});
    for (const TestLayer& each : parts.layers) layers.push_back(each.tar);
    config = oci_config(parts);
    manifest = R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":)" +
               descriptor("application/vnd.oci.image.config.v1+json", config) + R"(,"layers":[)";
    for (const std::string& layer : layers)
      manifest += (&layer == &layers.front() ? "" : ",") + descriptor("application/vnd.oci.image.layer.v1.tar", layer);
    manifest += "]}";
  }
  // What a registry answers that has it under every name.
  std::string respond(const std::string& head) const {
    if (head.find("/manifests/") != head.npos)
      return response("200 OK", "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n", manifest);
    if (head.find("/blobs/" + digest_text(config)) != head.npos) return response("200 OK", "", config);
    for (const std::string& layer : layers)
      if (head.find("/blobs/" + digest_text(layer)) != head.npos) return response("200 OK", "", layer);
    return response("404 Not Found", "", R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]})");
  }

  bool is_for_layer(const std::string& head) const {
    auto asks = [&](const std::string& layer) { return head.find("/blobs/" + digest_text(layer)) != head.npos; };
    return std::any_of(layers.begin(), layers.end(), asks);
  }

  std::vector<std::string> layers;
  std::string config, manifest;

 private:
  static std::string descriptor(const std::string& type, const std::string& content) {
    return R"({"mediaType":")" + type + R"(","digest":")" + digest_text(content) + R"(","size":)" +
           std::to_string(content.size()) + "}";
  }
};

class Mirrors : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    ::signal(SIGPIPE, SIG_IGN);
    Options options;
    options.state_dir = dir_.path() + "/store";
    options.worker_program = CORACLE_IMAGE;
    options.retry_delay = std::chrono::milliseconds(5);
    options.registries = [this] { return settings_; };
    auto made = make_store(options);
    ASSERT_TRUE(made.ok()) << made.error().text();
    store_ = std::move(*made);
  }
  // "ok", or the error.
  std::string pull(const std::string& reference = "registry.invalid/team/app:1") {
    auto got = store_->pull(reference, {}, nullptr, {});
    if (got) (void)store_->remove(got->id);  // so that the next one is not found
    last_ = got ? Code::internal : got.error().code();
    return got ? "ok" : got.error().text();
  }
  // A new certificate, or "" without openssl.
  std::string certificate(const std::string& name) {
    const std::string file = dir_.path() + "/" + name;
    return make_certificate(file) ? file : "";
  }
  TempDir dir_;
  runtime::RegistrySettings settings_;
  std::unique_ptr<Store> store_;
  Code last_ = Code::internal;
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Mirrors, settings_that_are_refused_lead_to_no_other_way) {
  const TinyImage image("f");
  std::atomic<int> asked{0};
  Responder server([&](const std::string& head) {
    ++asked;
    return image.respond(head);
  });
  const std::string host = server.url().substr(server.url().find("//") + 2), own = host + "/app:1";
  using Change = std::function<void(runtime::RegistrySettings&)>;
  const Change mirror = [&](auto& to) { to.mirrors["registry.invalid"] = {"https://absent.invalid", server.url()}; };
  struct Row {
    const char* name;
    Change change;
    std::string reference = "registry.invalid/team/app:1";
    bool fails = true;
  };
  for (const Row& row : {
           Row{"none", [](auto&) {}, own, false},
           Row{"all", [](auto& to) { to.refused_all = "WHY"; }, own},
           Row{"the registry", [&](auto& to) { to.refused[host] = "WHY"; }, own},
           Row{"another registry", [&](auto& to) { to.refused["other"] = "WHY"; }, own, false},
           Row{"those without", [](auto& to) { to.refused["*"] = "WHY"; }, own},
           Row{"those without, and it has some", [&](auto& to) { mirror(to), to.refused["*"] = "WHY"; }, "registry.invalid/a:1",
               false},
           Row{"the registry's host", [&](auto& to) { to.hosts[host].refused = "WHY"; }, own},
           Row{"all hosts without", [&](auto& to) { to.hosts["*"].refused = "WHY"; }, own},
           Row{"all hosts without, and it has some", [&](auto& to) { to.hosts["*"].refused = "WHY", to.hosts[host] = {}; }, own,
               false},
           Row{"the first mirror", [&](auto& to) { mirror(to), to.hosts["absent.invalid"].refused = "WHY"; }},
           Row{"the second mirror", [&](auto& to) { mirror(to), to.hosts[host].refused = "WHY"; }},
           Row{"a server",
               [&](auto& to) {
                 to.servers["registry.invalid"] = {{server.url() + "/v2"}};
                 to.hosts[host].refused = "WHY";
               }},
       }) {
    settings_ = {};
    row.change(settings_);
    asked = 0;
    const std::string said = pull(row.reference);
    if (!row.fails) {
      EXPECT_EQ(said, "ok") << row.name;
      continue;
    }
    EXPECT_EQ(said, "pull " + row.reference + ": WHY") << row.name;
    EXPECT_EQ(last_, Code::invalid) << row.name;
    EXPECT_EQ(asked, 0) << row.name;
  }
}

TEST_F(Mirrors, an_authority_holds_for_the_storage_behind_its_registry) {
  const TinyImage image("f");
  const std::string own = certificate("own"), other = certificate("other"), client = certificate("client");
  if (own.empty()) GTEST_SKIP() << "openssl is missing";
  for (const auto& [storage_has, want] : {std::pair(own, true), std::pair(other, false)}) {
    Responder storage([&](const std::string& head) { return image.respond(head); }, {storage_has, client + ".pem"});
    Responder mirror(
        [&](const std::string& head) {
          if (!image.is_for_layer(head)) return image.respond(head);
          return response("307 Temporary Redirect",
                          "Location: " + storage.url() + "/v2/x/blobs/" + digest_text(image.layers[0]) + "?sig=secret\r\n", "");
        },
        {own, client + ".pem"});
    runtime::RegistryServer server;
    server.url = mirror.url() + "/v2";
    server.tls = {read_text(own + ".pem"), read_text(client + ".pem"), read_text(client + ".key")};
    settings_.servers["registry.invalid"] = {server};
    const std::string said = pull();
    EXPECT_EQ(said == "ok", want) << said;
    EXPECT_GE(mirror.clients_certificates(), 3) << "manifest, configuration, layer";
    EXPECT_EQ(storage.clients_certificates(), 0) << "which is another host";
    if (!want) {
      EXPECT_SAYS(said, storage.host());
      EXPECT_SAYS(said, "certificate");
      EXPECT_EQ(said.find("secret"), said.npos) << "a signed address is a password: " << said;
    }
  }
}

std::string challenge(const std::string& how) { return response("401 Unauthorized", "WWW-Authenticate: " + how + "\r\n", ""); }

// Two servers: one that misbehaves, and one that is down.
TEST_F(Mirrors, an_error_names_each_server_and_what_it_answered) {
  const TinyImage image("f");
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "X-More: and more\r\n";
  std::string interim;
  for (int i = 0; i < 20'000; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string whole = response("200 OK", "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n", image.manifest);
  std::string host;  // of the one that misbehaves
  struct Row {
    const char* name;
    Responder::Respond respond;
    std::string says;
    Code code;
    int asked_max = 100;
  };
  for (const Row& row : {
           Row{"closed", [](const std::string&) { return challenge("Basic realm=\"x\""); },
               " asks for a user name and a password", Code::unauthorized, 4},
           Row{"closed, without a word", [](const std::string&) { return response("401 Unauthorized", "", ""); },
               " refuses, and does not say how to authenticate", Code::unauthorized, 4},
           Row{"closed in another way", [](const std::string&) { return challenge("Negotiate, Digest realm=\"x\""); },
               " asks for an authentication that is not supported: negotiate, digest", Code::unauthorized, 4},
           Row{"closed, with odd words",
               [](const std::string&) {
                 return response("403 Forbidden", "", R"({"errors":[{"message":"no\n\u001b[31mentry"}]})");
               },
               R"(/v2/team/app/manifests/1: 403: no\n\x1b[31mentry)", Code::forbidden, 4},
           Row{"closed for ever",
               [&](const std::string& head) {
                 if (head.starts_with("GET /token")) return response("200 OK", "", R"({"token":"t"})");
                 return challenge("Bearer realm=\"http://" + host + "/token\"");
               },
               "/v2/team/app/manifests/1: 401", Code::unauthorized, 8},
           Row{"a login page", [](const std::string&) { return response("200 OK", "Content-Type: text/html\r\n", "<html>"); },
               "/v2/team/app/manifests/1: manifest: ", Code::invalid},
           Row{"a login page for the token",
               [&](const std::string& head) {
                 if (head.starts_with("GET /token")) return response("200 OK", "", "<html>");
                 return challenge("Bearer realm=\"http://" + host + "/token\"");
               },
               "get token: http://", Code::invalid},
           Row{"no token",
               [&](const std::string& head) {
                 if (head.starts_with("GET /token")) return response("200 OK", "", "{}");
                 return challenge("Bearer realm=\"http://" + host + "/token\"");
               },
               "/token: the answer holds no token", Code::invalid},
           Row{"half a body", [&](const std::string&) { return whole.substr(0, whole.size() - 10); },
               "/v2/team/app/manifests/1: ", Code::unavailable},
           Row{"another digest",
               [&](const std::string&) {
                 return response("200 OK", "Docker-Content-Digest: sha256:" + std::string(64, 'a') + "\r\n", image.manifest);
               },
               "/v2/team/app/manifests/1: the manifest is not what its digest says", Code::invalid},
           Row{"endless headers", [&](const std::string&) { return "HTTP/1.1 200 OK\r\n" + many; },
               "/v2/team/app/manifests/1: more than 65536 bytes of headers", Code::too_large},
           Row{"endless beginnings", [&](const std::string&) { return interim; },
               "/v2/team/app/manifests/1: more than 65536 bytes of headers", Code::too_large},
           Row{"too large", [&](const std::string&) { return response("200 OK", "", std::string(5 << 20, ' ')); },
               "/v2/team/app/manifests/1: the answer is larger than ", Code::too_large},
           Row{"redirects for ever", [](const std::string&) { return response("302 Found", "Location: /v2/again\r\n", ""); },
               "/v2/team/app/manifests/1: more than 10 redirects", Code::unavailable},
           Row{"busy",
               [](const std::string&) {
                 return response("429 Too Many Requests", "Retry-After: 0\r\n", R"({"errors":[{"message":"slow down"}]})");
               },
               "/v2/team/app/manifests/1: 429: slow down", Code::too_many_requests},
           Row{"broken", [](const std::string&) { return response("502 Bad Gateway", "", "<html>"); },
               "/v2/team/app/manifests/1: 502", Code::unavailable},
           Row{"nothing", [](const std::string&) { return std::string(); }, "/v2/team/app/manifests/1: ", Code::unavailable},
       }) {
    std::atomic<int> asked{0};
    Responder mirror([&](const std::string& head) {
      ++asked;
      return row.respond(head);
    });
    host = mirror.host();
    runtime::RegistryServer first, down;
    first.url = mirror.url() + "/v2";
    down.url = "http://127.0.0.1:1/v2";
    settings_.servers["registry.invalid"] = {first, down};
    const std::string said = pull();
    EXPECT_SAYS(said, row.says) << row.name;
    EXPECT_SAYS(said, mirror.host()) << row.name;
    EXPECT_SAYS(said, "http://127.0.0.1:1/v2/team/app/manifests/1: ") << row.name << ": the other one too";
    EXPECT_TRUE(said.starts_with("pull registry.invalid/team/app:1: get manifest: ")) << row.name << ": " << said;
    const bool is_either = row.code == Code::unavailable || row.code == Code::too_many_requests;
    EXPECT_TRUE(last_ == row.code || (is_either && last_ == Code::unavailable)) << row.name << ": " << said;
    EXPECT_GE(asked, 1) << row.name;
    EXPECT_LE(asked, row.asked_max) << row.name;
  }
}

TEST_F(Mirrors, who_sends_a_damaged_layer_is_not_asked_again) {
  const TinyImage image("f", 4);
  const std::string garbage(image.layers[0].size(), 'g');
  struct Row {
    const char* name;
    std::string layer;  // the bytes of the response
    bool is_whole;      // then it is known to be damaged; otherwise it could come to an end later
  };
  for (const Row& row : {
           Row{"of the right length", response("200 OK", "", garbage), true},
           Row{"a page of no known length",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n6\r\n<html>\r\n0\r\n\r\n", false},
       }) {
    std::atomic<int> of_liar{0}, of_other{0};
    Responder liar([&](const std::string& head) {
      if (!image.is_for_layer(head)) return image.respond(head);
      ++of_liar;
      return row.layer;
    });
    Responder other([&](const std::string& head) {
      of_other += image.is_for_layer(head);
      return image.respond(head);
    });
    runtime::RegistryServer first, second;
    first.url = liar.url() + "/v2", second.url = other.url() + "/v2";
    settings_.servers["registry.invalid"] = {first, second};
    EXPECT_EQ(pull(), "ok") << row.name;
    EXPECT_GE(of_liar, 1) << row.name;
    EXPECT_LE(of_liar, 2 * 4) << row.name << ": no more than twice for each layer";
    EXPECT_GE(of_other, 4) << row.name;

    settings_.servers["registry.invalid"] = {first};
    const std::string alone = pull();
    EXPECT_NE(alone, "ok") << row.name;
    EXPECT_SAYS(alone, "layer sha256:") << row.name;
    EXPECT_SAYS(alone, liar.host()) << row.name;

    second.url = "http://127.0.0.1:1/v2";
    settings_.servers["registry.invalid"] = {first, second};
    const std::string said = pull();
    EXPECT_SAYS(said, liar.host()) << row.name;
    if (row.is_whole) {
      EXPECT_SAYS(said, "http://127.0.0.1:1/v2/team/app/blobs/") << row.name;
      EXPECT_SAYS(said, liar.host() + ": has sent a damaged layer") << row.name;
    }
  }
}

TEST_F(Mirrors, a_layer_that_cannot_be_unpacked_is_no_server_s_fault) {
  std::string bad_tar = make_tar({{"a", 'f', "x"}, {"b", 'f', std::string(200'000, 'y')}});
  bad_tar[512 + 512] ^= 1;  // in the second header, whose checksum is wrong then: the rest has not come yet
  const std::string bad_name = make_tar({{"up/../../x", 'f', std::string(200'000, 'y')}});
  for (const std::string& tar : {bad_tar, bad_name, std::string(300'000, 'g')}) {
    const TinyImage image(std::vector<std::string>{tar});
    std::atomic<int> of_first{0}, of_second{0};
    Responder first([&](const std::string& head) {
      of_first += image.is_for_layer(head);
      return image.respond(head);
    });
    Responder second([&](const std::string& head) {
      of_second += image.is_for_layer(head);
      return image.respond(head);
    });
    runtime::RegistryServer one, two;
    one.url = first.url() + "/v2", two.url = second.url() + "/v2";
    settings_.servers["registry.invalid"] = {one, two};
    const std::string said = pull();
    EXPECT_SAYS(said, "layer " + digest_text(image.layers[0]) + ": ");
    EXPECT_EQ(said.find(first.host()), said.npos) << said;
    EXPECT_EQ(said.find("has sent"), said.npos) << said;
    EXPECT_EQ(of_first + of_second, 1) << said;
    EXPECT_TRUE(std::filesystem::is_empty(dir_.path() + "/store/partial"));
  }
}

TEST_F(Mirrors, a_busy_server_is_asked_again_when_it_says) {
  const TinyImage image("f");
  std::atomic<int> asked{0};
  Responder busy([&](const std::string& head) {
    return ++asked == 1 ? response("429 Too Many Requests", "Retry-After: 1\r\n", "") : image.respond(head);
  });
  runtime::RegistryServer server;
  server.url = busy.url() + "/v2";
  settings_.servers["registry.invalid"] = {server};
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(pull(), "ok");
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  EXPECT_EQ(asked, 4) << "the manifest twice, the configuration, the layer";
}

TEST_F(Mirrors, all_that_registries_yaml_says_of_a_mirror_holds_together) {
  const TinyImage image("f");
  const std::string own = certificate("own");
  if (own.empty()) GTEST_SKIP() << "openssl is missing";
  std::atomic<int> with_other_names{0};
  Responder mirror(
      [&](const std::string& head) {
        if (head.find("Authorization: Basic bWU6c2VjcmV0\r\n") == head.npos) return challenge("Basic realm=\"x\"");  // me:secret
        with_other_names +=
            !head.starts_with("GET /api/docker/hub/app/") || to_lower(head).find("?ns=127.0.0.1%3a1 ") == head.npos;
        return image.respond(head);
      },
      {own, ""});
  settings_.mirrors["127.0.0.1:1"] = {mirror.url() + "/api/docker"};
  settings_.rewrites["127.0.0.1:1"] = {{"^team/(.*)", "hub/$1"}};
  runtime::RegistryHost& host = settings_.hosts[mirror.host()];
  host.tls.authorities = read_text(own + ".pem");
  host.credentials = {mirror.host(), "me", "secret", "", ""};
  EXPECT_EQ(pull("127.0.0.1:1/team/app:1"), "ok");
  EXPECT_EQ(with_other_names, 0);

  host.credentials.password = "hunter2";
  std::string said = pull("127.0.0.1:1/team/app:1");
  EXPECT_SAYS(said, mirror.url() + "/api/docker/hub/app/manifests/1: 401");
  EXPECT_EQ(said.find("hunter2"), said.npos) << said;
  EXPECT_SAYS(said, "http://127.0.0.1:1/v2/team/app/manifests/1: ") << "the registry itself is asked by its own name";
  host.credentials.password = "secret";
  host.tls.authorities = "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n";
  said = pull("127.0.0.1:1/team/app:1");
  EXPECT_SAYS(said, mirror.url() + "/api/docker/hub/app/manifests/1: ");
  EXPECT_NE(said, "ok");
}

// It takes as long as the limit for a server that sends nothing.
TEST_F(Mirrors, who_says_nothing_is_given_up_after_a_minute) {
  const char* is_long = std::getenv("CORACLE_LONG");
  if (!is_long || std::string(is_long) != "1") GTEST_SKIP() << "takes a minute: CORACLE_LONG=1";
  const TinyImage image("f");
  std::atomic<int> asked{0};
  Server silent([&](int fd) {
    ++asked;
    pollfd waiting{fd, POLLRDHUP, 0};
    ::poll(&waiting, 1, 600'000);
  });
  Responder other([&](const std::string& head) { return image.respond(head); });
  settings_.mirrors[other.host()] = {"http://" + silent.host()};
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(pull(other.host() + "/team/app:1"), "ok");
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, std::chrono::seconds(50));
  EXPECT_LT(took, std::chrono::seconds(150)) << "once, not for the configuration and the layer too";
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace coracle::image
