// SPDX-License-Identifier: Apache-2.0
// StatefulSet: pods with stable names, created in order; updates from the last to the first; claims; lost events and failing
// calls.
#include "daemon/controller/workload/stateful_set.h"

#include "daemon/controller/workload/history.h"
#include "tests/daemon/controller/bench.h"
#include "tests/daemon/controller/sets.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kRolling = R"(,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}})";
constexpr std::string_view kParallel = R"(,"podManagementPolicy":"Parallel")";
constexpr std::string_view kClaimed = R"(,"volumeClaimTemplates":[{"apiVersion":"v1","kind":"PersistentVolumeClaim",
  "metadata":{"name":"data","labels":{"tier":"x"}},"spec":{"accessModes":["ReadWriteOnce"]},"status":{"phase":"Pending"}}])";

std::string stateful_set_text(int replicas, std::string_view more = kRolling, const std::string& image = "a",
                              const std::string& status = "{}") {
  return R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"web","namespace":"default","uid":"set-uid","generation":1},"spec":{"replicas":)" +
         std::to_string(replicas) + std::string(more) +
         R"(,"serviceName":"svc","selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
         "spec":{"containers":[{"name":"c","image":")" +
         image + R"("}]}}},"status":)" + status + "}";
}
ObjectPtr stateful_set_of(const std::string& text) { return MUST(Object::make(kStatefulSet, MUST(parse_json(text)))); }
ObjectPtr revision(const std::string& name, const std::string& image) {
  json::value body = new_revision(*stateful_set_of(stateful_set_text(1, kRolling, image)), "h", 1, 0);
  make(body, "metadata.name") = name;
  return MUST(Object::make(kControllerRevision, body));
}

// One letter per pod, from the first ordinal on: R ready, r ready for too short, n not ready, p pending, F failed, S succeeded, t
// ready and terminating, T deleted by us (the cache is late), . none. `revisions` has o (old) or u (updated) for each.
struct StatefulSetCase {
  const char* name;
  int replicas;
  std::string more, pods, revisions;
  std::string want;  // "+1 -2": created and deleted, in order
};

ObservedStatefulSet observed_stateful_set(const StatefulSetCase& row) {
  ObservedStatefulSet observed{.set = stateful_set_of(stateful_set_text(row.replicas, row.more)),
                               .current = revision("old", "a"),
                               .update = revision("new", "b")};
  for (size_t i = 0; i < row.pods.size(); ++i) {
    char state = row.pods[i];
    if (state == '.') continue;
    std::string name = "web-" + std::to_string(i);
    json::object metadata{
        {"name", name},
        {"namespace", "default"},
        {"uid", name},
        {"labels", {{"statefulset.kubernetes.io/pod-name", name}, {kRevisionLabel, row.revisions[i] == 'o' ? "old" : "new"}}}};
    if (state == 'T') observed.removed.insert(name);
    observed.pods.push_back(lettered_pod(state, std::move(metadata), json::object()));
  }
  observed.claim = [](const std::string&) { return ObjectPtr(); };
  observed.backing_off = [](const std::string&) { return std::nullopt; };
  return observed;
}

