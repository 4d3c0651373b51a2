// SPDX-License-Identifier: Apache-2.0
// History: one revision for each template, numbered in the order of their last use; the history limit; name collisions.
#include "daemon/controller/workload/history.h"

#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

ObjectPtr set_with_image(const std::string& image, const std::string& more = "", const std::string& status = "{}") {
  json::value body = MUST(parse_json(
      R"({"metadata":{"name":"web","namespace":"default","uid":"set","annotations":{"kubernetes.io/change-cause":"why"}},
    "spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"spec":{"containers":[{"name":"c","image":")" +
      image + R"("}]},"metadata":{"labels":{"app":"web"}}})" + more + R"(},"status":)" + status + "}"));
  return MUST(Object::make(kStatefulSet, body));
}

ObjectPtr revision_of(const Object& set, int64_t number, const std::string& name) {
  json::value body = new_revision(set, "h", number, 0);
  make(body, "metadata.name") = name;
  make(body, "metadata.uid") = name;
  return MUST(Object::make(kControllerRevision, body));
}

TEST(History, a_revision_keeps_the_template_as_a_patch_that_puts_it_back) {
  EXPECT_EQ(
      to_text(revision_data(*set_with_image("a"))),
      R"({"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"a","name":"c"}]}}}})")
      << "members in order, as Go writes maps: kubectl compares the bytes";
  ObjectPtr revision = revision_of(*set_with_image("a"), 3, "r");
  EXPECT_EQ(template_of(*revision), *find(set_with_image("a")->json(), "spec.template"));
  EXPECT_EQ(number_of(*revision), 3);
}

TEST(History, a_revision_is_named_after_its_set_and_template) {
  json::value body = new_revision(*set_with_image("a"), "controller.kubernetes.io/hash", 1, 0);
  const json::object& labels = get_object(body, "metadata.labels");
  std::string hash(labels.at("controller.kubernetes.io/hash").get_string());
  EXPECT_EQ(get_string(body, "metadata.name"), "web-" + hash);
  EXPECT_EQ(labels.at("app"), "web");
  EXPECT_EQ(get_object(body, "metadata.annotations").at("kubernetes.io/change-cause"), "why");
  EXPECT_EQ(get_string(get_array(body, "metadata.ownerReferences").at(0), "uid"), "set");
  EXPECT_NE(get_string(new_revision(*set_with_image("b"), "h", 1, 0), "metadata.name"), get_string(body, "metadata.name"));
  EXPECT_NE(get_string(new_revision(*set_with_image("a"), "h", 1, 1), "metadata.name"), get_string(body, "metadata.name"));
  EXPECT_EQ(get_string(new_revision(*set_with_image("a"), "h", 2, 0), "metadata.name"), get_string(body, "metadata.name"))
      << "the number is no part of it";
}

TEST(History, the_revision_of_the_template_has_the_highest_number) {
  ObjectPtr a = revision_of(*set_with_image("a"), 1, "a"), b = revision_of(*set_with_image("b"), 2, "b"),
            c = revision_of(*set_with_image("c"), 7, "c");
  struct Row {
    const char* name;
    const char* image;
    std::vector<ObjectPtr> there;
    const char* revision;
    int64_t number;
  };
  for (const Row& row : {
           Row{"the first", "a", {}, "", 1},
           Row{"it is there", "a", {a}, "a", 1},
           Row{"the latest", "c", {c, a, b}, "c", 7},
           Row{"a new one", "d", {b, c, a}, "", 8},
           Row{"an earlier one is back", "a", {a, c, b}, "a", 8},
       }) {
    HistoryPlan plan = plan_history(*set_with_image(row.image), row.there);
    EXPECT_EQ(plan.revision ? plan.revision->name() : "", row.revision) << row.name;
    EXPECT_EQ(plan.number, row.number) << row.name;
    EXPECT_TRUE(plan.same.empty()) << row.name;
    EXPECT_TRUE(std::is_sorted(plan.others.begin(), plan.others.end(), [](auto& x, auto& y) {
      return number_of(*x) < number_of(*y);
    })) << row.name;
  }
}

TEST(History, of_two_with_the_same_template_the_later_counts) {
  ObjectPtr a = revision_of(*set_with_image("a"), 1, "a"), again = revision_of(*set_with_image("a"), 2, "again"),
            b = revision_of(*set_with_image("b"), 3, "b");
  HistoryPlan plan = plan_history(*set_with_image("a"), {again, a, b});
  EXPECT_EQ(plan.revision->name(), "again");
  EXPECT_EQ(plan.number, 4);
  ASSERT_EQ(plan.same.size(), 1u);
  EXPECT_EQ(plan.same[0]->name(), "a");
}

