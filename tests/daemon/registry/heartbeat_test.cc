// SPDX-License-Identifier: Apache-2.0
// Which writes are only heartbeats.
#include "daemon/registry/heartbeat.h"

#include <gtest/gtest.h>

#include "daemon/registry/registry.h"
#include "tests/daemon/registry/registry_fixture.h"

namespace coracle::registry {
namespace {

TEST(Heartbeat, is_a_renewal_or_a_condition_said_again) {
  const std::string lease =
      R"({"metadata":{"name":"n","resourceVersion":"1"},"spec":{"holderIdentity":"n","renewTime":"2026-01-01T00:00:00.000000Z"}})";
  const std::string node =
      R"({"metadata":{"name":"n"},"spec":{},"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-01T00:00:00Z"}]}})";
  const std::string owned =
      R"({"metadata":{"name":"n","resourceVersion":"1","managedFields":[{"manager":"m","time":"1","fieldsV1":{"f:a":{}}},{"manager":"o"}]},"spec":{}})";
  struct Row {
    const char* name;
    const Kind& kind;
    std::string before, from, to;
    bool want;
  };
  const Row rows[] = {
      {"a renewal", kLease, lease, "00:00.000000Z", "00:10.000000Z", true},
      {"another holder", kLease, lease, R"("holderIdentity":"n")", R"("holderIdentity":"m")", false},
      {"a label", kLease, lease, R"("name":"n",)", R"("name":"n","labels":{"a":"b"},)", false},
      {"the version and the times of managed fields", kLease, owned,
       R"("1","managedFields":[{"manager":"m","time":"1","fieldsV1":{"f:a":{}}},{"manager":"o"}])",
       R"("2","managedFields":[{"manager":"o","time":"2"},{"manager":"m","time":"3","fieldsV1":{"f:a":{}}}])", true},
      {"the owner of a field", kLease, owned, R"({"manager":"o"})", R"({"manager":"o","fieldsV1":{"f:a":{}}})", false},
      {"a further owner", kLease, owned, R"({"manager":"o"})", R"({"manager":"o"},{"manager":"p"})", false},
      {"the first owner", kLease, lease, R"("resourceVersion":"1")",
       R"("resourceVersion":"2","managedFields":[{"manager":"m","time":"1"}])", false},
      {"the first renewal", kLease, lease, R"(,"renewTime":"2026-01-01T00:00:00.000000Z")", "", true},
      {"a node's heartbeat", kNode, node, "00:00Z", "05:00Z", true},
      {"another condition", kNode, node, R"("status":"True")", R"("status":"False")", false},
      {"a further condition", kNode, node, "}]}}", R"(},{"type":"DiskPressure","status":"False"}]}})", false},
      {"no condition any more", kNode, node, node.substr(node.find(R"("conditions")")), R"("conditions":[]}})", false},
      {"the first heartbeat", kNode, node, R"(,"lastHeartbeatTime":"2026-01-01T00:00:00Z")", "", true},
      {"conditions that are none", kNode, node, node.substr(node.find("[{")), R"({"lastHeartbeatTime":""}}})", false},
      {"a taint", kNode, node, R"("spec":{})", R"("spec":{"taints":[{"key":"a","effect":"NoExecute"}]})", false},
      {"another kind", kConfigMap, lease, "00:00.000000Z", "00:10.000000Z", false},
  };
  for (const Row& row : rows) {
    std::string after = row.before;
    after.replace(after.find(row.from), row.from.size(), row.to);
    EXPECT_EQ(is_heartbeat(schema::catalog().of(row.kind), RegistryFixture::parse(row.before), RegistryFixture::parse(after)),
              row.want)
        << row.name;
  }
}

// A renewed lease is written to disk only together with other writes; a lease with a new holder is written at once.
TEST(Heartbeat, of_a_lease_does_not_reach_the_disk_by_itself) {
  RegistryFixture fixture;
  Key key{"kube-node-lease", "n"};
  ASSERT_TRUE(fixture.try_update(
      kLease,
      RegistryFixture::parse(R"({"metadata":{"name":"n","namespace":"kube-node-lease"},"spec":{"holderIdentity":"n"}})")));
  ASSERT_TRUE(fixture.engine->flush());
  auto before = fixture.engine->last_written();
  Revision revision = fixture.engine->revision();
  for (int i = 10; i < 30; ++i)
    ASSERT_TRUE(
        fixture.try_merge(kLease, key, R"({"spec":{"renewTime":"2026-01-01T00:00:)" + std::to_string(i) + R"(.000000Z"}})"));
  EXPECT_EQ(fixture.engine->revision(), revision + 20) << "all were seen";
  EXPECT_EQ(fixture.engine->last_written(), before);
}

}  // namespace
}  // namespace coracle::registry
