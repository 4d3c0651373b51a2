// SPDX-License-Identifier: Apache-2.0
// The choice of the server, the objects that the user named, and the content of files; and the error messages.
#include "ctl/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ctl/command.h"
#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    place_ = testing::TempDir() + "/ctl-session-XXXXXX";
    EXPECT_TRUE(::mkdtemp(place_.data()));
    ::unsetenv("KUBECONFIG");
    ::setenv("HOME", (place_ + "/home").c_str(), 1);
  }
  ~SessionTest() override {
    ::unsetenv("KUBECONFIG");
    fs::remove_all(place_);
  }
  std::string write(const std::string& name, std::string_view text) {
    fs::create_directories(fs::path(place_ + "/" + name).parent_path());
    std::ofstream(place_ + "/" + name) << text;
    return place_ + "/" + name;
  }
  static std::string config(const std::string& name, const std::string& port, const std::string& more = "") {
    return "apiVersion: v1\nkind: Config\ncurrent-context: " + name + "\nclusters:\n- name: " + name +
           "\n  cluster: {server: 'http://127.0.0.1:" + port + "'}\ncontexts:\n- name: " + name +
           "\n  context: {cluster: " + name + ", user: " + name + ", namespace: ns-" + name + "}\nusers:\n- name: " + name +
           "\n  user: {token: t-" + name + "}\n" + more;
  }
  std::string place_;
};

TEST_F(SessionTest, finds_the_kubeconfig_as_kubectl_does) {
  write("home/.kube/config", config("home", "1"));
  auto session = Session::open({});
  ASSERT_TRUE(session) << session.error().text();
  EXPECT_EQ((*session)->server(), "http://127.0.0.1:1");
  EXPECT_EQ((*session)->ns(), "ns-home");
  ::setenv("KUBECONFIG", write("env", config("env", "2")).c_str(), 1);
  EXPECT_EQ((*Session::open({}))->server(), "http://127.0.0.1:2") << "$KUBECONFIG comes before ~/.kube/config";
  EXPECT_EQ((*Session::open({.kubeconfig = write("flag", config("flag", "3"))}))->server(), "http://127.0.0.1:3")
      << "the flag before both";
  EXPECT_EQ((*Session::open({.server = "http://other:9", .ns = "mine"}))->server(), "http://other:9");
  EXPECT_EQ((*Session::open({.ns = "mine"}))->ns(), "mine");
}

TEST_F(SessionTest, merges_the_files_of_KUBECONFIG) {
  std::string a = write("a", config("a", "1")), b = write("b", config("b", "2")), twin = write("twin", config("a", "7"));
  ::setenv("KUBECONFIG", (a + ":/no/such/file:" + b + ":" + twin).c_str(), 1);
  auto first = Session::open({});
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ((*first)->server(), "http://127.0.0.1:1") << "the first file's context and cluster count";
  auto second = Session::open({.context = "b"});
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ((*second)->server(), "http://127.0.0.1:2");
  EXPECT_EQ((*second)->user_name(), "b");
}

TEST_F(SessionTest, says_what_is_wrong_with_a_kubeconfig) {
  struct Row {
    const char *text, *context, *want;
  };
  for (const Row& row : {
           Row{"a: 1\n\tb: 2\n", "", "line 2"},
           Row{"", "", "names no clusters"},
           Row{"just words", "", "clusters, contexts and users are expected"},
           Row{"kind: Config\n", "", "names no clusters"},
           Row{"clusters: [{name: c, cluster: {server: 'https://x'}}]\ncontexts: [{name: one, context: {cluster: c}}]\n", "",
               "no current-context is set; choose with --context: one"},
           Row{"current-context: gone\nclusters: [{name: c, cluster: {server: 'https://x'}}]\n", "",
               "context was not found for specified context: gone"},
           Row{"current-context: k\nclusters: [{name: c, cluster: {server: 'https://x'}}]\ncontexts: [{name: k, context: "
               "{cluster: d}}]\n",
               "", "cluster \"d\" does not exist"},
           Row{"current-context: k\nclusters: [{name: c, cluster: {server: 'ftp://x'}}]\ncontexts: [{name: k, context: {cluster: "
               "c}}]\n",
               "", "server must be an http(s) URL"},
           Row{"current-context: k\nclusters: [{name: c, cluster: {server: 'https://x'}}]\ncontexts: [{name: k, context: "
               "{cluster: c, user: u}}]\n",
               "", "user \"u\" does not exist"},
           Row{"current-context: k\nclusters: [{name: c, cluster: {server: 'https://x'}}]\ncontexts: [{name: k, context: "
               "{cluster: c}}]\n",
               "other", "context was not found for specified context: other"},
       }) {
    std::string path = write("bad", row.text);
    auto session = Session::open({.kubeconfig = path, .context = row.context});
    ASSERT_FALSE(session) << row.text;
    EXPECT_NE(session.error().text().find(row.want), std::string::npos) << row.text << "\n" << session.error().text();
    bool names_path = session.error().text().find(path) != std::string::npos;
    EXPECT_TRUE(names_path || session.error().text().starts_with("Error in configuration: ")) << session.error().text();
  }
  auto missing = Session::open({.kubeconfig = "/no/such/kubeconfig"});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("/no/such/kubeconfig"), std::string::npos);
}

