// SPDX-License-Identifier: Apache-2.0
// The pipeline for single kinds: the least of each, selectors of jobs, timestamps of volumes, and the fields that a subresource
// may change.
#include <gtest/gtest.h>

#include "daemon/registry/scale.h"
#include "tests/daemon/registry/registry_fixture.h"

namespace coracle::registry {
namespace {

class KindsTest : public testing::Test {
 protected:
  static const Kind& kind(std::string_view api_version, std::string_view name) {
    return schema::catalog().by_kind(api_version, name)->kind;
  }
  static std::string job(const std::string& more) {
    return R"({"metadata":{"name":"j","namespace":"default"},"spec":{)" + more +
           R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})";
  }
  static std::string first_cause(const Result<ObjectPtr>& result) {
    if (result || !result.error().details() || result.error().details()->causes.empty()) return {};
    return result.error().details()->causes.front().field;
  }
  RegistryFixture fixture;
};

TEST_F(KindsTest, a_job_gets_a_selector_that_finds_its_pods_alone) {
  ObjectPtr made = fixture.make(kind("batch/v1", "Job"), job(""));
  const json::object& labels = get_object(made->json(), "spec.template.metadata.labels");
  EXPECT_EQ(labels.at("batch.kubernetes.io/controller-uid"), json::value(made->uid()));
  EXPECT_EQ(labels.at("controller-uid"), json::value(made->uid()));
  EXPECT_EQ(labels.at("batch.kubernetes.io/job-name"), json::value("j"));
  EXPECT_EQ(labels.at("job-name"), json::value("j"));
  EXPECT_EQ(labels.at("a"), json::value("b"));
  EXPECT_EQ(to_text(*find(made->json(), "spec.selector")),
            R"({"matchLabels":{"batch.kubernetes.io/controller-uid":")" + made->uid() + "\"}}");
  EXPECT_EQ(get_int(made->json(), "metadata.generation"), 1);
}

TEST_F(KindsTest, a_job_without_labels_gets_those_of_its_template_with_the_generated_ones) {
  const Kind& jobs = kind("batch/v1", "Job");
  const std::string bare =
      R"({"metadata":{"name":"bare","namespace":"default"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})";
  for (const std::string& body : {job(""), bare}) {
    ObjectPtr made = fixture.make(jobs, body);
    const json::object& labels = get_object(made->json(), "metadata.labels");
    EXPECT_TRUE(labels.contains("batch.kubernetes.io/controller-uid")) << made->text();
    EXPECT_EQ(labels, get_object(made->json(), "spec.template.metadata.labels"));
  }
  json::value labelled = RegistryFixture::parse(job(""));
  make(labelled, "metadata.name") = "labelled";
  make(labelled, "metadata.labels") = json::object{{"a", "b"}};
  ObjectPtr made = fixture.make(jobs, to_text(labelled));
  EXPECT_EQ(to_text(*find(made->json(), "metadata.labels")), R"({"a":"b"})") << "its own, though the template has the same";
}

TEST_F(KindsTest, a_pods_affinity_means_those_with_its_own_values_of_the_named_labels) {
  ObjectPtr made = fixture.make(
      kPod,
      R"({"metadata":{"name":"p","namespace":"default","labels":{"app":"web","hash":"1"}},"spec":{"containers":[{"name":"c","image":"i"}],
    "affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}},
      "matchLabelKeys":["hash","absent","absent"]}]},
    "podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{},
      "mismatchLabelKeys":["app"]}}]}}}})");
  const json::value& near =
      get_array(made->json(), "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution").front();
  EXPECT_EQ(to_text(*find(near, "labelSelector")),
            R"({"matchLabels":{"app":"web"},"matchExpressions":[{"key":"hash","operator":"In","values":["1"]}]})");
  const json::value& far =
      get_array(made->json(), "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution").front();
  EXPECT_EQ(to_text(*find(far, "podAffinityTerm.labelSelector")),
            R"({"matchExpressions":[{"key":"app","operator":"NotIn","values":["web"]}]})");
}

