// SPDX-License-Identifier: Apache-2.0
// Pods through the whole node agent: bound, started, crashed, restarted, stopped, and found again after a restart.
#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

using std::chrono::seconds;

constexpr const char* kOne = R"("containers":[{"name":"a","image":"web:1"}])";

class AgentTest : public Machine {};

TEST_F(AgentTest, a_bound_pod_runs) {
  boot();
  put_pod(kOne);
  EXPECT_EQ(phase(), "Running");
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(condition("ContainersReady"), "True");
  EXPECT_EQ(condition("Initialized"), "True");
  EXPECT_EQ(condition("PodScheduled"), "True") << "no scheduler bound it";
  EXPECT_EQ(get_string(pod(), "status.podIP"), "10.1.0.7");
  EXPECT_EQ(get_string(pod(), "status.hostIP"), "192.0.2.1");
  auto spec = spec_of("a-0");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->spec.process.args, std::vector<std::string>{"/bin/web"});
  EXPECT_EQ(spec->log.path, directory_ + "/logs/default_web_" + uid() + "/a/0.log");
  EXPECT_TRUE(events_.has("Started container a"));
}

TEST_F(AgentTest, tells_a_new_pod_with_one_write) {
  boot();
  client_.clear_calls();
  put_pod(kOne);
  EXPECT_EQ(client_.calls(), std::vector<std::string>{"patch pods/status default/web"});
}

TEST_F(AgentTest, leaves_other_nodes_pods_alone) {
  boot();
  client_.put(
      kPod,
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"x"},"spec":{"nodeName":"node-2","containers":[{"name":"a","image":"web:1"}]}})");
  settle();
  EXPECT_TRUE(runtime_calls("create_sandbox").empty());
}

// The pattern with which Fluent Bit's kubernetes filter parses names.
TEST_F(AgentTest, log_collectors_find_a_link_to_each_log) {
  runtime_.script("a", {.log = {"hello"}});
  boot();
  put_pod(kOne);
  auto links = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(config_.log_links_dir)) names.push_back(entry.path().filename());
    return names;
  };
  std::string shown(get_string(get_array(pod(), "status.containerStatuses")[0], "containerID"));
  ASSERT_TRUE(shown.starts_with("coracle://")) << shown;
  std::string id = shown.substr(10);
  EXPECT_EQ(id.size(), 64u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), id.npos);
  ASSERT_EQ(links(), std::vector<std::string>{"web_default_a-" + id + ".log"});
  const std::string link = config_.log_links_dir + "/" + links()[0];
  EXPECT_EQ(std::filesystem::read_symlink(link), config_.log_dir + "/default_web_" + uid() + "/a/0.log");
  EXPECT_NE(read(link).find("stdout F hello"), std::string::npos);
  for (int i = 0; i < 3; ++i) {
    runtime_.exit(uid(), "a-" + std::to_string(i), 1);
    settle();
    advance(seconds(300));
  }
  EXPECT_EQ(links().size(), 2u) << "as many as logs are kept";
  std::ofstream(config_.log_links_dir + "/other.log") << "not ours";
  std::filesystem::create_symlink("/nowhere", config_.log_links_dir + "/foreign.log");
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  EXPECT_EQ(links().size(), 2u) << "what is not ours stays";
}

TEST_F(AgentTest, a_crash_restarts_at_once_and_then_backs_off) {
  boot();
  put_pod(kOne);
  runtime_.exit(uid(), "a-0", 3);
  settle();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 1);
  json::value shown = pod();
  EXPECT_EQ(get_int(*status_of(shown, "a"), "lastState.terminated.exitCode"), 3);
  runtime_.exit(uid(), "a-1", 4);
  settle();
  EXPECT_EQ(state(), "Waiting CrashLoopBackOff");
  EXPECT_EQ(condition("Ready"), "False");
  EXPECT_TRUE(events_.has("Back-off restarting failed container a in pod web_default"));
  advance(seconds(9));
  EXPECT_EQ(state(), "Waiting CrashLoopBackOff");
  advance(seconds(1));
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 2);
  runtime_.exit(uid(), "a-2", 4);
  settle();
  advance(seconds(19));
  EXPECT_EQ(restarts(), 2);
  advance(seconds(1));
  EXPECT_EQ(restarts(), 3);
  EXPECT_FALSE(spec_of("a-1"));  // the newest and the one before it are kept
  EXPECT_TRUE(spec_of("a-2"));
}

TEST_F(AgentTest, a_long_good_run_forgets_the_back_off) {
  boot();
  put_pod(kOne);
  for (int i = 0; i < 2; ++i) {
    runtime_.exit(uid(), "a-" + std::to_string(i), 1);
    settle();
    advance(seconds(10));
  }
  EXPECT_EQ(restarts(), 2);
  advance(seconds(601));
  runtime_.exit(uid(), "a-2", 1);
  settle();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 3);
}

TEST_F(AgentTest, a_pod_that_may_not_restart_ends) {
  boot();
  put_pod(std::string(kOne) + R"(,"restartPolicy":"Never")");
  runtime_.exit(uid(), "a-0", 0);
  settle();
  EXPECT_EQ(phase(), "Succeeded");
  EXPECT_EQ(state(), "Terminated Completed 0");
  EXPECT_EQ(condition("Ready"), "False");
  EXPECT_FALSE(runtime_.sandbox_spec(uid()));
  EXPECT_TRUE(attached_.empty());
}

TEST_F(AgentTest, the_message_of_an_end_is_the_end_of_what_was_written_whatever_bytes_it_has) {
  boot();
  put_pod(std::string(kOne) + R"(,"restartPolicy":"Never")");
  std::ofstream(config_.state_dir + "/" + uid() + "/containers/a/0-message")
      << std::string(100000, 'x') + "g\xc3\xbc" + "t\xff\xfe" + "end";
  runtime_.exit(uid(), "a-0", 5);
  settle();
  json::value shown = pod();
  std::string message(get_string(*status_of(shown, "a"), "state.terminated.message"));
  EXPECT_TRUE(
      message.ends_with("xg\xc3\xbct\xef\xbf\xbd\xef\xbf\xbd"
                        "end"))
      << message.substr(0, 20);
  EXPECT_TRUE(message.starts_with("xxx") && message.size() == 4096 + 4) << message.size();
}

