// SPDX-License-Identifier: Apache-2.0
// Object: what make() accepts, the metadata accessors, and the parsed form, which is created once.
#include "store/object/object.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace coracle {
namespace {

constexpr const char* kWeb = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default",
  "uid":"u1","resourceVersion":"7","labels":{"app":"web","a.b/c":"d"},"annotations":{"note":"x"},
  "ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"1"},
                     {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"2","controller":true}]},"spec":{}})";

Result<ObjectPtr> made(const char* text, const Kind& kind = kPod) { return Object::make(kind, *parse_json(text)); }

std::string text_of(const RestingPtr& object) {
  std::string buffer;
  return std::string(object->text(buffer));
}

TEST(Object, reads_metadata) {
  ObjectPtr pod = MUST(made(kWeb));
  EXPECT_EQ(pod->key(), (Key{"default", "web"}));
  EXPECT_EQ(pod->uid(), "u1");
  EXPECT_EQ(pod->revision(), 7u);
  EXPECT_EQ(pod->kind(), kPod);
  EXPECT_EQ(pod->label("app"), "web");
  EXPECT_EQ(pod->label("a.b/c"), "d");
  EXPECT_EQ(pod->label("none"), "");
  EXPECT_EQ(pod->annotation("note"), "x");
  EXPECT_FALSE(pod->deleting());
  ASSERT_EQ(pod->owners().size(), 2u);
  EXPECT_EQ(pod->controller()->name, "rs");
}

TEST(Object, its_text_is_the_body_in_its_order) {
  ObjectPtr pod = MUST(made(kWeb));
  EXPECT_EQ(pod->text(), to_text(*parse_json(kWeb)));
  EXPECT_EQ(pod->json(), *parse_json(kWeb));
  EXPECT_EQ(&pod->json(), &pod->json());
}

TEST(Object, refuses_malformed_metadata_by_field) {
  struct Row {
    const char* text;
    const char* field;
  };
  for (const Row& row : {
           Row{R"([])", "Pod"},
           Row{R"({})", "metadata"},
           Row{R"({"metadata":[]})", "metadata"},
           Row{R"({"metadata":{}})", "metadata.name"},
           Row{R"({"metadata":{"name":1}})", "metadata.name"},
           Row{R"({"metadata":{"name":"a"}})", "metadata.namespace"},
           Row{R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"x"}})", "metadata.resourceVersion"},
           Row{R"({"metadata":{"name":"a","namespace":"b","labels":{"k":1}}})", "metadata.labels.k"},
           Row{R"({"metadata":{"name":"a","namespace":"b","annotations":[]}})", "metadata.annotations"},
           Row{R"({"metadata":{"name":"a","namespace":"b","finalizers":[1]}})", "metadata.finalizers[0]"},
           Row{R"({"metadata":{"name":"a","namespace":"b","ownerReferences":{}}})", "metadata.ownerReferences"},
       }) {
    auto failed = made(row.text);
    ASSERT_FALSE(failed) << row.text;
    EXPECT_EQ(failed.error().code(), Code::invalid);
    EXPECT_EQ(failed.error().details()->causes.at(0).field, row.field) << row.text;
  }
  EXPECT_FALSE(made(R"({"metadata":{"name":"a","namespace":"b"}})", kNode));
}

TEST(Object, at_rest_from_text_refuses_damage) {
  for (const char* text : {"", "[]", "{", "{} x", "nonsense"})
    EXPECT_EQ(RestingObject::from_text(kPod, {"a", "b"}, 1, "u", text).error().code(), Code::internal) << text;
  RestingPtr node = MUST(RestingObject::from_text(kNode, {"", "n"}, 3, "u", R"({"metadata":{"name":"n"}})"));
  EXPECT_EQ(node->revision(), 3u);
  EXPECT_EQ(node->key(), KeyView("", "n"));
  EXPECT_EQ(node->uid(), "u");
  EXPECT_EQ(get_string(node->awake()->json(), "metadata.name"), "n");
}

