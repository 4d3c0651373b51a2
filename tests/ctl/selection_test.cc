// SPDX-License-Identifier: Apache-2.0
// Which objects a command changes when its line names them in several ways at once: never more than it means, and where that is
// not clear, none. And what has no name is never taken for all of its kind.
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "ctl/generate.h"
#include "ctl/manifest_files.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kMapsPath = "/api/v1/namespaces/default/configmaps/";

class SelectionTest : public testing::Test {
 protected:
  SelectionTest() {
    directory_ = testing::TempDir() + "/selection-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    for (std::string name : {"one", "two"}) put_map(name);
    api_.put("/api/v1/nodes/edge",
             R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"edge","labels":{"a":"b"}},"spec":{}})");
    api_.put("/api/v1/nodes/core", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"core"},"spec":{}})");
    api_.put("/apis/apps/v1/namespaces/default/deployments/web",
             R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default","uid":"w"},
             "spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
             "spec":{"containers":[{"name":"main","image":"x"}]}}}})");
    objects_ = api_.objects();
  }
  ~SelectionTest() override { std::filesystem::remove_all(directory_); }

  static std::string app_of(const std::string& name) { return name == "one" ? "web" : "db"; }
  void put_map(const std::string& name) {
    api_.put(kMapsPath + name, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","uid":"u-)" + name +
                               R"(","labels":{"app":")" + app_of(name) + R"("},"name":")" + name + R"("}})");
  }
  static std::string map(const std::string& name) {
    return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {app: " + app_of(name) + "}}\n";
  }
  std::string file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(directory_ + "/" + name).parent_path());
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  bool there(const std::string& name) const { return api_.objects().contains(kMapsPath + name); }
  FakeApi::Outcome run(const std::vector<std::string>& words) {
    api_.reset(objects_);
    return api_.run(words);
  }
  // Nothing may have been written.
  void expect_refused(const std::vector<std::string>& words, const std::string& text) {
    std::string line;
    for (const auto& word : words) line += word + " ";
    FakeApi::Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 1) << line << outcome.out;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << line << outcome.err;
    for (const auto& sent : api_.take_writes()) ADD_FAILURE() << line << sent.method << " " << sent.path;
    EXPECT_EQ(api_.objects(), objects_) << line;
  }

  FakeApi api_;
  FakeApi::Objects objects_;
  std::string directory_;
};

// ---- delete ----