TEST_F(AgentTest, an_end_is_known_to_the_next_daemon_even_if_the_api_lost_it) {
  boot();
  put_pod(std::string(kOne) + R"(,"restartPolicy":"Never")");
  runtime_.exit(uid(), "a-0", 5);
  settle();
  EXPECT_EQ(phase(), "Failed");
  agent_.reset();
  client_.set_status(kPod, {"default", "web"}, R"({"phase":"Running"})");
  boot();
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(state(), "Terminated Error 5");
  EXPECT_EQ(runtime_calls("start_container").size(), 1u);
}

TEST_F(AgentTest, deletion_is_graceful) {
  boot();
  put_pod(kOne);
  std::string id = uid();
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  EXPECT_EQ(runtime_calls("signal_container"), std::vector<std::string>{"signal_container " + id + " a-0 15"});
  EXPECT_FALSE(client_.find(kPod, {"default", "web"}));
  EXPECT_FALSE(runtime_.sandbox_spec(id));
  EXPECT_TRUE(attached_.empty());
  EXPECT_FALSE(std::filesystem::exists(config_.state_dir + "/" + id));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/logs/default_web_" + id));
}

TEST_F(AgentTest, a_pod_is_told_to_end_when_nobody_is_sent_to_it_any_more) {
  bool served = true;
  network_.serves = [&](const std::string& address) { return served && address == "10.1.0.7"; };
  boot();
  put_pod(kOne);
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}));
  settle();
  clock_.advance(std::chrono::milliseconds(500));
  agent_->look_at_draining();
  settle();
  EXPECT_TRUE(runtime_calls("signal").empty());
  served = false;
  agent_->look_at_draining();
  settle();
  EXPECT_FALSE(runtime_calls("signal").empty());
  EXPECT_TRUE(pod().is_null());
}

TEST_F(AgentTest, a_pod_ends_though_the_rules_never_let_go_of_it) {
  network_.serves = [](const std::string&) { return true; };
  boot();
  put_pod(kOne);
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}));
  settle();
  EXPECT_FALSE(pod().is_null());
  advance(seconds(5));
  EXPECT_TRUE(pod().is_null());
}

// Readiness takes time to reach the rules: the pod's status, an EndpointSlice, a ruleset.
TEST_F(AgentTest, a_pod_deleted_as_soon_as_it_is_ready_may_be_on_its_way_into_the_rules) {
  network_.serves = [](const std::string&) { return false; };
  client_.put(kService, R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":"web"},
      "spec":{"selector":{"app":"web"}}})");
  boot();
  const std::string labels = R"(,"labels":{"app":")";
  put_pod(kOne, "web", labels + R"(web"})");
  put_pod(kOne, "other", labels + R"(other"})");
  for (const char* name : {"web", "other"}) ASSERT_TRUE(client_.remove(kPod, {"default", name}));
  settle();
  clock_.advance(std::chrono::milliseconds(100));
  settle();
  EXPECT_FALSE(pod("web").is_null());
  EXPECT_TRUE(pod("other").is_null()) << "no Service sends to it";
  advance(seconds(1));
  EXPECT_TRUE(pod("web").is_null());
}

TEST_F(AgentTest, a_pod_that_was_ready_for_long_and_is_not_in_the_rules_ends_at_once) {
  network_.serves = [](const std::string&) { return false; };
  client_.put(kService, R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":"web"},
      "spec":{"selector":{"app":"web"}}})");
  boot();
  put_pod(kOne, "web", R"(,"labels":{"app":"web"})");
  advance(seconds(2));
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}));
  settle();
  clock_.advance(std::chrono::milliseconds(20));
  settle();
  EXPECT_TRUE(pod().is_null());
}

TEST_F(AgentTest, what_ignores_its_signal_is_killed_when_the_grace_is_over) {
  runtime_.script("a", {.ignores_signals = true});
  boot();
  put_pod(std::string(kOne) + R"(,"terminationGracePeriodSeconds":5)");
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {.grace_period_seconds = 5}));
  settle();
  advance(seconds(4));
  EXPECT_TRUE(client_.find(kPod, {"default", "web"}));
  advance(seconds(1));
  EXPECT_EQ(runtime_calls("kill_container").size(), 1u);
  EXPECT_FALSE(client_.find(kPod, {"default", "web"}));
}

TEST_F(AgentTest, the_grace_period_is_the_pods) {
  for (const char* name : {"a", "s1", "s2"}) runtime_.script(name, {.ignores_signals = true});
  boot();
  put_pod(R"("terminationGracePeriodSeconds":6,"initContainers":[{"name":"s1","image":"web:1","restartPolicy":"Always"},
      {"name":"s2","image":"web:1","restartPolicy":"Always","lifecycle":{"preStop":{"exec":{"command":["x"]}}}}],
      "containers":[{"name":"a","image":"web:1"}])");
  std::string id = uid();
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  using Calls = std::vector<std::string>;
  EXPECT_EQ(runtime_calls("signal_container"), Calls{"signal_container " + id + " a-0 15"});
  EXPECT_TRUE(hooks_.run_one()) << "a sidecar's hook runs at the start";
  settle();
  advance(seconds(5));
  EXPECT_EQ(runtime_calls("signal_container").size(), 1u) << "they serve the main container";
  advance(seconds(1));
  EXPECT_EQ(runtime_calls("kill_container"), Calls{"kill_container " + id + " a-0"});
  EXPECT_EQ(runtime_calls("signal_container").size(), 3u) << "both at once: the time is over";
  advance(seconds(2));
  EXPECT_EQ(runtime_calls("kill_container").size(), 3u);
  EXPECT_FALSE(client_.find(kPod, {"default", "web"}));
}

