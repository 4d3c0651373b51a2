// SPDX-License-Identifier: Apache-2.0
// Strategic merge patches: applying and creating them.
#include "store/schema/merge.h"

#include <gtest/gtest.h>

#include "tests/counted_memory.h"
#include "tests/store/schema/prepared.h"

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
          MergeRow{"labels are replaced", kPod, R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
                   R"({"metadata":{"labels":{"$patch":"replace","c":"3"}}})", R"({"metadata":{"labels":{"c":"3"}}})"},
          MergeRow{"labels are emptied", kPod, R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
                   R"({"metadata":{"labels":{"$patch":"delete","c":"3"}}})", R"({"metadata":{"labels":{}}})"},
          MergeRow{"other labels go", kPod, R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
                   R"({"metadata":{"labels":{"$retainKeys":["a","c"],"c":"3"}}})",
                   R"({"metadata":{"labels":{"a":"1","c":"3"}}})"},
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
          MergeRow{"what is not there is not emptied", kPod, R"({"spec":{"nodeName":"n","hostname":"h"}})",
                   R"({"spec":{"securityContext":{"$patch":"delete"},"hostname":{"$patch":"delete"}}})",
                   R"({"spec":{"nodeName":"n"}})"},
          MergeRow{
              "nor in what is new", kPod, R"({"spec":{}})",
              R"({"spec":{"affinity":{"nodeAffinity":{"$patch":"delete"}},"tolerations":[{"$patch":"delete"},{"key":"k"}]}})",
              R"({"spec":{"affinity":{},"tolerations":[{"key":"k"}]}})"},
          MergeRow{"nor is it replaced", kPod, R"({"spec":{"nodeName":"n","hostname":"h"}})",
                   R"({"spec":{"securityContext":{"$patch":"replace","runAsUser":3},"hostname":{"$patch":"replace","a":"b"}}})",
                   R"({"spec":{"nodeName":"n"}})"},
          MergeRow{"whatever is to be done with it", kPod, R"({"metadata":{"name":"p"}})",
                   R"({"metadata":{"labels":{"$patch":"invent","a":"b"}}})", R"({"metadata":{"name":"p"}})"},
          MergeRow{"nor is a part of it", kPod, R"({"spec":{"nodeName":"n"}})",
                   R"({"spec":{"affinity":{"nodeAffinity":{"$patch":"replace","a":1},"podAffinity":{"b":2}},
                               "tolerations":[{"$patch":"replace","key":"j"},{"key":"k"}]}})",
                   R"({"spec":{"nodeName":"n","affinity":{"podAffinity":{"b":2}},"tolerations":[{"key":"k"}]}})"},
          MergeRow{"nor is an item of a list that is not there", kPod, R"({"spec":{"nodeName":"n"}})",
                   R"({"spec":{"containers":[{"name":"a","$patch":"replace"},{"name":"b"}]}})",
                   R"({"spec":{"nodeName":"n","containers":[{"name":"b"}]}})"},
          MergeRow{"what replaces changes nothing itself", kPod, R"({"spec":{"securityContext":{"runAsUser":1}}})",
                   R"({"spec":{"securityContext":{"$patch":"replace","seLinuxOptions":{"$patch":"replace","user":"u"}}}})",
                   R"({"spec":{"securityContext":{"seLinuxOptions":{"user":"u"}}}})"},
          MergeRow{"nor does a new item", kPod, R"({"spec":{"containers":[{"name":"a"}]}})",
                   R"({"spec":{"containers":[{"name":"b","securityContext":{"$patch":"replace","runAsUser":3}}]}})",
                   R"({"spec":{"containers":[{"name":"b","securityContext":{"runAsUser":3}},{"name":"a"}]}})"},
          MergeRow{"nor does a list without a strategy", kPod, R"({"spec":{"tolerations":[{"key":"j"}]}})",
                   R"({"spec":{"tolerations":[{"key":"k","$patch":"delete"}]}})", R"({"spec":{"tolerations":[{"key":"k"}]}})"},
          MergeRow{"other names with a dollar are fields", kPod, R"({"metadata":{"$y":2,"$z":3}})",
                   R"({"metadata":{"$x":1,"$y":null}})", R"({"metadata":{"$z":3,"$x":1}})"},
          MergeRow{"a budget's selector is replaced", kPodDisruptionBudget,
                   R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"1","b":"2"}}}})",
                   R"({"spec":{"selector":{"matchLabels":{"b":"3"}}}})",
                   R"({"spec":{"minAvailable":1,"selector":{"matchLabels":{"b":"3"}}}})"},
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
          MergeRow{"items in their order are changed where they are", kPod,
                   R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"c","image":"3"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"},{"name":"c","image":"3"}]}})"},
          MergeRow{"items in another order get that", kPod, R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
                   R"({"spec":{"containers":[{"name":"c","image":"3"},{"name":"a","image":"1"}]}})",
                   R"({"spec":{"containers":[{"name":"b"},{"name":"c","image":"3"},{"name":"a","image":"1"}]}})"},
          MergeRow{"an order that is the present one and names what is not there", kPod,
                   R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
                   R"({"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"x"},{"name":"c"}],
                   "containers":[{"name":"a","image":"1"},{"name":"c","image":"3"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"},{"name":"c","image":"3"}]}})"},
          MergeRow{"an order moves items that are not changed", kPod,
                   R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
                   R"({"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"b"},{"name":"a"}],
                   "containers":[{"name":"b","image":"2"}]}})",
                   R"({"spec":{"containers":[{"name":"c"},{"name":"b","image":"2"},{"name":"a"}]}})"},
          MergeRow{"of two items with one name the first is changed", kPod,
                   R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"a","image":"2"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"3"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"3"},{"name":"b"},{"name":"a","image":"2"}]}})"},
          MergeRow{"conditions as kubelet patches them", kPod,
                   R"({"status":{"conditions":[{"type":"Ready","status":"False","reason":"r"},{"type":"A","status":"True"}]}})",
                   R"({"status":{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"A"}],
                   "conditions":[{"reason":null,"status":"True","type":"Ready"}]}})",
                   R"({"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"A","status":"True"}]}})"},
          MergeRow{"an empty order says nothing", kPod, R"({"spec":{"containers":[{"name":"a"}]}})",
                   R"({"spec":{"$setElementOrder/containers":[],"containers":[{"name":"a","image":"1"}]}})",
                   R"({"spec":{"containers":[{"name":"a","image":"1"}]}})"},
          MergeRow{
              "what is deleted has no place in the order", kPod, R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
              R"({"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a","$patch":"delete"},{"name":"b","image":"1"}]}})",
              R"({"spec":{"containers":[{"name":"b","image":"1"}]}})"},
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

