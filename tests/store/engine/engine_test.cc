// SPDX-License-Identifier: Apache-2.0
// The engine: writes with compare-and-swap, the two durabilities, the content of a reopened file, damage.
#include "store/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "store/engine/plan.h"
#include "tests/store/engine/engine_fixture.h"
#include "tests/store/engine/slow_disk.h"

namespace coracle::engine {
namespace {

using EngineTest = EngineFixture;

TEST_F(EngineTest, stores_objects_under_rising_revisions) {
  ObjectPtr a = put("a", "1");
  ObjectPtr b = put("b", "1");
  EXPECT_GT(b->revision(), a->revision());
  EXPECT_EQ(get_string(a->json(), "metadata.resourceVersion"), std::to_string(a->revision()));
  EXPECT_EQ(engine().revision(), b->revision());
  EXPECT_EQ(MUST(engine().get(kConfigMap, key("a"))), a);
  EXPECT_EQ(engine().get(kConfigMap, key("c")).error().code(), Code::not_found);
  EXPECT_EQ(engine().get(kSecret, key("a")).error().code(), Code::not_found);
  EXPECT_EQ(engine().count(kConfigMap), 2u);
}

TEST_F(EngineTest, compares_before_it_swaps) {
  ObjectPtr a = put("a", "1");
  EXPECT_EQ(try_put("a", "2", 0).error().code(), Code::already_exists);
  EXPECT_EQ(try_put("a", "2", a->revision() + 1).error().code(), Code::conflict);
  EXPECT_EQ(try_put("b", "2", 7).error().code(), Code::not_found);
  EXPECT_TRUE(try_put("a", "2", a->revision()));
  EXPECT_TRUE(try_put("a", "3", std::nullopt));
  EXPECT_EQ(engine().remove(kConfigMap, key("a"), a->revision(), Durability::durable).error().code(), Code::conflict);
  EXPECT_EQ(engine().remove(kConfigMap, key("b"), std::nullopt, Durability::durable).error().code(), Code::not_found);
}

TEST_F(EngineTest, writing_what_is_there_is_no_write) {
  ObjectPtr a = put("a", "1");
  EXPECT_EQ(put("a", "1"), a);
  EXPECT_EQ(put("a", "1", Durability::soft), a);
  EXPECT_EQ(engine().revision(), a->revision());
}

TEST_F(EngineTest, a_removal_has_a_revision_and_the_last_state) {
  ObjectPtr a = put("a", "1");
  ObjectPtr gone = MUST(engine().remove(kConfigMap, key("a"), a->revision(), Durability::durable));
  EXPECT_GT(gone->revision(), a->revision());
  EXPECT_EQ(get_string(gone->json(), "data.value"), "1");
  EXPECT_EQ(get_string(gone->json(), "metadata.resourceVersion"), std::to_string(gone->revision()));
  EXPECT_FALSE(engine().get(kConfigMap, key("a")));
  EXPECT_GT(put("a", "2")->revision(), gone->revision());
}

TEST_F(EngineTest, says_whether_what_was_seen_is_unchanged) {
  ObjectPtr a = put("a", "1"), b = put("b", "1");
  std::vector<Seen> seen{{&kConfigMap, key("a"), a->revision()}, {&kConfigMap, key("b"), b->revision()}};
  EXPECT_TRUE(engine().unchanged({}));
  EXPECT_TRUE(engine().unchanged(seen));
  put("c", "1");
  EXPECT_TRUE(engine().unchanged(seen));
  seen[1].revision = put("b", "2", Durability::soft)->revision();
  EXPECT_TRUE(engine().unchanged(seen));
  put("b", "1");
  EXPECT_FALSE(engine().unchanged(seen)) << "it is as it was, but was something else in between";
  EXPECT_TRUE(engine().unchanged({seen[0]}));
  ASSERT_TRUE(engine().remove(kConfigMap, key("a"), std::nullopt, Durability::durable));
  EXPECT_FALSE(engine().unchanged({seen[0]}));
  put("a", "1");
  EXPECT_FALSE(engine().unchanged({seen[0]})) << "another one";
  EXPECT_FALSE(engine().unchanged({{&kSecret, key("a"), 1}}));
}

TEST_F(EngineTest, a_group_happens_whole_or_not_at_all) {
  ObjectPtr a = put("a", "1");
  std::vector<Write> writes;
  writes.push_back({&kConfigMap, key("b"), body("b", "1"), Revision(0)});
  writes.push_back({&kConfigMap, key("b"), body("b", "2"), std::nullopt});
  writes.push_back({&kConfigMap, key("a"), body("a", "2"), a->revision() + 5});
  EXPECT_EQ(engine().write_all(writes, Durability::durable).error().code(), Code::conflict);
  EXPECT_FALSE(engine().get(kConfigMap, key("b")));
  EXPECT_EQ(engine().revision(), a->revision());
  writes[2].expected = a->revision();
  std::vector<ObjectPtr> stored = MUST(engine().write_all(writes, Durability::durable));
  ASSERT_EQ(stored.size(), 3u);
  EXPECT_EQ(MUST(engine().get(kConfigMap, key("b"))), stored[1]);
  EXPECT_LT(stored[1]->revision(), stored[2]->revision());
}

// A number to which each write adds one.
class CountTest : public EngineFixture {
 protected:
  static Write one_more(int limit) {
    auto amend = [limit](const Object& now) -> Result<std::optional<json::value>> {
      int next = std::stoi(std::string(get_string(now.json(), "data.value"))) + 1;
      if (next > limit) return Error(Code::forbidden, "no more than " + std::to_string(limit));
      return std::optional<json::value>(body("count", std::to_string(next)));
    };
    return {&kConfigMap, key("count"), std::nullopt, std::nullopt, false, std::move(amend)};
  }
  std::string count() { return std::string(get_string(MUST(engine().get(kConfigMap, key("count")))->json(), "data.value")); }
};

TEST_F(CountTest, is_amended_in_turn_and_with_its_group) {
  EXPECT_EQ(engine().write(one_more(9), Durability::durable).error().code(), Code::not_found);
  ObjectPtr first = put("count", "0");
  std::vector<Write> writes;
  writes.push_back(one_more(3)), writes.push_back(one_more(3));
  writes.push_back({&kConfigMap, key("a"), body("a", "1"), Revision(0)});
  std::vector<ObjectPtr> stored = MUST(engine().write_all(writes, Durability::durable));
  EXPECT_EQ(get_string(stored[0]->json(), "data.value"), "1");
  EXPECT_EQ(get_string(stored[1]->json(), "data.value"), "2");
  EXPECT_EQ(stored[2]->revision(), first->revision() + 3);
  EXPECT_EQ(engine().write_all(writes, Durability::durable).error().code(), Code::forbidden) << "the second one is too many";
  EXPECT_EQ(count(), "2") << "then neither counts";
  writes.erase(writes.begin());
  EXPECT_EQ(engine().write_all(writes, Durability::durable).error().code(), Code::already_exists);
  EXPECT_EQ(count(), "2") << "nor one whose group fails otherwise";
  EXPECT_EQ(engine().revision(), stored[2]->revision());
}

TEST_F(CountTest, may_stay_as_it_is) {
  ObjectPtr first = put("count", "7");
  Write nothing = one_more(0);
  nothing.amend = [](const Object&) { return Result<std::optional<json::value>>(std::optional<json::value>()); };
  EXPECT_EQ(MUST(engine().write(nothing, Durability::durable)), first);
  EXPECT_EQ(engine().revision(), first->revision());
  nothing.amend = [](const Object&) {
    return Result<std::optional<json::value>>(std::optional<json::value>(body("other", "1")));
  };
  EXPECT_EQ(engine().write(nothing, Durability::durable).error().code(), Code::invalid) << "a body of another name";
}

TEST_F(CountTest, loses_nothing_that_many_add) {
  put("count", "0");
  constexpr int kThreads = 8, kEach = 100, kLimit = 500;
  std::atomic<int> counted = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; t++)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; i++) {
          std::vector<Write> writes;
          writes.push_back(one_more(kLimit));
          std::string name = "c" + std::to_string(t) + "-" + std::to_string(i);
          writes.push_back({&kConfigMap, key(name), body(name, "1"), Revision(0)});
          counted += engine().write_all(std::move(writes), i % 2 ? Durability::durable : Durability::soft).ok();
        }
      });
  }
  EXPECT_EQ(counted, kLimit);
  EXPECT_EQ(count(), std::to_string(kLimit));
  EXPECT_EQ(engine().count(kConfigMap), size_t(kLimit) + 1);
  reopen();
  EXPECT_EQ(count(), std::to_string(kLimit));
}