// Otherwise that is repaired.
void mount_claims(ObservedStatefulSet& observed) {
  for (ObjectPtr& pod : observed.pods) {
    json::value body = pod->json();
    make(body, "spec.volumes") =
        json::array{json::object{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data-" + pod->name()}}}}};
    pod = MUST(Object::make(kPod, body));
  }
}

std::string steps_of(const StatefulSetPlan& plan) {
  std::string out;
  for (const StatefulSetStep& step : plan.steps) {
    if (step.what != StatefulSetStep::What::create && step.what != StatefulSetStep::What::remove) continue;
    out += (out.empty() ? "" : " ") + std::string(step.what == StatefulSetStep::What::create ? "+" : "-") + step.pod.substr(4);
    if (step.what == StatefulSetStep::What::create)
      out += get_object(step.body, "metadata.labels").at(kRevisionLabel) == "old" ? "o" : "u";
  }
  return out;
}

std::string rolling(const std::string& limits) { return R"(,"updateStrategy":)" + rolling_update(limits); }
const std::string kRoll(kRolling), kAtOnce = kRoll + std::string(kParallel),
                                   kOnDeleteUpdates = R"(,"updateStrategy":)" + std::string(kOnDelete),
                                   kSlow = kRoll + R"(,"minReadySeconds":30)";

void expect_stateful_set_steps(std::initializer_list<StatefulSetCase> rows) {
  for (const StatefulSetCase& row : rows)
    EXPECT_EQ(steps_of(plan_stateful_set(observed_stateful_set(row), *parse_time("2024-01-01T00:01:05Z"))), row.want) << row.name;
}

TEST(StatefulSetPlan, pods_come_one_after_the_other) {
  expect_stateful_set_steps({
      {"the first", 3, kRoll, "", "", "+0u"},
      {"waits for readiness", 3, kRoll, "n", "u", ""},
      {"waits while pending", 3, kRoll, "p", "u", ""},
      {"the next", 3, kRoll, "R", "u", "+1u"},
      {"waits for availability", 3, kSlow, "r", "u", ""},
      {"available", 3, kSlow, "R", "u", "+1u"},
      {"fills a gap first", 3, kRoll, "R.R", "uuu", "+1u"},
      {"waits for one that goes", 3, kRoll, "Rt", "uu", ""},
      {"waits for one that we removed", 3, kRoll, "RT", "uu", ""},
      {"enough", 3, kRoll, "RRR", "uuu", ""},
  });
}

TEST(StatefulSetPlan, or_all_at_once) {
  expect_stateful_set_steps({
      {"all", 3, kAtOnce, "", "", "+0u +1u +2u"},
      {"nobody waits", 4, kAtOnce, "npt", "uuu", "+3u"},
      {"down", 1, kAtOnce, "nnRn", "uuuu", "-3 -2 -1"},
      {"down, of those that stay", 1, kAtOnce, "nntT", "uuuu", "-1"},
  });
}

TEST(StatefulSetPlan, what_ended_is_removed_and_made_again) {
  expect_stateful_set_steps({
      {"failed", 3, kRoll, "RFR", "uuu", "-1"},
      {"succeeded as well", 3, kRoll, "SRR", "uuu", "-0"},
      {"only what is before it is looked at", 3, kRoll, "nF", "uu", ""},
      {"in parallel", 4, kAtOnce, "FnS", "uuu", "-0 -2 +3u"},
      {"once", 1, kRoll, "F", "u", "-0"},
  });
}

TEST(StatefulSetPlan, but_not_as_fast_as_it_fails) {
  ObservedStatefulSet observed = observed_stateful_set({"", 2, kRoll, "FR", "uu", ""});
  observed.backing_off = [](const std::string& pod) {
    return pod == "web-0" ? std::optional<std::chrono::nanoseconds>(std::chrono::seconds(3)) : std::nullopt;
  };
  StatefulSetPlan plan = plan_stateful_set(observed, {});
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_EQ(plan.again, std::chrono::seconds(3));
}

TEST(StatefulSetPlan, pods_go_the_last_first) {
  expect_stateful_set_steps({
      {"the last", 1, kRoll, "RRR", "uuu", "-2"},
      {"waits for it to go", 1, kRoll, "RRt", "uuu", ""},
      {"waits for it to go, unseen", 1, kRoll, "RRT", "uuu", ""},
      {"not while one that stays is not well", 1, kRoll, "nRR", "uuu", ""},
      {"an unhealthy one waits for those before it", 1, kRoll, "Rnn", "uuu", ""},
      {"the first unhealthy one goes", 1, kRoll, "RRn", "uuu", "-2"},
      {"a healthy one goes though one before it is not", 1, kRoll, "RnR", "uuu", "-2"},
      {"to none", 0, kRoll, "RR", "uu", "-1"},
      {"scaling comes before updating", 2, kRoll, "RRR", "ooo", "-2"},
  });
}

TEST(StatefulSetPlan, numbers_start_where_the_set_says) {
  std::string from_two = kRoll + R"(,"ordinals":{"start":2})";
  expect_stateful_set_steps({
      {"the first", 2, from_two, "", "", "+2u"},
      {"below the first: removed, once the others are there", 2, from_two, "RRRR", "uuuu", "-1"},
      {"the partition counts from the first", 3, rolling(R"("partition":1)") + R"(,"ordinals":{"start":2})", "..RRR", "..ooo",
       "-4"},
      {"and holds what is below it", 3, rolling(R"("partition":1)") + R"(,"ordinals":{"start":2})", "...RR", "...uu", "+2o"},
  });
}

TEST(StatefulSetPlan, updates_go_from_the_last_to_the_first) {
  expect_stateful_set_steps({
      {"the last", 3, kRoll, "RRR", "ooo", "-2"},
      {"waits for it", 3, kRoll, "RRn", "oou", ""},
      {"waits for it to be available", 3, kSlow, "RRr", "oou", ""},
      {"the next", 3, kRoll, "RRR", "oou", "-1"},
      {"done", 3, kRoll, "RRR", "uuu", ""},
      {"a gap is filled with the new", 3, kRoll, "RR.", "oo.", "+2u"},
      {"the partition holds", 3, rolling(R"("partition":2)"), "RRR", "ooo", "-2"},
      {"and no more", 3, rolling(R"("partition":2)"), "RRR", "oou", ""},
      {"below it the old comes again", 3, rolling(R"("partition":2)"), ".RR", ".ou", "+0o"},
      {"above it the new", 3, rolling(R"("partition":2)"), "RR.", "oo.", "+2u"},
      {"a partition beyond all", 3, rolling(R"("partition":5)"), "RRR", "ooo", ""},
      {"on delete: nothing", 3, kOnDeleteUpdates, "RRR", "ooo", ""},
      {"on delete: the new comes when the old is gone", 3, kOnDeleteUpdates, "R.R", "ooo", "+1u"},
  });
}

TEST(StatefulSetPlan, a_broken_revision_halts_the_update) {
  expect_stateful_set_steps({
      {"the old template is back, but the broken pod is waited for, as documented", 3, kRoll, "RRn", "uuo", ""},
      {"until somebody removes it", 3, kRoll, "RR.", "uu.", "+2u"},
      {"in parallel it is replaced", 3, kAtOnce, "RRn", "uuo", "-2"},
      {"in parallel a new template that does not work stops at the first", 3, kAtOnce, "nnn", "oou", ""},
  });
}

// Without maxUnavailable, updates go one by one, as in Kubernetes 1.36 with MaxUnavailableStatefulSet off.
TEST(StatefulSetPlan, updates_go_one_by_one_in_parallel_too) {
  expect_stateful_set_steps({
      {"the last, though others do not work", 4, kAtOnce, "nRnR", "oooo", "-3"},
      {"waits until it is gone", 4, kAtOnce, "nRnt", "oooo", ""},
      {"waits until it is well", 4, kAtOnce, "nRnn", "ooou", ""},
      {"the next, broken", 4, kAtOnce, "nRnR", "ooou", "-2"},
      {"what is broken below the partition is nobody's", 4, rolling(R"("partition":2)") + std::string(kParallel), "nRRR", "oooo",
       "-3"},
  });
}

TEST(StatefulSetPlan, more_than_one_may_be_missing) {
  std::string two = rolling(R"("partition":0,"maxUnavailable":2)"), half = rolling(R"("maxUnavailable":"50%")"),
              little = rolling(R"("maxUnavailable":"10%")");
  std::string parallel(kParallel);
  expect_stateful_set_steps({
      {"two", 4, two, "RRRR", "oooo", "-3 -2"},
      {"one more is missing", 4, two + parallel, "RRRn", "ooou", "-2"},
      {"none to spare", 4, two + parallel, "RRnn", "oouu", ""},
      {"half, rounded down", 5, half, "RRRRR", "ooooo", "-4 -3"},
      {"at least one", 5, little, "RRRRR", "ooooo", "-4"},
      {"what does not work costs nothing", 4, rolling(R"("maxUnavailable":1)") + parallel, "nRnR", "oooo", "-2 -0"},
      {"nor what goes anyway", 4, two + parallel, "RRRt", "oooo", "-2"},
      {"within the partition", 4, rolling(R"("partition":3,"maxUnavailable":3)") + parallel, "nRRR", "oooo", "-3"},
  });
}

json::value status_of(const StatefulSetCase& row) {
  return plan_stateful_set(observed_stateful_set(row), *parse_time("2024-01-01T00:01:05Z")).status;
}

TEST(StatefulSetPlan, the_status_counts_what_is_there) {
  EXPECT_EQ(
      to_text(status_of({"", 6, kSlow, "RrntF", "ouuuu", ""})),
      R"({"observedGeneration":1,"replicas":5,"availableReplicas":2,"readyReplicas":3,"currentReplicas":1,"updatedReplicas":3,)"
      R"("currentRevision":"old","updateRevision":"new","collisionCount":0})");
  EXPECT_EQ(
      to_text(status_of({"", 3, kRoll, "", "", ""})),
      R"({"observedGeneration":1,"replicas":0,"availableReplicas":0,"currentRevision":"old","updateRevision":"new","collisionCount":0})");
  EXPECT_EQ(get_int(status_of({"what is to be removed now is still there", 3, kRoll, "RRR", "ooo", ""}), "currentReplicas"), 3);
  EXPECT_EQ(get_int(status_of({"what goes is of no revision", 3, kRoll, "RRt", "ooo", ""}), "currentReplicas"), 2);
}

TEST(StatefulSetPlan, the_update_is_complete_when_all_pods_are_ready_and_new) {
  EXPECT_EQ(get_string(status_of({"", 3, kRoll, "RRR", "uuu", ""}), "currentRevision"), "new");
  EXPECT_EQ(get_int(status_of({"", 3, kRoll, "RRR", "uuu", ""}), "currentReplicas"), 3);
  for (const StatefulSetCase& row :
       {StatefulSetCase{"one is old", 3, kRoll, "RRR", "ouu", ""},
        StatefulSetCase{"one is not ready", 3, kRoll, "RRn", "uuu", ""},
        StatefulSetCase{"one too many", 3, kRoll, "RRRR", "uuuu", ""},
        StatefulSetCase{"one is missing", 3, kRoll, "RR", "uu", ""}, StatefulSetCase{"one goes", 3, kRoll, "RRt", "uuu", ""},
        StatefulSetCase{"nobody rolls", 3, kOnDeleteUpdates, "RRR", "uuu", ""}})
    EXPECT_EQ(get_string(status_of(row), "currentRevision"), "old") << row.name;
}

TEST(StatefulSetPlan, steps_have_a_limit) {
  EXPECT_EQ(plan_stateful_set(observed_stateful_set({"", 10000, kAtOnce, "", "", ""}), {}).steps.size(), kStatefulSetBurst);
}

TEST(StatefulSetPlan, the_limit_of_claims_ends_it_too) {
  const std::string more = rolling(R"("maxUnavailable":2)") + std::string(kParallel) + std::string(kClaimed);
  const StatefulSetPlan plan = plan_stateful_set(observed_stateful_set({"", 2'000'000'000, more, "", "", ""}), {});
  EXPECT_EQ(plan.steps.size(), 2 * kClaimsBurst) << "a claim and a pod each";
  EXPECT_TRUE(plan.again);
}

TEST(StatefulSetPlan, what_is_only_told_leaves_the_steps_to_others) {
  const size_t kPending = kStatefulSetBurst + 10;
  const std::string more = kAtOnce + std::string(kClaimed) +
                           R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Retain"})";
  ObservedStatefulSet observed =
      observed_stateful_set({"", int(kPending) + 1, more, std::string(kPending, 'p'), std::string(kPending, 'u'), ""});
  const ObjectPtr of_another = MUST(Object::make(
      kPersistentVolumeClaim,
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolumeClaim"},
       {"metadata",
        {{"name", "data"},
         {"namespace", "default"},
         {"ownerReferences",
          json::array{{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "c"}, {"uid", "c-uid"}, {"controller", true}}}}}}}));
  mount_claims(observed);
  observed.claim = [&](const std::string&) { return of_another; };
  EXPECT_EQ(steps_of(plan_stateful_set(observed, *parse_time(kJustNow))), "+" + std::to_string(kPending) + "u");

  json::value going = of_another->json();
  make(going, "metadata.deletionTimestamp") = kJustNow;
  const ObjectPtr gone = MUST(Object::make(kPersistentVolumeClaim, going));
  observed = observed_stateful_set({"", int(kPending) + 1, more, "", "", ""});
  const std::string last = "data-web-" + std::to_string(kPending);
  observed.claim = [&](const std::string& name) { return name == last ? of_another : gone; };
  EXPECT_EQ(steps_of(plan_stateful_set(observed, *parse_time(kJustNow))), "+" + std::to_string(kPending) + "u")
      << "the others' claims are being deleted";
}

TEST(StatefulSetNames, are_the_sets_and_a_number) {
  ObjectPtr set = stateful_set_of(stateful_set_text(1, kClaimed));
  for (auto [name, want] : {std::pair{"web-0", 0},
                            {"web-12", 12},
                            {"web-01", -1},
                            {"web-", -1},
                            {"web", -1},
                            {"web-x", -1},
                            {"web--1", -1},
                            {"web-+1", -1},
                            {"other-0", -1},
                            {"web-0-0", -1},
                            {"web-99999999999", -1}})
    EXPECT_EQ(ordinal_of(*set, name).value_or(-1), want) << name;
  EXPECT_EQ(claim_name(*set, "data", 3), "data-web-3");
  EXPECT_TRUE(may_be_claim_of(*set, "data-web-3"));
  EXPECT_FALSE(may_be_claim_of(*set, "log-web-3"));
  EXPECT_FALSE(may_be_claim_of(*set, "data-web-x"));
}

// ---- claims ----

struct ClaimRow {
  const char* name;
  const char *when_deleted, *when_scaled;
  bool condemned;
  std::string before;  // ownerReferences: s our set, S another of its name, p our pod, P another of its name, c another
                       // controller, x another owner
  std::string want;    // "=": unchanged
};

json::value reference(char letter) {
  bool set = letter == 's' || letter == 'S', pod = letter == 'p' || letter == 'P';
  std::string uid = letter == 's' ? "set-uid" : letter == 'p' ? "web-1" : std::string(1, letter);
  return {{"apiVersion", set ? "apps/v1" : "v1"},
          {"kind", set   ? "StatefulSet"
                   : pod ? "Pod"
                         : "ConfigMap"},
          {"name", set   ? "web"
                   : pod ? "web-1"
                         : "other"},
          {"uid", uid},
          {"controller", letter != 'x'}};
}

TEST(StatefulSetClaims, go_with_whom_the_policy_says) {
  const char *keep = "Retain", *drop = "Delete";
  for (const ClaimRow& row : {
           ClaimRow{"kept", keep, keep, false, "", "="},
           {"kept: nobody's any more", keep, keep, false, "sp", ""},
           {"kept: others' owners stay", keep, keep, false, "sx", "x"},
           {"with the set", drop, keep, false, "", "s"},
           {"with the set: it is", drop, keep, false, "s", "="},
           {"with the set: scaled away, too", drop, keep, true, "", "s"},
           {"with the pod: not while it is wanted", keep, drop, false, "", "="},
           {"with the pod", keep, drop, true, "", "p"},
           {"with the pod: wanted again", keep, drop, false, "p", ""},
           {"with both: the set", drop, drop, false, "", "s"},
           {"with both: the pod, once it is scaled away", drop, drop, true, "s", "p"},
           {"of an earlier set of the name", drop, keep, false, "S", "="},
           {"of an earlier pod of the name", keep, drop, true, "P", "="},
           {"of another controller", drop, keep, false, "c", "="},
           {"of another controller, and ours", drop, keep, false, "cs", "c"},
       }) {
    std::string more = kRoll + std::string(kClaimed) + R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":")" +
                       row.when_deleted + R"(","whenScaled":")" + row.when_scaled + R"("})";
    ObservedStatefulSet observed = observed_stateful_set({"", row.condemned ? 1 : 2, more, "RR", "uu", ""});
    json::array owners;
    for (char letter : row.before) owners.push_back(reference(letter));
    ObjectPtr claim = MUST(Object::make(
        kPersistentVolumeClaim, {{"apiVersion", "v1"},
                                 {"kind", "PersistentVolumeClaim"},
                                 {"metadata", {{"name", "data-web-1"}, {"namespace", "default"}, {"ownerReferences", owners}}}}));
    observed.claim = [&](const std::string& name) { return name == "data-web-1" ? claim : nullptr; };
    std::string got = "=";
    for (const StatefulSetStep& step : plan_stateful_set(observed, *parse_time(kJustNow)).steps) {
      if (step.what != StatefulSetStep::What::own_claim) continue;
      got.clear();
      for (const json::value& owner : step.body.get_array()) {
        EXPECT_TRUE(get_string(owner, "kind") == "ConfigMap" || get_bool(owner, "controller")) << row.name;
        got += get_string(owner, "uid") == "set-uid" ? 's'
               : get_string(owner, "uid") == "web-1" ? 'p'
                                                     : get_string(owner, "uid")[0];
      }
    }
    EXPECT_EQ(got, row.want) << row.name;
  }
}