// Fields that the API's description calls required, and Kubernetes' validation does not ask for.
TEST_F(KindsTest, the_least_that_kubernetes_takes_is_enough) {
  const std::string pods =
      R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  struct Row {
    const char *version, *kind;
    std::string rest;
  };
  for (
      const Row& row : std::vector<Row>{
          {"v1", "ConfigMap", ""},
          {"v1", "Event", R"("involvedObject":{"namespace":"default"},"message":"m")"},
          {"v1", "LimitRange", R"("spec":{"limits":[{"type":"Pod"}]})"},
          {"v1", "PersistentVolumeClaim",
           R"("spec":{"accessModes":["ReadWriteOnce"],"resources":{"limits":{"storage":"1M"},"requests":{"storage":"2M"}}})"},
          {"v1", "ServiceAccount", R"("secrets":[{"name":"s"}])"},
          {"apps/v1", "StatefulSet", "\"spec\":{" + pods + "}"},
          {"apps/v1", "ControllerRevision", R"("data":{"Name":null},"revision":0)"},
          {"autoscaling/v1", "HorizontalPodAutoscaler",
           R"("spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Any","name":"d"}})"},
          {"coordination.k8s.io/v1", "Lease", ""},
          {"discovery.k8s.io/v1", "EndpointSlice", R"("addressType":"IPv4","endpoints":[],"ports":[])"},
          {"flowcontrol.apiserver.k8s.io/v1", "FlowSchema", R"("spec":{"priorityLevelConfiguration":{"name":"absent"}})"},
          {"networking.k8s.io/v1", "Ingress", R"("spec":{"defaultBackend":{"service":{"name":"s","port":{"number":5000}}}})"},
          {"networking.k8s.io/v1", "NetworkPolicy", R"("spec":{"podSelector":{}})"},
          {"policy/v1", "PodDisruptionBudget", R"("spec":{"selector":{"matchLabels":{"a":"b"}}})"},
          {"rbac.authorization.k8s.io/v1", "RoleBinding",
           R"("roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"absent"},"subjects":[{"kind":"Group","name":"g"}])"},
          {"resource.k8s.io/v1", "DeviceClass", ""},
          {"scheduling.k8s.io/v1", "PriorityClass", ""},
          {"storage.k8s.io/v1", "CSIStorageCapacity", R"("storageClassName":"absent")"},
      }) {
    const Kind& which = kind(row.version, row.kind);
    Key key{which.namespaced ? "default" : "", "least"};
    std::string text = R"({"metadata":{"name":"least")" + std::string(which.namespaced ? R"(,"namespace":"default")" : "") + "}" +
                       (row.rest.empty() ? "" : "," + row.rest) + "}";
    Writer trying;
    trying.dry_run = true;
    auto imagined = fixture.try_make(which, text, trying);
    EXPECT_TRUE(imagined) << row.kind << ": " << imagined.error().text();
    EXPECT_FALSE(fixture.registry().get(which, key)) << row.kind;
    auto made = fixture.try_make(which, text);
    ASSERT_TRUE(made) << row.kind << ": " << made.error().text();
    auto again = fixture.try_update(which, (*made)->json());
    ASSERT_TRUE(again) << row.kind << ": " << again.error().text();
    EXPECT_EQ((*again)->revision(), (*made)->revision()) << row.kind << ": nothing has changed";
  }
}

TEST_F(KindsTest, a_label_may_not_be_named_twice) {
  auto cause_of = [&](const std::string& more) {
    return first_cause(fixture.try_make(
        kPod,
        R"({"metadata":{"name":"p","namespace":"default","labels":{"hash":"1"}},"spec":{"containers":[{"name":"c","image":"i"}],)" +
            more + "}}"));
  };
  EXPECT_EQ(cause_of(R"("affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone",
      "labelSelector":{},"matchLabelKeys":["hash","hash"]}]}})"),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][1]");
  EXPECT_EQ(cause_of(R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway",
      "labelSelector":{},"matchLabelKeys":["hash","hash"]}])"),
            "spec.topologySpreadConstraints[0][1]");
  EXPECT_EQ(cause_of(R"("affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone",
      "labelSelector":{},"mismatchLabelKeys":["hash","hash"]}]}})"),
            "")
      << "as in Kubernetes";
}