TEST_F(EngineTest, an_object_has_a_largest_size) {
  const std::string most(kObjectBytesMax - 1000, 'x');
  put("a", most);
  auto refused = try_put("b", most + std::string(1000, 'x'), std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::too_large);
  EXPECT_EQ(refused.error().text().find("Request entity too large: limit is 3145728"), 0u) << refused.error().text();
  EXPECT_FALSE(engine().get(kConfigMap, key("b")));
  EXPECT_FALSE(try_put("a", most + std::string(1000, 'x'), std::nullopt)) << "what is there may not grow either";
  EXPECT_TRUE(try_put("a", most.substr(1), std::nullopt)) << "but shrink";
  ASSERT_TRUE(engine().write({&kConfigMap, key("b"), body("b", most + most), Revision(0), true}, Durability::durable));
  EXPECT_TRUE(try_put("b", most + most.substr(1), std::nullopt)) << "so does what is too large already";
  EXPECT_TRUE(engine().remove(kConfigMap, key("b"), std::nullopt, Durability::durable));
}

TEST_F(EngineTest, an_object_that_is_being_deleted_may_grow_a_little_beyond_the_largest_size) {
  const std::string most(kObjectBytesMax, 'x');
  json::value object = body("a", most);
  auto write = [&] { return engine().write({&kConfigMap, key("a"), object, std::nullopt}, Durability::durable); };
  ASSERT_TRUE(engine().write({&kConfigMap, key("a"), object, Revision(0), true}, Durability::durable));
  make(object, "metadata.managedFields") = json::array{{{"manager", "who-removes-a-finalizer"}}};
  EXPECT_EQ(write().error().code(), Code::too_large);
  make(object, "metadata.deletionTimestamp") = "2026-01-02T00:00:00Z";
  EXPECT_TRUE(write());
  make(object, "data.more") = std::string(100 << 10, 'x');
  EXPECT_EQ(write().error().code(), Code::too_large) << "that is not needed for a deletion";
}