// The steps for the claim data-web-1 of the second of two pods: "own conflict update ".
std::string claim_steps(const std::string& pods, const std::string& owners) {
  std::string more =
      kRoll + std::string(kClaimed) + R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Retain"})";
  ObservedStatefulSet observed = observed_stateful_set({"", 2, more, pods, "uu", ""});
  mount_claims(observed);
  json::array references;
  for (char letter : owners) references.push_back(reference(letter));
  ObjectPtr claim =
      MUST(Object::make(kPersistentVolumeClaim,
                        {{"apiVersion", "v1"},
                         {"kind", "PersistentVolumeClaim"},
                         {"metadata", {{"name", "data-web-1"}, {"namespace", "default"}, {"ownerReferences", references}}}}));
  observed.claim = [&](const std::string& name) { return name == "data-web-1" ? claim : nullptr; };
  std::string steps;
  for (const StatefulSetStep& step : plan_stateful_set(observed, *parse_time(kJustNow)).steps) {
    if (step.pod != "web-1") continue;
    if (step.what == StatefulSetStep::What::own_claim) steps += "own ";
    if (step.what == StatefulSetStep::What::conflict) steps += "conflict ";
    if (step.what == StatefulSetStep::What::claims_owned) steps += "update ";
  }
  return steps;
}