TEST_F(KindsTest, a_pods_spreading_counts_those_with_its_own_values_of_the_named_labels) {
  ObjectPtr made = fixture.make(
      kPod,
      R"({"metadata":{"name":"p","namespace":"default","labels":{"app":"web","hash":"1"}},"spec":{"containers":[{"name":"c","image":"i"}],
    "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web"}},
      "matchLabelKeys":["hash","absent"]},
      {"maxSkew":2,"topologyKey":"host","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web"}}}]}})");
  const json::array& constraints = get_array(made->json(), "spec.topologySpreadConstraints");
  EXPECT_EQ(to_text(*find(constraints.at(0), "labelSelector")),
            R"({"matchLabels":{"app":"web"},"matchExpressions":[{"key":"hash","operator":"In","values":["1"]}]})");
  EXPECT_EQ(to_text(*find(constraints.at(1), "labelSelector")), R"({"matchLabels":{"app":"web"}})");
  EXPECT_TRUE(fixture.try_merge(kPod, {"default", "p"}, R"({"metadata":{"labels":{"x":"y"}}})")) << "what is stored stays valid";
}

TEST_F(KindsTest, a_pods_class_does_not_change) {
  fixture.make(kPod, R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  const Key key{"default", "p"};
  auto changed = fixture.try_merge(kPod, key, R"({"status":{"qosClass":"Guaranteed"}})", "status");
  EXPECT_EQ(first_cause(changed), "status.qosClass");
  ObjectPtr told = MUST(fixture.try_merge(kPod, key, R"({"status":{"qosClass":null,"phase":"Running"}})", "status"));
  EXPECT_EQ(get_string(told->json(), "status.qosClass"), "BestEffort") << "left out, it stays";
  EXPECT_EQ(get_string(told->json(), "status.phase"), "Running");
}

TEST_F(KindsTest, a_job_may_bring_its_own_selector_and_no_one_elses) {
  const Kind& jobs = kind("batch/v1", "Job");
  ObjectPtr made = fixture.make(jobs, job(R"("manualSelector":true,"selector":{"matchLabels":{"a":"b"}},)"));
  EXPECT_EQ(to_text(*find(made->json(), "spec.selector")), R"({"matchLabels":{"a":"b"}})");
  EXPECT_FALSE(get_object(made->json(), "spec.template.metadata.labels").contains("job-name"));
  auto wrong = fixture.try_make(jobs, job(R"("selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"other"}},)"));
  EXPECT_EQ(first_cause(wrong), "spec.selector");
}

TEST_F(KindsTest, a_suspended_job_keeps_its_status_apart_and_counts_its_changes) {
  const Kind& jobs = kind("batch/v1", "Job");
  fixture.make(jobs, job(R"("suspend":true,)"));
  ObjectPtr changed = MUST(fixture.try_merge(jobs, {"default", "j"}, R"({"spec":{"suspend":false},"status":{"active":3}})"));
  EXPECT_EQ(get_int(changed->json(), "metadata.generation"), 2);
  EXPECT_EQ(find(changed->json(), "status.active"), nullptr);
  ObjectPtr told =
      MUST(fixture.try_merge(jobs, {"default", "j"}, R"({"spec":{"parallelism":9},"status":{"active":3}})", "status"));
  EXPECT_EQ(get_int(told->json(), "status.active"), 3);
  EXPECT_EQ(get_int(told->json(), "spec.parallelism"), 1);
  EXPECT_EQ(get_int(told->json(), "metadata.generation"), 2);
}