TEST_F(EngineTest, an_object_keeps_its_managed_fields_where_it_may_be_as_large) {
  const std::string most(kObjectBytesMax, 'x');
  json::value object = body("a", most);
  auto held = [&](Revision expected = 0) {
    make(object, "metadata.managedFields") = json::array{{{"manager", std::string(2000, 'm')}}};
    Write write{&kConfigMap, key("a"), object, expected ? std::optional<Revision>() : Revision(0)};
    write.sheds_managed_fields = true;
    ObjectPtr stored = MUST(engine().write(std::move(write), Durability::durable));
    return find(stored->json(), "metadata.managedFields") != nullptr;
  };
  make(object, "data.value") = most.substr(1000);
  EXPECT_FALSE(held()) << "it is too large with them";
  EXPECT_FALSE(held(1)) << "and not with their absence, which is no growth";
  (void)MUST(engine().remove(kConfigMap, key("a"), std::nullopt, Durability::durable));
  make(object, "data.value") = most;
  ASSERT_TRUE(engine().write({&kConfigMap, key("a"), object, Revision(0), true}, Durability::durable));
  make(object, "data.value") = most.substr(10000);
  EXPECT_TRUE(held(1)) << "it shrinks";
  make(object, "metadata.deletionTimestamp") = "2026-01-02T00:00:00Z";
  EXPECT_TRUE(held(1)) << "it is being deleted";
}

