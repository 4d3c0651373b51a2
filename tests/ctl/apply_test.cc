// SPDX-License-Identifier: Apache-2.0
// apply with its subcommands, diff and replace, against a server that stores objects: the annotation, --prune, --force,
// --overwrite, and what the flags refuse.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ctl/last_applied.h"
#include "ctl/merge_conflict.h"
#include "store/schema/catalog.h"
#include "tests/ctl/fake_api.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

const std::string kAppliedMaps = "/api/v1/namespaces/default/configmaps/";

class ApplyTest : public testing::Test {
 protected:
  ApplyTest() {
    directory_ = testing::TempDir() + "/apply-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
  }
  ~ApplyTest() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  std::string map(const std::string& name, const std::string& value = "1") {
    return file(name + ".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
                                    ", labels: {app: web}}\ndata: {a: \"" + value + "\"}\n");
  }
  std::string out(const std::vector<std::string>& words) {
    FakeApi::Outcome outcome = api_.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  std::string failure(const std::vector<std::string>& words) {
    FakeApi::Outcome outcome = api_.run(words);
    EXPECT_NE(outcome.code, 0) << outcome.out;
    return outcome.err;
  }
  std::string annotation(const std::string& name) {
    auto objects = api_.objects();
    return std::string(last_applied_text(objects[kAppliedMaps + name]).value_or("none"));
  }

  FakeApi api_;
  std::string directory_;
};

// ---- the annotation ----

TEST(LastApplied, text_is_that_of_kubectl) {
  json::value object = parsed(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"a":"<b>&c"}})");
  EXPECT_EQ(applied_text(object),
            "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"\\u003cb\\u003e\\u0026c\"},\"kind\":\"ConfigMap\",\"metadata\":{"
            "\"annotations\":{},\"name\":\"x\"}}\n");
  json::value once = with_last_applied(object), twice = with_last_applied(once);
  EXPECT_EQ(once, twice) << "it does not contain itself";
  save_config(object);
  EXPECT_EQ(*last_applied_text(object),
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":"
            "\"\\u003cb\\u003e\\u0026c\"}}\n");
}

TEST_F(ApplyTest, view_shows_what_was_applied) {
  out({"apply", "-f", map("cfg")});
  EXPECT_EQ(
      out({"apply", "view-last-applied", "configmap/cfg"}),
      "apiVersion: v1\ndata:\n  a: \"1\"\nkind: ConfigMap\nmetadata:\n  annotations: {}\n  labels:\n    app: web\n  name: cfg\n"
      "  namespace: default\n");
  EXPECT_TRUE(out({"apply", "view-last-applied", "configmap", "-l", "app=web", "-o", "json"})
                  .starts_with("{\n  \"apiVersion\": \"v1\",\n"));
  EXPECT_EQ(out({"apply", "view-last-applied", "-f", map("cfg")}).substr(0, 15), "apiVersion: v1\n");
  api_.put(kAppliedMaps + "bare", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bare","namespace":"default"}})");
  EXPECT_EQ(failure({"apply", "view-last-applied", "configmap", "bare"}),
            "error: no last-applied-configuration annotation found on resource: bare\n");
  EXPECT_NE(failure({"apply", "view-last-applied", "configmap", "cfg", "-o", "name"}).find("must be one of yaml|json"),
            std::string::npos);
}