TEST_F(KindsTest, a_daemon_set_counts_the_changes_of_its_template) {
  const Kind& sets = kind("apps/v1", "DaemonSet");
  auto count = [](const ObjectPtr& set) { return std::string(set->annotation("deprecated.daemonset.template.generation")); };
  auto text = [](const std::string& annotations) {
    return R"({"metadata":{"name":"d","namespace":"default","annotations":{)" + annotations +
           R"(}},"spec":{"selector":{"matchLabels":{"a":"b"}},
      "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  };
  json::value plain = MUST(parse_json(text(""))),
              counted = MUST(parse_json(text(R"("deprecated.daemonset.template.generation":"9")")));
  EXPECT_EQ(count(fixture.make(sets, text(""))), "1");
  Key key{"default", "d"};
  EXPECT_EQ(count(MUST(fixture.try_merge(sets, key, R"({"spec":{"minReadySeconds":3}})"))), "1");
  EXPECT_EQ(count(MUST(fixture.try_merge(sets, key, R"({"spec":{"template":{"metadata":{"labels":{"c":"d"}}}}})"))), "2");
  EXPECT_EQ(count(MUST(fixture.try_update(sets, plain))), "3")
      << "back is a change, too; nor is the count lost when it is left out";
  EXPECT_EQ(count(MUST(fixture.try_update(sets, plain))), "3");
  EXPECT_EQ(count(MUST(fixture.try_update(sets, counted))), "3") << "nobody else counts";
}

TEST_F(KindsTest, a_volume_knows_since_when_it_is_in_its_phase) {
  const Kind& volumes = kind("v1", "PersistentVolume");
  ObjectPtr made = fixture.make(
      volumes,
      R"({"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/a"}}})");
  EXPECT_EQ(get_string(made->json(), "status.phase"), "Pending");
  EXPECT_EQ(get_string(made->json(), "status.lastPhaseTransitionTime"), format_time(fixture.clock.now()));
  fixture.clock.advance(std::chrono::seconds(60));
  ObjectPtr same = MUST(fixture.try_merge(volumes, {"", "v"}, R"({"status":{"message":"m"}})", "status"));
  EXPECT_EQ(get_string(same->json(), "status.lastPhaseTransitionTime"),
            get_string(made->json(), "status.lastPhaseTransitionTime"));
  ObjectPtr bound = MUST(fixture.try_merge(volumes, {"", "v"}, R"({"status":{"phase":"Bound"}})", "status"));
  EXPECT_EQ(get_string(bound->json(), "status.lastPhaseTransitionTime"), format_time(fixture.clock.now()));
}

TEST_F(KindsTest, a_claim_names_its_source_in_both_ways) {
  ObjectPtr made = fixture.make(kind("v1", "PersistentVolumeClaim"),
                                R"({"metadata":{"name":"c","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],
      "resources":{"requests":{"storage":"1Gi"}},"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}}})");
  EXPECT_EQ(get_string(made->json(), "spec.dataSourceRef.name"), "x");
  EXPECT_EQ(get_string(made->json(), "status.phase"), "Pending");
}

TEST_F(KindsTest, a_claim_forgets_a_source_that_its_old_field_cannot_name) {
  const Kind& claims = kind("v1", "PersistentVolumeClaim");
  auto made = [&](const std::string& name, const std::string& source) {
    ObjectPtr claim = fixture.make(claims, R"({"metadata":{"name":")" + name +
                                               R"(","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],
      "resources":{"requests":{"storage":"1Gi"}},)" +
                                               source + "}}");
    return std::string(get_string(claim->json(), "spec.dataSource.kind")) + " " +
           std::string(get_string(claim->json(), "spec.dataSourceRef.kind"));
  };
  EXPECT_EQ(made("a", R"("dataSource":{"kind":"Secret","name":"x"})"), " ");
  EXPECT_EQ(made("b", R"("dataSource":{"apiGroup":"example.com","kind":"Dump","name":"x"})"), " ");
  EXPECT_EQ(made("c", R"("dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"x"})"),
            "VolumeSnapshot VolumeSnapshot");
  EXPECT_EQ(made("d", R"("dataSourceRef":{"apiGroup":"example.com","kind":"Dump","name":"x"})"), "Dump Dump");
  ObjectPtr same =
      MUST(fixture.try_merge(claims, {"default", "d"}, R"({"metadata":{"labels":{"a":"b"}},"spec":{"dataSourceRef":null}})"));
  EXPECT_EQ(get_string(same->json(), "spec.dataSourceRef.kind"), "Dump");
}

