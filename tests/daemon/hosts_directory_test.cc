// SPDX-License-Identifier: Apache-2.0
// hosts.toml.
#include "daemon/hosts_directory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/registry_source.h"

namespace coracle {
namespace {

Result<std::string> played_pem(const std::string& path) {
  if (path.ends_with("/absent")) return Error(Code::not_found, "open " + path + ": No such file or directory");
  if (path.ends_with("/plain")) return std::string("plain text");
  return "-----BEGIN " + path;
}

// "url[ !verify][ !resolves][ ca=…][ cert=…+key][ header…]|…"
std::string shown(const std::vector<runtime::RegistryServer>& servers) {
  std::string out;
  auto bare = [](std::string pem) {
    for (size_t at; (at = pem.find("-----BEGIN ")) != pem.npos;) pem.erase(at, std::string_view("-----BEGIN ").size());
    for (char& c : pem)
      if (c == '\n') c = ',';
    return pem;
  };
  for (const runtime::RegistryServer& each : servers) {
    out += (out.empty() ? "" : "|") + each.url + (each.verify ? "" : " !verify") + (each.resolves ? "" : " !resolves");
    if (!each.tls.authorities.empty()) out += " ca=" + bare(each.tls.authorities);
    if (!each.tls.certificate.empty()) out += " cert=" + bare(each.tls.certificate) + "+" + bare(each.tls.private_key);
    for (const std::string& header : each.headers) out += " " + header;
  }
  return out;
}

TEST(HostsToml, is_read_as_containerd_does) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {
           Row{"", ""},
           Row{"server = \"https://registry-1.docker.io\"\n", "https://registry-1.docker.io/v2"},
           Row{"server = \"registry.example/\"\n", "https://registry.example/v2"},
           Row{"ca = 'own.crt'\n", " ca=/d/own.crt,"},
           Row{"server = 'https://s'\n[host.\"https://b:5000\"]\n[host.\"http://a\"]\ncapabilities = ['pull', 'resolve']\n",
               "https://b:5000/v2|http://a/v2|https://s/v2"},
           Row{"[host.'https://m']\ncapabilities = [\"Pull\"]\nskip_verify = true\n", "https://m/v2 !verify !resolves|"},
           Row{"[host.'https://m']\ncapabilities = [\"push\"]\n", ""},
           Row{"capabilities = ['push']\n[host.'https://m']\n", "https://m/v2"},
           Row{"[host.'https://m/v2/']\n[host.'https://m/api/x']\noverride_path = true\n[host.'https://m/api']\n",
               "https://m/v2|https://m/api/x|https://m/api/v2|"},
           Row{"[host.'https://m']\nca = ['/a', 'b']\nclient = [['c', '/k']]\ndial_timeout = '1s'\n[host.'https://m'.header]\n"
               "x-one = '1'\nx-two = ['2', '3']\n",
               "https://m/v2 ca=/a,/d/b, cert=/d/c+/k x-one: 1 x-two: 2 x-two: 3|"},
           Row{"[host.'https://m']\nclient = '/both'\n", "https://m/v2 cert=/both+/both|"},
           Row{"[host.'https://m']\nclient = [['/both', '']]\n", "https://m/v2 cert=/both+/both|"},
       }) {
    auto servers = read_hosts_toml(row.text, "/d", played_pem);
    ASSERT_TRUE(servers.ok()) << row.text << ": " << servers.error().text();
    EXPECT_EQ(shown(*servers), row.want) << row.text;
  }
  EXPECT_EQ(MUST(read_hosts_toml("", "/d", played_pem)).size(), 1u) << "the registry itself";
  EXPECT_TRUE(MUST(read_hosts_toml("capabilities = ['push']\n", "/d", played_pem)).empty()) << "none";
}

TEST(HostsToml, names_the_line_of_a_mistake) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {
           Row{"server = \n", "line 1: a value is missing"},
           Row{"\nservers = 'x'\n", "line 2: servers: unknown field"},
           Row{"server = 'ftp://x'\n", "line 1: server: \"ftp://x\" is no URL"},
           Row{"host = 'x'\n", "line 1: host: must be tables"},
           Row{"[host.'https://m']\n\ncapabilities = ['read']\n",
               "line 3: host.https://m.capabilities: \"read\" is none of pull, resolve and push"},
           Row{"[host.'https://m']\nca = 'absent'\n", "line 2: host.https://m.ca: open /d/absent: No such file"},
           Row{"[host.'https://m']\nca = '/plain'\n", "line 2: host.https://m.ca: /plain has nothing in PEM"},
           Row{"[host.'https://m']\nclient = [['/a', '/b'], '/c']\n",
               "line 2: host.https://m.client: must be one certificate, is 2"},
           Row{"[host.'https://m']\nclient = [['/a', '/b', '/c']]\n",
               "line 2: host.https://m.client: must be [[certificate, key]]"},
           Row{"[host.'https://m']\nskip_verify = 'yes'\n", "line 2: host.https://m.skip_verify: must be true or false"},
           Row{"[host.'https://m'.header]\nx = \"a\\r\\nb: c\"\n", "line 2: host.https://m.header.x: is no header"},
       }) {
    auto servers = read_hosts_toml(row.text, "/d", played_pem);
    ASSERT_FALSE(servers.ok()) << row.text;
    EXPECT_TRUE(servers.error().text().starts_with(row.want)) << row.text << ": " << servers.error().text();
  }
}

