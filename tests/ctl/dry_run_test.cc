// SPDX-License-Identifier: Apache-2.0
// Every command that writes × every value of --dry-run, against a server that stores objects: a dry run changes nothing, a
// client-side one sends no writing request, and a server-side one sets dryRun in each. Without --dry-run, each command does
// write: so the table only has commands that matter. And --dry-run=client prints the resulting object.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "ctl/command.h"
#include "runtime/base/text.h"
#include "tests/ctl/fake_api.h"
#include "tests/ctl/key_pair.h"

namespace coracle::ctl {
namespace {

const std::string kNs = "/api/v1/namespaces/default/", kApps = "/apis/apps/v1/namespaces/default/";

struct CommandCase {
  std::string command;  // "rollout undo"
  std::vector<std::string> rest;
};

class DryRunTest : public testing::Test {
 protected:
  DryRunTest() {
    directory_ = testing::TempDir() + "/dry-run-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    ::setenv("KUBE_EDITOR", "sed -i s/blue/red/", 1);
    cfg_ = file("cfg.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {colour: green}\n");
    certificate_ = file("tls.crt", kCertificatePem), key_ = file("tls.key", kKeyPem);
    object("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/readers", "rbac.authorization.k8s.io/v1",
           "RoleBinding", R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"})");
    new_ = file("new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {colour: green}\n");
    object(kNs + "configmaps/cfg", "v1", "ConfigMap", R"("data":{"colour":"blue"})");
    object(kNs + "serviceaccounts/robot", "v1", "ServiceAccount", R"("secrets":[])");
    object(kNs + "services/web", "v1", "Service", R"("spec":{"selector":{"app":"web"},"ports":[{"port":80}]})");
    object(kNs + "pods/lone", "v1", "Pod",
           R"("spec":{"nodeName":"edge","containers":[{"name":"app","image":"one"}]},"status":{"phase":"Running"})");
    object("/api/v1/nodes/edge", "v1", "Node", R"("spec":{})");
    object("/api/v1/nodes/closed", "v1", "Node", R"("spec":{"unschedulable":true})");
    std::string pod = R"({"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":")";
    for (auto [name, paused] : {std::pair{"web", ""}, std::pair{"held", R"("paused":true,)"}})
      object(kApps + "deployments/" + name, "apps/v1", "Deployment",
             R"("spec":{"replicas":1,)" + std::string(paused) + R"("selector":{"matchLabels":{"app":"web"}},"template":)" + pod +
                 R"(two"}]}}})");
    for (auto [name, revision, image] : {std::tuple{"web-1", "1", "one"}, std::tuple{"web-2", "2", "two"}})
      object(kApps + "replicasets/" + name, "apps/v1", "ReplicaSet", R"("spec":{"template":)" + pod + image + R"("}]}}})",
             R"(,"labels":{"app":"web"},"annotations":{"deployment.kubernetes.io/revision":")" + std::string(revision) +
                 R"("},"ownerReferences":[{"controller":true,"kind":"Deployment","name":"web","uid":"uid-web"}])");
    object("/apis/batch/v1/namespaces/default/cronjobs/nightly", "batch/v1", "CronJob",
           R"("spec":{"schedule":"0 1 * * *","jobTemplate":{"spec":{"template":)" + pod + R"(one"}]}}}}})");
    objects_ = api_.objects();
    rows_ = {
        {"create", {"-f", new_}},
        {"create namespace", {"made"}},
        {"create serviceaccount", {"made"}},
        {"create configmap", {"made", "--from-literal=a=b"}},
        {"create deployment", {"made", "--image=one"}},
        {"create job", {"made", "--image=one"}},
        {"create job", {"made", "--from=cronjob/nightly"}},
        {"create cronjob", {"made", "--image=one", "--schedule=0 1 * * *"}},
        {"create poddisruptionbudget", {"made", "--selector=a=b", "--min-available=1"}},
        {"create priorityclass", {"made", "--value=1"}},
        {"create quota", {"made", "--hard=pods=1"}},
        {"create secret generic", {"made", "--from-literal=a=b"}},
        {"create secret tls", {"made", "--cert", certificate_, "--key", key_}},
        {"create secret docker-registry", {"made", "--docker-username=u", "--docker-password=p"}},
        {"create role", {"made", "--verb=get", "--resource=pods"}},
        {"create clusterrole", {"made", "--verb=get", "--resource=deploy.apps"}},
        {"create rolebinding", {"made", "--role=reader", "--user=ann"}},
        {"create clusterrolebinding", {"made", "--clusterrole=view", "--user=ann"}},
        {"create ingress", {"made", "--rule=example.com/=web:80"}},
        {"create service clusterip", {"made", "--tcp=80"}},
        {"create service nodeport", {"made", "--tcp=80"}},
        {"create service loadbalancer", {"made", "--tcp=80"}},
        {"create service externalname", {"made", "--external-name=example.com"}},
        {"run", {"made", "--image=one"}},
        {"run", {"made", "--image=one", "--port=80", "--expose"}},
        {"expose", {"deployment", "web", "--port=80", "--name=made"}},
        {"apply", {"-f", cfg_}},
        {"apply", {"-f", new_}},
        {"apply set-last-applied", {"-f", cfg_, "--create-annotation"}},
        {"replace", {"-f", cfg_}},
        {"patch", {"configmap", "cfg", "-p", R"({"data":{"colour":"red"}})"}},
        {"patch", {"configmap", "cfg", "--type=merge", "-p", R"({"data":{"colour":"red"}})"}},
        {"patch", {"configmap", "cfg", "--type=json", "-p", R"([{"op":"replace","path":"/data/colour","value":"red"}])"}},
        {"label", {"configmap", "cfg", "a=b"}},
        {"annotate", {"pods", "--all", "a=b"}},
        {"edit", {"configmap", "cfg"}},
        {"set image", {"deployment/web", "app=three"}},
        {"set env", {"deployment/web", "A=b"}},
        {"set resources", {"deployment/web", "--limits=cpu=1"}},
        {"set serviceaccount", {"deployment/web", "robot"}},
        {"set selector", {"service/web", "app=other"}},
        {"set subject", {"rolebinding/readers", "--user=ann"}},
        {"scale", {"deployment", "web", "--replicas=3"}},
        {"autoscale", {"deployment", "web", "--max=3"}},
        {"delete", {"configmap", "cfg"}},
        {"delete", {"configmap/cfg", "--force", "--cascade=orphan"}},
        {"delete", {"pods", "--all", "--now"}},
        {"delete", {"-f", cfg_, "--wait=false"}},
        {"rollout undo", {"deployment/web"}},
        {"rollout restart", {"deployment/web"}},
        {"rollout pause", {"deployment/web"}},
        {"rollout resume", {"deployment/held"}},
        {"cordon", {"edge"}},
        {"uncordon", {"closed"}},
        {"drain", {"edge", "--force"}},
        {"drain", {"edge", "--force", "--disable-eviction", "--grace-period=3"}},
        {"taint", {"nodes", "edge", "a=b:NoSchedule"}},
    };
  }
  ~DryRunTest() override {
    ::unsetenv("KUBE_EDITOR");
    std::filesystem::remove_all(directory_);
  }

  std::string file(const std::string& name, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(directory_ + "/" + name).parent_path());
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  void object(const std::string& path, const std::string& version, const std::string& kind, const std::string& more,
              const std::string& metadata = "") {
    std::string name = path.substr(path.rfind('/') + 1),
                ns = path.find("/namespaces/") == path.npos ? "" : R"("namespace":"default",)";
    api_.put(path, R"({"apiVersion":")" + version + R"(","kind":")" + kind + R"(","metadata":{)" + ns + R"("name":")" + name +
                       R"(","uid":"uid-)" + name + R"(","resourceVersion":"7")" + metadata + "}," + more + "}");
  }
  // The flag comes first, so that it would take the next word if it took a value.
  FakeApi::Outcome run(const CommandCase& row, const std::string& flag) {
    api_.reset(objects_);
    std::vector<std::string> words;
    for (std::string_view word : coracle::split(row.command, ' ')) words.emplace_back(word);
    if (!flag.empty()) words.push_back(flag);
    words.insert(words.end(), row.rest.begin(), row.rest.end());
    return api_.run(words);
  }
  std::string printed(const std::vector<std::string>& words) {
    api_.reset(objects_);
    FakeApi::Outcome outcome = api_.run(words);
    EXPECT_EQ(outcome.code, 0) << words.front() << "\n" << outcome.err;
    EXPECT_TRUE(api_.take_writes().empty()) << words.front();
    return outcome.out;
  }
  static std::string shown(const CommandCase& row, const std::string& flag) {
    std::string text = row.command + " " + flag;
    for (const auto& word : row.rest) text += " " + word;
    return text;
  }

  FakeApi api_;
  FakeApi::Objects objects_;
  std::string directory_, cfg_, new_, certificate_, key_;
  std::vector<CommandCase> rows_;
};