TEST_F(AgentTest, when_the_node_ends_pods_end_and_come_back_with_it) {
  boot();
  put_pod(kOne);
  put_pod(std::string(kOne) + R"(,"restartPolicy":"Never")", "once");
  put_pod(std::string(kOne) + R"(,"restartPolicy":"OnFailure")", "job");
  ASSERT_EQ(state(), "Running");
  agent_->end_pods({seconds(50), seconds(10)});
  settle();
  EXPECT_TRUE(runtime_.sandboxes()->empty());
  EXPECT_EQ(agent_->wait_for_end(), std::vector<std::string>());
  EXPECT_EQ(state(), "Terminated Error 143") << "what came of it is known";
  EXPECT_EQ(condition("Ready"), "False");
  EXPECT_EQ(phase("once"), "Failed");
  EXPECT_EQ(get_string(pod("once"), "status.reason"), "Terminated");
  put_pod(kOne, "late");
  advance(seconds(30));
  EXPECT_TRUE(runtime_.sandboxes()->empty()) << "nothing is started";
  boot();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 1);
  json::value shown = pod();
  EXPECT_EQ(get_int(*status_of(shown, "a"), "lastState.terminated.exitCode"), 143);
  EXPECT_EQ(state("a", "job"), "Running");
  EXPECT_EQ(state("a", "late"), "Running");
  EXPECT_EQ(phase("once"), "Failed");
}

TEST_F(AgentTest, the_end_of_the_node_does_not_wait_for_what_cannot_hear_its_signal) {
  runtime_.script("a", {.ignores_signals = true});
  is_dropped_ = [](int, int signal) { return signal == 15; };
  boot();
  put_pod(kOne);
  put_pod(kOne, "deleted");
  ASSERT_TRUE(client_.remove(kPod, {"default", "deleted"}, {}));
  settle();
  EXPECT_TRUE(runtime_calls("kill_container").empty()) << "a pod that is deleted has its time";
  std::string id = uid();
  agent_->end_pods({seconds(50), seconds(10)});
  settle();
  EXPECT_EQ(runtime_calls("kill_container"), std::vector<std::string>{"kill_container " + id + " a-0"});
}

TEST_F(AgentTest, the_end_of_the_node_bounds_the_grace_of_its_pods_and_spares_critical_ones) {
  runtime_.script("a", {.ignores_signals = true});
  boot();
  put_pod(std::string(kOne) + R"(,"terminationGracePeriodSeconds":300)");
  put_pod(std::string(kOne) + R"(,"terminationGracePeriodSeconds":300)", "leaving");
  put_pod(std::string(kOne) + R"(,"terminationGracePeriodSeconds":3)", "quick");
  put_pod(R"("priority":2000000000,"containers":[{"name":"c","image":"web:1"}])", "critical");
  ASSERT_TRUE(client_.remove(kPod, {"default", "leaving"}, {}));
  settle();
  std::string slow = uid(), leaving = uid("leaving"), quick = uid("quick"), critical = uid("critical");
  agent_->end_pods({seconds(20), seconds(10)});
  settle();
  advance(seconds(3));
  EXPECT_EQ(runtime_calls("kill_container"), std::vector<std::string>{"kill_container " + quick + " a-0"});
  advance(seconds(16));
  EXPECT_TRUE(runtime_.sandbox_spec(slow));
  EXPECT_TRUE(runtime_.sandbox_spec(leaving));
  advance(seconds(1));
  EXPECT_FALSE(runtime_.sandbox_spec(slow)) << "the budget is over";
  EXPECT_FALSE(runtime_.sandbox_spec(leaving));
  EXPECT_TRUE(runtime_calls("signal_container " + critical).empty()) << "it is not its turn";
  int ticks = 0;
  {
    std::jthread time([&, seen = runtime_calls("sandboxes").size()](std::stop_token stop) mutable {  // a second for each look
      for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        if (runtime_calls("sandboxes").size() > seen) clock_.advance(seconds(1)), ++seen;
    });
    EXPECT_EQ(agent_->wait_for_end([&] { ++ticks; }), std::vector<std::string>{"default/critical"}) << "nobody has looked at it";
  }
  EXPECT_GT(ticks, 0);
  settle();
  EXPECT_FALSE(runtime_.sandbox_spec(critical));
}

TEST_F(AgentTest, a_pod_gone_from_the_api_is_stopped) {
  boot();
  put_pod(kOne);
  std::string id = uid();
  client_.erase(kPod, {"default", "web"});
  settle();
  EXPECT_FALSE(runtime_.sandbox_spec(id));
}

TEST_F(AgentTest, what_the_api_has_forgotten_takes_nobodys_place) {
  config_.pods_max = 1;
  runtime_.script("a", {.ignores_signals = true});
  boot();
  put_pod(kOne);
  std::string id = uid();
  client_.erase(kPod, {"default", "web"});  // like a forced deletion
  put_pod(kOne, "next");
  EXPECT_TRUE(runtime_.sandbox_spec(id)) << "it has not ended yet";
  EXPECT_EQ(phase("next"), "Running") << pod("next");
}

TEST_F(AgentTest, what_is_deleted_by_force_does_not_take_its_time) {
  runtime_.script("a", {.ignores_signals = true});
  boot();
  put_pod(std::string(kOne) + R"(,"terminationGracePeriodSeconds":3600)");
  std::string id = uid();
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {.grace_period_seconds = 3600}));
  settle();
  advance(seconds(5));
  client_.erase(kPod, {"default", "web"});
  settle();
  EXPECT_TRUE(runtime_.sandbox_spec(id));
  advance(seconds(1));
  EXPECT_FALSE(runtime_.sandbox_spec(id));
}

TEST_F(AgentTest, a_new_daemon_adopts_what_runs) {
  boot();
  put_pod(kOne);
  boot();
  EXPECT_EQ(runtime_calls("start_container").size(), 1u);
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 1u);
  EXPECT_EQ(phase(), "Running");
  EXPECT_EQ(restarts(), 0);
}

TEST_F(AgentTest, exits_while_no_daemon_ran_are_not_lost) {
  boot();
  put_pod(kOne);
  agent_.reset();
  runtime_.exit(uid(), "a-0", 9);
  boot();
  EXPECT_EQ(restarts(), 1);
  json::value shown = pod();
  EXPECT_EQ(get_int(*status_of(shown, "a"), "lastState.terminated.exitCode"), 9);
}

TEST_F(AgentTest, after_a_reboot_pods_start_again_with_a_raised_count) {
  boot();
  put_pod(kOne);
  agent_.reset();
  runtime_.kill_pause(uid());
  boot();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 1);
  EXPECT_TRUE(runtime_calls("remove_sandbox").size() >= 1);
}

