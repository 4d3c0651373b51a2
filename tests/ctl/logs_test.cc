// SPDX-License-Identifier: Apache-2.0
// Whose logs are shown, and what is said about the choice.
#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kLogPods = "/api/v1/namespaces/default/pods/";

class LogsTest : public testing::Test {
 protected:
  LogsTest() {
    const std::string two = R"("containers":[{"name":"main"},{"name":"side"}])";
    put("stale", two, R"("kubectl.kubernetes.io/default-container":"gone")");
    put("web", two + R"(,"initContainers":[{"name":"setup"}],"ephemeralContainers":[{"name":"look"}])");
    api_.put("/apis/apps/v1/namespaces/default/deployments/web",
             R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},
                 "spec":{"selector":{"matchLabels":{"app":"web"}}}})");
  }
  void put(const std::string& name, const std::string& spec, const std::string& annotations = "",
           const std::string& app = "web") {
    api_.put(kLogPods + name, R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                                  R"(","namespace":"default","labels":{"app":")" + app + R"("},"annotations":{)" + annotations +
                                  R"(}},"spec":{)" + spec + "}}");
  }
  FakeApi::Outcome logs(std::vector<std::string> words) {
    words.insert(words.begin(), "logs");
    return api_.run(words);
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& text) {
    FakeApi::Outcome outcome = logs(words);
    EXPECT_EQ(outcome.code, 1) << text;
    EXPECT_EQ(outcome.out, "") << text;
    EXPECT_EQ(outcome.err, text + "\n");
  }

  FakeApi api_;
};

const std::string kStaleMark = "Default container name \"gone\" not found in pod stale\n";
const std::string kOfStale = "Defaulted container \"main\" out of: main, side\n";
const std::string kOfWeb = "Defaulted container \"main\" out of: main, side, look (ephem), setup (init)\n";

TEST_F(LogsTest, says_which_container_it_takes) {
  FakeApi::Outcome outcome = logs({"web"});
  EXPECT_EQ(outcome.out, "\"web main\"");
  EXPECT_EQ(outcome.err, kOfWeb);
  outcome = logs({"web", "-c", "look"});
  EXPECT_EQ(outcome.out + outcome.err, "\"web look\"");
  put("marked", R"("containers":[{"name":"main"},{"name":"side"}])", R"("kubectl.kubernetes.io/default-container":"side")");
  outcome = logs({"marked"});
  EXPECT_EQ(outcome.out + outcome.err, "\"marked side\"");
}

TEST_F(LogsTest, of_all_pods_say_no_container) {
  FakeApi::Outcome outcome = logs({"deployment/web", "--all-pods"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "[pod/stale/main] \"stale main\"\n[pod/web/main] \"web main\"\n");
  EXPECT_EQ(outcome.err, kStaleMark);
}

// A selector is at the same place in other kinds too, and means other things there.
TEST_F(LogsTest, only_of_what_has_pods) {
  api_.put("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web",
           R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web","namespace":"default"},
               "spec":{"selector":{"matchLabels":{"app":"web"}}}})");
  api_.put("/api/v1/namespaces/default/services/web",
           R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"default"},"spec":{"selector":{}}})");
  for (const char* flag : {"--all-pods", "--all-pods=false"}) {
    expect_refused(
        {"pdb/web", flag},
        "error: cannot get the logs from *v1.PodDisruptionBudget: selector for *v1.PodDisruptionBudget not implemented");
    expect_refused({"service/web", flag},
                   "error: cannot get the logs from *v1.Service: invalid service 'web': Service is defined without a selector");
  }
}

TEST_F(LogsTest, the_first_pod_is_the_one_to_look_at) {
  api_.put(kLogPods + "zulu", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"zulu","namespace":"default",
             "labels":{"app":"web"}},"spec":{"nodeName":"edge","containers":[{"name":"main"}]},"status":{"phase":"Failed"}})");
  FakeApi::Outcome outcome = logs({"deployment/web"});
  EXPECT_EQ(outcome.out, "\"zulu main\"");
  EXPECT_EQ(outcome.err, "Found 3 pods, using pod/zulu\n");
  EXPECT_EQ(logs({"deployment/web", "--all-pods"}).out.substr(0, 32), "[pod/zulu/main] \"zulu main\"\n[pod");
}

