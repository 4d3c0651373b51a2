// SPDX-License-Identifier: Apache-2.0
// Objects from flags: the requests of create, run and expose.
#include "ctl/generate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ctl/name_hash.h"
#include "store/object/patch.h"
#include "tests/ctl/key_pair.h"

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
  std::string file = scratch("app.conf", "x=1\n");
  auto data = read_data({{"lit=a=b", "quoted=\"q\""}, {file, "renamed=" + file}, {}}, "ConfigMap", "c");
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(*data, (Data{{"lit", "a=b"}, {"quoted", "\"q\""}, {"app.conf", "x=1\n"}, {"renamed", "x=1\n"}}));
  ::setenv("GENERATE_TEST", "ours", 1);
  std::string env = scratch("vars.env", "# comment\nA=1\r\n\n B=two words \nEMPTY=\nGENERATE_TEST\n");
  data = read_data({{}, {}, {env}}, "ConfigMap", "c");
  ::unsetenv("GENERATE_TEST");
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(*data, (Data{{"A", "1"}, {"B", "two words "}, {"EMPTY", ""}, {"GENERATE_TEST", "ours"}}));
}

TEST(Generate, says_what_is_wrong_with_data) {
  struct Row {
    DataFlags flags;
    std::string want;
  };
  std::string wrong_env = scratch("wrong.env", "A=1\n1B=2\n"), directory = scratch("", "");
  for (const Row& row :
       std::vector<Row>{{{{"novalue"}, {}, {}}, "invalid literal source novalue, expected key=value"},
                        {{{"=x"}, {}, {}}, "invalid literal source =x, expected key=value"},
                        {{{}, {"/no/such/file"}, {}}, "error reading /no/such/file: no such file or directory"},
                        {{{}, {"a=b=c"}, {}}, "key names or file paths cannot contain '='"},
                        {{{}, {"=c"}, {}}, "key name for file path c missing"},
                        {{{}, {"c="}, {}}, "file path for key name c missing"},
                        {{{}, {"k=" + directory}, {}}, "cannot give a key name for a directory path"},
                        {{{"a=1"}, {}, {wrong_env}}, "from-env-file cannot be combined with from-file or from-literal"},
                        {{{}, {}, {directory}}, "env config file cannot be a directory"},
                        {{{"a=1", "a=2"}, {}, {}},
                         "cannot add key \"a\", another key by that name already exists in Data for ConfigMap \"c\""},
                        {{{"..=1"}, {}, {}}, "\"..\" is not a valid key name for a ConfigMap: must not be '..'"},
                        {{{"..a=1"}, {}, {}}, "\"..a\" is not a valid key name for a ConfigMap: must not start with '..'"}}) {
    auto data = read_data(row.flags, "ConfigMap", "c");
    EXPECT_EQ(data ? "no error" : data.error().text(), row.want);
  }
  auto variable = read_data({{}, {}, {wrong_env}}, "ConfigMap", "c");
  ASSERT_FALSE(variable);
  EXPECT_TRUE(variable.error().text().starts_with("\"1B\" is not a valid key name: a valid environment variable name must"))
      << variable.error().text();
  EXPECT_EQ(read_data({{"a=1", "a=2"}, {}, {}}, "Secret", "s").error().text(),
            "cannot add key a, another key by that name already exists");
  EXPECT_TRUE(
      read_data({{"a@=1"}, {}, {}}, "Secret", "s").error().text().starts_with("\"a@\" is not valid key name for a Secret a"));
}

TEST(Generate, hashes_as_kubectl) {
  auto hashed = [](json::value object) {
    append_hash(object);
    return std::string(get_string(object, "metadata.name"));
  };
  EXPECT_EQ(hashed(configmap_of("x", {{"a", "b"}, {"q", "\"z\""}})), "x-cckfd8dhb8");
  EXPECT_EQ(hashed(secret_of("x", "foo", {{"a", "b"}})), "x-cgkmm9287h");
  EXPECT_EQ(hashed(secret_of("x", "kubernetes.io/dockerconfigjson",
                             {{".dockerconfigjson", docker_config("https://index.docker.io/v1/", "u", "p", "e")}})),
            "x-fm4b2554t2");
  EXPECT_EQ(hashed(secret_of("x", "kubernetes.io/tls", {{"tls.crt", kCertificatePem}, {"tls.key", kKeyPem}})), "x-5fb4bt9mfd");
}

