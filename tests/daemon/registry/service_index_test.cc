// SPDX-License-Identifier: Apache-2.0
// The addresses and node ports in use, as a write of a Service sees them.
#include "store/kinds/service/server/service_index.h"

#include <gtest/gtest.h>

#include "store/kinds/service/server/address_range.h"
#include "tests/daemon/registry/registry_fixture.h"

namespace coracle::registry {
namespace {

using kinds::parse_address;
using kinds::ServiceIndex;

uint32_t address(std::string_view text) { return *parse_address(text); }

class ServiceIndexTest : public ::testing::Test {
 protected:
  ObjectPtr make(const std::string& name, const std::string& ip, int node_port = 0) {
    std::string port = R"({"name":"a","port":80)" + (node_port ? ",\"nodePort\":" + std::to_string(node_port) : "") + "}";
    return fixture_.make(kService, R"({"metadata":{"namespace":"default","name":")" + name + R"("},"spec":{"clusterIP":")" + ip +
                                       R"(","type":")" + (node_port ? "NodePort" : "ClusterIP") + R"(","ports":[)" + port +
                                       "]}}");
  }
  ServiceIndex::AllocatedByOthers others(std::string_view uid = {}) { return MUST(index_.allocated_by_others(uid)); }

  RegistryFixture fixture_;
  ServiceIndex index_{*fixture_.engine};
};

TEST_F(ServiceIndexTest, knows_what_was_written_a_moment_ago) {
  EXPECT_TRUE(others().has_address(address("10.96.0.1")));  // the API's own address
  EXPECT_FALSE(others().has_address(address("10.96.2.1")));
  const ObjectPtr web = make("web", "10.96.2.1", 30080);
  EXPECT_TRUE(others().has_address(address("10.96.2.1")));
  EXPECT_TRUE(others().has_port(30080));
  EXPECT_FALSE(others().has_port(30081));
  MUST(fixture_.engine->remove(kService, web->key(), std::nullopt, engine::Durability::soft));
  EXPECT_FALSE(others().has_address(address("10.96.2.1")));
  EXPECT_FALSE(others().has_port(30080));
}

TEST_F(ServiceIndexTest, does_not_count_what_the_asking_service_has_itself) {
  const ObjectPtr web = make("web", "10.96.2.1", 30080);
  EXPECT_FALSE(others(web->uid()).has_address(address("10.96.2.1")));
  EXPECT_FALSE(others(web->uid()).has_port(30080));
  EXPECT_TRUE(others("of-somebody-else").has_address(address("10.96.2.1")));
}

TEST_F(ServiceIndexTest, finds_the_lowest_free_address) {
  const uint32_t first = address("10.96.2.1"), last = address("10.96.2.4");
  EXPECT_EQ(others().free_address(first, last), first);
  const ObjectPtr web = make("web", "10.96.2.1");
  make("db", "10.96.2.2"), make("log", "10.96.2.4");
  EXPECT_EQ(others().free_address(first, last), address("10.96.2.3"));
  EXPECT_EQ(others(web->uid()).free_address(first, last), first);
  make("cache", "10.96.2.3");
  EXPECT_EQ(others().free_address(first, last), std::nullopt);
  EXPECT_EQ(others(web->uid()).free_address(first, last), first);
}

TEST_F(ServiceIndexTest, finds_the_lowest_free_node_port) {
  EXPECT_EQ(others().free_port(30080, 30082), 30080);
  const ObjectPtr web = make("web", "10.96.2.1", 30080);
  make("db", "10.96.2.2", 30081);
  EXPECT_EQ(others().free_port(30080, 30082), 30082);
  EXPECT_EQ(others().free_port(30080, 30081), std::nullopt);
  EXPECT_EQ(others(web->uid()).free_port(30080, 30082), 30080) << "its own";
  MUST(fixture_.engine->remove(kService, {"default", "db"}, std::nullopt, engine::Durability::soft));
  EXPECT_EQ(others().free_port(30080, 30082), 30081);
}

// A reservation may repeat what its Service has.
TEST_F(ServiceIndexTest, counts_what_is_reserved_twice_until_both_are_over) {
  const ObjectPtr web = make("web", "10.96.2.1", 30080);
  const ServiceIndex::Allocated both{{address("10.96.2.1"), address("10.96.2.2")}, {30080, 30081}};
  const ServiceIndex::Held held = index_.hold(web->uid(), both);
  EXPECT_EQ(others().free_address(address("10.96.2.1"), address("10.96.2.9")), address("10.96.2.3"));
  EXPECT_EQ(others(web->uid()).free_address(address("10.96.2.1"), address("10.96.2.9")), address("10.96.2.1"));
  EXPECT_EQ(others().free_port(30080, 30089), 30082);
  EXPECT_EQ(others(web->uid()).free_port(30080, 30089), 30080);
  index_.give_back(held);
  EXPECT_EQ(others().free_address(address("10.96.2.1"), address("10.96.2.9")), address("10.96.2.2"));
  EXPECT_EQ(others().free_port(30080, 30089), 30081);
}

TEST_F(ServiceIndexTest, begins_anew_where_it_fell_too_far_behind) {
  make("web", "10.96.2.1");
  EXPECT_TRUE(others().has_address(address("10.96.2.1")));
  MUST(fixture_.engine->remove(kService, {"default", "web"}, std::nullopt, engine::Durability::soft));
  make("db", "10.96.2.2");
  for (size_t i = 0; i <= engine::Options().watch_queue_max; ++i)
    MUST(fixture_.try_merge(kService, {"default", "db"}, R"({"metadata":{"labels":{"turn":")" + std::to_string(i) + R"("}}})"));
  EXPECT_FALSE(others().has_address(address("10.96.2.1")));
  EXPECT_TRUE(others().has_address(address("10.96.2.2")));
  EXPECT_EQ(others().free_address(address("10.96.2.1"), address("10.96.2.9")), address("10.96.2.1"));
  EXPECT_EQ(others().free_address(address("10.96.2.2"), address("10.96.2.9")), address("10.96.2.3"));
}

}  // namespace
}  // namespace coracle::registry
