// SPDX-License-Identifier: Apache-2.0
// -o of the commands: its formats, KYAML, columns of the user's own, and what is wrong with a format.
#include "ctl/output.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ctl/custom_columns.h"
#include "ctl/kyaml.h"
#include "tests/ctl/fake_api.h"
#include "tests/ctl/go_template_cases.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

constexpr const char* kAllFormats =
    "go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,yaml";

class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    directory_ = testing::TempDir() + "/output-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    api_.put(
        "/api/v1/namespaces/default/configmaps/one",
        R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"default","name":"one","uid":"1","managedFields":[{"manager":"m"}]},"data":{"b":"2","a":"<1>"}})");
    api_.put(
        "/api/v1/namespaces/default/configmaps/two",
        R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"two","namespace":"default","uid":"2"},"data":{"a":"9"}})");
  }
  ~OutputTest() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  // What `get configmap WORDS...` prints, or its error.
  std::string get(std::vector<std::string> words) {
    words.insert(words.begin(), {"get", "configmap"});
    FakeApi::Outcome outcome = api_.run(words);
    return outcome.code == 0 ? outcome.out : outcome.err;
  }

  FakeApi api_;
  std::string directory_;
};

TEST_F(OutputTest, formats_of_get) {
  EXPECT_EQ(get({"one", "-o", "go-template={{.metadata.name}}"}), "one");
  EXPECT_EQ(get({"one", "--template={{.metadata.name}}"}), "one");
  EXPECT_EQ(get({"one", "-o", "template", "--template", "{{.data.a}}"}), "<1>");
  EXPECT_EQ(get({"one", "-o", "jsonpath", "--template={.data.a}"}), "<1>");
  EXPECT_EQ(get({"-o", "go-template={{range .items}}{{.metadata.name}} {{end}}"}), "one two ");
  EXPECT_EQ(get({"-o", "go-template-file=" + file("t", "{{len .items}}\n")}), "2\n");
  EXPECT_EQ(get({"-o", "templatefile=" + file("t", "{{.kind}}")}), "List");
  EXPECT_EQ(get({"-o", "jsonpath-file=" + file("p", "{.items[*].data.a}\n")}), "<1> 9\n");
  EXPECT_EQ(get({"one", "-o", "jsonpath-as-json={.data.a}"}), "[\n    \"\\u003c1\\u003e\"\n]\n");
  EXPECT_EQ(get({"-o", "custom-columns=NAME:.metadata.name,A:data.a,B:{.data.b}"}),
            "NAME   A     B\none    <1>   2\ntwo    9     <none>\n");
  EXPECT_EQ(get({"-o", "custom-columns-file=" + file("c", "NAME UID\n.metadata.name {metadata.uid}\n"), "--no-headers"}),
            "NAME   UID\none    1\ntwo    2\n")
      << "as kubectl, a file has its headers always";
  EXPECT_EQ(get({"one", "-o", "custom-columns", "--template=N:.metadata.name", "--no-headers"}), "one\n");
  EXPECT_EQ(get({"one", "-o", "JSON"}),
            "{\n    \"apiVersion\": \"v1\",\n    \"data\": {\n        \"a\": \"\\u003c1\\u003e\",\n        \"b\": \"2\"\n    },\n"
            "    \"kind\": \"ConfigMap\",\n    \"metadata\": {\n        \"name\": \"one\",\n        \"namespace\": \"default\",\n"
            "        \"uid\": \"1\"\n    }\n}\n");
  EXPECT_EQ(
      get({"two", "-o", "kyaml"}),
      "---\n{\n  apiVersion: \"v1\",\n  data: {\n    a: \"9\",\n  },\n  kind: \"ConfigMap\",\n  metadata: {\n    name: \"two\",\n"
      "    namespace: \"default\",\n    uid: \"2\",\n  },\n}\n");
  EXPECT_EQ(get({"-o", "name"}), "configmap/one\nconfigmap/two\n");
}