TEST(Merge, the_usual_patch_of_conditions_takes_no_memory) {
  CountedMemory memory;
  json::value pod = MUST(parse_json(R"({"metadata":{"name":"p"},"status":{"phase":"Pending","conditions":[
    {"type":"Initialized","status":"True"},{"type":"Ready","status":"False"},{"type":"PodScheduled","status":"True"}]}})",
                                    nullptr, &memory));
  const json::value patch = *parse_json(R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  const size_t taken = memory.taken();
  auto merged = strategic_merge(catalog().of(kPod), std::move(pod), patch);
  ASSERT_TRUE(merged) << merged.error().text();
  EXPECT_EQ(to_text(*find(*merged, "status")), R"({"phase":"Running","conditions":[{"type":"Initialized","status":"True"},)"
                                               R"({"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}]})");
  EXPECT_EQ(memory.taken(), taken);
}

TEST(Merge, refuses_malformed_patches) {
  for (const char* patch :
       {"[]", "1", R"({"metadata":{"labels":{"$retainKeys":"a"}}})",
        R"({"metadata":{"labels":{"$retainKeys":["a"],"a":"1","c":"3"}}})", R"({"$patch":"invent"})", R"({"$patch":1})",
        R"({"spec":{"containers":[{"image":"x"}]}})", R"({"spec":{"containers":["x"]}})", R"({"spec":{"$retainKeys":"x"}})",
        R"({"spec":{"$setElementOrder/containers":1}})", R"({"metadata":{"$deleteFromPrimitiveList/finalizers":1}})"}) {
    auto merged = strategic_merge(catalog().of(kPod), json::object(), *parse_json(patch));
    ASSERT_FALSE(merged) << patch;
    EXPECT_EQ(merged.error().code(), Code::bad_request);
  }
}