TEST_F(AgentTest, after_a_reboot_a_pod_waits_for_those_it_is_to_come_after) {
  held_back_ = [this](const Object& pod) -> std::string {
    if (pod.name() != "web") return "";
    return agent_->ready(uid("db")) ? "" : "waiting for pod/db";
  };
  put_pod(kOne, "db");
  put_pod(kOne, "web");
  boot();
  EXPECT_EQ(condition("Ready", "web"), "True");
  for (const char* name : {"web", "db"}) runtime_.kill_pause(uid(name));
  runtime_.fail("create_sandbox", 1, Error(Code::unavailable, "not yet"), 3);  // as many times as it is retried at once
  boot();                                                                      // the API still shows both as ready
  EXPECT_EQ(state("a", "web"), "Waiting WaitingForOthers");
  EXPECT_EQ(condition("Ready", "web"), "False");
  EXPECT_TRUE(events_.has("N WaitingForOthers waiting for pod/db"));
  for (int i = 0; i < 3; ++i) advance(seconds(60));
  EXPECT_EQ(state("a", "db"), "Running");
  EXPECT_EQ(state("a", "web"), "Running");
}

TEST_F(AgentTest, sandboxes_of_pods_that_nobody_knows_end) {
  boot();
  put_pod(kOne);
  std::string id = uid();
  agent_.reset();
  client_.erase(kPod, {"default", "web"});
  boot();
  EXPECT_FALSE(runtime_.sandbox_spec(id));
}

TEST_F(AgentTest, what_a_pod_left_that_was_cut_off_while_it_was_removed_goes) {
  boot();
  put_pod(kOne, "stays");
  std::string gone = "00000000-1111-2222-3333-444444444444", other = config_.log_dir + "/shop_db_someone-else";
  for (const std::string& place : {config_.state_dir + "/" + gone + "/volumes/cache", config_.memory_dir + "/" + gone + "/secret",
                                   config_.log_dir + "/default_web_" + gone + "/a", other})
    std::filesystem::create_directories(place);
  std::ofstream(config_.log_dir + "/default_web_" + gone + "/a/0.log") << "line";
  std::filesystem::create_symlink(config_.log_dir + "/default_web_" + gone + "/a/0.log", config_.log_links_dir + "/web.log");
  boot();
  EXPECT_FALSE(std::filesystem::exists(config_.state_dir + "/" + gone));
  EXPECT_FALSE(std::filesystem::exists(config_.memory_dir + "/" + gone));
  EXPECT_FALSE(std::filesystem::exists(config_.log_dir + "/default_web_" + gone));
  EXPECT_FALSE(std::filesystem::is_symlink(config_.log_links_dir + "/web.log"));
  EXPECT_TRUE(std::filesystem::exists(other)) << "somebody else's";
  EXPECT_TRUE(std::filesystem::exists(config_.log_dir + "/default_stays_" + uid("stays")));
  EXPECT_EQ(state("a", "stays"), "Running");
}

TEST_F(AgentTest, lost_notifications_heal_at_the_next_look) {
  boot();
  put_pod(kOne);
  runtime_.lose_changes(true);
  runtime_.exit(uid(), "a-0", 1);
  settle();
  EXPECT_EQ(restarts(), 0);
  runtime_.lose_changes(false);
  boot();
  EXPECT_EQ(restarts(), 1);
}

TEST_F(AgentTest, an_ephemeral_container_starts_in_a_running_pod_once) {
  boot();
  put_pod(kOne);
  auto debug = [&](const std::string& containers) {
    json::value now = pod();
    make(now, "spec.ephemeralContainers") = MUST(parse_json(containers));
    client_.put(kPod, to_text(now));
    settle();
  };
  debug(R"([{"name":"dbg","image":"web:1","targetContainerName":"a","command":["/bin/sh"],"stdin":true}])");
  EXPECT_EQ(state("dbg"), "Running");
  EXPECT_EQ(spec_of("dbg-0")->target, "a-0");
  EXPECT_TRUE(spec_of("dbg-0")->open_stdin);
  EXPECT_EQ(get_array(pod(), "status.ephemeralContainerStatuses").size(), 1u);
  EXPECT_EQ(get_array(pod(), "status.containerStatuses").size(), 1u);
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(phase(), "Running");
  runtime_.exit(uid(), "dbg-0", 3);
  settle();
  EXPECT_EQ(state("dbg"), "Terminated Error 3") << "and does not come again";
  EXPECT_EQ(restarts("dbg"), 0);
  debug(
      R"([{"name":"dbg","image":"web:1","targetContainerName":"a"},{"name":"lost","image":"web:1","targetContainerName":"none"}])");
  EXPECT_EQ(state("lost"), "Waiting CreateContainerConfigError");
  EXPECT_TRUE(events_.has("unable to find target container \"none\""));
  EXPECT_EQ(phase(), "Running");
  boot();
  EXPECT_EQ(state("dbg"), "Terminated Error 3") << "known to the next daemon";
  debug(
      R"([{"name":"dbg","image":"web:1"},{"name":"lost","image":"web:1","targetContainerName":"none"},{"name":"last","image":"web:1"}])");
  EXPECT_EQ(state("last"), "Running");
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  EXPECT_FALSE(client_.find(kPod, {"default", "web"})) << "it ends with its pod";
}

TEST_F(AgentTest, init_containers_run_in_order) {
  boot();
  put_pod(R"("initContainers":[{"name":"i","image":"web:1"},{"name":"j","image":"web:1"}],)" + std::string(kOne));
  EXPECT_EQ(state("i"), "Running");
  EXPECT_EQ(state("a"), "Waiting PodInitializing");
  EXPECT_EQ(phase(), "Pending");
  EXPECT_EQ(condition("Initialized"), "False");
  runtime_.exit(uid(), "i-0", 0);
  settle();
  EXPECT_EQ(state("i"), "Terminated Completed 0");
  runtime_.exit(uid(), "j-0", 0);
  settle();
  EXPECT_EQ(state("a"), "Running");
  EXPECT_EQ(condition("Initialized"), "True");
}

