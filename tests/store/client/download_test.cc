// SPDX-License-Identifier: Apache-2.0
// What stands at a URL, and what is said where nothing does.
#include "store/client/download.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <thread>

#include "tests/closed_port.h"

namespace coracle {
namespace {

constexpr Attempts kAtOnce{.pause = std::chrono::milliseconds(0)};

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() {
    server_.Get("/manifest", [this](const httplib::Request& request, httplib::Response& response) {
      seen_ = request;
      response.set_content("kind: Pod\n", "text/plain");
    });
    server_.Get("/moved", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("it is over there", "text/plain");
      response.set_redirect("/manifest");
    });
    server_.Get("/counted", [this](const httplib::Request&, httplib::Response& response) {
      ++asked_;
      response.set_content("kind: Pod\n", "text/plain");
    });
    server_.Get("/loop", [this](const httplib::Request&, httplib::Response& response) {
      ++asked_;
      response.set_redirect("/loop");
    });
    server_.Get("/local",
                [](const httplib::Request&, httplib::Response& response) { response.set_redirect("file:///etc/hostname"); });
    server_.Get("/broken", [this](const httplib::Request&, httplib::Response& response) { ++asked_, response.status = 503; });
    server_.Get("/forbidden", [this](const httplib::Request&, httplib::Response& response) { ++asked_, response.status = 403; });
    server_.Get("/late", [this](const httplib::Request&, httplib::Response& response) {
      if (++asked_ < 3) response.status = 500;
      else response.set_content("kind: Pod\n", "text/yaml");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~DownloadTest() override { server_.stop(); }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  Result<std::string> get(const std::string& path, size_t max = 1000) const { return download(url(path), max, kAtOnce); }

  httplib::Server server_;
  httplib::Request seen_;
  std::atomic<int> asked_ = 0;
  int port_ = 0;
  std::jthread thread_;
};

TEST_F(DownloadTest, gives_the_body_also_behind_a_redirection) {
  EXPECT_EQ(get("/manifest").value_or("-"), "kind: Pod\n");
  EXPECT_FALSE(seen_.has_header("Authorization"));
  EXPECT_EQ(get("/moved").value_or("-"), "kind: Pod\n");
}

TEST_F(DownloadTest, says_what_is_wrong) {
  auto absent = get("/none");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::not_found);
  EXPECT_EQ(absent.error().text(), "unable to read URL \"" + url("/none") + "\", server reported 404 Not Found, status code=404");
  EXPECT_EQ(get("/broken").error().code(), Code::unavailable);
  EXPECT_EQ(get("/loop").error().code(), Code::unavailable);
  EXPECT_EQ(get("/manifest", 3).error().code(), Code::too_large);
  EXPECT_EQ(download("http://", 10).error().code(), Code::bad_request);
  const ClosedPort nobody;
  auto refused = download("http://127.0.0.1:" + nobody.text() + "/manifest", 10, kAtOnce);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unavailable);
  EXPECT_EQ(refused.error().text(),
            "The connection to the server 127.0.0.1:" + nobody.text() + " was refused - did you specify the right host or port?");
}

TEST_F(DownloadTest, tries_again_what_is_the_servers_fault) {
  EXPECT_EQ(get("/late").value_or("-"), "kind: Pod\n");
  EXPECT_EQ(asked_.exchange(0), 3);
  EXPECT_FALSE(get("/broken"));
  EXPECT_EQ(asked_.exchange(0), 3);
  EXPECT_FALSE(get("/forbidden"));
  EXPECT_EQ(asked_.exchange(0), 1);
  EXPECT_FALSE(get("/loop"));
  EXPECT_EQ(asked_.exchange(0), 3 * 11) << "each time the first request and ten redirections";
  EXPECT_FALSE(get("/counted", 3));
  EXPECT_EQ(asked_.exchange(0), 1) << "too large now is too large then";
}

TEST_F(DownloadTest, names_nobodys_password) {
  std::string server = "127.0.0.1:" + std::to_string(port_);
  auto said = [&](const std::string& path, size_t max = 1000) {
    auto got = download("http://me:p%40ss@" + server + path, max, kAtOnce);
    return got ? "no error: " + *got : got.error().text();
  };
  EXPECT_EQ(said("/none"), "unable to read URL \"" + url("/none") + "\", server reported 404 Not Found, status code=404");
  EXPECT_EQ(said("/manifest", 3), url("/manifest") + " is larger than 3 bytes");
  EXPECT_TRUE(seen_.has_header("Authorization")) << "the server is told";
  EXPECT_TRUE(said("/loop").starts_with("Unable to connect to the server: unable to read URL \"" + url("/loop") + "\": "))
      << said("/loop");
  EXPECT_EQ(download("http://me:p/ss@127.0.0.1", 10).error().text(), "the URL \"http://127.0.0.1\" is not valid");
  const ClosedPort nobody;
  server = "127.0.0.1:" + nobody.text();
  EXPECT_EQ(said("/manifest"),
            "The connection to the server " + server + " was refused - did you specify the right host or port?");
}

TEST(WithoutUser, leaves_the_rest_of_a_url) {
  EXPECT_EQ(without_user("https://me:secret@example.com:8443/a@b?c=d@e#f@g"), "https://example.com:8443/a@b?c=d@e#f@g");
  EXPECT_EQ(without_user("https://token@example.com"), "https://example.com");
  for (const char* plain :
       {"https://example.com/a@b", "http://[::1]:80/?q=a@b", "http://example.com#a@b", "http://", "file.yaml"})
    EXPECT_EQ(without_user(plain), plain);
}

// A server must not make us read a file of this machine.
TEST_F(DownloadTest, is_not_led_to_local_files) { EXPECT_EQ(get("/local").error().code(), Code::unavailable); }

}  // namespace
}  // namespace coracle
