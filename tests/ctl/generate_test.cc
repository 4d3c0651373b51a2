// SPDX-License-Identifier: Apache-2.0
// Objects from flags: the requests of create, run and expose.
#include "ctl/generate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/object/patch.h"

namespace coracle::ctl {
namespace {

void expect_json(const json::value& got, std::string_view want) {
  auto parsed = parse_json(want);
  ASSERT_TRUE(parsed) << want;
  EXPECT_TRUE(json_equal(got, *parsed)) << to_text(got) << "\nwant " << want;
}

struct Scratch {  // a temporary directory
  std::string path = testing::TempDir() + "/ctl-generate-" + std::to_string(::getpid());
  ~Scratch() { std::filesystem::remove_all(path); }
};

std::string scratch(const std::string& name, std::string_view text) {
  static const Scratch place;
  const std::string& directory = place.path;
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/" + name, std::ios::binary) << text;
  return directory + "/" + name;
}

TEST(Generate, configmaps_keep_text_and_bytes_apart) {
  expect_json(configmap_of("c", {{"a", "1"}, {"b", "\xff\xfe"}}),
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"},"binaryData":{"b":"//4="}})");
  expect_json(secret_of("s", "Opaque", {{"k", "v"}}),
              R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"dg=="},"type":"Opaque"})");
}

TEST(Generate, reads_data_from_all_sources) {
  std::string file = scratch("app.conf", "x=1\n"), env = scratch("vars.env", "# comment\nA=1\n\n B=two words \nEMPTY\n");
  auto data = read_data({{"lit=a=b", "quoted=\"q\""}, {file, "renamed=" + file}, {env}});
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(*data, (Data{{"lit", "a=b"},
                         {"quoted", "q"},
                         {"app.conf", "x=1\n"},
                         {"renamed", "x=1\n"},
                         {"A", "1"},
                         {"B", "two words"},
                         {"EMPTY", ""}}));
  for (const DataFlags& flags : {DataFlags{{"novalue"}, {}, {}}, DataFlags{{"=x"}, {}, {}}, DataFlags{{}, {"/no/such/file"}, {}},
                                 DataFlags{{"a=1", "a=2"}, {}, {}}})
    EXPECT_FALSE(read_data(flags));
  auto twice = read_data({{"a=1", "a=2"}, {}, {}});
  EXPECT_EQ(twice.error().text(), "the key \"a\" is given twice");
}

TEST(Generate, deployments_name_their_container_after_the_image) {
  json::value made = deployment_of({.name = "web",
                                    .images = {"registry:5000/team/nginx:1.27@sha256:00"},
                                    .command = {"sh", "-c", "x"},
                                    .replicas = 3,
                                    .port = 80});
  expect_json(
      made, R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":3,
    "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"nginx",
    "image":"registry:5000/team/nginx:1.27@sha256:00","command":["sh","-c","x"],"ports":[{"containerPort":80}]}]}}}})");
  json::value two = deployment_of({.name = "b", .images = {"busybox", "team/my_app.x:2"}, .port = 80});
  EXPECT_EQ(
      to_text(*find(two, "spec.template.spec.containers")),
      R"([{"name":"busybox","image":"busybox","ports":[{"containerPort":80}]},{"name":"my-app-x","image":"team/my_app.x:2"}])");
}

TEST(Generate, jobs_and_what_makes_them) {
  expect_json(
      job_of({.name = "j", .image = "busybox", .command = {"date"}}),
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"containers":[{"name":"j","image":"busybox","command":["date"]}],"restartPolicy":"Never"}}}})");
  json::value cron = job_of({.name = "c", .image = "busybox", .schedule = "* * * * *"});
  expect_json(
      cron,
      R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{"schedule":"* * * * *","jobTemplate":{"metadata":{"name":"c"},
    "spec":{"template":{"spec":{"containers":[{"name":"c","image":"busybox"}],"restartPolicy":"OnFailure"}}}}}})");
  make(cron, "metadata.uid") = "u";
  make(cron, "spec.jobTemplate.metadata.labels") = json::object{{"a", "b"}};
  expect_json(
      job_from(cron, "now"),
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"now","annotations":{"cronjob.kubernetes.io/instantiate":"manual"},"labels":{"a":"b"},
    "ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"c","uid":"u","controller":true}]},
    "spec":{"template":{"spec":{"containers":[{"name":"c","image":"busybox"}],"restartPolicy":"OnFailure"}}}})");
}