// Source: apimachinery strategicpatch, mergePatchIntoOriginal and mergeSliceWithSpecialElements.
TEST(Merge, refuses_what_contradicts_itself) {
  for (const char* patch : {
           R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"a"},{"name":"b"}]})",
           R"({"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a"}]})",
           R"({"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a"},{"name":"a"}]})",
           R"({"$setElementOrder/containers":[{"name":"a"}],"containers":null})",
           R"({"$setElementOrder/containers":[{"name":"a"}],"containers":{"name":"a"}})",
           R"({"$setElementOrder/containers":["a"]})",
           R"({"$setElementOrder/nothing":[]})",
           R"({"$setElementOrder/nodeName":[]})",
           R"({"$setElementOrder":[]})",
           R"({"$deleteFromPrimitiveListcontainers":[]})",
           R"({"$patch":"merge"})",
           R"({"containers":[{"name":"a","$patch":"merge"}]})",
           R"({"containers":[{"$patch":"replace"},{"name":"a","$patch":"invent"}]})",
           R"({"containers":[{"$patch":"replace"},{"image":"a"}]})",
       }) {
    json::value original = *parse_json(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})");
    auto merged = strategic_merge(catalog().of(kPod), original, json::object{{"spec", *parse_json(patch)}});
    ASSERT_FALSE(merged) << patch;
    EXPECT_EQ(merged.error().code(), Code::bad_request) << patch;
  }
  auto values = strategic_merge(catalog().of(kPod), *parse_json(R"({"metadata":{"finalizers":["a"]}})"),
                                *parse_json(R"({"metadata":{"$setElementOrder/finalizers":["a"],"finalizers":["secret"]}})"));
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().text(),
            "strategic merge patch: $setElementOrder/finalizers does not have the patch's items in their order");
  auto nameless = strategic_merge(
      catalog().of(kPod), *parse_json(R"({"spec":{"containers":[{"name":"a"}]}})"),
      *parse_json(R"({"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a"},{"image":"i"}]}})"));
  ASSERT_FALSE(nameless);
  EXPECT_EQ(nameless.error().text(), "strategic merge patch: an item of containers does not contain its merge key name")
      << "kubectl apply sends it so";
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
          ApplyRow{"a budget's selector is sent as a whole", kPodDisruptionBudget,
                   R"({"spec":{"selector":{"matchLabels":{"a":"1"}}}})", R"({"spec":{"selector":{"matchLabels":{"a":"2"}}}})",
                   R"({"spec":{"selector":{"matchLabels":{"a":"1","b":"2"}}}})",
                   R"({"spec":{"selector":{"matchLabels":{"a":"2"}}}})"},
          ApplyRow{"amounts, not texts, are compared", kPod, "{}",
                   R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":1,"memory":"1024Ki"}}}]}})",
                   R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Mi"}}}]}})", "{}"},
          ApplyRow{"what the server does not keep is no difference", kPod, "{}",
                   R"({"spec":{"hostNetwork":false,"tolerations":[]}})", R"({"spec":{}})", "{}"},
          ApplyRow{"null is nothing", kPod, "{}", R"({"metadata":{"creationTimestamp":null,"name":"x"}})",
                   R"({"metadata":{"name":"x"}})", "{}"},
          ApplyRow{"null takes away what is there", kPod, "{}", R"({"metadata":{"labels":null,"annotations":{"a":null}}})",
                   R"({"metadata":{"labels":{"a":"1"},"annotations":{"a":"1","b":"2"}}})",
                   R"({"metadata":{"labels":null,"annotations":{"a":null}}})"},
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