TEST(Generate, a_certificate_has_its_key) {
  std::string certificate = scratch("tls.crt", kCertificatePem), key = scratch("tls.key", kKeyPem),
              other = scratch("other.key", kOtherKeyPem), none = scratch("none", "x\n"),
              broken = scratch("broken.crt", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
  auto data = read_key_pair(certificate, key);
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(*data, (Data{{"tls.crt", kCertificatePem}, {"tls.key", kKeyPem}}));
  auto fault = [](const std::string& certificate_path, const std::string& key_path) {
    auto read = read_key_pair(certificate_path, key_path);
    return read ? "no error" : read.error().text();
  };
  EXPECT_EQ(fault(certificate, other), "tls: private key does not match public key");
  EXPECT_EQ(fault(none, key), "tls: failed to find any PEM data in certificate input");
  EXPECT_EQ(fault(certificate, none), "tls: failed to find any PEM data in key input");
  EXPECT_EQ(fault(certificate, certificate), "tls: found a certificate rather than a key in the PEM for the private key");
  EXPECT_EQ(fault(broken, key), "x509: malformed certificate");
  EXPECT_EQ(fault("/no/such", key), "Cannot read file /no/such, open /no/such: no such file or directory");
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
    "image":"registry:5000/team/nginx:1.27@sha256:00","command":["sh","-c","x"],"ports":[{"containerPort":80}],"resources":{}}]}},
    "strategy":{}},"status":{}})");
  json::value two = deployment_of({.name = "b", .images = {"busybox", "team/my-app:2"}, .port = 80});
  EXPECT_EQ(
      to_text(*find(two, "spec.template.spec.containers")),
      R"([{"name":"busybox","image":"busybox","ports":[{"containerPort":80}],"resources":{}},{"name":"my-app","image":"team/my-app:2","resources":{}}])");
}

TEST(Generate, names_after_images_with_dots_get_a_suffix) {
  json::value made = deployment_of({.name = "b", .images = {"team/my_app.x:2.1", "team/my_app.x:2.1", "a.b/c@sha256:00"}});
  const json::array& containers = get_array(made, "spec.template.spec.containers");
  ASSERT_EQ(containers.size(), 3);
  std::string first(get_string(containers[0], "name")), second(get_string(containers[1], "name"));
  for (const std::string& name : {first, second}) {
    EXPECT_TRUE(name.starts_with("my-app-x-")) << name;
    EXPECT_EQ(name.size(), std::string("my-app-x-12345").size()) << name;
    EXPECT_EQ(name.substr(9).find_first_not_of("bcdfghjklmnpqrstvwxz2456789"), name.npos) << name;
  }
  EXPECT_NE(first, second) << "5 of 27 letters: equal once in 14 million runs";
  EXPECT_EQ(get_string(containers[2], "name"), "c") << "dots of the registry and the digest do not count";
}

TEST(Generate, jobs_and_what_makes_them) {
  expect_json(
      job_of({.name = "j", .image = "busybox", .command = {"date"}}),
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"metadata":{},"spec":{"containers":[{"name":"j","image":"busybox","command":["date"],"resources":{}}],"restartPolicy":"Never"}}},"status":{}})");
  json::value cron = job_of({.name = "c", .image = "busybox", .schedule = "* * * * *"});
  expect_json(
      cron,
      R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{"schedule":"* * * * *","jobTemplate":{"metadata":{"name":"c"},
    "spec":{"template":{"metadata":{},"spec":{"containers":[{"name":"c","image":"busybox","resources":{}}],"restartPolicy":"OnFailure"}}}}},"status":{}})");
  make(cron, "metadata.uid") = "u";
  make(cron, "spec.jobTemplate.metadata.labels") = json::object{{"a", "b"}};
  expect_json(
      job_from(cron, "now"),
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"now","annotations":{"cronjob.kubernetes.io/instantiate":"manual"},"labels":{"a":"b"},
    "ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"c","uid":"u","controller":true}]},
    "spec":{"template":{"metadata":{},"spec":{"containers":[{"name":"c","image":"busybox","resources":{}}],"restartPolicy":"OnFailure"}}},"status":{}})");
}