TEST(Object, takes_another_revision_without_being_parsed) {
  ObjectPtr pod = MUST(made(kWeb));
  ObjectPtr later = pod->with_revision(12345);
  EXPECT_EQ(later->revision(), 12345u);
  EXPECT_EQ(get_string(later->json(), "metadata.resourceVersion"), "12345");
  EXPECT_EQ(later->with_revision(7)->text(), pod->text());
  EXPECT_TRUE(pod->same_as(*later));
  ObjectPtr loaded = MUST(RestingObject::from_text(kPod, pod->key(), 12345, "u1", later->text()))->awake();
  EXPECT_TRUE(pod->same_as(*loaded));
  EXPECT_EQ(loaded->with_revision(7)->text(), pod->text());
  EXPECT_EQ(text_of(loaded->at_rest()), loaded->text());
  json::value other = pod->json();
  make(other, "metadata.uid") = "u2";
  EXPECT_FALSE(MUST(Object::make(kPod, other))->same_as(*loaded));
}

TEST(Object, takes_over_what_it_was_made_from) {
  json::monotonic_resource not_to_be_shared;
  for (json::storage_ptr storage : {json::storage_ptr(), body_memory(kWeb), json::storage_ptr(&not_to_be_shared)}) {
    json::value body = MUST(parse_json(kWeb, nullptr, storage));
    ObjectPtr pod = MUST(Object::make(kPod, body));
    ObjectPtr later = pod->with_revision(7654321, std::move(body));
    EXPECT_EQ(to_text(later->json()), later->text());
    EXPECT_EQ(get_string(later->json(), "metadata.resourceVersion"), "7654321");
    EXPECT_EQ(get_string(pod->json(), "metadata.resourceVersion"),
              get_string(MUST(parse_json(kWeb)), "metadata.resourceVersion"));
  }
}

TEST(Object, a_copy_to_change_needs_the_object_no_more) {
  ObjectPtr pod = MUST(made(kWeb));
  json::value copy = changeable_copy(*pod);
  EXPECT_EQ(to_text(copy), pod->text());
  EXPECT_NE(copy.storage().get(), pod->json().storage().get());
  pod.reset();
  make(copy, "metadata.annotations.some") = std::string(100'000, 'x');  // more than its memory begins with
  EXPECT_EQ(get_string(copy, "metadata.annotations.some").size(), 100'000u);
  ObjectPtr next = MUST(Object::make(kPod, copy))->with_revision(8, std::move(copy));
  EXPECT_EQ(to_text(next->json()), next->text());
}

TEST(Object, what_it_took_over_is_copied_by_many_at_once) {
  json::value body = MUST(parse_json(kWeb, nullptr, body_memory(kWeb)));
  ObjectPtr pod = MUST(Object::make(kPod, body))->with_revision(2, std::move(body));
  std::vector<std::thread> all;
  for (int i = 0; i < 4; i++)
    all.emplace_back([&] {
      for (int n = 0; n < 200; n++) {
        json::value copy = pod->json();
        make(copy, "metadata.annotations.some") = std::string(100, 'x');
        ASSERT_EQ(get_string(copy, "metadata.annotations.some").size(), 100u);
      }
    });
  for (std::thread& each : all) each.join();
  EXPECT_EQ(to_text(pod->json()), pod->text());
}

TEST(Object, at_rest_is_the_same_and_awake_is_one_for_all) {
  ObjectPtr pod = MUST(made(kWeb));
  RestingPtr resting = pod->at_rest();
  EXPECT_EQ(text_of(resting), pod->text());
  EXPECT_EQ(resting->text_size(), pod->text().size());
  EXPECT_EQ(resting->kind(), pod->kind());
  EXPECT_EQ(resting->key(), pod->key());
  EXPECT_EQ(resting->uid(), pod->uid());
  EXPECT_EQ(resting->revision(), pod->revision());
  EXPECT_TRUE(resting->mentions("ReplicaSet"));
  EXPECT_FALSE(resting->mentions("Replica"));
  EXPECT_EQ(resting->awake(), pod);  // another holder gets the same parsed form
  EXPECT_EQ(&resting->awake()->json(), &pod->json());
}

TEST(Object, mentions_what_is_in_quotes_as_a_whole) {
  ObjectPtr object = MUST(made(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"d","annotations":{
    "a":"owner owners, a \"guest\" and myowner","owner":"owners","d":"x\"y","e":"gr\u00fcn"}}})"));
  for (const char* word : {"owner", "owners", "x\"y", "grün", "metadata"}) EXPECT_TRUE(object->mentions(word)) << word;
  for (const char* word : {"own", "myowner", "guest", "x", "grü", "absent"}) EXPECT_FALSE(object->mentions(word)) << word;
}

TEST(Object, many_wake_one_and_let_go_of_it) {
  RestingPtr resting = MUST(made(kWeb))->at_rest();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 20000; ++n) EXPECT_EQ(resting->awake()->name(), "web");
    });
}