TEST_F(SelectionTest, delete_of_files_by_selector_takes_what_matches) {
  std::string all = file("all.yaml", map("one") + map("two"));
  FakeApi::Outcome outcome = run({"delete", "-f", all, "-l", "app=web"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "configmap \"one\" deleted from default namespace\n");
  EXPECT_TRUE(there("two"));
  outcome = run({"delete", "-f", all, "-l", "app=other"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "No resources found\n");
  EXPECT_EQ(api_.objects(), objects_);
  expect_refused({"delete", "-f", all, "-l", "app in ("}, "app in (");
  expect_refused({"delete", "-f", all, "--field-selector", "metadata.name=one"}, "--field-selector selects nothing");
}

// Spaces are no selector: the server would take them for one that matches everything.
TEST_F(SelectionTest, a_selector_of_spaces_selects_nothing) {
  expect_refused({"delete", "configmaps", "-l", " "}, "no name was specified");
  expect_refused({"delete", "configmaps", "--field-selector", "  "}, "no name was specified");
  expect_refused({"label", "configmaps", "-l", " ", "x=y"}, "no name was specified");
  expect_refused({"scale", "deployments", "-l", " ", "--replicas=0"}, "no name was specified");
  expect_refused({"cordon", "-l", " "}, "is required");
  expect_refused({"taint", "nodes", "-l", " ", "k=v:NoExecute"}, "is required");
  expect_refused({"apply", "--prune", "-l", " ", "-f", file("one.yaml", map("one"))}, "without explicitly passing --all");
}

// "$A,$B" where neither is set. A server takes that for a field selector that matches everything.
TEST_F(SelectionTest, a_selector_of_commas_selects_nothing) {
  for (const char* commas : {",", " , ", ",,", " ,"}) {
    const std::string no_name = "no name was specified";
    expect_refused({"delete", "configmaps", "--field-selector", commas}, no_name);
    expect_refused({"delete", "configmaps", "-A", "--field-selector", commas}, no_name);
    expect_refused({"label", "configmaps", "--field-selector", commas, "x=y"}, no_name);
    expect_refused({"annotate", "configmaps", "--field-selector", commas, "x=y"}, no_name);
    expect_refused({"wait", "configmaps", "--for=delete", "--field-selector", commas}, no_name);
    EXPECT_EQ(run({"delete", "configmap", "none", "--field-selector", commas}).code, 1) << "it was named, not selected";
    std::string all = file("all.yaml", map("one") + map("two"));
    const std::string malformed = "unable to parse requirement";
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"delete", "configmaps"},
                                                                                       {"delete", "configmaps", "-A"},
                                                                                       {"delete", "-f", all},
                                                                                       {"label", "configmaps", "x=y"},
                                                                                       {"annotate", "configmaps", "x=y"},
                                                                                       {"label", "-f", all, "x=y"},
                                                                                       {"scale", "deployments", "--replicas=0"},
                                                                                       {"set", "image", "deployments", "main=y"},
                                                                                       {"set", "env", "deployments", "A=b"},
                                                                                       {"rollout", "restart", "deployments"},
                                                                                       {"describe", "configmaps"},
                                                                                       {"get", "configmaps"},
                                                                                       {"get", "-f", all},
                                                                                       {"wait", "configmaps", "--for=delete"},
                                                                                       {"apply", "-f", all},
                                                                                       {"apply", "--prune", "-f", all},
                                                                                       {"cordon"},
                                                                                       {"drain"},
                                                                                       {"taint", "nodes", "k=v:NoExecute"}}) {
      std::vector<std::string> line = words;
      line.insert(line.end(), {"-l", commas});
      expect_refused(line, malformed);
    }
  }
}

TEST_F(SelectionTest, cascade_is_one_of_three_words) {
  for (const char* wrong : {"--cascade=Foreground", "--cascade=backgruond", "--cascade=False1", "--cascade=", "--cascade=no"}) {
    const std::string said = "Must be \"background\", \"foreground\", or \"orphan\"";
    expect_refused({"delete", "configmap", "one", wrong}, said);
    expect_refused({"replace", "--force", "-f", file("one.yaml", map("one")), wrong}, said);
    expect_refused({"apply", "-f", file("one.yaml", map("one")), wrong}, said);
    expect_refused({"run", "x", "--image=y", wrong}, said);
  }
  for (auto [flag, propagation] : {std::pair{"--cascade=false", "Orphan"}, std::pair{"--cascade=False", "Orphan"},
                                   std::pair{"--cascade=true", "Background"}, std::pair{"--cascade", "Background"},
                                   std::pair{"--cascade=orphan", "Orphan"}, std::pair{"--cascade=foreground", "Foreground"}}) {
    FakeApi::Outcome outcome = run({"delete", "configmap", flag, "one"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    auto sent = api_.take_writes();
    ASSERT_EQ(sent.size(), 1u) << flag;
    EXPECT_EQ(get_string(sent[0].body, "propagationPolicy"), propagation) << flag;
  }
}

TEST_F(SelectionTest, an_old_cascade_is_warned_of_once) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"delete", "configmap", "one", "two", "--cascade=true"},
           {"apply", "-f", file("new.yaml", map("three") + map("four")), "--cascade=true"},
           {"apply", "--prune", "--all", "-f", file("new.yaml", map("three") + map("four")), "--cascade=true"},
           {"replace", "--force", "-f", file("all.yaml", map("one") + map("two")), "--cascade=true"}}) {
    FakeApi::Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err,
              "warning: --cascade=true is deprecated (boolean value) and can be replaced with --cascade=background.\n")
        << words.front();
  }
}