TEST_F(SessionTest, files_named_in_a_kubeconfig_stand_beside_it) {
  write("pki/ca.crt", "CA");
  std::string path = write("pki/config",
                           "current-context: k\nclusters: [{name: c, cluster: {server: 'https://x', certificate-authority: "
                           "ca.crt}}]\ncontexts: [{name: k, context: {cluster: c}}]\n");
  ::setenv("KUBECONFIG", (write("other", config("a", "1")) + ":" + path).c_str(), 1);
  EXPECT_TRUE(Session::open({.context = "k"}));
  fs::remove(place_ + "/pki/ca.crt");
  auto session = Session::open({.context = "k"});
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().text().find("pki/ca.crt"), std::string::npos) << session.error().text();
}

TEST_F(SessionTest, takes_flags_instead_of_a_kubeconfig) {
  auto session = Session::open({.server = "http://127.0.0.1:9", .as = "jane"});
  ASSERT_TRUE(session) << session.error().text();
  EXPECT_EQ((*session)->server(), "http://127.0.0.1:9");
  GlobalFlags flags{.as_user_extra = {"Scope=a=b"}};
  EXPECT_EQ(kubeconfig_choice(flags)->impersonate.extra.front(), (std::pair<std::string, std::string>("scope", "a=b")));
  flags.as_user_extra = {"no pair"};
  EXPECT_EQ(kubeconfig_choice(flags).error().text(), "--as-user-extra: expected KEY=VALUE, is \"no pair\"");
  auto timeout = Session::open({.server = "http://127.0.0.1:9", .request_timeout = "soon"});
  ASSERT_FALSE(timeout);
  EXPECT_NE(timeout.error().text().find("Invalid timeout value."), std::string::npos);
}

TEST_F(SessionTest, makes_the_servers_paths) {
  auto session = std::move(*Session::open({.kubeconfig = write("c", config("a", "1"))}));
  EXPECT_EQ(session->path(schema::catalog().of(kPod), "default", "web", "log"), "/api/v1/namespaces/default/pods/web/log");
  EXPECT_EQ(session->path(schema::catalog().of(kDeployment), "d"), "/apis/apps/v1/namespaces/d/deployments");
  EXPECT_EQ(session->path(schema::catalog().of(kDeployment), ""), "/apis/apps/v1/deployments");
  EXPECT_EQ(session->path(schema::catalog().of(kNode), "ignored", "edge"), "/api/v1/nodes/edge");
  EXPECT_EQ(session->path(schema::catalog().of(kPod), "a/b", "?"), "/api/v1/namespaces/a%2Fb/pods/%3F");
}

TEST(ParseNamed, reads_kinds_and_names) {
  auto text = [](const std::vector<std::string>& args) {
    auto named = parse_named(args);
    std::string all;
    if (!named) return "error: " + named.error().text();
    for (const auto& one : *named) all += std::string(one.kind->kind.resource) + (one.name.empty() ? "" : "/" + one.name) + " ";
    return all;
  };
  EXPECT_EQ(text({"pods"}), "pods ");
  EXPECT_EQ(text({"po", "a", "b"}), "pods/a pods/b ");
  EXPECT_EQ(text({"pod/a", "svc/b"}), "pods/a services/b ");
  EXPECT_EQ(text({"pods,svc"}), "pods services ");
  EXPECT_EQ(text({"deployments.apps", "x"}), "deployments/x ");
  EXPECT_NE(text({"all"}).find("deployments"), std::string::npos);
  EXPECT_EQ(text({"pdos"}), "error: the server doesn't have a resource type \"pdos\"; did you mean \"pods\"?");
  EXPECT_EQ(text({"zzzzzzzz"}), "error: the server doesn't have a resource type \"zzzzzzzz\"");
  for (const auto& args : {std::vector<std::string>{}, {"pod/"}, {"/a"}, {"pod/a/b"}, {"pod/a", "b"}, {"pods", "pod/a"}})
    EXPECT_TRUE(text(args).starts_with("error: ")) << text(args);
}