TEST(Generate, budgets_and_quotas) {
  expect_json(
      *budget_of({.name = "b", .selector = "app=web,x=y", .max_unavailable = "50%"}),
      R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},"spec":{"selector":{"matchLabels":{"app":"web","x":"y"}},"maxUnavailable":"50%"},
    "status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}})");
  EXPECT_EQ(budget_of({.name = "b", .selector = "a=b", .min_available = "1x"}).error().text(),
            "invalid format specified for min-available");
  EXPECT_EQ(get_int(*budget_of({.name = "b", .selector = "a=b", .min_available = "2"}), "spec.minAvailable"), 2);
  EXPECT_EQ(budget_of({.name = "b", .min_available = "1"}).error().text(), "a selector must be specified");
  EXPECT_EQ(budget_of({.name = "b", .selector = "a=b"}).error().text(),
            "one of min-available or max-unavailable must be specified");
  EXPECT_EQ(budget_of({.name = "b", .selector = "a=b", .min_available = "1", .max_unavailable = "1"}).error().text(),
            "min-available and max-unavailable cannot be both specified");
  expect_json(
      *quota_of("q", "pods=2,cpu=1000m", "BestEffort"),
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"cpu":"1","pods":"2"},"scopes":["BestEffort"]},"status":{}})");
  EXPECT_EQ(quota_of("q", "cpu", "").error().text(), "Invalid argument syntax cpu, expected <resource>=<value>");
  EXPECT_TRUE(quota_of("q", "cpu=much", "").error().text().starts_with("quantities must match the regular expression"));
  EXPECT_EQ(quota_of("q", "", "a,").error().text(), "invalid resource quota scope \"\"");
  EXPECT_EQ(
      to_text(priority_class_of({.name = "p", .value = 3})),
      R"({"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{"name":"p"},"value":3,"preemptionPolicy":"PreemptLowerPriority"})");
}

TEST(Generate, services) {
  auto service = service_of({.name = "web", .type = "NodePort", .tcp = {"80:8080", "443:https"}, .node_port = 30080});
  ASSERT_TRUE(service);
  EXPECT_EQ(
      to_text(*service),
      R"({"kind":"Service","apiVersion":"v1","metadata":{"name":"web","labels":{"app":"web"}},"spec":{)"
      R"("ports":[{"name":"80-8080","protocol":"TCP","port":80,"targetPort":8080,"nodePort":30080},{"name":"443-https","protocol":"TCP","port":443,"targetPort":"https","nodePort":30080}],)"
      R"("selector":{"app":"web"},"type":"NodePort"},"status":{"loadBalancer":{}}})");
  EXPECT_EQ(get_string(get_array(*service_of({.name = "w", .tcp = {"53"}}), "spec.ports")[0], "name"), "53");
  struct Row {
    std::string port, want;
  };
  for (const Row& row : std::vector<Row>{{"x", "strconv.ParseUint: parsing \"x\": invalid syntax"},
                                         {"70000", "strconv.ParseUint: parsing \"70000\": value out of range"},
                                         {":80", "strconv.ParseUint: parsing \"\": invalid syntax"},
                                         {"80:70000", "must be between 1 and 65535, inclusive"},
                                         {"80:a_b", "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"},
                                         {"80:abcdefghijklmnopq", "must be no more than 15 characters"}})
    EXPECT_EQ(service_of({.name = "w", .tcp = {row.port}}).error().text(), row.want) << row.port;
  EXPECT_EQ(service_of({.name = "w"}).error().text(), "at least one tcp port specifier must be provided");
  EXPECT_TRUE(service_of({.name = "w", .cluster_ip = "None"}));
  EXPECT_TRUE(service_of({.name = "w", .type = "ExternalName", .external_name = "x.org"}));
  EXPECT_EQ(service_of({.name = "w", .type = "ExternalName", .external_name = "-x"}).error().text(),
            "invalid service external name -x");
}