TEST_F(ApplyTest, set_changes_the_annotation_only) {
  api_.put(kAppliedMaps + "cfg",
           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cfg","namespace":"default"},"data":{"a":"live"}})");
  EXPECT_EQ(
      failure({"apply", "set-last-applied", "-f", map("cfg")}),
      "error: no last-applied-configuration annotation found on resource: cfg, to create the annotation, run the command with "
      "--create-annotation\n");
  EXPECT_EQ(out({"apply", "set-last-applied", "-f", map("cfg"), "--create-annotation", "--dry-run=client"}),
            "configmap/cfg configured (dry run)\n");
  EXPECT_EQ(annotation("cfg"), "none");
  EXPECT_EQ(out({"apply", "set-last-applied", "-f", map("cfg"), "--create-annotation"}), "configmap/cfg configured\n");
  EXPECT_EQ(
      annotation("cfg"),
      R"({"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"labels":{"app":"web"},"name":"cfg","namespace":"default"}})"
      "\n");
  EXPECT_EQ(get_string(api_.objects()[kAppliedMaps + "cfg"], "data.a"), "live");
  api_.take_writes();
  EXPECT_EQ(out({"apply", "set-last-applied", "-f", map("cfg")}), "set-last-applied cfg: no changes required.\n");
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(ApplyTest, edit_changes_the_annotation_only) {
  out({"apply", "-f", map("cfg"), "-f", map("other")});
  ::setenv("KUBE_EDITOR", "sed -i s/1/2/", 1);
  EXPECT_EQ(out({"apply", "edit-last-applied", "configmap/cfg"}), "configmap/cfg edited\n");
  EXPECT_NE(annotation("cfg").find(R"("data":{"a":"2"})"), std::string::npos) << annotation("cfg");
  EXPECT_EQ(get_string(api_.objects()[kAppliedMaps + "cfg"], "data.a"), "1");
  ::setenv("KUBE_EDITOR", "true", 1);
  FakeApi::Outcome outcome = api_.run({"apply", "edit-last-applied", "configmap/cfg"});
  EXPECT_EQ(outcome.err, "Edit cancelled, no changes made.\n");
  ::setenv("KUBE_EDITOR", "sed -i 's/\"a\": \"1\"/\"a\": \"3\"/'", 1);
  EXPECT_EQ(out({"apply", "edit-last-applied", "configmap", "cfg", "other", "-o", "json"}).find("edited"), std::string::npos);
  EXPECT_NE(annotation("other").find(R"("data":{"a":"3"})"), std::string::npos);
  EXPECT_NE(annotation("cfg").find(R"("data":{"a":"2"})"), std::string::npos);
  ::setenv("KUBE_EDITOR", "sed -i 's/a: .*/a: \"7\"/'", 1);
  EXPECT_EQ(out({"apply", "edit-last-applied", "configmaps", "--record"}), "configmap/cfg edited\nconfigmap/other edited\n");
  for (const char* name : {"cfg", "other"}) {
    EXPECT_NE(annotation(name).find(R"("data":{"a":"7"})"), std::string::npos);
    EXPECT_NE(annotation(name).find("coraclectl apply edit-last-applied configmaps --record=true"), std::string::npos)
        << "it is in what apply remembers";
  }
  ::unsetenv("KUBE_EDITOR");
}

