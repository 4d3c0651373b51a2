// SPDX-License-Identifier: Apache-2.0
// Which owners select an object: the same ones as by trying all, and few are tried.
#include "store/object/selector_index.h"

#include <gtest/gtest.h>

#include <random>

#include "store/object/object.h"

namespace coracle {
namespace {

ObjectPtr selecting(const std::string& name, const std::string& selector, int revision = 1, const std::string& ns = "d") {
  return MUST(Object::make(kService, MUST(parse_json(R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":")" + ns +
                                                     R"(","name":")" + name + R"(","uid":")" + name + R"(","resourceVersion":")" +
                                                     std::to_string(revision) + R"("},"spec":{"selector":)" + selector + "}}"))));
}

ObjectPtr labelled(const std::string& labels, const std::string& ns = "d") {
  return MUST(
      Object::make(kPod, MUST(parse_json(R"({"metadata":{"namespace":")" + ns + R"(","name":"p","labels":)" + labels + "}}"))));
}

std::vector<std::string> names_of(const std::vector<Key>& keys) {
  std::vector<std::string> out;
  for (const Key& key : keys) out.push_back(key.name);
  return out;
}

TEST(SelectorIndex, follows_what_owners_select) {
  using Names = std::vector<std::string>;
  SelectorIndex index(selector_of_service);
  index.put(*selecting("web", R"({"app":"web"})"));
  index.put(*selecting("front", R"({"app":"web","tier":"front"})"));
  index.put(*selecting("none", "{}"));
  index.put(*selecting("elsewhere", R"({"app":"web"})", 1, "e"));
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"web","tier":"front"})"))), (Names{"front", "web"}));
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"web"})"))), Names{"web"});
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"web"})", "e"))), Names{"elsewhere"});
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"tier":"front"})"))), Names{});
  EXPECT_EQ(names_of(index.matching(*labelled("{}"))), Names{});
  index.put(*selecting("web", R"({"app":"db"})", 2));
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"web"})"))), Names{});
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"db"})"))), Names{"web"});
  index.put(*selecting("web", "{}", 3));
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"db"})"))), Names{});
  index.put(*selecting("web", R"({"app":"db"})", 4));
  index.remove({"d", "web"});
  index.remove({"d", "never-there"});
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"db"})"))), Names{});
  EXPECT_EQ(names_of(index.matching(*labelled(R"({"app":"web","tier":"front"})"))), Names{"front"});
}

TEST(SelectorIndex, knows_selectors_of_every_form) {
  const std::map<std::string, std::string> selectors = {
      {"everything", "{}"},
      {"one", R"({"matchLabels":{"a":"1"}})"},
      {"in", R"({"matchExpressions":[{"key":"a","operator":"In","values":["1","2"]}]})"},
      {"exists", R"({"matchExpressions":[{"key":"b","operator":"Exists"}]})"},
      {"absent", R"({"matchExpressions":[{"key":"b","operator":"DoesNotExist"}]})"},
      {"both", R"({"matchLabels":{"a":"1"},"matchExpressions":[{"key":"b","operator":"NotIn","values":["x"]}]})"},
      {"contradiction", R"({"matchLabels":{"a":"1"},"matchExpressions":[{"key":"a","operator":"In","values":["2"]}]})"}};
  SelectorIndex index(selector_in_spec);
  for (const auto& [name, selector] : selectors) index.put(*selecting(name, selector));
  for (const char* labels :
       {"{}", R"({"a":"1"})", R"({"a":"2","b":"x"})", R"({"a":"1","b":"x"})", R"({"a":"1","b":"y","c":"z"})"}) {
    ObjectPtr object = labelled(labels);
    std::vector<std::string> want;
    for (const auto& [name, selector] : selectors) {
      json::value written = MUST(parse_json(selector));
      if (MUST(LabelSelector::from_json(&written)).matches(*object)) want.push_back(name);
    }
    EXPECT_EQ(names_of(index.matching(*object)), want) << labels;
  }
}

TEST(SelectorIndex, tries_few_of_thousands_even_if_they_have_a_label_in_common) {
  constexpr int kOwners = 5000;
  SelectorIndex index(selector_of_service);
  for (int i = 0; i < kOwners; ++i) {
    std::string name = "s" + std::to_string(i);
    index.put(*selecting(name, R"({"aa-common":"x","name":")" + name + R"(","zz-common":"x"})"));
  }
  ObjectPtr pod = labelled(R"({"aa-common":"x","name":"s4711","zz-common":"x","other":"y"})");
  EXPECT_EQ(names_of(index.matching(*pod)), std::vector<std::string>{"s4711"});
  EXPECT_LE(index.tried_for(*pod), 5u);
  for (int i = 0; i < kOwners; ++i) index.remove({"d", "s" + std::to_string(i)});
  EXPECT_EQ(index.tried_for(*pod), 0u);
}

TEST(SelectorIndex, finds_what_trying_all_finds) {
  std::mt19937 random(33);
  auto below = [&](unsigned count) { return random() % count; };
  auto some_labels = [&](unsigned count_max) {
    json::object out;
    for (unsigned i = below(count_max + 1); i > 0; --i)
      out[std::string(1, char('a' + below(4)))] = std::string(1, char('0' + below(3)));
    return to_text(out);
  };
  SelectorIndex index(selector_of_service);
  std::map<std::string, ObjectPtr> owners;
  for (int step = 1; step < 3000; ++step) {
    std::string name = "s" + std::to_string(below(60));
    if (below(4) == 0) {
      owners.erase(name), index.remove({"d", name});
    } else {
      owners[name] = selecting(name, some_labels(3), step);
      index.put(*owners[name]);
    }
    if (step % 10) continue;
    ObjectPtr pod = labelled(some_labels(4));
    std::vector<std::string> want;
    for (const auto& [each, owner] : owners)
      if (auto selector = selector_of_service(*owner); selector && selector->matches(*pod)) want.push_back(each);
    ASSERT_EQ(names_of(index.matching(*pod)), want) << step;
  }
}

}  // namespace
}  // namespace coracle
