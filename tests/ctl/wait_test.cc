// SPDX-License-Identifier: Apache-2.0
// The conditions of wait.
#include "ctl/wait.h"

#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

// "yes", "no" or the error.
std::string holds(const std::string& condition, std::string_view object) {
  auto parsed = Condition::parse(condition);
  if (!parsed) return parsed.error().text();
  json::value value = object.empty() ? json::value() : *parse_json(object);
  auto held = parsed->holds(object.empty() ? nullptr : &value);
  return !held ? held.error().text() : *held ? "yes" : "no";
}

TEST(Wait, for_there_being_or_not) {
  EXPECT_EQ(holds("delete", ""), "yes");
  EXPECT_EQ(holds("delete", "{}"), "no");
  EXPECT_EQ(holds("create", "{}"), "yes");
  EXPECT_EQ(holds("create", ""), "no");
  EXPECT_EQ(holds("bogus", "{}"), "unrecognized condition: \"bogus\"");
}

TEST(Wait, for_conditions_of_the_generation_that_there_is) {
  const char* ready =
      R"({"metadata":{"generation":2},"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}})";
  EXPECT_EQ(holds("condition=Ready", ready), "yes");
  EXPECT_EQ(holds("condition=ready=true", ready), "yes");
  EXPECT_EQ(holds("condition=Ready=False", ready), "no");
  EXPECT_EQ(holds("condition=Other", ready), "no");
  EXPECT_EQ(holds("condition=Ready", ""), "no");
  EXPECT_EQ(
      holds("condition=Ready",
            R"({"metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}})"),
      "no");
  EXPECT_EQ(
      holds(
          "condition=Ready",
          R"({"metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}})"),
      "yes");
}

TEST(Wait, for_what_stands_at_a_path) {
  const char* pod = R"({"status":{"phase":"Running","n":3,"list":[{"t":"a","v":"1"},{"t":"b","v":"2"}]}})";
  EXPECT_EQ(holds("jsonpath={.status.phase}=Running", pod), "yes");
  EXPECT_EQ(holds("jsonpath=.status.phase='Running'", pod), "yes");
  EXPECT_EQ(holds("jsonpath={.status.n}=3", pod), "yes");
  EXPECT_EQ(holds("jsonpath={.status.n}=4", pod), "no");
  EXPECT_EQ(holds("jsonpath={.status.n}", pod), "yes");
  EXPECT_EQ(holds("jsonpath={.status.nothing}", pod), "no");
  EXPECT_EQ(holds("jsonpath={.status.list}", pod), "yes");
  EXPECT_EQ(holds(R"(jsonpath={.status.list[?(@.t=="b")].v}=2)", pod), "yes");
  EXPECT_EQ(holds("jsonpath={.status.list[*].v}=2", pod), "given jsonpath expression matches more than one value");
  EXPECT_EQ(holds("jsonpath={.status.list}=2", pod), "jsonpath leads to a nested object or list which is not supported");
  EXPECT_EQ(holds("jsonpath=", pod), "jsonpath expression cannot be empty");
  EXPECT_EQ(holds("jsonpath==x", pod), "jsonpath expression cannot be empty");
  for (const char* no_path : {"jsonpath={}", "jsonpath={}=x", "jsonpath={.status.phase}{.status.n}"})
    EXPECT_EQ(holds(no_path, pod),
              "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'");
  EXPECT_EQ(holds("jsonpath={.a[}=''", pod),
            "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3");
  EXPECT_EQ(holds("jsonpath={.a", ""),
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or "
            "'{.name1.name2}'");
  EXPECT_EQ(holds("jsonpath={.a[}=1", ""), "unterminated array");
  EXPECT_EQ(holds("jsonpath={.a}=", pod),
            "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3");
  EXPECT_EQ(
      holds("jsonpath={.a=b=c}", pod),
      "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}'");
}

TEST(Wait, for_all_that_it_is_told_to) {
  FakeApi api;
  api.put("/api/v1/namespaces/default/pods/web",
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default","uid":"u"},
      "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  auto wait = [&](const char* first, const char* second) {
    return api.run({"wait", "pod/web", std::string("--for=") + first, std::string("--for=") + second, "--timeout=0"});
  };
  FakeApi::Outcome both = wait("condition=Ready", "jsonpath={.status.phase}=Running");
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(both.out, "pod/web condition met\npod/web condition met\n");  // as kubectl: of each
  EXPECT_EQ(wait("jsonpath={.status.phase}=Failed", "condition=Ready").code, 1) << "the first counts as the last does";
  EXPECT_EQ(wait("condition=Ready", "create").code, 0);
  EXPECT_EQ(api.run({"wait", "pod/web", "--timeout=0"}).code, 1) << "for nothing";
}

TEST(Wait, looks_once_for_what_is_not_there) {
  FakeApi api;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"wait", "pod/none", "--for=create", "--timeout=0"}, {"wait", "pods", "--all", "--for=create", "--timeout=0"}}) {
    FakeApi::Outcome outcome = api.run(words);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "error: timed out waiting for the condition\n");
  }
  EXPECT_EQ(api.run({"wait", "pod/none", "--for=delete", "--timeout=0"}).code, 0);
  EXPECT_EQ(api.run({"wait", "pods", "--all", "--for=condition=Ready", "--timeout=0"}).err,
            "error: no matching resources found\n");
}

TEST(Timeout, is_written_as_go_does) {
  for (auto [span, text] :
       {std::pair{0, "0s"}, std::pair{250, "250ms"}, std::pair{1500, "1.5s"}, std::pair{7000, "7s"}, std::pair{60'050, "1m0.05s"},
        std::pair{90'000, "1m30s"}, std::pair{3'600'000, "1h0m0s"}, std::pair{90'061'000, "25h1m1s"}})
    EXPECT_EQ(duration_text(std::chrono::milliseconds(span)), text);
}

TEST(Timeout, is_a_span_or_a_number_of_seconds) {
  using namespace std::chrono_literals;
  struct Row {
    const char* text;
    std::optional<std::chrono::milliseconds> want;
  };
  for (const Row& row : {Row{"0", 0s}, Row{"30", 30s}, Row{"1m30s", 90s}, Row{"250ms", 250ms}, Row{"1.5h", 90min}, Row{"-1s", {}},
                         Row{"-1", {}}, Row{"", {}}, Row{"soon", {}}, Row{"5d", {}}, Row{"99999999999999999999", {}}}) {
    auto span = parse_timeout(row.text);
    ASSERT_EQ(bool(span), row.want.has_value()) << row.text;
    EXPECT_EQ(std::move(span).value_or(std::chrono::milliseconds(0)), row.want.value_or(std::chrono::milliseconds(0)))
        << row.text;
  }
}

}  // namespace
}  // namespace coracle::ctl
