// SPDX-License-Identifier: Apache-2.0
// Mirrors and other servers of a registry that behave, and that do not: which server's bytes are used, what is sent to whom, and
// what the error says, which the events of a pod show. The servers are this test's own. Needs root, and openssl for TLS.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>

#include "runtime/image/fetch/http.h"
#include "runtime/image/store.h"
#include "tests/runtime/image/builder.h"
#include "tests/runtime/image/small_server.h"

namespace coracle::image {
namespace {

using namespace test;

// An image of one layer with one file.
struct TinyImage {
  explicit TinyImage(const std::string& file) {
    const TestImage parts{{{make_tar({{file, 'f', std::string(3000, 'x')}}), Packing::plain}}};
    layer = parts.layers[0].tar;
    config = oci_config(parts);
    manifest = R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":)" +
               descriptor("application/vnd.oci.image.config.v1+json", config) + R"(,"layers":[)" +
               descriptor("application/vnd.oci.image.layer.v1.tar", layer) + "]}";
  }
  // What a registry answers that has it under every name.
  std::string respond(const std::string& head) const {
    if (head.find("/manifests/") != head.npos)
      return response("200 OK", "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n", manifest);
    for (const std::string& blob : {config, layer})
      if (head.find("/blobs/" + digest_text(blob)) != head.npos) return response("200 OK", "", blob);
    return response("404 Not Found", "", R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]})");
  }

  std::string layer, config, manifest;

 private:
  static std::string descriptor(const std::string& type, const std::string& content) {
    return R"({"mediaType":")" + type + R"(","digest":")" + digest_text(content) + R"(","size":)" +
           std::to_string(content.size()) + "}";
  }
};

bool asks_for(const std::string& head, const std::string& blob) { return head.find("/blobs/" + digest_text(blob)) != head.npos; }

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

TEST_F(Mirrors, an_authority_holds_for_the_storage_behind_its_registry) {
  const TinyImage image("f");
  const std::string own = certificate("own"), other = certificate("other"), client = certificate("client");
  if (own.empty()) GTEST_SKIP() << "openssl is missing";
  for (const auto& [storage_has, want] : {std::pair(own, true), std::pair(other, false)}) {
    Responder storage([&](const std::string& head) { return image.respond(head); }, {storage_has, client + ".pem"});
    Responder mirror(
        [&](const std::string& head) {
          if (!asks_for(head, image.layer)) return image.respond(head);
          return response("307 Temporary Redirect",
                          "Location: " + storage.url() + "/v2/x/blobs/" + digest_text(image.layer) + "?sig=secret\r\n", "");
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

}  // namespace
}  // namespace coracle::image
