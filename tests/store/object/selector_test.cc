// SPDX-License-Identifier: Apache-2.0
// Label and field selectors.
#include "store/object/selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/base/text.h"

namespace coracle {
namespace {

bool matches(const char* selector, const char* labels) {
  auto parsed = LabelSelector::parse(selector);
  EXPECT_TRUE(parsed) << selector << ": " << (parsed ? "" : parsed.error().text());
  return parsed && parsed->matches(parse_json(labels)->get_object());
}

TEST(Labels, have_values_that_are_text) {
  json::value labels = *parse_json(R"({"a":"b","empty":"","number":1})");
  EXPECT_EQ(label_value(labels.get_object(), "a"), "b");
  EXPECT_EQ(label_value(labels.get_object(), "empty"), "");
  EXPECT_EQ(label_value(labels.get_object(), "number"), std::nullopt);
  EXPECT_EQ(label_value(labels.get_object(), "c"), std::nullopt);
}

TEST(LabelSelector, matches_as_kubernetes_says) {
  struct Row {
    const char *selector, *labels;
    bool want;
  };
  for (const Row& row : {
           Row{"", R"({})", true},
           Row{"a=b", R"({"a":"b"})", true},
           Row{"a==b", R"({"a":"b"})", true},
           Row{"a = b , c", R"({"a":"b","c":""})", true},
           Row{"a=", R"({"a":""})", true},
           Row{"a=b", R"({})", false},
           Row{"a!=b", R"({})", true},
           Row{"a!=b", R"({"a":"b"})", false},
           Row{"a in (b,c)", R"({"a":"c"})", true},
           Row{"a in (b, c)", R"({})", false},
           Row{"a in ()", R"({"a":""})", true},
           Row{"a notin (b,c)", R"({})", true},
           Row{"a notin(b,c)", R"({"a":"b"})", false},
           Row{"in in (in)", R"({"in":"in"})", true},
           Row{"a", R"({"a":"x"})", true},
           Row{"!a", R"({"a":"x"})", false},
           Row{"! a", R"({})", true},
           Row{"n>3", R"({"n":"4"})", true},
           Row{"n>3", R"({"n":"x"})", false},
           Row{"n<3", R"({"n":"-4"})", true},
           Row{"n<3", R"({})", false},
           Row{"example.com/x=y,z", R"({"example.com/x":"y","z":"1"})", true},
       })
    EXPECT_EQ(matches(row.selector, row.labels), row.want) << row.selector << " on " << row.labels;
}

TEST(LabelSelector, refuses_what_it_does_not_understand) {
  for (const char* text : {"=", "a=b,", ",a", "a b", "a in b", "a in (b", "a in (b))", "a=b=c", "a>x", "a in", "!a=b", "-a=b",
                           "a=-b", "UP.com/x/y=z", "a=b c", "(a)", "a!b"}) {
    auto failed = LabelSelector::parse(text);
    EXPECT_FALSE(failed) << text;
    if (!failed) {
      EXPECT_EQ(failed.error().code(), Code::bad_request) << text;
    }
  }
  EXPECT_EQ(LabelSelector::parse(std::string(kSelectorBytesMax + 1, 'a')).error().code(), Code::too_large);
}

TEST(LabelSelector, of_many_terms_says_what_each_says) {
  const std::vector<std::string> terms{"a",   "!b",  "a=1",        "a!=2", "a in (1,2,3)", "b notin (1,2)", "n>3",
                                       "n<9", "n>5", "a in (1,3)", "c",    "c=x"};
  std::mt19937 random(7);
  auto any = [&](size_t below) { return size_t(random() % below); };
  int matched = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> chosen;
    for (size_t kinds = 1 + any(3); kinds > 0; --kinds) {
      std::string one = terms[any(terms.size())];
      for (int i = 0; i < 9; ++i) chosen.push_back(one);
      chosen.push_back("!z" + std::to_string(any(100)));
    }
    std::ranges::shuffle(chosen, random);
    json::object labels;
    for (const char* key : {"a", "b", "c", "n"})
      if (any(3) > 0) labels[key] = *key == 'n' ? std::to_string(any(12)) : *key == 'c' ? "x" : std::to_string(1 + any(3));
    bool each = std::ranges::all_of(chosen, [&](const auto& one) { return LabelSelector::parse(one)->matches(labels); });
    LabelSelector all = MUST(LabelSelector::parse(join(chosen, ",")));
    ASSERT_EQ(all.matches(labels), each) << all.text() << " on " << to_text(labels);
    LabelSelector again = MUST(LabelSelector::parse(all.text()));
    ASSERT_EQ(again.matches(labels), each) << all.text() << " on " << to_text(labels);
    ASSERT_EQ(again.text(), all.text());
    matched += each ? 1 : 0;
  }
  EXPECT_GT(matched, 200);
  EXPECT_LT(matched, 1800);
}

// kubectl's "app in (…)" with two thousand names, a controller's "notin" with as many: Kubernetes only limits the request's head.
TEST(LabelSelector, takes_as_many_values_and_terms_as_a_request_holds) {
  std::string values, terms;
  for (int i = 100'000; i < 180'000; ++i)
    values += (values.empty() ? "" : ",") + std::to_string(i), terms += ",a!=" + std::to_string(i);
  LabelSelector listed = MUST(LabelSelector::parse("a in (" + values + ")"));
  LabelSelector other = MUST(LabelSelector::parse("b" + terms));
  const json::object inside{{"a", "179999"}, {"b", ""}}, outside{{"a", "180000"}, {"b", ""}};
  EXPECT_TRUE(listed.matches(inside));
  EXPECT_FALSE(listed.matches(outside));
  EXPECT_FALSE(other.matches(inside));
  EXPECT_TRUE(other.matches(outside));
}

TEST(LabelSelector, of_many_terms_holds_them_once) {
  std::string text = "z=1,z=2";
  for (int i = 0; i < 20; ++i) text += ",a!=" + std::to_string(i % 10);
  LabelSelector contradicts = MUST(LabelSelector::parse(text));
  EXPECT_EQ(contradicts.text(), "z,!z") << "nothing has both values";
  EXPECT_FALSE(contradicts.empty());
  EXPECT_FALSE(contradicts.matches(json::object{{"z", "1"}}));
  EXPECT_FALSE(contradicts.matches(json::object()));
  EXPECT_EQ(MUST(LabelSelector::parse(text.substr(text.find("a!=")))).text(), "a notin (0,1,2,3,4,5,6,7,8,9)");
}

TEST(LabelSelector, reads_the_object_form) {
  json::value selector = *parse_json(R"({"matchLabels":{"app":"web"},"matchExpressions":[
      {"key":"tier","operator":"NotIn","values":["db"]},{"key":"old","operator":"DoesNotExist"}]})");
  LabelSelector parsed = MUST(LabelSelector::from_json(&selector));
  EXPECT_TRUE(parsed.matches(parse_json(R"({"app":"web"})")->get_object()));
  EXPECT_FALSE(parsed.matches(parse_json(R"({"app":"web","tier":"db"})")->get_object()));
  EXPECT_EQ(parsed.text(), "app=web,!old,tier!=db");
  json::value empty = json::object();
  EXPECT_TRUE(LabelSelector::from_json(&empty)->empty());
  EXPECT_FALSE(LabelSelector::from_json(nullptr)->matches(json::object()));
  for (const char* bad : {R"({"matchLabels":{"a":1}})", R"({"matchExpressions":[{"key":"a","operator":"Is"}]})",
                          R"({"matchExpressions":[{"key":"a","operator":"In"}]})", R"({"matchLabels":{"a":"b c"}})",
                          R"({"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]})"}) {
    json::value value = *parse_json(bad);
    EXPECT_EQ(LabelSelector::from_json(&value).error().code(), Code::invalid) << bad;
  }
}

