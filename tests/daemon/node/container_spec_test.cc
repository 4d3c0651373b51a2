// SPDX-License-Identifier: Apache-2.0
// From Kubernetes containers to the runtime's specification, and the resources that pods request, by value.
#include "daemon/node/container_spec.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/node/images.h"
#include "daemon/node/resources.h"
#include "runtime/base/text.h"
#include "tests/daemon/parsed.h"

namespace coracle::node {
namespace {

using Strings = std::vector<std::string>;

struct Made {
  runtime::ContainerSpec spec;
  std::string error;
};
Made spec_of(std::string_view container, std::string_view pod_spec = "{}", ContainerInputs inputs = {}) {
  json::value pod = parsed(std::string(R"({"metadata":{"namespace":"shop","name":"web"},"spec":)") + std::string(pod_spec) + "}");
  json::value value = parsed(container);
  make(pod, "spec.containers") = json::array{value};
  if (inputs.image.id.empty()) inputs.image.id = "sha256:1";
  auto made = make_container_spec(pod, get_array(pod, "spec.containers")[0], inputs);
  if (!made) return {{}, made.error().text()};
  return {*std::move(made), ""};
}
bool holds(const Strings& list, const std::string& item) { return std::find(list.begin(), list.end(), item) != list.end(); }

TEST(ContainerSpec, command) {
  struct Row {
    const char *name, *container;
    Strings entrypoint, cmd, want;
  };
  for (const Row& row : {Row{"the image's", R"({"name":"a"})", {"/e"}, {"c"}, {"/e", "c"}},
                         Row{"args replace cmd", R"({"name":"a","args":["x"]})", {"/e"}, {"c"}, {"/e", "x"}},
                         Row{"command replaces both", R"({"name":"a","command":["/k"]})", {"/e"}, {"c"}, {"/k"}},
                         Row{"command and args",
                             R"json({"name":"a","command":["/k"],"args":["$(V)","$(W)","$$(V)"]})json",
                             {"/e"},
                             {"c"},
                             {"/k", "1", "$(W)", "$(V)"}}}) {
    ContainerInputs inputs;
    inputs.image.config.entrypoint = row.entrypoint;
    inputs.image.config.cmd = row.cmd;
    inputs.environment = {{"V", "1"}};
    EXPECT_EQ(spec_of(row.container, "{}", inputs).spec.spec.process.args, row.want) << row.name;
  }
  EXPECT_NE(spec_of(R"({"name":"a"})").error.find("no command specified"), std::string::npos);
}

TEST(ContainerSpec, environment_of_the_image_yields) {
  ContainerInputs inputs;
  inputs.image.config.env = {"PATH=/own", "A=image"};
  inputs.environment = {{"A", "pod"}};
  inputs.host_name = "web";
  auto env = spec_of(R"({"name":"a","command":["x"]})", "{}", inputs).spec.spec.process.env;
  EXPECT_EQ(env, (Strings{"A=pod", "HOME=/", "HOSTNAME=web", "PATH=/own"}));
}

TEST(ContainerSpec, home_is_the_users_unless_somebody_says_otherwise) {
  ContainerInputs inputs;
  inputs.user.home = "/root";
  const char* container = R"({"name":"a","command":["x"]})";
  EXPECT_TRUE(holds(spec_of(container, "{}", inputs).spec.spec.process.env, "HOME=/root"));
  inputs.image.config.env = {"HOME=/image"};
  EXPECT_TRUE(holds(spec_of(container, "{}", inputs).spec.spec.process.env, "HOME=/image"));
  inputs.environment = {{"HOME", "/pod"}};
  EXPECT_TRUE(holds(spec_of(container, "{}", inputs).spec.spec.process.env, "HOME=/pod"));
}

TEST(ContainerSpec, capabilities) {
  struct Row {
    const char* context;
    Strings want;
  };
  for (const Row& row :
       {Row{"{}", {"CAP_CHOWN", "CAP_NET_RAW", "CAP_SETUID"}}, Row{R"({"capabilities":{"drop":["ALL"]}})", {}},
        Row{R"({"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}})", {"CAP_NET_BIND_SERVICE"}},
        Row{R"({"capabilities":{"drop":["net_raw"],"add":["SYS_TIME"]}})", {"CAP_CHOWN", "CAP_SETUID", "CAP_SYS_TIME"}},
        Row{R"({"capabilities":{"drop":["ALL"],"add":["SYS_TIME","NONE_SUCH","NOR_THIS"]}})",
            {"CAP_SYS_TIME", "CAP_NONE_SUCH"}}}) {
    auto made = spec_of(std::string(R"({"name":"a","command":["x"],"securityContext":)") + row.context + "}").spec;
    auto& capabilities = *made.spec.process.capabilities;
    EXPECT_EQ(capabilities.bounding, row.want) << row.context;
    EXPECT_EQ(capabilities.effective, row.want);
    EXPECT_TRUE(capabilities.inheritable.empty());
    EXPECT_TRUE(capabilities.ambient.empty());
  }
  auto all = spec_of(R"({"name":"a","command":["x"],"securityContext":{"capabilities":{"add":["ALL"],"drop":["SYS_ADMIN"]}}})")
                 .spec.spec.process.capabilities->bounding;
  EXPECT_TRUE(holds(all, "CAP_SYS_TIME"));
  EXPECT_FALSE(holds(all, "CAP_SYS_ADMIN"));
}

