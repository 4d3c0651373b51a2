// SPDX-License-Identifier: Apache-2.0
// Kubernetes' own samples of every kind, with every field set, as JSON, YAML and protobuf: each is decoded, made canonical and
// encoded again without loss or change. fetch_fixtures.sh gets them from Debian's package of the API's Go types; without them the
// test is skipped, with a message.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/base/json.h"
#include "store/object/yaml.h"
#include "store/schema/catalog.h"
#include "store/schema/decode.h"
#include "store/schema/protobuf.h"

namespace coracle::schema {
namespace {

std::filesystem::path directory() {
  const char* cache = std::getenv("CORACLE_TEST_CACHE");
  return std::filesystem::path(cache ? cache : "/var/tmp/coracle-tests") / "k8s-api" / "HEAD";
}

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Fixture {
  std::string name;  // "apps.v1.Deployment"
  const Type* type;
  std::filesystem::path base;  // without the extension .json, .yaml, .pb
};

std::vector<Fixture> fixtures() {
  std::vector<Fixture> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".json") continue;
    std::string name = path.stem().string();
    size_t kind_at = name.rfind('.');
    size_t version_at = kind_at == name.npos || kind_at == 0 ? name.npos : name.rfind('.', kind_at - 1);
    if (version_at == name.npos) continue;
    std::string group = name.substr(0, version_at), version = name.substr(version_at + 1, kind_at - version_at - 1);
    const Type* type = root_type(group == "core" ? version : group + "/" + version, name.substr(kind_at + 1));
    if (type) out.push_back({name, type, path.parent_path() / name});
  }
  return out;
}

// The differences by path, since two texts of a thousand lines are hard to compare.
void differences(const json::value& want, const json::value& got, const std::string& path, std::string& out) {
  if (want == got || out.size() > 2000) return;
  if (want.is_object() && got.is_object()) {
    std::set<std::string> names;
    for (const json::value* side : {&want, &got}) {
      for (const auto& pair : side->get_object()) names.emplace(pair.key());
    }
    for (const std::string& name : names) {
      const json::value *left = want.get_object().if_contains(name), *right = got.get_object().if_contains(name);
      static const json::value none;
      differences(left ? *left : none, right ? *right : none, path + "." + name, out);
    }
  } else if (want.is_array() && got.is_array() && want.get_array().size() == got.get_array().size()) {
    for (size_t i = 0; i < want.get_array().size(); ++i) {
      differences(want.get_array()[i], got.get_array()[i], path + "[" + std::to_string(i) + "]", out);
    }
  } else {
    out += path + ": want " + to_text(want).substr(0, 100) + ", got " + to_text(got).substr(0, 100) + "\n";
  }
}

std::string differences(const json::value& want, const json::value& got) {
  std::string out;
  differences(want, got, "", out);
  return out;
}

class Fixtures : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(directory())) GTEST_SKIP() << "no samples in " << directory() << ": see fetch_fixtures.sh";
  }
};

TEST_F(Fixtures, every_kind_has_one) {
  std::set<const Type*> found;
  for (const Fixture& fixture : fixtures()) found.insert(fixture.type);
  for (const KindInfo& info : catalog().kinds()) {
    bool elsewhere = info.kind.group == kPodMetrics.group || info.kind.group == "apiextensions.k8s.io" ||
                     info.kind.group == "apiregistration.k8s.io";
    if (elsewhere) continue;
    EXPECT_TRUE(found.contains(&info.type())) << info.kind.api_version() << " " << info.kind.kind;
  }
}

TEST_F(Fixtures, json_is_kept) {
  for (const Fixture& fixture : fixtures()) {
    json::value want = MUST(parse_json(content(fixture.base.string() + ".json")));
    auto got = decode(*fixture.type, want);
    ASSERT_TRUE(got) << fixture.name << ": " << got.error().text();
    EXPECT_TRUE(got->warnings.empty()) << fixture.name << ": " << got->warnings.front();
    EXPECT_EQ(differences(want, got->value), "") << fixture.name;
    json::value again = MUST(parse_json(to_text(got->value)));
    EXPECT_EQ(differences(want, again), "") << fixture.name;
  }
}

TEST_F(Fixtures, yaml_is_kept) {
  for (const Fixture& fixture : fixtures()) {
    json::value want = MUST(parse_json(content(fixture.base.string() + ".json")));
    auto read = parse_yaml(content(fixture.base.string() + ".yaml"));
    ASSERT_TRUE(read) << fixture.name << ": " << read.error().text();
    ASSERT_EQ(read->size(), 1u) << fixture.name;
    auto got = decode(*fixture.type, std::move(read->front()));
    ASSERT_TRUE(got) << fixture.name << ": " << got.error().text();
    EXPECT_EQ(differences(want, got->value), "") << fixture.name;
    auto again = parse_yaml(to_yaml(got->value));
    ASSERT_TRUE(again) << fixture.name;
    ASSERT_EQ(again->size(), 1u) << fixture.name;
    EXPECT_EQ(differences(want, again->front()), "") << fixture.name;
  }
}

TEST_F(Fixtures, protobuf_is_kept_to_the_byte) {
  for (const Fixture& fixture : fixtures()) {
    json::value want = MUST(parse_json(content(fixture.base.string() + ".json")));
    std::string bytes = content(fixture.base.string() + ".pb");
    if (bytes.empty()) continue;  // Table and similar types have no protobuf
    auto got = from_protobuf(bytes);
    ASSERT_TRUE(got) << fixture.name << ": " << got.error().text();
    EXPECT_EQ(differences(want, *got), "") << fixture.name;
    auto written = to_protobuf(MUST(decode(*fixture.type, want)).value);
    ASSERT_TRUE(written) << fixture.name << ": " << written.error().text();
    EXPECT_TRUE(*written == bytes) << fixture.name << ": " << written->size() << " bytes for " << bytes.size();
  }
}

}  // namespace
}  // namespace coracle::schema