TEST_F(DryRunTest, without_one_every_command_of_the_table_writes) {
  for (const CommandCase& row : rows_)
    for (const char* flag : {"", "--dry-run=none"}) {
      SCOPED_TRACE(shown(row, flag));
      FakeApi::Outcome outcome = run(row, flag);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      auto writes = api_.take_writes();
      EXPECT_FALSE(writes.empty());
      for (const auto& sent : writes) EXPECT_FALSE(sent.query.contains("dryRun"));
      EXPECT_NE(api_.objects(), objects_) << outcome.out;
      EXPECT_EQ(outcome.out.find("dry run"), std::string::npos) << outcome.out;
    }
}

TEST_F(DryRunTest, of_the_client_sends_nothing_that_writes) {
  for (const CommandCase& row : rows_)
    for (const char* flag : {"--dry-run=client", "--dry-run", "--dry-run=true"}) {
      SCOPED_TRACE(shown(row, flag));
      FakeApi::Outcome outcome = run(row, flag);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_TRUE(api_.take_writes().empty());
      EXPECT_EQ(api_.objects(), objects_);
      EXPECT_NE(outcome.out.find("(dry run)"), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.err.find("deprecated") != std::string::npos, flag != std::string("--dry-run=client")) << outcome.err;
    }
}

TEST_F(DryRunTest, of_the_server_says_so_in_every_request_that_writes) {
  for (const CommandCase& row : rows_) {
    SCOPED_TRACE(shown(row, "--dry-run=server"));
    FakeApi::Outcome outcome = run(row, "--dry-run=server");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    auto writes = api_.take_writes();
    EXPECT_FALSE(writes.empty());
    for (const auto& sent : writes) {
      EXPECT_TRUE(sent.says_dry_run()) << sent.method << " " << sent.path;
      bool evicts = sent.path.ends_with("/eviction");
      if (!evicts && sent.method != "DELETE") continue;
      EXPECT_EQ(to_text(get_array(sent.body, evicts ? "deleteOptions.dryRun" : "dryRun")), R"(["All"])") << sent.path;
    }
    EXPECT_EQ(api_.objects(), objects_);
    EXPECT_NE(outcome.out.find("(server dry run)"), std::string::npos) << outcome.out;
  }
}