TEST(ContainerSpec, privileges) {
  auto plain = spec_of(R"({"name":"a","command":["x"]})").spec.spec;
  EXPECT_TRUE(plain.linux_.seccomp);
  EXPECT_FALSE(plain.process.no_new_privileges);
  EXPECT_FALSE(plain.linux_.masked_paths.empty());
  auto strict =
      spec_of(
          R"({"name":"a","command":["x"],"securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true}})")
          .spec.spec;
  EXPECT_TRUE(strict.process.no_new_privileges);
  EXPECT_TRUE(strict.root.readonly);
  auto unconfined =
      spec_of(R"({"name":"a","command":["x"],"securityContext":{"seccompProfile":{"type":"Unconfined"},"procMount":"Unmasked"}})")
          .spec.spec;
  EXPECT_FALSE(unconfined.linux_.seccomp);
  EXPECT_TRUE(unconfined.linux_.masked_paths.empty());
  auto privileged = spec_of(R"({"name":"a","command":["x"],"securityContext":{"privileged":true}})").spec.spec;
  EXPECT_FALSE(privileged.linux_.seccomp);
  EXPECT_TRUE(privileged.linux_.readonly_paths.empty());
  EXPECT_TRUE(holds(privileged.process.capabilities->bounding, "CAP_SYS_ADMIN"));
  EXPECT_TRUE(privileged.linux_.resources.devices.at(0).allow);
  auto sys = std::find_if(privileged.mounts.begin(), privileged.mounts.end(), [](auto& m) { return m.destination == "/sys"; });
  EXPECT_TRUE(holds(sys->options, "rw"));
}

TEST(ContainerSpec, a_missing_or_empty_local_seccomp_profile_is_refused) {
  const char* container =
      R"({"name":"a","command":["x"],"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"p.json"}}})";
  EXPECT_NE(spec_of(container).error.find("missing or empty"), std::string::npos);
  ContainerInputs inputs;
  inputs.local_seccomp = json::object{};
  EXPECT_FALSE(spec_of(container, "{}", inputs).error.empty());
  inputs.local_seccomp = json::object{{"defaultAction", "SCMP_ACT_ALLOW"}};
  EXPECT_EQ(get_string(*spec_of(container, "{}", inputs).spec.spec.linux_.seccomp, "defaultAction"), "SCMP_ACT_ALLOW");
}

