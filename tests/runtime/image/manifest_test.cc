// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes, configurations: parsing, choice of the platform, and refusals.
#include "runtime/image/manifest.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace coracle::image {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string descriptor(const std::string& type, const std::string& more = "") {
  return R"({"mediaType":")" + type + R"(","digest":")" + kDigest + R"(","size":10)" + more + "}";
}
const std::string kConfig = descriptor("application/vnd.oci.image.config.v1+json");
const std::string kLayer = descriptor("application/vnd.oci.image.layer.v1.tar+gzip");

std::string manifest(const std::string& members) { return R"({"schemaVersion":2,)" + members + "}"; }

TEST(Manifest, reads_both_kinds) {
  auto image = parse_manifest(manifest(R"("config":)" + kConfig + R"(,"layers":[)" + kLayer + "]"),
                              "application/vnd.oci.image.manifest.v1+json");
  ASSERT_TRUE(image.ok()) << image.error().text();
  ASSERT_TRUE(image->manifest);
  EXPECT_EQ(image->manifest->layers.size(), 1u);
  auto index = parse_manifest(
      manifest(R"("manifests":[)" + descriptor("x", R"(,"platform":{"os":"linux","architecture":"arm64"})") + "]"), "");
  ASSERT_TRUE(index.ok()) << index.error().text();
  ASSERT_TRUE(index->index);
  EXPECT_EQ(index->index->manifests[0].platform.architecture, "arm64");
}

TEST(Manifest, refuses) {
  struct Row {
    std::string name, text, type;
    Code code;
  };
  const std::string good = R"("config":)" + kConfig + R"(,"layers":[)" + kLayer + "]";
  std::string many = kLayer;
  for (size_t i = 0; i < kLayersMax; ++i) many += "," + kLayer;
  for (
      const Row& row : {
          Row{"both", manifest(good + R"(,"manifests":[])"), "", Code::invalid},
          Row{"neither", manifest(R"("x":1)"), "", Code::invalid},
          Row{"type says index", manifest(good), "application/vnd.oci.image.index.v1+json", Code::invalid},
          Row{"its own type says index", manifest(good + R"(,"mediaType":"application/vnd.oci.image.index.v1+json")"), "",
              Code::invalid},
          Row{"schema 1", R"({"schemaVersion":1,"fsLayers":[]})", "", Code::unsupported},
          Row{"no version", R"({"layers":[]})", "", Code::invalid},
          Row{"artifact", manifest(R"("config":)" + descriptor("application/vnd.cncf.helm.config.v1+json") + R"(,"layers":[])"),
              "", Code::unsupported},
          Row{"odd layer", manifest(R"("config":)" + kConfig + R"(,"layers":[)" + descriptor("text/plain") + "]"), "",
              Code::unsupported},
          Row{"bad digest",
              manifest(
                  R"("config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:../../x","size":1},"layers":[])"),
              "", Code::invalid},
          Row{"negative size", manifest(R"("config":{"digest":")" + kDigest + R"(","size":-1},"layers":[])"), "", Code::invalid},
          Row{"huge config", manifest(R"("config":{"digest":")" + kDigest + R"(","size":99999999},"layers":[])"), "",
              Code::too_large},
          Row{"size is text", manifest(R"("config":{"digest":")" + kDigest + R"(","size":"1"},"layers":[])"), "", Code::invalid},
          Row{"layers is no list", manifest(R"("config":)" + kConfig + R"(,"layers":{})"), "", Code::invalid},
          Row{"too many layers", manifest(R"("config":)" + kConfig + R"(,"layers":[)" + many + "]"), "", Code::too_large},
          Row{"no JSON", "<html>", "", Code::invalid},
          Row{"a list", "[]", "", Code::invalid},
          Row{"empty", "", "", Code::invalid},
          Row{"too large", std::string(kManifestMax + 1, ' '), "", Code::too_large},
          Row{"too deep", std::string(1000, '['), "", Code::invalid},
      }) {
    auto got = parse_manifest(row.text, row.type);
    ASSERT_FALSE(got.ok()) << row.name;
    EXPECT_EQ(got.error().code(), row.code) << row.name << ": " << got.error().text();
  }
}

TEST(Index, chooses_the_machine) {
  auto entry = [](const std::string& os, const std::string& architecture, const std::string& variant, char digit) {
    return Descriptor{"", *Digest::parse("sha256:" + std::string(64, digit)), 1, {architecture, os, variant}, ""};
  };
  Index index{{entry("windows", "amd64", "", '0'), entry("linux", "amd64", "", '1'), entry("linux", "arm", "v6", '2'),
               entry("linux", "arm", "v7", '3'), entry("linux", "arm64", "v8", '4'), entry("unknown", "unknown", "", '5'),
               entry("linux", "arm", "", '6')}};
  auto chosen = [&](const Platform& platform) {
    auto got = choose(index, platform);
    return got ? got->digest.hex()[0] : '-';
  };
  EXPECT_EQ(chosen({"amd64", "linux", ""}), '1');
  EXPECT_EQ(chosen({"arm64", "linux", "v8"}), '4');
  EXPECT_EQ(chosen({"arm", "linux", "v7"}), '3');
  EXPECT_EQ(chosen({"arm", "linux", "v6"}), '2');
  EXPECT_EQ(chosen({"arm", "linux", "v5"}), '6') << "v6 would not run there";
  EXPECT_EQ(chosen({"riscv64", "linux", ""}), '-');
  auto none = choose(index, {"riscv64", "linux", ""});
  EXPECT_NE(none.error().text().find("linux/arm64/v8"), std::string::npos) << "says what there is";
}