TEST(Object, what_was_parsed_goes_when_nobody_looks_and_much_else_was_parsed) {
  RestingPtr resting = MUST(made(kWeb))->at_rest();
  ObjectPtr looked = resting->awake();
  std::weak_ptr<const Object> seen = looked;
  EXPECT_EQ(get_string(looked->json(), "metadata.name"), "web");
  looked.reset();
  EXPECT_FALSE(seen.expired());  // a second access soon after does not parse again
  ObjectPtr held = resting->awake();
  size_t parsed = 0;
  for (int i = 0; parsed < kKeptParsedBytes; ++i) {
    RestingPtr other = MUST(made(kWeb))->at_rest();
    parsed += other->text_size();
    (void)other->awake()->json();
  }
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(get_string(held->json(), "metadata.name"), "web");
  held.reset();
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(get_string(resting->awake()->json(), "metadata.name"), "web");
}

// However many read them, each is parsed once, and they do not drive out the others.
TEST(Object, two_large_objects_are_kept_beside_the_others) {
  const std::string large =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"d","uid":"u","resourceVersion":"1"},"data":{"k":")" +
      std::string(kKeptParsedBytes / 2, 'x') + "\"}}";
  RestingPtr small = MUST(made(kWeb))->at_rest();
  auto look = [](const RestingPtr& resting) {
    ObjectPtr looked = resting->awake();
    (void)looked->json();
    return std::weak_ptr<const Object>(looked);
  };
  forget_parsed();
  std::weak_ptr<const Object> seen_small = look(small);
  auto make_large = [&] { return MUST(made(large.c_str(), kConfigMap))->at_rest(); };
  RestingPtr first = make_large(), second = make_large(), third = make_large();
  std::weak_ptr<const Object> seen_first = look(first), seen_second = look(second);
  EXPECT_FALSE(seen_first.expired());
  EXPECT_FALSE(seen_second.expired());
  EXPECT_FALSE(seen_small.expired());
  std::weak_ptr<const Object> seen_third = look(third);
  EXPECT_TRUE(seen_first.expired()) << "only the last two";
  EXPECT_FALSE(seen_second.expired());
  EXPECT_FALSE(seen_third.expired());
  EXPECT_FALSE(seen_small.expired());
  {
    json::value body = changeable_copy(*second->awake());
    ObjectPtr prepared = MUST(Object::make(kConfigMap, body)), awake = second->awake();
    std::weak_ptr<const Object> changed = prepared->with_revision(2, std::move(body), awake.get());
    awake.reset();
    EXPECT_TRUE(seen_second.expired());
    EXPECT_FALSE(changed.expired()) << "the next state takes its place";
    EXPECT_FALSE(seen_third.expired());
  }
  forget_parsed();
  EXPECT_TRUE(seen_third.expired());
}

