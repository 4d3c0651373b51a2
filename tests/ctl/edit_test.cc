// SPDX-License-Identifier: Apache-2.0
// From the arguments of label, annotate and set to patches; and edit, with editors that change the same each time.
#include "ctl/edit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

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
    for (std::string name : {"one", "two"})
      api_.put(kEditedMaps + name, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","uid":"u-)" + name +
                                       R"(","name":")" + name + R"("},"data":{"k":")" + name + R"("}})");
  }
  ~EditTest() override { ::unsetenv("KUBE_EDITOR"); }
  FakeApi::Outcome edit(const char* editor, std::vector<std::string> words) {
    ::setenv("KUBE_EDITOR", editor, 1);
    words.insert(words.begin(), "edit");
    return api_.run(words);
  }
  // Removes the file that a message names, and gives its text.
  static std::string kept_text(const std::string& messages) {
    const std::string before = "A copy of your changes has been stored to \"";
    size_t start = messages.find(before);
    if (start == messages.npos) return "no file is named: " + messages;
    start += before.size();
    std::string path = messages.substr(start, messages.find('"', start) - start);
    std::ifstream file(path);
    std::string text(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove(path);
    return text;
  }
  std::string value(const std::string& name) {
    FakeApi::Objects objects = api_.objects();
    return std::string(get_string(objects[kEditedMaps + name], "data.k"));
  }

  FakeApi api_;
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
  EXPECT_NE(text.find("# The edited file is not valid: "), std::string::npos) << text;
  EXPECT_NE(text.find("data: ["), std::string::npos) << text;
  outcome = edit("sed -i 's/name: one/name: other/'", {"configmap/one"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("error: At least one of apiVersion, kind and name was changed\n"), std::string::npos);
  EXPECT_NE(kept_text(outcome.err).find("name: other"), std::string::npos);
  EXPECT_TRUE(api_.take_writes().empty());
}

}  // namespace
}  // namespace coracle::ctl