TEST(Merge, items_that_only_a_further_key_tells_apart_stay_apart) {
  struct Row {
    const char *name, *original, *patch, *want;
  };
  for (const Row& row : {
           Row{"the protocol says which", R"([{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}])",
               R"({"ports":[{"port":53,"protocol":"UDP","name":"u"}]})",
               R"([{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP","name":"u"}])"},
           Row{"the default counts", R"([{"port":53,"protocol":"UDP"},{"port":53}])",
               R"({"ports":[{"port":53,"protocol":"TCP","name":"t"}]})",
               R"([{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP","name":"t"}])"},
           Row{"without it, one after the other", R"([{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}])",
               R"({"ports":[{"port":53,"name":"a"},{"port":53,"name":"b"}]})",
               R"([{"port":53,"protocol":"TCP","name":"a"},{"port":53,"protocol":"UDP","name":"b"}])"},
           Row{"one changes its protocol", R"([{"port":53,"protocol":"TCP"}])", R"({"ports":[{"port":53,"protocol":"UDP"}]})",
               R"([{"port":53,"protocol":"UDP"}])"},
           Row{"kubectl adds a second one", R"([{"port":53,"protocol":"TCP","nodePort":1}])",
               R"({"$setElementOrder/ports":[{"port":53},{"port":53}],"ports":[{"port":53,"protocol":"UDP"}]})",
               R"([{"port":53,"protocol":"TCP","nodePort":1},{"port":53,"protocol":"UDP"}])"},
           Row{"both are named", R"([{"port":53,"protocol":"TCP"}])",
               R"({"ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]})",
               R"([{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}])"},
           Row{"one is deleted by all its keys", R"([{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}])",
               R"({"ports":[{"$patch":"delete","port":53,"protocol":"TCP"}]})", R"([{"port":53,"protocol":"UDP"}])"},
           Row{"all are deleted by the merge key", R"([{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"},{"port":1}])",
               R"({"ports":[{"$patch":"delete","port":53}]})", R"([{"port":1}])"},
           Row{"kubectl deletes one of two", R"([{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}])",
               R"({"$setElementOrder/ports":[{"port":53}],"ports":[{"$patch":"delete","port":53}]})",
               R"([{"port":53,"protocol":"TCP"}])"},
           Row{"one is replaced", R"([{"port":53,"protocol":"TCP"}])",
               R"({"ports":[{"$patch":"delete","port":53},{"port":53,"protocol":"UDP"}]})", R"([{"port":53,"protocol":"UDP"}])"},
       }) {
    json::value original = json::object{{"spec", json::object{{"ports", *parse_json(row.original)}}}};
    json::value patch = json::object{{"spec", *parse_json(row.patch)}};
    auto merged = strategic_merge(catalog().of(kService), original, patch);
    ASSERT_TRUE(merged) << row.name << merged.error().text();
    EXPECT_EQ(to_text(*find(*merged, "spec.ports")), row.want) << row.name;
  }
}

TEST(Merge, apply_tells_items_with_one_merge_key_apart) {
  const KindInfo& info = catalog().of(kService);
  auto ports = [](const char* list) { return json::value(json::object{{"spec", json::object{{"ports", *parse_json(list)}}}}); };
  const char* both = R"([{"name":"t","port":53,"protocol":"TCP"},{"name":"u","port":53,"protocol":"UDP"}])";
  json::value live = ports(R"([{"name":"t","port":53,"protocol":"TCP","targetPort":53,"nodePort":30001},
      {"name":"u","port":53,"protocol":"UDP","targetPort":53,"nodePort":30002}])");
  EXPECT_EQ(to_text(strategic_diff3(info, ports(both), ports(both), live)), "{}") << "the same again changes nothing";
  struct Row {
    const char *name, *last, *now;
  };
  for (const Row& row : {
           Row{"first one, then both", R"([{"name":"t","port":53}])", both},
           Row{"both, then one", both, R"([{"name":"u","port":53,"protocol":"UDP"}])"},
           Row{"the second changes", both,
               R"([{"name":"t","port":53,"protocol":"TCP"},{"name":"u","port":53,"protocol":"UDP","targetPort":54}])"},
           Row{"they change places", both, R"([{"name":"u","port":53,"protocol":"UDP"},{"name":"t","port":53}])"},
           Row{"one becomes another protocol", both, R"([{"name":"t","port":53},{"name":"s","port":53,"protocol":"SCTP"}])"},
           Row{"the only one becomes another protocol", R"([{"name":"t","port":53}])",
               R"([{"name":"t","port":53,"protocol":"UDP"}])"},
       }) {
    json::value last = ports(row.last), now = ports(row.now);
    auto merged = strategic_merge(info, last, strategic_diff3(info, last, now, last));
    ASSERT_TRUE(merged) << row.name << merged.error().text();
    EXPECT_EQ(to_text(strategic_diff3(info, now, now, *merged)), "{}") << row.name << ": " << to_text(*merged);
    EXPECT_EQ(get_array(*merged, "spec.ports").size(), get_array(now, "spec.ports").size()) << row.name << to_text(*merged);
  }
}