TEST(Object, what_was_parsed_is_forgotten_when_told_but_what_is_held) {
  RestingPtr resting = MUST(made(kWeb))->at_rest(), other = MUST(made(kWeb))->at_rest();
  ObjectPtr held = other->awake();
  std::weak_ptr<const Object> seen;
  {
    ObjectPtr looked = resting->awake();
    seen = looked;
    EXPECT_EQ(get_string(looked->json(), "metadata.name"), "web");
    EXPECT_EQ(get_string(held->json(), "metadata.name"), "web");
  }
  EXPECT_FALSE(seen.expired());
  forget_parsed();
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(other->awake(), held);
  EXPECT_EQ(get_string(held->json(), "metadata.name"), "web");
  EXPECT_EQ(get_string(resting->awake()->json(), "metadata.name"), "web");
}

// So that each change of an object does not parse what the one before it has written.
TEST(Object, what_is_written_is_kept_parsed_instead_of_what_it_replaces) {
  const RestingPtr resting = MUST(made(kWeb))->at_rest();
  auto change = [&](const ObjectPtr& before, Revision revision) {
    json::value body = changeable_copy(*before);
    make(body, "metadata.labels.revision") = std::to_string(revision);
    ObjectPtr prepared = MUST(Object::make(kPod, body));
    return prepared->with_revision(revision, std::move(body), before.get());
  };
  forget_parsed();
  ObjectPtr first = resting->awake(), second = change(first, 2);
  ObjectPtr third = change(second, 3);
  const RestingPtr last = third->at_rest();
  std::weak_ptr<const Object> seen_first = first, seen_second = second, seen_third = third;
  first.reset(), second.reset();
  EXPECT_TRUE(seen_first.expired());
  EXPECT_TRUE(seen_second.expired());
  third.reset();
  ASSERT_FALSE(seen_third.expired());
  EXPECT_EQ(last->awake()->label("revision"), "3");
  EXPECT_EQ(to_text(last->awake()->json()), last->awake()->text());
  for (size_t parsed = 0; parsed < kKeptParsedBytes;) {  // it is dropped like what was parsed
    RestingPtr other = MUST(made(kWeb))->at_rest();
    parsed += other->text_size();
    (void)other->awake()->json();
  }
  EXPECT_TRUE(seen_third.expired());

  ObjectPtr unread = MUST(made(kWeb));
  json::value body = MUST(parse_json(kWeb, nullptr, body_memory(kWeb)));
  ObjectPtr later = MUST(Object::make(kPod, body))->with_revision(9, std::move(body), unread.get());
  const RestingPtr rests = later->at_rest();
  std::weak_ptr<const Object> seen_later = later;
  later.reset();
  EXPECT_TRUE(seen_later.expired()) << "what it replaces is not kept";
}

// The blocks for a component's body are small: what does not fit in them counts too.
TEST(Object, what_is_kept_parsed_counts_with_what_is_on_the_heap) {
  constexpr size_t kLarge = 200 << 10;
  forget_parsed();
  std::vector<std::weak_ptr<const Object>> seen;
  for (size_t written = 0; written < 2 * kKeptParsedBytes; written += kLarge) {
    const RestingPtr resting = MUST(made(kWeb))->at_rest();
    const ObjectPtr before = resting->awake();
    json::value body(before->json(), body_memory({}));
    make(body, "metadata.annotations.large") = std::string(kLarge, 'x');
    ObjectPtr prepared = MUST(Object::make(kPod, body));
    seen.push_back(prepared->with_revision(2, std::move(body), before.get()));
  }
  const auto kept = std::ranges::count_if(seen, [](const auto& object) { return !object.expired(); });
  EXPECT_GT(kept, 0);
  EXPECT_LE(size_t(kept) * kLarge, kKeptParsedBytes);
  forget_parsed();
}

TEST(Object, all_who_keep_it_keep_one) {
  ObjectPtr object = MUST(made(kWeb));
  RestingPtr resting = object->at_rest();
  EXPECT_EQ(object->at_rest(), resting);
  EXPECT_EQ(resting->awake()->at_rest(), resting);
  object.reset();
  EXPECT_EQ(resting->awake()->at_rest(), resting);
}

