// SPDX-License-Identifier: Apache-2.0
// A single invalid kind, name, file or document does not stop the rest: the others are processed, each error is reported, and the
// exit code is 1.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kKeptMaps = "/api/v1/namespaces/default/configmaps/";

class KeepGoingTest : public testing::Test {
 protected:
  KeepGoingTest() {
    directory_ = testing::TempDir() + "/keep-going-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    for (std::string name : {"one", "two"}) put_map(name);
    api_.put("/api/v1/namespaces/default/pods/web",
             R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default","uid":"p"}})");
  }
  ~KeepGoingTest() override { std::filesystem::remove_all(directory_); }
  void put_map(const std::string& name) {
    api_.put(kKeptMaps + name, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","uid":"u-)" + name +
                                   R"(","name":")" + name + R"("}})");
  }
  static std::string map(const std::string& name) {
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: b}\n";
  }
  // A directory with four faults: a file that is not YAML, a document that is not an object, a document of an unknown kind, and
  // one without a name.
  std::string directory() {
    auto file = [&](const std::string& name, const std::string& text) { std::ofstream(directory_ + "/" + name) << text; };
    file("a.yaml", map("one"));
    file("b.yaml", "a: [1\n");
    file("c.yaml", map("two") + "---\nkind: {\n---\napiVersion: v9\nkind: Gadget\nmetadata: {name: g}\n---\n" + map("three"));
    file("d.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n");
    return directory_;
  }
  void expect_errors(const FakeApi::Outcome& outcome, const std::vector<std::string>& texts) {
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    for (const auto& text : texts) EXPECT_NE(outcome.err.find(text), std::string::npos) << text << "\n" << outcome.err;
  }
  bool there(const std::string& name) const { return api_.objects().contains(kKeptMaps + name); }

  FakeApi api_;
  std::string directory_;
};

