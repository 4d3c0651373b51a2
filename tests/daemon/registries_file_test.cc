// SPDX-License-Identifier: Apache-2.0
// registries.yaml.
#include "daemon/registries_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/registry_source.h"
#include "runtime/base/text.h"

namespace coracle {
namespace {

Result<std::string> pem_of(const std::string& path) {
  if (path == "/absent") return Error(Code::not_found, "open /absent: No such file or directory");
  if (path == "/plain") return std::string("plain text");
  return "-----BEGIN " + path;
}

// Reads it as the file "F". "", or what is wrong.
std::string added(std::string_view yaml, runtime::RegistrySettings& settings) {
  auto added = add_registries(yaml, "F", pem_of, settings);
  if (!added) settings.refused_all = added.error().text();
  return join(refusals_in(settings), "|");
}

constexpr const char* kK3s = R"yaml(mirrors:
  docker.io:
    endpoint:
      - "https://mirror.example:5000"
      - http://second.example
    rewrite:
      "^rancher/(.*)": "mirror/rancher-images/$1"
  "*":
    endpoint: ["https://all.example"]
configs:
  "mirror.example:5000":
    auth:
      username: me
      password: "s:cret"
    tls:
      cert_file: /cert
      key_file:  /key
      ca_file:   /ca
  second.example:
    auth: {auth: "bWU6cDp3"}
    tls: {insecure_skip_verify: true}
  third.example:
    auth: {identity_token: t}
)yaml";

TEST(RegistriesFile, is_read_as_k3s_does) {
  runtime::RegistrySettings settings;
  settings.mirrors = {{"docker.io", {"https://old"}}, {"ghcr.io", {"https://kept"}}};
  ASSERT_EQ(added(kK3s, settings), "");
  EXPECT_EQ(settings.mirrors["docker.io"], (std::vector<std::string>{"https://mirror.example:5000", "http://second.example"}));
  EXPECT_EQ(settings.mirrors["*"], std::vector<std::string>{"https://all.example"});
  EXPECT_EQ(settings.mirrors["ghcr.io"], std::vector<std::string>{"https://kept"}) << "of config.yaml";
  ASSERT_EQ(settings.rewrites["docker.io"].size(), 1u);
  EXPECT_EQ(settings.rewrites["docker.io"][0].pattern, "^rancher/(.*)");
  EXPECT_EQ(settings.rewrites["docker.io"][0].replacement, "mirror/rancher-images/$1");
  const runtime::RegistryHost& mirror = settings.hosts["mirror.example:5000"];
  EXPECT_EQ(mirror.credentials, (runtime::Credentials{"mirror.example:5000", "me", "s:cret", "", ""}));
  EXPECT_EQ(mirror.tls.authorities + mirror.tls.certificate + mirror.tls.private_key,
            "-----BEGIN /ca-----BEGIN /cert-----BEGIN /key");
  EXPECT_TRUE(mirror.verify);
  EXPECT_EQ(settings.hosts["second.example"].credentials.username + "|" + settings.hosts["second.example"].credentials.password,
            "me|p:w");
  EXPECT_FALSE(settings.hosts["second.example"].verify);
  EXPECT_EQ(settings.hosts["third.example"].credentials.identity_token, "t");
}

TEST(RegistriesFile, may_be_empty) {
  for (const char* text :
       {"", "# nothing\n", "mirrors:\nconfigs:\n", "mirrors: {docker.io: }\n", "configs: {a: {auth: , tls: }}\n"}) {
    runtime::RegistrySettings settings;
    EXPECT_EQ(added(text, settings), "") << text;
  }
}

TEST(RegistriesFile, names_the_line_of_a_mistake) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {
           Row{"[]", "must be mirrors and configs"},
           Row{"mirrors: {}\nauths: {x: {}}\n", "line 2: auths: unknown field"},
           Row{"mirrors:\n  a:\n    endpoint: https://x\n", "line 3: mirrors.a.endpoint: must be a list of URLs"},
           Row{"mirrors:\n  a:\n    endpoint:\n    - ftp://x\n",
               "line 4: mirrors.a.endpoint: \"ftp://x\" is no URL like https://host:port"},
           Row{"mirrors:\n  a:\n    endpoints: []\n", "line 3: mirrors.a.endpoints: unknown field"},
           Row{"mirrors:\n  a:\n    endpoint: []\n    rewrite:\n      \"(\": b\n", "line 5: mirrors.a.rewrite: \"(\": "},
           Row{"mirrors:\n  a:\n    endpoint: []\nconfigs:\n  a:\n    auth:\n      username: x\n      password: 12\n",
               "line 8: configs.a.auth.password: must be text; put quotes around it"},
           Row{"# password: x\nmirrors: {username: {endpoint: [\"https://u\",\n  \"a b\"]}}\n",
               "line 3: mirrors.username.endpoint: \"a b\" is no URL"},
           Row{"mirrors:\n  https://a: {endpoint: [b]}\n",
               "line 2: mirrors.https://a: must be a host like registry.example:5000"},
           Row{"configs:\n  a/b: {auth: {username: x}}\n", "line 2: configs.a/b: must be a host like"},
           Row{"mirrors: {a: {}}\nconfigs: {\"a\": {\n  auth: {\"password\": 5}}}\n",
               "line 3: configs.a.auth.password: must be text"},
           Row{"configs:\n  a:\n    auth:\n      auth: \"no base64\"\n",
               "line 4: configs.a.auth.auth: is not the base64 of user:password"},
           Row{"configs:\n  \"*\":\n    auth: {username: x}\n",
               "line 3: configs.*.auth: credentials belong to a host, not to all"},
           Row{"configs:\n  a:\n    tls:\n      ca_file: /absent\n", "line 4: configs.a.tls.ca_file: open /absent: No such file"},
           Row{"configs:\n  a:\n    tls:\n      ca_file: /plain\n", "line 4: configs.a.tls.ca_file: /plain has nothing in PEM"},
           Row{"configs:\n  a:\n    tls: {insecure_skip_verify: maybe}\n",
               "line 3: configs.a.tls.insecure_skip_verify: must be true or false"},
           Row{"mirrors: {a: {endpoint: [https://x]}\n", "error parsing YAML: line "},
           Row{"a: 1\n---\nb: 2\n", "more than one document"},
       }) {
    runtime::RegistrySettings settings;
    const std::string wrong = added(row.text, settings);
    EXPECT_EQ(wrong.find("F: " + std::string(row.want)), 0u) << row.text << ": " << wrong;
    EXPECT_EQ(wrong.find('|'), std::string::npos) << "once: " << wrong;
  }
}

