// SPDX-License-Identifier: Apache-2.0
// From the manifests directory to the pod table: which file's pod runs, and when its predecessor must be gone first.
#include "daemon/node/static_pods.h"

#include <sched.h>
#include <sys/mount.h>

#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

struct BootedMachine : Machine {
  BootedMachine() {
    std::filesystem::create_directories(config_.manifests_dir);
    boot();
  }
};

class StaticPodsTest : public BootedMachine {
 protected:
  void write(const std::string& file, const std::string& name, const std::string& image) {
    std::ofstream(config_.manifests_dir + "/" + file) << "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
                                                             "}\nspec: {containers: [{name: a, image: \"" + image + "\"}]}\n";
  }
  void remove(const std::string& file) { std::filesystem::remove(config_.manifests_dir + "/" + file); }
  std::string wanted() {  // the images of the desired pods, by name
    static_pods_.read();
    std::string text;
    for (const auto& uid : table_.uids()) {
      auto pod = table_.get(uid);
      if (!pod->gone)
        text += pod->object->name() + " " +
                std::string(get_string(get_array(pod->object->json(), "spec.containers")[0], "image")) + ";";
    }
    return text;
  }
  PodTable table_;
  std::function<void(const std::string&)> on_look_;
  StaticPods static_pods_{config_, client_, *informers_[0], table_, [this](const std::string& uid) {
                            if (on_look_) on_look_(uid);
                          }};
};

TEST_F(StaticPodsTest, a_changed_pod_is_told_of_when_its_predecessor_is_gone) {
  write("db.yaml", "db", "one:1");
  static_pods_.read();
  std::string before = table_.uids().at(0);
  bool told = false;
  on_look_ = [&](const std::string& uid) {
    if (uid == before) return;
    told = true;
    EXPECT_TRUE(table_.get(before)->gone) << "the new one would be refused: its ports are taken";
  };
  for (const char* image : {"two:1", "three:1", "four:1"}) {  // whether its uid sorts before or after the other one
    write("db.yaml", "db", image);
    static_pods_.read();
    EXPECT_TRUE(std::exchange(told, false)) << image;
    for (const auto& uid : table_.uids()) {
      if (table_.get(uid)->gone) table_.erase(uid);
      else before = uid;
    }
  }
}

