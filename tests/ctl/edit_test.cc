// SPDX-License-Identifier: Apache-2.0
// From the arguments of label, annotate and set to patches; and edit, with editors that change the same each time.
#include "ctl/edit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "tests/ctl/changes.h"
#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

TEST(Edit, tells_objects_from_changes) {
  std::vector<std::string> objects;
  std::vector<Change> changes;
  ASSERT_TRUE(split_pairs({"pods", "=odd", "web-", "a=b", "x.io/c-", "e="}, "label", objects, changes));
  EXPECT_EQ(objects, (std::vector<std::string>{"pods", "=odd"}));
  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[0].key, "web");
  EXPECT_FALSE(changes[0].value);
  EXPECT_EQ(changes[1].value, "b");
  EXPECT_EQ(changes[2].key, "x.io/c");
  EXPECT_EQ(changes[3].value, "");
  changes.clear();
  auto late = split_pairs({"pods", "a=b", "web"}, "label", objects, changes);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().text(), "all resources must be specified before label changes: web");
}

TEST(Edit, marks_add_change_and_remove) {
  json::object present{{"a", "1"}, {"b", "2"}};
  Marks marks = marks_of(present, changes_of({"c=3", "b-", "z-", "a=1"}), false);
  EXPECT_EQ(to_text(marks.patch), R"({"c":"3","b":null})");
  EXPECT_EQ(marks.absent, std::vector<std::string>{"z"});
  EXPECT_TRUE(marks.adds && marks.removes);
  EXPECT_EQ(marks_of(present, changes_of({"a=9"}), false).taken, std::vector<std::string>{"'a' already has a value (1)"});
  EXPECT_EQ(to_text(marks_of(present, changes_of({"a=9"}), true).patch), R"({"a":"9"})");
  EXPECT_FALSE(marks_of(present, changes_of({"a-"}), false).adds);
  EXPECT_TRUE(marks_of(present, changes_of({"a=1"}), false).patch.empty());
  EXPECT_EQ(contradictions_of(changes_of({"a=1", "a-", "b-"})), std::vector<std::string>{"a"});
}

TEST(Edit, leaves_comments_out) {
  EXPECT_EQ(without_comments("# head\na: 1\n  # kept, it is indented\n#b\n"), "a: 1\n  # kept, it is indented\n");
  EXPECT_EQ(without_comments("a: 1"), "a: 1");
  EXPECT_EQ(without_comments(""), "");
  EXPECT_EQ(without_comments("#"), "");
}

// ---- edit, of objects at a server ----

const std::string kEditedMaps = "/api/v1/namespaces/default/configmaps/";

class EditTest : public testing::Test {
 protected:
  EditTest() {
    for (std::string name : {"one", "two"}) api_.put(kEditedMaps + name, map(name, name));
    place_ = testing::TempDir() + "/edit-XXXXXX";
    EXPECT_TRUE(::mkdtemp(place_.data()));
    std::filesystem::create_directory(place_ + "/edited");
    if (const char* set = std::getenv("TMPDIR")) before_ = set;
  }
  ~EditTest() override {
    ::unsetenv("KUBE_EDITOR");
    EXPECT_FALSE(kept()) << "a file is left that no test asked for";
    std::filesystem::remove_all(place_);
  }
  static std::string map(const std::string& name, const std::string& value) {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","uid":"u-)" + name + R"(","name":")" +
           name + R"("},"data":{"k":")" + value + "\"}}";
  }
  FakeApi::Outcome edit(const std::string& editor, std::vector<std::string> words) {
    ::setenv("KUBE_EDITOR", editor.c_str(), 1);
    ::setenv("TMPDIR", (place_ + "/edited").c_str(), 1);  // where the file is
    words.insert(words.begin(), "edit");
    FakeApi::Outcome outcome = api_.run(words);
    if (before_) ::setenv("TMPDIR", before_->c_str(), 1);
    else ::unsetenv("TMPDIR");
    return outcome;
  }
  // An editor that writes this instead of what it finds.
  std::string writes(const std::string& text) {
    std::ofstream(place_ + "/text") << text;
    return "cp " + place_ + "/text";
  }
  static std::string list(const std::string& items) {
    return R"({"apiVersion":"v1","kind":"List","metadata":{},"items":)" + items + "}\n";
  }
  struct Kept {
    std::string path, text;
  };
  // The edited file, if it is still there; it is removed now.
  std::optional<Kept> kept() {
    std::optional<Kept> found;
    for (const auto& entry : std::filesystem::directory_iterator(place_ + "/edited")) {
      std::ifstream file(entry.path());
      found = Kept{entry.path(), std::string(std::istreambuf_iterator<char>(file), {})};
    }
    if (found) std::filesystem::remove(found->path);
    return found;
  }
  // The text of the file that `messages` say is kept.
  std::string kept_text(const std::string& messages) {
    auto file = kept();
    if (!file) return "no file is kept";
    std::string told = "A copy of your changes has been stored to \"" + file->path + "\"\n";
    return messages.find(told) == messages.npos ? "no file is named: " + messages : file->text;
  }
  std::string value(const std::string& name) {
    FakeApi::Objects objects = api_.objects();
    return std::string(get_string(objects[kEditedMaps + name], "data.k"));
  }

  FakeApi api_;
  std::string place_;
  std::optional<std::string> before_;  // TMPDIR
};