TEST(LabelSelector, text_form_reads_back) {
  for (const char* text : {"a=b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "a>1", "a<1", "a=b,c"})
    EXPECT_EQ(LabelSelector::parse(text)->text(), text);
  EXPECT_EQ(LabelSelector::from_map(parse_json(R"({"x":"y","a":"b"})")->get_object()).text(), "a=b,x=y");
}

TEST(FieldSelector, matches_through_the_lookup) {
  auto lookup = [](std::string_view field) { return field == "metadata.name" ? std::string("web") : std::string(); };
  struct Row {
    const char* selector;
    bool want;
  };
  for (const Row& row : {Row{"", true}, Row{"metadata.name=web", true}, Row{"metadata.name==web", true},
                         Row{"metadata.name!=web", false}, Row{"spec.nodeName=", true}, Row{"spec.nodeName!=", false},
                         Row{"metadata.name=web,spec.nodeName=n", false}, Row{"metadata.name=web,metadata.name=web", true},
                         Row{"metadata.name=web,metadata.name=db", false}, Row{"metadata.name!=db,metadata.name!=x", true},
                         Row{"metadata.name!=db,metadata.name!=web", false}, Row{"metadata.name=web,metadata.name!=web", false}})
    EXPECT_EQ(FieldSelector::parse(row.selector)->matches(lookup), row.want) << row.selector;
  FieldSelector escaped = MUST(FieldSelector::parse(R"(a=b\,c\=d\\)"));
  EXPECT_EQ(escaped.required("a"), R"(b,c=d\)");
  EXPECT_EQ(escaped.required("b"), std::nullopt);
  for (const char* bad : {"a", "=b", "a=b=c", "a=\\x", "a=\\", "a,b=c"})
    EXPECT_EQ(FieldSelector::parse(bad).error().code(), Code::bad_request) << bad;
}

TEST(FieldSelector, asks_for_each_field_once) {
  std::string text;
  for (int i = 0; i < 400; i++)
    text += "metadata.name!=n" + std::to_string(i) + ",spec.nodeName!=m" + std::to_string(i % 90) + ",";
  text.pop_back();
  text = text.substr(0, text.rfind(',', 20'000));
  size_t asked = 0;
  EXPECT_TRUE(MUST(FieldSelector::parse(text)).matches([&](std::string_view) { return asked++, std::string("x"); }));
  EXPECT_EQ(asked, 2u);
}

}  // namespace
}  // namespace coracle