TEST(HostsToml, keeps_passwords_out_of_its_errors) {
  for (const char* text :
       {"server = 'https://me:hunter2@m'\n", "[host.'https://me:hunter2@m']\nca = '/absent'\n",
        "[host.'https://me:hunter2@m']\n[host.'https://me:hunter2@m']\n", "host = {'https://me:hunter2@m' = 5}\n",
        "[host.'https://m'.header]\nauthorization = hunter2\n",
        "[host.'https://m'.header]\nauthorization = {basic = 'hunter2'}\n",
        "[host.'https://m'.header]\nauthorization = [['hunter2']]\n", "[host.'https://m'.header]\nauthorization = \"hunter2\n",
        "[host.'https://m'.header]\nauthorization = \"hunter2\\n\"\n",
        "client = [['/c.pem', \"-----BEGIN PRIVATE KEY-----\\nhunter2\"]]\n"}) {
    auto servers = read_hosts_toml(text, "/d", played_pem);
    ASSERT_FALSE(servers.ok()) << text;
    EXPECT_EQ(servers.error().text().find("hunter2"), std::string::npos) << text << ": " << servers.error().text();
    EXPECT_TRUE(servers.error().text().starts_with("line ")) << text << ": " << servers.error().text();
  }
}

TEST(HostsDirectory, has_a_directory_for_each_registry) {
  char name[] = "/tmp/coracle-hosts-XXXXXX";
  ASSERT_TRUE(::mkdtemp(name));
  const std::string root = std::string(name) + "/certs.d";
  runtime::RegistrySettings settings;
  EXPECT_TRUE(add_hosts_directory(root, settings).ok()) << "there need be none";
  auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + "/" + file).parent_path());
    std::ofstream(root + "/" + file) << text;
  };
  write("docker.io/hosts.toml", "[host.'https://m']\nca = 'ca.crt'\n");
  write("docker.io/ca.crt", "-----BEGIN ca");
  write("r.example_5000_/hosts.toml", "server = 'https://five'\n");
  write("r.example:5000/hosts.toml", "server = 'https://other'\n");
  write("_default/hosts.toml", "server = 'https://all'\n");
  write("as_docker/ca.crt", "-----BEGIN ca");
  write("as_docker/me.cert", "-----BEGIN me");
  write("as_docker/me.key", "-----BEGIN key");
  write("nothing/notes.txt", "");
  write("a-file", "");
  auto added = add_hosts_directory(root, settings);
  ASSERT_TRUE(added.ok()) << added.error().text();
  std::string all;
  for (const auto& [registry, servers] : settings.servers) all += registry + ": " + shown(servers) + "\n";
  EXPECT_EQ(all,
            "*: https://all/v2\n"
            "as_docker:  ca=ca, cert=me+key\n"
            "docker.io: https://m/v2 ca=ca,|\n"
            "r.example:5000: https://five/v2\n");
  Config config;
  config.config_dir = name;
  config.mirrors = {{"docker.io", {"https://mirror"}}};
  runtime::RegistrySettings read = read_registry_settings(config);
  EXPECT_EQ(refusals_in(read), std::vector<std::string>());
  EXPECT_EQ(read.servers.size(), 4u);
  EXPECT_EQ(read.mirrors, config.mirrors);
  write("ghcr.io/hosts.toml", "server = 5\n");
  write("docker.io/hosts.toml", "[host.'https://m']\nca = 'absent.crt'\n");
  write("as_docker/you.cert", "-----BEGIN you");
  settings.refused = {{"ghcr.io", "of registries.yaml"}, {"r.example:5000", "of registries.yaml"}};
  settings.servers.clear();
  added = add_hosts_directory(root, settings);
  ASSERT_TRUE(added.ok()) << added.error().text();
  EXPECT_EQ(settings.servers.size(), 2u) << "those that are right";
  EXPECT_EQ(settings.refused.size(), 3u);
  EXPECT_FALSE(settings.refused.contains("r.example:5000")) << "its mirrors are not asked";
  EXPECT_TRUE(settings.refused["ghcr.io"].starts_with(root + "/ghcr.io/hosts.toml: line 1: server: "))
      << settings.refused["ghcr.io"];
  EXPECT_TRUE(settings.refused["docker.io"].starts_with(root + "/docker.io/hosts.toml: line 2: "))
      << settings.refused["docker.io"];
  EXPECT_TRUE(settings.refused["as_docker"].starts_with(root + "/as_docker/you.cert: ")) << settings.refused["as_docker"];
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace coracle
