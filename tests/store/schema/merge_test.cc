// SPDX-License-Identifier: Apache-2.0
// Strategic merge patches: applied, and made.
#include "store/schema/merge.h"

#include <gtest/gtest.h>

namespace coracle::schema {
namespace {

struct MergeRow {
  const char* name;
  const Kind& kind;
  const char* original;
  const char* patch;
  const char* want;
};

TEST(Merge, applies_patches) {
  for (
      const MergeRow& row : {
          MergeRow{"fields merge, null deletes", kDeployment, R"({"spec":{"replicas":1,"paused":true}})",
                   R"({"spec":{"replicas":3,"paused":null}})", R"({"spec":{"replicas":3}})"},
          MergeRow{"labels merge", kPod, R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
                   R"({"metadata":{"labels":{"b":null,"c":"3"}}})", R"({"metadata":{"labels":{"a":"1","c":"3"}}})"},
          MergeRow{"containers merge by name", kPod,
                   R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]}})",
                   R"({"spec":{"containers":[{"name":"b","image":"3"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"3"}]}})"},
          MergeRow{"a new item stands before what the patch does not name", kPod, R"({"spec":{"containers":[{"name":"a"}]}})",
                   R"({"spec":{"containers":[{"name":"c","env":[{"name":"X","value":"1"}]}]}})",
                   R"({"spec":{"containers":[{"name":"c","env":[{"name":"X","value":"1"}]},{"name":"a"}]}})"},
          MergeRow{"an item is deleted", kPod, R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                   R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})", R"({"spec":{"containers":[{"name":"b"}]}})"},
          MergeRow{"a list is replaced", kPod, R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                   R"({"spec":{"containers":[{"name":"c"},{"$patch":"replace"}]}})", R"({"spec":{"containers":[{"name":"c"}]}})"},
          MergeRow{"an object is replaced", kPod, R"({"spec":{"securityContext":{"runAsUser":1,"runAsGroup":2}}})",
                   R"({"spec":{"securityContext":{"$patch":"replace","runAsUser":3}}})",
                   R"({"spec":{"securityContext":{"runAsUser":3}}})"},
          MergeRow{"an object is emptied", kPod, R"({"spec":{"securityContext":{"runAsUser":1}}})",
                   R"({"spec":{"securityContext":{"$patch":"delete"}}})", R"({"spec":{"securityContext":{}}})"},
          MergeRow{"lists without a strategy are replaced", kPod, R"({"spec":{"containers":[{"name":"a","args":["x","y"]}]}})",
                   R"({"spec":{"containers":[{"name":"a","args":["z"]}]}})",
                   R"({"spec":{"containers":[{"name":"a","args":["z"]}]}})"},
          MergeRow{"finalizers merge by value", kPod, R"({"metadata":{"finalizers":["a","b"]}})",
                   R"({"metadata":{"finalizers":["b","c"]}})", R"({"metadata":{"finalizers":["a","b","c"]}})"},
          MergeRow{"values are deleted", kPod, R"({"metadata":{"finalizers":["a","b"]}})",
                   R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}})", R"({"metadata":{"finalizers":["b"]}})"},
          MergeRow{
              "the patch gives the order", kPod, R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
              R"({"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}],"containers":[{"name":"a","image":"1"}]}})",
              R"({"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"a","image":"1"}]}})"},
          MergeRow{"order alone", kPod, R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                   R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}})",
                   R"({"spec":{"containers":[{"name":"b"},{"name":"a"}]}})"},
          MergeRow{"other volume sources go", kPod, R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})",
                   R"({"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]}})",
                   R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})"},
          MergeRow{"the strategy's other fields go", kDeployment,
                   R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}})",
                   R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})",
                   R"({"spec":{"strategy":{"type":"Recreate"}}})"},
          MergeRow{"ports merge by number", kService, R"({"spec":{"ports":[{"port":80,"name":"a"}]}})",
                   R"({"spec":{"ports":[{"port":80,"targetPort":8080},{"port":81}]}})",
                   R"({"spec":{"ports":[{"port":80,"name":"a","targetPort":8080},{"port":81}]}})"},
          MergeRow{"conditions merge by type", kNode, R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})",
                   R"({"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"X","status":"True"}]}})",
                   R"({"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"X","status":"True"}]}})"},
          MergeRow{"what is not known merges as JSON does", kPod, R"({"x":{"a":[1],"b":2}})", R"({"x":{"a":[2],"b":null}})",
                   R"({"x":{"a":[2]}})"},
          MergeRow{
              "directives and nulls do not stay in what is new", kPod, R"({})",
              R"({"spec":{"volumes":[{"name":"v","$retainKeys":["name"],"emptyDir":null}],"securityContext":{"runAsUser":null}}})",
              R"({"spec":{"volumes":[{"name":"v"}],"securityContext":{}}})"},
          MergeRow{"the type may change", kPod, R"({"spec":7})", R"({"spec":{"nodeName":"n"}})", R"({"spec":{"nodeName":"n"}})"},
      }) {
    auto merged = strategic_merge(catalog().of(row.kind), *parse_json(row.original), *parse_json(row.patch));
    ASSERT_TRUE(merged) << row.name << merged.error().text();
    EXPECT_EQ(to_text(*merged), row.want) << row.name;
  }
}