TEST(ContainerSpec, user_and_groups) {
  ContainerInputs inputs;
  inputs.user = {.uid = 7, .gid = 8, .additional_gids = {9}};
  auto user = spec_of(R"({"name":"a","command":["x"]})",
                      R"({"securityContext":{"runAsGroup":100,"fsGroup":200,"supplementalGroups":[300,9]}})", inputs)
                  .spec.spec.process.user;
  EXPECT_EQ(user.uid, 7u);
  EXPECT_EQ(user.gid, 100u);
  EXPECT_EQ(user.additional_gids, (std::vector<uint32_t>{9, 100, 300, 200}));
  user = spec_of(R"({"name":"a","command":["x"]})", R"({"securityContext":{"supplementalGroupsPolicy":"Strict","fsGroup":200}})",
                 inputs)
             .spec.spec.process.user;
  EXPECT_EQ(user.additional_gids, (std::vector<uint32_t>{8, 200}));
}

// With a comparison of each with each other one, these took minutes of a worker whenever the container is tried.
TEST(ContainerSpec, very_many_groups_and_capabilities_cost_little) {
  constexpr int kMany = 300'000;
  std::string groups, capabilities;
  for (int i = 0; i < kMany; ++i) {
    groups += (i ? "," : "") + std::to_string(i);
    capabilities += (i ? ",\"C" : "\"C") + std::to_string(i) + '"';
  }
  Made made = spec_of(R"({"name":"a","command":["x"],"securityContext":{"capabilities":{"add":[)" + capabilities + "]}}}",
                      R"({"securityContext":{"supplementalGroups":[)" + groups + "]}}");
  EXPECT_EQ(made.spec.spec.process.user.additional_gids.size(), size_t(kMany)) << made.error;
  EXPECT_EQ(made.spec.spec.process.capabilities->bounding.back(), "CAP_C0") << "the first of them is refused";
}

TEST(ContainerSpec, run_as_non_root_is_decided_on_the_final_uid) {
  ContainerInputs root, other;
  other.user.uid = 1000;
  const char* pod = R"({"securityContext":{"runAsNonRoot":true}})";
  EXPECT_NE(spec_of(R"({"name":"a","command":["x"]})", pod, root).error.find("runAsNonRoot"), std::string::npos);
  EXPECT_EQ(spec_of(R"({"name":"a","command":["x"]})", pod, other).error, "");
  EXPECT_EQ(spec_of(R"({"name":"a","command":["x"],"securityContext":{"runAsNonRoot":false}})", pod, root).error, "");
}

TEST(ContainerSpec, which_user_is_asked_for) {
  runtime::ImageConfig image;
  image.user = "nobody";
  EXPECT_EQ(user_of(parsed("{}"), parsed("{}"), image), "nobody");
  EXPECT_EQ(user_of(parsed(R"({"spec":{"securityContext":{"runAsUser":5}}})"), parsed("{}"), image), "5");
  EXPECT_EQ(
      user_of(parsed(R"({"spec":{"securityContext":{"runAsUser":5}}})"), parsed(R"({"securityContext":{"runAsUser":0}})"), image),
      "0");
}

TEST(ContainerSpec, mounts_of_the_pod_stand_for_the_defaults) {
  ContainerInputs inputs;
  auto fd = std::make_shared<const Fd>();
  inputs.volumes = {{"/data/deep", fd, true, false, ""},
                    {"/data", fd, false, false, "HostToContainer"},
                    {"/dev/shm", fd, false, false, "None"},
                    {"/etc/hosts", fd, true, false, ""}};
  inputs.files = {{"/etc/hosts", "/state/hosts"}, {"/etc/resolv.conf", "/state/resolv"}};
  inputs.shared_memory_dir = "/state/shm";
  auto mounts = spec_of(R"({"name":"a","command":["x"]})", "{}", inputs).spec.spec.mounts;
  Strings order;
  for (auto& mount : mounts) order.push_back(mount.destination + (mount.source.starts_with("/state") ? "!" : ""));
  EXPECT_EQ(order, (Strings{"/proc", "/sys", "/data", "/data/deep", "/dev/shm", "/etc/hosts", "/etc/resolv.conf!"}));
  EXPECT_EQ(mounts[2].options, (Strings{"rbind", "rslave", "rw"}));
  EXPECT_EQ(mounts[3].options, (Strings{"rbind", "rprivate", "ro"}));
}