TEST_F(KindsTest, every_kind_with_replicas_has_a_scale) {
  const std::string pods = R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  for (auto [api_version, name, selector] : {std::tuple{"v1", "ReplicationController", R"({"a":"b"})"},
                                             std::tuple{"apps/v1", "StatefulSet", R"({"matchLabels":{"a":"b"}})"},
                                             std::tuple{"apps/v1", "ReplicaSet", R"({"matchLabels":{"a":"b"}})"}}) {
    const Kind& scaled = kind(api_version, name);
    ObjectPtr made = fixture.make(scaled, R"({"metadata":{"name":"s","namespace":"default"},"spec":{"replicas":2,"selector":)" +
                                              std::string(selector) + "," + pods + "}}");
    json::value scale = scale_of(*made);
    EXPECT_EQ(get_int(scale, "spec.replicas"), 2) << name;
    EXPECT_EQ(get_string(scale, "status.selector"), "a=b") << name;
    ObjectPtr changed = MUST(fixture.try_merge(scaled, {"default", "s"}, R"({"spec":{"replicas":5}})", "scale"));
    EXPECT_EQ(get_int(changed->json(), "spec.replicas"), 5) << name;
    EXPECT_EQ(get_int(changed->json(), "metadata.generation"), 2) << name;
  }
}