TEST(StatefulSetClaims, are_owned_as_soon_as_their_pod_is_there) {
  EXPECT_EQ(claim_steps("Rp", ""), "own ");
  EXPECT_EQ(claim_steps("Rp", "s"), "");
  EXPECT_EQ(claim_steps("RR", ""), "own update ") << "an event says that the pod was updated";
  EXPECT_EQ(claim_steps("RR", "s"), "");
  EXPECT_EQ(claim_steps("Rn", ""), "") << "it was pending before";
}

TEST(StatefulSetClaims, that_another_controller_has_are_told) {
  EXPECT_EQ(claim_steps("Rp", "c"), "conflict ");
  EXPECT_EQ(claim_steps("Rp", "S"), "conflict ") << "an earlier set of the name";
  EXPECT_EQ(claim_steps("RR", "c"), "") << "once is enough";
  EXPECT_EQ(claim_steps("RR", "cs"), "conflict own update ") << "ours goes";
  EXPECT_EQ(claim_steps("Rp", "x"), "own ") << "it is no controller";
}

TEST(StatefulSetClaims, others_are_made_while_one_is_going) {
  const std::string two = kRoll + R"(,"volumeClaimTemplates":[{"metadata":{"name":"data"}},{"metadata":{"name":"log"}}])";
  ObservedStatefulSet observed = observed_stateful_set({"", 1, two, "", "", ""});
  auto going = [](const std::string& name) {
    return MUST(Object::make(kPersistentVolumeClaim,
                             {{"apiVersion", "v1"},
                              {"kind", "PersistentVolumeClaim"},
                              {"metadata", {{"name", name}, {"namespace", "default"}, {"deletionTimestamp", kJustNow}}}}));
  };
  observed.claim = [&](const std::string& name) { return name == "data-web-0" ? going(name) : nullptr; };
  StatefulSetPlan plan = plan_stateful_set(observed, {});
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].what, StatefulSetStep::What::create_claim);
  EXPECT_EQ(plan.steps[1].body, "pvc data-web-0 is being deleted");
  observed.claim = going;
  plan = plan_stateful_set(observed, {});
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].body, "[pvc data-web-0 is being deleted, pvc log-web-0 is being deleted]");
}

