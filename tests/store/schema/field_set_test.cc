// SPDX-License-Identifier: Apache-2.0
// Field sets: their difference, what changed and what was removed, and where they lie.
#include "store/schema/field_set.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>

#include "store/schema/catalog.h"
#include "tests/counted_memory.h"

namespace coracle::schema {
namespace {

json::object set_of(const char* text) { return MUST(parse_json(text)).get_object(); }

TEST(FieldSet, differences_leave_what_only_the_first_one_has) {
  struct Row {
    const char *name, *from, *what, *left;
  };
  for (const Row& row : {
           Row{"nothing", R"({"f:a":{}})", "{}", R"({"f:a":{}})"},
           Row{"a field of several, whose order stays", R"({"f:c":{},"f:a":{},"f:b":{}})", R"({"f:a":{}})",
               R"({"f:c":{},"f:b":{}})"},
           Row{"a field inside", R"({"f:a":{"f:b":{},"f:c":{}}})", R"({"f:a":{"f:b":{}}})", R"({"f:a":{"f:c":{}}})"},
           Row{"the last field inside", R"({"f:a":{"f:b":{}},"f:d":{}})", R"({"f:a":{"f:b":{}}})", R"({"f:d":{}})"},
           Row{"fields inside one that is a leaf here", R"({"f:a":{}})", R"({"f:a":{"f:b":{}}})", R"({"f:a":{}})"},
           Row{"one that is itself a member and has some", R"({"f:a":{}})", R"({"f:a":{".":{},"f:b":{}}})", "{}"},
           Row{"one that is only itself a member", R"({"f:a":{".":{},"f:b":{}}})", R"({"f:a":{}})", R"({"f:a":{"f:b":{}}})"},
           Row{"itself, but not what is inside", R"({"f:a":{".":{},"f:b":{}}})", R"({"f:a":{".":{}}})", R"({"f:a":{"f:b":{}}})"},
           Row{"an item", R"({"f:l":{"k:{\"n\":1}":{".":{}},"k:{\"n\":2}":{".":{}}}})", R"({"f:l":{"k:{\"n\":1}":{".":{}}}})",
               R"({"f:l":{"k:{\"n\":2}":{".":{}}}})"},
           Row{"what is no set", R"({"f:a":1,"f:b":null,"f:c":{}})", R"({"f:a":{},"f:b":{}})", R"({"f:c":{}})"},
           Row{"everything", R"({"f:a":{"f:b":{}},"f:c":{}})", R"({"f:a":{"f:b":{}},"f:c":{}})", "{}"},
       }) {
    json::object from = set_of(row.from);
    EXPECT_EQ(to_text(difference_of(from, set_of(row.what))), row.left) << row.name;
    EXPECT_EQ(to_text(from), row.from) << row.name;
    subtract(from, set_of(row.what));
    EXPECT_EQ(to_text(from), row.left) << row.name;
  }
}

