// SPDX-License-Identifier: Apache-2.0
// Watches over HTTP and WebSocket: order, selectors, bookmarks, initial events, representations, and how they end.
#include <gtest/gtest.h>

#include "daemon/api/websocket.h"
#include "store/schema/protobuf.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

class Watches : public testing::Test {
 protected:
  // Opens a watch and receives the response's head.
  std::unique_ptr<RawClient> watch(const std::string& query, const std::string& headers = {}, int want = 200) {
    auto opened = std::make_unique<RawClient>(fixture.port(), &identity);
    opened->send("GET " + std::string(kMaps) + "?watch=1&" + query + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
    RawAnswer head = opened->receive_head();
    EXPECT_EQ(head.status, want) << query;
    if (want == 200 && headers.empty()) {
      EXPECT_EQ(head.header("Content-Type"), "application/json");
    }
    return opened;
  }
  static std::string next(RawClient& watch) {  // "ADDED name"
    std::string chunk = watch.receive_chunk();
    if (chunk.empty()) return "end";
    json::value event = MUST(parse_json(chunk));
    return std::string(get_string(event, "type")) + " " + std::string(get_string(event, "object.metadata.name"));
  }
  static json::value next_event(RawClient& watch) { return MUST(parse_json(watch.receive_chunk())); }
  json::value create(const std::string& name, const std::string& label = "x") {
    return client.ask("POST", kMaps, R"({"metadata":{"name":")" + name + R"(","labels":{"l":")" + label + R"("}}})").json();
  }
  void relabel(const std::string& name, const std::string& label) {
    client.ask("PATCH", std::string(kMaps) + "/" + name, R"({"metadata":{"labels":{"l":")" + label + R"("}}})",
               "Content-Type: application/merge-patch+json\r\n");
  }
  void remove(const std::string& name) { client.ask("DELETE", std::string(kMaps) + "/" + name); }
  std::string revision() { return std::string(get_string(client.get(kMaps).json(), "metadata.resourceVersion")); }

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(Watches, tell_what_is_there_and_what_happens) {
  create("a");
  auto all = watch("");
  EXPECT_EQ(next(*all), "ADDED a");
  auto later = watch("resourceVersion=" + revision());
  create("b");
  relabel("a", "y");
  remove("b");
  for (auto* one : {all.get(), later.get()}) {
    EXPECT_EQ(next(*one), "ADDED b");
    EXPECT_EQ(next(*one), "MODIFIED a");
    EXPECT_EQ(next(*one), "DELETED b");
  }
}

TEST_F(Watches, wait_for_a_client_that_reads_late) {
  auto late = watch("resourceVersion=" + revision());
  auto early = watch("resourceVersion=" + revision());
  constexpr int kCount = 80, kBytes = 200'000;  // more than socket buffers hold
  for (int i = 0; i < kCount; i++)
    client.ask("POST", kMaps,
               R"({"metadata":{"name":"m)" + std::to_string(i) + R"("},"data":{"d":")" + std::string(kBytes, char('a' + i % 26)) +
                   "\"}}");
  for (auto* one : {late.get(), early.get()}) {
    for (int i = 0; i < kCount; i++) {
      json::value event = next_event(*one);
      ASSERT_EQ(get_string(event, "object.metadata.name"), "m" + std::to_string(i));
      ASSERT_EQ(get_string(event, "object.data.d"), std::string(kBytes, char('a' + i % 26)));
    }
  }
  create("after");
  EXPECT_EQ(next(*late), "ADDED after");
  EXPECT_EQ(next(*early), "ADDED after");
}

TEST_F(Watches, with_selectors_see_objects_come_and_go) {
  auto selected = watch("labelSelector=l%3Dx");
  json::value made = create("a", "x");
  create("other", "y");
  relabel("a", "y");
  relabel("other", "x");
  remove("other");
  EXPECT_EQ(next(*selected), "ADDED a");
  json::value left = next_event(*selected);
  EXPECT_EQ(get_string(left, "type"), "DELETED");
  EXPECT_EQ(get_string(left, "object.metadata.labels.l"), "x") << "as it was";
  EXPECT_GT(std::stoll(std::string(get_string(left, "object.metadata.resourceVersion"))),
            std::stoll(std::string(get_string(made, "metadata.resourceVersion"))));
  EXPECT_EQ(next(*selected), "ADDED other");
  EXPECT_EQ(next(*selected), "DELETED other");
}

TEST_F(Watches, of_one_object) {
  create("a");
  auto by_field = watch("fieldSelector=metadata.name%3Da");
  RawClient by_name(fixture.port(), &identity);
  by_name.send("GET " + std::string(kMaps) + "/a?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(by_name.receive_head().status, 200);
  create("b");
  relabel("a", "y");
  for (auto* one : {by_field.get(), &by_name}) {
    EXPECT_EQ(next(*one), "ADDED a");
    EXPECT_EQ(next(*one), "MODIFIED a");
  }
}

TEST_F(Watches, stream_a_list_and_mark_its_end) {
  create("a");
  auto streamed = watch("sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan");
  EXPECT_EQ(next(*streamed), "ADDED a");
  json::value mark = next_event(*streamed);
  EXPECT_EQ(get_string(mark, "type"), "BOOKMARK");
  EXPECT_EQ(get_string(mark, "object.kind"), "ConfigMap");
  EXPECT_EQ(get_string(*find_keys(mark, {"object", "metadata", "annotations"}), "k8s"), "");
  EXPECT_EQ(*find_keys(mark, {"object", "metadata", "annotations", "k8s.io/initial-events-end"}), "true");
  EXPECT_EQ(get_string(mark, "object.metadata.resourceVersion"), revision());
  create("b");
  EXPECT_EQ(next(*streamed), "ADDED b");
}

TEST_F(Watches, end_cleanly_when_their_time_is_over) {
  auto timed = watch("timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=" + revision());
  json::value mark = next_event(*timed);
  EXPECT_EQ(get_string(mark, "type"), "BOOKMARK");
  EXPECT_EQ(next(*timed), "end");
  EXPECT_EQ(timed->get("/version").status, 200) << "the connection can be used again";
}

TEST_F(Watches, from_a_forgotten_past_are_told_to_list_again) {
  std::string old = revision();
  create("a");
  create("b");
  fixture.engine->compact(fixture.engine->revision());
  auto late = watch("resourceVersion=" + old);
  json::value error = next_event(*late);
  EXPECT_EQ(get_string(error, "type"), "ERROR");
  EXPECT_EQ(get_int(error, "object.code"), 410);
  EXPECT_EQ(get_string(error, "object.reason"), "Expired");
  EXPECT_EQ(next(*late), "end");
}

TEST_F(Watches, refuse_options_that_make_no_sense) {
  struct Row {
    const char* query;
    int status;
  };
  for (const Row& row :
       {Row{"resourceVersion=abc", 422}, Row{"resourceVersionMatch=NotOlderThan", 422}, Row{"sendInitialEvents=true", 422},
        Row{"sendInitialEvents=true&resourceVersionMatch=Exact", 422}, Row{"timeoutSeconds=x", 400}, Row{"limit=x", 400},
        Row{"labelSelector=%3D%3D", 400}, Row{"fieldSelector=foo%3Dbar", 400}})
    EXPECT_EQ(client.get(std::string(kMaps) + "?watch=1&" + row.query).status, row.status) << row.query;
}

TEST_F(Watches, come_as_tables_metadata_and_protobuf) {
  create("a");
  auto table = watch("", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n");
  auto partial = watch("", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n");
  auto protobuf = watch("", "Accept: application/vnd.kubernetes.protobuf,application/json\r\n");
  json::value first = next_event(*table);
  EXPECT_EQ(get_string(first, "object.kind"), "Table");
  EXPECT_GT(get_array(first, "object.columnDefinitions").size(), 0u);
  EXPECT_EQ(get_string(next_event(*partial), "object.kind"), "PartialObjectMetadata");
  create("b");
  EXPECT_EQ(get_array(next_event(*table), "object.columnDefinitions").size(), 0u) << "columns come once";
  std::string frame = protobuf->receive_chunk();
  ASSERT_GT(frame.size(), 8u);
  uint32_t size = uint32_t(uint8_t(frame[0])) << 24 | uint32_t(uint8_t(frame[1])) << 16 | uint32_t(uint8_t(frame[2])) << 8 |
                  uint8_t(frame[3]);
  EXPECT_EQ(size, frame.size() - 4);
  EXPECT_NE(frame.find("ADDED"), std::string::npos);
  EXPECT_NE(frame.find(std::string("k8s\0", 4)), std::string::npos);
}

TEST_F(Watches, the_legacy_way) {
  create("a");
  RawClient legacy(fixture.port(), &identity);
  legacy.send("GET /api/v1/watch/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(legacy.receive_head().status, 200);
  EXPECT_EQ(next(legacy), "ADDED a");
}

TEST_F(Watches, over_websocket) {
  create("a");
  RawClient socket(fixture.port(), &identity);
  socket.send("GET " + std::string(kMaps) +
              "?watch=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  RawAnswer head = socket.receive_head();
  ASSERT_EQ(head.status, 101);
  EXPECT_EQ(head.header("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  std::string frame = socket.receive_exactly(2);
  EXPECT_EQ(frame[0], '\x81');
  size_t size = uint8_t(frame[1]);
  if (size == 126) {
    std::string more = socket.receive_exactly(2);
    size = size_t(uint8_t(more[0])) << 8 | uint8_t(more[1]);
  }
  json::value event = MUST(parse_json(socket.receive_exactly(size)));
  EXPECT_EQ(get_string(event, "type"), "ADDED");
}

TEST_F(Watches, give_their_thread_back_when_the_client_leaves) {
  {
    auto one = watch("");
    create("a");
    EXPECT_EQ(next(*one), "ADDED a");
    EXPECT_EQ(fixture.server->counts().watches, 1);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (fixture.server->counts().watches > 0 && std::chrono::steady_clock::now() < end) (void)client.get("/version");
  EXPECT_EQ(fixture.server->counts().watches, 0);
}

TEST_F(Watches, see_nothing_of_a_write_that_changes_nothing) {
  create("a");
  auto all = watch("resourceVersion=" + revision());
  relabel("a", "x");
  create("b");
  EXPECT_EQ(next(*all), "ADDED b");
}

TEST_F(Watches, large_and_small_events_keep_their_order) {
  create("a");
  auto reader = watch("resourceVersion=" + revision());
  const std::string large(100'000, 'z');
  for (int i = 0; i < 20; i++) {
    std::string text = i % 3 == 0 ? large + std::to_string(i) : std::to_string(i);
    ASSERT_EQ(client.ask("PUT", std::string(kMaps) + "/a", R"({"metadata":{"name":"a"},"data":{"i":")" + text + "\"}}").status,
              200);
  }
  for (int i = 0; i < 20; i++) {
    json::value event = next_event(*reader);
    EXPECT_EQ(get_string(event, "type"), "MODIFIED");
    EXPECT_EQ(get_string(event, "object.data.i"), i % 3 == 0 ? large + std::to_string(i) : std::to_string(i)) << i;
  }
}

TEST_F(Watches, who_does_not_read_is_told_to_list_again) {
  create("a");
  auto stalled = watch("resourceVersion=" + revision());
  auto reader = watch("resourceVersion=" + revision());
  for (int i = 0; i < 120; i++) {  // much more than socket buffers hold
    std::string body =
        R"({"metadata":{"name":"a"},"data":{"i":")" + std::to_string(i) + R"(","x":")" + std::string(200'000, 'x') + "\"}}";
    ASSERT_EQ(client.ask("PUT", std::string(kMaps) + "/a", body).status, 200);
    ASSERT_EQ(get_string(next_event(*reader), "object.data.i"), std::to_string(i)) << "who reads misses nothing";
  }
  int seen = 0;
  json::value event = next_event(*stalled);
  while (get_string(event, "type") == "MODIFIED") {
    EXPECT_EQ(get_string(event, "object.data.i"), std::to_string(seen++)) << "nothing is missing in the middle";
    event = next_event(*stalled);
  }
  EXPECT_LT(seen, 120);
  EXPECT_EQ(get_string(event, "type"), "ERROR");
  EXPECT_EQ(get_int(event, "object.code"), 410);
}

}  // namespace
}  // namespace coracle::api
