// SPDX-License-Identifier: Apache-2.0
// The command kustomize, and -k of the commands that take files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

class KustomizeCommand : public testing::Test {
 protected:
  KustomizeCommand() {
    directory_ = testing::TempDir() + "/kustomize-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    write("kustomization.yaml", "resources: [b.yaml, a.yaml]\nnamePrefix: p-\ncommonLabels: {l: v}\n");
    write("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: \"1\"}\n");
    write("b.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: b, namespace: other}\n");
  }
  ~KustomizeCommand() override { fs::remove_all(directory_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(directory_ + "/" + name) << text; }
  std::string read(const std::string& name) {
    std::ifstream file(directory_ + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  FakeApi api_;
  std::string directory_;
};

constexpr const char* kWarning =
    "# Warning: 'commonLabels' is deprecated. Please use 'labels' instead. Run 'kustomize edit fix' to update your Kustomization "
    "automatically.\n";
constexpr const char* kMapText =
    "apiVersion: v1\ndata:\n  x: \"1\"\nkind: ConfigMap\nmetadata:\n  labels:\n    l: v\n  name: p-a\n";
constexpr const char* kSecretText =
    "apiVersion: v1\nkind: Secret\nmetadata:\n  labels:\n    l: v\n  name: p-b\n  namespace: other\n";

TEST_F(KustomizeCommand, prints_in_the_order_of_kinds) {
  FakeApi::Outcome outcome = api_.run({"kustomize", directory_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, std::string(kMapText) + "---\n" + kSecretText);
  EXPECT_EQ(outcome.err, kWarning);
  outcome = api_.run({"kustomize", directory_, "--reorder", "none"});
  EXPECT_EQ(outcome.out, std::string(kSecretText) + "---\n" + kMapText);
}

TEST_F(KustomizeCommand, writes_a_file_or_one_for_each_object) {
  fs::create_directory(directory_ + "/out");
  EXPECT_EQ(api_.run({"kustomize", directory_, "-o", directory_ + "/all"}).code, 0);
  EXPECT_EQ(read("all"), std::string(kMapText) + "---\n" + kSecretText);
  EXPECT_EQ(api_.run({"kustomize", directory_, "-o", directory_ + "/out"}).code, 0);
  EXPECT_EQ(read("out/default_v1_configmap_p-a.yaml"), kMapText);
  EXPECT_EQ(read("out/other_v1_secret_p-b.yaml"), kSecretText);
}

TEST_F(KustomizeCommand, names_wrong_flags) {
  EXPECT_EQ(api_.run({"kustomize", directory_, directory_}).err, "error: specify one path to kustomization.yaml\n");
  EXPECT_EQ(api_.run({"kustomize", directory_, "--load-restrictor=x"}).err,
            "error: illegal flag value --load-restrictor x; legal values: [LoadRestrictionsRootOnly LoadRestrictionsNone]\n");
  FakeApi::Outcome outcome = api_.run({"kustomize", "/no/such"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("/no/such"), std::string::npos) << outcome.err;
}

TEST_F(KustomizeCommand, commands_take_its_objects) {
  FakeApi::Outcome outcome = api_.run({"create", "-k", directory_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "secret/p-b created\nconfigmap/p-a created\n");
  EXPECT_TRUE(api_.objects().contains("/api/v1/namespaces/default/configmaps/p-a"));
  outcome = api_.run({"get", "-k", directory_, "-o", "name"});
  EXPECT_EQ(outcome.out, "secret/p-b\nconfigmap/p-a\n") << outcome.err;
  outcome = api_.run({"delete", "-k", directory_, "--wait=false"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(api_.objects().contains("/api/v1/namespaces/default/configmaps/p-a"));
}

TEST_F(KustomizeCommand, files_and_a_kustomization_exclude_each_other) {
  EXPECT_EQ(api_.run({"apply", "-k", directory_, "-f", directory_ + "/a.yaml"}).err,
            "error: only one of -f or -k can be specified\n");
  EXPECT_EQ(api_.run({"apply", "-k", directory_, "-R"}).err, "error: the -k flag can't be used with -f or -R\n");
  EXPECT_EQ(api_.run({"apply"}).err, "error: must specify one of -f and -k\n");
  EXPECT_TRUE(api_.take_writes().empty());
}

}  // namespace
}  // namespace coracle::ctl
