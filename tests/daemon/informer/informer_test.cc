// SPDX-License-Identifier: Apache-2.0
// The cache against a client with scripted watches: order, indexes, lost events, broken watches.
#include "daemon/informer/informer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/base/guarded.h"
#include "store/object/object.h"

namespace coracle {
namespace {

class PlayedClient : public Client {  // only watches; the test holds the sink and sends the events
 public:
  struct Played : Watch {
    explicit Played(PlayedClient& owner) : owner(owner) {
      owner.state.with([](State& s) { s.most_there = std::max(s.most_there, ++s.there); });
    }
    ~Played() override {
      owner.state.with([](State& s) { s.sink = nullptr, --s.there; });
    }
    PlayedClient& owner;
  };
  struct State {
    WatchSink* sink = nullptr;
    int opened = 0;
    int failures = 0;               // the next n watches fail
    int endings = 0;                // the next n watches end before their opener has them
    int there = 0, most_there = 0;  // watches at once
  };
  Guarded<State> state;

  Result<std::unique_ptr<Watch>> watch(const Kind&, const WatchOptions&, WatchSink& sink) override {
    bool ends = false;
    int nth = 0;
    bool fails = state.with([&](State& s) {
      nth = ++s.opened;
      if (s.failures > 0) return --s.failures, true;
      if (s.endings > 0) ends = true, --s.endings;
      s.sink = &sink;
      return false;
    });
    state.notify();
    if (fails) return Error(Code::unavailable, "the server is away");
    if (ends) {
      sink.on_end(Error(Code::gone, "too old"));
      auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);  // time for a next one, which must not come
      state.wait_until(
          {}, until, [&](const State& s) { return s.opened > nth; }, [](State&) {});
    }
    return std::unique_ptr<Watch>(new Played(*this));
  }
  WatchSink& await_watch(int nth) {
    state.wait(
        {}, [&](const State& s) { return s.opened >= nth && s.sink; }, [](State&) {});
    return *state.with([](State& s) { return s.sink; });
  }

  static Error unused() { return Error(Code::internal, "not played"); }
  Result<ObjectPtr> get(const Kind&, const Key&) override { return unused(); }
  Result<json::value> read(const Kind&, const Key&, std::string_view, const ReadParameters&) override { return unused(); }
  Result<ObjectList> list(const Kind&, const ListOptions&) override { return unused(); }
  Result<ObjectPtr> create(const Kind&, const json::value&) override { return unused(); }
  Result<ObjectPtr> update(const Kind&, const json::value&, const UpdateOptions&) override { return unused(); }
  Result<ObjectPtr> patch(const Kind&, const Key&, PatchType, const json::value&, const UpdateOptions&) override {
    return unused();
  }
  Result<void> remove(const Kind&, const Key&, const DeleteOptions&) override { return unused(); }
  Result<json::value> create_subresource(const Kind&, const Key&, std::string_view, const json::value&) override {
    return unused();
  }
};

ObjectPtr pod(const std::string& ns, const std::string& name, int revision, const std::string& node = "",
              const std::string& uid = "") {
  json::value body = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata",
                       {{"name", name},
                        {"namespace", ns},
                        {"uid", uid.empty() ? "uid-" + name : uid},
                        {"resourceVersion", std::to_string(revision)}}},
                      {"spec", {{"nodeName", node}}}};
  return MUST(Object::make(kPod, body));
}

struct InformerTest : testing::Test {
  PlayedClient client;
  Guarded<std::vector<std::string>> changes;
  Informer informer{client, kPod};  // last: its handler uses the changes

  InformerTest() {
    informer.add_index("node", [](const Object& object) {
      return std::vector<std::string>{std::string(get_string(object.json(), "spec.nodeName"))};
    });
    informer.on_change([this](const Informer::Change& change) {
      std::string what = !change.before ? "+" : !change.after ? "-" : "~";
      changes.with([&](auto& list) { list.push_back(what + change.any().name()); });
    });
  }
  std::string seen() {
    return changes.with([](std::vector<std::string>& list) { return join(std::exchange(list, {}), " "); });
  }
  static std::string join(const std::vector<std::string>& parts, std::string_view separator) {
    std::string out;
    for (const std::string& part : parts) out.append(out.empty() ? "" : separator).append(part);
    return out;
  }
  static std::string names(const std::vector<ObjectPtr>& objects) {
    std::vector<std::string> parts;
    for (const ObjectPtr& object : objects) parts.push_back(object->key().text());
    return join(parts, " ");
  }
};

