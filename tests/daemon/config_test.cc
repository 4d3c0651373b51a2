// SPDX-License-Identifier: Apache-2.0
// Configuration of the daemon.
#include "daemon/config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace coracle {
namespace {

TEST(Config, lies_over_the_defaults) {
  Config config;
  ASSERT_TRUE(apply_config(config,
                           "nodeName: edge\nport: 7443\nlisten: [10.0.0.1]\nnodePortRange: \"31000-31999\"\n"
                           "mirrors: {docker.io: [\"https://mirror.example\"]}\nlogLevel: debug\nmaxPods:\npodPidsLimit: 64\n"
                           "nodeMonitorGracePeriod: 20\neventsOnDisk: true\ndenyServiceExternalIPs: true\n"
                           "storeMaxSize: 100\n"));
  EXPECT_EQ(config.node_name, "edge");
  EXPECT_EQ(config.port, 7443);
  EXPECT_EQ(config.listen, std::vector<std::string>{"10.0.0.1"});
  EXPECT_EQ(config.node_port_first, 31000);
  EXPECT_EQ(config.mirrors["docker.io"].front(), "https://mirror.example");
  EXPECT_EQ(config.log_level, LogLevel::debug);
  EXPECT_EQ(config.max_pods, 110);
  EXPECT_EQ(config.pod_pids_limit, 64);
  EXPECT_EQ(config.node_monitor_grace, 20);
  EXPECT_TRUE(config.events_on_disk);
  EXPECT_EQ(config.store_max_size, 100);
  EXPECT_TRUE(config.deny_service_external_ips);
  EXPECT_TRUE(apply_config(config, "# nothing but a comment\n"));
}

std::string text_of_source(const std::string& path) {
  const char* root = std::getenv("CORACLE_SOURCE");
  std::ifstream file(std::string(root ? root : ".") + "/" + path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Config, example_lists_every_setting_with_its_default) {
  std::stringstream example(text_of_source("systemd/config.example.yaml"));
  std::set<std::string> listed;
  for (std::string line; std::getline(example, line);) {
    size_t colon = line.find(':');
    bool is_setting = line.starts_with("# ") && colon != line.npos && line.find(' ', 2) > colon;
    if (!is_setting) continue;
    std::string name = line.substr(2, colon - 2);
    EXPECT_TRUE(listed.insert(name).second) << name << " is listed twice";
    Config config;
    auto applied = apply_config(config, line.substr(2));
    ASSERT_TRUE(applied) << name << ": " << applied.error().text();
    EXPECT_TRUE(config == Config()) << name << " is listed with another default";
  }
  std::vector<std::string> names = setting_names();
  EXPECT_EQ(std::vector<std::string>(listed.begin(), listed.end()), names);
}

TEST(Config, readme_lists_every_setting) {
  std::string readme = text_of_source("README.md");
  for (const std::string& name : setting_names()) EXPECT_NE(readme.find("\n| `" + name + "` | "), readme.npos) << name;
}

TEST(Config, takes_sizes_as_megabytes_and_as_quantities) {
  for (auto [text, want] : {std::pair("100", 100), std::pair("\"100\"", 100), std::pair("256Mi", 256), std::pair("1Gi", 1024),
                            std::pair("1.5Gi", 1536), std::pair("100M", 96), std::pair("1Ki", 1), std::pair("0", 0)}) {
    Config config;
    ASSERT_TRUE(apply_config(config, "storeMaxSize: " + std::string(text))) << text;
    EXPECT_EQ(config.store_max_size, want) << text;
  }
  Config config;
  ASSERT_TRUE(apply_config(config, "auditLogMaxSize: 20Mi"));
  EXPECT_EQ(config.audit_log_max_size, 20);
}

TEST(Config, names_the_field_that_is_wrong) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row :
       {Row{"prot: 1", "unknown field \"prot\""},
        Row{"port: high", "port: must be a number"},
        Row{"port: 70000", "port:"},
        Row{"stateDir: here", "stateDir: must be an absolute path"},
        Row{"listen: x", "listen: must be a list"},
        Row{"nodePortRange: 5-1", "nodePortRange"},
        Row{"logLevel: loud", "logLevel: must be one of"},
        Row{"- a", "expected fields"},
        Row{"mirrors: {x: y}", "mirrors: x: must be a list of URLs"},
        Row{"mirrors: {x: [\"ftp://y\"]}", "mirrors: x: \"ftp://y\" is no URL like https://host:port"},
        Row{"mirrors: {x: [\"https://me:pass@y\"]}", "mirrors: x: \"https://y\" has a user or a password in it"},
        Row{"imageGCHighThresholdPercent: 101", "imageGCHighThresholdPercent: must be a number from 0 to 100"},
        Row{"podPidsLimit: -1", "podPidsLimit:"},
        Row{"shutdownGracePeriod: 30", "shutdownGracePeriod: must be a duration"},
        Row{"shutdownGracePeriod: soon", "shutdownGracePeriod: must be a duration"},
        Row{"shutdownGracePeriod: -1s", "shutdownGracePeriod: must be a duration"},
        Row{"shutdownGracePeriod: 1500ms", "shutdownGracePeriod: must be a duration"},
        Row{"shutdownGracePeriodCriticalPods: 61m", "shutdownGracePeriodCriticalPods: must be a duration"},
        Row{"schedulerConfigFile: here", "schedulerConfigFile:"},
        Row{"eventsOnDisk: 1", "eventsOnDisk: must be true or false"},
        Row{"imagePullCredentialsVerificationPolicy: Never",
            "imagePullCredentialsVerificationPolicy: must be one of NeverVerify,"},
        Row{"preloadedImagesVerificationAllowlist: [\"a/b:1\"]", "preloadedImagesVerificationAllowlist: \"a/b:1\" must be"},
        Row{"preloadedImagesVerificationAllowlist: [\"a/*/b\"]", "preloadedImagesVerificationAllowlist: \"a/*/b\" must be"},
        Row{"preloadedImagesVerificationAllowlist: [\"a*\"]", "preloadedImagesVerificationAllowlist:"},
        Row{"storeMaxSize: 1Gx",
            "storeMaxSize: must be a number of megabytes from 0 to 1048576, or a quantity of bytes such as \"256Mi\""},
        Row{"storeMaxSize: -1", "storeMaxSize: must be a number of megabytes"},
        Row{"storeMaxSize: -1Mi", "storeMaxSize: must be a number of megabytes"},
        Row{"storeMaxSize: 2Ti", "storeMaxSize: must be a number of megabytes"},
        Row{"storeMaxSize: [1]", "storeMaxSize: must be a number of megabytes"},
        Row{"auditLogMaxSize: 0", "auditLogMaxSize: must be a number of megabytes from 1 to 1024"},
        Row{"a: [", "line"}}) {
    Config config;
    auto applied = apply_config(config, row.text);
    ASSERT_FALSE(applied) << row.text;
    EXPECT_NE(applied.error().text().find(row.want), std::string::npos) << applied.error().text();
  }
}

