// SPDX-License-Identifier: Apache-2.0
// Builds the kustomizations under cases/, whose outputs are kubectl's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ctl/kustomize/build.h"
#include "tests/ctl/kustomize/case.h"

namespace coracle::kustomize {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class Cases : public testing::Test {
 protected:
  void SetUp() override {
    place_ = fs::temp_directory_path() / ("kustomize-" + std::to_string(getpid()));
    before_ = fs::current_path();
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(place_);
  }

  void check(const fs::path& path) {
    auto sections = sections_of(content_of(path));
    fs::remove_all(place_);
    for (const auto& [name, text] : sections) {
      if (name == "about" || name == "build" || name == "want" || name == "error") continue;
      fs::create_directories((place_ / name).parent_path());
      std::ofstream(place_ / name, std::ios::binary) << text;
    }
    fs::current_path(place_);
    std::string directory = sections.contains("build") ? sections["build"] : ".";
    while (directory.ends_with('\n')) directory.pop_back();
    auto built = build(directory, {.order = Order::by_kind});
    if (sections.contains("error")) {
      std::string part = sections["error"].substr(0, sections["error"].size() - 1);
      ASSERT_FALSE(built) << path;
      EXPECT_NE(built.error().text().find(part), std::string::npos) << path << ": " << built.error().text();
      return;
    }
    ASSERT_TRUE(built) << path << ": " << built.error().text();
    EXPECT_EQ(to_yaml_stream(built->objects), sections["want"]) << path;
  }

  fs::path place_, before_;
};

TEST_F(Cases, build_as_kubectl_builds_them) {
  const char* root = std::getenv("CORACLE_SOURCE");
  ASSERT_NE(root, nullptr);
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(root) / "tests/ctl/kustomize/cases")) {
    check(entry.path());
    ++count;
  }
  EXPECT_GE(count, 30u);
}

}  // namespace
}  // namespace coracle::kustomize
