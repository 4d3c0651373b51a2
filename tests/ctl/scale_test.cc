// SPDX-License-Identifier: Apache-2.0
// scale against a server: its conditions, and what it waits for.
#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

class ScaleTest : public testing::Test {
 protected:
  ScaleTest() {
    api_.put("/apis/apps/v1/namespaces/default/deployments/web",
             R"({"apiVersion":"apps/v1","kind":"Deployment",
                 "metadata":{"name":"web","namespace":"default","resourceVersion":"7","generation":1},
                 "spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1}})");
  }
  FakeApi::Outcome scale(const std::vector<std::string>& flags) {
    std::vector<std::string> words{"scale", "deployment", "web"};
    words.insert(words.end(), flags.begin(), flags.end());
    return api_.run(words);
  }

  FakeApi api_;
};

TEST_F(ScaleTest, waits_until_there_are_as_many) {
  FakeApi::Outcome outcome = scale({"--replicas=2", "--timeout=10ms"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "error: timed out waiting for \"web\" to be synced\n");
  EXPECT_EQ(scale({"--replicas=1", "--timeout=10s"}).out, "deployment.apps/web scaled\n");
}

TEST_F(ScaleTest, conditions_hold_when_it_is_written) {
  EXPECT_EQ(scale({"--replicas=2", "--current-replicas=3"}).err, "error: Expected replicas to be 3, was 1\n");
  EXPECT_EQ(scale({"--replicas=2", "--resource-version=6"}).err, "error: Expected resource version to be 6, was 7\n");
  EXPECT_EQ(scale({"--replicas=2", "--current-replicas=3", "--dry-run=client"}).out, "deployment.apps/web scaled (dry run)\n")
      << "kubectl asks for no condition then";
  EXPECT_TRUE(api_.take_writes().empty());
  EXPECT_EQ(scale({"--replicas=2", "--current-replicas=1"}).out, "deployment.apps/web scaled\n");
  auto writes = api_.take_writes();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(to_text(writes[0].body), R"({"spec":{"replicas":2},"metadata":{"resourceVersion":"7"}})");
}

TEST_F(ScaleTest, an_object_that_others_changed_is_read_again) {
  api_.refuse_writes(Error(Code::conflict, "it was changed").with({}));
  FakeApi::Outcome outcome = scale({"--replicas=2", "--current-replicas=1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "Error from server (Conflict): it was changed\n");
  EXPECT_EQ(api_.take_writes().size(), 10u);
}

}  // namespace
}  // namespace coracle::ctl