TEST(Generate, pods_of_run) {
  PodFlags flags{
      .name = "p", .image = "busybox", .restart = "Never", .words = {"echo", "hi"}, .env = {"A=1=2"}, .labels = {"x=y"}};
  auto pod = pod_of(flags);
  ASSERT_TRUE(pod);
  expect_json(
      *pod,
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"x":"y"}},"spec":{"containers":[{"name":"p","image":"busybox","args":["echo","hi"],
    "env":[{"name":"A","value":"1=2"}],"resources":{}}],"restartPolicy":"Never","dnsPolicy":"ClusterFirst"},"status":{}})");
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
    "resources":{},"stdin":true,"stdinOnce":true,"tty":true}],"restartPolicy":"Always","dnsPolicy":"ClusterFirst"},"status":{}})");
  flags = {.name = "p", .image = "busybox", .overrides = R"({"spec":{"hostNetwork":true}})"};
  EXPECT_TRUE(get_bool(*pod_of(flags), "spec.hostNetwork"));
  EXPECT_FALSE(pod_of({.name = "p", .image = "i", .overrides = "{"}));
  flags.overrides = R"({"spec":{"containers":[{"name":"p","tty":true}]}})", flags.override_type = "strategic";
  EXPECT_EQ(get_string(get_array(*pod_of(flags), "spec.containers")[0], "image"), "busybox");
  flags.overrides = R"([{"op":"remove","path":"/status"}])", flags.override_type = "json";
  EXPECT_EQ(find(*pod_of(flags), "status"), nullptr);
  flags.override_type = "other";
  EXPECT_EQ(pod_of(flags).error().text(), "invalid override type: other");
  EXPECT_EQ(pod_of({.name = "p", .image = "i", .env = {"=x"}}).error().text(), "invalid env: =x");
  EXPECT_EQ(pod_of({.name = "p", .image = "i", .labels = {"x"}}).error().text(), "unexpected label spec: x");
  EXPECT_EQ(pod_of({.name = "p", .image = "i", .port = "http"}).error().text(), "strconv.Atoi: parsing \"http\": invalid syntax");
  expect_json(
      *run_service_of({.name = "p", .image = "i", .port = "80"}),
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"p"},"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":80}],
    "selector":{"run":"p"}},"status":{"loadBalancer":{}}})");
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
    "ports":[{"name":"port-1","port":80,"targetPort":80,"protocol":"TCP"},{"name":"port-2","port":53,"targetPort":53,"protocol":"UDP"}]},"status":{"loadBalancer":{}}})");
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
  EXPECT_EQ(ports_for({.port = "53"}), R"([{"protocol":"UDP","port":53,"targetPort":53}])") << "as the container has it";
  EXPECT_EQ(ports_for({.port = "53", .protocol = "TCP"}), R"([{"protocol":"TCP","port":53,"targetPort":53}])");
  EXPECT_EQ(
      ports_for({.port = "80,53", .target_port = "x"}),
      R"([{"name":"port-1","protocol":"TCP","port":80,"targetPort":"x"},{"name":"port-2","protocol":"UDP","port":53,"targetPort":"x"}])");
  json::value both = *parse_json(R"({"metadata":{"name":"p","labels":{"a":"b"}},
    "spec":{"containers":[{"ports":[{"containerPort":53},{"containerPort":53,"protocol":"UDP"}]}]}})");
  EXPECT_EQ(
      to_text(*find(*exposing_service_of(both, schema::catalog().of(kPod), {.port = "53"}), "spec.ports")),
      R"([{"name":"port-1-tcp","protocol":"TCP","port":53,"targetPort":53},{"name":"port-1-udp","protocol":"UDP","port":53,"targetPort":53}])");
  json::value bare = *parse_json(R"({"metadata":{"name":"p"},"spec":{"containers":[{}]}})");
  EXPECT_EQ(exposing_service_of(bare, schema::catalog().of(kPod), {.port = "80"}).error().text(),
            "couldn't retrieve selectors via --selector flag or introspection: the pod has no labels and cannot be exposed");
  json::value labelled = *parse_json(R"({"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[{}]}})");
  EXPECT_EQ(exposing_service_of(labelled, schema::catalog().of(kPod), {}).error().text(),
            "couldn't find port via --port flag or introspection");
  EXPECT_FALSE(exposing_service_of(labelled, schema::catalog().of(kPod), {.port = "http"}));
  service = exposing_service_of(labelled, schema::catalog().of(kPod),
                                {.port = "80",
                                 .type = "LoadBalancer",
                                 .external_ip = "1.2.3.4",
                                 .load_balancer_ip = "5.6.7.8",
                                 .session_affinity = "ClientIP",
                                 .overrides = R"({"spec":{"type":"NodePort"}})"});
  ASSERT_TRUE(service) << service.error().text();
  expect_json(
      *find(*service, "spec"),
      R"({"ports":[{"protocol":"TCP","port":80,"targetPort":80}],"selector":{"a":"b"},"type":"NodePort","externalIPs":["1.2.3.4"],
    "sessionAffinity":"ClientIP","loadBalancerIP":"5.6.7.8"})");
  EXPECT_EQ(exposing_service_of(labelled, schema::catalog().of(kPod), {.port = "80", .session_affinity = "x"}).error().text(),
            "unknown session affinity: x");
  EXPECT_EQ(exposing_service_of(labelled, schema::catalog().of(kConfigMap), {.port = "80"}).error().text(),
            "cannot expose a ConfigMap");
  service = exposing_service_of(labelled, schema::catalog().of(kPod), {.port = "70000"});
  ASSERT_TRUE(service) << "the server says what is wrong with it";
  EXPECT_EQ(to_text(*find(*service, "spec.ports")), R"([{"protocol":"TCP","port":70000,"targetPort":70000}])");
}

