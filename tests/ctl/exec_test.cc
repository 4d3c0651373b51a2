// SPDX-License-Identifier: Apache-2.0
// What exec and attach refuse before they connect, and what is said around a session.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ctl/pods.h"
#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

class ExecTest : public testing::Test {
 protected:
  ExecTest() {
    directory_ = testing::TempDir() + "/exec-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    put("web", "Running");
    put("done", "Succeeded");
  }
  ~ExecTest() override { std::filesystem::remove_all(directory_); }
  void put(const std::string& name, const std::string& phase) {
    api_.put("/api/v1/namespaces/default/pods/" + name,
             R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                 R"(","namespace":"default"},"spec":{"containers":[{"name":"main"}]},"status":{"phase":")" + phase + R"("}})");
  }

  FakeApi api_;
  std::string directory_;
};

TEST_F(ExecTest, refuses_as_kubectl_does) {
  std::string two = directory_ + "/two.yaml";
  std::ofstream(two)
      << "{apiVersion: v1, kind: Pod, metadata: {name: web}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: done}}\n";
  struct Row {
    std::vector<std::string> words;
    std::string want;
  };
  for (const Row& row : std::vector<Row>{
           {{"attach"}, "at least 1 argument is required for attach"},
           {{"attach", "a", "b", "c"}, "expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw 3: [a b c]"},
           {{"attach", "nothing", "x"}, "the server doesn't have a resource type \"nothing\""},
           {{"attach", "web", "-c", "other"},
            "cannot attach to the container: container other is not valid for pod web out of: main"},
           {{"attach", "done"}, "cannot attach a container in a completed pod; current phase is Succeeded"},
           {{"attach", "web", "--pod-running-timeout=0s"},
            "--pod-running-timeout must be higher than zero\nSee 'coraclectl attach -h' for help and examples"},
           {{"exec"}, "pod, type/name or --filename must be specified"},
           {{"exec", "web"}, "you must specify at least one command for the container"},
           {{"exec", "web", "ls"},
            "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\nSee 'coraclectl exec -h' for "
            "help and examples"},
           {{"exec", "web", "-c", "other", "--", "ls"}, "container other is not valid for pod web out of: main"},
           {{"exec", "done", "--", "ls"}, "cannot exec into a container in a completed pod; current phase is Succeeded"},
           {{"exec", "-f", two, "--", "ls"}, "cannot exec into multiple objects at a time"},
           {{"exec", "web", "--pod-running-timeout=0s", "--", "ls"},
            "--pod-running-timeout must be higher than zero\nSee 'coraclectl exec -h' for help and examples"}}) {
    FakeApi::Outcome outcome = api_.run(row.words);
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    EXPECT_EQ(outcome.err, "error: " + row.want + "\n");
  }
}

TEST_F(ExecTest, what_was_asked_of_the_server_is_told) {
  const std::string told = api_.run({"exec", "web", "-v=6", "--", "ls"}).err;
  const std::string path = "/api/v1/namespaces/default/pods/web/exec?command=ls&container=main&stderr=true&stdout=true";
  EXPECT_NE(told.find("\"Response\" verb=\"GET\" url=\"" + api_.url() + path + "\" status=\"404\" milliseconds="),
            std::string::npos)
      << told;
}

TEST_F(ExecTest, a_session_is_told_how_it_can_be_resumed) {
  EXPECT_EQ(session_ended("shop", "web", "main", false),
            "Session ended, resume using 'coraclectl attach web -c main -n shop -i -t' command\n");
  EXPECT_EQ(session_ended("shop", "web", "look", true),
            "Session ended, the ephemeral container will not be restarted but may be reattached using 'coraclectl attach web -c "
            "look -n shop -i -t' if it is still running\n");
}

}  // namespace
}  // namespace coracle::ctl