// What is refused, and what is used beside it.
std::string outcome(std::string_view yaml) {
  runtime::RegistrySettings settings;
  settings.mirrors = {{"a", {"https://of-config"}}};
  (void)added(yaml, settings);
  std::vector<std::string> parts;
  if (!settings.refused_all.empty()) parts.push_back("all");
  for (const auto& [registry, why] : settings.refused) parts.push_back("registry " + registry);
  for (const auto& [host, about] : settings.hosts) parts.push_back((about.refused.empty() ? "has host " : "host ") + host);
  for (const auto& [registry, urls] : settings.mirrors) parts.push_back("has registry " + registry + " " + join(urls, ","));
  return join(parts, "; ");
}

TEST(RegistriesFile, refuses_what_is_wrong_and_uses_the_rest) {
  const std::string good = "mirrors: {b: {endpoint: [https://m]}}\n", host = "configs: {h: {auth: {username: x}}}\n";
  struct Row {
    std::string text;
    const char* want;
  };
  for (const Row& row : {
           Row{"mirrors: {a: {endpoint: 3}, b: {endpoint: [https://m]}}\n" + host,
               "registry a; has host h; has registry b https://m"},
           Row{"mirrors: {a: {rewrite: {\"(\": x}, endpoint: [https://m]}}\n", "registry a"},
           Row{"mirrors: {a: {endpoint: [https://m, https://u:p@n]}}\n", "registry a"},
           Row{"mirrors: {\"*\": {endpoint: 3}}\n", "registry *; has registry a https://of-config"},
           Row{"mirrors: {https://me@a/: {endpoint: [https://m]}}\n", "registry a"},
           Row{"mirrors: {a/team: {endpoint: [https://m]}}\n", "registry a"},
           Row{"mirrors: {\"/x\": {endpoint: [https://m]}}\n", "all; has registry a https://of-config"},
           Row{good + "configs: {m: {tls: {ca_file: /absent}}, n: {}}\n",
               "host m; has host n; has registry a https://of-config; has registry b https://m"},
           Row{"configs: {m: {auth: {username: x}}, https://m: {}}\n", "host m; has registry a https://of-config"},
           Row{"configs: {https://m: {}, m: {auth: {username: x}}}\n", "host m; has registry a https://of-config"},
           Row{"configs: {\"*\": {auth: {username: x}}}\n", "host *; has registry a https://of-config"},
           Row{good + "mirors: {a: {endpoint: [https://m]}}\n", "registry a; host a; has registry b https://m"},
           Row{good + "version: 2\n", "all; has registry a https://of-config"},
           Row{"mirrors: 5\n", "all; has registry a https://of-config"},
           Row{"mirrors: {\n", "all; has registry a https://of-config"},
       })
    EXPECT_EQ(outcome(row.text), row.want) << row.text;
}