TEST_F(SelectionTest, nothing_is_killed_at_once_without_force) {
  auto grace = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"delete", "configmap", "one"};
    words.insert(words.end(), flags.begin(), flags.end());
    FakeApi::Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    auto sent = api_.take_writes();
    EXPECT_EQ(sent.size(), 1u);
    return sent.empty() ? -2 : get_int(sent[0].body, "gracePeriodSeconds", -1);
  };
  EXPECT_EQ(grace({}), -1);
  EXPECT_EQ(grace({"--grace-period=0"}), 1);
  EXPECT_EQ(grace({"--grace-period=7"}), 7);
  EXPECT_EQ(grace({"--now"}), 1);
  EXPECT_EQ(grace({"--force"}), 0);
  EXPECT_EQ(grace({"--force", "--grace-period=0"}), 0);
  EXPECT_EQ(run({"delete", "configmap", "one", "--force"}).out, "configmap \"one\" force deleted from default namespace\n");
  expect_refused({"delete", "configmap", "one", "--now", "--grace-period=3"}, "--now and --grace-period cannot be specified");
  expect_refused({"delete", "configmap", "one", "--now", "--force"}, "--force and --grace-period greater than 0");
  expect_refused({"delete", "configmap", "one", "--force", "--grace-period=3"}, "--force and --grace-period greater than 0");
}

TEST_F(SelectionTest, an_absent_object_is_a_failure_unless_it_was_selected) {
  EXPECT_EQ(run({"delete", "configmap", "none"}).code, 1);
  EXPECT_EQ(run({"delete", "configmap", "none", "--ignore-not-found"}).code, 0);
  std::string absent = file("none.yaml", map("none"));
  EXPECT_EQ(run({"delete", "-f", absent}).code, 1);
  EXPECT_EQ(run({"delete", "-f", absent, "-l", "app=db"}).code, 0);
  EXPECT_EQ(run({"delete", "-f", absent, "-l", "app=db", "--ignore-not-found=false"}).code, 1);
}

// ---- what contradicts itself ----