TEST_F(SessionTest, reads_documents_of_files_and_directories) {
  std::string two = write("m/two.yaml",
                          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: v1\nkind: "
                          "Secret\nmetadata: {name: b}\n");
  write("m/list.json", R"({"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}]})");
  write("m/sub/deep.yml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: d}\n");
  write("m/readme.txt", "not a manifest");
  auto names = [](const std::vector<Document>& documents) {
    std::string all;
    for (const auto& document : documents) all += std::string(get_string(document.object, "metadata.name")) + " ";
    return all;
  };
  auto documents = read_documents({two}, false);
  ASSERT_TRUE(documents) << documents.error().text();
  EXPECT_EQ(names(*documents), "a b ");
  EXPECT_EQ((*documents)[0].source, two + ":1");
  EXPECT_EQ((*documents)[1].kind->kind.kind, "Secret");
  EXPECT_EQ(names(*read_documents({place_ + "/m"}, false)), "c a b ");
  EXPECT_EQ(names(*read_documents({place_ + "/m"}, true)), "c d a b ");
}

TEST_F(SessionTest, says_which_file_and_line_is_wrong) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row :
       {Row{"apiVersion: v1\nkind: Pod\nmetadata:\n\tname: x\n",
            ": error converting YAML to JSON: yaml: line 4: found character that cannot start any token"},
        Row{"a: b\n", ":1: Object 'apiVersion' is missing"}, Row{"apiVersion: v1\n", ":1: Object 'Kind' is missing"},
        Row{"- x\n", ":1: expected an object"},
        Row{"apiVersion: v1\nkind: Pod\nmetadata: [a]\n", ":1: metadata: must be an object"},
        Row{"apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: x}\n", ":1: metadata.labels: must be an object"},
        Row{"apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: [b]}\n", ":1: metadata.annotations: must be an object"},
        Row{"apiVersion: v1\nkind: Pod\n---\napiVersion: v9\nkind: Pod\n",
            ":4\": no matches for kind \"Pod\" in version \"v9\"\nensure CRDs are installed first"}}) {
    std::string path = write("bad.yaml", row.text);
    auto documents = read_documents({path}, false);
    ASSERT_FALSE(documents) << row.text;
    EXPECT_NE(documents.error().text().find(path), std::string::npos) << documents.error().text();
    EXPECT_NE(documents.error().text().find(row.want), std::string::npos) << documents.error().text();
  }
  EXPECT_EQ(read_documents({"/no/such.yaml"}, false).error().text(), "the path \"/no/such.yaml\" does not exist");
  fs::create_directories(place_ + "/empty");
  EXPECT_NE(read_documents({place_ + "/empty"}, false).error().text().find("recognized file extensions are [.json .yaml .yml]"),
            std::string::npos);
}

TEST_F(SessionTest, takes_an_empty_field_of_metadata) {
  std::string path = write("empty.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels:\n  annotations:\n");
  auto documents = read_documents({path}, false);
  ASSERT_TRUE(documents) << documents.error().text();
  EXPECT_EQ(to_text(documents->front().object),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":null,"annotations":null}})");
  path = write("empty.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n");
  documents = read_documents({path}, false);
  ASSERT_TRUE(documents) << documents.error().text();
  EXPECT_EQ(to_text(documents->front().object), R"({"apiVersion":"v1","kind":"Pod"})");
}

TEST_F(SessionTest, reads_what_other_programs_write) {
  auto names_in = [&](const std::string& text) -> std::string {
    auto documents = read_documents({write("made.yaml", text)}, false);
    if (!documents) return documents.error().text();
    std::string names;
    for (const auto& document : *documents)
      names +=
          std::string(get_string(document.object, "metadata.name")) + document.source.substr(document.source.rfind(':')) + " ";
    return names;
  };
  auto map = [](const std::string& name) {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + R"("}})";
  };
  EXPECT_EQ(names_in(map("a") + map("b")), "a:1 b:1 ") << "jq -c";
  EXPECT_EQ(names_in("\n" + map("a}\\\"") + "\n{\n\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}\n"),
            "a}\":2 b:3 ");
  EXPECT_EQ(names_in(map("a") + "\n---\n" + map("b")), "a:1 b:3 ");
  EXPECT_NE(names_in(map("a") + " {").find("unexpected EOF"), std::string::npos);
  EXPECT_EQ(
      names_in(R"({"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})"),
      "a:1 b:1 ");
  EXPECT_EQ(names_in("\xef\xbb\xbf" + map("a") + "\n---\n\xef\xbb\xbf" + map("b") + "\n"), "a:1 b:3 ");
  testing::internal::CaptureStderr();
  EXPECT_EQ(names_in("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nmetadata: {name: b}\n"), "b:1 ") << "the last counts";
  EXPECT_NE(testing::internal::GetCapturedStderr().find("made.yaml: duplicate field \"metadata\""), std::string::npos);
}

