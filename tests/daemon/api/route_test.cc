// SPDX-License-Identifier: Apache-2.0
// Routes and media types: parsing of URLs and Accept headers.
#include "daemon/api/route.h"

#include <gtest/gtest.h>

#include "daemon/api/negotiate.h"

namespace coracle::api {
namespace {

Head head_of(const std::string& method, const std::string& target, const std::string& headers = {}) {
  return MUST(parse_request_head(method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n"));
}

TEST(Route, reads_positions) {
  struct Row {
    const char *method, *target, *want;  // group/version namespace resource name subresource verb
  };
  for (const Row& row : {
           Row{"GET", "/api/v1/pods", "/v1 [] pods [] [] list"},
           Row{"GET", "/api/v1/pods?watch=true", "/v1 [] pods [] [] watch"},
           Row{"GET", "/api/v1/watch/pods", "/v1 [] pods [] [] watch"},
           Row{"GET", "/api/v1/watch/namespaces/a/pods/p", "/v1 [a] pods [p] [] watch"},
           Row{"GET", "/api/v1/namespaces", "/v1 [] namespaces [] [] list"},
           Row{"GET", "/api/v1/namespaces/a", "/v1 [] namespaces [a] [] get"},
           Row{"PUT", "/api/v1/namespaces/a/finalize", "/v1 [] namespaces [a] [finalize] update"},
           Row{"PATCH", "/api/v1/namespaces/a/status", "/v1 [] namespaces [a] [status] patch"},
           Row{"DELETE", "/api/v1/namespaces/a/pods", "/v1 [a] pods [] [] deletecollection"},
           Row{"POST", "/api/v1/namespaces/a/pods/p/exec", "/v1 [a] pods [p] [exec] create"},
           Row{"GET", "/apis/apps/v1/namespaces/a/deployments/d/scale", "apps/v1 [a] deployments [d] [scale] get"},
           Row{"DELETE", "/apis/apps/v1/namespaces/a/deployments/d/", "apps/v1 [a] deployments [d] [] delete"},
           Row{"HEAD", "/api/v1/pods", "/v1 [] pods [] [] list"},
           Row{"POST", "/api/v1/namespaces/a/pods/https:p:80/proxy/x", "/v1 [a] pods [https:p:80] [proxy] create"},
           Row{"DELETE", "/api/v1/nodes/n/proxy", "/v1 [] nodes [n] [proxy] delete"},
           Row{"OPTIONS", "/api/v1/namespaces/a/services/s/proxy/", "/v1 [a] services [s] [proxy] "},
       }) {
    Head head = head_of(row.method, row.target);
    Route route = MUST(read_route(head.path));
    EXPECT_EQ(route.what, Route::What::resource);
    EXPECT_EQ(route.group + "/" + route.version + " [" + route.ns + "] " + route.resource + " [" + route.name + "] [" +
                  route.subresource + "] " + route.verb(head),
              row.want)
        << row.target;
  }
}

TEST(Route, tells_discovery_from_the_rest) {
  using enum Route::What;
  for (auto [path, want] : {std::pair{"/api", api_versions},
                            {"/api/", api_versions},
                            {"/apis", group_list},
                            {"/apis/apps", group},
                            {"/apis/apps/v1", resource_list},
                            {"/api/v1", resource_list},
                            {"/", other},
                            {"/livez", other},
                            {"/apix/v1", other}})
    EXPECT_EQ(MUST(read_route(path)).what, want) << path;
}

TEST(Route, refuses_slashes_and_nuls_that_hide_in_segments) {
  for (const char* path : {"/api/v1/namespaces/a%2Fb/pods", "/api/v1/pods/%00", "/api/v1/%zz"})
    EXPECT_FALSE(read_route(path)) << path;
  EXPECT_EQ(MUST(read_route("/api/v1/namespaces/a/pods/%6E")).name, "n");
}

TEST(Route, leaves_what_is_behind_a_proxy_as_it_was_sent) {
  std::string deep;
  for (int i = 0; i < 1000; i++) deep += "/a";
  for (const std::string rest : {"", "/", "/a%2Fb/%00/ä%20/", "//x/proxy/..", deep.c_str()}) {
    Route route = MUST(read_route("/api/v1/namespaces/ns/pods/p/proxy" + rest));
    EXPECT_TRUE(route.is_proxy());
    EXPECT_EQ(route.rest, rest);
    EXPECT_EQ(route.subresource, "proxy");
    EXPECT_EQ(MUST(read_route("/api/v1/nodes/n/proxy" + rest)).rest, rest);
  }
  EXPECT_FALSE(read_route("/api/v1/nodes/n/proxy/%zz"));
  for (const char* other : {"/api/v1/namespaces/proxy", "/api/v1/namespaces/proxy/pods", "/api/v1/namespaces/ns/pods/proxy",
                            "/apis/g/v1/nodes/n/proxy/x"})
    EXPECT_FALSE(MUST(read_route(other)).is_proxy()) << other;
}

TEST(Route, does_not_recurse_over_long_paths) {
  std::string path = "/" + std::string(kHeadBytesMax - 2, 'a');
  EXPECT_EQ(MUST(read_route(path)).what, Route::What::other);
  std::string deep;
  for (int i = 0; i < 4000; i++) deep += "/a";
  EXPECT_FALSE(read_route(deep));
}

TEST(Negotiate, takes_the_first_it_can_do) {
  struct Row {
    const char* accept;
    const char* want;  // "" = 406
  };
  for (const Row& row : {
           Row{"", "application/json itself"},
           Row{"Accept: */*\r\n", "application/json itself"},
           Row{"Accept: application/yaml\r\n", "application/yaml itself"},
           Row{"Accept: application/vnd.kubernetes.protobuf,application/json\r\n", "application/vnd.kubernetes.protobuf itself"},
           Row{"Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n", "application/json table"},
           Row{"Accept: application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1\r\n", ""},
           Row{"Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n",
               "application/vnd.kubernetes.protobuf partial"},
           Row{"Accept: application/json;as=Table;v=v9;g=meta.k8s.io,application/json\r\n", "application/json itself"},
           Row{"Accept: application/yaml;q=0.2, application/json;q=0.9\r\n", "application/json itself"},
           Row{"Accept: text/html\r\n", ""},
           Row{"Accept: application/x-yaml\r\n", ""},
           Row{"Accept: */*, application/yaml\r\n", "application/yaml itself"},
           Row{"Accept: application/yaml;q=nan, application/json;q=0.9\r\n", "application/yaml itself"},
           Row{"Accept: text/html\r\nAccept: application/yaml\r\n", "application/yaml itself"},
           Row{"Accept: application/json;v=v1;g=meta.k8s.io\r\n", ""},
           Row{"Accept: application/json;stream=watch\r\n", "application/json itself"},
           Row{"Accept: application/json;stream=other, application/yaml\r\n", "application/yaml itself"},
           Row{"Accept: application/json;sv=v1, application/yaml\r\n", "application/yaml itself"},
       }) {
    auto got = negotiate(head_of("GET", "/x", row.accept), Offer::object);
    static constexpr const char* kNames[] = {"itself", "table", "partial", "partial_list"};
    EXPECT_EQ(got ? std::string(got->media_type()) + " " + kNames[int(got->as)] : "", row.want) << row.accept;
  }
  EXPECT_FALSE(negotiate(head_of("GET", "/x", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"), Offer::value));
}

TEST(Negotiate, names_what_else_will_do) {
  auto all = [](const std::string& accept) {
    std::string names;
    auto wanted = negotiate_all(head_of("GET", "/version", "Accept: " + accept + "\r\n"), Offer::value);
    if (wanted)
      for (const Wanted& one : *wanted) names += std::string(one.media_type()) + " ";
    return names;
  };
  EXPECT_EQ(all("application/vnd.kubernetes.protobuf, */*"), "application/vnd.kubernetes.protobuf application/json ");
  EXPECT_EQ(all("application/vnd.kubernetes.protobuf,application/json"), "application/vnd.kubernetes.protobuf application/json ");
  EXPECT_EQ(all("application/json;q=0.5, application/yaml;q=0.7, text/html"), "application/yaml application/json ");
  EXPECT_EQ(all("application/json;q=0, application/yaml;q=0.1"), "application/yaml ") << "0 is: not at all";
  EXPECT_EQ(all("application/json;q=0"), "");
}

TEST(Negotiate, streams_no_yaml) {
  auto stream = [](const char* accept) { return negotiate(head_of("GET", "/x", accept), Offer::stream); };
  EXPECT_EQ(MUST(stream("Accept: application/vnd.kubernetes.protobuf;stream=watch\r\n")).encoding, Encoding::protobuf);
  EXPECT_EQ(MUST(stream("")).encoding, Encoding::json);
  EXPECT_EQ(stream("Accept: application/yaml\r\n").error().text(),
            "only the following media types are accepted: application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch");
}

TEST(Negotiate, prints_prettily_for_people) {
  EXPECT_TRUE(MUST(negotiate(head_of("GET", "/x", "User-Agent: curl/8\r\n"), Offer::object)).pretty);
  EXPECT_FALSE(MUST(negotiate(head_of("GET", "/x?pretty=false", "User-Agent: curl/8\r\n"), Offer::object)).pretty);
  EXPECT_TRUE(MUST(negotiate(head_of("GET", "/x?pretty=1"), Offer::object)).pretty);
  EXPECT_FALSE(MUST(negotiate(head_of("GET", "/x?pretty=yes"), Offer::object)).pretty) << "as Go reads a boolean";
  EXPECT_TRUE(MUST(negotiate(head_of("GET", "/x?pretty=", "User-Agent: curl/8\r\n"), Offer::object)).pretty);
  EXPECT_FALSE(MUST(negotiate(head_of("GET", "/x"), Offer::object)).pretty);
}

TEST(Negotiate, reads_the_bodys_type) {
  EXPECT_EQ(MUST(body_encoding("")), Encoding::json);
  EXPECT_EQ(MUST(body_encoding("application/json; charset=utf-8")), Encoding::json);
  EXPECT_EQ(MUST(body_encoding("application/yaml")), Encoding::yaml);
  EXPECT_EQ(body_encoding("text/plain").error().code(), Code::unsupported);
  EXPECT_EQ(body_encoding("*/*").error().code(), Code::unsupported);
}

}  // namespace
}  // namespace coracle::api