TEST_F(LogsTest, a_mark_of_no_container_is_told_and_ignored) {
  FakeApi::Outcome outcome = logs({"stale"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "\"stale main\"");
  EXPECT_EQ(outcome.err, kStaleMark + kOfStale);
  outcome = logs({"-l", "app=web"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "\"stale main\"\"web main\"");
  EXPECT_EQ(outcome.err, kStaleMark + kOfStale + kOfWeb);
  EXPECT_EQ(logs({"stale", "--all-containers"}).err, "") << "nothing is chosen";
}

TEST_F(LogsTest, all_containers_are_also_the_ephemeral_ones) {
  EXPECT_EQ(logs({"web", "--all-containers"}).out, "\"web setup\"\"web main\"\"web side\"\"web look\"");
}

TEST_F(LogsTest, a_container_that_one_pod_lacks_is_refused_before_anything_is_shown) {
  const std::string text = "error: container look is not valid for pod stale out of: main, side";
  expect_refused({"stale", "look"}, text);
  expect_refused({"-l", "app=web", "-c", "look", "--ignore-errors"}, text);
  expect_refused({"deployment/web", "--all-pods", "-c", "look"}, text);
}

TEST_F(LogsTest, a_selector_and_names_exclude_each_other) {
  const std::string help = "\nSee 'coraclectl logs -h' for help and examples";
  expect_refused({"web", "-l", "app=web"}, "error: only a selector (-l) or a POD name is allowed" + help);
  expect_refused({"web", "main", "-l", "app=web"},
                 "error: selectors and the all flag cannot be used when passing resource/name arguments");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"web", "main", "x", "-l", "app=web"}})
    expect_refused(words,
                   "error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required "
                   "argument for the logs command" +
                       help);
}

TEST_F(LogsTest, a_time_that_is_none_is_refused) {
  expect_refused({"web", "--since-time=yesterday", "--since=1h"},
                 "error: parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"");
  expect_refused({"web", "--since-time=2024-01-02T03:04:05Z", "--since=1h"},
                 "error: at most one of `sinceTime` or `sinceSeconds` may be specified");
  EXPECT_EQ(logs({"stale", "-c", "side", "--since-time=2024-01-02T03:04:05Z"}).code, 0);
}

TEST_F(LogsTest, an_ignored_error_is_shown_among_the_logs) {
  const Error gone = Error(Code::bad_request, "the log of \"main\" is gone").with({});
  api_.refuse_logs("main", 100, gone);
  expect_refused({"web", "-c", "main"}, "Error from server (BadRequest): the log of \"main\" is gone");
  for (const char* flag : {"--follow=false", "--follow"}) {
    FakeApi::Outcome outcome = logs({"web", "-c", "main", "--ignore-errors", flag});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "error: the log of \"main\" is gone\n");
    EXPECT_EQ(outcome.err, "");
  }
  EXPECT_EQ(logs({"stale", "--all-containers", "--ignore-errors"}).out, "error: the log of \"main\" is gone\n\"stale side\"");
}

// A script that has just made a pod may follow its log.
TEST_F(LogsTest, a_log_that_is_followed_is_awaited) {
  const Error waiting = Error(Code::bad_request, "container \"main\" is waiting to start").with({});
  api_.refuse_logs("main", 1, waiting);
  FakeApi::Outcome outcome = logs({"web", "-c", "main", "-f"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "\"web main\"");
  EXPECT_EQ(outcome.err, "container \"main\" is waiting to start\n");
  api_.refuse_logs("main", 100, waiting);
  outcome = logs({"web", "-c", "main", "-f", "--pod-running-timeout=20ms"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "container \"main\" is waiting to start\nerror: context deadline exceeded\n");
}

TEST_F(LogsTest, all_containers_are_not_one) {
  const std::string text = "error: --all-containers=true should not be specified with container name side";
  expect_refused({"web", "side", "--all-containers"}, text);
  expect_refused({"web", "-c", "side", "--all-containers"}, text);
  expect_refused({"web", "main", "-c", "side"}, "error: only one of -c or an inline [CONTAINER] arg is allowed");
}

// The first word is a pod, whatever kind has that name.
TEST_F(LogsTest, the_second_word_is_a_container) {
  put("job", R"("containers":[{"name":"main"},{"name":"x"}])", "", "none");
  FakeApi::Outcome outcome = logs({"job", "x"});
  EXPECT_EQ(outcome.out + outcome.err, "\"job x\"");
  EXPECT_EQ(logs({"job"}).out, "\"job main\"");
  outcome = logs({"deployment/web", "side"});
  EXPECT_EQ(outcome.out, "\"stale side\"");
  EXPECT_EQ(outcome.err, "Found 2 pods, using pod/stale\n");
  for (const char* flag : {"--all-pods", "--all-pods=false"})
    expect_refused({"node", "x", flag}, "error: error from server (NotFound): pods \"node\" not found in namespace \"default\"");
  expect_refused({"deployment", "web"},
                 "error: error from server (NotFound): pods \"deployment\" not found in namespace \"default\"");
  api_.forbid("pods");
  expect_refused({"web"}, "Error from server (Forbidden): pods is forbidden: User \"eve\" cannot read it");
}

}  // namespace
}  // namespace coracle::ctl
