// SPDX-License-Identifier: Apache-2.0
// get against a server that stores objects: tables of several kinds, what is watched, and what the flags refuse.
#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

class GetTest : public testing::Test {
 protected:
  GetTest() {
    put("ConfigMap", "configmaps", "a");
    put("ConfigMap", "configmaps", "c");
    put("Service", "services", "b");
  }
  void put(const std::string& kind, const std::string& resource, const std::string& name) {
    api_.put("/api/v1/namespaces/default/" + resource + "/" + name, R"({"apiVersion":"v1","kind":")" + kind +
                                                                        R"(","metadata":{"name":")" + name +
                                                                        R"(","namespace":"default","managedFields":[]}})");
  }
  FakeApi::Outcome get(std::vector<std::string> words) {
    words.insert(words.begin(), "get");
    return api_.run(words);
  }

  FakeApi api_;
};

TEST_F(GetTest, an_empty_line_stands_before_a_line_of_column_names) {
  EXPECT_EQ(get({"configmaps,services"}).out, "NAME\nconfigmap/a\nconfigmap/c\n\nNAME\nservice/b\n");
  EXPECT_EQ(get({"configmaps,services", "--no-headers"}).out, "configmap/a\nconfigmap/c\nservice/b\n");
}

TEST_F(GetTest, names_keep_their_order) {
  EXPECT_EQ(get({"cm/c", "svc/b", "cm/a", "-o", "name"}).out, "configmap/c\nservice/b\nconfigmap/a\n");
  // The server of this test makes tables of lists only: these are ours, with ages.
  EXPECT_EQ(get({"cm/c", "svc/b", "cm/a", "--no-headers"}).out,
            "configmap/c   <unknown>\nservice/b   <unknown>\nconfigmap/a   <unknown>\n");
  EXPECT_EQ(get({"cm/c", "cm/a", "--no-headers"}).out, "c     <unknown>\na     <unknown>\n");
  EXPECT_EQ(get({"cm,services,cm", "--no-headers"}).out, "configmap/a\nconfigmap/c\nservice/b\n");
}

// Their kinds stand before names where several kinds are shown, not where several are asked for.
TEST_F(GetTest, what_is_missing_is_no_kind) {
  FakeApi::Outcome outcome = get({"cm/a", "svc/none"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "NAME   AGE\na      <unknown>\n");
  EXPECT_EQ(outcome.err, "Error from server (NotFound): services \"none\" not found\n");
}

TEST_F(GetTest, nothing_is_in_a_namespace_if_all_could_be) {
  EXPECT_EQ(get({"cm,svc", "-l", "none=none"}).err, "No resources found in default namespace.\n");
  EXPECT_EQ(get({"cm,nodes", "-l", "none=none"}).err, "No resources found\n");
}

// The server of this test ends each watch at once.
TEST_F(GetTest, what_is_watched_is_printed_one_by_one) {
  EXPECT_EQ(get({"cm", "-w", "-o", "name"}).out, "configmap/a\nconfigmap/c\n");
  const std::string yaml = get({"cm", "-w", "-o", "yaml"}).out;
  EXPECT_EQ(yaml.find("kind: List"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("\n---\napiVersion: v1\nkind: ConfigMap\n"), std::string::npos) << yaml;
  EXPECT_EQ(get({"cm", "--watch-only", "-o", "name"}).out, "");
}

TEST_F(GetTest, events_of_a_watch_say_what_happened) {
  const std::string object = R"("kind":"ConfigMap","metadata":{"managedFields":[],"name":"a","namespace":"default"}}})";
  EXPECT_EQ(get({"cm", "a", "-w", "--output-watch-events", "-o", "json"}).out,
            R"({"type":"ADDED","object":{"apiVersion":"v1",)" + object + "\n");
  EXPECT_EQ(get({"cm", "-w", "--output-watch-events", "-o", "jsonpath={.type} {.object.metadata.name},"}).out,
            "ADDED a,ADDED c,");
  EXPECT_TRUE(get({"cm", "a", "-w", "--output-watch-events", "-o", "yaml"}).out.starts_with("object:\n  apiVersion: v1\n"));
  EXPECT_EQ(get({"cm", "-w", "--output-watch-events", "-o", "name"}).out, "configmap/a\nconfigmap/c\n");
  EXPECT_EQ(get({"cm", "-w", "--output-watch-events"}).out, "EVENT      NAME\nADDED      a\nADDED      c\n");
}

TEST_F(GetTest, flags_that_do_not_go_together) {
  EXPECT_EQ(get({"cm", "-w", "--sort-by=.metadata.name"}).err,
            "warning: --watch requested, --sort-by will be ignored for watch events received\n");
  EXPECT_EQ(get({"cm", "--watch-only", "--sort-by=.metadata.name"}).err,
            "warning: --watch-only requested, --sort-by will be ignored\n");
  EXPECT_TRUE(get({"-w"}).err.starts_with("error: You must provide one or more resources by argument or filename.\n"));
  EXPECT_EQ(get({"--raw", "/version", "-o", "json"}).err, "error: --raw and --output are mutually exclusive\n");
  EXPECT_EQ(get({"--raw", "/version", "-w"}).err,
            "error: --raw may not be specified with other flags that filter the server request or alter the output\n");
}

}  // namespace
}  // namespace coracle::ctl
