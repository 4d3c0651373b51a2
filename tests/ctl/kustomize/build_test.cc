// SPDX-License-Identifier: Apache-2.0
// Builds of directories: what cases/ cannot have, such as bytes that are no text, links, and hostile inputs.
#include "ctl/kustomize/build.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace coracle::kustomize {
namespace {

namespace fs = std::filesystem;

class Build : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(place_); }
  void TearDown() override { fs::remove_all(place_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((place_ / path).parent_path());
    std::ofstream(place_ / path, std::ios::binary) << text;
  }
  std::string built(const std::string& directory = ".", BuildOptions options = {}) {
    auto result = build(place_ / directory, options);
    if (!result) return "error: " + result.error().text();
    return to_yaml_stream(result->objects);
  }

  const fs::path place_ = fs::temp_directory_path() / ("kustomize-build-" + std::to_string(getpid()));
};

constexpr const char* kMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

TEST_F(Build, bytes_that_are_no_text_become_binary_data) {
  write("kustomization.yaml",
        "configMapGenerator: [{name: a, files: [b.bin]}]\ngeneratorOptions: {disableNameSuffixHash: true}\n");
  write("b.bin", std::string("\xff\xfe") + std::string(60, 'x'));
  EXPECT_EQ(
      built(),
      "apiVersion: v1\nbinaryData:\n  b.bin: |\n    //54eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eH\n"
      "    h4eHh4eHh4eHg=\nkind: ConfigMap\nmetadata:\n  name: a\n");
}

TEST_F(Build, the_order_of_the_files_is_kept_for_the_api) {
  write("kustomization.yaml", "resources: [b.yaml, a.yaml]\n");
  write("a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n");
  write("b.yaml", kMap);
  EXPECT_LT(built().find("ConfigMap"), built().find("Namespace"));
  EXPECT_GT(built(".", {.order = Order::by_kind}).find("ConfigMap"), built(".", {.order = Order::by_kind}).find("Namespace"));
}

TEST_F(Build, links_lead_out_only_without_the_restriction) {
  write("in/kustomization.yaml", "resources: [link.yaml]\n");
  write("out.yaml", kMap);
  fs::create_symlink("../out.yaml", place_ / "in/link.yaml");
  EXPECT_NE(built("in").find("is not in or below"), std::string::npos) << built("in");
  EXPECT_EQ(built("in", {.restricted = false}), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n");
}

TEST_F(Build, what_is_no_file_is_not_read) {
  write("kustomization.yaml", "configMapGenerator: [{name: a, files: [x=/dev/zero]}]\n");
  EXPECT_NE(built(".", {.restricted = false}).find("configMapGenerator[0]: files: /dev/zero is not a regular file"),
            std::string::npos);
}

TEST_F(Build, remote_bases_are_refused) {
  for (const char* remote : {"https://example.com/a.yaml", "github.com/org/repo//path?ref=v1", "git@example.com:org/repo.git",
                             "ssh://git@example.com/repo"}) {
    write("kustomization.yaml", std::string("resources: [\"") + remote + "\"]\n");
    EXPECT_NE(built().find(std::string(remote) + " is remote, and kustomizations are built from local files only"),
              std::string::npos)
        << built();
  }
}

TEST_F(Build, charts_are_refused) {
  write("kustomization.yaml", "helmCharts: [{name: x}]\n");
  EXPECT_NE(built().find("kustomization.yaml: helmCharts: charts need the program helm"), std::string::npos) << built();
}

TEST_F(Build, bases_above_are_a_cycle) {
  write("kustomization.yaml", "resources: [a]\n");
  write("a/kustomization.yaml", "resources: [..]\n");
  EXPECT_NE(built("a").find("cycle"), std::string::npos) << built("a");
  write("a/kustomization.yaml", "resources: [.]\n");
  EXPECT_NE(built("a").find("cycle"), std::string::npos) << built("a");
}

TEST_F(Build, bases_that_double_are_bounded) {
  for (int i = 0; i < 40; ++i) {
    std::string next = "../l" + std::to_string(i + 1);
    write("l" + std::to_string(i) + "/kustomization.yaml", "resources: [" + next + ", " + next + "]\n");
  }
  write("l40/kustomization.yaml", "resources: []\n");
  EXPECT_NE(built("l0").find("too many bases"), std::string::npos) << built("l0");
}

TEST_F(Build, replacements_that_double_are_bounded) {
  std::string text = "resources: [a.yaml]\nreplacements:\n";
  for (int i = 0; i < 60; ++i)
    text += "- source: {kind: ConfigMap, fieldPath: data}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x" +
            std::to_string(i) + "], options: {create: true}}]\n";
  write("kustomization.yaml", text);
  write("a.yaml", std::string(kMap) + "data: {a: b}\n");
  EXPECT_NE(built().find("error: "), std::string::npos);
  text = "resources: [a.yaml]\nreplacements:\n";
  for (int i = 0; i < 60; ++i)
    text +=
        "- source: {kind: ConfigMap, fieldPath: data.a}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a], options: "
        "{delimiter: \"/\", index: -1}}]\n";
  write("kustomization.yaml", text);
  EXPECT_NE(built().find("longer than 16 MiB"), std::string::npos);
}

TEST_F(Build, a_type_with_itself_in_it_ends) {
  write("kustomization.yaml", "crds: [crd.json]\nnamePrefix: p-\nresources: [a.yaml]\n");
  write("crd.json",
        R"({"x.T": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "self": {"$ref": "x.T"}}}}})");
  write("a.yaml", kMap);
  EXPECT_EQ(built(), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p-a\n");
}

TEST_F(Build, says_which_file_is_missing) {
  write("kustomization.yaml", "resources: [none.yaml]\n");
  EXPECT_NE(built().find("kustomization.yaml: resources[0]: there is no file or directory"), std::string::npos) << built();
  fs::remove(place_ / "kustomization.yaml");
  EXPECT_NE(built().find("unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization'"),
            std::string::npos);
  EXPECT_NE(built("none").find("error: "), std::string::npos);
}

}  // namespace
}  // namespace coracle::kustomize