// A soft write is decided again if the disk fails.
TEST(Plan, decides_a_write_for_the_second_time_as_for_the_first) {
  json::value object = {{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", {{"name", "a"}, {"namespace", "default"}, {"uid", "u"}, {"resourceVersion", "1"}}}};
  make(object, "data.value") = std::string(kObjectBytesMax + 100, 'x');
  const ObjectPtr larger = MUST(Object::make(kConfigMap, object));
  make(object, "data.value") = std::string(kObjectBytesMax, 'x');
  const ObjectPtr smaller = MUST(Object::make(kConfigMap, object));
  auto keeps = [&](std::vector<Prepared>& group, const ObjectPtr& now) {
    Plan plan([&](const Kind&, const Key&) { return Plan::Entry{now, 1}; }, 1, 2);
    std::vector<ObjectPtr> stored = MUST(plan.add(group));
    return find(stored[0]->json(), "metadata.managedFields") != nullptr;
  };
  make(object, "metadata.managedFields") = json::array{{{"manager", "m"}}};
  Write write{&kConfigMap, {"default", "a"}, object, std::nullopt};
  write.sheds_managed_fields = true;
  std::vector<Prepared> sheds, deletes;
  sheds.push_back(MUST(Prepared::make(write)));
  EXPECT_TRUE(keeps(sheds, larger));
  EXPECT_FALSE(keeps(sheds, smaller)) << "without the write before it";
  make(object, "metadata.deletionTimestamp") = "2026-01-02T00:00:00Z";
  deletes.push_back(MUST(Prepared::make({&kConfigMap, {"default", "a"}, object, std::nullopt})));
  EXPECT_TRUE(keeps(deletes, smaller));
  EXPECT_TRUE(keeps(deletes, smaller));
}

// A store with a limit of some kilobytes.
class FullTest : public EngineFixture {
 protected:
  void SetUp() override {
    options_.objects_bytes_max = 8192;
    options_.on_full = [this](const Usage& usage) { told.push_back(usage.bytes); };
    EngineFixture::SetUp();
  }
  std::vector<size_t> told;
};

TEST_F(FullTest, refuses_what_is_new_and_lets_go_of_what_is_there) {
  const std::string large(2000, 'x');
  put("a", large), put("b", large), put("c", large);
  auto refused = try_put("d", large, std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text().find("etcdserver: mvcc: database space exceeded"), 0u) << refused.error().text();
  EXPECT_NE(refused.error().text().find("storeMaxSize"), std::string::npos);
  EXPECT_EQ(refused.error().code(), Code::internal);
  EXPECT_FALSE(try_put("a", large + large, std::nullopt)) << "what is there may not grow either";
  EXPECT_TRUE(try_put("a", large.substr(1), std::nullopt)) << "but shrink";
  EXPECT_TRUE(engine().write({&kConfigMap, key("d"), body("d", large), Revision(0), true}, Durability::durable));
  EXPECT_EQ(told.size(), 1u) << "once, however many are refused";
  EXPECT_GT(engine().usage().bytes, engine().usage().bytes_max);
  EXPECT_TRUE(engine().remove(kConfigMap, key("a"), std::nullopt, Durability::durable));
  EXPECT_TRUE(engine().remove(kConfigMap, key("b"), std::nullopt, Durability::durable));
  EXPECT_TRUE(try_put("e", large, std::nullopt)) << "there is space again";
  EXPECT_FALSE(try_put("f", large + large, std::nullopt));
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(FullTest, a_group_that_does_not_fit_takes_no_space) {
  const std::string large(2000, 'x');
  std::vector<Write> writes;
  for (const char* name : {"a", "b", "c", "d", "e"}) writes.push_back({&kConfigMap, key(name), body(name, large), Revision(0)});
  EXPECT_FALSE(engine().write_all(std::move(writes), Durability::durable));
  EXPECT_EQ(engine().usage().bytes, 0u);
  put("a", large), put("b", large), put("c", large);
}

TEST_F(FullTest, counts_what_is_there_after_a_restart) {
  put("a", std::string(2000, 'x'));
  put("a", std::string(1000, 'x'));
  put("b", "1");
  MUST(engine().remove(kConfigMap, key("b"), std::nullopt, Durability::durable));
  size_t bytes = engine().usage().bytes;
  EXPECT_GT(bytes, 1000u);
  EXPECT_LT(bytes, 2000u);
  reopen();
  EXPECT_EQ(engine().usage().bytes, bytes);
}

TEST_F(EngineTest, refuses_bodies_that_are_no_objects) {
  EXPECT_EQ(engine().write({&kConfigMap, key("a"), json::value("text"), {}}, Durability::durable).error().code(), Code::invalid);
  EXPECT_EQ(engine().write({&kConfigMap, key("a"), body("b", "1"), {}}, Durability::durable).error().code(), Code::invalid);
}

TEST_F(EngineTest, holds_everything_after_a_clean_stop) {
  put("a", "1");
  put("b", "1", Durability::soft);
  put("c", "1", Durability::lazy);
  put("d", "1");
  (void)MUST(engine().remove(kConfigMap, key("d"), std::nullopt, Durability::soft));
  ObjectPtr pod = MUST(engine().write({&kPod, key("a"), body("a", "pod"), Revision(0)}, Durability::durable));
  Revision before = engine().revision();
  std::string text(MUST(engine().get(kConfigMap, key("b")))->text());
  reopen();
  EXPECT_EQ(engine().revision(), before);
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(MUST(engine().get(kConfigMap, key("b")))->text(), text);
  EXPECT_EQ(MUST(engine().get(kPod, key("a")))->text(), pod->text());
  EXPECT_EQ(&MUST(engine().get(kPod, key("a")))->kind(), &kPod);
  EXPECT_TRUE(engine().watch(kConfigMap, "", before));
  EXPECT_GT(put("e", "1")->revision(), before);
}

TEST_F(EngineTest, soft_writes_are_seen_at_once_and_reach_the_disk_in_time) {
  options_.soft_delay = std::chrono::milliseconds(20);
  reopen();
  put("a", "1", Durability::soft);
  EXPECT_TRUE(engine().get(kConfigMap, key("a")));
  EXPECT_EQ(wait_for_rows_of_a_copy(1), 1u);
}

TEST_F(EngineTest, soft_writes_reach_the_disk_with_the_next_durable_one) {
  put("a", "1", Durability::soft);
  put("b", "1", Durability::lazy);
  EXPECT_EQ(rows_of_a_copy(), 0u);
  put("c", "1");
  EXPECT_EQ(rows_of_a_copy(), 3u);
  put("a", "2", Durability::soft);
  ASSERT_TRUE(engine().flush());
  EXPECT_EQ(rows_of_a_copy(), 3u);
}

TEST_F(EngineTest, a_durable_write_of_what_is_there_already_waits_until_it_is_on_the_disk) {
  for (Durability pending : {Durability::soft, Durability::lazy, Durability::passing}) {
    SCOPED_TRACE(int(pending));
    const size_t before = rows_of_a_copy();
    const std::string name = "pending" + std::to_string(int(pending));
    ObjectPtr made = put(name, "1", pending);
    EXPECT_EQ(put(name, "1", pending), made);
    EXPECT_EQ(rows_of_a_copy(), before) << "nobody waits for it";
    EXPECT_EQ(put(name, "1"), made) << "it is not written again";
    EXPECT_EQ(rows_of_a_copy(), before + 1);
    const auto written = engine().last_written();
    EXPECT_EQ(put(name, "1"), made);
    EXPECT_EQ(engine().last_written(), written) << "it is there";
  }
}

TEST_F(EngineTest, a_durable_write_that_is_refused_does_not_wait_for_others) {
  put("a", "1", Durability::soft);
  EXPECT_EQ(try_put("a", "2", Revision(0)).error().code(), Code::already_exists);
  EXPECT_EQ(rows_of_a_copy(), 0u);
}

TEST_F(EngineTest, passing_writes_reach_the_disk_with_others_and_never_by_themselves) {
  options_.soft_delay = options_.lazy_delay = std::chrono::milliseconds(1);
  reopen();
  put("a", "1", Durability::passing);
  EXPECT_TRUE(engine().get(kConfigMap, key("a")));
  // More than the number that was reserved in advance when passing writes were few.
  for (int i = 0; i < 5000; ++i) put("a", std::to_string(i), Durability::passing);
  EXPECT_EQ(engine().last_written(), std::chrono::steady_clock::time_point());
  EXPECT_EQ(rows_of_a_copy(), 0u);
  put("b", "1");
  EXPECT_EQ(rows_of_a_copy(), 2u);
  put("c", "1", Durability::passing);
  put("b", "2", Durability::soft);  // also writes the pending passing changes
  EXPECT_EQ(wait_for_rows_of_a_copy(3), 3u);
  put("d", "1", Durability::passing);
  reopen();
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b", "c", "d"})) << "a clean stop forgets nothing";
}

// A kind that is not kept over a restart, among others that are.
struct ForgetfulTest : EngineFixture {
  void SetUp() override {
    options_.memory_only = [](const Kind& kind) { return kind == kSecret; };
    EngineFixture::SetUp();
  }
  ObjectPtr put_secret(const std::string& name, Durability durability = Durability::soft) {
    json::value secret = body(name, "1");
    secret.as_object()["kind"] = "Secret";
    return MUST(engine().write({&kSecret, key(name), secret, std::nullopt}, durability));
  }
};

TEST_F(ForgetfulTest, what_is_in_memory_only_never_reaches_the_disk) {
  put_secret("a", Durability::durable);
  put("b", "1");
  ASSERT_TRUE(engine().flush());
  EXPECT_EQ(rows_of_a_copy(), 1u);
  EXPECT_EQ(engine().count(kSecret), 1u);
  EXPECT_EQ(engine().check(), std::vector<std::string>());
  EXPECT_EQ(engine().snapshot().objects.size(), 1u);
  reopen();
  EXPECT_EQ(engine().count(kSecret), 0u);
  EXPECT_EQ(names(), std::vector<std::string>{"b"});
}

TEST_F(ForgetfulTest, its_revisions_do_not_repeat) {
  Revision last = 0;
  for (int i = 0; i < 3000; i++) last = put_secret("s" + std::to_string(i))->revision();
  crash_and_reopen();
  EXPECT_GT(engine().revision(), last);
  last = put_secret("t")->revision();
  reopen();
  EXPECT_GT(put_secret("t")->revision(), last);
}

TEST_F(ForgetfulTest, who_watched_it_lists_again_after_a_restart_and_others_go_on) {
  put("b", "1");
  Revision seen = put_secret("a")->revision();
  reopen();
  EXPECT_EQ(engine().watch(kSecret, "", seen).error().code(), Code::gone);
  EXPECT_EQ(engine().list(kSecret, {.at = seen}).error().code(), Code::gone);
  EXPECT_TRUE(engine().watch(kConfigMap, "", seen));
  ListPage fresh = MUST(engine().list(kSecret, {}));
  EXPECT_TRUE(fresh.items.empty());
  EXPECT_TRUE(engine().watch(kSecret, "", fresh.revision));
}

TEST_F(ForgetfulTest, what_the_disk_has_of_it_from_before_goes) {
  options_.memory_only = nullptr;
  reopen();
  put_secret("old");
  put("b", "1");
  ASSERT_TRUE(engine().flush());
  EXPECT_EQ(rows_of_a_copy(), 2u);
  options_.memory_only = [](const Kind& kind) { return kind == kSecret; };
  reopen();
  EXPECT_EQ(engine().count(kSecret), 0u);
  EXPECT_EQ(engine().check(), std::vector<std::string>());
  put("c", "1");
  EXPECT_EQ(rows_of_a_copy(), 2u) << "b and c";
}

TEST_F(EngineTest, a_list_at_rest_is_the_list) {
  for (const char* name : {"a", "b", "c"}) put(name, name);
  ListOptions options{.matches = [](const Object& object) { return object.name() != "b"; }};
  ListPage awake = MUST(engine().list(kConfigMap, options));
  RestingPage resting = MUST(engine().list_at_rest(kConfigMap, options));
  ASSERT_EQ(resting.items.size(), 2u);
  EXPECT_EQ(resting.revision, awake.revision);
  for (size_t i = 0; i < 2; i++) EXPECT_EQ(resting.items[i], awake.items[i]->at_rest());
  RestingPage first = MUST(engine().list_at_rest(kConfigMap, {.limit = 1}));
  EXPECT_EQ(first.remaining, 2u);
  RestingPage rest = MUST(engine().list_at_rest(kConfigMap, {.continue_token = first.continue_token}));
  EXPECT_EQ(rest.items.size(), 2u);
}

TEST_F(EngineTest, what_rests_packed_is_on_the_disk_as_it_is) {
  json::value event = body("e", "text that comes again and again: text that comes again and again");
  event.as_object()["kind"] = "Event";
  std::string text(MUST(engine().write({&kEvent, key("e"), event, Revision(0)}, Durability::durable))->text());
  EXPECT_EQ(engine().check(), std::vector<std::string>());
  reopen();
  EXPECT_EQ(MUST(engine().get(kEvent, key("e")))->text(), text);
  EXPECT_EQ(engine().check(), std::vector<std::string>());
}

TEST_F(EngineTest, goes_on_above_every_revision_after_a_crash) {
  put("a", "1");
  for (int i = 0; i < 3000; i++) put("a", std::to_string(i), Durability::soft);
  Revision seen = engine().revision();
  crash_and_reopen();
  EXPECT_GE(engine().revision(), seen);
  EXPECT_GT(put("b", "1")->revision(), seen);
  EXPECT_EQ(engine().watch(kConfigMap, "", seen - 1).error().code(), Code::gone);
}

TEST_F(EngineTest, keeps_kinds_that_nobody_knows_any_more) {
  static constexpr Kind kGadget{"example.com", "v1", "Gadget", "gadgets"};
  json::value gadget = body("g", "1");
  gadget.get_object()["apiVersion"] = "example.com/v1";
  gadget.get_object()["kind"] = "Gadget";
  (void)MUST(engine().write({&kGadget, key("g"), gadget, Revision(0)}, Durability::durable));
  reopen();
  ObjectPtr kept = MUST(engine().get(kGadget, key("g")));
  EXPECT_EQ(kept->kind().api_version(), "example.com/v1");
  EXPECT_EQ(kept->kind().kind, "Gadget");
}

TEST_F(EngineTest, many_writers_share_commits) {
  std::vector<std::jthread> writers;
  for (int w = 0; w < 4; w++) {
    writers.emplace_back([this, w] {
      for (int i = 0; i < 50; i++) {
        auto durability = i % 3 ? Durability::durable : Durability::soft;
        put("w" + std::to_string(w), std::to_string(i), durability);
        if (i % 7 == 3) (void)MUST(engine().remove(kConfigMap, key("w" + std::to_string(w)), std::nullopt, durability));
        (void)engine().list(kConfigMap, {});
      }
    });
  }
  writers.clear();
  reopen();
  EXPECT_EQ(names(), (std::vector<std::string>{"w0", "w1", "w2", "w3"}));
  for (int w = 0; w < 4; w++)
    EXPECT_EQ(get_string(MUST(engine().get(kConfigMap, key("w" + std::to_string(w))))->json(), "data.value"), "49");
}

class EngineOnSlowDisk : public EngineFixture {
 protected:
  void SetUp() override {
    options_.vfs = disk.vfs();
    EngineFixture::SetUp();
  }
  void TearDown() override { close(); }  // before the disk goes
  SlowDisk disk;
};

// A small write waits for the commit of one large one at most.
TEST_F(EngineOnSlowDisk, large_writes_are_committed_one_by_one) {
  disk.hold_syncs(true);
  std::jthread first([&] { put("first", "1"); });
  while (disk.held_syncs() == 0) std::this_thread::yield();
  const size_t syncs_before = disk.syncs();
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; i++)
    others.emplace_back([&, i] { put("large" + std::to_string(i), std::string(2'500'000, 'x'), Durability::soft); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // those that come later are committed alone all the same
  disk.hold_syncs(false);
  first.join(), others.clear();
  EXPECT_GE(disk.syncs() - syncs_before, 3u);
  EXPECT_EQ(names().size(), 4u);
}

TEST_F(EngineOnSlowDisk, many_large_writes_that_are_not_the_largest_are_committed_together) {
  disk.hold_syncs(true);
  std::jthread first([&] { put("first", "1"); });
  while (disk.held_syncs() == 0) std::this_thread::yield();
  std::vector<std::jthread> others;
  for (int i = 0; i < 8; i++) others.emplace_back([&, i] { put("large" + std::to_string(i), std::string(300'000, 'x')); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const size_t syncs_before = disk.syncs();
  disk.hold_syncs(false);
  first.join(), others.clear();
  EXPECT_LT(disk.syncs() - syncs_before, 8u);
  EXPECT_EQ(names().size(), 9u);
}

TEST_F(EngineOnSlowDisk, a_small_write_goes_before_a_large_one_that_waits_too) {
  Revision large = 0, small = 0;
  disk.hold_syncs(true);
  std::jthread first([&] { put("first", "1"); });
  while (disk.held_syncs() == 0) std::this_thread::yield();
  std::jthread second([&] { large = put("large", std::string(1 << 20, 'x'))->revision(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // if it is not in the queue by then, it comes last all the same
  std::jthread third([&] { small = put("small", "1")->revision(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  disk.hold_syncs(false);
  first.join(), second.join(), third.join();
  EXPECT_LT(small, large);
  EXPECT_GT(put("later", "1")->revision(), large);
}

// A small write would have to take it along.
TEST_F(EngineTest, a_large_soft_write_goes_to_the_disk_at_once) {
  close();
  options_.soft_delay = options_.lazy_delay = std::chrono::hours(1);
  reopen();
  put("small", "1", Durability::soft);
  EXPECT_EQ(rows_of_a_copy(), 0u);
  put("large", std::string(1 << 20, 'x'), Durability::soft);
  EXPECT_EQ(rows_of_a_copy(), 2u);
}

TEST_F(EngineOnSlowDisk, a_large_soft_write_does_not_need_the_disk) {
  disk.set_failing(true);
  put("large", std::string(1 << 20, 'x'), Durability::soft);
  EXPECT_FALSE(try_put("durable", "1", std::nullopt));
  EXPECT_EQ(names(), std::vector<std::string>{"large"});
  disk.set_failing(false);
  put("durable", "1");
  EXPECT_EQ(rows_of_a_copy(), 2u);
}

// The engine closes at the moment when a long log should go into the file. (Disk ends the process otherwise.)
TEST_F(EngineOnSlowDisk, one_thread_at_a_time_uses_the_file) {
  put("first", std::string(2'900'000, 'x'));
  disk.hold_syncs(true);
  std::jthread second([&] { put("second", std::string(2'900'000, 'x')); });  // with the first: more than 1400 pages
  while (disk.held_syncs() == 0) std::this_thread::yield();
  std::jthread goes_on([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the engine waits for its turn to close
    disk.set_delay(std::chrono::milliseconds(20));
    disk.hold_syncs(false);
  });
  close();
  second.join(), goes_on.join();
  disk.set_delay({});
  reopen();
  EXPECT_EQ(names().size(), 2u);
  EXPECT_EQ(engine().check(), std::vector<std::string>());
}

TEST_F(EngineOnSlowDisk, a_large_write_takes_few_writes_of_the_log) {
  put("small", "1");
  const size_t before = disk.writes();
  put("large", std::string(2 << 20, 'x'));
  EXPECT_LT(disk.writes() - before, 50u) << "it has 512 pages";
}

TEST_F(EngineTest, one_file_has_one_engine) {
  auto second = Engine::open(path(), options_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::unavailable) << second.error().text();
}

TEST_F(EngineTest, its_files_are_for_nobody_else) {
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory_.path())) {
    EXPECT_EQ(int(file.status().permissions() & std::filesystem::perms::all), 0600) << file.path();
    ++files;
  }
  EXPECT_GE(files, 2u) << "the database and its log";
}

TEST_F(EngineTest, a_missing_directory_is_named) {
  auto failed = Engine::open("/nonexistent/dir/state.db", options_);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().text().find("/nonexistent/dir/state.db"), std::string::npos) << failed.error().text();
}

TEST_F(EngineTest, refuses_a_damaged_file_and_sets_it_aside_when_told) {
  for (int i = 0; i < 50; i++) put("n" + std::to_string(i), std::string(2000, 'x'));
  close();
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5 * 4096);
    for (int i = 0; i < 8192; i++) file.put(char(0xa5));
  }
  auto refused = Engine::open(path(), options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::internal);
  EXPECT_NE(refused.error().text().find("damaged"), std::string::npos) << refused.error().text();
  options_.set_aside_damaged = true;
  reopen();
  EXPECT_EQ(names(), std::vector<std::string>{});
  EXPECT_EQ(files_aside(), 1u);
}

TEST_F(EngineTest, refuses_files_that_are_not_its_own) {
  close();
  std::ofstream(path(), std::ios::trunc) << std::string(8192, 'n');
  auto refused = Engine::open(path(), options_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("damaged"), std::string::npos) << refused.error().text();
}

}  // namespace
}  // namespace coracle::engine