TEST(ContainerSpec, with_users_of_its_own_what_is_on_disks_is_id_mapped) {
  ContainerInputs inputs;
  auto fd = std::make_shared<const Fd>();
  inputs.volumes = {{"/disk", fd, false, false, "", "d", true}, {"/memory", fd, false, false, "", "m", false}};
  inputs.files = {{"/etc/hosts", "/state/hosts"}};
  auto options = [&](const char* pod, const std::string& destination) {
    for (auto& mount : spec_of(R"({"name":"a","command":["x"]})", pod, inputs).spec.spec.mounts)
      if (mount.destination == destination) return mount.options;
    return Strings{"absent"};
  };
  const char* own = R"({"hostUsers":false})";
  EXPECT_EQ(options(own, "/disk"), (Strings{"rbind", "idmap", "rprivate", "rw"}));
  EXPECT_EQ(options(own, "/memory"), (Strings{"rbind", "rprivate", "rw"}));
  EXPECT_EQ(options(own, "/etc/hosts"), (Strings{"bind", "rprivate", "rw", "idmap"}));
  EXPECT_EQ(options(R"({"hostUsers":true})", "/etc/hosts"), (Strings{"bind", "rprivate", "rw"}));
}

TEST(ContainerSpec, with_users_of_its_own_some_things_cannot_be) {
  ContainerInputs inputs;
  inputs.user.uid = 65535;
  const char *own = R"({"hostUsers":false})", *container = R"({"name":"a","command":["x"]})";
  EXPECT_EQ(spec_of(container, own, inputs).error, "");
  inputs.user.uid = 65536;
  EXPECT_EQ(spec_of(container, own, inputs).error,
            "id 65536 of container a is outside of its pod's user namespace: with hostUsers false ids are 0 to 65535");
  EXPECT_EQ(spec_of(container, "{}", inputs).error, "");
  inputs.user.uid = 0;
  EXPECT_NE(spec_of(container, R"({"hostUsers":false,"securityContext":{"fsGroup":70000}})", inputs).error, "");
  inputs.volumes = {{"/x", std::make_shared<const Fd>(), false, false, "Bidirectional", "v", true}};
  EXPECT_EQ(spec_of(container, own, inputs).error,
            "mountPropagation Bidirectional of volume \"v\" needs the host's users: with "
            "hostUsers false nothing is mounted for the host");
  EXPECT_EQ(spec_of(container, "{}", inputs).error, "");
}

TEST(StopSignal, is_the_containers_or_the_images) {
  runtime::ImageConfig image;
  EXPECT_EQ(stop_signal_of(parsed("{}"), image), "SIGTERM");
  image.stop_signal = "SIGQUIT";
  EXPECT_EQ(stop_signal_of(parsed("{}"), image), "SIGQUIT");
  EXPECT_EQ(stop_signal_of(parsed(R"({"lifecycle":{"stopSignal":"SIGUSR1"}})"), image), "SIGUSR1");
  image.stop_signal = "nonsense";
  EXPECT_EQ(stop_signal_of(parsed("{}"), image), "SIGTERM");
}

