// SPDX-License-Identifier: Apache-2.0
// Contains the list of advisories that this runtime covers, and checks that each has a row in advisories.tsv: a description of
// the attack, and the tests that perform it (or prove that it does not apply). A row with an absent or disabled test is an error,
// and so is an advisory without a row. Run with the source tree as CORACLE_SOURCE.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string root() {
  const char* path = std::getenv("CORACLE_SOURCE");
  return path ? path : ".";
}

// Runtimes, then images and registries: the advisories about functions that this runtime has, from 2019 on.
const std::set<std::string>& listed() {
  static const std::set<std::string> all = {
      "CVE-2019-5736",       "CVE-2019-16884",      "CVE-2019-19921", "CVE-2023-27561", "CVE-2023-28642",      "CVE-2021-30465",
      "CVE-2021-43784",      "GHSA-g54h-m393-cpwq", "CVE-2022-29162", "CVE-2022-24769", "CVE-2022-27649",      "CVE-2022-27650",
      "CVE-2022-27651",      "CVE-2022-27652",      "CVE-2022-2995",  "CVE-2022-36109", "CVE-2023-25173",      "CVE-2023-25809",
      "CVE-2024-21626",      "CVE-2026-55686",      "CVE-2024-45310", "CVE-2025-31133", "CVE-2025-52565",      "CVE-2025-52881",
      "CVE-2026-41579",      "CVE-2026-47766",      "CVE-2026-30892", "CVE-2024-40635", "CVE-2026-46680",      "CVE-2022-0811",
      "CVE-2022-0532",       "GHSA-w2j5-3rcx-vx7x", "CVE-2024-3154",  "CVE-2022-4318",  "CVE-2024-5154",       "CVE-2023-6476",
      "CVE-2025-47291",      "CVE-2024-0132",       "CVE-2025-23266", "CVE-2025-23267", "GHSA-7ww5-4wqc-m92c", "CVE-2021-32760",
      "CVE-2021-29136",      "CVE-2025-47290",      "CVE-2022-23648", "CVE-2021-41103", "CVE-2021-41091",      "CVE-2024-25621",
      "CVE-2024-9676",       "CVE-2025-4437",       "CVE-2026-47262", "CVE-2026-53488", "CVE-2023-25153",      "CVE-2024-3727",
      "GHSA-5j5w-g665-5m35", "CVE-2020-15157",      "CVE-2024-1753",  "CVE-2024-9407",  "CVE-2024-9675",       "CVE-2024-11218",
      "CVE-2026-44517",      "CVE-2025-9566",       "CVE-2026-50195", "CVE-2026-53489", "CVE-2026-53492",      "CVE-2024-8676",
      "CVE-2025-0426"};
  return all;
}

struct Row {
  std::string mechanism;
  std::vector<std::string> tests;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out(1);
  for (char c : text)
    if (c == at) out.emplace_back();
    else out.back() += c;
  return out;
}

std::map<std::string, Row> rows() {
  std::map<std::string, Row> out;
  std::ifstream file(root() + "/tests/attacks/advisories.tsv");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    auto fields = split(line, '\t');
    EXPECT_EQ(fields.size(), 3u) << line;
    if (fields.size() != 3) continue;
    EXPECT_FALSE(out.count(fields[0])) << fields[0] << " stands twice";
    out[fields[0]] = {fields[1], split(fields[2], ' ')};
  }
  return out;
}

// "Suite.name" of every test that GoogleTest runs.
const std::set<std::string>& tests() {
  static const std::set<std::string> found = [] {
    std::set<std::string> out;
    static const std::regex declared(R"(\bTEST(_F|_P)?\(\s*(\w+),\s*(\w+)\s*\))");
    for (const auto& entry : fs::recursive_directory_iterator(root() + "/tests")) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      std::ifstream file(entry.path());
      std::string text((std::istreambuf_iterator<char>(file)), {});
      for (std::sregex_iterator at(text.begin(), text.end(), declared), end; at != end; ++at)
        if (!(*at)[3].str().starts_with("DISABLED_")) out.insert((*at)[2].str() + "." + (*at)[3].str());
    }
    return out;
  }();
  return found;
}

TEST(Advisories, each_has_a_row) {
  auto known = rows();
  for (const std::string& advisory : listed()) EXPECT_TRUE(known.count(advisory)) << advisory << " has no row";
  for (const auto& [advisory, row] : known) EXPECT_TRUE(listed().count(advisory)) << advisory << " is not of the list";
}

TEST(Advisories, each_row_says_what_it_is_and_names_tests_that_exist) {
  ASSERT_GT(tests().size(), 100u);
  for (const auto& [advisory, row] : rows()) {
    EXPECT_GT(row.mechanism.size(), 30u) << advisory;
    EXPECT_FALSE(row.tests.empty()) << advisory;
    for (const std::string& test : row.tests) EXPECT_TRUE(tests().count(test)) << advisory << ": there is no test " << test;
  }
}

// Every attack test belongs to a row or to the escape suite.
TEST(Advisories, every_attack_is_of_a_row) {
  std::set<std::string> named;
  for (const auto& [advisory, row] : rows()) named.insert(row.tests.begin(), row.tests.end());
  for (const std::string& test : tests())
    EXPECT_TRUE(test.find("Attack.") == test.npos || named.count(test)) << test << " is of no advisory";
}

}  // namespace
