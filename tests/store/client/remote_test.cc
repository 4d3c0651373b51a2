// SPDX-License-Identifier: Apache-2.0
// The remote client tolerates network failures.
#include "store/client/remote.h"

#include <gtest/gtest.h>

#include "store/object/status.h"
#include "tests/store/client/fake_server.h"
#include "tests/store/client/recording_sink.h"

namespace coracle {
namespace {

std::unique_ptr<Remote> remote_to(const std::string& url) {
  ServerAccess access;
  access.server = url;
  return MUST(Remote::make(std::move(access)));
}

constexpr const char* kBody = R"({"metadata":{"name":"a"}})";

TEST(Remote, names_paths_as_kubernetes_does) {
  EXPECT_EQ(api_path(kPod), "/api/v1/pods");
  EXPECT_EQ(api_path(kPod, "default", "web", "log"), "/api/v1/namespaces/default/pods/web/log");
  EXPECT_EQ(api_path(kNode, "ignored", "n"), "/api/v1/nodes/n");
  EXPECT_EQ(api_path(kDeployment, "a", "b", "scale"), "/apis/apps/v1/namespaces/a/deployments/b/scale");
}

TEST(Remote, goes_on_when_the_server_ends_a_watch_in_good_order) {
  FakeServer server;
  auto remote = remote_to(server.url());
  RecordingSink sink;
  auto watch = MUST(remote->watch(kConfigMap, {}, sink));
  ASSERT_EQ(sink.wait_names(1), (Names{"synced"}));
  server.objects().put(kConfigMap, kBody);
  ASSERT_EQ(sink.wait_names(2), (Names{"synced", "added a"}));
  server.end_watches_cleanly();
  server.objects().put(kConfigMap, R"({"metadata":{"name":"b"}})");
  EXPECT_EQ(sink.wait_names(3), (Names{"synced", "added a", "added b"}));
}

TEST(Remote, an_error_event_ends_a_watch) {
  FakeServer server;
  auto remote = remote_to(server.url());
  RecordingSink sink;
  auto watch = MUST(remote->watch(kConfigMap, {}, sink));
  server.objects().put(kConfigMap, kBody);
  ASSERT_EQ(sink.wait_names(2), (Names{"synced", "added a"}));
  server.objects().end_watches(expired("too old resource version"));
  EXPECT_EQ(sink.wait_end()->code(), Code::gone);
}

TEST(Remote, waits_when_the_server_says_later) {
  FakeServer server;
  auto remote = remote_to(server.url());
  server.objects().put(kConfigMap, kBody);
  server.answer_next(429, 1);
  EXPECT_TRUE(remote->get(kConfigMap, {"default", "a"}));
  server.answer_next(429, 0);
  EXPECT_EQ(remote->get(kConfigMap, {"default", "a"}).error().code(), Code::too_many_requests);
}

TEST(Remote, asks_for_another_name_at_the_servers_address) {
  FakeServer server;
  server.objects().put(kConfigMap, kBody);
  ServerAccess access;
  access.server = server.url();
  access.tls_server_name = "name.that.resolves.nowhere.invalid";
  auto remote = MUST(Remote::make(std::move(access)));
  EXPECT_TRUE(remote->get(kConfigMap, {"default", "a"}));
}

TEST(Remote, says_plainly_that_nobody_answers) {
  std::string url;
  {
    FakeServer server;
    url = server.url();
  }
  auto remote = remote_to(url);
  auto failed = remote->get(kConfigMap, {"default", "a"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::unavailable);
  RecordingSink sink;
  EXPECT_EQ(remote->watch(kConfigMap, {}, sink).error().code(), Code::unavailable);
}

}  // namespace
}  // namespace coracle