TEST(Object, what_nobody_keeps_is_not_kept_parsed) {
  std::weak_ptr<const Object> seen;
  {
    ObjectPtr object = MUST(made(kWeb));
    EXPECT_EQ(get_string(object->json(), "metadata.name"), "web");
    seen = object;
  }
  EXPECT_TRUE(seen.expired());
}

TEST(Object, many_threads_wake_one) {
  RestingPtr resting = MUST(made(kWeb))->at_rest();
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 2000; ++j) right += get_string(resting->awake()->json(), "metadata.name") == "web";
    });
  threads.clear();
  EXPECT_EQ(right, 8000);
}

constexpr const char* kStarted = R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"web.1","namespace":"default","uid":"u1",
  "resourceVersion":"7"},"involvedObject":{"kind":"Pod","namespace":"default","name":"web"},"reason":"Started",
  "message":"Started container web","source":{"component":"kubelet","host":"edge"},"count":1,"type":"Normal"})";

TEST(Object, an_event_is_the_same_when_it_has_rested) {
  ObjectPtr event = MUST(made(kStarted, kEvent))->with_revision(1234567);
  RestingPtr resting = event->at_rest();
  EXPECT_EQ(resting->awake(), event);
  std::string buffer;
  EXPECT_EQ(resting->text(buffer), event->text());
  EXPECT_FALSE(buffer.empty()) << "it is packed";
  EXPECT_EQ(resting->text_size(), event->text().size());
  EXPECT_TRUE(resting->mentions("Started"));
  EXPECT_FALSE(resting->mentions("Killing"));
  std::string text(event->text());
  event.reset();
  ObjectPtr again = resting->awake();
  EXPECT_EQ(again->text(), text);
  EXPECT_TRUE(again->mentions("kubelet"));
  EXPECT_EQ(get_string(again->json(), "metadata.resourceVersion"), "1234567");
  EXPECT_EQ(again->with_revision(8)->text(), MUST(made(kStarted, kEvent))->with_revision(8)->text());
  EXPECT_TRUE(MUST(made(kStarted, kEvent))->same_as(*again));
  RestingPtr loaded = MUST(RestingObject::from_text(kEvent, again->key(), 1234567, "u1", text));
  EXPECT_EQ(loaded->awake()->text(), text);
}

TEST(Object, many_threads_wake_an_event) {
  RestingPtr resting = MUST(made(kStarted, kEvent))->with_revision(7)->at_rest();
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) right += get_string(resting->awake()->json(), "metadata.name") == "web.1";
    });
  threads.clear();
  EXPECT_EQ(right, 4000);
}

TEST(Object, refuses_what_could_not_be_read_again) {
  json::value body = *parse_json(kWeb);
  json::value* at = &make(body, "spec.deep");
  for (int i = 0; i < 200; i++) at = &at->emplace_object()["x"];
  EXPECT_EQ(Object::make(kPod, body).error().code(), Code::invalid);
  make(body, "spec.deep") = "\xff\xfe";
  EXPECT_EQ(Object::make(kPod, body).error().code(), Code::invalid);
}

TEST(Object, is_parsed_by_many_at_once) {
  ObjectPtr pod = MUST(made(kWeb));
  std::vector<std::jthread> readers;
  for (int i = 0; i < 4; i++) readers.emplace_back([&] { EXPECT_EQ(pod->label("app"), "web"); });
}

TEST(Object, many_threads_may_copy_what_it_holds) {
  json::value body = *parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"}})");
  json::array list;
  for (int i = 0; i < 200; ++i) list.push_back(json::object{{"name", "n" + std::to_string(i)}, {"value", std::string(50, 'x')}});
  make(body, "spec.list") = list;
  ObjectPtr object = *Object::make(kPod, std::move(body));
  std::string want = to_text(object->json());
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        json::value copy(object->json());
        make(copy, "metadata.labels.a") = "changed";
        copy.as_object().at("metadata").as_object().erase("labels");
        if (to_text(copy) != want) ++wrong;
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace coracle