TEST_F(SessionTest, gives_what_can_be_read_beside_what_cannot) {
  const std::string good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ";
  std::string path =
      write("mixed.yaml", "# first\n---\n" + good + "a}\n---\na: [\n---\n" + good +
                              "b}\n--- # end\nkind: Gadget\napiVersion: v9\n" + "---\n" + good + "c}\ndata: {text: \"x---\"}\n");
  std::vector<Error> wrong;
  auto documents = read_documents({path}, false, &wrong);
  ASSERT_TRUE(documents) << documents.error().text();
  std::string names;
  for (const auto& document : *documents)
    names += std::string(get_string(document.object, "metadata.name")) + "@" + document.source.substr(path.size()) + " ";
  EXPECT_EQ(names, "a@:3 b@:9 c@:16 ");
  ASSERT_EQ(wrong.size(), 2u);
  EXPECT_NE(wrong[0].text().find(path), std::string::npos) << wrong[0].text();
  EXPECT_NE(wrong[1].text().find(":13\": no matches for kind \"Gadget\""), std::string::npos) << wrong[1].text();
  wrong.clear();
  EXPECT_FALSE(read_documents({path, "/no/such.yaml"}, false, &wrong));
  EXPECT_FALSE(read_documents({path}, false));
}

TEST_F(SessionTest, says_what_a_document_lacks_as_kubectl_validates_it) {
  struct Row {
    const char *text, *missing;
  };
  for (const Row& row : {Row{"apiVersion: v1\n", "kind not set"}, Row{"kind: Pod\n", "apiVersion not set"},
                         Row{"a: b\n", "[apiVersion not set, kind not set]"}, Row{"- x\n", "invalid object to validate"},
                         Row{"apiVersion: 1\nkind: Pod\n", "apiVersion isn't string type"},
                         Row{"kind: [Pod]\n", "[apiVersion not set, kind isn't string type]"}}) {
    std::string path = write("bad.yaml", row.text);
    auto documents = read_documents({path}, false, nullptr, true);
    ASSERT_FALSE(documents) << row.text;
    EXPECT_EQ(documents.error().text(), "error validating \"" + path + ":1\": error validating data: " + row.missing +
                                            "; if you choose to ignore these errors, turn validation off with --validate=false");
  }
  EXPECT_TRUE(FileFlags().validated("strict").validates && FileFlags().validated("warn").validates);
  EXPECT_FALSE(FileFlags().validated("ignore").validates || FileFlags().validated("false").validates);
}

TEST(Suggestion, is_the_closest_or_none) {
  EXPECT_EQ(suggestion("gte", {"get", "set", "delete"}), "get");
  EXPECT_EQ(suggestion("desribe", {"describe", "delete"}), "describe");
  EXPECT_EQ(suggestion("frobnicate", {"get", "set"}), "");
  EXPECT_EQ(suggestion("", {"get"}), "");
}

TEST(MessageName, is_as_kubectl_says_it) {
  EXPECT_EQ(message_name(schema::catalog().of(kPod), "a"), "pod/a");
  EXPECT_EQ(message_name(schema::catalog().of(kDeployment), "a"), "deployment.apps/a");
}

TEST(DocumentsOfUrl, name_nobodys_password) {
  FakeApi api;
  const std::string path = "/api/v1/namespaces/default/gadgets/g";
  api.put(path, R"({"apiVersion":"v9","kind":"Gadget","metadata":{"name":"g"}})");
  auto documents = read_documents({"http://me:secret@" + api.url().substr(7) + path}, false);
  ASSERT_FALSE(documents);
  EXPECT_EQ(documents.error().text(),
            "resource mapping not found for name: \"g\" namespace: \"\" from \"" + api.url() + path +
                ":1\": no matches for kind \"Gadget\" in version \"v9\"\nensure CRDs are installed first");
}

}  // namespace
}  // namespace coracle::ctl