TEST_F(EditTest, a_kind_alone_is_all_its_objects_in_one_file) {
  FakeApi::Outcome outcome = edit("sed -i 's/k: two/k: three/'", {"configmaps"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "configmap/one skipped\nconfigmap/two edited\n");
  EXPECT_EQ(value("one") + " " + value("two"), "one three");
  outcome = edit("sed -i 's/k: .*/k: same/'", {"configmaps", "one", "two"});
  EXPECT_EQ(outcome.out, "configmap/one edited\nconfigmap/two edited\n");
  EXPECT_EQ(value("one") + " " + value("two"), "same same");
  outcome = edit("sed -i 's/\"k\": \"same\"/\"k\": \"json\"/'", {"configmaps", "-o", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(value("one") + " " + value("two"), "json json");
}

TEST_F(EditTest, an_object_that_is_not_there_stops_all) {
  FakeApi::Outcome outcome = edit("sed -i s/one/other/", {"configmaps", "one", "none"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "Error from server (NotFound): configmaps \"none\" not found\n");
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(EditTest, what_changes_nothing_is_cancelled) {
  for (const auto& [editor, text] :
       std::vector<std::pair<const char*, std::string>>{{"true", "Edit cancelled, no changes made.\n"},
                                                        {"sed -i '1i # a comment'", "Edit cancelled, no changes made.\n"},
                                                        {"sed -i 's/k: one/k:    one/'", "Edit cancelled, no changes made.\n"},
                                                        {"truncate -s 0", "Edit cancelled, saved file was empty.\n"}}) {
    FakeApi::Outcome outcome = edit(editor, {"configmap/one"});
    EXPECT_EQ(outcome.code, 0) << editor;
    EXPECT_EQ(outcome.err, text) << editor;
  }
  EXPECT_EQ(edit("false", {"configmap/one"}).err, "error: there was a problem with the editor \"false\"\n");
  EXPECT_TRUE(api_.take_writes().empty());
}

// The editor is opened again; when nothing is mended then, the file is kept.
TEST_F(EditTest, what_is_not_valid_is_opened_again_and_kept) {
  FakeApi::Outcome outcome = edit("sed -i 's/^data:$/data: [/'", {"configmap/one"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("error: Edit cancelled, no valid changes were saved.\n"), std::string::npos) << outcome.err;
  std::string text = kept_text(outcome.err);
  EXPECT_NE(text.find("# The edited file had a syntax error: error parsing edited-file: error converting YAML to JSON: yaml: "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("data: ["), std::string::npos) << text;
  outcome = edit("sed -i 's/name: one/name: other/'", {"configmap/one"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("error: At least one of apiVersion, kind and name was changed\n"), std::string::npos);
  EXPECT_NE(kept_text(outcome.err).find("name: other"), std::string::npos);
  EXPECT_TRUE(api_.take_writes().empty());
}

// JSON has no comments, so it is told at once.
TEST_F(EditTest, a_mistake_in_json_is_told_as_one) {
  FakeApi::Outcome outcome = edit("sed -i 's/\"k\": /\"k\" /'", {"configmap/one", "-o", "json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(
      outcome.err.starts_with("error: The edited file had a syntax error: error parsing edited-file: json: offset 181: "
                              "invalid character '\"' after object key\n"))
      << outcome.err;
  EXPECT_NE(kept_text(outcome.err).find("\"k\" \"one\""), std::string::npos);
}

TEST_F(EditTest, only_yaml_may_be_written_in_another_way) {
  FakeApi::Outcome outcome = edit(writes("# nothing new\n" + map("one", "one") + "\n"), {"configmap/one"});
  EXPECT_EQ(outcome.out + outcome.err, "Edit cancelled, no changes made.\n");
  outcome = edit("sed -i 's/\"k\": /\"k\":    /'", {"configmap/one", "-o", "json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  const json::value printed = parse_json(outcome.out).value_or(json::value());
  EXPECT_EQ(get_string(printed, "data.k"), "one") << outcome.out;
  outcome = edit(writes(list("[" + map("two", "two") + "," + map("one", "one") + "]")), {"configmaps"});
  EXPECT_EQ(outcome.out + outcome.err, "configmap/two skipped\nconfigmap/one skipped\n");
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(EditTest, an_object_that_is_taken_out_stays) {
  FakeApi::Outcome outcome = edit(writes(list("[" + map("two", "new") + "]")), {"configmaps"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "configmap/two edited\n");
  EXPECT_EQ(value("one") + " " + value("two"), "one new");
}

// What no patch can make is found before the first object is patched.
TEST_F(EditTest, a_change_that_cannot_be_stops_all_and_is_kept) {
  const std::string good = map("one", "new") + ",";
  auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  struct Row {
    std::string second, error;
  };
  for (const auto& [second, error] :
       {Row{map("three", "x"), "no original object found for ConfigMap \"three\""},
        Row{with(map("two", "x"), "u-two", ""), "no original object found for ConfigMap \"two\""},
        Row{with(map("two", "x"), "\"name\":\"two\"", "\"name\":\"other\""),
            "At least one of apiVersion, kind and name was changed"},
        Row{with(map("two", "x"), "ConfigMap", "Secret"), "At least one of apiVersion, kind and name was changed"},
        Row{with(map("two", "x"), "default", "other"),
            "the namespace from the provided object \"other\" does not match the namespace \"default\". You must pass "
            "'--namespace=other' to perform this operation."}}) {
    const std::string text = list("[" + good + second + "]");
    FakeApi::Outcome outcome = edit(writes(text), {"configmaps"});
    EXPECT_EQ(outcome.code, 1) << error;
    EXPECT_EQ(outcome.out, "") << error;
    EXPECT_TRUE(outcome.err.ends_with("error: " + error + "\n")) << outcome.err;
    EXPECT_EQ(kept_text(outcome.err), text);
  }
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(EditTest, a_namespace_that_is_taken_out_is_what_it_was) {
  FakeApi::Outcome outcome = edit("sed -i '/namespace: default/d; s/k: one/k: new/'", {"configmap/one"});
  EXPECT_EQ(outcome.out + outcome.err, "configmap/one edited\n");
  std::vector<FakeApi::Sent> sent = api_.take_writes();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(to_text(sent[0].body), R"({"data":{"k":"new"}})");
  outcome = edit("sed -i '/namespace: default/d'", {"configmap/one"});
  EXPECT_EQ(outcome.out + outcome.err, "configmap/one skipped\n");
}

TEST_F(EditTest, items_that_are_no_list_are_an_error) {
  for (const char* items : {"{}", "null", "\"\""}) {
    FakeApi::Outcome outcome = edit(writes(list(items)), {"configmaps"});
    EXPECT_EQ(outcome.code, 1) << items;
    EXPECT_EQ(outcome.out, "") << items;
    EXPECT_EQ(kept_text(outcome.err), list(items));
  }
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(EditTest, what_an_editor_wrote_before_it_failed_is_kept) {
  FakeApi::Outcome outcome = edit("f() { sed -i 's/k: one/k: new/' \"$1\"; return 3; }; f", {"configmap/one"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("error: there was a problem with the editor "), std::string::npos) << outcome.err;
  EXPECT_NE(kept_text(outcome.err).find("k: new\n"), std::string::npos);
  for (const char* flag : {"--windows-line-endings", "--windows-line-endings=false"})
    EXPECT_EQ(edit("false", {"configmap/one", flag}).err, "error: there was a problem with the editor \"false\"\n");
  EXPECT_FALSE(kept()) << "there is nothing of the user's in it";
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(EditTest, what_the_server_refuses_is_kept) {
  const std::string change = "sed -i 's/k: one/k: new/'";
  api_.refuse_writes(Error(Code::not_found, "it went away").with({}));
  FakeApi::Outcome outcome = edit(change, {"configmap/one"});
  EXPECT_EQ(outcome.code, 1);
  auto file = kept();
  ASSERT_TRUE(file);
  EXPECT_NE(file->text.find("k: new\n"), std::string::npos);
  EXPECT_EQ(outcome.err,
            "error: configmaps \"one\" could not be found on the server\nThe edits you made on deleted resources "
            "have been saved to \"" +
                file->path + "\"\n");
  for (Code code : {Code::conflict, Code::forbidden}) {
    api_.refuse_writes(Error(code, "not now").with({}));
    outcome = edit(change, {"configmap/one"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    file = kept();
    ASSERT_TRUE(file);
    EXPECT_NE(file->text.find("k: new\n"), std::string::npos);
    EXPECT_EQ(outcome.err, "error: configmaps \"one\" could not be patched: not now\nYou can run `coraclectl replace -f " +
                               file->path + "` to try this update again.\n");
  }
  EXPECT_EQ(api_.take_writes().size(), 3u) << "nothing is tried again";
}

TEST_F(EditTest, what_the_server_finds_is_shown_in_the_file) {
  api_.refuse_writes(
      Error(Code::invalid, "it is not valid").with({.causes = {{.reason = "x", .message = "too new", .field = "data.k"}}}));
  FakeApi::Outcome outcome = edit("sed -i 's/k: one/k: new/'", {"configmap/one"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.err.starts_with("error: configmaps \"one\" is invalid\n")) << outcome.err;
  std::string text = kept_text(outcome.err);
  EXPECT_NE(text.find("# configmaps \"one\" was not valid:\n# * data.k: too new\n#\n"), std::string::npos) << text;
}

TEST_F(EditTest, an_editor_that_never_ends_is_asked_six_times) {
  if (::isatty(STDIN_FILENO)) GTEST_SKIP() << "somebody at a terminal is asked for as long as he likes";
  FakeApi::Outcome outcome = edit("echo 'x: [' >>", {"configmap/one"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.err.ends_with("error: Edit cancelled, no valid changes were saved.\n")) << outcome.err;
  std::string text = kept_text(outcome.err);
  int times = 0;
  for (size_t at = 0; (at = text.find("\nx: [", at)) != text.npos; ++at) ++times;
  EXPECT_EQ(times, 6) << text;
}

TEST_F(EditTest, a_subresource_is_read_and_patched) {
  const std::string web = "/apis/apps/v1/namespaces/default/deployments/web";
  const std::string meta = R"("metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"replicas":2)";
  api_.put(web, R"({"apiVersion":"apps/v1","kind":"Deployment",)" + meta + R"(,"paused":true}})");
  api_.put(web + "/scale", R"({"apiVersion":"autoscaling/v1","kind":"Scale",)" + meta + "}}");
  FakeApi::Outcome outcome =
      edit("sed -i 's/replicas: 2/replicas: 3/; s/paused: true/paused: false/'", {"deployment/web", "--subresource=scale"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<FakeApi::Sent> sent = api_.take_writes();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].path, web + "/scale");
  EXPECT_EQ(to_text(sent[0].body), R"({"spec":{"replicas":3}})");
}

TEST_F(EditTest, output_patch_shows_what_is_sent) {
  FakeApi::Outcome outcome = edit("sed -i 's/k: two/k: new/'", {"configmaps", "--output-patch"});
  EXPECT_EQ(outcome.out, "configmap/one skipped\nPatch: {\"data\":{\"k\":\"new\"}}\nconfigmap/two edited\n");
  EXPECT_EQ(to_text(api_.take_writes().at(0).body), R"({"data":{"k":"new"}})");
}

}  // namespace
}  // namespace coracle::ctl
