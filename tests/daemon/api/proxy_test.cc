// SPDX-License-Identifier: Apache-2.0
// The proxy to pods, services and nodes: where a request goes, and what it is told when there is nothing. That one arrives is
// tests/e2e/hello.sh's to see: what is behind must not be this machine.
#include <gtest/gtest.h>

#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/world.h"

namespace coracle::api {
namespace {

class Proxy : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(client.ask("POST", "/api/v1/namespaces/default/pods",
                         R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}})").status, 201);
    ASSERT_EQ(client.ask("POST", "/api/v1/namespaces/default/services",
                         R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81}]}})").status, 201);
  }
  void set_address(const char* address) {
    json::value status = json::object{{"status", json::object{{"podIP", address}, {"podIPs", json::array{json::object{{"ip", address}}}}}}};
    MUST(world.registry->patch(kPod, {"default", "p"}, "status", PatchType::merge, status, false, {}));
  }
  RawAnswer get(const std::string& path) { return client.ask("GET", path); }

  World world;
  KeyPair identity = world.server->admin();
  RawClient client{world.port(), &identity};
};

TEST_F(Proxy, says_what_is_missing) {
  const std::string ns = "/api/v1/namespaces/default";
  EXPECT_EQ(get(ns + "/pods/none/proxy/x").status, 404);
  EXPECT_EQ(get(ns + "/pods/p/proxy/x").status, 400);  // it has no address yet
  EXPECT_EQ(get(ns + "/pods/a:b:c:d/proxy/x").status, 400);
  RawAnswer no_port = get(ns + "/services/s/proxy/x");
  EXPECT_EQ(no_port.status, 503);
  EXPECT_EQ(get_string(no_port.json(), "message"), "no service port \"\" found for service \"s\"");
  EXPECT_EQ(get(ns + "/services/s:c/proxy/x").status, 503);
  EXPECT_EQ(get(ns + "/services/none/proxy/x").status, 404);
  EXPECT_EQ(get("/api/v1/nodes/none/proxy/pods").status, 404);
}

TEST_F(Proxy, does_not_lead_back_to_the_machine) {
  for (const char* address : {"127.0.0.1", "169.254.169.254", "::1"}) {
    set_address(address);
    RawAnswer answer = get("/api/v1/namespaces/default/pods/p/proxy/");
    EXPECT_EQ(answer.status, 400) << address;
    EXPECT_EQ(get_string(answer.json(), "message"), "address not allowed");
  }
}

TEST_F(Proxy, does_not_lead_elsewhere_by_its_port) {
  set_address("192.0.2.7");
  for (const char* name : {"p:80@198.51.100.1", "p:http", "p:0", "p:65536", "http:p:80%23", "ftp:p:80"})
    EXPECT_EQ(get("/api/v1/namespaces/default/pods/" + std::string(name) + "/proxy/").status, 400) << name;
}

TEST_F(Proxy, asks_for_the_slash_that_a_pages_links_need) {
  set_address("192.0.2.7");
  RawAnswer answer = get("/api/v1/namespaces/default/pods/p/proxy?a=b");
  EXPECT_EQ(answer.status, 301);
  EXPECT_EQ(answer.header("Location"), "/api/v1/namespaces/default/pods/p/proxy/?a=b");
}

}  // namespace
}  // namespace coracle::api