TEST(StatefulSetClaims, a_pod_waits_for_those_that_are_going) {
  std::string scaled_away =
      kRoll + std::string(kClaimed) + R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Delete"})";
  json::object metadata{{"name", "data-web-0"}, {"namespace", "default"}};
  auto plan = [&](const std::string& more) {
    ObservedStatefulSet observed = observed_stateful_set({"", 1, more, "", "", ""});
    ObjectPtr claim = MUST(
        Object::make(kPersistentVolumeClaim, {{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", metadata}}));
    observed.claim = [claim](const std::string&) { return claim; };
    return plan_stateful_set(observed, {});
  };
  EXPECT_EQ(steps_of(plan(scaled_away)), "+0u");
  metadata["ownerReferences"] = json::array{{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "web-0"}, {"uid", "earlier"}}};
  EXPECT_TRUE(plan(scaled_away).steps.empty()) << "the collector takes it away";
  EXPECT_EQ(steps_of(plan(kRoll + std::string(kClaimed))), "+0u") << "here it is kept";
  metadata["deletionTimestamp"] = kJustNow;
  ASSERT_EQ(plan(kRoll + std::string(kClaimed)).steps.size(), 1u);
  EXPECT_EQ(plan(kRoll + std::string(kClaimed)).steps[0].body, "pvc data-web-0 is being deleted");
}

// ---- controller ----

struct StatefulSetTest : Bench {
  void put_set(int replicas, std::string_view more = kRolling, const std::string& image = "a") {
    ObjectPtr there = client.find(kStatefulSet, {"default", "web"});
    if (!there) return (void)client.put(kStatefulSet, stateful_set_text(replicas, more, image));
    json::value body = MUST(parse_json(stateful_set_text(replicas, more, image)));
    make(body, "metadata").get_object().erase("generation");
    MUST(client.update(kStatefulSet, body));
  }
  ObjectPtr set() { return client.find(kStatefulSet, {"default", "web"}); }
  int64_t status(const char* name) { return get_int(set()->json(), std::string("status.") + name); }
  std::string status_text(const char* name) { return std::string(get_string(set()->json(), std::string("status.") + name)); }
  ObjectPtr pod(int number) { return client.find(kPod, {"default", "web-" + std::to_string(number)}); }
  std::string image(int number) {
    return std::string(get_string(get_array(pod(number)->json(), "spec.containers").at(0), "image"));
  }
  std::string names() {
    std::string out;
    for (const ObjectPtr& one : client.all(kPod)) out += (out.empty() ? "" : " ") + one->name();
    return out;
  }
  void roll_out(int rounds = 20) {
    settle();
    for (; rounds > 0; --rounds) play_kubelet();
  }
};

TEST_F(StatefulSetTest, makes_pods_in_order_and_says_so) {
  start();
  put_set(3);
  settle();
  EXPECT_EQ(names(), "web-0");
  ObjectPtr first = pod(0);
  EXPECT_EQ(first->controller()->uid, "set-uid");
  EXPECT_EQ(first->label("statefulset.kubernetes.io/pod-name"), "web-0");
  EXPECT_EQ(first->label("apps.kubernetes.io/pod-index"), "0");
  EXPECT_EQ(first->label("controller-revision-hash"), status_text("updateRevision"));
  EXPECT_EQ(get_string(first->json(), "spec.hostname"), "web-0");
  EXPECT_EQ(get_string(first->json(), "spec.subdomain"), "svc");
  EXPECT_FALSE(find(first->json(), "metadata.generateName"));
  EXPECT_TRUE(events.has("SuccessfulCreate", "create Pod web-0 in StatefulSet web successful"));
  play_kubelet();
  EXPECT_EQ(names(), "web-0 web-1");
  roll_out();
  EXPECT_EQ(names(), "web-0 web-1 web-2");
  EXPECT_EQ(status("replicas"), 3);
  EXPECT_EQ(status("availableReplicas"), 3);
  EXPECT_EQ(status("currentReplicas"), 3);
  EXPECT_EQ(status_text("currentRevision"), status_text("updateRevision"));
  EXPECT_EQ(status("observedGeneration"), 1);
  ASSERT_EQ(client.all(kControllerRevision).size(), 1u);
  EXPECT_FALSE(client.all(kControllerRevision)[0]->label("controller.kubernetes.io/hash").empty());
  client.clear_calls();
  pass(std::chrono::seconds(60));
  EXPECT_TRUE(client.calls().empty()) << client.calls()[0];
}

TEST_F(StatefulSetTest, goes_to_a_new_template_and_back_and_forgets_what_is_beyond_its_limit) {
  start();
  std::string limited = kRoll + R"(,"revisionHistoryLimit":1)";
  put_set(2, limited);
  roll_out();
  std::string first = status_text("currentRevision");
  put_set(2, limited, "b");
  settle();
  EXPECT_NE(status_text("updateRevision"), first);
  EXPECT_EQ(status_text("currentRevision"), first);
  EXPECT_TRUE(pod(1)->deleting());
  EXPECT_FALSE(pod(0)->deleting());
  EXPECT_TRUE(events.has("SuccessfulDelete", "delete Pod web-1 in StatefulSet web successful"));
  roll_out();
  EXPECT_EQ(image(0) + image(1), "bb");
  EXPECT_EQ(status_text("currentRevision"), status_text("updateRevision"));
  put_set(2, limited, "a");
  roll_out();
  EXPECT_EQ(image(0) + image(1), "aa");
  EXPECT_EQ(status_text("currentRevision"), first) << "the earlier one, with a higher number";
  EXPECT_EQ(number_of(*client.find(kControllerRevision, {"default", first})), 3);
  for (const char* next : {"c", "d", "e"}) {
    put_set(2, limited, next);
    roll_out();
  }
  EXPECT_EQ(client.all(kControllerRevision).size(), 2u) << "the one in use and one before";
}

TEST_F(StatefulSetTest, forgets_what_is_beyond_its_limit_also_while_a_pod_cannot_be_made) {
  start();
  client.put(kPod, R"({"metadata":{"name":"web-0","namespace":"default"},"spec":{"containers":[]}})");  // owned by nobody
  std::string limited = kRoll + R"(,"revisionHistoryLimit":0)";
  for (const char* next : {"a", "b", "c", "d"}) {
    put_set(1, limited, next);
    settle();
  }
  EXPECT_LE(client.all(kControllerRevision).size(), 2u);
}

TEST_F(StatefulSetTest, a_revision_that_somebody_removed_comes_again) {
  start();
  put_set(1);
  roll_out();
  client.erase(kControllerRevision, client.all(kControllerRevision)[0]->key());
  settle();
  EXPECT_EQ(client.all(kControllerRevision).size(), 1u);
  EXPECT_EQ(names(), "web-0");
  EXPECT_FALSE(pod(0)->deleting()) << "it has the same name, as it is of the same template";
}

TEST_F(StatefulSetTest, a_failed_pod_is_made_again_under_its_name) {
  start();
  put_set(2);
  roll_out();
  std::string uid = pod(0)->uid();
  client.set_status(kPod, {"default", "web-0"}, R"({"phase":"Failed"})");
  settle();
  roll_out();
  EXPECT_NE(pod(0)->uid(), uid);
  EXPECT_EQ(names(), "web-0 web-1");
}

TEST_F(StatefulSetTest, what_fails_again_and_again_is_replaced_more_and_more_slowly) {
  start();
  put_set(1);
  std::vector<int> seconds;
  for (int round = 0; round < 5; ++round) {
    roll_out(2);
    std::string uid = pod(0)->uid();
    client.set_status(kPod, {"default", "web-0"}, R"({"phase":"Failed"})");
    settle();
    int waited = 0;
    for (; waited < 60 && pod(0)->uid() == uid; ++waited) pass(std::chrono::seconds(1));
    seconds.push_back(waited);
  }
  EXPECT_EQ(seconds, (std::vector{0, 1, 2, 4, 8}));
}

TEST_F(StatefulSetTest, adopts_orphans_of_its_names_only_and_lets_go_of_what_matches_no_more) {
  for (const char* name : {"web-0", "web-x"})
    client.put(kPod,
               R"({"metadata":{"name":")" + std::string(name) + R"(","namespace":"default","labels":{"app":"web"}},"spec":{},
      "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  start();
  put_set(1, kOnDeleteUpdates);
  settle();
  EXPECT_EQ(pod(0)->controller()->uid, "set-uid");
  EXPECT_EQ(pod(0)->label("statefulset.kubernetes.io/pod-name"), "web-0") << "and it is labelled as its own are";
  EXPECT_TRUE(events.has("SuccessfulUpdate", "update Pod web-0 in StatefulSet web successful"));
  EXPECT_FALSE(client.find(kPod, {"default", "web-x"})->controller());
  MUST(client.patch(kPod, {"default", "web-0"}, PatchType::merge, {{"metadata", {{"labels", {{"app", "mine"}}}}}}));
  settle();
  EXPECT_FALSE(pod(0)->controller());
  EXPECT_EQ(names(), "web-0 web-x") << "its name is taken: the set waits";
  client.erase(kPod, {"default", "web-0"});
  settle();
  ASSERT_TRUE(pod(0));
  EXPECT_EQ(pod(0)->controller()->uid, "set-uid");
}

TEST_F(StatefulSetTest, makes_claims_and_mounts_them) {
  start();
  put_set(1, kRoll + std::string(kClaimed) +
                 R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"})");
  settle();
  ObjectPtr claim = client.find(kPersistentVolumeClaim, {"default", "data-web-0"});
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->label("app"), "web");
  EXPECT_EQ(claim->label("tier"), "x");
  EXPECT_EQ(claim->controller()->uid, "set-uid");
  EXPECT_EQ(to_text(get_object(claim->json(), "status")), R"({"phase":"Pending"})") << "the binder's, not the template's";
  EXPECT_EQ(to_text(get_array(pod(0)->json(), "spec.volumes").at(0)),
            R"({"name":"data","persistentVolumeClaim":{"claimName":"data-web-0"}})");
  EXPECT_TRUE(events.has("SuccessfulCreate", "create Claim data-web-0 Pod web-0 in StatefulSet web success"));
  client.erase(kPersistentVolumeClaim, claim->key());
  settle();
  EXPECT_TRUE(client.find(kPersistentVolumeClaim, claim->key())) << "a pending pod needs it";
  roll_out();
  put_set(0, kRoll + std::string(kClaimed) +
                 R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"})");
  settle();
  EXPECT_EQ(client.find(kPersistentVolumeClaim, claim->key())->controller()->kind, "Pod") << "it goes with the pod";
  roll_out();
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, claim->key()));
  EXPECT_EQ(count(kPod), 0u);
}

TEST_F(StatefulSetTest, another_policy_for_claims_is_told_as_an_update_of_the_pod) {
  const std::string with_set = R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Retain"})";
  start();
  put_set(1, kRoll + std::string(kClaimed));
  roll_out();
  events.take();
  put_set(1, kRoll + std::string(kClaimed) + with_set);
  settle();
  EXPECT_EQ(client.find(kPersistentVolumeClaim, {"default", "data-web-0"})->controller()->uid, "set-uid");
  EXPECT_TRUE(events.has("SuccessfulUpdate", "update Pod web-0 in StatefulSet web successful"));
  events.take();
  client.fail(1, Error(Code::forbidden, "not yours"), "patch persistentvolumeclaims default/data-web-0");
  put_set(1, kRoll + std::string(kClaimed));
  settle();
  EXPECT_TRUE(events.has("FailedUpdate",
                         "update Pod web-0 in StatefulSet web failed error: could not update claim data-web-0 for delete policy "
                         "ownerRefs: not yours"));
  pass(std::chrono::seconds(2));
  EXPECT_FALSE(client.find(kPersistentVolumeClaim, {"default", "data-web-0"})->controller());
}

TEST_F(StatefulSetTest, a_claim_of_another_controller_is_left_to_it_and_that_is_told) {
  start();
  client.put(kConfigMap, R"({"metadata":{"name":"other","namespace":"default","uid":"uid-other"}})");
  client.put(kPersistentVolumeClaim,
             R"({"metadata":{"name":"data-web-0","namespace":"default","ownerReferences":[{"apiVersion":"v1",
    "kind":"ConfigMap","name":"other","uid":"uid-other","controller":true}]},"spec":{}})");
  put_set(1, kRoll + std::string(kClaimed) +
                 R"(,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Retain"})");
  settle();
  EXPECT_TRUE(events.has("ConflictingController", "PersistentVolumeClaim data-web-0 has a conflicting OwnerReference"));
  EXPECT_EQ(client.find(kPersistentVolumeClaim, {"default", "data-web-0"})->controller()->uid, "uid-other");
}