TEST(Config, names_the_line_that_is_wrong) {
  for (const auto& [text, want] : {std::pair("nodeName: a\n# port: 1\n\nport: high\n", "line 4: port: must be a number"),
                                   std::pair("mirrors:\n  port: []\nprot: 1\n", "line 3: unknown field \"prot\""),
                                   std::pair("nodeName: a\nport: [\n", "error parsing YAML: line ")}) {
    Config config;
    auto applied = apply_config(config, text);
    ASSERT_FALSE(applied) << text;
    EXPECT_TRUE(applied.error().text().starts_with(want)) << applied.error().text();
  }
  const std::string file = testing::TempDir() + "lines.yaml", vendor = testing::TempDir() + "vendor-lines.yaml";
  auto error_of = [&](const std::string& of_vendor, const std::string& own) {
    std::ofstream(vendor) << of_vendor;
    std::ofstream(file) << own;
    auto read = read_config(file, vendor);
    return read ? std::string() : read.error().text();
  };
  EXPECT_EQ(error_of("", "port: 1\nport2: 1\n"), file + ": line 2: unknown field \"port2\"");
  EXPECT_EQ(error_of("\nprot: 1\n", "port: 1\n"), vendor + ": line 2: unknown field \"prot\"");
  const std::string low = "imageGCLowThresholdPercent: must be less than imageGCHighThresholdPercent, which is 70; it is 80";
  EXPECT_EQ(error_of("", "port: 1\nimageGCHighThresholdPercent: 70\n"), file + ": line 2: " + low);
  EXPECT_EQ(error_of("imageGCLowThresholdPercent: 80\n", "imageGCHighThresholdPercent: 70\n"), vendor + ": line 1: " + low)
      << "the one that the error is about";
  EXPECT_EQ(error_of("", "maxPods: 250\npodCIDR: 10.0.0.0/28\n"), "") << "few addresses may be enough";
  EXPECT_EQ(error_of("", "maxPods: 509\npodCIDR: 10.0.0.0/23\n"), "");
  EXPECT_EQ(error_of("", "podCIDR: 10.0.0.0/23\nmaxPods: 510\n"),
            file + ": line 2: maxPods: 510 pods need a larger podCIDR: 10.0.0.0/23 has 509 addresses for pods");
  EXPECT_EQ(error_of("", "maxPods: 300\n"),
            file + ": line 1: maxPods: 300 pods need a larger podCIDR: 10.244.0.0/24 has 253 addresses for pods");
  EXPECT_EQ(error_of("", "maxPods: 1001\n"), file + ": line 1: maxPods: must be a number from 1 to 1000, is 1001");
  EXPECT_EQ(error_of("", "\nshutdownGracePeriod: 10s\n"),
            file +
                ": line 2: shutdownGracePeriodCriticalPods: must not be longer than shutdownGracePeriod; it is 20s, unless the "
                "settings say otherwise");
  std::ofstream(file) << "nodeName: a\npodCIDR: 10.0.0.0/40\n";
  Config config = MUST(read_config(file, "/no/such/vendor"));
  EXPECT_EQ(at_setting(config, Error(Code::invalid, "podCIDR: no prefix")).text(), file + ": line 2: podCIDR: no prefix");
  EXPECT_EQ(at_setting(config, Error(Code::invalid, "serviceCIDR: no")).text(), file + ": serviceCIDR: no") << "a default";
  const Error together(Code::invalid, "serviceCIDR: 10.0.0.0/40 and podCIDR, 10.0.0.0/40, overlap");
  EXPECT_EQ(at_setting(config, together).text(), file + ": line 2: " + together.text()) << "the one that is no default";
  std::ofstream(vendor) << "# of the image\n\nserviceCIDR: 10.0.0.0/40\npodCIDR: 10.1.0.0/40\n";
  config = MUST(read_config(file, vendor));
  EXPECT_EQ(at_setting(config, Error(Code::invalid, "serviceCIDR: no")).text(), vendor + ": line 3: serviceCIDR: no");
  EXPECT_EQ(at_setting(config, Error(Code::invalid, "podCIDR: no")).text(), file + ": line 2: podCIDR: no") << "it is used";
  std::remove(file.c_str());
  EXPECT_EQ(at_setting(config, Error(Code::invalid, "podCIDR: no")).text(), vendor + ": line 4: podCIDR: no");
  std::remove(file.c_str());
  std::remove(vendor.c_str());
}

TEST(Config, who_may_use_an_image_is_kubelet_s_setting) {
  Config config;
  EXPECT_EQ(config.image_verification, "NeverVerifyPreloadedImages");
  ASSERT_TRUE(apply_config(config,
                           "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
                           "preloadedImagesVerificationAllowlist: [\"reg:5000/team/*\", busybox]\n"));
  EXPECT_EQ(config.image_verification, "NeverVerifyAllowlistedImages");
  EXPECT_EQ(config.image_verification_allowlist, (std::vector<std::string>{"reg:5000/team/*", "busybox"}));

  std::string file = testing::TempDir() + "verification.yaml";
  std::ofstream(file) << "preloadedImagesVerificationAllowlist: [busybox]\n";
  auto read = read_config(file, "/no/such/vendor");
  std::remove(file.c_str());
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text().find("preloadedImagesVerificationAllowlist: can be set only where"), std::string::npos)
      << read.error().text();
}

TEST(Config, a_missing_file_is_the_defaults) {
  auto config = read_config("/no/such/file", "/no/such/vendor");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->port, 6443);
}

}  // namespace
}  // namespace coracle