TEST(Index, takes_an_entry_that_says_nothing_when_no_other_fits) {
  auto text = [](const std::string& entries) { return R"({"schemaVersion":2,"manifests":[)" + entries + "]}"; };
  auto entry = [](char digit, const std::string& platform) {
    return R"({"digest":"sha256:)" + std::string(64, digit) + R"(","size":1)" + platform + "}";
  };
  auto chosen = [&](const std::string& entries) {
    auto parsed = parse_manifest(text(entries), "");
    auto got = parsed ? choose(*parsed->index, {"amd64", "linux", ""}) : Result<Descriptor>(parsed.take_error());
    return got ? std::string(1, got->digest.hex()[0]) : got.error().text();
  };
  const std::string nothing = entry('1', ""), empty = entry('2', R"(,"platform":{})");
  const std::string ours = entry('3', R"(,"platform":{"os":"linux","architecture":"amd64"})"),
                    other = entry('4', R"(,"platform":{"os":"linux","architecture":"arm64"})");
  EXPECT_EQ(chosen(nothing), "1");
  EXPECT_EQ(chosen(empty), "2");
  EXPECT_EQ(chosen(other + "," + nothing), "1");
  EXPECT_EQ(chosen(nothing + "," + ours), "3");
  EXPECT_EQ(chosen(other), "no image for linux/amd64; there is linux/arm64");
}

TEST(Platform, tells_what_runs_where) {
  const Platform pc{"amd64", "linux", ""}, pi{"arm64", "linux", "v8"}, old_pi{"arm", "linux", "v6"};
  struct Row {
    Platform image, machine;
    bool runs;
  };
  for (const Row& row :
       {Row{{"amd64", "linux", ""}, pc, true}, Row{{"386", "linux", ""}, pc, true}, Row{{"arm64", "linux", ""}, pc, false},
        Row{{"amd64", "windows", ""}, pc, false}, Row{{"", "", ""}, pc, true}, Row{{"amd64", "", ""}, pi, false},
        Row{{"arm", "linux", "v7"}, pi, true}, Row{{"arm", "linux", "v7"}, old_pi, false},
        Row{{"arm", "linux", "v6"}, {"arm", "linux", "v7"}, true}, Row{{"arm", "linux", ""}, old_pi, true}})
    EXPECT_EQ(runs_on(row.image, row.machine), row.runs) << row.image.text() << " on " << row.machine.text();
}

TEST(Platform, is_that_of_the_program_on_a_larger_kernel) {
  EXPECT_EQ(platform_of("aarch64", 8).text(), "linux/arm64/v8");
  EXPECT_EQ(platform_of("aarch64", 4).text(), "linux/arm/v7") << "Raspberry Pi OS has such a kernel for programs of 32 bits";
  EXPECT_EQ(platform_of("armv8l", 4).text(), "linux/arm/v7");
  EXPECT_EQ(platform_of("armv7l", 4).text(), "linux/arm/v7");
  EXPECT_EQ(platform_of("armv6l", 4).text(), "linux/arm/v6");
  EXPECT_EQ(platform_of("x86_64", 8).text(), "linux/amd64");
  EXPECT_EQ(platform_of("other", 8).text(), "linux/other");
}

TEST(Platform, has_other_names_too) {
  struct Row {
    const char* written;
    Platform means;
  };
  for (const Row& row :
       {Row{R"("architecture":"x86_64")", {"amd64", "linux", ""}}, Row{R"("architecture":"aarch64")", {"arm64", "linux", ""}},
        Row{R"("architecture":"armhf")", {"arm", "linux", "v7"}},
        Row{R"("architecture":"arm","variant":"6")", {"arm", "linux", "v6"}},
        Row{R"("architecture":"i386")", {"386", "linux", ""}}}) {
    auto got = parse_configuration(std::string(R"({"os":"linux",)") + row.written + R"(,"rootfs":{"type":"layers"}})");
    ASSERT_TRUE(got.ok()) << row.written;
    EXPECT_EQ(got->platform.text(), row.means.text()) << row.written;
  }
}

TEST(Configuration, is_read) {
  auto got = parse_configuration(R"({"created":"2024-01-02T03:04:05.123Z","os":"linux","architecture":"amd64",
    "config":{"Entrypoint":["/e"],"Cmd":["c","d"],"Env":["A=b"],"WorkingDir":"/w","User":"u:g","StopSignal":"SIGINT",
    "Volumes":{"/data":{}},"Labels":{"x":"binary:///bin/sh"}},"rootfs":{"type":"layers","diff_ids":[")" +
                                 kDigest + R"("]}})");
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(got->config.entrypoint, (std::vector<std::string>{"/e"}));
  EXPECT_EQ(got->config.cmd, (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(got->config.user, "u:g");
  EXPECT_EQ(got->config.volumes, (std::vector<std::string>{"/data"}));
  EXPECT_EQ(format_time(got->created), "2024-01-02T03:04:05Z");
  for (const char* bad : {"", "[]", "{}", R"({"rootfs":{"type":"layers","diff_ids":["x"]}})",
                          R"({"rootfs":{"type":"layers","diff_ids":[1]}})", R"({"os":1,"rootfs":{"type":"layers"}})"})
    EXPECT_FALSE(parse_configuration(bad).ok()) << bad;
  EXPECT_TRUE(parse_configuration(R"({"config":null,"rootfs":{"type":"layers"}})").ok()) << "an image of nothing";
}

TEST(Chain, names_a_layer_with_all_below_it) {
  Digest a = digest_of("a"), b = digest_of("b");
  auto chain = chain_ids({a, b});
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[0], a);
  EXPECT_EQ(chain[1], digest_of(a.text() + " " + b.text()));
  EXPECT_NE(chain_ids({b, a})[1], chain[1]);
}

}  // namespace
}  // namespace coracle::image