TEST_F(SelectionTest, words_files_selectors_and_all_exclude_each_other) {
  std::string all = file("all.yaml", map("one") + map("two"));
  const std::string beside_files = "you may not specify resource arguments as well",
                    tuple_beside_files = "resource/name arguments cannot be provided when a path is specified",
                    name_and_selector = "name cannot be provided when a selector is specified",
                    tuple_and_selector = "selectors and the all flag cannot be used when passing resource/name arguments",
                    no_kind = "at least one resource must be specified to use a selector",
                    no_name = "resource(s) were provided, but no name was specified",
                    everywhere = "a resource cannot be retrieved by name across all namespaces";
  struct Verb {
    std::vector<std::string> words, rest;
    std::string kind;
    bool has_all = true, has_selector = true, has_all_namespaces = false, takes_kind = false;
  };
  const std::vector<Verb> verbs = {
      {{"delete"}, {}, "configmap", true, true, true},
      {{"label"}, {"x=y"}, "configmap", true, true, true},
      {{"annotate"}, {"x=y"}, "configmap", true, true, true},
      {{"scale"}, {"--replicas=0"}, "deployment"},
      {{"patch"}, {"-p", "{}"}, "configmap"},
      {{"set", "image"}, {"main=y"}, "deployment"},
      {{"set", "env"}, {"A=b"}, "deployment"},
      {{"set", "resources"}, {"--limits=cpu=1"}, "deployment"},
      {{"set", "subject"}, {"--user=ann"}, "rolebinding"},
      {{"rollout", "restart"}, {}, "deployment", false, true, false, true},
      {{"rollout", "undo"}, {}, "deployment", false, true, false, true},
      {{"rollout", "pause"}, {}, "deployment", false, true, false, true},
      {{"rollout", "status"}, {}, "deployment", false, true, false, true},
      {{"rollout", "history"}, {}, "deployment", false, true, false, true},
      {{"expose"}, {"--port=80"}, "deployment", false, false},
      {{"autoscale"}, {"--max=3"}, "deployment", false, false},
      {{"wait"}, {"--for=delete", "--timeout=1s"}, "configmap", true, true, true},
      {{"get"}, {}, "configmap", false, true, true, true},
      {{"describe"}, {}, "configmap", false, true, true, true},
  };
  for (const Verb& verb : verbs) {
    auto refused = [&](std::vector<std::string> named, const std::string& text) {
      std::vector<std::string> words = verb.words;
      words.insert(words.end(), named.begin(), named.end());
      words.insert(words.end(), verb.rest.begin(), verb.rest.end());
      expect_refused(words, text);
    };
    std::string tuple = verb.kind + "/one";
    refused({verb.kind, "one", "-f", all}, beside_files);
    refused({verb.kind, "-f", all}, beside_files);
    refused({tuple, "-f", all}, tuple_beside_files);
    if (!verb.takes_kind) refused({verb.kind}, no_name);
    if (verb.has_selector) {
      refused({verb.kind, "one", "-l", "app=web"}, name_and_selector);
      refused({tuple, "-l", "app=web"}, tuple_and_selector);
      refused({verb.kind + ",pods", "one", "-l", "app=web"}, tuple_and_selector);
    }
    if (verb.has_all_namespaces) {
      refused({verb.kind, "one", "-A"}, everywhere);
      refused({tuple, "-A"}, everywhere);
    }
  }
  expect_refused({"delete", "configmap", "one", "--all"}, name_and_selector);
  expect_refused({"delete", "configmap/one", "--all"}, tuple_and_selector);
  expect_refused({"delete", "configmaps", "--all", "--", "one"}, name_and_selector);
  expect_refused({"delete", "--all"}, no_kind);
  expect_refused({"delete", "-l", "a=b"}, no_kind);
  expect_refused({"delete"}, "You must provide one or more resources");
  expect_refused({"delete", "configmaps", "--all", "-l", "a=b"}, "setting 'all' parameter but found a non empty selector");
  expect_refused({"label", "configmaps", "--all", "-l", "a=b", "x=y"}, "cannot set --all and --selector at the same time");
  expect_refused({"set", "env", "deployments", "--all", "-l", "a=b", "A=b"}, "cannot set --all and --selector at the same time");
}

TEST_F(SelectionTest, nodes_are_named_or_selected) {
  const std::string both = "cannot specify both a node name and a --selector option";
  for (const char* verb : {"cordon", "uncordon", "drain"}) {
    expect_refused({verb, "core", "-l", "a=b"}, both);
    expect_refused({verb}, std::string("USAGE: ") + verb + " NODE [flags]\nSee 'coraclectl " + verb + " -h'");
    expect_refused({verb, "pod/edge"}, "expected resource of type node");
    expect_refused({verb, ""}, "resource name may not be empty");
  }
  expect_refused({"taint", "nodes", "core", "-l", "a=b", "k=v:NoSchedule"}, both);
  expect_refused({"taint", "nodes", "core", "--all", "k=v:NoSchedule"}, "cannot specify both a node name and --all");
  expect_refused({"taint", "nodes", "--all", "-l", "a=b", "k=v:NoSchedule"}, "with a non empty selector is prohibited");
  expect_refused({"taint", "nodes", "core", "k=v:NoSchedule", "edge"},
                 "all resources must be specified before taint changes: edge");
  expect_refused({"taint", "nodes", "k=v:NoSchedule"},
                 "at least one resource name must be specified since 'all' parameter is not set");
  expect_refused({"taint", "k=v:NoSchedule"}, "one or more resources must be specified as <resource> <name>");
  expect_refused({"taint", "nodes", "core"}, "error: at least one taint update is required\n");
  expect_refused({"taint", "nodes", "core", "k=v:No"}, "See 'coraclectl taint -h' for help and examples");
  FakeApi::Outcome outcome = run({"cordon", "-l", "a=b"});
  EXPECT_EQ(outcome.out, "node/edge cordoned\n") << outcome.err;
}