TEST(Merge, every_merged_list_of_the_schema_is_applied_twice_without_a_change) {
  size_t lists = 0;
  for (const Type& type : all_types()) {
    for (const Field& field : type.fields()) {
      if (!field.merges || field.shape != Shape::list) continue;
      ++lists;
      std::string name = std::string(type.name()) + "." + std::string(field.name());
      ASSERT_TRUE(field.merge_key().empty() || field.type().field(field.merge_key())) << name;
      for (std::string_view key : field.list_keys()) ASSERT_NE(field.type().field(key), nullptr) << name;
      json::array items = two_items_of(field, field.merge_key());
      json::value both = json::object{{field.name(), items}}, first = json::object{{field.name(), json::array{items[0]}}};
      auto same = strategic_merge(type, both, both);
      ASSERT_TRUE(same) << name << same.error().text();
      EXPECT_EQ(*same, both) << name;
      auto added = strategic_merge(type, first, both);
      ASSERT_TRUE(added) << name << added.error().text();
      EXPECT_EQ(*added, both) << name;
    }
  }
  EXPECT_GT(lists, 40u);
}

// With comparisons of each item with each other one, these took minutes or hours.
TEST(Merge, the_work_grows_with_the_size_not_with_its_square) {
  constexpr int kMany = 100'000;
  json::array names, reversed, containers, unnamed, deletions, ports;
  for (int i = 0; i < kMany; ++i) {
    names.push_back(json::value("example.com/f" + std::to_string(i)));
    reversed.push_back(json::value("example.com/f" + std::to_string(kMany - i)));
    containers.push_back(json::object{{"name", "c" + std::to_string(i)}, {"image", "i"}});
    deletions.push_back(json::object{{"name", "c" + std::to_string(i)}, {"$patch", "delete"}});
    ports.push_back(json::object{{"port", 1}, {"protocol", "P" + std::to_string(i)}});
  }
  json::object labels, nulls, retained{{"$retainKeys", json::array{"name"}}};
  for (int i = 0; i < kMany; ++i) labels["k" + std::to_string(i)] = "v", nulls["k" + std::to_string(i)] = nullptr;
  auto in_metadata = [](const char* name, json::value value) {
    return json::value(json::object{{"metadata", json::object{{name, std::move(value)}}}});
  };
  auto in_spec = [](const char* name, json::value value) {
    return json::value(json::object{{"spec", json::object{{name, std::move(value)}}}});
  };
  struct Row {
    const char* name;
    const Kind& kind;
    json::value original, patch;
    const char* list;
    size_t want;
  };
  for (const Row& row : {
           Row{"finalizers", kPod, in_metadata("finalizers", names), in_metadata("finalizers", reversed), "metadata.finalizers",
               kMany + 1},
           Row{"new finalizers", kPod, json::object(), in_metadata("finalizers", names), "metadata.finalizers", kMany},
           Row{"finalizers that go", kPod, in_metadata("finalizers", names),
               in_metadata("$deleteFromPrimitiveList/finalizers", reversed), "metadata.finalizers", 1},
           Row{"an order alone", kPod, in_metadata("finalizers", names), in_metadata("$setElementOrder/finalizers", reversed),
               "metadata.finalizers", kMany},
           Row{"containers", kPod, in_spec("containers", containers), in_spec("containers", containers), "spec.containers",
               kMany},
           Row{"containers that go", kPod, in_spec("containers", containers), in_spec("containers", deletions), "spec.containers",
               0},
           Row{"ports of one number", kService, in_spec("ports", ports), in_spec("ports", ports), "spec.ports", kMany},
       }) {
    auto merged = strategic_merge(catalog().of(row.kind), row.original, row.patch);
    ASSERT_TRUE(merged) << row.name << merged.error().text();
    EXPECT_EQ(get_array(*merged, row.list).size(), row.want) << row.name;
    json::value diff = strategic_diff3(catalog().of(row.kind), row.original, row.original, row.original);
    EXPECT_EQ(to_text(diff), "{}") << row.name;
  }
  auto bare = strategic_merge(catalog().of(kPod), in_metadata("labels", labels), in_metadata("labels", nulls));
  ASSERT_TRUE(bare);
  EXPECT_TRUE(get_object(*bare, "metadata.labels").empty());
  auto kept = strategic_merge(catalog().of(kPod), json::value(labels), json::value(retained));
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->get_object().empty());
}

}  // namespace
}  // namespace coracle::schema