TEST_F(StatefulSetTest, more_claims_than_one_plan_holds_come_one_after_the_other) {
  start();
  std::string templates;
  for (int i = 0; i < 250; ++i)
    templates += (i ? "," : "") + std::string(R"({"metadata":{"name":"d)") + std::to_string(i) +
                 R"("},"spec":{"accessModes":["ReadWriteOnce"]}})";
  put_set(1, kRoll + std::string(R"(,"volumeClaimTemplates":[)") + templates + "]");
  settle();
  EXPECT_EQ(count(kPersistentVolumeClaim), 250u);
  ASSERT_TRUE(pod(0));
  EXPECT_EQ(get_array(pod(0)->json(), "spec.volumes").size(), 250u);
}

TEST_F(StatefulSetTest, a_claim_that_cannot_be_made_keeps_the_pod_from_being_made) {
  start();
  for (int times = 0; times < 6; ++times)
    client.fail(1, Error(Code::forbidden, "quota exceeded"), "create persistentvolumeclaims");
  put_set(1, kRoll + std::string(kClaimed));
  settle();
  EXPECT_EQ(count(kPod), 0u);
  EXPECT_TRUE(
      events.has("FailedCreate", "create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: quota exceeded"));
  EXPECT_TRUE(events.has("FailedCreate",
                         "create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: quota exceeded"));
  pass(std::chrono::seconds(5));
  EXPECT_EQ(count(kPod), 1u);
}