TEST_F(SelectionTest, files_are_selected_by_the_labels_of_the_live_objects) {
  std::string all = file("all.yaml", map("one") + map("two"));
  FakeApi::Outcome outcome = run({"label", "-f", all, "-l", "app=db", "x=y"});
  EXPECT_EQ(outcome.out, "configmap/two labeled\n") << outcome.err;
  outcome = run({"get", "-f", all, "-l", "app=web", "-o", "name"});
  EXPECT_EQ(outcome.out, "configmap/one\n") << outcome.err;
}

// As kubectl, which reads the objects before it selects among them.
TEST_F(SelectionTest, get_and_wait_look_at_the_labels_that_objects_have_now) {
  std::string old =
      file("old.yaml", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {app: old}}\n" + map("two"));
  FakeApi::Outcome outcome = run({"get", "-f", old, "-l", "app=web", "-o", "name"});
  EXPECT_EQ(outcome.out, "configmap/one\n") << outcome.err;
  outcome = run({"get", "-f", old, "-l", "app=web", "-o", "jsonpath={.kind} {.metadata.name}"});
  EXPECT_EQ(outcome.out, "ConfigMap one") << outcome.err;
  outcome = run({"get", "-f", old, "-l", "app=web", "--no-headers"});
  EXPECT_TRUE(outcome.out.starts_with("one ") && outcome.out.find("two") == std::string::npos) << outcome.out << outcome.err;
  outcome = run({"get", "-f", old, "-l", "app=old"});
  EXPECT_EQ(outcome.out + outcome.err, "No resources found in default namespace.\n");
  EXPECT_EQ(outcome.code, 0);
  outcome = run({"get", "-f", file("none.yaml", map("none")), "-l", "app=db"});
  EXPECT_EQ(outcome.err, "Error from server (NotFound): configmaps \"none\" not found\n");
  EXPECT_EQ(outcome.code, 1);
  const std::string found = "jsonpath={.metadata.name}";
  outcome = run({"wait", "-f", old, "-l", "app=web", "--for=" + found, "--timeout=0s"});
  EXPECT_EQ(outcome.out, "configmap/one condition met\n") << outcome.err;
  outcome = run({"wait", "-f", old, "-l", "app=old", "--for=" + found, "--timeout=0s"});
  EXPECT_NE(outcome.err.find("no matching resources found"), std::string::npos) << outcome.err;
}

TEST_F(SelectionTest, a_command_in_a_container_stands_behind_the_dashes) {
  api_.put(
      "/api/v1/namespaces/default/pods/web",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"},"spec":{"containers":[{"name":"c"}]}})");
  objects_ = api_.objects();
  const std::string refused = "stands between the pod and --";
  expect_refused({"exec", "web", "rm", "--", "/data"}, "\"rm\" " + refused);
  expect_refused({"exec", "web", "-c", "c", "rm", "-i", "--", "/data"}, "\"rm\" " + refused);
  expect_refused({"exec", "-f", file("web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"), "rm", "--", "/data"},
                 "\"rm\" " + refused);
  expect_refused({"exec", "web", "rm", "/data"}, "exec [POD] [COMMAND] is not supported anymore");
}