TEST_F(InformerTest, follows_the_watch_and_tells_each_change) {
  ASSERT_TRUE(informer.start());
  WatchSink& sink = client.await_watch(1);
  EXPECT_FALSE(informer.synced());
  sink.on_event({EventType::added, pod("b", "y", 1)});
  sink.on_event({EventType::added, pod("a", "z", 2)});
  sink.on_event({EventType::synced, nullptr, 2});
  EXPECT_TRUE(informer.wait_synced({}));
  EXPECT_EQ(names(informer.list()), "a/z b/y");
  EXPECT_EQ(names(informer.list("b")), "b/y");
  EXPECT_EQ(names(informer.list("c")), "");
  EXPECT_EQ(seen(), "+y +z");

  sink.on_event({EventType::modified, pod("b", "y", 3)});
  sink.on_event({EventType::deleted, pod("a", "z", 4)});
  sink.on_event({EventType::deleted, pod("a", "never", 5)});
  EXPECT_EQ(seen(), "~y -z");
  EXPECT_EQ(informer.get({"b", "y"})->revision(), 3u);
  EXPECT_EQ(informer.revision(), 5u);
  EXPECT_EQ(informer.get({"a", "z"}), nullptr);
  EXPECT_EQ(informer.size(), 1u);
}

TEST_F(InformerTest, indexes_follow_their_objects) {
  ASSERT_TRUE(informer.start());
  WatchSink& sink = client.await_watch(1);
  sink.on_event({EventType::added, pod("a", "x", 1, "n1")});
  sink.on_event({EventType::added, pod("a", "y", 2, "n1")});
  sink.on_event({EventType::modified, pod("a", "x", 3, "n2")});
  EXPECT_EQ(names(informer.by_index("node", "n1")), "a/y");
  EXPECT_EQ(names(informer.by_index("node", "n2")), "a/x");
  EXPECT_EQ(informer.count_by_index("node", "n2"), 1u);
  EXPECT_EQ(informer.count_by_index("node", "n9"), 0u);
  EXPECT_EQ(informer.count_by_index("color", "n1"), 0u);
  sink.on_event({EventType::deleted, pod("a", "x", 4, "n2")});
  EXPECT_EQ(names(informer.by_index("node", "n2")), "");
  EXPECT_EQ(names(informer.by_index("color", "n1")), "");
}

TEST_F(InformerTest, a_broken_watch_is_started_again_and_what_was_missed_is_told) {
  ASSERT_TRUE(informer.start());
  WatchSink* sink = &client.await_watch(1);
  for (const char* name : {"kept", "changed", "vanished", "replaced"}) sink->on_event({EventType::added, pod("a", name, 1)});
  sink->on_event({EventType::synced, nullptr, 1});
  seen();

  client.state.with([](auto& s) { s.failures = 1; });
  sink->on_end(Error(Code::gone, "too old"));
  sink = &client.await_watch(3);   // the second attempt fails
  EXPECT_TRUE(informer.synced());  // the cache stays readable meanwhile
  EXPECT_EQ(informer.size(), 4u);
  sink->on_event({EventType::added, pod("a", "kept", 1)});
  sink->on_event({EventType::added, pod("a", "changed", 7)});
  sink->on_event({EventType::added, pod("a", "replaced", 8, "", "other")});
  sink->on_event({EventType::added, pod("a", "fresh", 9)});
  sink->on_event({EventType::synced, nullptr, 9});
  EXPECT_EQ(seen(), "~changed -replaced +replaced +fresh -vanished");
  EXPECT_EQ(names(informer.list()), "a/changed a/fresh a/kept a/replaced");
}

TEST_F(InformerTest, an_unavailable_server_at_the_start_is_tried_again) {
  client.state.with([](auto& s) { s.failures = 1; });
  ASSERT_TRUE(informer.start());
  client.await_watch(2).on_event({EventType::synced, nullptr, 1});
  EXPECT_TRUE(informer.wait_synced({}));
}

// Otherwise two threads would open watches, and the one that has ended could be kept.
TEST_F(InformerTest, a_watch_that_ends_before_start_returns_is_opened_again_by_one_thread) {
  client.state.with([](auto& s) { s.endings = 1; });
  ASSERT_TRUE(informer.start());
  client.state.wait(
      {}, [](const auto& s) { return s.opened >= 2; }, [](auto&) {});
  ASSERT_EQ(client.state.with([](auto& s) { return s.most_there; }), 1);
  client.await_watch(2).on_event({EventType::synced, nullptr, 1});
  EXPECT_TRUE(informer.wait_synced({}));
  ASSERT_EQ(client.state.with([](auto& s) { return s.most_there; }), 1);
}

TEST_F(InformerTest, waiting_for_the_first_state_can_be_stopped) {
  std::stop_source stop;
  std::jthread waiter([&] { EXPECT_FALSE(informer.wait_synced(stop.get_token())); });
  stop.request_stop();
}

}  // namespace
}  // namespace coracle