TEST_F(KeepGoingTest, get_of_several_kinds) {
  FakeApi::Outcome outcome = api_.run({"get", "pods,pdos,configmaps"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("pod/web"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("configmap/two"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.err, "error: the server doesn't have a resource type \"pdos\"; did you mean \"pods\"?\n");
  outcome = api_.run({"get", "pods,pdos,gadgets", "-o", "name"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "pod/web\n");
  EXPECT_EQ(outcome.err,
            "the server doesn't have a resource type \"pdos\"; did you mean \"pods\"?\n"
            "the server doesn't have a resource type \"gadgets\"\n");
  outcome = api_.run({"get", "pdos"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
}

TEST_F(KeepGoingTest, get_of_several_names) {
  FakeApi::Outcome outcome = api_.run({"get", "configmaps", "one", "none", "two", "-o", "name"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "configmap/one\nconfigmap/two\n");
  EXPECT_EQ(outcome.err, "Error from server (NotFound): configmaps \"none\" not found\n");
  outcome = api_.run({"get", "configmap/one", "gadget/x", "pod/none", "pod/web", "-o", "name"});
  EXPECT_EQ(outcome.out, "configmap/one\npod/web\n");
  expect_errors(outcome, {"resource type \"gadget\"", "pods \"none\" not found"});
  EXPECT_EQ(api_.run({"get", "configmaps", "one", "none", "-o", "name", "--ignore-not-found"}).code, 0);
}

TEST_F(KeepGoingTest, apply_of_a_directory) {
  FakeApi::Outcome outcome = api_.run({"apply", "-f", directory()});
  EXPECT_EQ(outcome.out, "configmap/one configured\nconfigmap/two configured\nconfigmap/three created\n");
  expect_errors(outcome,
                {"b.yaml: ", "c.yaml: ", "c.yaml:8\": no matches for kind \"Gadget\"", "cannot use generate name with apply"});
  EXPECT_EQ(outcome.err.find("c.yaml: ") == outcome.err.rfind("c.yaml: "), true) << outcome.err;
}

TEST_F(KeepGoingTest, create_of_a_directory) {
  FakeApi::Outcome outcome = api_.run({"create", "-f", directory()});
  EXPECT_NE(outcome.out.find("configmap/three created\n"), std::string::npos) << outcome.out;
  expect_errors(outcome, {"b.yaml: ", "c.yaml: ", "configmaps/one already exists", "configmaps/two already exists"});
}

TEST_F(KeepGoingTest, replace_of_a_directory) {
  FakeApi::Outcome outcome = api_.run({"replace", "-f", directory()});
  EXPECT_EQ(outcome.out, "configmap/one replaced\nconfigmap/two replaced\n");
  expect_errors(outcome, {"b.yaml: ", "c.yaml: ", "\"three\" not found", "metadata.name is missing"});
}

// The path of an object without a name is that of the whole collection.
TEST_F(KeepGoingTest, delete_of_a_directory_spares_what_has_no_name) {
  put_map("bystander");
  FakeApi::Outcome outcome = api_.run({"delete", "-f", directory()});
  expect_errors(outcome, {"b.yaml: ", "c.yaml: ", "\"three\" not found", "resource name may not be empty"});
  EXPECT_FALSE(there("one"));
  EXPECT_FALSE(there("two"));
  EXPECT_TRUE(there("bystander"));
  expect_errors(api_.run({"delete", "configmap", ""}), {"resource name may not be empty"});
  expect_errors(api_.run({"delete", "configmap", "bystander", "--all"}),
                {"name cannot be provided when a selector is specified"});
  EXPECT_TRUE(there("bystander"));
}

TEST_F(KeepGoingTest, delete_waits_for_none_when_one_failed) {
  for (const char* name : {"one", "two"}) put_map(name), api_.hold(kKeptMaps + name);
  FakeApi::Outcome outcome = api_.run({"delete", "configmap", "one", "none", "two", "--timeout=20ms"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "Error from server (NotFound): configmaps \"none\" not found\n");
  outcome = api_.run({"delete", "configmap", "one", "two", "--timeout=20ms"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "error: timed out waiting for the condition on configmaps/one\n");
  EXPECT_EQ(api_.run({"delete", "configmap", "one", "two", "--wait=false"}).code, 0);
}

TEST_F(KeepGoingTest, label_of_a_directory) {
  FakeApi::Outcome outcome = api_.run({"label", "-f", directory(), "x=y"});
  EXPECT_EQ(outcome.out, "configmap/one labeled\nconfigmap/two labeled\n");
  expect_errors(outcome, {"b.yaml: ", "c.yaml: ", "\"three\" not found", "resource name may not be empty"});
}

// With an absent path, the user is probably in the wrong directory.
TEST_F(KeepGoingTest, a_path_that_is_not_there_stops_all_before_anything_is_done) {
  std::ofstream(directory_ + "/three.yaml") << map("three");
  for (const char* verb : {"apply", "create", "delete", "replace"}) {
    FakeApi::Outcome outcome = api_.run({verb, "-f", directory_ + "/three.yaml", "-f", directory_ + "/none.yaml"});
    expect_errors(outcome, {"none.yaml\" does not exist"});
    EXPECT_TRUE(api_.take_writes().empty()) << verb;
  }
}

TEST_F(KeepGoingTest, delete_by_kinds_refuses_all_when_it_does_not_know_one) {
  expect_errors(api_.run({"delete", "configmaps,pdos", "--all"}), {"resource type \"pdos\""});
  EXPECT_TRUE(api_.take_writes().empty());
}

// ---- warnings and messages of the server ----

TEST_F(KeepGoingTest, a_warning_is_said_once) {
  api_.warn("beware of this");
  FakeApi::Outcome outcome = api_.run({"get", "pods,configmaps"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "Warning: beware of this\n");
}

TEST_F(KeepGoingTest, nothing_of_an_object_reaches_the_terminal_as_a_command) {
  api_.put(kKeptMaps + "evil", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"evil","uid":"e",
           "annotations":{"note":"\u001b]0;pwned\u0007\u202e"},"labels":{"l":"\u009b2J"}},"data":{"k":"a\u001bc\r\nb"}})");
  api_.put("/api/v1/namespaces/default/events/e",
           R"({"apiVersion":"v1","kind":"Event","metadata":{"namespace":"default","name":"e"},
           "involvedObject":{"kind":"Pod","name":"web"},"type":"Normal","reason":"R","message":"\u001b[2Jprobe\u007f"})");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"describe", "configmap", "evil"},
                                             {"events"},
                                             {"get", "configmap", "-o", "custom-columns=A:.metadata.annotations.note,B:.data.k"},
                                             {"get", "configmaps", "-L", "l", "--show-labels"},
                                             {"annotate", "configmap", "evil", "--list"},
                                             {"get", "configmap", "\x1b[31mnone"},
                                             {"get", "\x1b[31mnone"}}) {
    FakeApi::Outcome outcome = api_.run(words);
    for (const std::string& text : {outcome.out, outcome.err})
      for (const char* raw : {"\x1b", "\x07", "\r", "\x7f", "\u202e", "\u009b"})
        EXPECT_EQ(text.find(raw), std::string::npos) << words[0] << " " << words.back() << "\n" << text;
    EXPECT_NE((outcome.out + outcome.err).find_first_of("^\\"), std::string::npos)
        << words[0] << " " << outcome.out << outcome.err;
  }
  EXPECT_EQ(api_.run({"get", "configmap", "evil", "-o", "jsonpath={.data.k}"}).out,
            "a\x1b"
            "c\r\nb")
      << "a program reads this";
}

// ---- from client-side to server-side apply ----

TEST_F(KeepGoingTest, server_side_apply_takes_over_from_client_side) {
  std::ofstream(directory_ + "/three.yaml") << map("three");
  api_.put(kKeptMaps + "three",
           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"three","uid":"u",
    "resourceVersion":"5","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"managedFields":[
      {"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":
        {"f:data":{"f:old":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}}]},
    "data":{"old":"1"}})");
  FakeApi::Outcome outcome = api_.run({"apply", "--server-side", "-f", directory_ + "/three.yaml"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "configmap/three serverside-applied\n");
  std::vector<std::string> sent;
  for (const auto& one : api_.take_writes()) sent.push_back(one.content_type + " " + one.query.at("fieldManager"));
  EXPECT_EQ(sent,
            (std::vector<std::string>{"application/apply-patch+yaml kubectl", "application/apply-patch+yaml kubectl-last-applied",
                                      "application/json-patch+json kubectl", "application/apply-patch+yaml kubectl"}));
  const json::value after = api_.objects().at(kKeptMaps + "three");
  ASSERT_EQ(get_array(after, "metadata.managedFields").size(), 1u);
  EXPECT_EQ(get_string(get_array(after, "metadata.managedFields")[0], "manager"), "kubectl");
  // The migration happens once: the next time the object is only applied.
  (void)api_.run({"apply", "--server-side", "--field-manager=other", "-f", directory_ + "/three.yaml"});
  EXPECT_EQ(api_.take_writes().size(), 1u);
}

}  // namespace
}  // namespace coracle::ctl