TEST(SandboxSpec, is_made_of_the_pod) {
  json::value pod = parsed(
      R"({"metadata":{"namespace":"shop","name":"web"},"spec":{"shareProcessNamespace":true,"subdomain":"s","setHostnameAsFQDN":true,
    "securityContext":{"sysctls":[{"name":"net/ipv4/tcp_syncookies","value":"0"}]},"containers":[{"name":"a"}]}})");
  auto spec = make_sandbox_spec(pod, "u-1", "mark", "cluster.local", 100);
  EXPECT_EQ(spec.id, "u-1");
  EXPECT_EQ(spec.hostname, "web.s.shop.svc.cluster.local");
  EXPECT_TRUE(spec.share_process_namespace);
  EXPECT_EQ(spec.sysctl["net.ipv4.tcp_syncookies"], "0");
  EXPECT_EQ(spec.resources.pids_limit, 100);
  EXPECT_EQ(spec.cgroup_class, "besteffort");
  make(pod, "spec.hostNetwork") = true;
  EXPECT_TRUE(make_sandbox_spec(pod, "u", "", "c", 0).hostname.empty());
}

TEST(ContainerSpec, what_the_image_writes_to_stays_writable_under_a_read_only_root) {
  ContainerInputs inputs;
  inputs.image.config.cmd = {"/x"};
  inputs.image.config.volumes = {"/data", "var//lib/x/", "/mounted", "/proc/x", "/dev", "/", "/data"};
  inputs.volumes = {{.destination = "/mounted"}, {.destination = "/data/inner"}};
  auto kept = [&](bool read_only) {
    json::value container = parsed(R"({"name":"a","securityContext":{}})");
    make(container, "securityContext.readOnlyRootFilesystem") = read_only;
    auto made = make_container_spec(parsed(R"({"spec":{}})"), container, inputs);
    std::string places;
    for (const auto& mount : made->spec.mounts)
      if (mount.of_root || mount.destination == "/data/inner") places += mount.destination + " ";
    return places;
  };
  EXPECT_EQ(kept(true), "/data /data/inner /var/lib/x ");
  EXPECT_EQ(kept(false), "/data/inner ");
}

TEST(Resources, in_the_kernels_units) {
  auto resources = container_resources(
      parsed("{}"), parsed(R"({"resources":{"limits":{"cpu":"250m","memory":"64Mi"},"requests":{"cpu":"100m"}}})"),
      {.memory = true});
  EXPECT_EQ(resources.cpu_shares, 102u);
  EXPECT_EQ(resources.cpu_quota_us, 25000);
  EXPECT_EQ(resources.cpu_period_us, 100000u);
  EXPECT_EQ(resources.memory_limit_bytes, 64 << 20);
  EXPECT_EQ(resources.unified["memory.oom.group"], "1");
  EXPECT_EQ(resources.memory_swap_bytes, 64 << 20);
  auto none = container_resources(parsed("{}"), parsed("{}"), {});
  EXPECT_EQ(none.cpu_shares, 2u);
  EXPECT_FALSE(none.cpu_quota_us || none.memory_limit_bytes);
  EXPECT_TRUE(none.unified.empty());
  EXPECT_EQ(container_resources(parsed("{}"), parsed("{}"), {.memory = true}).unified["memory.swap.max"], "0")
      << "no swap, as kubelet has it";
}

TEST(Resources, of_a_pod_as_a_whole) {
  json::value pod = parsed(
      R"({"spec":{"resources":{"requests":{"cpu":"100m","memory":"2Gi"},"limits":{"cpu":"200m","memory":"2Gi"}},"containers":[
         {"name":"a","resources":{"requests":{"memory":"1Gi"},"limits":{"memory":"1Gi"}}},{"name":"b"}]}})");
  auto container = [&](size_t i) -> const json::value& { return get_array(pod, "spec.containers")[i]; };
  EXPECT_EQ(qos_of(pod), QosClass::burstable);
  EXPECT_EQ(container_resources(pod, container(0), {}).memory_limit_bytes, 1 << 30);
  EXPECT_EQ(container_resources(pod, container(1), {}).memory_limit_bytes, int64_t(2) << 30);
  EXPECT_EQ(container_resources(pod, container(1), {}).cpu_quota_us, 20000);
  EXPECT_EQ(oom_score_adj(pod, container(0), Bytes(int64_t(4) << 30)), 625) << "1 Gi of its own, half of what is left";
  EXPECT_EQ(oom_score_adj(pod, container(1), Bytes(int64_t(4) << 30)), 875);
  make(pod, "spec.resources.limits.cpu") = "100m";
  EXPECT_EQ(qos_of(pod), QosClass::guaranteed);
  EXPECT_EQ(oom_score_adj(pod, container(1), Bytes(int64_t(4) << 30)), -997);
}