TEST_F(StatefulSetTest, once_it_is_being_deleted_it_counts_and_does_no_more) {
  start();
  put_set(2);
  roll_out();
  MUST(client.patch(kStatefulSet, {"default", "web"}, PatchType::merge,
                    {{"metadata", {{"finalizers", json::array{"example.com/hold"}}}}}));
  MUST(client.remove(kStatefulSet, {"default", "web"}));
  client.erase(kPod, {"default", "web-1"});
  settle();
  EXPECT_EQ(names(), "web-0");
  EXPECT_EQ(status("replicas"), 1);
}

TEST_F(StatefulSetTest, availability_comes_later_with_min_ready_seconds) {
  start();
  put_set(2, kSlow);
  settle();
  play_kubelet();
  EXPECT_EQ(status("readyReplicas"), 1);
  EXPECT_EQ(status("availableReplicas"), 0);
  pass(std::chrono::seconds(29));
  EXPECT_EQ(names(), "web-0");
  pass(std::chrono::seconds(2));
  EXPECT_EQ(names(), "web-0 web-1");
  EXPECT_EQ(status("availableReplicas"), 1);
}

TEST_F(StatefulSetTest, conditions_that_others_wrote_stay) {
  start();
  put_set(1);
  settle();
  json::value body = set()->json();
  make(body, "status.conditions") = json::array{{{"type", "StatusUpdate"}, {"status", "True"}}};
  MUST(client.update(kStatefulSet, body, {.subresource = "status"}));
  roll_out();
  EXPECT_EQ(status("readyReplicas"), 1);
  EXPECT_TRUE(find_condition(get_array(set()->json(), "status.conditions"), "StatusUpdate"));
}