// As of edit: the file is opened again, and kept where nothing is mended then.
TEST_F(ApplyTest, a_configuration_that_is_not_valid_is_opened_again) {
  out({"apply", "-f", map("cfg")});
  const std::string before = annotation("cfg");
  api_.take_writes();
  std::filesystem::create_directory(directory_ + "/edited");
  const char* set = std::getenv("TMPDIR");
  const std::string usual = set ? set : "";
  ::setenv("TMPDIR", (directory_ + "/edited").c_str(), 1);  // where the file is
  for (auto [editor, told, why] :
       {std::tuple{"sed -i 's/^data:$/data: [/'", "", "# The edited file had a syntax error: "},
        std::tuple{"sed -i 's/^data:$/date:/'", "error: configmaps \"cfg\" is invalid\n", "# The edited file is not valid: "}}) {
    ::setenv("KUBE_EDITOR", editor, 1);
    FakeApi::Outcome outcome = api_.run({"apply", "edit-last-applied", "configmap/cfg"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    std::string path;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/edited")) path = entry.path();
    EXPECT_EQ(outcome.err, told + ("A copy of your changes has been stored to \"" + path) +
                               "\"\nerror: Edit cancelled, no valid changes were saved.\n");
    std::ifstream kept(path);
    EXPECT_NE(std::string(std::istreambuf_iterator<char>(kept), {}).find(why), std::string::npos);
    std::filesystem::remove(path);
  }
  ::setenv("KUBE_EDITOR", "! grep '#'", 1);  // it fails where there is a comment: JSON has none
  EXPECT_EQ(api_.run({"apply", "edit-last-applied", "configmap/cfg", "-o", "json"}).err, "Edit cancelled, no changes made.\n");
  EXPECT_EQ(api_.run({"create", "-f", map("new"), "--edit", "-o", "json"}).err, "Edit cancelled, no changes made.\n");
  ::unsetenv("KUBE_EDITOR");
  if (set) ::setenv("TMPDIR", usual.c_str(), 1);
  else ::unsetenv("TMPDIR");
  EXPECT_EQ(annotation("cfg"), before);
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(ApplyTest, create_edits_before_it_creates) {
  std::filesystem::create_directory(directory_ + "/made");
  const char* set = std::getenv("TMPDIR");
  const std::string usual = set ? set : "";
  ::setenv("TMPDIR", (directory_ + "/made").c_str(), 1);  // where the file is
  auto edited = [&](const char* editor) {
    ::setenv("KUBE_EDITOR", editor, 1);
    return api_.run({"create", "-f", map("made"), "--edit"});
  };
  auto kept = [&] {
    std::string path;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/made")) path = entry.path();
    if (!path.empty()) std::filesystem::remove(path);
    return path;
  };
  EXPECT_EQ(edited("true").err, "Edit cancelled, no changes made.\n");
  EXPECT_EQ(edited("sed -i d").err, "Edit cancelled, saved file was empty.\n");
  EXPECT_EQ(kept(), "");
  FakeApi::Outcome outcome = edited("sed -i 's/^kind:.*/kind: [/'");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "A copy of your changes has been stored to \"" + kept() +
                             "\"\nerror: Edit cancelled, no valid changes were saved.\n");
  EXPECT_TRUE(api_.take_writes().empty());
  api_.refuse_writes(Error(Code::forbidden, "not today").with({}));
  outcome = edited("sed -i 's/a: .*/a: seven/'");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err,
            "A copy of your changes has been stored to \"" + kept() + "\"\nError from server (Forbidden): not today\n");
  auto writes = api_.take_writes();
  ASSERT_EQ(writes.size(), 1u) << "it is not tried again";
  EXPECT_EQ(get_string(writes[0].body, "data.a"), "seven");
  ::unsetenv("KUBE_EDITOR");
  if (set) ::setenv("TMPDIR", usual.c_str(), 1);
  else ::unsetenv("TMPDIR");
}

TEST_F(ApplyTest, create_and_replace_save_the_configuration) {
  out({"create", "configmap", "made", "--from-literal=a=b", "--save-config"});
  EXPECT_EQ(annotation("made"),
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"made\",\"namespace\":\"default\"},\"data\":{"
            "\"a\":\"b\"}}\n");
  out({"create", "-f", map("cfg"), "--save-config"});
  EXPECT_EQ(out({"apply", "-f", map("cfg")}), "configmap/cfg unchanged\n");
  out({"replace", "-f", map("cfg", "2"), "--save-config"});
  EXPECT_NE(annotation("cfg").find(R"("data":{"a":"2"})"), std::string::npos);
}

TEST_F(ApplyTest, says_what_failed_of_which_file) {
  const std::string path = map("cfg");
  api_.refuse_writes(Error(Code::forbidden, "not today").with({}));
  EXPECT_EQ(failure({"apply", "-f", path}), "Error from server (Forbidden): error when creating \"" + path + ":1\": not today\n");
  EXPECT_EQ(failure({"apply", "-f", path, "--server-side"}), "Error from server (Forbidden): not today\n");
  api_.put(kAppliedMaps + "cfg", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cfg","namespace":"default"}})");
  EXPECT_NE(
      failure({"apply", "-f", path}).find("Error from server (Forbidden): error when applying \"" + path + ":1\": not today\n"),
      std::string::npos);
  EXPECT_EQ(failure({"apply", "-f", file("new.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: new-}}")}),
            "error: from new-: cannot use generate name with apply\n");
  api_.forbid("configmaps");
  EXPECT_EQ(
      failure({"apply", "-f", path}),
      "Error from server (Forbidden): error when retrieving current configuration of:\nResource: \"/v1, "
      "Resource=configmaps\", GroupVersionKind: \"/v1, Kind=ConfigMap\"\nName: \"cfg\", Namespace: \"default\"\nfrom server "
      "for: \"" +
          path + ":1\": configmaps is forbidden: User \"eve\" cannot read it\n");
}

// ---- prune ----

TEST_F(ApplyTest, prunes_what_was_applied_and_is_gone_from_the_files) {
  out({"apply", "-f", map("one"), "-f", map("two")});
  api_.put(
      kAppliedMaps + "foreign",
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foreign","namespace":"default","uid":"f","labels":{"app":"web"}}})");
  std::vector<std::string> words = {"apply", "--prune", "-l", "app=web", "-f", map("one")};
  for (auto [flag, note] : {std::pair{"--dry-run=client", " (dry run)"}, std::pair{"--dry-run=server", " (server dry run)"}}) {
    std::vector<std::string> dry = words;
    dry.push_back(flag);
    EXPECT_EQ(out(dry), "configmap/one unchanged" + std::string(note) + "\nconfigmap/two pruned" + note + "\n");
    EXPECT_TRUE(api_.objects().contains(kAppliedMaps + "two"));
  }
  EXPECT_EQ(out(words), "configmap/one unchanged\nconfigmap/two pruned\n");
  EXPECT_FALSE(api_.objects().contains(kAppliedMaps + "two"));
  EXPECT_TRUE(api_.objects().contains(kAppliedMaps + "one"));
  EXPECT_TRUE(api_.objects().contains(kAppliedMaps + "foreign")) << "apply did not create it";
}

TEST_F(ApplyTest, prunes_only_kinds_of_the_list) {
  out({"apply", "-f", map("one"), "-f", map("two")});
  EXPECT_EQ(out({"apply", "--prune", "--all", "--prune-allowlist=core/v1/Secret", "-f", map("one")}),
            "configmap/one unchanged\n");
  EXPECT_EQ(out({"apply", "--prune", "--all", "--prune-allowlist=core/v1/Secret", "--prune-allowlist=core/v1/ConfigMap",
                 "--cascade=orphan", "--grace-period=3", "-f", map("one")}),
            "configmap/one unchanged\nconfigmap/two pruned\n");
  auto writes = api_.take_writes();
  ASSERT_FALSE(writes.empty());
  EXPECT_EQ(get_string(writes.back().body, "propagationPolicy"), "Orphan");
  EXPECT_EQ(get_int(writes.back().body, "gracePeriodSeconds"), 3);
}

TEST_F(ApplyTest, prunes_nothing_after_a_failure) {
  out({"apply", "-f", map("one"), "-f", map("two")});
  std::string wrong = file("wrong.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x, labels: {app: web}}\n");
  EXPECT_NE(
      failure({"apply", "--prune", "-l", "app=web", "-f", map("one"), "-f", wrong}).find("cannot use generate name with apply"),
      std::string::npos);
  EXPECT_TRUE(api_.objects().contains(kAppliedMaps + "two"));
}

TEST_F(ApplyTest, says_of_which_kind_nothing_could_be_pruned) {
  out({"apply", "-f", map("one")});
  api_.forbid("secrets");
  EXPECT_EQ(failure({"apply", "--prune", "--all", "-f", map("one")}),
            "error: error pruning namespaced object /v1, Kind=Secret: secrets is forbidden: User \"eve\" cannot read it\n");
}

TEST_F(ApplyTest, refuses_flags_that_do_not_go_together) {
  std::string cfg = map("cfg");
  struct Row {
    std::vector<std::string> flags;
    std::string want;
  };
  for (const Row& row : std::vector<Row>{
           {{"--prune"},
            "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. "
            "If you did not mean to prune all resources, specify a label selector"},
           {{"--prune", "--all", "--force"}, "--force cannot be used with --prune"},
           {{"--prune", "--all", "--server-side"},
            "--prune is in alpha and doesn't currently work on objects created by server-side apply"},
           {{"--prune", "--all", "--prune-allowlist=ConfigMap"},
            "invalid GroupVersionKind format: ConfigMap, please follow <group/version/kind>"},
           {{"--all", "-l", "a=b"}, "cannot set --all and --selector at the same time"},
           {{"--force-conflicts"}, "--force-conflicts only works with --server-side"},
           {{"--force", "--server-side"}, "--force cannot be used with --server-side"},
           {{"--force", "--dry-run=server"}, "--dry-run=server cannot be used with --force"},
           {{"--subresource=status"}, "--subresource can only be specified for --server-side"},
           {{"--validate=maybe"},
            "invalid - validate option \"maybe\"; must be one of: strict (or true), warn, ignore (or false)"},
           {{"--cascade=maybe"}, "invalid cascade value (maybe). Must be \"background\", \"foreground\", or \"orphan\""}}) {
    std::vector<std::string> words = {"apply", "-f", cfg};
    words.insert(words.end(), row.flags.begin(), row.flags.end());
    EXPECT_EQ(failure(words), "error: " + row.want + "\n");
    EXPECT_TRUE(api_.take_writes().empty());
  }
}

TEST_F(ApplyTest, a_selector_chooses_documents) {
  std::string other = file("other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n");
  EXPECT_EQ(out({"apply", "-l", "app=web", "-f", map("cfg"), "-f", other}), "configmap/cfg created\n");
  EXPECT_EQ(out({"create", "-l", "app!=web", "-f", map("cfg"), "-f", other}), "configmap/other created\n");
  EXPECT_EQ(failure({"apply", "-l", "app=none", "-f", map("cfg")}), "error: no objects passed to apply\n");
}

// ---- overwrite ----

TEST_F(ApplyTest, does_not_overwrite_others_if_told_so) {
  out({"apply", "-f", map("cfg")});
  json::value live = api_.objects()[kAppliedMaps + "cfg"];
  make(live, "data.a") = "theirs";
  api_.put(kAppliedMaps + "cfg", to_text(live));
  std::string refused = failure({"apply", "--overwrite=false", "-f", map("cfg", "2")});
  EXPECT_NE(refused.find("conflicts with changes that others made"), std::string::npos) << refused;
  EXPECT_EQ(get_string(api_.objects()[kAppliedMaps + "cfg"], "data.a"), "theirs");
  EXPECT_EQ(out({"apply", "-f", map("cfg", "2")}), "configmap/cfg configured\n");
}

TEST(MergeConflict, compares_lists_by_their_keys) {
  const schema::Type& type = schema::catalog().of(kPod).type();
  auto conflict = [&](std::string_view left, std::string_view right) {
    return patches_conflict(&type, parsed(left), parsed(right));
  };
  std::string image_a = R"({"spec":{"containers":[{"name":"a","image":"1"}]}})";
  EXPECT_FALSE(conflict(image_a, R"({"spec":{"containers":[{"name":"b","image":"2"}]}})"));
  EXPECT_FALSE(conflict(image_a, R"({"spec":{"containers":[{"name":"a","tty":true}]}})"));
  EXPECT_FALSE(conflict(image_a, image_a));
  EXPECT_TRUE(conflict(image_a, R"({"spec":{"containers":[{"name":"a","image":"2"}]}})"));
  EXPECT_TRUE(conflict(image_a, R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})"));
  EXPECT_TRUE(conflict(R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"a":null}}})"));
  EXPECT_FALSE(conflict(R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"b":"1"}}})"));
}