TEST(Generate, budgets_and_quotas) {
  expect_json(
      *budget_of({.name = "b", .selector = "app=web,x=y", .max_unavailable = "50%"}),
      R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},"spec":{"selector":{"matchLabels":{"app":"web","x":"y"}},"maxUnavailable":"50%"}})");
  EXPECT_EQ(get_int(*budget_of({.name = "b", .selector = "a=b", .min_available = "2"}), "spec.minAvailable"), 2);
  EXPECT_EQ(budget_of({.name = "b", .min_available = "1"}).error().text(), "a selector must be specified");
  EXPECT_EQ(budget_of({.name = "b", .selector = "a=b"}).error().text(),
            "one of min-available or max-unavailable must be specified");
  EXPECT_EQ(budget_of({.name = "b", .selector = "a=b", .min_available = "1", .max_unavailable = "1"}).error().text(),
            "min-available and max-unavailable cannot be both specified");
  expect_json(
      *quota_of("q", "cpu=1,pods=2", "BestEffort"),
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"cpu":"1","pods":"2"},"scopes":["BestEffort"]}})");
  EXPECT_FALSE(quota_of("q", "cpu", ""));
}

TEST(Generate, services) {
  auto service = service_of({.name = "web", .type = "NodePort", .tcp = {"80:8080", "443:https"}, .node_port = 30080});
  ASSERT_TRUE(service);
  expect_json(
      *service,
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"selector":{"app":"web"},"type":"NodePort",
    "ports":[{"name":"80-8080","port":80,"protocol":"TCP","targetPort":8080,"nodePort":30080},{"name":"443-https","port":443,"protocol":"TCP","targetPort":"https","nodePort":30080}]}})");
  EXPECT_EQ(get_string(get_array(*service_of({.name = "w", .tcp = {"53"}}), "spec.ports")[0], "name"), "53");
  for (const char* port : {"x", "0", "70000", ":80", "80x:1"}) EXPECT_FALSE(service_of({.name = "w", .tcp = {port}})) << port;
  EXPECT_FALSE(service_of({.name = "w"}));
  EXPECT_TRUE(service_of({.name = "w", .cluster_ip = "None"}));
  EXPECT_TRUE(service_of({.name = "w", .type = "ExternalName", .external_name = "x.org"}));
}

TEST(Generate, pods_of_run) {
  PodFlags flags{
      .name = "p", .image = "busybox", .restart = "Never", .words = {"echo", "hi"}, .env = {"A=1=2"}, .labels = {"x=y"}};
  auto pod = pod_of(flags);
  ASSERT_TRUE(pod);
  expect_json(
      *pod,
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"x":"y"}},"spec":{"containers":[{"name":"p","image":"busybox","args":["echo","hi"],
    "env":[{"name":"A","value":"1=2"}]}],"restartPolicy":"Never"}})");
  flags = {.name = "p",
           .image = "busybox",
           .words = {"sh"},
           .words_are_command = true,
           .use_stdin = true,
           .stdin_once = true,
           .tty = true};
  expect_json(
      *pod_of(flags),
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"run":"p"}},"spec":{"containers":[{"name":"p","image":"busybox","command":["sh"],
    "stdin":true,"stdinOnce":true,"tty":true}],"restartPolicy":"Always"}})");
  flags = {.name = "p", .image = "busybox", .overrides = R"({"spec":{"hostNetwork":true}})"};
  EXPECT_TRUE(get_bool(*pod_of(flags), "spec.hostNetwork"));
  EXPECT_FALSE(pod_of({.name = "p", .image = "i", .overrides = "{"}));
  EXPECT_EQ(pod_of({.name = "p", .image = "i", .env = {"=x"}}).error().text(), "--env: expected KEY=VALUE, got \"=x\"");
}