TEST_F(StatefulSetTest, any_single_failing_call_heals) {
  for (int nth = 1; nth <= 14; ++nth) {
    FakeClock clock;
    FakeClient client(clock);
    CollectedEvents events;
    Informers informers(client);
    Manager manager(client, informers, events, built_in_catalogs(), {}, clock);
    MUST(informers.start());
    client.settle();
    client.clear_calls();
    client.fail(nth, Error(Code::unavailable, "disk is full"));
    client.put(kStatefulSet, stateful_set_text(3, kAtOnce + std::string(kClaimed)));
    for (int second = 0; second < 5; ++second) {
      for (client.settle(); manager.run_once(); client.settle()) {
      }
      clock.advance(std::chrono::seconds(1));
    }
    EXPECT_EQ(client.all(kPod).size(), 3u) << nth;
    EXPECT_EQ(client.all(kPersistentVolumeClaim).size(), 3u) << nth;
    EXPECT_EQ(client.all(kControllerRevision).size(), 1u) << nth;
    EXPECT_EQ(get_int(client.find(kStatefulSet, {"default", "web"})->json(), "status.replicas"), 3) << nth;
  }
}

TEST_F(StatefulSetTest, a_removal_that_the_cache_does_not_show_is_not_repeated) {
  start();
  put_set(2);
  roll_out();
  client.lose_event(3);  // after those of the set and the new revision: the pod's deletion timestamp
  put_set(2, kRolling, "b");
  settle();
  ASSERT_TRUE(pod(1)->deleting());
  client.clear_calls();
  MUST(client.patch(kPod, {"default", "web-0"}, PatchType::merge,
                    {{"metadata", {{"annotations", {{"a", "b"}}}}}}));  // makes the set a key of the queue again
  client.clear_calls();
  settle();
  for (const std::string& call : client.calls())
    EXPECT_FALSE(call.starts_with("remove") || call.starts_with("create pods")) << call;
}

}  // namespace
}  // namespace coracle::controller