TEST_F(OutputTest, managed_fields_stay_where_they_are_asked_for) {
  EXPECT_EQ(get({"one", "-o", "yaml"}).find("managedFields"), std::string::npos);
  EXPECT_EQ(get({"-o", "kyaml"}).find("managedFields"), std::string::npos);
  EXPECT_NE(get({"one", "-o", "yaml", "--show-managed-fields"}).find("managedFields"), std::string::npos);
  EXPECT_EQ(get({"one", "-o", "jsonpath={.metadata.managedFields[0].manager}"}), "m");
  EXPECT_EQ(get({"one", "-o", "go-template={{(index .metadata.managedFields 0).manager}}"}), "m");
}

TEST_F(OutputTest, a_format_that_cannot_be_read_is_an_error_before_anything_is_done) {
  auto create = [&](const std::string& format) {
    FakeApi::Outcome outcome = api_.run({"create", "configmap", "x", "-o", format});
    EXPECT_EQ(outcome.code, 1) << format;
    EXPECT_TRUE(api_.take_writes().empty()) << format;
    return outcome.err;
  };
  EXPECT_EQ(create("foo"), "error: unable to match a printer suitable for the output format \"foo\", allowed formats are: " +
                               std::string(kAllFormats) + "\n");
  EXPECT_EQ(create("wide"), "error: unable to match a printer suitable for the output format \"wide\", allowed formats are: " +
                                std::string(kAllFormats) + "\n");
  EXPECT_EQ(create("go-template"), "error: template format specified but no template given\n");
  EXPECT_EQ(create("jsonpath="), "error: template format specified but no template given\n");
  EXPECT_EQ(create("go-template={{.a"), "error: error parsing template {{.a, template: output:1: unclosed action\n");
  EXPECT_EQ(create("jsonpath={.a"), "error: error parsing jsonpath {.a, unclosed action\n");
  EXPECT_EQ(create("go-template-file=/no/such"),
            "error: error reading --template /no/such, open /no/such: no such file or directory\n");
  EXPECT_EQ(
      get({"-o", "bar"}),
      "error: unable to match a printer suitable for the output format \"bar\", allowed formats are: "
      "custom-columns,custom-columns-file,go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,"
      "template,templatefile,wide,yaml\n");
  EXPECT_EQ(get({"-o", "custom-columns"}), "error: custom-columns format specified but no custom columns given\n");
  EXPECT_EQ(get({"-o", "custom-columns=A"}), "error: unexpected custom-columns spec: A, expected <header>:<json-path-expr>\n");
  EXPECT_EQ(api_.run({"api-resources", "-o", "jsonpath={.a}"}).err,
            "error: unable to match a printer suitable for the output format \"jsonpath={.a}\", allowed formats are: "
            "json,kyaml,name,wide,yaml\n");
  EXPECT_EQ(get({"one", "-o", "json", "--show-labels"}), "error: --show-labels option cannot be used with json printer\n");
  EXPECT_EQ(get({"one", "-o", "custom-columns=A:.a", "-L", "x"}),
            "error: --label-columns option cannot be used with custom-columns=A:.a printer\n");
}