TEST(Resources, of_the_pod) {
  json::value pod = parsed(
      R"({"spec":{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"3"}}},{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"100m"}}}],
    "containers":[{"name":"a","resources":{"requests":{"cpu":"1"},"limits":{"memory":"1Gi"}}},{"name":"b","resources":{"requests":{"cpu":"500m"}}}]}})");
  EXPECT_EQ(pod_request(pod, "cpu").milli_value(), 3000);  // the init container's request is the largest
  EXPECT_EQ(pod_request(pod, "memory").value(), 1 << 30);  // a limit implies a request
  EXPECT_FALSE(pod_resources(pod, 0).memory_limit_bytes);  // one container has no limit
}

TEST(Resources, what_an_empty_dir_in_memory_may_hold) {
  struct Row {
    const char *size_limit, *first, *second, *of_pod, *allocatable;
    int64_t want_mib;
  };
  for (const Row& row :
       {Row{"", "", "", "", R"("1Gi")", 1024}, Row{R"("64Mi")", "", "", "", R"("1Gi")", 64},
        Row{R"("2Gi")", "", "", "", R"("1Gi")", 1024}, Row{R"("0")", "", "", "", R"("1Gi")", 1024},
        Row{"33554432", "", "", "", R"("1Gi")", 32}, Row{"", R"("100Mi")", R"("28Mi")", "", R"("1Gi")", 128},
        Row{R"("64Mi")", R"("100Mi")", R"("28Mi")", "", R"("1Gi")", 64},
        Row{R"("200Mi")", R"("100Mi")", R"("28Mi")", "", R"("1Gi")", 128},
        Row{"", R"("100Mi")", "", "", R"("1Gi")", 1024},  // one of them has no limit
        Row{"", R"("100Mi")", "", R"("300Mi")", R"("1Gi")", 300}, Row{"", R"("3Gi")", R"("1Gi")", "", R"("1Gi")", 1024},
        Row{"", "", "", "", "null", 0}, Row{R"("64Mi")", "", "", "", "null", 64}}) {
    auto limits = [](const char* memory) {
      return *memory ? R"(,"resources":{"limits":{"memory":)" + std::string(memory) + "}}" : std::string();
    };
    json::value pod = parsed(R"({"spec":{"containers":[{"name":"a")" + limits(row.first) + R"(},{"name":"b")" +
                             limits(row.second) + "}]" + limits(row.of_pod) + "}}");
    std::string bound = *row.size_limit ? R"(,"sizeLimit":)" + std::string(row.size_limit) : "";
    json::value volume = parsed(R"({"name":"v","emptyDir":{"medium":"Memory")" + bound + "}}");
    json::value allocatable = parsed(R"({"memory":)" + std::string(row.allocatable) + "}");
    EXPECT_EQ(memory_volume_size(pod, volume, allocatable.get_object()).count, row.want_mib << 20)
        << to_text(pod) << to_text(volume) << row.allocatable;
  }
}