TEST_F(AgentTest, a_missing_image_is_pulled) {
  runtime_.images_fake().add("docker.io/library/far:2", {.cmd = {"/far"}}, /*present=*/false);
  boot();
  put_pod(R"("containers":[{"name":"a","image":"far:2"}])");
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("Pulling image \"far:2\""));
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state(), "Running");
  EXPECT_TRUE(events_.has("Successfully pulled image \"far:2\""));
}

TEST_F(AgentTest, an_image_for_another_machine_is_told) {
  std::string id = runtime_.images_fake().add("docker.io/library/far:2", {.cmd = {"/far"}});
  runtime_.images_fake().set_platform(id, "linux/arm64", "linux/amd64");
  boot();
  put_pod(R"("containers":[{"name":"a","image":"far:2"}])");
  EXPECT_TRUE(events_.has("W ImagePlatformMismatch Container image \"far:2\" is for linux/arm64, this machine is linux/amd64"));
}

TEST_F(AgentTest, a_failed_pull_backs_off) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"nowhere:2"}])");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state(), "Waiting ErrImagePull");
  advance(seconds(2));
  EXPECT_EQ(state(), "Waiting ImagePullBackOff");
  EXPECT_FALSE(pulls_.run_one());
  advance(seconds(8));
  EXPECT_TRUE(pulls_.run_one());
}

TEST_F(AgentTest, pull_policies) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"nowhere:2","imagePullPolicy":"Never"}])", "never");
  EXPECT_EQ(state("a", "never"), "Waiting ErrImageNeverPull");
  put_pod(R"("containers":[{"name":"a","image":"web:1","imagePullPolicy":"Always"}])", "always");
  EXPECT_EQ(state("a", "always"), "Waiting ContainerCreating");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "always"), "Running");
  EXPECT_FALSE(pulls_.run_one());
}

Error registry_unreachable() {
  ErrorDetails details;
  details.reason = runtime::kRegistryUnreachable;
  return Error(Code::unavailable, "pull web:1: Could not resolve host").with(std::move(details));
}

TEST_F(AgentTest, without_its_registry_an_image_to_be_pulled_waits) {
  const Error unreachable = registry_unreachable();
  boot();
  runtime_.images_fake().fail_pull(unreachable);
  put_pod(R"("containers":[{"name":"a","image":"web:1","imagePullPolicy":"Always"}])", "waits");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "waits"), "Waiting ErrImagePull") << "as in Kubernetes";
}

TEST_F(AgentTest, without_its_registry_an_image_that_is_present_runs_where_that_is_set) {
  const Error unreachable = registry_unreachable();
  config_.run_present_images_offline = true;
  boot();
  runtime_.images_fake().fail_pull(unreachable);
  put_pod(R"("containers":[{"name":"a","image":"web:1","imagePullPolicy":"Always"}])", "runs");
  ASSERT_TRUE(pulls_.run_one()) << "the registry is asked first";
  settle();
  EXPECT_EQ(state("a", "runs"), "Running");
  EXPECT_TRUE(events_.has(
      "W RegistryUnreachable Container image \"web:1\" is present and runs, because it cannot be pulled: pull web:1"));

  runtime_.images_fake().fail_pull(Error(Code::not_found, "no such image"));
  put_pod(R"("containers":[{"name":"a","image":"web:1","imagePullPolicy":"Always"}])", "refused");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "refused"), "Waiting ErrImagePull") << "the registry has answered";
  runtime_.images_fake().fail_pull(unreachable);
  put_pod(R"("containers":[{"name":"a","image":"nowhere:2","imagePullPolicy":"Always"}])", "absent");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "absent"), "Waiting ErrImagePull");
  runtime_.images_fake().fail_pull(Error(Code::unavailable, "pull web:1: layer sha256:0: the disk is nearly full"));
  put_pod(R"("containers":[{"name":"a","image":"web:1","imagePullPolicy":"Always"}])", "full");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "full"), "Waiting ErrImagePull") << "the registry has a newer image, which this machine cannot store";
}

TEST_F(AgentTest, a_registry_s_garbage_is_no_wrong_name) {
  boot();
  runtime_.images_fake().fail_pull(Error(Code::invalid, "pull web:1: get manifest: https://r/v2: not JSON"));
  put_pod(R"("containers":[{"name":"a","image":"web:1","imagePullPolicy":"Always"}])", "garbage");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "garbage"), "Waiting ErrImagePull");
  for (const char* policy : {"Always", "IfNotPresent", "Never"}) {
    const std::string name = "wrong-" + to_lower(policy);
    put_pod(R"("containers":[{"name":"a","image":"no image","imagePullPolicy":")" + std::string(policy) + R"("}])", name);
    EXPECT_FALSE(pulls_.run_one()) << policy << ": no registry is asked for what is no name";
    EXPECT_EQ(state("a", name), "Waiting InvalidImageName") << policy;
  }
}

TEST_F(AgentTest, pull_secrets_reach_the_registry) {
  runtime_.images_fake().add("r.example/far:2", {.cmd = {"/far"}}, /*present=*/false);
  boot();
  std::string config = base64_encode(R"({"auths":{"https://r.example/":{"auth":")" + base64_encode("me:secret") + R"("}}})");
  client_.put(
      kSecret,
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"key"},"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":")" +
          config + R"("}})");
  client_.settle();
  put_pod(R"("imagePullSecrets":[{"name":"key"}],"containers":[{"name":"a","image":"r.example/far:2"}])");
  ASSERT_TRUE(pulls_.run_one());
  auto credentials = runtime_.images_fake().last_credentials();
  ASSERT_EQ(credentials.size(), 1u);
  EXPECT_EQ(credentials[0].registry, "r.example");
  EXPECT_EQ(credentials[0].username, "me");
  EXPECT_EQ(credentials[0].password, "secret");
}