TEST(RegistriesFile, keeps_passwords_out_of_its_errors) {
  for (const char* text :
       {"mirrors:\n  a:\n    endpoint:\n    - https://me:hunter2@m:5000\n", "mirrors:\n  a:\n    endpoint: [\"me:hunter2@m\"]\n",
        "mirrors:\n  a:\n    endpoint: [\"ftp://me:hunter2@m\"]\n",
        "mirrors:\n  a:\n    endpoint: [\"https://m/x?token=hunter2\"]\n",
        "mirrors:\n  \"https://me:hunter2@m\":\n    endpoint: 5\n",
        "configs:\n  m:\n    auth: {username: me, password: [hunter2]}\n",
        "configs:\n  m:\n    auth: {username: me, pasword: hunter2}\n", "configs:\n  m:\n    auth: {auth: hunter2}\n",
        "configs:\n  m:\n    auth: me:hunter2\n", "configs:\n  m:\n    auth: {password: \"hunter2}\n",
        "configs:\n  m:\n    auth:\n      password: *hunter2\n",
        "configs:\n  m:\n    tls:\n      key_file: |\n        -----BEGIN PRIVATE KEY-----\n        hunter2\n"}) {
    runtime::RegistrySettings settings;
    const std::string wrong = added(text, settings);
    EXPECT_EQ(wrong.find("hunter2"), std::string::npos) << text << ": " << wrong;
    EXPECT_NE(wrong.find("line "), std::string::npos) << text << ": " << wrong;
    for (const auto& [registry, why] : settings.refused) EXPECT_EQ(registry.find("hunter2"), std::string::npos) << text;
  }
  EXPECT_EQ(registry_url_fault("https://me:p@m:5000/x"),
            "\"https://m:5000/x\" has a user or a password in it; they belong into registries.yaml, to configs, auth");
  for (const char* good : {"https://m", "http://m:5000/v2/", "m:5000", "[::1]:5000", "https://m/team@work"})
    EXPECT_EQ(registry_url_fault(good), "") << good;
  for (const char* bad : {"", "https://", "https:///x", "ftp://m", "https://m x", "https://m?x", "https://@m"})
    EXPECT_NE(registry_url_fault(bad), "") << bad;
}

struct RegistrySourceTest : testing::Test {
  RegistrySourceTest() : directory(::mkdtemp(name)) {
    write("config.yaml", "configDir: " + directory + "\nmirrors: {a: [\"https://one\"]}\n");
  }
  ~RegistrySourceTest() override { std::filesystem::remove_all(directory); }
  void write(const std::string& file, const std::string& text) { std::ofstream(directory + "/" + file) << text; }
  Config config() const { return read_config(directory + "/config.yaml", "/nonexistent").value_or({}); }

  char name[32] = "/tmp/coracle-registries-XXXXXX";
  const std::string directory;
};

TEST_F(RegistrySourceTest, reads_the_files_again_each_time) {
  RegistrySource source(config());
  EXPECT_EQ(source().mirrors["a"], std::vector<std::string>{"https://one"}) << "there need be no registries.yaml";
  write("registries.yaml", "mirrors: {a: {endpoint: [\"https://two\"]}}\n");
  EXPECT_EQ(source().mirrors["a"], std::vector<std::string>{"https://two"});
}

TEST_F(RegistrySourceTest, logs_a_mistake_once_and_keeps_the_rest_in_force) {
  ::testing::internal::CaptureStderr();
  RegistrySource source(config());
  write("registries.yaml", "mirrors: {a: {endpoint: 3}, b: {endpoint: [\"https://b\"]}}\n");
  const runtime::RegistrySettings now = source();
  (void)source();
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string why = directory + "/registries.yaml: line 1: mirrors.a.endpoint: must be a list of URLs";
  EXPECT_EQ(now.refused, (std::map<std::string, std::string>{{"a", why}}));
  EXPECT_EQ(now.mirrors, (std::map<std::string, std::vector<std::string>>{{"b", {"https://b"}}}));
  EXPECT_EQ(refusals_in(read_registry_settings(config())), std::vector<std::string>{why});
  const size_t at = log.find(why);
  EXPECT_NE(at, log.npos) << log;
  EXPECT_EQ(log.find(why, at + 1), log.npos) << "once: " << log;
}

TEST_F(RegistrySourceTest, keeps_what_was_while_a_file_cannot_be_read) {
  ::testing::internal::CaptureStderr();
  RegistrySource source(config());
  write("registries.yaml", "mirrors: {a: {endpo");  // half of it
  runtime::RegistrySettings now = source();
  EXPECT_EQ(now.refused_all, "");
  EXPECT_EQ(now.mirrors["a"], std::vector<std::string>{"https://one"});
  RegistrySource another(config());  // that has read nothing before
  EXPECT_NE(another().refused_all.find(directory + "/registries.yaml: "), std::string::npos) << another().refused_all;
  write("registries.yaml", "");
  EXPECT_EQ(another().refused_all, "");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("the previous ones remain in use"), log.npos) << log;
}

}  // namespace
}  // namespace coracle
