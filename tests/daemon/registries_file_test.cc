// SPDX-License-Identifier: Apache-2.0
// registries.yaml.
#include "daemon/registries_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/registry_source.h"

namespace coracle {
namespace {

Result<std::string> pem_of(const std::string& path) {
  if (path == "/absent") return Error(Code::not_found, "open /absent: No such file or directory");
  if (path == "/plain") return std::string("plain text");
  return "-----BEGIN " + path;
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
  ASSERT_TRUE(add_registries(kK3s, pem_of, settings).ok());
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
    auto added = add_registries(text, pem_of, settings);
    EXPECT_TRUE(added.ok()) << text << ": " << (added ? "" : added.error().text());
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
           Row{"mirrors: {a: {endpoint: [https://x]}\n", "line "},
           Row{"a: 1\n---\nb: 2\n", "more than one document"},
       }) {
    runtime::RegistrySettings settings;
    settings.insecure = {"before"};
    auto added = add_registries(row.text, pem_of, settings);
    ASSERT_FALSE(added.ok()) << row.text;
    EXPECT_NE(added.error().text().find(row.want), std::string::npos) << row.text << ": " << added.error().text();
    EXPECT_TRUE(settings.mirrors.empty() && settings.hosts.empty()) << "nothing of it is used: " << row.text;
  }
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
    auto added = add_registries(text, pem_of, settings);
    ASSERT_FALSE(added.ok()) << text;
    EXPECT_EQ(added.error().text().find("hunter2"), std::string::npos) << text << ": " << added.error().text();
    EXPECT_NE(added.error().text().find("line "), std::string::npos) << text << ": " << added.error().text();
  }
  EXPECT_EQ(registry_url_fault("https://me:p@m:5000/x"),
            "\"https://m:5000/x\" has a user or a password in it; they belong into registries.yaml, to configs, auth");
  for (const char* good : {"https://m", "http://m:5000/v2/", "m:5000", "[::1]:5000", "https://m/team@work"})
    EXPECT_EQ(registry_url_fault(good), "") << good;
  for (const char* bad : {"", "https://", "https:///x", "ftp://m", "https://m x", "https://m?x", "https://@m"})
    EXPECT_NE(registry_url_fault(bad), "") << bad;
}

TEST(RegistriesFile, is_read_again_and_a_mistake_leaves_what_was) {
  char name[] = "/tmp/coracle-registries-XXXXXX";
  ASSERT_TRUE(::mkdtemp(name));
  const std::string directory = name;
  auto write = [&](const std::string& file, const std::string& text) { std::ofstream(directory + "/" + file) << text; };
  write("config.yaml", "configDir: " + directory + "\nmirrors: {a: [\"https://one\"]}\n");
  auto config = read_config(directory + "/config.yaml", "/nonexistent");
  ASSERT_TRUE(config.ok()) << config.error().text();
  RegistrySource source(*config);
  EXPECT_EQ(source().mirrors["a"], std::vector<std::string>{"https://one"}) << "there need be no registries.yaml";
  write("registries.yaml", "mirrors: {a: {endpoint: [\"https://two\"]}}\n");
  EXPECT_EQ(source().mirrors["a"], std::vector<std::string>{"https://two"});
  write("registries.yaml", "mirrors: {a: {endpoint: 3}}\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(source().mirrors["a"], std::vector<std::string>{"https://two"});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(directory + "/registries.yaml: line 1: mirrors.a.endpoint"), log.npos) << log;
  auto checked = read_registry_settings(*config);
  EXPECT_FALSE(checked.ok());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace coracle