TEST_F(AgentTest, a_missing_pull_secret_is_told_once_and_its_coming_ends_the_back_off) {
  runtime_.images_fake().add("r.example/far:2", {.cmd = {"/far"}}, /*present=*/false);
  runtime_.images_fake().fail_pull(Error(Code::unauthorized, "who are you?"));
  boot();
  put_pod(R"("imagePullSecrets":[{"name":"key"},{"name":"other"}],"containers":[{"name":"a","image":"r.example/far:2"}])");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  const char* told =
      "FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (key, other); attempting to pull the image may "
      "not succeed.";
  EXPECT_TRUE(events_.has(told));
  advance(seconds(2));
  EXPECT_EQ(state(), "Waiting ImagePullBackOff");
  auto all = events_.all();
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [&](const auto& event) { return event.find(told) != event.npos; }), 1);
  auto put_secret = [&](const std::string& password) {
    std::string config = base64_encode(R"({"auths":{"r.example":{"username":"me","password":")" + password + R"("}}})");
    client_.put(
        kSecret,
        R"({"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"key"},"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":")" +
            config + R"("}})");
    settle();
  };
  put_secret("secret");
  ASSERT_TRUE(pulls_.run_one()) << "without waiting for its time";
  settle();
  EXPECT_EQ(state(), "Running");
  EXPECT_TRUE(events_.has("Unable to retrieve some image pull secrets (other);"));
}

TEST_F(AgentTest, what_waits_for_an_image_starts_when_it_comes) {
  runtime_.images_fake().fail_pull(Error(Code::unavailable, "no network"));
  boot();
  put_pod(R"("containers":[{"name":"a","image":"far:2"}])");
  put_pod(R"("containers":[{"name":"b","image":"far:2","imagePullPolicy":"Never"},{"name":"a","image":"web:1"}])", "never");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  advance(seconds(2));
  EXPECT_EQ(state(), "Waiting ImagePullBackOff");
  EXPECT_EQ(state("b", "never"), "Waiting ErrImageNeverPull");
  EXPECT_EQ(state("a", "never"), "Running");
  runtime_.images_fake().add("docker.io/library/far:2", {.cmd = {"/far"}}, /*present=*/false);
  ASSERT_TRUE(agent_->pull("far:2", "", "", nullptr));  // a manual pull
  settle();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(state("b", "never"), "Running");
  EXPECT_FALSE(pulls_.run_one());
}

TEST_F(AgentTest, what_waits_for_an_image_starts_at_once_when_it_is_tagged_or_imported) {
  runtime_.images_fake().add("docker.io/library/other:1", {.cmd = {"/other"}});
  boot();
  put_pod(R"("containers":[{"name":"a","image":"tagged:1","imagePullPolicy":"Never"}])", "tagged");
  put_pod(R"("containers":[{"name":"a","image":"imported:1","imagePullPolicy":"Never","command":["/it"]}])", "imported");
  EXPECT_EQ(state("a", "tagged"), "Waiting ErrImageNeverPull");
  EXPECT_EQ(state("a", "imported"), "Waiting ErrImageNeverPull");

  ASSERT_TRUE(agent_->tag("other:1", "docker.io/library/tagged:1"));  // the clock stands still: nothing else wakes the pods
  settle();
  EXPECT_EQ(state("a", "tagged"), "Running");
  EXPECT_EQ(state("a", "imported"), "Waiting ErrImageNeverPull");

  ASSERT_TRUE(agent_->import(Fd(), "docker.io/library/imported:1"));
  settle();
  EXPECT_EQ(state("a", "imported"), "Running");
}

TEST_F(AgentTest, an_image_that_came_for_a_secret_is_not_everybody_s) {
  runtime_.images_fake().protect(runtime_.images_fake().add("r.example/far:2", {.cmd = {"/far"}}));
  boot();
  put_pod(R"("containers":[{"name":"a","image":"r.example/far:2","imagePullPolicy":"Never"}])", "never");
  EXPECT_EQ(state("a", "never"), "Waiting ErrImageNeverPull");
  EXPECT_TRUE(events_.has("Container image \"r.example/far:2\" is not present with pull policy of Never"));
  EXPECT_FALSE(pulls_.run_one());

  put_pod(R"("containers":[{"name":"a","image":"r.example/far:2"}])", "stranger");
  EXPECT_EQ(state("a", "stranger"), "Waiting ContainerCreating") << "its registry is asked";
  runtime_.images_fake().fail_pull(Error(Code::unauthorized, "who are you?"));
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "stranger"), "Waiting ErrImagePull");

  std::string config = base64_encode(R"({"auths":{"r.example":{"username":"me","password":"secret"}}})");
  client_.put(
      kSecret,
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"key","uid":"u7"},"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":")" +
          config + R"("}})");
  client_.settle();
  const std::string guest = R"("imagePullSecrets":[{"name":"key"}],"containers":[{"name":"a","image":"r.example/far:2"}])";
  put_pod(guest, "first");
  EXPECT_EQ(state("a", "first"), "Waiting ContainerCreating");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "first"), "Running");
  EXPECT_EQ(runtime_.images_fake().last_credentials().at(0).source, "default/key/u7");
  put_pod(guest, "second");
  EXPECT_EQ(state("a", "second"), "Running") << "what its registry gave once for the secret is known";
  EXPECT_FALSE(pulls_.run_one());
  EXPECT_TRUE(events_.has("Container image \"r.example/far:2\" already present on machine and can be accessed by the pod"));
}

TEST_F(AgentTest, what_cannot_be_executed_is_told_and_tried_again) {
  runtime_.script("a", {.start_error = Error(Code::not_found, "exec /bin/web: no such file or directory")});
  boot();
  put_pod(kOne);
  EXPECT_TRUE(events_.has("no such file or directory"));
  EXPECT_EQ(state(), "Waiting CrashLoopBackOff");
  json::value shown = pod();
  EXPECT_EQ(get_string(*status_of(shown, "a"), "lastState.terminated.reason"), "StartError");
  runtime_.script("a", {});
  advance(seconds(10));
  EXPECT_EQ(state(), "Running");
}

TEST_F(AgentTest, on_a_full_disk_a_container_takes_the_space_of_the_one_before) {
  boot();
  put_pod(kOne);
  ASSERT_EQ(state(), "Running");
  runtime_.fail("start_container", 1, Error::from_errno(ENOSPC, "make snapshot"));
  runtime_.exit(uid(), "a-0", 1);
  settle();
  advance(seconds(10));
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 1) << "it counts as one attempt";
  EXPECT_FALSE(runtime_.container_spec(uid(), "a-0"));
  EXPECT_TRUE(runtime_.container_spec(uid(), "a-1"));
  json::value shown = pod();
  EXPECT_EQ(get_int(*status_of(shown, "a"), "lastState.terminated.exitCode"), 1) << "its result stays";
}

