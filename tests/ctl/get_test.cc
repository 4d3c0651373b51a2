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

TEST_F(GetTest, flags_may_be_written_with_other_dashes) {
  EXPECT_EQ(get({"cm", "--no_headers"}).out, "a\nc\n");
  EXPECT_EQ(get({"cm", "--no_headers=false"}).out, "NAME\na\nc\n");
  FakeApi::Outcome outcome = get({"cm", "--no_such_flag"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("--no_such_flag"), std::string::npos) << outcome.err;
}

TEST_F(GetTest, warnings_may_count_as_errors) {
  api_.warn("old");
  FakeApi::Outcome outcome = get({"cm", "--no-headers", "--warnings-as-errors"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "a\nc\n");
  EXPECT_EQ(outcome.err, "Warning: old\nerror: 1 warning received\n");
  EXPECT_EQ(get({"cm", "--no-headers"}).code, 0);
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

// The server may have forgotten the revision at which an object was changed last.
TEST_F(GetTest, a_single_object_is_watched_from_now) {
  auto object = [](const char* revision) {
    return std::string(
               R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","resourceVersion":")") +
           revision + R"("}})";
  };
  auto event = [&](const char* type, const char* revision) {
    return std::string(R"({"type":")") + type + R"(","object":)" + object(revision) + "}\n";
  };
  api_.put("/api/v1/namespaces/default/configmaps/a", object("5"));
  const std::string shown = "jsonpath={.metadata.resourceVersion},";
  api_.answer_watches(event("ADDED", "5") + event("MODIFIED", "6"));
  EXPECT_EQ(get({"cm", "a", "-w", "-o", shown}).out, "5,6,");
  EXPECT_EQ(get({"cm", "a", "--watch-only", "-o", shown}).out, "6,");
  api_.answer_watches(event("ADDED", "6"));
  EXPECT_EQ(get({"cm", "a", "-w", "-o", shown}).out, "5,6,") << "it was changed meanwhile";
  for (const FakeApi::Sent& watch : api_.take_watches()) {
    EXPECT_EQ(watch.query.at("resourceVersion"), "0");
    EXPECT_EQ(watch.query.at("fieldSelector"), "metadata.name=a");
  }
  EXPECT_EQ(get({"cm", "-w", "-o", "name"}).out, "configmap/a\nconfigmap/c\nconfigmap/a\n");
  ASSERT_EQ(api_.take_watches().size(), 1u);
  get({"cm", "-w", "-o", "name"});
  EXPECT_EQ(api_.take_watches().front().query.at("resourceVersion"), "1") << "the list's";
}

TEST_F(GetTest, a_table_of_a_single_object_goes_on_with_its_changes) {
  auto table = [](const char* revision, const char* columns) {
    return std::string(R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[)") + columns +
           R"(],"rows":[{"cells":["a"],"object":{"metadata":{"name":"a","resourceVersion":")" + revision + R"("}}}]})";
  };
  api_.put("/api/v1/namespaces/default/configmaps/a", table("5", R"({"name":"Name","format":"name"})"));
  api_.answer_watches(R"({"type":"ADDED","object":)" + table("5", R"({"name":"Name","format":"name"})") +
                      "}\n{\"type\":\"MODIFIED\",\"object\":" + table("6", "") + "}\n");
  EXPECT_EQ(get({"cm", "a", "-w"}).out, "NAME\na\na\n");
}

TEST_F(GetTest, requests_are_told_as_client_go_does) {
  const std::string url = "verb=\"GET\" url=\"" + api_.url() + "/api/v1/namespaces/default/configmaps/";
  std::string told = get({"cm", "a", "-v=6"}).err;
  EXPECT_EQ(told.find("\"Response\" " + url + "a\" status=\"200 OK\" milliseconds="), 0u) << told;
  told = get({"cm", "none", "-v=6"}).err;
  EXPECT_EQ(told.find("\"Response\" " + url + "none\" status=\"404 Not Found\" milliseconds="), 0u) << told;
  told = get({"cm", "a", "-v=7"}).err;
  EXPECT_EQ(told.find("\"Request\" " + url + "a\"\n\"Response\" status=\"200 OK\" milliseconds="), 0u) << told;
  told = get({"cm", "-l", "a=b", "-v=6"}).err;
  EXPECT_NE(told.find("/configmaps?labelSelector=a%3Db&limit=500\" status=\"200 OK\""), std::string::npos) << told;
  EXPECT_EQ(get({"cm", "a", "-v=5"}).err, "");
  told = get({"cm", "a", "-v=6", "--server=http://me:secret@" + api_.url().substr(std::string("http://").size())}).err;
  EXPECT_EQ(told.find("\"Response\" " + url + "a\" status=\"200 OK\""), 0u) << told;
}

TEST_F(GetTest, what_is_absent_is_not_watched) {
  api_.answer_watches("{}\n");
  for (const std::vector<std::string>& format :
       std::vector<std::vector<std::string>>{{"-o", "name"}, {"-o", "yaml"}, {}, {"--server-print=false"}}) {
    std::vector<std::string> words = {"cm", "none", "-w", "--ignore-not-found"};
    words.insert(words.end(), format.begin(), format.end());
    FakeApi::Outcome outcome = get(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "");
  }
  EXPECT_TRUE(api_.take_watches().empty());
}

TEST_F(GetTest, a_list_that_is_no_table_is_made_one) {
  api_.make_no_tables();
  EXPECT_EQ(get({"cm"}).out, "NAME   AGE\na      <unknown>\nc      <unknown>\n");
}

// An aggregated server may keep no revisions.
TEST_F(GetTest, what_has_no_revision_is_printed_once) {
  const auto event = [](const std::string& type) {
    return R"({"type":")" + type + R"(","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}})" + "\n";
  };
  api_.answer_watches(event("ADDED") + event("MODIFIED"));
  EXPECT_EQ(get({"cm", "a", "-w", "-o", "name"}).out, "configmap/a\nconfigmap/a\n");
  api_.answer_watches(event("MODIFIED"));
  EXPECT_EQ(get({"cm", "a", "-w", "-o", "name"}).out, "configmap/a\nconfigmap/a\n");
}

TEST_F(GetTest, a_watch_may_end_by_the_time_that_a_request_may_take) {
  api_.answer_watches(R"({"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}}})"
                      "\n");
  api_.keep_watches_open();
  FakeApi::Outcome watched = get({"cm", "--watch-only", "-o", "name", "--request-timeout=500ms"});
  EXPECT_EQ(watched.out, "configmap/b\n");
  EXPECT_EQ(watched.err, "");
  EXPECT_EQ(watched.code, 0);
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
