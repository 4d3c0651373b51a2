// SPDX-License-Identifier: Apache-2.0
// What explain prints of a kind and its fields, in both forms.
#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

class ExplainTest : public testing::Test {
 protected:
  std::string explained(const std::vector<std::string>& words) {
    std::vector<std::string> line = {"explain"};
    line.insert(line.end(), words.begin(), words.end());
    FakeApi::Outcome outcome = api_.run(line);
    return outcome.out + outcome.err;
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

  FakeApi api_;
};

TEST_F(ExplainTest, says_what_a_value_is_too) {
  EXPECT_TRUE(has(explained({"svc.spec.ports.targetPort"}), "\n    A number, or text: a percentage or the name of a port.\n"));
  EXPECT_TRUE(has(explained({"quota.spec.hard"}), "FIELD: hard <map[string]Quantity>\n"));
  EXPECT_TRUE(has(explained({"quota.spec.hard"}), "\n    An amount with an optional suffix: 100m, 1.5, 2k, 1Gi.\n"));
  EXPECT_FALSE(has(explained({"deploy.spec.replicas"}), "An amount"));
}

TEST_F(ExplainTest, a_period_at_the_end_is_none) { EXPECT_EQ(explained({"pod.spec."}), explained({"pod.spec"})); }

TEST_F(ExplainTest, a_resource_may_have_its_group) {
  EXPECT_EQ(explained({"deployments.apps"}), explained({"deploy"}));
  EXPECT_EQ(explained({"deployments.apps.spec.replicas"}), explained({"deploy.spec.replicas"}));
  EXPECT_TRUE(has(explained({"deployment.apps.spec"}), "error: field \"spec\" does not exist\n"))
      << "kubectl asks for its whole name";
  EXPECT_TRUE(has(explained({"deployments.apps", "--api-version=apps/v1"}), "error: field \"apps\" does not exist\n"));
}

TEST_F(ExplainTest, a_field_that_is_none_is_told_by_the_last_name) {
  EXPECT_TRUE(has(explained({"pod.nothing.more"}), "error: field \"more\" does not exist\n"));
  EXPECT_EQ(explained({"pod.nothing.more", "--output=plaintext-openapiv2"}), "error: field \"nothing\" does not exist\n");
}

TEST_F(ExplainTest, the_older_form) {
  std::vector<std::string> old = {"deploy.spec", "--output=plaintext-openapiv2"};
  std::string text = explained(old);
  EXPECT_TRUE(text.starts_with("KIND:     Deployment\nVERSION:  apps/v1\n\nRESOURCE: spec <Object>\n\nDESCRIPTION:\n     "))
      << text;
  EXPECT_TRUE(has(text, "\n\nFIELDS:\n   minReadySeconds\t<integer>\n     ")) << text;
  EXPECT_TRUE(has(text, "\n   selector\t<Object> -required-\n")) << text;
  EXPECT_TRUE(has(text, "\n   replicas\t<integer>\n     ")) << text;
  old.emplace_back("--recursive");
  EXPECT_TRUE(has(explained(old), "\n   strategy\t<Object>\n      rollingUpdate\t<Object>\n         maxSurge\t<string>\n"));
  EXPECT_TRUE(explained({"deploy.spec.replicas", "--output=plaintext-openapiv2"})
                  .starts_with("KIND:     Deployment\nVERSION:  apps/v1\n\nFIELD:    replicas <integer>\n\nDESCRIPTION:\n     "));
  EXPECT_EQ(explained({"pod.nothing", "--output=plaintext-openapiv2"}), "error: field \"nothing\" does not exist\n");
}

}  // namespace
}  // namespace coracle::ctl