TEST_F(AgentTest, a_failing_network_leaves_nothing_and_is_tried_again) {
  attach_error_ = Error(Code::unavailable, "no address left");
  boot();
  put_pod(kOne);
  EXPECT_TRUE(events_.has("FailedCreatePodSandBox"));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(runtime_.sandboxes()->empty());
  attach_error_.reset();
  advance(seconds(1));
  EXPECT_EQ(state(), "Running");
}

TEST_F(AgentTest, a_pod_whose_link_is_gone_is_attached_again) {
  boot();
  put_pod(kOne);
  ASSERT_EQ(attached_, std::vector<std::string>{uid()});
  agent_->look_at_network(uid());
  agent_->look_at_network("nobody");
  settle();
  EXPECT_EQ(attached_, (std::vector<std::string>{uid(), uid()}));
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 0);
  attach_error_ = Error(Code::unavailable, "no netlink");
  agent_->look_at_network(uid());
  settle();
  attach_error_.reset();
  advance(seconds(1));
  EXPECT_EQ(attached_.size(), 4u) << "once in vain, and once more";
  EXPECT_EQ(state(), "Running");
}

TEST_F(AgentTest, missing_references_are_named_and_healed) {
  boot();
  put_pod(
      R"("containers":[{"name":"a","image":"web:1","env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"settings","key":"x"}}}]}])");
  EXPECT_EQ(state(), "Waiting CreateContainerConfigError");
  EXPECT_TRUE(events_.has("configmap \"settings\" not found"));
  client_.put(kConfigMap,
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},"data":{"x":"1"}})");
  settle();
  EXPECT_EQ(state(), "Running");
}

TEST_F(AgentTest, post_start_and_pre_stop_run) {
  std::vector<std::string> commands;
  runtime_.on_exec(
      [&](const std::string&, const std::string&, const runtime::ExecSpec& spec) -> runtime::FakeRuntime::ExecAnswer {
        commands.push_back(spec.args.front());
        return {};
      });
  boot();
  put_pod(
      R"("containers":[{"name":"a","image":"web:1","lifecycle":{"postStart":{"exec":{"command":["begin"]}},"preStop":{"exec":{"command":["end"]}}}}])");
  EXPECT_EQ(condition("Ready"), "False");
  ASSERT_TRUE(hooks_.run_one());
  settle();
  EXPECT_EQ(condition("Ready"), "True");
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  EXPECT_TRUE(runtime_calls("signal_container").empty());
  ASSERT_TRUE(hooks_.run_one());
  settle();
  EXPECT_EQ(commands, (std::vector<std::string>{"begin", "end"}));
  EXPECT_EQ(runtime_calls("signal_container").size(), 1u);
}

TEST_F(AgentTest, a_failed_post_start_restarts_the_container) {
  runtime_.on_exec(
      [](const auto&, const auto&, const auto&) { return runtime::FakeRuntime::ExecAnswer{.exit_code = 1, .out = "no"}; });
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","lifecycle":{"postStart":{"exec":{"command":["begin"]}}}}])");
  ASSERT_TRUE(hooks_.run_one());
  settle();
  EXPECT_TRUE(events_.has("FailedPostStartHook"));
  EXPECT_EQ(restarts(), 1);
}

TEST_F(AgentTest, a_failed_pre_stop_is_told_and_holds_nothing_up) {
  runtime_.on_exec(
      [](const auto&, const auto&, const auto&) { return runtime::FakeRuntime::ExecAnswer{.exit_code = 1, .out = "no\xff"}; });
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","lifecycle":{"preStop":{"exec":{"command":["end"]}}}}])");
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  ASSERT_TRUE(hooks_.run_one());
  settle();
  EXPECT_TRUE(events_.has("W FailedPreStopHook PreStopHook failed: no\xef\xbf\xbd"));
  EXPECT_EQ(runtime_calls("signal_container").size(), 1u);
}

TEST_F(AgentTest, the_hooks_of_a_pod_end_with_it) {
  boot();
  put_pod(
      R"("containers":[{"name":"a","image":"web:1","lifecycle":{"preStop":{"sleep":{"seconds":3600}}}}],"terminationGracePeriodSeconds":3600)");
  const std::string id = uid();
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {.grace_period_seconds = 3600}));
  settle();
  std::jthread hook([this] { EXPECT_TRUE(hooks_.run_one()); });
  client_.erase(kPod, {"default", "web"});
  settle();
  advance(seconds(1));
  EXPECT_FALSE(runtime_.sandbox_spec(id));
}

TEST_F(AgentTest, a_probe_may_grant_less_time_than_its_pod) {
  runtime_.script("a", {.ignores_signals = true});
  runtime_.on_exec([](const auto&, const auto&, const auto&) { return runtime::FakeRuntime::ExecAnswer{.exit_code = 1}; });
  boot();
  put_pod(R"("terminationGracePeriodSeconds":600,"containers":[{"name":"a","image":"web:1",
    "livenessProbe":{"exec":{"command":["live"]},"failureThreshold":1,"terminationGracePeriodSeconds":3}}])");
  while (agent_->probes().run_one()) settle();
  EXPECT_EQ(runtime_calls("signal_container").size(), 1u);
  advance(seconds(2));
  EXPECT_TRUE(runtime_calls("kill_container").empty());
  advance(seconds(1));
  EXPECT_EQ(runtime_calls("kill_container").size(), 1u);
  EXPECT_EQ(restarts(), 1);
}

