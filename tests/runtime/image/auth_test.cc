// SPDX-License-Identifier: Apache-2.0
// Authentication challenges, and which hosts may get which credentials.
#include "runtime/image/fetch/auth.h"

#include <gtest/gtest.h>

#include "runtime/base/text.h"
#include "runtime/image/credentials.h"
#include "runtime/image/fetch/http.h"
#include "runtime/image/fetch/registry.h"

namespace coracle::image {
namespace {

TEST(Challenge, is_read_as_servers_write_it) {
  auto bearer = parse_challenges(
      R"(Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull,push")");
  ASSERT_EQ(bearer.size(), 1u);
  EXPECT_EQ(bearer[0].scheme, "bearer");
  EXPECT_EQ(bearer[0].params["realm"], "https://auth.docker.io/token");
  EXPECT_EQ(bearer[0].params["scope"], "repository:library/nginx:pull,push");

  auto both = parse_challenges(R"(Negotiate, BASIC Realm = "a \"b\"" , charset=UTF-8, Bearer realm="x")");
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(both[0].scheme, "negotiate");
  EXPECT_EQ(both[1].params["realm"], "a \"b\"");
  EXPECT_EQ(both[1].params["charset"], "UTF-8");
  EXPECT_EQ(both[2].params["realm"], "x");

  for (const char* odd : {"", ",", "=", "Bearer realm=\"", "Bearer =x", "\"\"", "Basic realm=\\", "Bearer realm"})
    (void)parse_challenges(odd);  // must return without a crash
}

TEST(Credentials, go_to_whom_they_are_meant_for) {
  std::vector<runtime::Credentials> all = {{"https://index.docker.io/v1/", "hub", "p", ""},
                                           {"ghcr.io", "gh", "p", ""},
                                           {"ghcr.io/team/app", "app", "p", ""},
                                           {"ghcr.io/team", "team", "p", ""},
                                           {"*.example.com", "any", "p", ""},
                                           {"host:5000", "port", "p", ""}};
  auto names = [&](const char* host, const char* repository) {
    std::string out;
    for (size_t one : matching_credentials(all, host, repository)) out += all[one].username + " ";
    return out;
  };
  EXPECT_EQ(names("docker.io", "library/nginx"), "hub ");
  EXPECT_EQ(names("ghcr.io", "team/app"), "app team gh ") << "the nearest first";
  EXPECT_EQ(names("ghcr.io", "team/application"), "team gh ") << "a prefix ends at a slash";
  EXPECT_EQ(names("ghcr.io", "teams/app"), "gh ");
  EXPECT_EQ(names("a.example.com", "x"), "any ");
  EXPECT_EQ(names("a.b.example.com", "x"), "");
  EXPECT_EQ(names("example.com", "x"), "");
  EXPECT_EQ(names("host:5000", "x"), "port ");
  EXPECT_EQ(names("host", "x"), "") << "another port is another registry";
  EXPECT_EQ(names("evil-ghcr.io", "x"), "");
}

TEST(Origin, tells_hosts_apart) {
  EXPECT_EQ(origin_of("https://Host/x"), "https://host:443");
  EXPECT_EQ(origin_of("https://host:443/y"), "https://host:443");
  EXPECT_EQ(origin_of("http://host"), "http://host:80");
  EXPECT_EQ(origin_of("file:///etc/passwd"), "");
  EXPECT_EQ(origin_of("nonsense"), "");
}

TEST(Origin, tells_what_is_this_machine_s_own) {
  for (const char* host : {"localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "0.0.0.0", "[::1]", "::1", "[::]",
                           "::ffff:127.0.0.1", "::127.0.0.1", "169.254.169.254", "fe80::1", "[fe80::1%eth0]", "febf::1"})
    EXPECT_TRUE(is_local_host(host)) << host;
  for (const char* host : {"", "[", "localhost.example.com", "127.0.0.1.example.com", "128.0.0.1", "169.253.0.1", "10.0.0.1",
                           "192.168.1.1", "2001:db8::1", "fec0::1", "::ffff:10.0.0.1"})
    EXPECT_FALSE(is_local_host(host)) << host;
  EXPECT_EQ(host_of_origin(origin_of("https://Host:5000/x")), "host");
  EXPECT_EQ(host_of_origin(origin_of("http://[::1]/x")), "[::1]");
  EXPECT_EQ(host_of_origin(origin_of("http://user:word@host/x")), "host");
  EXPECT_EQ(host_of_origin(origin_of("http://2130706433/x")), "127.0.0.1") << "another way to write it";
  EXPECT_EQ(host_of_origin(""), "");
}

TEST(Realm, is_no_way_to_other_places) {
  const ChallengedBy far{"https://reg.example:443", true, false}, plain{"http://reg.lan:5000", false, false},
      unverified{"https://reg.lan:5000", false, false}, own{"http://127.0.0.1:5000", false, true},
      named{"https://reg.lan:443", true, true};  // a name that resolved to loopback
  struct Row {
    const char* realm;
    const ChallengedBy* by;
    bool with_credentials;
    const char* want;  // "" = allowed
  };
  for (const Row& row : {
           Row{"https://auth.example/token", &far, true, ""},
           Row{"https://reg.example/token", &far, true, ""},
           Row{"http://auth.example/token", &far, true, "unencrypted"},
           Row{"http://reg.example/token", &far, false, "unencrypted"},
           Row{"https://127.0.0.1/token", &far, false, "this machine itself"},
           Row{"https://localhost:6443/token", &far, false, "this machine itself"},
           Row{"https://[::1]/token", &far, false, "this machine itself"},
           Row{"https://169.254.169.254/latest", &far, true, "this machine itself"},
           Row{"http://169.254.169.254/latest", &plain, false, "this machine itself"},
           Row{"http://2852039166/latest", &plain, false, "this machine itself"},
           Row{"http://reg.lan:5001/token", &plain, true, ""},
           Row{"http://auth.lan/token", &plain, true, "another host"},
           Row{"http://auth.lan/token", &plain, false, ""},
           Row{"https://auth.lan/token", &plain, true, ""},
           Row{"http://reg.lan:5001/token", &unverified, true, ""},
           Row{"http://auth.lan:5001/token", &unverified, true, "another host"},
           Row{"http://127.0.0.1:5001/token", &own, true, ""},
           Row{"http://localhost:5001/token", &own, true, ""},
           Row{"http://auth.lan/token", &own, true, "another host"},
           Row{"https://127.0.0.1:5001/token", &named, true, ""},
           Row{"http://127.0.0.1:5001/token", &named, true, "unencrypted"},
           Row{"file:///etc/shadow", &plain, false, "no place"},
           Row{"", &plain, false, "no place"},
       }) {
    auto checked = check_realm(row.realm, *row.by, row.with_credentials);
    EXPECT_EQ(checked.ok(), !*row.want) << row.realm << " of " << row.by->origin;
    const std::string said = checked ? "" : checked.error().text();
    EXPECT_NE(said.find(row.want), std::string::npos) << said;
  }
}

TEST(Endpoints, are_tried_in_order) {
  auto bases = [](const std::string& registry, const std::vector<std::string>& insecure,
                  const std::map<std::string, std::vector<std::string>>& mirrors) {
    std::string out;
    for (const auto& endpoint : plan_endpoints(registry, insecure, mirrors))
      out += endpoint.base + (endpoint.verify ? "" : "!") + " ";
    return out;
  };
  EXPECT_EQ(bases("docker.io", {}, {}), "https://registry-1.docker.io/v2 ");
  EXPECT_EQ(bases("ghcr.io", {"other"}, {}), "https://ghcr.io/v2 ");
  EXPECT_EQ(bases("reg:5000", {"reg:5000"}, {}), "https://reg:5000/v2! http://reg:5000/v2! ");
  EXPECT_EQ(bases("localhost:5000", {}, {}), "https://localhost:5000/v2! http://localhost:5000/v2! ");
  EXPECT_EQ(bases("127.0.0.1.evil.com", {}, {}), "https://127.0.0.1.evil.com/v2 ");
  EXPECT_EQ(bases("docker.io", {}, {{"docker.io", {"http://m:5000/", "m2/v2"}}}),
            "http://m:5000/v2 https://m2/v2 https://registry-1.docker.io/v2 ");
  EXPECT_EQ(bases("x.io", {}, {{"*", {"https://m/v2/proxy", "https://m/api/docker/v2/", "https://m/v2/"}}}),
            "https://m/v2/proxy https://m/api/docker/v2 https://m/v2 https://x.io/v2 ")
      << "a path is where the API is, as for k3s";
  EXPECT_EQ(bases("x.io", {}, {{"*", {"127.0.0.1:5000", "[::1]:5000", "localhost:443", "localhost", "m:5000/a"}}}),
            "http://127.0.0.1:5000/v2! http://[::1]:5000/v2! https://localhost:443/v2! https://localhost/v2! https://m:5000/a "
            "https://x.io/v2 ")
      << "loopback is plain by default";
}

TEST(Endpoints, have_the_settings_of_their_hosts) {
  RegistryHosts hosts;
  hosts["m:1"].verify = false;
  hosts["127.0.0.1:5000"].tls.authorities = "PEM";
  hosts["registry-1.docker.io"].tls.certificate = "PEM";
  auto bases = [&](const std::string& registry, const std::map<std::string, std::vector<std::string>>& mirrors) {
    std::string out;
    for (const auto& endpoint : plan_endpoints(registry, {}, mirrors, hosts))
      out += endpoint.base + (endpoint.verify ? "" : "!") + " ";
    return out;
  };
  EXPECT_EQ(bases("x.io", {{"x.io", {"https://m:1", "https://m:2"}}}), "https://m:1/v2! https://m:2/v2 https://x.io/v2 ");
  EXPECT_EQ(bases("m:1", {}), "https://m:1/v2! ") << "without a verified certificate, but not without any";
  EXPECT_EQ(bases("127.0.0.1:5000", {}), "https://127.0.0.1:5000/v2 ")
      << "whose authority is known is held to it, on loopback too";
  EXPECT_EQ(settings_of_host(hosts, "docker.io"), &hosts["registry-1.docker.io"]);
  EXPECT_EQ(settings_of_host(hosts, "other"), nullptr);
  hosts["*"].verify = false;
  EXPECT_EQ(settings_of_host(hosts, "other"), &hosts["*"]);
  EXPECT_EQ(bases("other", {}), "https://other/v2! ");
  hosts["*"] = {.verify = true, .tls = {.authorities = "PEM"}, .credentials = {}};
  EXPECT_EQ(bases("other", {}), "https://other/v2 ");
  EXPECT_EQ(bases("127.0.0.1:6000", {}), "https://127.0.0.1:6000/v2! http://127.0.0.1:6000/v2! ")
      << "the authority of all others is not its own";
}

TEST(Endpoints, are_those_of_hosts_toml_and_no_others) {
  using runtime::RegistryServer;
  RegistryHosts hosts;
  hosts["configured:1"].tls.authorities = "of the host";
  auto planned = [&](const std::string& registry, const std::vector<RegistryServer>& servers) {
    std::string out;
    for (const auto& endpoint : plan_servers(registry, {"plain.lan"}, servers, hosts))
      out += endpoint.base + (endpoint.verify ? "" : "!") + "(" + endpoint.host + "," + endpoint.ns + ")" +
             (endpoint.resolves ? "" : " digests") + (endpoint.tls ? " " + endpoint.tls->authorities : "") +
             join(endpoint.headers, "") + " ";
    return out;
  };
  EXPECT_EQ(planned("x.io", {}), "");
  EXPECT_EQ(planned("x.io", {{}}), "https://x.io/v2(x.io,) ") << "the registry itself";
  EXPECT_EQ(planned("plain.lan", {{}}), "https://plain.lan/v2!(plain.lan,) http://plain.lan/v2!(plain.lan,) ");
  EXPECT_EQ(planned("x.io", {{"https://m:1/v2", false, {}, false, {"A: b"}}, {"http://m:2/api"}}),
            "https://m:1/v2!(m:1,x.io) digestsA: b http://m:2/api(m:2,x.io) ");
  EXPECT_EQ(planned("docker.io", {{"https://registry-1.docker.io/v2"}}), "https://registry-1.docker.io/v2(docker.io,) ");
  EXPECT_EQ(planned("x.io", {{"https://configured:1/v2"}}), "https://configured:1/v2(configured:1,x.io) ");
  EXPECT_EQ(planned("x.io", {{"https://configured:1/v2", true, {"own", "", ""}}}),
            "https://configured:1/v2(configured:1,x.io) own ");
  EXPECT_EQ(planned("127.0.0.1:5", {{"", true, {"own", "", ""}}}), "https://127.0.0.1:5/v2(127.0.0.1:5,) own ")
      << "whose authority is known is held to it, on loopback too";
}

}  // namespace
}  // namespace coracle::image