// ---- diff, replace ----

TEST_F(ApplyTest, diff_compares_in_parallel_and_shows_what_would_be_pruned) {
  out({"apply", "-f", map("one"), "-f", map("two"), "-f", map("three")});
  ::setenv("KUBECTL_EXTERNAL_DIFF", "diff -r -N -q", 1);
  testing::internal::CaptureStdout();  // not seen by the program that compares; only its status counts
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(api_.run({"diff", "--concurrency=3", "-f", map("one"), "-f", map("two"), "-f", map("three")}).code, 0);
  EXPECT_EQ(api_.run({"diff", "--concurrency=3", "-f", map("one"), "-f", map("two", "2"), "-f", map("three")}).code, 1);
  EXPECT_EQ(api_.run({"diff", "--prune", "-l", "app=web", "-f", map("one"), "-f", map("two")}).code, 1);
  EXPECT_EQ(api_.run({"diff", "--prune", "-l", "app=none", "-f", map("one")}).code, 0) << "nothing is chosen";
  EXPECT_EQ(api_.run({"diff", "--concurrency=0", "-f", map("one")}).code, 2);
  json::value leaving = api_.objects()[kAppliedMaps + "one"];
  make(leaving, "metadata.deletionTimestamp") = "2024-01-02T03:04:05Z";
  api_.put(kAppliedMaps + "one", to_text(leaving));
  EXPECT_EQ(api_.run({"diff", "-f", map("one")}).err,
            "Warning: Detected changes to resource one which is currently being deleted.\n");
  ::setenv("KUBECTL_EXTERNAL_DIFF", "test -d", 1);
  EXPECT_GT(api_.run({"diff", "-f", map("one")}).code, 1) << "options of the user's program come last";
  ::unsetenv("KUBECTL_EXTERNAL_DIFF");
  for (const auto& [path, object] : api_.objects()) EXPECT_EQ(get_string(object, "data.a"), "1");
  api_.forbid("configmaps");
  FakeApi::Outcome outcome = api_.run({"diff", "-f", map("one")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "Error from server (Forbidden): configmaps is forbidden: User \"eve\" cannot read it\n");
}

TEST_F(ApplyTest, replace_force_deletes_all_before_it_creates) {
  out({"create", "-f", map("one"), "-f", map("two")});
  api_.take_writes();
  EXPECT_EQ(out({"replace", "--force", "-f", map("one", "2"), "-f", map("two", "2"), "-f", map("three")}),
            "configmap \"one\" deleted from default namespace\nconfigmap \"two\" deleted from default namespace\n"
            "configmap/one replaced\nconfigmap/two replaced\nconfigmap/three replaced\n");
  std::string methods;
  for (const auto& sent : api_.take_writes()) methods += sent.method + " ";
  EXPECT_EQ(methods, "DELETE DELETE DELETE POST POST POST ");
  EXPECT_EQ(failure({"replace", "--grace-period=1", "-f", map("one")}), "error: --grace-period must have --force specified\n");
  EXPECT_EQ(failure({"replace", "--timeout=1s", "-f", map("one")}), "error: --timeout must have --force specified\n");
}

TEST_F(ApplyTest, replace_takes_the_current_version) {
  out({"create", "-f", map("one")});
  api_.take_writes();
  out({"replace", "-f", map("one", "2")});
  auto writes = api_.take_writes();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_FALSE(get_string(writes[0].body, "metadata.resourceVersion").empty());
}

}  // namespace
}  // namespace coracle::ctl