TEST_F(DryRunTest, of_another_value_is_refused) {
  for (const CommandCase& row : rows_)
    for (const char* flag : {"--dry-run=", "--dry-run=maybe", "--dry-run=All", "--dry-run=Server"}) {
      FakeApi::Outcome outcome = run(row, flag);
      EXPECT_EQ(outcome.code, 1) << shown(row, flag);
      EXPECT_NE(outcome.err.find("Invalid dry-run value ("), std::string::npos) << outcome.err;
      EXPECT_TRUE(api_.take_writes().empty()) << shown(row, flag);
    }
}

TEST_F(DryRunTest, that_cannot_be_is_refused) {
  for (const char* flag : {"--dry-run=client", "--dry-run=server", "--dry-run"}) {
    FakeApi::Outcome outcome = run({"replace", {"--force", "-f", cfg_}}, flag);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err.substr(outcome.err.find("error: ")), "error: --dry-run can not be used when --force is set\n");
    EXPECT_TRUE(api_.take_writes().empty());
  }
  FakeApi::Outcome outcome = run({"apply", {"--server-side", "-f", cfg_}}, "--dry-run=client");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: --dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)\n");
  EXPECT_TRUE(api_.take_writes().empty());
  outcome = run({"apply", {"--server-side", "-f", cfg_}}, "--dry-run=server");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& sent : api_.take_writes()) EXPECT_TRUE(sent.says_dry_run());
  EXPECT_EQ(api_.objects(), objects_);
}