TEST(Generate, expose_says_which_objects_have_no_labels_to_select_by) {
  struct Row {
    const Kind& kind;
    const char* object;
    std::string want;
  };
  const std::string failing = "couldn't retrieve selectors via --selector flag or introspection: ";
  for (const Row& row : std::vector<Row>{
           {kService, R"({"spec":{}})", failing + "the service has no pod selector set"},
           {kService, R"({"spec":{"selector":{}}})", "selector must be specified"},
           {kReplicationController, R"({"spec":{}})", "selector must be specified"},
           {kDeployment, R"({"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}})",
            failing + "invalid deployment: no selectors, therefore cannot be exposed"},
           {kReplicaSet, R"({"spec":{}})", failing + "invalid replicaset: no selectors, therefore cannot be exposed"},
           {kDeployment,
            R"({"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"t","operator":"In","values":["x","y"]},
             {"key":"u","operator":"Exists"}]}}})",
            failing +
                "couldn't convert expressions - \"[{Key:t Operator:In Values:[x y]} {Key:u Operator:Exists Values:[]}]\" to "
                "map-based selector format"}}) {
    json::value object = *parse_json(row.object);
    auto service = exposing_service_of(object, schema::catalog().of(row.kind), {.port = "80"});
    ASSERT_FALSE(service) << row.object;
    EXPECT_EQ(service.error().text(), row.want);
    EXPECT_TRUE(exposing_service_of(object, schema::catalog().of(row.kind), {.port = "80", .selector = "a=b"}));
  }
}

}  // namespace
}  // namespace coracle::ctl