TEST(Merge, refuses_malformed_patches) {
  for (const char* patch :
       {"[]", "1", R"({"$patch":"invent"})", R"({"$patch":1})", R"({"spec":{"containers":[{"image":"x"}]}})",
        R"({"spec":{"containers":["x"]}})", R"({"spec":{"$retainKeys":"x"}})", R"({"spec":{"$setElementOrder/containers":1}})",
        R"({"metadata":{"$deleteFromPrimitiveList/finalizers":1}})"}) {
    auto merged = strategic_merge(catalog().of(kPod), json::object(), *parse_json(patch));
    ASSERT_FALSE(merged) << patch;
    EXPECT_EQ(merged.error().code(), Code::bad_request);
  }
}

struct ApplyRow {
  const char* name;
  const Kind& kind;
  const char* last;
  const char* now;
  const char* live;
  const char* want_patch;
};

TEST(Merge, makes_the_patch_of_apply) {
  for (
      const ApplyRow& row : {
          ApplyRow{"nothing to do", kDeployment, R"({"spec":{"replicas":1}})", R"({"spec":{"replicas":1}})",
                   R"({"spec":{"replicas":1,"paused":true}})", "{}"},
          ApplyRow{"a change", kDeployment, R"({"spec":{"replicas":1}})", R"({"spec":{"replicas":2}})",
                   R"({"spec":{"replicas":1,"paused":true}})", R"({"spec":{"replicas":2}})"},
          ApplyRow{"what was applied and is not any more goes", kPod, R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
                   R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"a":"1","b":"2","c":"3"}}})",
                   R"({"metadata":{"labels":{"b":null}}})"},
          ApplyRow{"what is gone already needs no deletion", kPod, R"({"metadata":{"labels":{"b":"2"}}})",
                   R"({"metadata":{"labels":{}}})", R"({"metadata":{"labels":{"c":"3"}}})", "{}"},
          ApplyRow{"drift is undone", kDeployment, R"({"spec":{"replicas":1}})", R"({"spec":{"replicas":1}})",
                   R"({"spec":{"replicas":5}})", R"({"spec":{"replicas":1}})"},
          ApplyRow{"an image", kPod, R"({"spec":{"containers":[{"name":"a","image":"1"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"2"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"1","imagePullPolicy":"Always"}]}})",
                   R"({"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a"}]}})"},
          ApplyRow{"a container is removed", kPod, R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                   R"({"spec":{"containers":[{"name":"a"}]}})",
                   R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"s"}]}})",
                   R"({"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"$patch":"delete","name":"b"}]}})"},
          ApplyRow{
              "a finalizer goes, one comes", kPod, R"({"metadata":{"finalizers":["a"]}})", R"({"metadata":{"finalizers":["b"]}})",
              R"({"metadata":{"finalizers":["a","x"]}})",
              R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["b"],"finalizers":["b"]}})"},
          ApplyRow{"a strategy is changed", kDeployment, R"({"spec":{"strategy":{"type":"RollingUpdate"}}})",
                   R"({"spec":{"strategy":{"type":"Recreate"}}})",
                   R"({"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%"}}}})",
                   R"({"spec":{"strategy":{"type":"Recreate","$retainKeys":["type"]}}})"},
          ApplyRow{"amounts, not texts, are compared", kPod, "{}",
                   R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":1,"memory":"1024Ki"}}}]}})",
                   R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Mi"}}}]}})", "{}"},
          ApplyRow{"what the server does not keep is no difference", kPod, "{}",
                   R"({"spec":{"hostNetwork":false,"tolerations":[]}})", R"({"spec":{}})", "{}"},
          ApplyRow{"null is nothing", kPod, "{}", R"({"metadata":{"creationTimestamp":null,"name":"x"}})",
                   R"({"metadata":{"name":"x"}})", "{}"},
      }) {
    const KindInfo& info = catalog().of(row.kind);
    json::value last = *parse_json(row.last), now = *parse_json(row.now), live = *parse_json(row.live);
    json::value patch = strategic_diff3(info, last, now, live);
    EXPECT_EQ(to_text(patch), row.want_patch) << row.name;
    auto merged = strategic_merge(info, live, patch);
    ASSERT_TRUE(merged) << row.name << merged.error().text();
    EXPECT_EQ(to_text(strategic_diff3(info, now, now, *merged)), "{}") << row.name << to_text(*merged);
  }
}

TEST(Merge, a_diff_takes_one_state_to_the_other) {
  const KindInfo& info = catalog().of(kPod);
  json::value from =
      *parse_json(R"({"spec":{"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]},{"name":"b"}],
    "volumes":[{"name":"v","emptyDir":{}}],"nodeSelector":{"a":"b"}}})");
  json::value to = *parse_json(R"({"spec":{"containers":[{"name":"b"},{"name":"a","env":[{"name":"Y","value":"3"}]}],
    "volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})");
  auto merged = strategic_merge(info, from, strategic_diff(info, from, to));
  ASSERT_TRUE(merged) << merged.error().text();
  EXPECT_EQ(*merged, to) << to_text(*merged);
}

}  // namespace
}  // namespace coracle::schema