TEST_F(SelectionTest, words_behind_the_dashes_are_the_programs_or_arguments) {
  const std::vector<std::string> program = {"sh", "-c", "x", "--image=other", "--"};
  for (const auto& [words, field] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"create", "deployment", "made", "--image=a"}, "spec.template.spec.containers"},
           {{"create", "job", "made", "--image=a"}, "spec.template.spec.containers"},
           {{"create", "cj", "made", "--image=a", "--schedule=@daily"}, "spec.jobTemplate.spec.template.spec.containers"},
           {{"run", "made", "--image=a", "--command"}, "spec.containers"}}) {
    std::vector<std::string> line = words;
    for (const char* word : {"--dry-run=client", "-o", "json", "--"}) line.emplace_back(word);
    line.insert(line.end(), program.begin(), program.end());
    FakeApi::Outcome outcome = run(line);
    auto made = parse_json(outcome.out);
    ASSERT_TRUE(made) << outcome.out << outcome.err;
    const json::array& containers = get_array(*made, field);
    ASSERT_EQ(containers.size(), 1u) << outcome.out;
    EXPECT_EQ(get_string(containers.front(), "image"), "a");
    EXPECT_EQ(to_text(*find(containers.front(), "command")), R"(["sh","-c","x","--image=other","--"])");
  }
  FakeApi::Outcome labelled = run({"label", "configmaps", "one", "--", "x=y"});
  EXPECT_EQ(labelled.out, "configmap/one labeled\n") << labelled.err;
}

TEST_F(SelectionTest, a_second_word_of_logs_is_a_container) {
  api_.put(
      "/api/v1/namespaces/default/pods/web",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"},"spec":{"containers":[{"name":"c"}]}})");
  objects_ = api_.objects();
  expect_refused({"logs", "pod/web", "pod/other"}, "container pod/other is not valid for pod web out of: c");
  expect_refused({"logs", "web", "c", "-c", "c"}, "only one of -c or an inline [CONTAINER] arg is allowed");
  expect_refused({"logs", "configmap/one"}, "cannot get the logs from *v1.ConfigMap: selector for *v1.ConfigMap not implemented");
}

TEST_F(SelectionTest, cp_is_between_here_and_a_pod) {
  expect_refused({"cp", "web:/a", "default/web:/b"}, "one of src or dest must be a local file specification");
  expect_refused({"cp", "a", "b"}, "one of src or dest must be a remote file specification");
  expect_refused({"cp", directory_ + "/none", "web:/b"}, "/none doesn't exist in local filesystem");
  expect_refused({"cp", directory_, "web:"}, "filepath can not be empty");
}

TEST_F(SelectionTest, a_watch_is_of_one_object_or_of_a_kind) {
  expect_refused({"get", "configmaps", "one", "two", "-w"}, "watch is only supported on individual resources");
  expect_refused({"get", "configmaps,pods", "--watch-only"}, "you may only specify a single resource type");
}

TEST_F(SelectionTest, what_is_wrong_is_said_before_anything_is_done) {
  expect_refused({"drain", "edge", "--pod-selector", "a in ("}, "--pod-selector=<pod_selector> must be a valid label selector");
  expect_refused({"logs", "one", "two", "three"}, "POD or TYPE/NAME is a required argument");
  expect_refused({"scale", "deployment", "web", "--replicas=x"},
                 "invalid argument \"x\" for \"--replicas\" flag: strconv.ParseInt: parsing \"x\": invalid syntax");
}

// ---- no name ----

TEST_F(SelectionTest, what_has_no_name_is_never_all_of_its_kind) {
  const std::string kRbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/";
  api_.put(kRbac + "readers", R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"readers",
           "namespace":"default"},"roleRef":{"kind":"Role","name":"a","apiGroup":"rbac.authorization.k8s.io"}})");
  objects_ = api_.objects();
  std::string binding = file("binding.yaml",
                             "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {}\n"
                             "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: b}\n");
  std::string role = file("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {}\nrules: []\n");
  std::string nameless = file("nameless.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {app: web}}\n");
  std::string deployment = file("deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {}\n");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"auth", "reconcile", "-f", binding},
           {"auth", "reconcile", "-f", role},
           {"delete", "-f", nameless},
           {"delete", "-f", nameless, "--dry-run=client"},
           {"delete", "configmap", ""},
           {"delete", "configmaps,pods", ""},
           {"replace", "-f", nameless},
           {"replace", "--force", "-f", nameless},
           {"apply", "-f", nameless},
           {"apply", "--server-side", "-f", nameless},
           {"apply", "set-last-applied", "--create-annotation", "-f", nameless},
           {"patch", "-f", nameless, "-p", "{}"},
           {"patch", "configmap", "", "-p", "{}"},
           {"label", "-f", nameless, "x=y"},
           {"annotate", "-f", nameless, "x=y"},
           {"edit", "-f", nameless},
           {"scale", "-f", deployment, "--replicas=0"},
           {"set", "image", "-f", deployment, "main=x"},
           {"set", "env", "-f", deployment, "A=b"},
           {"rollout", "restart", "-f", deployment},
           {"expose", "-f", deployment, "--port=80"},
           {"autoscale", "-f", deployment, "--max=2"},
           {"taint", "nodes", "", "a=b:NoSchedule"},
           {"certificate", "approve", ""},
           {"create", "token", ""},
           {"wait", "-f", nameless, "--for=delete"},
           {"get", "-f", nameless},
           {"describe", "-f", nameless},
           {"logs", ""},
           {"exec", "", "--", "true"},
       })
    expect_refused(words, "name");
}