TEST_F(KindsTest, a_scale_is_read_as_one) {
  Key key{"default", "s"};
  ObjectPtr made = fixture.make(
      kDeployment, R"({"metadata":{"name":"s","namespace":"default"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},
      "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  Writer strict;
  strict.validation = FieldValidation::strict;
  struct Row {
    const char* scale;
    Code want;
  };
  for (const Row& row : {
           Row{"{}", Code::bad_request},
           Row{"[]", Code::bad_request},
           Row{R"({"metadata":{"name":"s"},"spec":"x"})", Code::bad_request},
           Row{R"({"metadata":{"name":"s"},"spec":{"replicas":"3"}})", Code::bad_request},
           Row{R"({"metadata":{"name":"s"},"spec":{"replicas":3.5}})", Code::bad_request},
           Row{R"({"metadata":{"name":"s"},"spec":{"replicas":99999999999}})", Code::bad_request},
           Row{R"({"metadata":{"name":"s"},"spec":{"replicas":-1}})", Code::invalid},
           Row{R"({"metadata":{"name":"s"},"spec":{"replicas":3,"colour":"red"}})", Code::bad_request},
           Row{R"({"metadata":{"name":"other"},"spec":{"replicas":3}})", Code::bad_request},
           Row{R"({"metadata":{"name":"s","namespace":"other"},"spec":{"replicas":3}})", Code::bad_request},
           Row{R"({"metadata":{"name":"s","uid":"other"},"spec":{"replicas":3}})", Code::conflict},
           Row{R"({"metadata":{"name":"s","resourceVersion":"1"},"spec":{"replicas":3}})", Code::conflict},
           Row{R"({"metadata":{"name":"s"},"kind":"Deployment","spec":{"replicas":3}})", Code::bad_request},
           Row{R"({"metadata":{"name":"s"},"apiVersion":"v7","spec":{"replicas":3}})", Code::bad_request},
       }) {
    auto put = fixture.registry().update(kDeployment, key, "scale", RegistryFixture::parse(row.scale), strict);
    ASSERT_FALSE(put) << row.scale;
    EXPECT_EQ(put.error().code(), row.want) << row.scale << put.error().text();
  }
  for (const char* patch :
       {R"({"spec":"x"})", R"({"spec":{"replicas":"3"}})", R"({"metadata":{"name":"other"}})", R"({"colour":"red"})"})
    EXPECT_FALSE(
        fixture.registry().patch(kDeployment, key, "scale", PatchType::merge, RegistryFixture::parse(patch), false, strict))
        << patch;
  EXPECT_EQ(MUST(fixture.registry().get(kDeployment, key))->revision(), made->revision()) << "nothing has happened";
  auto cleared = fixture.registry().patch(kDeployment, key, "scale", PatchType::strategic,
                                          RegistryFixture::parse(R"({"spec":{"$patch":"delete"}})"), false, strict);
  EXPECT_EQ(get_int(MUST(std::move(cleared)).object->json(), "spec.replicas", -1), 0);
}

TEST_F(KindsTest, debugging_containers_are_only_added_and_only_there) {
  fixture.make(kPod, R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  const char* debug =
      R"({"spec":{"containers":[{"name":"c","image":"other"}],"ephemeralContainers":[{"name":"d","image":"i"}]}})";
  ObjectPtr added = MUST(fixture.try_merge(kPod, {"default", "p"}, debug, "ephemeralcontainers"));
  EXPECT_EQ(get_array(added->json(), "spec.ephemeralContainers").size(), 1u);
  EXPECT_EQ(get_string(get_array(added->json(), "spec.containers")[0], "image"), "i");
  EXPECT_EQ(
      first_cause(fixture.try_merge(kPod, {"default", "p"}, R"({"spec":{"ephemeralContainers":[]}})", "ephemeralcontainers")),
      "spec.ephemeralContainers");
  EXPECT_EQ(first_cause(fixture.try_merge(kPod, {"default", "p"}, R"({"spec":{"ephemeralContainers":[]}})")), "spec");
}

TEST_F(KindsTest, amounts_change_by_resize_alone) {
  fixture.make(
      kPod,
      R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})");
  const char* more = R"({"spec":{"containers":[{"name":"c","image":"other","resources":{"requests":{"cpu":"2"}}}]}})";
  EXPECT_EQ(first_cause(fixture.try_merge(kPod, {"default", "p"}, more)), "spec");
  ObjectPtr resized = MUST(fixture.try_merge(kPod, {"default", "p"}, more, "resize"));
  const json::value& container = get_array(resized->json(), "spec.containers")[0];
  EXPECT_EQ(get_string(container, "resources.requests.cpu"), "2");
  EXPECT_EQ(get_string(container, "image"), "i");
  EXPECT_EQ(
      first_cause(fixture.try_merge(
          kPod, {"default", "p"},
          R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2","example.com/x":"1"},"limits":{"example.com/x":"1"}}}]}})",
          "resize")),
      "spec");
}

TEST_F(KindsTest, a_resize_changes_amounts_alone_and_those_of_the_pod_too) {
  const Key key{"default", "p"};
  fixture.make(kPod, R"({"metadata":{"name":"p","namespace":"default"},"spec":{"resources":{"requests":{"cpu":"3"}},
      "containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}},{"name":"d","image":"i"}]}})");
  ObjectPtr resized =
      MUST(fixture.try_merge(kPod, key, R"({"spec":{"nodeName":"n","resources":{"requests":{"cpu":"4"}}}})", "resize"));
  EXPECT_EQ(get_string(resized->json(), "spec.resources.requests.cpu"), "4");
  EXPECT_EQ(get_string(resized->json(), "spec.nodeName"), "");
  EXPECT_EQ(first_cause(fixture.try_merge(kPod, key, R"({"spec":{"containers":[{"name":"c","image":"i"}]}})", "resize")),
            "spec.containers");
  EXPECT_EQ(first_cause(fixture.try_merge(
                kPod, key, R"({"spec":{"containers":[{"name":"d","image":"i"},{"name":"c","image":"i"}]}})", "resize")),
            "spec.containers[0].name");
  json::value patch =
      MUST(parse_json(R"([{"op":"add","path":"/spec/containers/0/resizePolicy/0/restartPolicy","value":"RestartContainer"}])"));
  auto policy = fixture.registry().patch(kPod, key, "resize", PatchType::json, patch, false, {});
  ASSERT_FALSE(policy);
  EXPECT_NE(policy.error().text().find("only cpu and memory resources are mutable"), std::string::npos) << policy.error().text();
}

// Appends the JSON pointers of all values within a value.
void add_pointers(const json::value& value, const std::string& at, std::vector<std::string>& pointers) {
  if (!at.empty()) pointers.push_back(at);
  if (const json::object* object = value.if_object())
    for (const auto& pair : *object) add_pointers(pair.value(), at + "/" + std::string(pair.key()), pointers);
  if (const json::array* list = value.if_array())
    for (size_t i = 0; i < list->size(); ++i) add_pointers((*list)[i], at + "/" + std::to_string(i), pointers);
}

TEST_F(KindsTest, a_pod_may_be_sent_without_any_part_of_it) {
  ObjectPtr pod = fixture.make(kPod, R"({"metadata":{"name":"p","namespace":"default","labels":{"a":"b"}},"spec":{"nodeName":"n",
      "containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"}],"ports":[{"containerPort":80}],
        "resources":{"requests":{"cpu":"1"},"limits":{"memory":"1Gi"}},"volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "initContainers":[{"name":"s","image":"i","restartPolicy":"Always","resources":{"limits":{"cpu":"1"}}}],
      "volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"key":"k","operator":"Exists"}],
      "affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{},"topologyKey":"t"}]}}}})");
  std::vector<std::string> pointers;
  add_pointers(pod->json(), "", pointers);
  EXPECT_GT(pointers.size(), 60u);
  const std::pair<const char*, json::value> changes[] = {{"remove", nullptr}, {"replace", nullptr}, {"replace", json::object()}};
  Writer dry;
  dry.dry_run = true;
  for (std::string_view subresource : {"", "status", "resize", "ephemeralcontainers"}) {
    for (const std::string& pointer : pointers) {
      for (const auto& [op, value] : changes) {
        json::value patch = json::array{json::object{{"op", op}, {"path", pointer}, {"value", value}}};
        auto answer = fixture.registry().patch(kPod, {"default", "p"}, subresource, PatchType::json, patch, false, dry);
        EXPECT_TRUE(answer || answer.error().code() != Code::internal) << subresource << op << pointer;
      }
    }
  }
}

