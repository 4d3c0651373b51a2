// SPDX-License-Identifier: Apache-2.0
// Challenges, and which credentials are meant for whom.
#include "runtime/image/fetch/auth.h"

#include <gtest/gtest.h>

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
    (void)parse_challenges(odd);  // ends, and does not crash
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
    for (const auto& one : matching_credentials(all, host, repository)) out += one.username + " ";
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
  EXPECT_EQ(bases("x.io", {}, {{"*", {"https://m/prefix"}}}), "https://m/prefix/v2 https://x.io/v2 ");
}

}  // namespace
}  // namespace coracle::image