// A command with the flag but without a row would not be tested.
TEST_F(DryRunTest, the_table_has_every_command_with_the_flag) {
  CommandLine line("coraclectl", "x");
  GlobalFlags flags;
  Commands commands(line.root(), flags);
  add_commands(commands);
  std::set<std::string> tested, there;
  for (const CommandCase& row : rows_) tested.insert(row.command);
  tested.insert("auth reconcile");  // in auth_test.cc: as kubectl's, it has no dry run of the server's
  std::function<void(Command, const std::string&)> visit = [&](Command command, const std::string& path) {
    for (Flag flag : command.flags())
      if (flag.name() == "dry-run") there.insert(path);
    for (Command below : command.commands()) visit(below, path + (path.empty() ? "" : " ") + below.name());
  };
  visit(line.root(), "");
  EXPECT_EQ(tested, there);
}

TEST_F(DryRunTest, of_the_client_prints_the_object_as_it_would_be) {
  struct Printed {
    std::vector<std::string> words;
    std::string want;
  };
  for (const Printed& row : std::vector<Printed>{
           {{"label", "configmap", "cfg", "a=b"}, "\n  labels:\n    a: b\n"},
           {{"annotate", "configmap", "cfg", "a=b"}, "\n  annotations:\n    a: b\n"},
           {{"patch", "configmap", "cfg", "-p", R"({"data":{"size":"xl"}})"}, "\ndata:\n  colour: blue\n  size: xl\n"},
           {{"patch", "configmap", "cfg", "--type=merge", "-p", R"({"data":{"colour":null,"size":"xl"}})"},
            "\ndata:\n  size: xl\n"},
           {{"patch", "configmap", "cfg", "--type=json", "-p", R"([{"op":"add","path":"/data/size","value":"xl"}])"},
            "\n  size: xl\n"},
           {{"scale", "deployment", "web", "--replicas=3"}, "\n  replicas: 3\n"},
           {{"set", "image", "deployment/web", "app=three"}, "image: three\n"},
           {{"set", "env", "deployment/web", "A=b"}, "- name: A\n          value: b\n"},
           {{"set", "resources", "deployment/web", "--limits=cpu=1"}, "limits:\n            cpu: \"1\"\n"},
           {{"set", "selector", "service/web", "app=other"}, "\n  selector:\n    app: other\n"},
           {{"apply", "-f", cfg_}, "\ndata:\n  colour: green\n"},
           {{"apply", "-f", new_}, "\ndata:\n  colour: green\n"},
           {{"replace", "-f", cfg_}, "\ndata:\n  colour: green\n"},
           {{"taint", "nodes", "edge", "a=b:NoSchedule"}, "effect: NoSchedule\n"},
           {{"rollout", "pause", "deployment/web"}, "\n  paused: true\n"},
       }) {
    std::vector<std::string> words = row.words;
    words.insert(words.end(), {"--dry-run=client", "-o", "yaml"});
    std::string yaml = printed(words);
    EXPECT_NE(yaml.find(row.want), std::string::npos) << row.words.front() << " " << row.words[1] << "\n" << yaml;
    words.back() = "json";
    EXPECT_TRUE(parse_json(printed(words))) << row.words.front();
    words.back() = "name";
    std::string name = printed(words);
    EXPECT_NE(name.find('/'), name.npos) << name;
    EXPECT_EQ(name.find(' '), name.npos) << name;
  }
}

