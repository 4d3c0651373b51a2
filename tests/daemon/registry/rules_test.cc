// SPDX-License-Identifier: Apache-2.0
// The registry's pure parts by value: deletion plans, selectors, addresses, names, and the events for a watcher.
#include <gtest/gtest.h>

#include <set>

#include "daemon/registry/deletion.h"
#include "daemon/registry/fields.h"
#include "daemon/registry/identity.h"
#include "daemon/registry/metadata.h"
#include "daemon/registry/watch.h"
#include "store/kinds/service/server/address_range.h"
#include "store/object/object.h"
#include "tests/catalogs.h"

namespace coracle::registry {
namespace {

using kinds::address_text;
using kinds::AddressRange;
using kinds::parse_address;

ObjectPtr object(const Kind& kind, const std::string& text) { return MUST(Object::make(kind, MUST(parse_json(text)))); }

ObjectPtr pod(const std::string& metadata, const std::string& rest) {
  return object(kPod,
                R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"5")" +
                    metadata + "}," + rest + "}");
}

TEST(Deletion, follows_grace_finalizers_and_what_was_said_before) {
  const schema::KindTraits pods{.counts_generations = true, .graceful = true}, plain{}, orphaning{.orphans_dependents = true},
      ownerless{.no_owners = true}, emptied{.awaits_finalize = true};
  const WallTime now = WallTime(std::chrono::seconds(1'700'000'000));
  const std::string bound = R"("spec":{"nodeName":"x","terminationGracePeriodSeconds":7})", unbound = R"("spec":{})";
  const std::string marked = R"(,"deletionTimestamp":"2023-11-14T22:13:20Z","deletionGracePeriodSeconds":7)";
  const std::string ended = R"(,"deletionTimestamp":"2023-11-14T22:13:20Z","deletionGracePeriodSeconds":0)";
  auto space = [](const std::string& first, const std::string& second) {
    return object(kNamespace, R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","uid":"u","resourceVersion":"5")" +
                                  first + second + R"(},"spec":{"finalizers":["kubernetes"]}})");
  };
  struct Row {
    const char* name;
    ObjectPtr before;
    schema::KindTraits traits;
    DeleteOptions options;
    const char* want;  // the plan, and the grace period if one is set
  };
  auto grace = [](int64_t seconds) {
    DeleteOptions o;
    o.grace_period_seconds = seconds;
    return o;
  };
  auto propagated = [](const char* how) {
    DeleteOptions o;
    o.propagation = how;
    return o;
  };
  DeleteOptions forced = propagated("Background");  // kubectl delete --force
  forced.grace_period_seconds = 0;
  for (const Row& row : std::vector<Row>{
           {"plain goes", pod("", unbound), plain, {}, "remove"},
           {"a bound pod gets its grace", pod("", bound), pods, {}, "mark 7"},
           {"or what was asked", pod("", bound), pods, grace(3), "mark 3"},
           {"a negative grace is 1", pod("", bound), pods, grace(-5), "mark 1"},
           {"none at once", pod("", bound), pods, grace(0), "remove"},
           {"an unbound pod needs none", pod("", unbound), pods, {}, "remove"},
           {"an ended pod needs none", pod("", bound + R"(,"status":{"phase":"Succeeded"})"), pods, {}, "remove"},
           {"again changes nothing", pod(marked, bound), pods, {}, "pending"},
           {"again may shorten", pod(marked, bound), pods, grace(2), "mark 1"},
           {"again may not lengthen", pod(marked, bound), pods, grace(20), "pending"},
           {"the node finishes it", pod(marked, bound), pods, grace(0), "remove"},
           {"an ended pod that is going waits for its node",
            pod(marked, bound + R"(,"status":{"phase":"Succeeded"})"),
            pods,
            {},
            "pending"},
           {"finalizers cannot be changed while it has grace", pod(marked, bound), pods, propagated("Foreground"), "pending"},
           {"unless it is shortened", pod(marked + R"(,"finalizers":["foregroundDeletion"])", bound), pods, forced, "remove"},
           {"which alone changes none", pod(marked + R"(,"finalizers":["foregroundDeletion"])", bound), pods, grace(0), "mark 0"},
           {"some kinds leave what they own alone", pod("", unbound), orphaning, {}, "mark 0"},
           {"but not when told", pod("", unbound), orphaning, propagated("Background"), "remove"},
           {"finalizers hold", pod(R"(,"finalizers":["a/b"])", unbound), plain, {}, "mark 0"},
           {"finalizers hold a finished pod", pod(marked + R"(,"finalizers":["a/b"])", bound), pods, grace(0), "mark 0"},
           {"which changes nothing again", pod(ended + R"(,"finalizers":["a/b"])", bound), plain, {}, "nothing"},
           {"a namespace is emptied first", space("", ""), emptied, {}, "mark 0"},
           {"and waits for that", space(ended, ""), emptied, {}, "pending"},
           {"whatever is said of it then", space(ended, ""), emptied, propagated("Foreground"), "pending"},
           {"also by its finalizers", space(ended, R"(,"finalizers":["a/b"])"), emptied, {}, "pending"},
           {"foreground is a finalizer", pod("", unbound), plain, propagated("Foreground"), "mark 0"},
           {"orphan is a finalizer", pod("", unbound), plain, propagated("Orphan"), "mark 0"},
           {"unless nobody takes it off", pod("", unbound), ownerless, propagated("Foreground"), "remove"},
           {"nor the other", pod("", unbound), ownerless, propagated("Orphan"), "remove"},
           {"nor one that is there", pod(R"(,"finalizers":["orphan"])", unbound), ownerless, {}, "remove"},
           {"background takes them off", pod(R"(,"finalizers":["orphan"])", unbound), plain, propagated("Background"), "remove"},
       }) {
    DeletionPlan plan = MUST(plan_deletion(*row.before, row.options, row.traits, now));
    std::string got = plan.verb == DeletionPlan::Do::remove    ? "remove"
                      : plan.verb == DeletionPlan::Do::nothing ? "nothing"
                      : plan.verb == DeletionPlan::Do::pending
                          ? "pending"
                          : "mark " + std::to_string(get_int(plan.body, "metadata.deletionGracePeriodSeconds"));
    EXPECT_EQ(got, row.want) << row.name;
  }
  EXPECT_FALSE(plan_deletion(*pod("", bound), propagated("Sideways"), plain, now));
  DeletionPlan late = MUST(plan_deletion(*pod(marked, bound), grace(2), pods, now + std::chrono::seconds(60)));
  EXPECT_EQ(get_int(late.body, "metadata.deletionGracePeriodSeconds"), 1) << "it is overdue: hurry";
  EXPECT_EQ(get_string(late.body, "metadata.deletionTimestamp"), format_time(now + std::chrono::seconds(60)));
  DeletionPlan early = MUST(plan_deletion(*pod(marked, bound), grace(2), pods, now - std::chrono::seconds(6)));
  EXPECT_EQ(get_string(early.body, "metadata.deletionTimestamp"), "2023-11-14T22:13:15Z") << "counted from the first deletion";
  DeleteOptions other;
  other.uid = "other";
  EXPECT_EQ(plan_deletion(*pod("", bound), other, plain, now).error().code(), Code::conflict);
  other = {};
  other.revision = 4;
  EXPECT_EQ(plan_deletion(*pod("", bound), other, plain, now).error().code(), Code::conflict);
}

TEST(Fields, select_by_label_and_by_field) {
  ObjectPtr one =
      pod(R"(,"labels":{"a":"b"})", R"("spec":{"nodeName":"x"},"status":{"phase":"Running","podIPs":[{"ip":"10.0.0.1"}]})");
  struct Row {
    const char *labels, *fields;
    bool want;
  };
  for (const Row& row : {Row{"", "", true}, Row{"a=b", "", true}, Row{"a=c", "", false}, Row{"", "spec.nodeName=x", true},
                         Row{"", "spec.nodeName!=x", false}, Row{"a=b", "status.phase=Running,metadata.name=p", true},
                         Row{"", "metadata.namespace=other", false}, Row{"", "status.podIPs=10.0.0.1", true},
                         Row{"", "spec.hostNetwork=false", true}}) {
    Filter filter = MUST(make_filter(MUST(built_in_catalogs().find(kPod)), row.labels, row.fields));
    EXPECT_EQ(!filter || filter(*one), row.want) << row.labels << " " << row.fields;
  }
  EXPECT_EQ(make_filter(MUST(built_in_catalogs().find(kPod)), "", "spec.image=x").error().text(),
            "field label not supported: spec.image");
  EXPECT_EQ(make_filter(MUST(built_in_catalogs().find(kConfigMap)), "", "spec.nodeName=x").error().text(),
            "\"spec.nodeName\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  EXPECT_EQ(make_filter(MUST(built_in_catalogs().find(kPodMetrics)), "", "spec.nodeName=x").error().text(),
            "\"spec.nodeName\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  EXPECT_FALSE(make_filter(MUST(built_in_catalogs().find(kNode)), "", "metadata.namespace=x"))
      << "a kind with fields of its own has these only";
  EXPECT_TRUE(MUST(make_filter(MUST(built_in_catalogs().find(kPod)), "", "spec.host=x"))(*one)) << "an old name";
  EXPECT_FALSE(make_filter(MUST(built_in_catalogs().find(kPod)), "==", ""));
  EXPECT_EQ(name_demanded("metadata.name=x,status.phase=y"), "x");
}

TEST(Watch, tells_what_a_selector_makes_of_an_event) {
  Filter filter = MUST(make_filter(MUST(built_in_catalogs().find(kPod)), "a=b", ""));
  ObjectPtr in = pod(R"(,"labels":{"a":"b"})", R"("spec":{})"), out = pod(R"(,"labels":{"a":"c"})", R"("spec":{})");
  using engine::EventType;
  struct Row {
    EventType type;
    ObjectPtr before, after;
    int want;  // -1: no event
  };
  for (const Row& row :
       {Row{EventType::added, nullptr, in, int(coracle::EventType::added)}, Row{EventType::added, nullptr, out, -1},
        Row{EventType::modified, in, in, int(coracle::EventType::modified)},
        Row{EventType::modified, out, in, int(coracle::EventType::added)},
        Row{EventType::modified, in, out, int(coracle::EventType::deleted)}, Row{EventType::modified, out, out, -1},
        Row{EventType::deleted, in, in, int(coracle::EventType::deleted)}, Row{EventType::deleted, out, out, -1}}) {
    auto seen = seen_through(filter, {row.type, 9, row.after, row.before});
    EXPECT_EQ(seen ? int(seen->type) : -1, row.want);
  }
  auto left = seen_through(filter, {EventType::modified, 9, out, in});
  EXPECT_EQ(left->object->revision(), 9u);
  EXPECT_EQ(left->object->label("a"), "b");
}

TEST(AddressRange, reads_and_writes) {
  AddressRange range = MUST(AddressRange::parse("10.96.7.9/16"));
  EXPECT_EQ(address_text(range.base), "10.96.0.0");
  EXPECT_EQ(address_text(range.first()), "10.96.0.1");
  EXPECT_EQ(address_text(range.last()), "10.96.255.254");
  EXPECT_TRUE(range.contains(*parse_address("10.96.255.255")));
  EXPECT_FALSE(range.contains(*parse_address("10.44.0.0")));
  for (const char* bad : {"", "10.96.0.0", "10.96.0.0/33", "10.96.0/16", "10.96.0.256/16", "fd00::/64", "10.96.0.0/x"})
    EXPECT_FALSE(AddressRange::parse(bad)) << bad;
  for (const char* bad : {"", "1.2.3", "01.2.3.4", "1.2.3.4 ", "a.b.c.d"}) EXPECT_FALSE(parse_address(bad)) << bad;
}

TEST(Identity, makes_names_that_differ) {
  std::set<std::string> uids, names;
  for (int i = 0; i < 1000; i++) {
    std::string uid = make_uid();
    EXPECT_EQ(uid.size(), 36u);
    EXPECT_EQ(uid[14], '4');
    EXPECT_NE(std::string("89ab").find(uid[19]), std::string::npos);
    uids.insert(uid);
    names.insert(generate_name("web-"));
  }
  EXPECT_EQ(uids.size(), 1000u);
  EXPECT_GT(names.size(), 990u);
  EXPECT_EQ(generate_name(std::string(100, 'a')).size(), kGeneratedPrefixMax + 5);
}

TEST(Metadata, generations_count_specs_only) {
  auto parse = [](const char* text) { return MUST(parse_json(text)); };
  json::value old = parse(R"({"apiVersion":"v1","metadata":{"generation":3},"spec":{"a":1},"status":{"b":1}})");
  EXPECT_FALSE(spec_changed(parse(R"({"apiVersion":"v1","metadata":{"x":1},"spec":{"a":1},"status":{"b":2}})"), old));
  EXPECT_TRUE(spec_changed(parse(R"({"metadata":{},"spec":{"a":2}})"), old));
  EXPECT_TRUE(spec_changed(parse(R"({"metadata":{}})"), old));
  EXPECT_TRUE(spec_changed(parse(R"({"metadata":{},"spec":{"a":1},"data":{}})"), old));
}

}  // namespace
}  // namespace coracle::registry