TEST_F(AgentTest, probes_decide_readiness_and_restarts) {
  bool healthy = true, ready = false;
  runtime_.on_exec([&](const std::string&, const std::string&, const runtime::ExecSpec& spec) {
    bool fine = spec.args.front() == "live" ? healthy : ready;
    return runtime::FakeRuntime::ExecAnswer{.exit_code = fine ? 0 : 1};
  });
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1",
    "livenessProbe":{"exec":{"command":["live"]},"periodSeconds":5,"failureThreshold":2},
    "readinessProbe":{"exec":{"command":["ready"]},"periodSeconds":5}}])");
  auto probe = [&] {
    while (agent_->probes().run_one()) {
    }
    settle();
  };
  probe();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(condition("Ready"), "False");
  ready = true;
  advance(seconds(5));
  probe();
  EXPECT_EQ(condition("Ready"), "True");
  healthy = false;
  advance(seconds(5));
  probe();
  EXPECT_EQ(restarts(), 0);
  advance(seconds(5));
  probe();
  EXPECT_TRUE(events_.has("Container a failed liveness probe, will be restarted"));
  EXPECT_EQ(restarts(), 1);
}

TEST_F(AgentTest, the_deadline_ends_a_pod) {
  boot();
  put_pod(std::string(kOne) + R"(,"activeDeadlineSeconds":60)");
  advance(seconds(59));
  EXPECT_EQ(phase(), "Running");
  advance(seconds(1));
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(get_string(pod(), "status.reason"), "DeadlineExceeded");
}

TEST_F(AgentTest, a_pod_that_does_not_fit_is_refused) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","resources":{"requests":{"cpu":"5000"}}}])");
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(get_string(pod(), "status.reason"), "OutOfcpu");
  EXPECT_TRUE(runtime_calls("create_sandbox").empty());
  put_pod(R"("containers":[{"name":"a","image":"web:1","ports":[{"containerPort":80,"hostPort":8080}]}])", "first");
  EXPECT_EQ(phase("first"), "Running");
  ASSERT_EQ(host_ports_.size(), 1u);
  EXPECT_EQ(host_ports_[0].host_port, 8080);
  put_pod(R"("containers":[{"name":"a","image":"web:1","ports":[{"containerPort":80,"hostPort":8080}]}])", "second");
  EXPECT_EQ(get_string(pod("second"), "status.reason"), "NodePorts");
}

TEST_F(AgentTest, classes_share_the_cpu_as_their_pods_ask) {
  boot();
  auto container = [](const char* resources) {
    return std::string(R"("containers":[{"name":"a","image":"web:1","resources":)") + resources + "}]";
  };
  put_pod(container("{}"), "idle");
  using Weights = std::map<std::string, uint64_t>;
  EXPECT_EQ(runtime_.class_weights(), (Weights{{"besteffort", 1}, {"burstable", 1}}));
  put_pod(container(R"({"requests":{"cpu":"250m"}})"), "one");
  put_pod(container(R"({"requests":{"cpu":"250m"},"limits":{"memory":"1Gi"}})"), "two");
  EXPECT_EQ(runtime_.class_weights()["burstable"], 59u) << "as one that asks for 500m";
  put_pod(container(R"({"requests":{"cpu":"250m","memory":"1Gi"},"limits":{"cpu":"250m","memory":"1Gi"}})"), "sure");
  EXPECT_EQ(runtime_.class_weights()["guaranteed"], 35u);
  ASSERT_TRUE(client_.remove(kPod, {"default", "two"}, {}));
  settle();
  EXPECT_EQ(runtime_.class_weights()["burstable"], 35u);
  boot();  // a new daemon
  EXPECT_EQ(runtime_.class_weights(), (Weights{{"besteffort", 1}, {"burstable", 35}, {"guaranteed", 35}}));
}

TEST_F(AgentTest, says_which_limits_it_cannot_hold) {
  runtime_.set_enforcement({.memory = false, .cpu = true, .pids = true, .missing = "the memory controller is not there"});
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","resources":{"limits":{"memory":"64Mi"}}}])");
  EXPECT_TRUE(events_.has("cannot hold the pod's limits of memory: the memory controller is not there"));
}

TEST_F(AgentTest, static_pods_run_and_are_mirrored) {
  std::filesystem::create_directories(config_.manifests_dir);
  std::ofstream(config_.manifests_dir + "/db.yaml")
      << "apiVersion: v1\nkind: Pod\nmetadata:\n  name: db\nspec:\n  containers:\n  - name: a\n    image: web:1\n";
  boot();
  agent_->read_manifests();
  settle();
  ObjectPtr mirror = client_.find(kPod, {"default", "db-node-1"});
  ASSERT_TRUE(mirror);
  EXPECT_FALSE(mirror->annotation("kubernetes.io/config.mirror").empty());
  EXPECT_EQ(phase("db-node-1"), "Running");
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 1u);
  // Deleting the mirror pod has no effect; removing the manifest has.
  client_.erase(kPod, {"default", "db-node-1"});
  settle();
  agent_->read_manifests();
  settle();
  EXPECT_TRUE(client_.find(kPod, {"default", "db-node-1"}));
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 1u);
  std::filesystem::remove(config_.manifests_dir + "/db.yaml");
  agent_->read_manifests();
  settle();
  EXPECT_FALSE(client_.find(kPod, {"default", "db-node-1"}));
  EXPECT_EQ(runtime_.sandboxes()->size(), 0u);
}

TEST_F(AgentTest, a_changed_static_pod_waits_for_the_end_of_the_one_before) {
  runtime_.script("a", {.ignores_signals = true});
  auto write = [&](const std::string& image) {
    std::ofstream(config_.manifests_dir + "/db.yaml")
        << "apiVersion: v1\nkind: Pod\nmetadata:\n  name: db\nspec:\n  terminationGracePeriodSeconds: 5\n"
           "  containers:\n  - {name: a, image: \"" +
               image + "\", ports: [{containerPort: 80, hostPort: 80}]}\n";
    agent_->read_manifests();
    settle();
  };
  std::filesystem::create_directories(config_.manifests_dir);
  boot();
  write("web:1");
  EXPECT_EQ(phase("db-node-1"), "Running");
  write("docker.io/library/web:1");
  agent_->read_manifests();
  settle();
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 1u);
  advance(seconds(5));
  EXPECT_EQ(runtime_calls("create_sandbox").size(), 2u);
  EXPECT_EQ(phase("db-node-1"), "Running");
  EXPECT_EQ(runtime_.sandboxes()->size(), 1u);
}

}  // namespace
}  // namespace coracle::node