TEST(Generate, expose_finds_labels_and_ports) {
  const auto& deployments = schema::catalog().of(kDeployment);
  json::value deployment =
      *parse_json(R"({"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"selector":{"matchLabels":{"app":"web"}},
    "template":{"spec":{"containers":[{"ports":[{"containerPort":80},{"containerPort":53,"protocol":"UDP"}]}]}}}})");
  auto service = exposing_service_of(deployment, deployments, {});
  ASSERT_TRUE(service);
  expect_json(
      *service,
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"selector":{"app":"web"},
    "ports":[{"name":"port-1","port":80,"targetPort":80,"protocol":"TCP"},{"name":"port-2","port":53,"targetPort":53,"protocol":"UDP"}]}})");
  service = exposing_service_of(
      deployment, deployments, {.name = "api", .port = "443", .target_port = "https", .type = "NodePort", .selector = "a=b,c=d"});
  ASSERT_TRUE(service);
  expect_json(*find(*service, "spec"),
              R"({"selector":{"a":"b","c":"d"},"ports":[{"port":443,"protocol":"TCP","targetPort":"https"}],"type":"NodePort"})");
  json::value controller = *parse_json(R"({"metadata":{"name":"old"},"spec":{"selector":{"app":"old"},
    "template":{"spec":{"containers":[{"ports":[{"containerPort":80}]}]}}}})");
  service = exposing_service_of(controller, schema::catalog().of(kReplicationController), {});
  ASSERT_TRUE(service);
  expect_json(*find(*service, "spec.selector"), R"({"app":"old"})");
  auto ports_for = [&](const ExposeFlags& flags) {
    return to_text(*find(*exposing_service_of(deployment, deployments, flags), "spec.ports"));
  };
  EXPECT_EQ(ports_for({.port = "53"}), R"([{"port":53,"protocol":"UDP","targetPort":53}])") << "as the container has it";
  EXPECT_EQ(ports_for({.port = "53", .protocol = "TCP"}), R"([{"port":53,"protocol":"TCP","targetPort":53}])");
  EXPECT_EQ(
      ports_for({.port = "80,53", .target_port = "x"}),
      R"([{"port":80,"protocol":"TCP","name":"port-1","targetPort":"x"},{"port":53,"protocol":"UDP","name":"port-2","targetPort":"x"}])");
  json::value both = *parse_json(R"({"metadata":{"name":"p","labels":{"a":"b"}},
    "spec":{"containers":[{"ports":[{"containerPort":53},{"containerPort":53,"protocol":"UDP"}]}]}})");
  EXPECT_EQ(
      to_text(*find(*exposing_service_of(both, schema::catalog().of(kPod), {.port = "53"}), "spec.ports")),
      R"([{"port":53,"protocol":"TCP","name":"port-1-tcp","targetPort":53},{"port":53,"protocol":"UDP","name":"port-1-udp","targetPort":53}])");
  json::value bare = *parse_json(R"({"metadata":{"name":"p"},"spec":{"containers":[{}]}})");
  EXPECT_EQ(exposing_service_of(bare, schema::catalog().of(kPod), {.port = "80"}).error().text(),
            "cannot expose pod/p: it has no labels to select pods by");
  json::value labelled = *parse_json(R"({"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[{}]}})");
  EXPECT_EQ(exposing_service_of(labelled, schema::catalog().of(kPod), {}).error().text(),
            "couldn't find port via --port flag or introspection");
  EXPECT_FALSE(exposing_service_of(labelled, schema::catalog().of(kPod), {.port = "http"}));
}

}  // namespace
}  // namespace coracle::ctl