TEST_F(StaticPodsTest, a_directory_that_was_replaced_is_watched) {
  auto await = [&](const std::string& name) {
    auto is_there = [&] {
      for (const auto& uid : table_.uids())
        if (auto pod = table_.get(uid); pod && !pod->gone && pod->object->name() == name + "-node-1") return true;
      return false;
    };
    for (int i = 0; i < 900 && !is_there(); ++i) ::usleep(10'000);  // less than the time after which it would look anyway
    return is_there();
  };
  std::jthread thread([&](std::stop_token stop) { static_pods_.run(stop); });
  write("one.yaml", "one", "web:1");
  EXPECT_TRUE(await("one"));
  auto replace = [&](const std::function<void()>& take_away) {
    take_away();
    std::filesystem::create_directory(config_.manifests_dir);
    static_pods_.touch();
    ::usleep(200'000);  // it has read the new one, which is empty
  };
  replace([&] { std::filesystem::rename(config_.manifests_dir, config_.manifests_dir + ".old"); });
  write("two.yaml", "two", "web:1");
  EXPECT_TRUE(await("two"));
  replace([&] { std::filesystem::remove_all(config_.manifests_dir); });  // the new one may have the same inode number
  write("three.yaml", "three", "web:1");
  EXPECT_TRUE(await("three"));
}

TEST_F(StaticPodsTest, a_directory_that_cannot_be_read_ends_no_pod) {
  write("one.yaml", "one", "web:1");
  EXPECT_EQ(wanted(), "one-node-1 web:1;");
  std::filesystem::rename(config_.manifests_dir, config_.manifests_dir + ".old");
  std::filesystem::create_symlink(config_.manifests_dir, config_.manifests_dir);  // ELOOP, also for root
  EXPECT_EQ(wanted(), "one-node-1 web:1;");
  std::filesystem::remove(config_.manifests_dir);
  EXPECT_EQ(wanted(), "") << "one that is not there has none";
}

TEST_F(StaticPodsTest, a_disk_that_is_mounted_over_the_directory_is_noticed) {
  if (::unshare(CLONE_NEWNS) != 0) GTEST_SKIP() << "needs root";  // also for the thread below, which inherits it
  ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  auto await = [&](const std::string& name) {
    auto is_only = [&] {
      std::string names;
      for (const auto& uid : table_.uids())
        if (auto pod = table_.get(uid); pod && !pod->gone) names += pod->object->name();
      return names == name + "-node-1";
    };
    for (int i = 0; i < 900 && !is_only(); ++i) ::usleep(10'000);  // less than the time after which it would look anyway
    return is_only();
  };
  write("one.yaml", "one", "web:1");
  std::jthread thread([&](std::stop_token stop) { static_pods_.run(stop); });
  EXPECT_TRUE(await("one"));
  const std::string disk = config_.manifests_dir + ".disk";
  std::filesystem::create_directory(disk);
  ASSERT_EQ(::mount("none", disk.c_str(), "tmpfs", 0, nullptr), 0);
  std::ofstream(disk + "/two.yaml") << "apiVersion: v1\nkind: Pod\nmetadata: {name: two}\n"
                                       "spec: {containers: [{name: a, image: \"web:1\"}]}\n";
  ASSERT_EQ(::mount(disk.c_str(), config_.manifests_dir.c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_TRUE(await("two"));
  ASSERT_EQ(::umount2(config_.manifests_dir.c_str(), MNT_DETACH), 0);
  EXPECT_TRUE(await("one")) << "what was below it";
  ASSERT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST_F(StaticPodsTest, a_directory_that_cannot_be_watched_at_first_is_watched_later) {
  std::filesystem::rename(config_.manifests_dir, config_.manifests_dir + ".old");
  std::filesystem::create_symlink(config_.manifests_dir, config_.manifests_dir);
  StaticPods static_pods(config_, client_, *informers_[0], table_, [](const std::string&) {});
  std::filesystem::remove(config_.manifests_dir);
  std::filesystem::create_directory(config_.manifests_dir);
  std::jthread thread([&](std::stop_token stop) { static_pods.run(stop); });
  for (const char* name : {"one", "two"}) {
    const size_t before = table_.uids().size();
    write(name + std::string(".yaml"), name, "web:1");
    for (int i = 0; i < 900 && table_.uids().size() == before; ++i) ::usleep(10'000);
    EXPECT_EQ(table_.uids().size(), before + 1) << name;
  }
}

TEST_F(StaticPodsTest, of_two_with_one_name_one_runs) {
  write("b.yaml", "db", "b:1");
  EXPECT_EQ(wanted(), "db-node-1 b:1;");
  write("a.yaml", "db", "a:1");
  EXPECT_EQ(wanted(), "db-node-1 b:1;") << "what runs goes on";
  write("b.yaml", "db", "b:2");
  EXPECT_EQ(wanted(), "db-node-1 b:2;") << "and may change";
  StaticPods restarted(config_, client_, *informers_[0], table_, [](const std::string&) {});
  restarted.read();
  EXPECT_EQ(wanted(), "db-node-1 b:2;") << "a new daemon finds it running";
  remove("b.yaml");
  EXPECT_EQ(wanted(), "db-node-1 a:1;");
  write("b.yaml", "db", "b:2");
  remove("a.yaml");
  EXPECT_EQ(wanted(), "db-node-1 b:2;");
  write("c.yaml", "db", "b:2");
  EXPECT_EQ(wanted(), "db-node-1 b:2;") << "a copy";
  remove("b.yaml");
  EXPECT_EQ(wanted(), "db-node-1 b:2;");
}

TEST_F(StaticPodsTest, reads_files_by_their_endings) {
  for (const char* file : {"a.yaml", "b.yml", "c.json", "d.yaml~", "e", ".f.yaml", "g.yaml.bak"})
    write(file, std::string(1, file[file[0] == '.']), "x:1");
  std::filesystem::create_directories(config_.manifests_dir + "/h.yaml");
  ::testing::internal::CaptureStderr();
  std::string names;
  static_pods_.read();
  for (const auto& uid : table_.uids()) names += table_.get(uid)->object->name().substr(0, 1);
  std::sort(names.begin(), names.end());
  static_pods_.read();
  std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(names, "abc");
  for (const char* file : {"/d.yaml~", "/e", "/g.yaml.bak", "/h.yaml"}) {
    size_t told = 0;
    for (size_t at = 0; (at = log.find(std::string(file) + "\n", at)) != log.npos; ++at) ++told;
    EXPECT_EQ(told, 1u) << file << "\n" << log;
  }
  EXPECT_EQ(log.find("/.f.yaml"), log.npos);
}

TEST_F(StaticPodsTest, events_are_about_the_pod_by_its_own_uid_from_its_first_start) {
  write("db.yaml", "db", "web:1");
  client_.fail(1, Error(Code::unavailable, "the API is not there yet"), "create pods");
  agent_->read_manifests();
  settle();
  EXPECT_TRUE(events_.has("Started container a"));
  agent_->read_manifests();
  settle();
  json::value mirror = pod("db-node-1");
  const json::value* uid = find_keys(mirror, {"metadata", "annotations", kMirrorAnnotation});
  ASSERT_TRUE(uid);
  EXPECT_EQ(events_.about(), std::set<std::string>{std::string(uid->get_string())});
}

std::string manifest(const std::string& fields) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {containers: [{name: a, image: \"one:1\"}], " + fields + "}\n";
}

TEST_F(StaticPodsTest, a_value_of_the_wrong_type_is_refused_with_its_file_and_field) {
  struct Wrong {
    const char *fields, *field;
  };
  for (const auto& [fields, field] : {Wrong{"securityContext: {runAsUser: \"1000\"}",
                                            "spec.securityContext.runAsUser: expected an "
                                            "integer, found the string \"1000\""},
                                      Wrong{"securityContext: {runAsUser: 1.5}", "spec.securityContext.runAsUser: "},
                                      Wrong{"securityContext: {fsGroup: \"2000\"}", "spec.securityContext.fsGroup: "},
                                      Wrong{"activeDeadlineSeconds: \"600\"", "spec.activeDeadlineSeconds: "},
                                      Wrong{"terminationGracePeriodSeconds: \"30\"", "spec.terminationGracePeriodSeconds: "},
                                      Wrong{"hostUsers: \"true\"", "spec.hostUsers: expected true or false"},
                                      Wrong{"initContainers: [{name: b, image: b, securityContext: {privileged: \"no\"}}]",
                                            "spec.initContainers[0].securityContext.privileged: "},
                                      Wrong{"volumes: {name: v}", "spec.volumes: expected a list"}}) {
    auto pod = static_pod(manifest(fields), "/m/db.yaml", "node-1");
    ASSERT_FALSE(pod) << fields;
    EXPECT_EQ(pod.error().text().find("/m/db.yaml: "), 0u) << pod.error().text();
    EXPECT_NE(pod.error().text().find(field), std::string::npos) << pod.error().text();
  }
}

TEST_F(StaticPodsTest, what_the_api_would_refuse_is_refused_with_its_file_and_field) {
  struct Wrong {
    const char *fields, *why;
  };
  for (const auto& [fields, why] :
       {Wrong{"securityContext: {runAsUser: 4294967296}",
              "spec.securityContext.runAsUser: Invalid value: 4294967296: must be between 0 and 2147483647, inclusive"},
        Wrong{"securityContext: {runAsGroup: -1}", "spec.securityContext.runAsGroup: Invalid value: -1"},
        Wrong{"activeDeadlineSeconds: 0", "spec.activeDeadlineSeconds: Invalid value: 0"},
        Wrong{"restartPolicy: Sometimes", "spec.restartPolicy: Unsupported value: \"Sometimes\""},
        Wrong{"hostPID: true, shareProcessNamespace: true", "spec.securityContext.shareProcessNamespace: Invalid value: true"},
        Wrong{"initContainers: [{name: a, image: b}]", "spec.containers[0].name: Duplicate value: \"a\""},
        Wrong{"ephemeralContainers: [{name: e, image: e}]", "spec.ephemeralContainers: Forbidden: cannot be set on create"},
        Wrong{"schedulingGates: [{name: a/b}]", "spec.nodeName: Forbidden: cannot be set until all schedulingGates"}}) {
    auto pod = static_pod(manifest(fields), "/m/db.yaml", "node-1");
    ASSERT_FALSE(pod) << fields;
    EXPECT_EQ(pod.error().text().find("/m/db.yaml: "), 0u) << pod.error().text();
    EXPECT_NE(pod.error().text().find(why), std::string::npos) << pod.error().text();
  }
  auto nameless = static_pod("apiVersion: v1\nkind: Pod\nmetadata: {name: A_b}\nspec: {containers: [{name: a, image: b}]}\n",
                             "/m/x", "node-1");
  EXPECT_NE(nameless.error().text().find("/m/x: Pod \"A_b-node-1\" is invalid: metadata.name: Invalid value"), std::string::npos);
}

TEST_F(StaticPodsTest, it_may_not_refer_to_objects_of_the_api) {
  struct Reference {
    const char *fields, *why;
  };
  for (const auto& [fields, why] :
       {Reference{"serviceAccountName: x", "spec.serviceAccountName: Forbidden: static pods may not reference serviceaccounts"},
        Reference{"serviceAccount: x", "spec.serviceAccountName: Forbidden: static pods may not reference serviceaccounts"},
        Reference{"imagePullSecrets: [{name: x}]", "spec.imagePullSecrets: Forbidden: static pods may not reference secrets"},
        Reference{"volumes: [{name: a, emptyDir: {}}, {name: v, secret: {secretName: x}}]",
                  "spec.volumes[1].secret: Forbidden: static pods may not reference secrets"},
        Reference{"volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]",
                  "spec.volumes[0].persistentVolumeClaim: Forbidden: static pods may not reference persistentvolumeclaims"},
        Reference{"volumes: [{name: v, projected: {sources: [{configMap: {name: x}}]}}]",
                  "spec.volumes[0].projected.sources[0].configMap: Forbidden: static pods may not reference configmaps"},
        Reference{"initContainers: [{name: b, image: b, env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: k}}}]}]",
                  "spec.initContainers[0].env[0].valueFrom.secretKeyRef: Forbidden: static pods may not reference secrets"},
        Reference{"initContainers: [{name: b, image: b, envFrom: [{configMapRef: {name: x}}]}]",
                  "spec.initContainers[0].envFrom[0].configMapRef: Forbidden: static pods may not reference configmaps"}}) {
    auto pod = static_pod(manifest(fields), "/m/db.yaml", "node-1");
    ASSERT_FALSE(pod) << fields;
    EXPECT_EQ(pod.error().text(), "/m/db.yaml: " + std::string(why)) << fields;
  }
  EXPECT_TRUE(
      static_pod(manifest("volumes: [{name: a, emptyDir: {}}, {name: h, hostPath: {path: /h}}, {name: d, downwardAPI: {items: "
                          "[{path: p, fieldRef: {fieldPath: metadata.name}}]}}]"),
                 "/m/db.yaml", "node-1"));
}

TEST_F(StaticPodsTest, it_gets_the_defaults_of_a_pod) {
  std::string text =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {tolerations: [{effect: NoExecute, operator: Exists, "
      "tolerationSeconds: 5}], containers: [{name: a, image: \"one:1\", resources: {limits: {cpu: 1}}}]}\n";
  ObjectPtr pod = MUST(static_pod(text, "/m/db.yaml", "node-1")).object;
  view::PodSpec spec = view::Pod(*pod).spec();
  EXPECT_EQ(spec.restart_policy(), "Always");
  EXPECT_EQ(spec.dns_policy(), "ClusterFirst");
  EXPECT_EQ(spec.termination_grace_period_seconds(), 30);
  EXPECT_EQ(spec.containers()[0].image_pull_policy(), "IfNotPresent");
  EXPECT_EQ(get_string(spec.containers()[0].raw(), "resources.requests.cpu"), "1");
  EXPECT_EQ(to_text(*find(spec.raw(), "tolerations")), R"([{"operator":"Exists","effect":"NoExecute"}])");
}

TEST_F(StaticPodsTest, a_mirror_that_the_api_refuses_keeps_no_other_from_it) {
  write("a.yaml", "a", "one:1");
  write("b.yaml", "b", "one:1");
  static_pods_.read();
  client_.fail(1, Error(Code::forbidden, "the quota is used up"), "create pods");
  EXPECT_FALSE(static_pods_.reflect());
  EXPECT_EQ(client_.all(kPod).size(), 1u);
  EXPECT_TRUE(static_pods_.reflect());
  EXPECT_EQ(client_.all(kPod).size(), 2u);
}

TEST_F(StaticPodsTest, a_mirror_stays_while_its_manifest_cannot_be_read) {
  write("one.yaml", "one", "web:1");
  static_pods_.read();
  EXPECT_TRUE(static_pods_.reflect());
  ASSERT_EQ(client_.all(kPod).size(), 1u);
  client_.settle();  // what the API shows reaches the informer in a thread of its own
  for (const auto& uid : table_.uids()) table_.erase(uid);  // as after a reboot
  StaticPods restarted(config_, client_, *informers_[0], table_, [](const std::string&) {});
  const std::string file = config_.manifests_dir + "/one.yaml";
  std::filesystem::remove(file);
  std::filesystem::create_symlink(file, file);  // ELOOP, also for root
  restarted.read();
  EXPECT_TRUE(restarted.reflect());
  EXPECT_EQ(client_.all(kPod).size(), 1u);
  std::filesystem::remove(file);
  restarted.read();
  EXPECT_TRUE(restarted.reflect());
  EXPECT_EQ(client_.all(kPod).size(), 0u);
}

TEST_F(StaticPodsTest, values_of_the_right_type_reach_the_pod) {
  ObjectPtr pod = MUST(static_pod(manifest("securityContext: {runAsUser: 1e3, fsGroup: 0x10}, activeDeadlineSeconds: 600.0, "
                                           "terminationGracePeriodSeconds: 30, hostUsers: yes, unknown: 1"),
                                  "/m/db.yaml", "node-1"))
                      .object;
  view::PodSpec spec = view::Pod(*pod).spec();
  EXPECT_EQ(spec.security_context().run_as_user(), 1000);
  EXPECT_EQ(spec.security_context().fs_group(), 16);
  EXPECT_EQ(spec.active_deadline_seconds(), 600);
  EXPECT_EQ(spec.termination_grace_period_seconds(), 30);
  EXPECT_TRUE(spec.host_users());
  EXPECT_EQ(spec.node_name(), "node-1");
  EXPECT_EQ(pod->key().text(), "default/db-node-1");
}

TEST_F(StaticPodsTest, a_file_that_becomes_wrong_leaves_its_pod_running) {
  write("db.yaml", "db", "one:1");
  EXPECT_EQ(wanted(), "db-node-1 one:1;");
  std::ofstream(config_.manifests_dir + "/db.yaml") << manifest("terminationGracePeriodSeconds: \"30\"");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(wanted(), "db-node-1 one:1;");
  std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("db.yaml: "), log.npos) << log;
  EXPECT_NE(log.find("spec.terminationGracePeriodSeconds: expected an integer"), log.npos) << log;
}

// It is the same in all versions, also with floats: else an update would end the pod.
TEST_F(StaticPodsTest, its_uid_does_not_depend_on_how_numbers_are_read) {
  ObjectPtr pod = MUST(static_pod("apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {containers: [{name: a, image: "
                                  "\"one:1\", resources: {limits: {cpu: 1.0, memory: 1e9}}}]}\n",
                                  "/m/db.yaml", "node-1"))
                      .object;
  EXPECT_EQ(pod->uid(), "2e3228705217ae2e6cbcfbcff5173839");  // of {…"limits":{"cpu":1E0,"memory":1E9}…}
  EXPECT_EQ(get_string(view::Pod(*pod).spec().containers()[0].raw(), "resources.limits.cpu"), "1");
}

// The uid of a pod that would be refused if it did not run.
std::string refused_uid(const std::string& text) {
  std::string uid;
  EXPECT_FALSE(static_pod(text, "/m/db.yaml", "node-1", [&](const std::string& asked) {
    uid = asked;
    return false;
  }));
  return uid;
}

TEST_F(StaticPodsTest, a_refused_pod_that_runs_has_a_mirror_unless_the_api_refuses_it) {
  const std::string text = manifest("securityContext: {runAsUser: 4294967296}");
  const std::string uid = refused_uid(text);
  std::ofstream(config_.manifests_dir + "/db.yaml") << text;
  static_pods_.read();
  EXPECT_TRUE(table_.uids().empty()) << "it does not run";
  table_.change(uid, [](RestingPod& pod) { pod.began_before = true; });
  static_pods_.read();
  std::optional<DesiredPod> pod = table_.get(uid);
  ASSERT_TRUE(pod && pod->object && pod->is_static && pod->refused);
  EXPECT_EQ(view::Pod(*pod->object).spec().security_context().run_as_user(), 4294967296);
  client_.fail(1, Error(Code::unavailable, "the API is not there yet"), "create pods");
  EXPECT_FALSE(static_pods_.reflect());
  client_.fail(1, Error(Code::invalid, "spec.securityContext.runAsUser: Invalid value"), "create pods");
  EXPECT_TRUE(static_pods_.reflect()) << "trying again is of no use";
  EXPECT_TRUE(static_pods_.reflect());
  EXPECT_EQ(client_.all(kPod).size(), 1u);
  std::filesystem::remove(config_.manifests_dir + "/db.yaml");
  static_pods_.read();
  EXPECT_TRUE(table_.get(uid)->gone);
  std::ofstream(config_.manifests_dir + "/db.yaml") << text;
  static_pods_.read();
  EXPECT_TRUE(table_.get(uid)->gone) << "it ends";
}

// What an earlier version started, which accepted more manifests.
class AdoptedPodsTest : public Machine {
 protected:
  static constexpr const char* kName = "db-node-1";

  AdoptedPodsTest() {
    std::filesystem::create_directories(config_.manifests_dir);
    reads_manifests_ = true;
  }
  void write(const std::string& text) { std::ofstream(config_.manifests_dir + "/db.yaml") << text; }
  static std::string manifest_of(const std::string& fields) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {containers: [{name: a, image: \"web:1\"}], " + fields + "}\n";
  }
  // Starts the pod as that version did, with a file in an emptyDir.
  void start(const std::string& uid) {
    uid_ = uid;
    runtime::SandboxSpec sandbox;
    sandbox.id = uid;
    sandbox.metadata = SandboxMark{{"default", kName}, uid, "2026-01-01T00:00:00Z", 5, false, true, 0}.to_text();
    ASSERT_TRUE(runtime_.create_sandbox(sandbox));
    runtime::ContainerSpec container;
    container.id = "a-0";
    container.spec.process.args = {"/bin/web"};
    container.metadata = ContainerMark{"a", "web:1", "sha256:1", "SIGTERM", "web:1", "File", 0}.to_text();
    ASSERT_TRUE(runtime_.start_container(uid, container));
    std::filesystem::create_directories(config_.state_dir + "/" + uid + "/volumes/e");
    std::ofstream(data()) << "data";
  }
  std::string data() const { return config_.state_dir + "/" + uid_ + "/volumes/e/data"; }
  size_t starts() const { return runtime_calls("start_container").size(); }

  void expect_to_go_on_without_starts(const std::string& fields, const std::string& why);

  std::string uid_;
};

void AdoptedPodsTest::expect_to_go_on_without_starts(const std::string& fields, const std::string& why) {
  const std::string text = manifest_of(fields), uid = refused_uid(text);
  write(text);
  start(uid);

  ::testing::internal::CaptureStderr();
  boot();
  agent_->read_manifests();  // as when another file changes
  settle();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("/db.yaml: "), log.npos) << log;
  EXPECT_NE(log.find(why), log.npos) << log;
  EXPECT_TRUE(events_.has("W FailedValidation " + config_.manifests_dir + "/db.yaml: "));
  EXPECT_TRUE(events_.has(why));
  EXPECT_EQ(state("a", kName), "Running");
  EXPECT_TRUE(std::filesystem::exists(data()));

  runtime_.exit(uid, "a-0", 1);
  settle();
  EXPECT_EQ(state("a", kName), "Waiting CreateContainerConfigError");
  advance(std::chrono::seconds(600));
  boot();  // a third daemon
  advance(std::chrono::seconds(600));
  EXPECT_EQ(state("a", kName), "Waiting CreateContainerConfigError");
  runtime_.kill_pause(uid);
  settle();
  advance(std::chrono::seconds(600));
  EXPECT_EQ(state("a", kName), "Waiting CreateContainerConfigError");
  EXPECT_EQ(starts(), 1u) << "only that of the earlier version";
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 1u);
  EXPECT_TRUE(runtime_calls("remove_sandbox").empty());
  EXPECT_TRUE(std::filesystem::exists(data()));

  write(manifest_of("terminationGracePeriodSeconds: 5"));
  agent_->read_manifests();
  settle();
  EXPECT_EQ(state("a", kName), "Running");
  EXPECT_EQ(starts(), 2u);
  EXPECT_FALSE(std::filesystem::exists(data()));
  write(text);
  agent_->read_manifests();
  settle();
  EXPECT_EQ(state("a", kName), "Running") << "it ran, but it does not run now";
  EXPECT_EQ(starts(), 2u);
  EXPECT_EQ(runtime_.sandboxes()->size(), 1u);
  EXPECT_FALSE(runtime_.sandbox_spec(uid));
}

TEST_F(AdoptedPodsTest, a_pod_that_refers_to_the_api_goes_on_without_starts) {
  client_.put(kConfigMap, R"({"metadata":{"namespace":"default","name":"c"},"data":{"k":"v"}})");
  expect_to_go_on_without_starts("volumes: [{name: v, configMap: {name: c}}, {name: e, emptyDir: {}}]",
                                 "spec.volumes[0].configMap: Forbidden: static pods may not reference configmaps");
}

TEST_F(AdoptedPodsTest, a_pod_that_the_api_would_refuse_goes_on_without_starts) {
  expect_to_go_on_without_starts("securityContext: {runAsUser: 4294967296}, volumes: [{name: e, emptyDir: {}}]",
                                 "spec.securityContext.runAsUser: Invalid value: 4294967296");
}

TEST_F(AdoptedPodsTest, a_refused_pod_keeps_its_volumes_through_an_orderly_reboot) {
  const std::string text = manifest_of("securityContext: {runAsUser: 4294967296}, volumes: [{name: e, emptyDir: {}}]");
  write(text);
  start(refused_uid(text));
  boot();
  agent_->end_pods({std::chrono::seconds(50), std::chrono::seconds(10)});
  settle();
  ASSERT_TRUE(runtime_.sandboxes()->empty());
  for (int boots = 0; boots < 2; ++boots) {
    boot();
    agent_->read_manifests();  // as when another file changes
    advance(std::chrono::seconds(600));
    EXPECT_EQ(state("a", kName), "Waiting CreateContainerConfigError");
    EXPECT_TRUE(std::filesystem::exists(data()));
  }
  EXPECT_EQ(starts(), 1u) << "only that of the earlier version";
  EXPECT_TRUE(runtime_.sandboxes()->empty());
  std::filesystem::remove(config_.manifests_dir + "/db.yaml");
  agent_->read_manifests();
  settle();
  EXPECT_FALSE(std::filesystem::exists(config_.state_dir + "/" + uid_));
  write(text);
  agent_->read_manifests();
  settle();
  EXPECT_FALSE(client_.find(kPod, {"default", kName})) << "it is gone for good";
}

TEST_F(AdoptedPodsTest, a_probe_does_not_end_what_would_not_be_started_again) {
  const std::string text =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {securityContext: {runAsUser: 4294967296}, containers: [{name: a, "
      "image: \"web:1\", livenessProbe: {exec: {command: [x]}, failureThreshold: 1}, readinessProbe: {exec: {command: [x]}}}]}\n";
  runtime_.on_exec([](const auto&, const auto&, const runtime::ExecSpec&) { return runtime::FakeRuntime::ExecAnswer{1, "no"}; });
  write(text);
  start(refused_uid(text));
  boot();
  for (int i = 0; i < 60; ++i) {
    advance(std::chrono::seconds(1));
    while (agent_->probes().run_one()) settle();
  }
  EXPECT_TRUE(events_.has("W Unhealthy Liveness probe failed: no"));
  EXPECT_EQ(state("a", kName), "Running");
  EXPECT_EQ(condition("Ready", kName), "False");
  EXPECT_TRUE(runtime_calls("signal_container").empty());
  EXPECT_EQ(restarts("a", kName), 0);
}

// ELOOP, also for root: as from a disk that fails.
TEST_F(AdoptedPodsTest, a_pod_whose_manifest_cannot_be_read_at_the_start_goes_on) {
  write(manifest_of("terminationGracePeriodSeconds: 5"));
  boot();
  const std::string uid(client_.find(kPod, {"default", kName})->annotation(kMirrorAnnotation));
  const std::string without_sandbox = "0123456789abcdef0123456789abcdef", of_api = "0000-left";
  for (const std::string& left : {without_sandbox, of_api}) std::filesystem::create_directories(config_.state_dir + "/" + left);
  const std::string file = config_.manifests_dir + "/db.yaml", directory = config_.manifests_dir;
  for (const std::string& place : {directory, file}) {
    agent_.reset();
    std::filesystem::rename(place, place + ".away");
    std::filesystem::create_symlink(place, place);
    boot();
    agent_->read_manifests();
    settle();
    EXPECT_EQ(state("a", kName), "Running") << place;
    EXPECT_TRUE(client_.find(kPod, {"default", kName})) << place;
    EXPECT_TRUE(runtime_calls("signal_container").empty()) << place;
    EXPECT_TRUE(runtime_calls("remove_sandbox").empty()) << place;
    EXPECT_TRUE(std::filesystem::exists(config_.state_dir + "/" + without_sandbox)) << place;
    EXPECT_FALSE(std::filesystem::exists(config_.state_dir + "/" + of_api)) << place;
    std::filesystem::remove(place);
    std::filesystem::rename(place + ".away", place);
    agent_->read_manifests();
    settle();
    EXPECT_EQ(client_.find(kPod, {"default", kName})->annotation(kMirrorAnnotation), uid) << place;
  }
  runtime_.exit(uid, "a-0", 1);
  settle();
  advance(std::chrono::seconds(600));
  EXPECT_EQ(state("a", kName), "Running") << "it is known again";
  EXPECT_GE(restarts("a", kName), 1);
  agent_.reset();
  std::filesystem::create_symlink(directory + "/x.yaml", directory + "/x.yaml");
  std::filesystem::remove(file);
  boot();
  EXPECT_TRUE(runtime_calls("signal_container").empty()) << "x.yaml may be its manifest";
  std::filesystem::remove(directory + "/x.yaml");
  agent_->read_manifests();
  settle();
  EXPECT_EQ(runtime_calls("signal_container").size(), 1u);
}

TEST_F(AdoptedPodsTest, a_pod_that_is_not_known_yet_ends_with_the_machine) {
  write(manifest_of("terminationGracePeriodSeconds: 5"));
  boot();
  agent_.reset();
  std::filesystem::rename(config_.manifests_dir, config_.manifests_dir + ".away");
  std::filesystem::create_symlink(config_.manifests_dir, config_.manifests_dir);
  boot();
  EXPECT_TRUE(runtime_calls("signal_container").empty());
  agent_->end_pods({std::chrono::seconds(50), std::chrono::seconds(10)});
  settle();
  EXPECT_EQ(runtime_calls("signal_container").size(), 1u);
}

TEST_F(AdoptedPodsTest, a_pod_of_a_changed_file_waits_for_the_end_of_the_one_before) {
  runtime_.script("a", {.ignores_signals = true});
  start("0123456789abcdef0123456789abcdef");  // of what the file had
  write(manifest_of("terminationGracePeriodSeconds: 5"));
  boot();
  EXPECT_EQ(runtime_calls("signal_container").size(), 1u);
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 1u);
  advance(std::chrono::seconds(5));
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 2u);
  EXPECT_EQ(state("a", kName), "Running");
  EXPECT_EQ(runtime_.sandboxes()->size(), 1u);
}

TEST_F(AdoptedPodsTest, the_mirror_from_before_a_reboot_shows_the_pod_again) {
  write(manifest_of("terminationGracePeriodSeconds: 5"));
  boot();
  EXPECT_EQ(state("a", kName), "Running");
  const std::string uid(client_.find(kPod, {"default", kName})->annotation(kMirrorAnnotation));
  agent_.reset();
  ASSERT_TRUE(runtime_.remove_sandbox(uid));
  runtime_.script("a", {.start_error = Error(Code::invalid, "no such program")});
  boot();
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 2u);
  EXPECT_NE(state("a", kName), "Running");
}

}  // namespace
}  // namespace coracle::node