TEST_F(SelectionTest, a_name_is_no_way_to_another_path) {
  for (const char* name : {"..", "."})
    for (const char* verb : {"delete", "get", "describe"})
      expect_refused({verb, "configmap", name},
                     "invalid resource name \"" + std::string(name) + "\": [may not be '" + name + "']");
  EXPECT_EQ(run({"get", "--raw", "/api/v1/"}).err, "") << "a path that was typed is sent as it is";
}

// ---- where files are ----

TEST_F(SelectionTest, patterns_are_files) {
  file("in/a.yaml", map("one"));
  file("in/b.json", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"}})");
  file("in/c.txt", map("three"));
  file("in/d[1].yaml", map("two"));
  file("in/deeper/e.yaml", map("four"));
  auto applied = [&](const std::vector<std::string>& files) {
    std::vector<std::string> words = {"apply", "-o", "name"};
    for (const auto& name : files) words.insert(words.end(), {"-f", name.starts_with('-') ? name : directory_ + "/in/" + name});
    FakeApi::Outcome outcome = run(words);
    return outcome.code == 0 ? outcome.out : outcome.err;
  };
  const std::string one = "configmap/one\n", two = "configmap/two\n", three = "configmap/three\n", four = "configmap/four\n";
  EXPECT_EQ(applied({"*.yaml"}), one + two);
  EXPECT_EQ(applied({"[ab].*"}), one + two);
  EXPECT_EQ(applied({"?.txt"}), three) << "what is named need not have the extension of a manifest";
  EXPECT_EQ(applied({"d[1].yaml"}), two) << "a path that is there is no pattern";
  EXPECT_EQ(applied({"d\\[1\\].yaml"}), two);
  EXPECT_EQ(applied({"*/*.yaml"}), four);
  EXPECT_EQ(applied({"d*"}), two + four) << "directories match too";
  EXPECT_EQ(applied({""}), one + two + two);
  EXPECT_NE(applied({"x*.yaml"}).find("x*.yaml\" does not exist"), std::string::npos);
  std::filesystem::create_directory(directory_ + "/in/none");
  EXPECT_EQ(applied({"none"}),
            "error: error reading [" + directory_ + "/in/none]: recognized file extensions are [.json .yaml .yml]\n");
  EXPECT_EQ(applied({"a.yaml", "none"}), one);
}

TEST_F(SelectionTest, directories_are_read_in_order_and_with_recursive_all_the_way) {
  file("in/b/x.yaml", map("two"));
  file("in/b-.yaml", map("three"));
  file("in/a.yaml", map("one"));
  EXPECT_EQ(run({"apply", "-f", directory_ + "/in", "-o", "name"}).out, "configmap/one\nconfigmap/three\n");
  EXPECT_EQ(run({"apply", "-R", "-f", directory_ + "/in", "-o", "name"}).out, "configmap/one\nconfigmap/two\nconfigmap/three\n");
}

// Reads files as somebody whom permissions stop, which are nothing to root.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0) ::setfsuid(65534);
  }
  ~AsNobody() {
    if (::geteuid() == 0) ::setfsuid(0);
  }
};

