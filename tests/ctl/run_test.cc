// SPDX-License-Identifier: Apache-2.0
// run against a server that stores objects: the Service of --expose, and what its flags refuse.
#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kRunPods = "/api/v1/namespaces/default/pods/", kRunServices = "/api/v1/namespaces/default/services/";

TEST(Run, the_service_is_printed_before_the_pod) {
  FakeApi api;
  const std::vector<std::string> words = {"run", "x", "--image=a", "--port=80", "--expose", "--dry-run=client"};
  auto with = [&](const std::string& format) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"-o", format});
    return api.run(all).out;
  };
  const std::string yaml = with("yaml");
  EXPECT_LT(yaml.find("kind: Service\n"), yaml.find("\n---\n---\n")) << yaml;  // kubectl separates them twice
  EXPECT_LT(yaml.find("\n---\n---\n"), yaml.find("kind: Pod\n")) << yaml;
  EXPECT_EQ(with("name"), "service/x\npod/x\n");
  EXPECT_EQ(with("json").find("---"), std::string::npos);
  EXPECT_EQ(api.run(words).out, "service/x created (dry run)\npod/x created (dry run)\n");
}

TEST(Run, a_service_that_is_refused_leaves_the_pod) {
  FakeApi api;
  api.put(kRunServices + "x", R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"x","namespace":"default"}})");
  FakeApi::Outcome outcome = api.run({"run", "x", "--image=a", "--port=80", "--expose"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "pod/x created\n");
  EXPECT_NE(outcome.err.find("already exists"), std::string::npos) << outcome.err;
  EXPECT_TRUE(api.objects().contains(kRunPods + "x"));
}

// The server of this test has nothing to attach to.
TEST(Run, says_that_it_could_not_attach) {
  FakeApi api;
  auto event = [](const std::string& state) {
    return R"({"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"default"},
             "status":{"phase":"Running","containerStatuses":[{"name":"x","state":{")" +
           state + "\":{}}}]}}}";
  };
  std::string runs = event("running");
  std::erase(runs, '\n');
  api.answer_watches(runs + "\n");
  const std::string warning = "warning: couldn't attach to pod/x, falling back to streaming logs: pods \"x\" not found\n";
  for (const char* restart : {"--restart=Never", "--restart=Always"}) {
    FakeApi::Outcome outcome = api.run({"run", "x", "--image=a", "-i", "--leave-stdin-open", "-q", restart});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "\"x x\"") << "its log, once";
    EXPECT_EQ(outcome.err, warning);
    api.reset({});
  }
}

TEST(Run, an_empty_restart_policy_is_the_default_one) {
  FakeApi api;
  EXPECT_EQ(api.run({"run", "x", "--image=a", "--restart=", "--dry-run=client", "-o", "jsonpath={.spec.restartPolicy}"}).out,
            "Always");
}

// Of run, expose and autoscale: what --dry-run=client shows does not remember itself.
TEST(Run, only_what_is_sent_is_saved) {
  FakeApi api;
  api.put("/apis/apps/v1/namespaces/default/deployments/web",
          R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},
              "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"main"}]}}}})");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "x", "--image=a"},
                                             {"expose", "deployment", "web", "--port=80"},
                                             {"autoscale", "deployment", "web", "--max=3"}}) {
    for (bool sends : {false, true}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--save-config", "-o", "json"});
      if (!sends) all.push_back("--dry-run=client");
      FakeApi::Outcome outcome = api.run(all);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(outcome.out.find("kubectl.kubernetes.io/last-applied-configuration") != std::string::npos, sends) << outcome.out;
    }
  }
}

TEST(Run, refuses_as_kubectl_does) {
  FakeApi api;
  struct Row {
    std::vector<std::string> words;
    std::string want;
  };
  const std::string help = "\nSee 'coraclectl run -h' for help and examples\n";
  for (const Row& row : std::vector<Row>{
           {{"run", "--image=a"}, "NAME is required for run" + help},
           {{"run", "x", "--image=a", "--pod-running-timeout=0s"}, "--pod-running-timeout must be higher than zero" + help},
           {{"run", "x", "--image=a", "--tty"}, "-i/--stdin is required for containers with -t/--tty=true" + help},
           {{"run", "x", "--image=a", "--expose"}, "--port must be set when exposing a service" + help},
           {{"run", "x", "--image=a", "--restart=No", "--rm"}, "invalid restart policy: No" + help},
           {{"run", "x", "--image=a", "--rm"}, "--rm should only be used for attached containers" + help},
           {{"run", "x", "--image=a", "--image-pull-policy=No"}, "invalid image pull policy: No" + help}})
    EXPECT_EQ(api.run(row.words).err, "error: " + row.want);
  EXPECT_TRUE(api.take_writes().empty());
}

}  // namespace
}  // namespace coracle::ctl