TEST_F(KindsTest, the_network_of_services_and_the_parts_are_known_from_the_start) {
  const Kind& networks = kind("networking.k8s.io/v1", "ServiceCIDR");
  ObjectPtr network = MUST(fixture.registry().get(networks, {"", "kubernetes"}));
  EXPECT_EQ(to_text(*find(network->json(), "spec")), R"({"cidrs":["10.96.0.0/16"]})");
  EXPECT_EQ(get_string(get_array(network->json(), "status.conditions")[0], "type"), "Ready");
  for (const char* part : {"scheduler", "controller-manager", "etcd-0"}) {
    ObjectPtr status = MUST(fixture.registry().get(kind("v1", "ComponentStatus"), {"", part}));
    EXPECT_EQ(get_string(get_array(status->json(), "conditions")[0], "status"), "True") << part;
  }
}

TEST_F(KindsTest, nodes_keep_the_status_that_they_are_made_with_and_what_identifies_them) {
  ObjectPtr node = fixture.make(
      kNode,
      R"({"metadata":{"name":"n"},"spec":{"podCIDRs":["10.42.1.0/24"],"providerID":"p"},"status":{"capacity":{"cpu":"2"}}})");
  EXPECT_EQ(get_string(node->json(), "status.capacity.cpu"), "2");
  for (const char* change : {R"({"spec":{"podCIDRs":["10.42.2.0/24"]}})", R"({"spec":{"providerID":"q"}})"}) {
    auto refused = fixture.try_merge(kNode, {"", "n"}, change);
    ASSERT_FALSE(refused) << change;
    EXPECT_EQ(refused.error().code(), Code::invalid) << change;
  }
  EXPECT_FALSE(fixture.try_make(kNode, R"({"metadata":{"name":"m"},"status":{"capacity":{"pods":"1500m"}}})"));
}