TEST_F(OutputTest, a_template_that_fails_prints_what_kubectl_prints) {
  FakeApi::Outcome outcome = api_.run({"get", "configmap", "two", "-o", "go-template=x{{.data.a.b}}"});
  EXPECT_EQ(outcome.code, 1);
  std::string what = "template: output:1:8: executing \"output\" at <.data.a.b>: can't evaluate field b in type interface {}";
  EXPECT_EQ(outcome.err, "error: error executing template \"x{{.data.a.b}}\": " + what + "\n");
  EXPECT_EQ(
      outcome.out,
      "xError executing template: " + what +
          ". Printing more information for debugging the template:\n\ttemplate was:\n\t\tx{{.data.a.b}}\n\traw data was:\n\t\t"
          R"({"apiVersion":"v1","data":{"a":"9"},"kind":"ConfigMap","metadata":{"name":"two","namespace":"default","uid":"2"}})"
          "\n\tobject given to template engine was:\n\t\t"
          "map[apiVersion:v1 data:map[a:9] kind:ConfigMap metadata:map[name:two namespace:default uid:2]]\n\n");
  outcome = api_.run({"get", "configmap", "two", "-o", "jsonpath={.data[0]}"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(
      outcome.err.starts_with("error: error executing jsonpath \"{.data[0]}\": Error executing template: "
                              "map[string]interface {} is not array or slice. Printing more information"))
      << outcome.err;
  EXPECT_NE(outcome.err.find(R"(map[string]interface {}{"apiVersion":"v1", "data":map[string]interface {}{"a":"9"})"),
            std::string::npos);
  outcome = api_.run({"get", "configmap", "two", "-o", "jsonpath={.nope}", "--allow-missing-template-keys=false"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("nope is not found"), std::string::npos);
  outcome = api_.run({"get", "configmap", "-o", "custom-columns=A:.metadata.name,B:.x["});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "A     B\n");
  EXPECT_EQ(outcome.err, "error: unterminated array\n");
}

TEST_F(OutputTest, formats_of_other_commands) {
  EXPECT_EQ(api_.run({"create", "configmap", "x", "--dry-run=client", "-o", "go-template={{.metadata.name}}"}).out, "x");
  EXPECT_EQ(api_.run({"label", "configmap", "one", "a=b", "-o", "jsonpath={.metadata.labels}"}).out, "{\"a\":\"b\"}");
  EXPECT_EQ(
      api_.run({"patch", "configmap", "one", "--type=merge", "-p", R"({"data":{"a":"z"}})", "-o", "template={{.data.a}}"}).out,
      "z");
  EXPECT_EQ(api_.run({"create", "configmap", "x", "--from-literal=a=1", "--dry-run=client", "-o", "kyaml"}).out,
            "---\n{\n  kind: \"ConfigMap\",\n  apiVersion: \"v1\",\n  metadata: {\n    name: \"x\",\n  },\n  data: {\n    a: "
            "\"1\",\n  },\n}\n");
  std::string both = file("both.yaml",
                          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: old}\n---\n"
                          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {a: young}\n");
  EXPECT_EQ(api_.run({"apply", "-f", both, "-o", "go-template={{.kind}}{{range .items}} {{.data.a}}{{end}}"}).out,
            "List old young");
  EXPECT_EQ(api_.run({"create", "-f", both, "--dry-run=client", "-o", "yaml"}).out.find("---\n") != std::string::npos, true);
  EXPECT_EQ(api_.run({"create", "-f", both, "--dry-run=client", "-o", "jsonpath={.metadata.name};"}).out, "one;new;");
  EXPECT_EQ(api_.run({"version", "--client", "-o", "name"}).err, "error: --output must be 'yaml' or 'json'\n");
}

TEST_F(OutputTest, a_path_to_sort_by_that_cannot_be_read_is_an_error_always) {
  EXPECT_EQ(api_.run({"get", "pods", "--sort-by={.a"}).err, "error: sorting error: unclosed action\n");
  EXPECT_EQ(api_.run({"get", "pods", "--sort-by=.a["}).err, "error: sorting error: unterminated array\n");
  EXPECT_EQ(get({"one", "-o", "json", "--sort-by=.a["}), "error: unterminated array\n");
  EXPECT_EQ(get({"-o", "name", "--sort-by={.a"}),
            "error: unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'\n");
  EXPECT_EQ(get({"-o", "name", "--sort-by=.nope"}),
            "error: couldn't find any field with path \"{.nope}\" in the list of objects\n");
  EXPECT_EQ(get({"-o", "name", "--sort-by=.data.a"}), "configmap/two\nconfigmap/one\n");
}

TEST(Kyaml, is_what_kubectl_prints) {
  EXPECT_EQ(to_kyaml(parsed(R"({"m":"l1\n  l2\n\ttab\n","o":"one\ntwo","list":[1,"a",{"k":"v"}],"cuddled":[{"a":[]},{"b":{}},[1]],
                             "yes":"no","é":"q","a.b/c":null,".x":true,"x.":2.5,"1":1e21,"multi\nkey":"\u0007\u001b\u200b\u00a0\\\""})")),
            R"t(---
{
  ".x": true,
  "1": 1e+21,
  a.b/c: null,
  cuddled: [{
    a: [],
  }, {
    b: {},
  }, [
    1,
  ]],
  list: [
    1,
    "a",
    {
      k: "v",
    },
  ],
  m: "\
     l1\n\
    \  l2\n\
    \	tab\n\
    ",
  "multi\nkey": "\a\e\u200b\_\\\"",
  o: "\
     one\n\
     two\
    ",
  "x.": 2.5,
  "yes": "no",
  é: "q",
}
)t");
}

TEST(Kyaml, quotes_keys_that_yaml_may_take_for_something_else) {
  for (const char* key : {"",
                          "null",
                          "~",
                          "True",
                          "t",
                          "F",
                          "y",
                          "N",
                          "on",
                          "OFF",
                          "1",
                          "-1",
                          "+1.5",
                          "0x1f",
                          "0b1",
                          "0o7",
                          "1_000",
                          "1e3",
                          ".5",
                          "1:20",
                          "190:20:30.15",
                          ".inf",
                          "-.INF",
                          ".nan",
                          "inf",
                          "NaN",
                          "2026-01-02",
                          "2026-1-2",
                          "2026-01-02T03:04:05Z",
                          "2026-01-02 03:04:05.5",
                          "2026-01-02t03:04:05+01:00"})
    EXPECT_TRUE(is_ambiguous_yaml(key)) << key;
  for (const char* key : {"a", "nulls", "yess", "0x", "1.2.3", "1:70", "2026-13-01", "2026-02-30", "26-01-02", "v1", "e3", "_"})
    EXPECT_FALSE(is_ambiguous_yaml(key)) << key;
}

TEST(CustomColumns, take_paths_of_the_users_own) {
  json::value object = parsed(kPrintedObject), other = parsed(R"({"metadata":{"name":"a-longer-name"}})");
  auto printed = [&](const std::string& spec) {
    std::string out;
    auto columns = CustomColumns::parse(spec);
    if (!columns) return "error: " + columns.error().text();
    auto done = columns->print({&object, &other}, true, out);
    return done ? out : out + "error: " + done.error().text();
  };
  EXPECT_EQ(printed("NAME:.metadata.name,IMAGES:.spec.containers[*].image"),
            "NAME            IMAGES\nweb             i1,i2\na-longer-name   <none>\n");
  EXPECT_EQ(printed("A:.metadata.labels,B:.spec.nul,C:.spec.list"),
            "A                                B        C\nmap[app.io/x:1 q:1 tier:front]   <nil>    [10 20 30]\n"
            "<none>                           <none>   <none>\n");
  EXPECT_EQ(printed("A:"), "A\n<none>\n<none>\n");
  EXPECT_EQ(printed(":.kind"), "\nPod\n<none>\n");
  EXPECT_EQ(printed("A:.metadata.name,B:.metadata.annotations.multi"),
            "A               B\nweb             l1\nl2              x\na-longer-name   <none>\n");
  EXPECT_EQ(printed("A:.a,,B:.b"), "error: unexpected custom-columns spec: , expected <header>:<json-path-expr>");
  EXPECT_EQ(printed("A:.kind,B:.spec.list[5]").substr(0, 10), "A     B\ner") << "an error ends it";
  json::value evil = parsed(R"({"a":"\u001b[2J"})");
  std::string out;
  ASSERT_TRUE(CustomColumns::parse("A:.a")->print({&evil}, false, out));
  EXPECT_EQ(out, "^[[2J\n");
}

TEST(CustomColumns, a_file_has_two_lines) {
  struct Row {
    const char* content;
    const char* error;
  };
  for (const Row& row : {Row{"", "invalid template, missing header line."}, Row{"A B\n", "invalid template, missing spec line."},
                         Row{"A B\n.a\n", "number of headers (2) and field specifications (1) don't match"},
                         Row{"A\n{.a\n", "unexpected path string"}}) {
    auto columns = CustomColumns::parse_file(row.content);
    ASSERT_FALSE(columns) << row.content;
    EXPECT_TRUE(columns.error().text().starts_with(row.error)) << columns.error().text();
  }
}

}  // namespace
}  // namespace coracle::ctl