TEST(History, keeps_as_many_as_the_limit_says_and_all_that_are_in_use) {
  std::vector<ObjectPtr> old;
  for (int i = 0; i < 5; ++i) old.push_back(revision_of(*set_with_image(std::to_string(i)), i, std::to_string(i)));
  auto gone = [&](const std::string& limit, const std::string& used) {
    std::string names;
    for (const ObjectPtr& revision :
         beyond_limit(*set_with_image("x", limit), old, [&](const Object& one) { return used.find(one.name()) != used.npos; }))
      names += revision->name();
    return names;
  };
  EXPECT_EQ(gone("", ""), "") << "ten, unless something else is said";
  EXPECT_EQ(gone(R"(,"revisionHistoryLimit":3)", ""), "01");
  EXPECT_EQ(gone(R"(,"revisionHistoryLimit":3)", "0"), "12");
  EXPECT_EQ(gone(R"(,"revisionHistoryLimit":0)", ""), "01234");
  EXPECT_EQ(gone(R"(,"revisionHistoryLimit":0)", "03"), "124");
}

struct KeepHistory : testing::Test {
  FakeClock clock;
  FakeClient client{clock};
  Informer revisions{client, kControllerRevision};
  void start() {
    index_by_controller(revisions);
    MUST(revisions.start());
    client.settle();
  }
  Result<History> keep(const std::string& image, const std::string& status = "{}") {
    client.settle();
    ObjectPtr set = set_with_image(image, "", status);
    return keep_history_of(*set);
  }
  Result<History> keep_history_of(const Object& set) {
    auto selector = selector_in_spec(set);
    return keep_history(client, revisions, set, &*selector, "h");
  }
};

TEST_F(KeepHistory, makes_one_for_each_template_and_numbers_an_earlier_one_anew) {
  start();
  std::string first = MUST(keep("a")).revision->name();
  EXPECT_EQ(MUST(keep("a")).revision->name(), first);
  EXPECT_EQ(client.all(kControllerRevision).size(), 1u);
  History second = MUST(keep("b"));
  EXPECT_EQ(number_of(*second.revision), 2);
  EXPECT_EQ(second.others.at(0)->name(), first);
  History back = MUST(keep("a"));
  EXPECT_EQ(back.revision->name(), first);
  EXPECT_EQ(number_of(*back.revision), 3);
  EXPECT_EQ(client.all(kControllerRevision).size(), 2u);
  client.settle();
  client.clear_calls();
  MUST(keep("a"));
  EXPECT_TRUE(client.calls().empty()) << "nothing to do, nothing written: " << client.calls()[0];
}

TEST_F(KeepHistory, a_late_cache_makes_nothing_twice) {
  start();
  client.lose_event();
  std::string first = MUST(keep("a")).revision->name();
  History again = MUST(keep("a"));
  EXPECT_EQ(again.revision->name(), first);
  EXPECT_EQ(again.collisions, 0);
  EXPECT_EQ(client.all(kControllerRevision).size(), 1u);
}

TEST_F(KeepHistory, a_name_that_another_template_has_is_a_collision) {
  start();
  json::value taken = new_revision(*set_with_image("a"), "h", 1, 0);
  make(taken, "data") = json::object{{"spec", {{"template", {{"other", true}}}}}};
  taken.get_object()["metadata"].get_object().erase("ownerReferences");
  taken.get_object()["metadata"].get_object().erase("labels");
  client.put(kControllerRevision, to_text(taken));
  History history = MUST(keep("a"));
  EXPECT_EQ(history.collisions, 1);
  EXPECT_EQ(history.revision->name(), get_string(new_revision(*set_with_image("a"), "h", 1, 1), "metadata.name"));
  EXPECT_EQ(MUST(keep("a", R"({"collisionCount":1})")).collisions, 1) << "it is found by its template";
}

TEST_F(KeepHistory, adopts_an_orphan_that_matches) {
  ObjectPtr set = client.put(kStatefulSet, to_text(set_with_image("a")->json()));
  json::value orphan = new_revision(*set_with_image("a"), "h", 4, 0);
  orphan.get_object()["metadata"].get_object().erase("ownerReferences");
  client.put(kControllerRevision, to_text(orphan));
  start();
  History history = MUST(keep_history_of(*set));
  EXPECT_EQ(number_of(*history.revision), 4);
  EXPECT_EQ(history.revision->controller()->uid, set->uid());
  EXPECT_EQ(client.all(kControllerRevision).size(), 1u);
}

}  // namespace
}  // namespace coracle::controller