TEST_F(KindsTest, balancers_that_ask_each_node_get_a_port_for_it) {
  const std::string name = R"({"metadata":{"name":"s","namespace":"default"},)";
  ObjectPtr made =
      fixture.make(kService, name + R"("spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80}]}})");
  int64_t port = get_int(made->json(), "spec.healthCheckNodePort");
  EXPECT_GE(port, 30000);
  EXPECT_NE(port, get_int(get_array(made->json(), "spec.ports")[0], "nodePort"));
  ObjectPtr kept =
      MUST(fixture.try_merge(kService, {"default", "s"}, R"({"spec":{"healthCheckNodePort":null,"selector":{"a":"b"}}})"));
  EXPECT_EQ(get_int(kept->json(), "spec.healthCheckNodePort"), port);
  auto refused = fixture.try_merge(kService, {"default", "s"}, R"({"spec":{"healthCheckNodePort":32000}})");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("cannot change healthCheckNodePort"), std::string::npos) << refused.error().text();
  const std::string number = std::to_string(port);
  auto own = fixture.try_merge(kService, {"default", "s"}, R"({"spec":{"ports":[{"port":80,"nodePort":)" + number + "}]}}");
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().text(), "Service \"s\" is invalid: spec.ports[0].nodePort: Invalid value: " + number +
                                    ": provided port is already allocated");
  auto both = fixture.try_make(kService, R"({"metadata":{"name":"both","namespace":"default"},"spec":{"type":"LoadBalancer",
    "externalTrafficPolicy":"Local","healthCheckNodePort":30010,"ports":[{"port":80,"nodePort":30010}]}})");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().text(),
            "Internal error occurred: failed to allocate requested HealthCheck NodePort 30010: provided port "
            "is already allocated")
      << "in Kubernetes' words";
  std::string taken =
      R"({"metadata":{"name":"t","namespace":"default"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":)" +
      std::to_string(port) + "}]}}";
  EXPECT_FALSE(fixture.try_make(kService, taken));
  ObjectPtr whole = MUST(fixture.try_merge(kService, {"default", "s"}, R"({"spec":{"externalTrafficPolicy":"Cluster"}})"));
  EXPECT_EQ(find(whole->json(), "spec.healthCheckNodePort"), nullptr);
}

TEST_F(KindsTest, a_limit_range_needs_no_name) {
  auto make = [&](const char* more) {
    return fixture.make(kLimitRange, R"({"metadata":{"namespace":"default")" + std::string(more) +
                                         R"(},"spec":{"limits":[{"type":"Container","max":{"cpu":"2"}}]}})");
  };
  ObjectPtr nameless = make("");
  EXPECT_EQ(nameless->name(), nameless->uid());
  EXPECT_TRUE(fixture.registry().get(kLimitRange, {"default", nameless->name()}));
  EXPECT_NE(make("")->name(), nameless->name());
  EXPECT_EQ(make(R"(,"name":"mine")")->name(), "mine");
  EXPECT_TRUE(make(R"(,"generateName":"m-")")->name().starts_with("m-"));
}

TEST_F(KindsTest, the_systems_priorities_stay) {
  const Kind& classes = kind("scheduling.k8s.io/v1", "PriorityClass");
  if (!fixture.registry().get(classes, {"", "system-node-critical"})) {
    fixture.make(classes, R"({"metadata":{"name":"system-node-critical"},"value":2000001000})");
  }
  auto refused = fixture.registry().remove(classes, {"", "system-node-critical"}, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::forbidden);
}

}  // namespace
}  // namespace coracle::registry