TEST_F(DryRunTest, of_several_objects_prints_documents_or_a_list) {
  std::string both = printed({"label", "nodes", "--all", "a=b", "--dry-run=client", "-o", "yaml"});
  EXPECT_NE(both.find("\n---\napiVersion: v1\nkind: Node\n"), both.npos) << both;
  std::string list = printed({"apply", "-f", cfg_, "-f", new_, "--dry-run=client", "-o", "json"});
  auto parsed = parse_json(list);
  ASSERT_TRUE(parsed) << list;
  EXPECT_EQ(get_string(*parsed, "kind"), "List");
  EXPECT_EQ(get_array(*parsed, "items").size(), 2u);
}

TEST_F(DryRunTest, tells_whether_something_would_change) {
  FakeApi::Outcome outcome = run({"patch", {"configmap", "cfg", "-p", R"({"data":{"colour":"blue"}})"}}, "--dry-run=server");
  EXPECT_EQ(outcome.out, "configmap/cfg patched (no change) (server dry run)\n");
  outcome = run({"patch", {"configmap", "cfg", "-p", R"({"data":{"colour":"red"}})"}}, "--dry-run=server");
  EXPECT_EQ(outcome.out, "configmap/cfg patched (server dry run)\n");
  outcome = run({"apply", {"-f", cfg_}}, "--dry-run=server");
  EXPECT_EQ(outcome.out, "configmap/cfg configured (server dry run)\n");
}

// ---- field managers ----

TEST_F(DryRunTest, each_command_writes_under_its_own_name) {
  for (const auto& [row, manager] : std::vector<std::pair<CommandCase, std::string>>{
           {{"create", {"-f", new_}}, "kubectl-create"},
           {{"create configmap", {"made"}}, "kubectl-create"},
           {{"run", {"made", "--image=one"}}, "kubectl-run"},
           {{"expose", {"deployment", "web", "--port=80", "--name=made"}}, "kubectl-expose"},
           {{"apply", {"-f", cfg_}}, "kubectl-client-side-apply"},
           {{"apply", {"--server-side", "-f", cfg_}}, "kubectl"},
           {{"apply", {"--server-side", "--field-manager=me", "-f", cfg_}}, "me"},
           {{"replace", {"-f", cfg_}}, "kubectl-replace"},
           {{"replace", {"--field-manager=me", "-f", cfg_}}, "me"},
           {{"patch", {"configmap", "cfg", "-p", R"({"data":{"colour":"red"}})"}}, "kubectl-patch"},
           {{"label", {"configmap", "cfg", "a=b"}}, "kubectl-label"},
           {{"annotate", {"configmap", "cfg", "a=b"}}, "kubectl-annotate"},
           {{"edit", {"configmap", "cfg"}}, "kubectl-edit"},
           {{"set image", {"deployment/web", "app=three"}}, "kubectl-set"},
           {{"scale", {"deployment", "web", "--replicas=3"}}, "kubectl"},
           {{"autoscale", {"deployment", "web", "--max=3"}}, "kubectl-autoscale"},
           {{"rollout restart", {"deployment/web"}}, "kubectl-rollout"},
           {{"cordon", {"edge"}}, "kubectl"},
           {{"taint", {"nodes", "edge", "a=b:NoSchedule"}}, "kubectl-taint"},
       }) {
    FakeApi::Outcome outcome = run(row, "");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const auto& sent : api_.take_writes())
      EXPECT_EQ(sent.query.contains("fieldManager") ? sent.query.at("fieldManager") : "", manager) << shown(row, "");
  }
}

}  // namespace
}  // namespace coracle::ctl