// The old state is an object of the store: whatever is taken of its memory stays for as long as that object.
TEST(FieldSet, states_are_compared_without_copies) {
  constexpr const char* kBefore = R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"name":"p","labels":{"a":"1","b":"2"},"finalizers":["a/b","c/d"]},
    "spec":{"nodeName":"a name of more than a few characters","containers":[
      {"name":"a","image":"1","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}],"ports":[{"containerPort":80}]},
      {"name":"b","image":"2"}]},
    "status":{"message":"m","conditions":[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}]}})";
  constexpr const char* kNow = R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"labels":{"b":"2"},"name":"p","finalizers":["c/d","e/f"]},
    "spec":{"nodeName":"a name of more than a few characters","containers":[
      {"image":"2","name":"b"},
      {"name":"a","image":"3","env":[{"name":"Y","value":"2"}],"ports":[{"containerPort":80,"protocol":"TCP"}]}]},
    "status":{"conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"False"}]}})";
  CountedMemory of_before, of_now;
  const json::value before = MUST(parse_json(kBefore, nullptr, &of_before)), now = MUST(parse_json(kNow, nullptr, &of_now));
  const Place root = Place::of(catalog().of(kPod).type());
  const size_t taken = of_before.taken();
  json::object changed = changed_fields(root, before, now), removed = removed_fields(root, before, now);
  EXPECT_EQ(to_text(changed), R"({"f:metadata":{"f:finalizers":{"v:\"e/f\"":{}}},)"
                              R"("f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:image":{},)"
                              R"("f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{"f:protocol":{}}}}}},)"
                              R"("f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}})");
  EXPECT_EQ(
      to_text(removed),
      R"({"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}},"f:labels":{"f:a":{}}},)"
      R"("f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:env":{"k:{\"name\":\"X\"}":{".":{},"f:name":{},"f:value":{}}}}}},)"
      R"("f:status":{"f:message":{}}})");
  EXPECT_EQ(of_before.taken(), taken);
  EXPECT_EQ(changed.storage().get(), now.storage().get());
  EXPECT_EQ(removed.storage().get(), now.storage().get());

  const size_t taken_now = of_now.taken();
  EXPECT_TRUE(changed_fields(root, now, now).empty());
  EXPECT_TRUE(removed_fields(root, now, now).empty());
  EXPECT_EQ(of_now.taken(), taken_now);
}

// Objects may be nested as deeply as JSON is read, and a thread's stack may be one of 2 MiB.
TEST(FieldSet, deep_states_are_compared_on_a_small_stack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t kStackBytes = 8 << 20;  // their stack frames are larger
#else
  constexpr size_t kStackBytes = 1 << 20;
#endif
  auto schema_of = [](std::string part) {
    for (size_t i = 0; i + 1 < kJsonDepthMax / 2; ++i) part = R"({"properties":{"a":)" + part + "}}";
    return MUST(parse_json(part));
  };
  struct Work {
    Place root;
    json::value before, now;
    json::object changed, removed;
  };
  auto its = std::ranges::find_if(all_types(), [](const Type& type) { return type.name() == "JSONSchemaProps"; });
  ASSERT_NE(its, all_types().end());
  Work work{Place::of(*its), schema_of(R"({"type":"string","format":"byte"})"), schema_of(R"({"type":"object"})"), {}, {}};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  auto run = [](void* given) -> void* {
    Work& work = *static_cast<Work*>(given);
    work.changed = changed_fields(work.root, work.before, work.now);
    work.removed = removed_fields(work.root, work.before, work.now);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(to_text(work.changed).starts_with(R"({"f:properties":{"f:a":{"f:properties":)"));
  EXPECT_NE(to_text(work.changed).find(R"({"f:type":{}})"), std::string::npos);
  EXPECT_NE(to_text(work.removed).find(R"({"f:format":{}})"), std::string::npos);
}

// Source: structured-merge-diff, typed/compare.go.
TEST(FieldSet, a_repeated_item_is_one_leaf) {
  const Place root = Place::of(catalog().of(kPod).type());
  auto pod = [](std::string_view env) {
    json::value made = json::object();
    make(made, "spec.containers") = json::array{json::object{{"name", "c"}, {"env", MUST(parse_json(env))}}};
    return made;
  };
  auto with_item = [](const std::string& set) {
    return R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:env":{"k:{\"name\":\"X\"}":)" + set + "}}}}}";
  };
  const json::value twice = pod(R"([{"name":"X","value":"1"},{"name":"X","value":"2"}])"),
                    once = pod(R"([{"name":"X","value":"2"}])");
  EXPECT_EQ(to_text(changed_fields(root, twice, twice)), "{}");
  EXPECT_EQ(to_text(changed_fields(root, twice, pod(R"([{"name":"X","value":"1"},{"name":"X","value":"3"}])"))), with_item("{}"));
  EXPECT_EQ(to_text(changed_fields(root, once, twice)), with_item("{}"));
  EXPECT_EQ(to_text(changed_fields(root, twice, once)), with_item(R"({".":{},"f:name":{},"f:value":{}})"))
      << "what is one item now is new";
}

}  // namespace
}  // namespace coracle::schema
