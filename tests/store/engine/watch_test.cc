// SPDX-License-Identifier: Apache-2.0
// The engine's watches and lists over time: order, resuming, ends, and pages of one snapshot.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/base/guarded.h"
#include "store/engine/engine.h"
#include "tests/store/engine/engine_fixture.h"

namespace coracle::engine {
namespace {

using Names = std::vector<std::string>;

std::string name_of(const Event& event) {
  static constexpr const char* kNames[] = {"added", "modified", "deleted", "synced"};
  return kNames[size_t(event.type)] + (event.object ? " " + event.object->name() : "");
}

class WatchTest : public EngineFixture {
 protected:
  static std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }
  static std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
  static Names take(Watcher& watcher, size_t count) {
    Names taken;
    while (taken.size() < count) {
      auto event = watcher.take({}, soon());
      if (!event || !*event) break;
      taken.push_back(name_of(**event));
    }
    return taken;
  }
};

TEST_F(WatchTest, begins_with_what_there_is) {
  put("b", "1");
  put("a", "1");
  auto watcher = MUST(engine().watch(kConfigMap, "", 0));
  put("c", "1", Durability::soft);
  put("a", "2");
  (void)MUST(engine().remove(kConfigMap, key("b"), std::nullopt, Durability::durable));
  EXPECT_EQ(take(*watcher, 6), (Names{"added a", "added b", "synced", "added c", "modified a", "deleted b"}));
  EXPECT_FALSE(MUST(watcher->take({}, now())));
  EXPECT_EQ(watcher->progress(), engine().revision());
}

TEST_F(WatchTest, events_carry_both_states) {
  ObjectPtr one = put("a", "1");
  auto watcher = MUST(engine().watch(kConfigMap, "", one->revision()));
  ObjectPtr two = put("a", "2");
  Event event = *MUST(watcher->take({}, soon()));
  EXPECT_EQ(event.before, one);
  EXPECT_EQ(event.object, two);
  EXPECT_EQ(event.revision, two->revision());
  ObjectPtr gone = MUST(engine().remove(kConfigMap, key("a"), std::nullopt, Durability::durable));
  event = *MUST(watcher->take({}, soon()));
  EXPECT_EQ(event.object, gone);
  EXPECT_EQ(event.before, two);
}

TEST_F(WatchTest, sees_only_its_kind_and_namespace_but_all_progress) {
  auto watcher = MUST(engine().watch(kConfigMap, "other", 0));
  EXPECT_EQ(take(*watcher, 1), (Names{"synced"}));
  put("a", "1");
  (void)MUST(engine().write({&kSecret, {"other", "s"}, body("s", "1", "other"), {}}, Durability::soft));
  EXPECT_FALSE(MUST(watcher->take({}, now())));
  EXPECT_EQ(watcher->progress(), engine().revision());
  (void)MUST(engine().write({&kConfigMap, {"other", "x"}, body("x", "1", "other"), {}}, Durability::soft));
  EXPECT_EQ(take(*watcher, 1), (Names{"added x"}));
}

TEST_F(WatchTest, goes_on_from_an_older_revision) {
  ObjectPtr a = put("a", "1");
  put("b", "1");
  put("a", "2", Durability::soft);
  (void)MUST(engine().remove(kConfigMap, key("b"), std::nullopt, Durability::durable));
  auto watcher = MUST(engine().watch(kConfigMap, "", a->revision()));
  EXPECT_EQ(take(*watcher, 3), (Names{"added b", "modified a", "deleted b"}));
  EXPECT_FALSE(MUST(watcher->take({}, now())));
}

TEST_F(WatchTest, a_revision_that_is_gone_or_yet_to_come_is_refused) {
  ObjectPtr a = put("a", "1");
  put("b", "1");
  engine().compact(engine().revision());
  auto gone = engine().watch(kConfigMap, "", a->revision());
  EXPECT_EQ(gone.error().code(), Code::gone);
  EXPECT_EQ(gone.error().text(),
            "too old resource version: " + std::to_string(a->revision()) + " (" + std::to_string(engine().compacted()) + ")");
  EXPECT_EQ(engine().watch(kConfigMap, "", engine().revision() + 1).error().code(), Code::timeout);
  EXPECT_TRUE(engine().watch(kConfigMap, "", engine().revision()));
}

TEST_F(WatchTest, the_window_is_bounded) {
  options_.window_events_max = 10;
  reopen();
  ObjectPtr first = put("a", "0");
  for (int i = 1; i <= 10; i++) put("a", std::to_string(i), Durability::soft);
  EXPECT_EQ(engine().compacted(), first->revision());
  put("a", "x");
  EXPECT_EQ(engine().watch(kConfigMap, "", first->revision()).error().code(), Code::gone);
  options_.window_bytes_max = 10'000;
  options_.window_events_max = 1000;
  reopen();
  first = put("a", std::string(4000, 'x'));
  for (int i = 1; i <= 3; i++) put("a", std::string(4000, char('a' + i)), Durability::soft);
  EXPECT_EQ(engine().watch(kConfigMap, "", first->revision()).error().code(), Code::gone);
}

TEST_F(WatchTest, the_window_counts_more_than_texts_and_shrinks_when_told) {
  options_.window_bytes_max = 100'000;
  options_.window_events_max = 10'000;
  reopen();
  ObjectPtr first = put("a", "0");
  for (int i = 0; i < 500; i++) put("a", std::to_string(i), Durability::soft);  // each text has 150 bytes
  EXPECT_EQ(engine().watch(kConfigMap, "", first->revision()).error().code(), Code::gone);
  Revision now = engine().revision();
  EXPECT_TRUE(engine().watch(kConfigMap, "", now - 50));
  engine().shrink(10'000);
  EXPECT_EQ(engine().watch(kConfigMap, "", now - 50).error().code(), Code::gone);
  EXPECT_TRUE(engine().watch(kConfigMap, "", now - 5));
  engine().shrink(10'000);
  EXPECT_TRUE(engine().watch(kConfigMap, "", now - 5)) << "what fits stays";
  put("b", "1");
  EXPECT_TRUE(engine().flush());
  EXPECT_EQ(engine().check(), std::vector<std::string>());
}

TEST_F(WatchTest, a_slow_watcher_is_ended_and_never_skips) {
  options_.watch_queue_max = 5;
  reopen();
  for (int i = 0; i < 20; i++) put("n" + std::to_string(i), "1");
  auto watcher = MUST(engine().watch(kConfigMap, "", 0));  // the 21 initial events do not count
  for (int i = 0; i < 5; i++) put("n0", "x" + std::to_string(i), Durability::soft);
  EXPECT_EQ(take(*watcher, 26).size(), 26u);
  auto slow = MUST(engine().watch(kConfigMap, "", engine().revision()));
  for (int i = 0; i < 6; i++) put("n1", "y" + std::to_string(i), Durability::soft);
  EXPECT_EQ(take(*slow, 5).size(), 5u);
  EXPECT_EQ(slow->take({}, soon()).error().code(), Code::gone);
}

TEST_F(WatchTest, those_who_are_behind_may_keep_so_much_alive_and_no_more) {
  options_.watch_bytes_max = 1 << 20;
  reopen();
  const std::string large(100'000, 'x');
  put("a", large);
  auto slow = MUST(engine().watch(kConfigMap, "", engine().revision())),
       same = MUST(engine().watch(kConfigMap, "", engine().revision()));
  auto other = MUST(engine().watch(kSecret, "", engine().revision())),
       good = MUST(engine().watch(kConfigMap, "", engine().revision()));
  std::atomic<int> pushed = 0;
  auto ours =
      MUST(engine().subscribe(kConfigMap, "", engine().revision(), {[&](const Event&) { pushed++; }, [](const Error&) {}}));
  for (int i = 0; i < 9; i++) put("a", large + std::to_string(i)), (void)take(*good, 1);
  EXPECT_EQ(take(*same, 9).size(), 9u) << "that is within what they may keep";
  for (int i = 0; i < 9; i++) put("a", large + std::to_string(i)), (void)take(*good, 1), (void)take(*same, 1);
  EXPECT_EQ(slow->take({}, soon()).error().code(), Code::gone) << "its queue is dropped";
  put("a", "small");
  EXPECT_EQ(take(*good, 1), (Names{"modified a"}));
  EXPECT_EQ(take(*same, 1), (Names{"modified a"}));
  EXPECT_FALSE(MUST(other->take({}, now())));
  while (pushed < 19) std::this_thread::yield();
}

TEST_F(WatchTest, what_is_new_or_still_stored_counts_for_nothing) {
  options_.watch_bytes_max = 1 << 20;
  reopen();
  auto slow = MUST(engine().watch(kConfigMap, "", engine().revision()));
  for (int i = 0; i < 30; i++) put("m" + std::to_string(i), std::string(100'000, 'x'));
  for (int i = 0; i < 30; i++) {
    auto event = MUST(slow->take({}, soon()));
    ASSERT_TRUE(event);
    EXPECT_EQ(get_string(event->object->json(), "data.value"), std::string(100'000, 'x')) << "though it was put to rest";
  }
}

TEST_F(WatchTest, a_stop_wakes_a_watcher) {
  auto watcher = MUST(engine().watch(kConfigMap, "", engine().revision()));
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(MUST(watcher->take(stop.get_token(), soon())));
}

// The owner and the delegate alternate; together they get every event once, in order, and never at the same time.
TEST_F(WatchTest, a_delegate_takes_what_comes_while_the_owner_sleeps) {
  constexpr int kChanges = 1500;
  options_.watch_queue_max = kChanges;
  reopen();
  auto watcher = MUST(engine().watch(kConfigMap, "", engine().revision()));
  std::vector<Revision> taken;  // no lock: the watcher never runs both at once
  std::atomic<int> stood_in = 0;
  std::atomic<bool> owner_is_up = true;
  Delegate delegate{[&](const Event& event) {
                      EXPECT_FALSE(owner_is_up);
                      taken.push_back(event.revision);
                      return ++stood_in % 7 != 0;
                    },
                    [&] { return stood_in % 5 != 0; }};
  std::jthread writer([&] {
    for (int i = 0; i < kChanges; i++) {
      put("a", std::to_string(i), Durability::soft);
      if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  while (taken.size() < size_t(kChanges)) {
    owner_is_up = false;
    auto event = MUST(watcher->take({}, now() + std::chrono::milliseconds(200), &delegate));  // returns as soon as the delegate
                                                                                              // took the last event
    owner_is_up = true;
    if (event) taken.push_back(event->revision);
  }
  writer.join();
  for (size_t i = 1; i < taken.size(); i++) ASSERT_EQ(taken[i], taken[i - 1] + 1);
  EXPECT_EQ(taken.size(), size_t(kChanges));
  EXPECT_GT(stood_in, 0);
  EXPECT_FALSE(MUST(watcher->take({}, now())));
  EXPECT_EQ(watcher->progress(), engine().revision());
}

TEST_F(WatchTest, an_owner_with_a_delegate_wakes_for_a_stop_and_for_the_end) {
  options_.watch_queue_max = 5;
  reopen();
  auto watcher = MUST(engine().watch(kConfigMap, "", engine().revision()));
  Guarded<int> begun(0);
  Guarded<bool> may_go_on(false);
  Delegate slow{[&](const Event&) {
                  begun.with([](int& count) { count++; });
                  begun.notify();
                  return may_go_on.wait(
                      {}, [](bool may) { return may; }, [](bool) { return true; });
                },
                [] { return true; }};
  std::stop_source stop;
  std::jthread outside([&] {
    stop.request_stop();
    begun.wait(
        {}, [](int count) { return count == 1; }, [](int) {});
    for (int i = 0; i < 6; i++) put("a", "y" + std::to_string(i), Durability::soft);
    may_go_on.with([](bool& may) { may = true; });
    may_go_on.notify();
  });
  EXPECT_FALSE(MUST(watcher->take(stop.get_token(), soon(), &slow)));
  std::jthread first([&] { put("a", "x", Durability::soft); });
  size_t seen = 0;
  for (int pass = 0;; pass++) {
    auto event = watcher->take({}, soon(), &slow);
    if (!event) {
      EXPECT_EQ(event.error().code(), Code::gone);
      break;
    }
    seen += event->has_value();
    if (event->has_value() && begun.with([](int count) { return count; }) == 0) {  // the owner was already awake: try again
      first = std::jthread([&, pass] { put("b", "x" + std::to_string(pass), Durability::soft); });  // an unchanged object would
                                                                                                    // cause no event
      seen = 0;
    }
  }
  EXPECT_EQ(seen + size_t(begun.with([](int count) { return count; })), 6u);
}

TEST_F(WatchTest, closing_the_engine_ends_watches) {
  auto watcher = MUST(engine().watch(kConfigMap, "", engine().revision()));
  Guarded<std::optional<Code>> ended;
  auto subscription = MUST(
      engine().subscribe(kConfigMap, "", engine().revision(),
                         {[](const Event&) {}, [&](const Error& why) { ended.with([&](auto& code) { code = why.code(); }); }}));
  close();
  EXPECT_EQ(watcher->take({}, soon()).error().code(), Code::unavailable);
  EXPECT_EQ(ended.with([](auto& code) { return code; }), Code::unavailable);
}

struct Recorder {
  Guarded<Names> names;
  Callbacks callbacks() {
    return {[this](const Event& event) {
              names.with([&](Names& all) { all.push_back(name_of(event)); });
              names.notify();
            },
            [](const Error&) {}};
  }
  Names wait(size_t count) {
    return names.wait_until(
        {}, std::chrono::steady_clock::now() + std::chrono::seconds(60), [&](const Names& all) { return all.size() >= count; },
        [](const Names& all) { return all; });
  }
};

TEST_F(WatchTest, subscriptions_are_pushed_in_order) {
  put("a", "1");
  Recorder recorder, other;
  auto one = MUST(engine().subscribe(kConfigMap, "", 0, recorder.callbacks()));
  auto two = MUST(engine().subscribe(kConfigMap, "", engine().revision(), other.callbacks()));
  put("b", "1");
  put("a", "2", Durability::soft);
  EXPECT_EQ(recorder.wait(4), (Names{"added a", "synced", "added b", "modified a"}));
  EXPECT_EQ(other.wait(2), (Names{"added b", "modified a"}));
}

TEST_F(WatchTest, a_destroyed_subscription_is_silent) {
  Recorder recorder, other;
  auto one = MUST(engine().subscribe(kConfigMap, "", 0, recorder.callbacks()));
  auto two = MUST(engine().subscribe(kConfigMap, "", 0, other.callbacks()));
  EXPECT_EQ(recorder.wait(1), (Names{"synced"}));
  one.reset();
  put("a", "1");
  EXPECT_EQ(other.wait(2), (Names{"synced", "added a"}));
  EXPECT_EQ(recorder.wait(1), (Names{"synced"}));
}

TEST_F(WatchTest, a_subscription_may_end_itself) {
  std::unique_ptr<Subscription> subscription;
  Guarded<int> calls{0};
  Guarded<bool> ready{false};
  subscription = MUST(engine().subscribe(kConfigMap, "", engine().revision(),
                                         {[&](const Event&) {
                                            ready.wait(
                                                {}, [](bool is) { return is; }, [](bool) {});
                                            calls.with([](int& count) { count++; });
                                            subscription.reset();
                                            calls.notify();
                                          },
                                          [](const Error&) {}}));
  ready.with([](bool& is) { is = true; });
  ready.notify();
  put("a", "1");
  calls.wait(
      {}, [](int count) { return count > 0; }, [](int) {});
  put("a", "2");
  put("a", "3");
  close();
  EXPECT_EQ(calls.with([](int count) { return count; }), 1);
}

TEST_F(WatchTest, watches_begun_under_load_miss_nothing_and_repeat_nothing) {
  std::jthread writer([this](std::stop_token stop) {
    for (int i = 0; !stop.stop_requested() && i < 100'000; i++)
      put("n" + std::to_string(i % 5), std::to_string(i), i % 50 ? Durability::soft : Durability::durable);
  });
  for (int round = 0; round < 50; round++) {
    ListPage page = MUST(engine().list(kConfigMap, {}));
    auto watcher = MUST(engine().watch(kConfigMap, "", round % 2 ? 0 : page.revision));
    Revision last = page.revision;
    if (round % 2) {
      for (Event event = *MUST(watcher->take({}, soon())); event.type != EventType::synced;
           event = *MUST(watcher->take({}, soon())))
        last = 0;
      last = watcher->progress();
    }
    for (int i = 0; i < 20; i++) {
      Event event = *MUST(watcher->take({}, soon()));
      EXPECT_EQ(event.revision, last + 1);  // one kind, so every revision is an event
      last = event.revision;
    }
  }
}

using ListTest = WatchTest;

TEST_F(ListTest, pages_show_one_snapshot) {
  for (const char* name : {"a", "b", "d", "e"}) put(name, "1");
  ListOptions options;
  options.limit = 2;
  ListPage page = MUST(engine().list(kConfigMap, options));
  EXPECT_EQ(page.remaining, 2u);
  put("c", "new");
  put("d", "changed", Durability::soft);
  (void)MUST(engine().remove(kConfigMap, key("e"), std::nullopt, Durability::durable));
  options.continue_token = page.continue_token;
  ListPage second = MUST(engine().list(kConfigMap, options));
  EXPECT_EQ(second.revision, page.revision);
  ASSERT_EQ(second.items.size(), 2u);
  EXPECT_EQ(second.items[0]->name(), "d");
  EXPECT_EQ(get_string(second.items[0]->json(), "data.value"), "1");
  EXPECT_EQ(second.items[1]->name(), "e");
  EXPECT_EQ(second.continue_token, "");
  EXPECT_EQ(second.remaining, 0u);
  ListOptions exact;
  exact.at = page.revision;
  EXPECT_EQ(names(exact), (Names{"a", "b", "d", "e"}));
  EXPECT_EQ(names(), (Names{"a", "b", "c", "d"}));
}

TEST_F(ListTest, an_expired_page_says_where_to_go_on) {
  for (const char* name : {"a", "b", "c"}) put(name, "1");
  ListOptions options;
  options.limit = 1;
  options.continue_token = MUST(engine().list(kConfigMap, options)).continue_token;
  put("bb", "1");
  engine().compact(engine().revision());
  auto expired = engine().list(kConfigMap, options);
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code(), Code::gone);
  options.continue_token = expired.error().details()->continue_token;
  options.limit = 0;
  EXPECT_EQ(names(options), (Names{"b", "bb", "c"}));
}

TEST_F(ListTest, filters_by_namespace_and_predicate) {
  put("a", "1");
  put("b", "2");
  (void)MUST(engine().write({&kConfigMap, {"aaa", "z"}, body("z", "1", "aaa"), {}}, Durability::durable));
  EXPECT_EQ(names(), (Names{"z", "a", "b"}));
  ListOptions options;
  options.ns = "default";
  EXPECT_EQ(names(options), (Names{"a", "b"}));
  options.matches = [](const Object& object) { return get_string(object.json(), "data.value") == "2"; };
  EXPECT_EQ(names(options), (Names{"b"}));
  EXPECT_FALSE(MUST(engine().list(kConfigMap, options)).remaining);
  options.limit = 1;
  EXPECT_EQ(MUST(engine().list(kConfigMap, options)).continue_token, "");
}

TEST_F(ListTest, refuses_bad_tokens_and_future_revisions) {
  for (const char* token : {"!", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0"}) {
    ListOptions options;
    options.continue_token = token;
    EXPECT_EQ(engine().list(kConfigMap, options).error().code(), Code::bad_request) << token;
  }
  ListOptions options;
  options.at = engine().revision() + 10;
  EXPECT_EQ(engine().list(kConfigMap, options).error().code(), Code::timeout);
}

// A delegate that wakes the owner gets no more events until the owner has run: they would overtake those that it left for the
// owner.
TEST_F(WatchTest, a_delegate_who_calls_the_owner_is_not_asked_again) {
  put("a", "0");
  for (int round = 0; round < 100; round++) {
    auto watcher = MUST(engine().watch(kConfigMap, "", engine().revision()));
    std::atomic<int> asked = 0, asked_in_vain = 0;
    std::atomic<bool> asleep = true;
    Delegate calls{[&](const Event&) {
                     asked_in_vain += asked++ > 0;
                     return false;
                   },
                   [] { return true; }};
    std::jthread owner([&] {
      (void)watcher->take({}, std::chrono::steady_clock::now() + std::chrono::seconds(5), &calls);
      asleep = false;
    });
    for (int i = 0; asleep; i++) put("a", std::to_string(round) + "-" + std::to_string(i), Durability::soft);
    owner.join();
    ASSERT_EQ(asked_in_vain, 0) << round;
  }
}

}  // namespace
}  // namespace coracle::engine