TEST_F(SelectionTest, what_cannot_be_read_is_not_taken_for_absent) {
  file("in/a.yaml", map("one"));
  file("in/locked/b.yaml", map("two"));
  const std::string in = directory_ + "/in", locked = in + "/locked";
  ::chmod(directory_.c_str(), 0755);
  ::chmod(locked.c_str(), 0);
  auto sources = [&](const std::string& name, bool recursive) -> std::string {
    AsNobody nobody;
    auto found = manifest_sources({name}, recursive);
    return found ? join(*found, " ") : found.error().text();
  };
  bool stopped = false;
  {
    AsNobody nobody;
    stopped = sys::list(in) && !sys::list(locked);
  }
  if (stopped) {
    EXPECT_EQ(sources(in, false), in + "/a.yaml");
    for (auto [name, recursive] : {std::pair{in, true}, std::pair{locked, false}, std::pair{in + "/*/*.yaml", false},
                                   std::pair{in + "/*/b.yaml", false}}) {
      std::string text = sources(name, recursive);
      EXPECT_NE(text.find("/in/locked"), std::string::npos) << name << ": " << text;
      EXPECT_NE(text.find("Permission denied"), std::string::npos) << name << ": " << text;
    }
    AsNobody nobody;
    auto made = read_data({{}, {locked}, {}}, "ConfigMap", "c");
    ASSERT_FALSE(made);
    EXPECT_TRUE(made.error().text().starts_with("error listing files in " + locked)) << made.error().text();
  }
  ::chmod(locked.c_str(), 0755);
  EXPECT_EQ(sources(in, true), in + "/a.yaml " + locked + "/b.yaml");
}

TEST_F(SelectionTest, a_directory_is_no_file) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"get", "pods", "--kubeconfig", directory_},
                                             {"get", "pods", "--certificate-authority", directory_},
                                             {"patch", "configmap", "one", "--patch-file", directory_},
                                             {"create", "configmap", "x", "--from-env-file", directory_},
                                             {"create", "secret", "tls", "x", "--cert", directory_, "--key", directory_},
                                             {"get", "pods", "-o", "go-template-file=" + directory_},
                                             {"get", "pods", "-o", "custom-columns-file=" + directory_},
                                             {"replace", "--raw", "/api/v1", "-f", directory_}})
    expect_refused(words, "");
}

TEST_F(SelectionTest, no_object_is_said) {
  std::string nothing = file("nothing.yaml", "# nothing\n");
  expect_refused({"patch", "-f", nothing, "-p", "{}"}, "no objects passed to patch");
  expect_refused({"autoscale", "-f", nothing, "--max=2"}, "no objects passed to autoscale");
  expect_refused({"scale", "-f", nothing, "--replicas=2"}, "no objects passed to scale");
  expect_refused({"edit", "-f", nothing}, "no objects found");
  expect_refused({"apply", "-f", nothing}, "no objects passed to apply");
  FakeApi::Outcome replaced = run({"replace", "-f", nothing});
  EXPECT_EQ(replaced.code, 0) << "kubectl counts none here";
  EXPECT_EQ(replaced.out + replaced.err, "");
  replaced = run({"replace", "--force", "-f", nothing});
  EXPECT_EQ(replaced.code, 1);
  EXPECT_EQ(replaced.out, "No resources found\n");
  EXPECT_EQ(replaced.err, "error: no objects passed to replace\n");
  for (const char* verb : {"restart", "undo", "pause", "status"})
    EXPECT_EQ(run({"rollout", verb, "-f", nothing}).err, "No resources found in default namespace.\n") << verb;
}

TEST_F(SelectionTest, standard_input_is_read_once) {
  expect_refused({"apply", "-f", "-", "-f", "-"}, "standard input cannot be used for multiple arguments");
  expect_refused({"delete", "-f", "-,-"}, "standard input cannot be used for multiple arguments");
}

}  // namespace
}  // namespace coracle::ctl