TEST(Resources, quality_of_service) {
  struct Row {
    const char* containers;
    QosClass qos;
    int score;
  };
  for (const Row& row :
       {Row{R"([{"name":"a"}])", QosClass::best_effort, 1000},
        Row{R"([{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}])", QosClass::guaranteed, -997},
        Row{R"([{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"512Mi"}}}])",
            QosClass::burstable, 875},
        Row{R"([{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}},{"name":"b"}])", QosClass::burstable, 750},
        Row{R"([{"name":"a","resources":{"requests":{"memory":"4Gi"}}}])", QosClass::burstable, 3}}) {
    json::value pod = parsed(std::string(R"({"spec":{"containers":)") + row.containers + "}}");
    EXPECT_EQ(qos_of(pod), row.qos) << row.containers;
    EXPECT_EQ(oom_score_adj(pod, get_array(pod, "spec.containers")[0], Bytes(int64_t(4) << 30)), row.score) << row.containers;
  }
}

TEST(Resources, sysctls) {
  struct Row {
    const char* spec;
    bool refused;
  };
  for (const Row& row :
       {Row{R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_syncookies","value":"1"}]}})", false},
        Row{R"({"securityContext":{"sysctls":[{"name":"kernel.core_pattern","value":"|x"}]}})", true},
        Row{R"({"hostNetwork":true,"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_syncookies","value":"1"}]}})", true},
        Row{R"({"hostIPC":true,"securityContext":{"sysctls":[{"name":"kernel.shm_rmid_forced","value":"1"}]}})", true}}) {
    auto refusal = refuse_sysctls(parsed(std::string(R"({"spec":)") + row.spec + "}"));
    EXPECT_EQ(refusal.has_value(), row.refused) << row.spec;
    EXPECT_EQ(refusal ? refusal->reason : "", row.refused ? "SysctlForbidden" : "") << row.spec;
  }
}

TEST(PullPolicy, by_field_tag_and_place) {
  struct Row {
    const char* container;
    PullPolicy want;
  };
  for (const Row& row : {Row{R"({"image":"web:1"})", PullPolicy::if_not_present}, Row{R"({"image":"web"})", PullPolicy::always},
                         Row{R"({"image":"r:5000/web"})", PullPolicy::always},
                         Row{R"({"image":"web:latest","imagePullPolicy":"IfNotPresent"})", PullPolicy::if_not_present},
                         Row{R"({"image":"web@sha256:1"})", PullPolicy::if_not_present},
                         Row{R"({"image":"localhost/web:latest","imagePullPolicy":"Always"})", PullPolicy::never},
                         Row{R"({"image":"localhost:5000/web:1","imagePullPolicy":"Always"})", PullPolicy::always}})
    EXPECT_EQ(pull_policy(parsed(row.container)), row.want) << row.container;
}

TEST(ImageVerification, by_policy_and_what_is_known) {
  using enum VerificationPolicy;
  using enum runtime::ImageAccess;
  struct Row {
    VerificationPolicy policy;
    const char* image;
    runtime::ImageAccess access;
    bool want;
  };
  for (const Row& row :
       {Row{VerificationPolicy::never, "web:1", unproven, true}, Row{never_preloaded, "web:1", preloaded, true},
        Row{never_preloaded, "web:1", unproven, false}, Row{never_preloaded, "web:1", proven, true},
        Row{never_allowlisted, "web:1", preloaded, true}, Row{never_allowlisted, "web", preloaded, true},
        Row{never_allowlisted, "web@sha256:1", preloaded, true}, Row{never_allowlisted, "web:1", unproven, false},
        Row{never_allowlisted, "web2:1", preloaded, false}, Row{never_allowlisted, "r:5000/team/a/b:1", preloaded, true},
        Row{never_allowlisted, "r:5000/teams/a:1", preloaded, false}, Row{never_allowlisted, "r:5000/team:1", preloaded, false},
        Row{never_allowlisted, "other:1", proven, true}, Row{VerificationPolicy::always, "web:1", preloaded, false},
        Row{VerificationPolicy::always, "web:1", proven, true}})
    EXPECT_EQ(may_use({row.policy, {"web", "r:5000/team/*"}}, row.image, row.access), row.want)
        << row.image << " " << int(row.policy) << " " << int(row.access);
}

}  // namespace
}  // namespace coracle::node
