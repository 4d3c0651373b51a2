// SPDX-License-Identifier: Apache-2.0
// What the table of the node's pods keeps in memory, and what it returns.
#include "daemon/node/pod_table.h"

#include <gtest/gtest.h>

namespace coracle::node {
namespace {

ObjectPtr pod(const std::string& name, const std::string& phase = "Running") {
  return MUST(Object::make(kPod, MUST(parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                                                 R"(","namespace":"default","uid":"u-)" + name +
                                                 R"("},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[)"
                                                 R"({"name":"v","configMap":{"name":"settings"}}]},"status":{"phase":")" +
                                                 phase + R"("}})"))));
}

class Table : public testing::Test {
 protected:
  // Inserts the object, reads it as a worker does, and returns the object that was read.
  std::weak_ptr<const Object> put(const ObjectPtr& object, bool admitted = false) {
    table.change(object->uid(), [&](RestingPod& desired) { desired.object = object->at_rest(), desired.admitted = admitted; });
    std::optional<DesiredPod> got = table.get(object->uid());
    EXPECT_EQ(get_string(got->object->json(), "metadata.name"), object->name());
    return got->object;
  }
  PodTable table;
};

TEST_F(Table, keeps_no_parsed_form_of_a_pod) {
  std::weak_ptr<const Object> seen = put(pod("a"));
  forget_parsed();
  EXPECT_TRUE(seen.expired());
  table.change_existing("u-a", [](RestingPod& desired) { desired.mirror = pod("a")->at_rest(); });
  seen = table.get("u-a")->mirror;
  forget_parsed();
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(get_string(table.get("u-a")->object->json(), "metadata.name"), "a");
}

TEST_F(Table, looking_over_all_pods_keeps_none_parsed) {
  std::weak_ptr<const Object> seen = put(pod("a"), true);
  put(pod("ended", "Succeeded"), true);
  put(pod("not-admitted"));
  std::vector<ObjectPtr> beside = table.admitted_beside("u-other");
  ASSERT_EQ(beside.size(), 1u);
  EXPECT_EQ(get_string(beside[0]->json(), "metadata.name"), "a");
  EXPECT_TRUE(table.admitted_beside("u-a").empty());
  beside.clear();
  EXPECT_EQ(table.mark_stale(kConfigMap, {"default", "settings"}),
            (std::vector<std::string>{"u-a", "u-ended", "u-not-admitted"}));
  EXPECT_TRUE(table.mark_stale(kConfigMap, {"default", "others"}).empty());
  forget_parsed();
  EXPECT_TRUE(seen.expired());
}

TEST_F(Table, a_claim_is_used_until_its_volumes_are_given_back) {
  auto with_claim = [](const std::string& name, const std::string& phase) {
    return MUST(
        Object::make(kPod, MUST(parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                                           R"(","namespace":"default","uid":"u-)" + name +
                                           R"("},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[)"
                                           R"({"name":"v","persistentVolumeClaim":{"claimName":"data"}}]},"status":{"phase":")" +
                                           phase + R"("}})"))));
  };
  using Names = std::vector<std::string>;
  const Key data{"default", "data"};
  put(with_claim("db", "Running"));
  put(pod("other"));
  EXPECT_EQ(table.users_of_claim(data), Names{"db"});
  EXPECT_FALSE(table.is_used_by_gone(data)) << "it knows the claim that there is";
  put(with_claim("db", "Failed"));
  EXPECT_EQ(table.users_of_claim(data), Names{"db"}) << "who wrote the phase need not have ended the containers";
  EXPECT_TRUE(table.is_used_by_gone(data)) << "a claim goes when the API takes its pods for ended";
  put(with_claim("db", "Running"));
  table.change_existing("u-db", [](RestingPod& desired) { desired.gone = true; });
  EXPECT_TRUE(table.is_used_by_gone(data));
  table.change_existing("u-db", [](RestingPod& desired) { desired.released = true; });
  EXPECT_TRUE(table.users_of_claim(data).empty());
  EXPECT_FALSE(table.is_used_by_gone(data));
  table.change("u-found", [](RestingPod&) {});  // a sandbox that is older than this daemon
  EXPECT_EQ(table.users_of_claim(data), Names{"u-found"}) << "nobody knows what it uses";
  EXPECT_TRUE(table.is_used_by_gone(data));
}

}  // namespace
}  // namespace coracle::node
