// SPDX-License-Identifier: Apache-2.0
// The driver of the benchmarks: it talks to the live daemon like any client, runs runc for comparison, reads /proc, and computes
// the results. The scripts (pod_start.sh, idle.sh, restart.sh) create the machine.
//   driver bundle DIR                       adds the default seccomp profile to DIR/config.json (made by `runc spec`)
//   driver pod-start KUBECONFIG LOGS BUNDLE COUNT
//   driver crash KUBECONFIG LOGS BUNDLE COUNT
//   driver killed KUBECONFIG LOGS COUNT     containers killed with SIGKILL, until they run again
//   driver replaced KUBECONFIG COUNT        a Deployment's pods deleted, until another is Ready
//   driver pods KUBECONFIG COUNT            creates pods that stay, and waits until they run
//   driver objects KUBECONFIG COUNT         creates ConfigMaps
//   driver list KUBECONFIG COUNT            creates so many pods that never run, then lists them a few times
//   driver gated KUBECONFIG COUNT           creates pods of 4 KB with a scheduling gate
//   driver watchers KUBECONFIG WATCHERS PER_SECOND SECONDS   the delay of a change to each of so many watchers
//   driver last-watcher KUBECONFIG CHANGES  the delay of a change to the last of 1, 50 and 300 watchers
//   driver many-pods KUBECONFIG DAEMON_PID PODS SECONDS   so many pods in one go: their rate, memory meanwhile and afterwards
//   driver token KUBECONFIG TOKEN DAEMON_PID ROUNDS SECONDS   GETs by certificate and by TOKEN, in turns
//   driver answer KUBECONFIG PATH FILE      writes the response to a GET into FILE, as it came
//   driver against-bare KUBECONFIG TOKEN PATH PORT CONNECTIONS ROUNDS SECONDS BAR   GETs by certificate, by TOKEN, and
//                                           from bare_tls at PORT, in turns
//   driver memory KUBECONFIG DAEMON_PID COUNT   the memory that so many gated pods add to the daemon
//   driver comes-back KUBECONFIG DAEMON_PID OBJECTS PODS SECONDS   the memory that is left so long after their deletion
//   driver claim-start KUBECONFIG LOGS COUNT   pods with an emptyDir and with a new claim, in turns
//   driver claims-pass KUBECONFIG DAEMON_PID STATE_DIR CLAIMS AT_ONCE SECONDS   what is left of deleted claims with pods
//   driver stalled KUBECONFIG DAEMON_PID WATCHERS   memory for so many watchers of objects of 200 KB that never read
//   driver at-once KUBECONFIG CARD MS COUNT RUN   so many creates of a kind at the same time, while the disk takes MS for each
//                                           write (the file CARD tells slow_card.cc); RUN names the objects
//   driver request-costs KUBECONFIG TOKEN COUNTS DAEMON_PID FILE COUNT   allocations (COUNTS is of allocations.cc) and system
//                                           calls (strace writes FILE) of the daemon for one request of each sort
//   driver growth KUBECONFIG DAEMON_PID COUNT SERVICES OBJECTS   the cost of changes among 100 objects of a kind, and among so
//                                           many Services and ConfigMaps
//   driver kernel-kib                       memory of the kernel itself
//   driver idle SECONDS KERNEL_KIB_BEFORE DAEMON_PID PAUSE_PID…
//   driver quiet SECONDS DAEMON_PID PAUSE_PID…   the same without memory, where nothing at all is to be written
//   driver ready KUBECONFIG LOG COMMAND…    starts the daemon, prints its pid and the time until it was ready
// Times are CLOCK_MONOTONIC, as stamp prints them. Lines that begin with "bench:" are for people: "held" and "MISSED" precede a
// number and its limit. Any other problem is "not ok", and a failure.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "runtime/runtime.h"
#include "runtime/sys/file.h"
#include "runtime/sys/project_quota.h"
#include "store/client/kubeconfig.h"
#include "store/client/remote.h"
#include "store/object/object.h"
#include "tests/bench/light_clients.h"
#include "tests/bench/light_watchers.h"

namespace fs = std::filesystem;
using namespace coracle;

namespace {

constexpr double kTimeoutMs = 30'000;

// ---- helpers ----

double now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) / 1e6;
}

void nap_ms(int ms) { ::poll(nullptr, 0, ms); }

bool until(const std::function<bool()>& done, double timeout_ms = kTimeoutMs) {
  for (double end = now_ms() + timeout_ms; now_ms() < end; nap_ms(2))
    if (done()) return true;
  return false;
}

std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

[[noreturn]] void die(const std::string& why) {
  std::printf("not ok - %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T need(Result<T> result, const char* doing) {
  if (!result) die(std::string(doing) + ": " + result.error().text());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// Reports a missed limit without failing: a measurement depends on the machine's other load.
void bar(bool held, const char* format, auto... values) {
  std::printf("bench: %-6s ", held ? "held" : "MISSED");
  std::printf(format, values...);
  std::printf("\n");
}

struct Samples {
  std::vector<double> ms;
  double at(double share) {
    if (ms.empty()) return NAN;
    std::sort(ms.begin(), ms.end());
    return ms[std::min(ms.size() - 1, size_t(share * double(ms.size())))];
  }
  void print(const char* name) {
    std::printf("bench: %-28s n=%zu  median %.3f ms  p90 %.2f  p99 %.2f  least %.2f  most %.2f\n", name, ms.size(), at(.5),
                at(.9), at(.99), at(0), at(1));
  }
};

std::unique_ptr<Remote> connect(const char* kubeconfig) {
  ServerAccess access = need(read_kubeconfig(kubeconfig), "kubeconfig");
  access.local_socket.clear();  // clients of the network are measured
  return need(Remote::make(std::move(access)), "client");
}

json::value pod_body(const std::string& name, const std::string& argument, const char* restart_policy) {
  json::object container{{"name", "c"},
                         {"image", "localhost/stamp:latest"},
                         {"imagePullPolicy", "Never"},
                         {"command", json::array{"/stamp", argument}}};
  container["securityContext"] = json::object{{"seccompProfile", json::object{{"type", "RuntimeDefault"}}}};
  return json::object{{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                      {"spec", json::object{{"restartPolicy", restart_policy},
                                            {"terminationGracePeriodSeconds", 0},
                                            {"containers", json::array{std::move(container)}}}}};
}

// The stamp in a CRI log line: "<time> stdout F <nanoseconds>". 0 while it is absent.
double stamp_in(const fs::path& log) {
  std::string text = slurp(log);
  size_t line = text.find('\n');
  if (line == std::string::npos) return 0;
  size_t space = text.rfind(' ', line);
  return parse_number<uint64_t>(trim(std::string_view(text).substr(space + 1, line - space - 1))).value_or(0) / 1e6;
}

fs::path log_of(const char* logs, const Object& pod, int attempt) {
  return fs::path(logs) / ("default_" + pod.name() + "_" + pod.uid()) / "c" / (std::to_string(attempt) + ".log");
}

void remove_pod(Client& client, const std::string& name) {
  (void)client.remove(kPod, {"default", name}, {.grace_period_seconds = 0});  // it may have ended by itself
}

// ---- pod start, compared with runc ----

double start_pod(Client& client, const char* logs, int i) {
  std::string name = "start-" + std::to_string(i);
  double begun = now_ms();
  ObjectPtr pod = need(client.create(kPod, pod_body(name, "0", "Never")), "create pod");
  double stamp = 0;
  if (!until([&] { return (stamp = stamp_in(log_of(logs, *pod, 0))) > 0; })) die("pod " + name + " did not start");
  remove_pod(client, name);
  return stamp - begun;
}

double run_runc(const char* bundle, int i) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) < 0) die("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  std::string id = "bench-" + std::to_string(::getpid()) + "-" + std::to_string(i);
  const char* argv[] = {"runc", "run", "--bundle", bundle, id.c_str(), nullptr};
  pid_t pid;
  double begun = now_ms();
  if (::posix_spawnp(&pid, "runc", &actions, nullptr, const_cast<char**>(argv), environ) != 0) die("runc does not start");
  ::close(out[1]);
  char buffer[256];
  std::string text;
  for (ssize_t got; (got = ::read(out[0], buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(got));
  ::close(out[0]);
  int status;
  ::waitpid(pid, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  auto stamp = parse_number<uint64_t>(trim(text));
  if (!stamp) die("runc run failed: " + text);
  return double(*stamp) / 1e6 - begun;
}

int pod_start(const char* kubeconfig, const char* logs, const char* bundle, int count) {
  auto client = connect(kubeconfig);
  Samples ours, runc;
  for (int i = -5; i < count; ++i) {  // five warm-up rounds for both
    double one = start_pod(*client, logs, i + 5), other = run_runc(bundle, i + 5);
    if (i < 0) continue;
    ours.ms.push_back(one);
    runc.ms.push_back(other);
  }
  ours.print("POST pod to first instruction");
  runc.print("runc run of one container");
  bar(ours.at(.5) <= 0.5 * runc.at(.5), "median %.2f of runc's (bar 0.5)", ours.at(.5) / runc.at(.5));
  bar(ours.at(.99) <= 1.5 * runc.at(.5), "p99 %.2f of runc's median (bar 1.5)", ours.at(.99) / runc.at(.5));
  std::printf("bench: runc-median-ms %.3f\n", runc.at(.5));
  return 0;
}

// ---- restart of a crashed container ----

int crash(const char* kubeconfig, const char* logs, const char* bundle, int count) {
  auto client = connect(kubeconfig);
  Samples again, runc;
  for (int i = 0; i < count; ++i) {
    std::string name = "crash-" + std::to_string(i);
    ObjectPtr pod = need(client->create(kPod, pod_body(name, "1", "Always")), "create pod");
    double first = 0, second = 0;
    bool done = until([&] {
      first = stamp_in(log_of(logs, *pod, 0));
      second = stamp_in(log_of(logs, *pod, 1));
      return first > 0 && second > 0;
    });
    if (!done) die("pod " + name + " did not run again");
    again.ms.push_back(second - first);  // it ends some microseconds after its stamp
    remove_pod(*client, name);
    runc.ms.push_back(run_runc(bundle, 10'000 + i));
  }
  again.print("crash to first instruction");
  runc.print("runc run of one container");
  bar(again.at(.5) <= 0.3 * runc.at(.5), "a crashed container runs again in %.2f of runc's median (bar 0.3)",
      again.at(.5) / runc.at(.5));
  return 0;
}

// ---- recovery after kills and deletions ----

// The process whose first argument is `argument`; 0 if there is none.
pid_t process_with(const std::string& argument) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    auto pid = parse_number<int>(entry.path().filename().string());
    if (pid && slurp(entry.path() / "cmdline") == "/stamp" + std::string(1, '\0') + argument + std::string(1, '\0')) return *pid;
  }
  return 0;
}

int killed(const char* kubeconfig, const char* logs, int count) {
  auto client = connect(kubeconfig);
  Samples back;
  for (int i = 0; i < count; ++i) {
    std::string name = "killed-" + std::to_string(i), argument = "stay-" + name + "-" + std::to_string(::getpid());
    ObjectPtr pod = need(client->create(kPod, pod_body(name, argument, "Always")), "create pod");
    if (!until([&] { return stamp_in(log_of(logs, *pod, 0)) > 0; })) die("pod " + name + " did not start");
    nap_ms(50);  // all clients have the events of its start
    pid_t process = process_with(argument);
    if (process <= 0) die("no process of " + name);
    double begun = now_ms(), again = 0;
    ::kill(process, SIGKILL);
    if (!until([&] { return (again = stamp_in(log_of(logs, *pod, 1))) > 0; })) die("pod " + name + " did not run again");
    back.ms.push_back(again - begun);
    remove_pod(*client, name);
  }
  back.print("SIGKILL to running again");
  bar(back.at(.5) <= 20, "a killed container is back after %.1f ms (bar 20)", back.at(.5));
  return 0;
}

// Records when an unknown pod becomes Ready.
class ReadyPods : public WatchSink {
 public:
  void on_event(const WatchEvent& event) override {
    if (!event.object || event.type == EventType::deleted) return;
    for (const json::value& condition : get_array(event.object->json(), "status.conditions"))
      if (get_string(condition, "type") == "Ready" && get_string(condition, "status") == "True")
        at_.with([&](auto& at) { at.try_emplace(event.object->name(), now_ms()); });
  }
  void on_end(const Error& why) override { die("watch: " + why.text()); }
  std::map<std::string, double> at() const {
    return at_.with([](const auto& at) { return at; });
  }

 private:
  Guarded<std::map<std::string, double>> at_;
};

int replaced(const char* kubeconfig, int count) {
  auto client = connect(kubeconfig);
  json::value pod = pod_body("", "stay", "Always");
  json::value labels = json::object{{"app", "replaced"}};
  json::object pod_template{{"metadata", json::object{{"labels", labels}}}, {"spec", pod.at("spec")}};
  json::object spec{{"replicas", 1}, {"selector", json::object{{"matchLabels", labels}}}, {"template", std::move(pod_template)}};
  (void)need(client->create(kDeployment, json::object{{"apiVersion", "apps/v1"},
                                                      {"kind", "Deployment"},
                                                      {"metadata", json::object{{"name", "replaced"}, {"namespace", "default"}}},
                                                      {"spec", std::move(spec)}}),
             "create deployment");
  ReadyPods ready;
  auto watch = need(client->watch(kPod, {.ns = "default", .label_selector = "app=replaced"}, ready), "watch pods");
  Samples took;
  for (int i = 0; i < count; ++i) {
    std::map<std::string, double> before;
    if (!until([&] { return (before = ready.at()).size() == size_t(i + 1); })) die("no ready pod");
    nap_ms(100);
    auto current =
        std::max_element(before.begin(), before.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    double begun = now_ms();
    (void)need(client->remove(kPod, {"default", current->first}), "delete pod");
    std::map<std::string, double> after;
    if (!until([&] { return (after = ready.at()).size() > before.size(); })) die("pod was not replaced");
    for (const auto& [name, when] : after)
      if (!before.contains(name)) took.ms.push_back(when - begun);
  }
  watch.reset();
  (void)client->remove(kDeployment, {"default", "replaced"});  // the machine is removed anyway
  took.print("DELETE pod to another Ready");
  bar(took.at(.5) <= 100, "a deleted pod is replaced and Ready after %.1f ms (bar 100)", took.at(.5));
  return 0;
}

// ---- many pods, many objects ----

int make_pods(const char* kubeconfig, int count) {
  auto client = connect(kubeconfig);
  double begun = now_ms();
  for (int i = 0; i < count; ++i)
    (void)need(client->create(kPod, pod_body("stay-" + std::to_string(i), "stay", "Always")), "create pod");
  auto running = [&] {
    ObjectList list = need(client->list(kPod, {.ns = "default"}), "list pods");
    return std::count_if(list.items.begin(), list.items.end(),
                         [](const ObjectPtr& pod) { return get_string(pod->json(), "status.phase") == "Running"; });
  };
  long reached = 0;
  for (double end = now_ms() + 120'000; (reached = running()) < count; nap_ms(100))
    if (now_ms() > end) die(std::to_string(reached) + " of " + std::to_string(count) + " pods run");
  std::printf("bench: %d pods created and running in %.0f ms\n", count, now_ms() - begun);
  return 0;
}

int make_objects(const char* kubeconfig, int count) {
  auto client = connect(kubeconfig);
  Samples each;
  double begun = now_ms();
  for (int i = 0; i < count; ++i) {
    json::object body{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::object{{"name", "bench-" + std::to_string(i)}, {"namespace", "default"}}},
                      {"data", json::object{{"text", std::string(1000, 'x')}}}};
    double one = now_ms();
    (void)need(client->create(kConfigMap, body), "create config map");
    each.ms.push_back(now_ms() - one);
  }
  each.print("create, on the disk");
  bar(each.at(.5) <= 1.5, "create %.2f ms (bar 1.5)", each.at(.5));
  std::printf("bench: %d objects created in %.0f ms (%.2f ms each)\n", count, now_ms() - begun, (now_ms() - begun) / count);
  return 0;
}

int list_pods(const char* kubeconfig, int count) {
  auto client = connect(kubeconfig);
  for (int i = 0; i < count; ++i) {
    json::value pod = pod_body("idle-" + std::to_string(i), "0", "Never");
    make(pod, "spec.nodeName") = "nowhere";  // listed and never run
    (void)need(client->create(kPod, pod), "create pod");
  }
  Samples each;
  size_t bytes = 0;
  for (int i = 0; i < 30; ++i) {
    double one = now_ms();
    HttpAnswer answer = need(client->http().send({.path = "/api/v1/pods"}), "list pods");
    each.ms.push_back(now_ms() - one);
    if (answer.status != 200) die("list pods: " + std::to_string(answer.status));
    bytes = answer.body.size();
  }
  std::printf("bench: a list of %d pods is %.1f MB\n", count, double(bytes) / 1e6);
  each.print("list");
  return 0;
}

// ---- memory of stored objects ----

constexpr size_t kPodBytes = 4 << 10;  // as stored

json::value gated_pod(const std::string& name, size_t padding) {
  json::value pod = pod_body(name, "0", "Never");
  make(pod, "spec.schedulingGates") = json::array{json::object{{"name", "bench.example.com/never"}}};
  make(pod, "metadata.annotations") = json::object{{"padding", std::string(padding, 'x')}};
  return pod;
}

int make_gated(const char* kubeconfig, int count) {
  auto client = connect(kubeconfig);
  size_t bare = need(client->create(kPod, gated_pod("bare", 0)), "create pod")->text().size(), bytes = 0;
  remove_pod(*client, "bare");
  for (int i = 0; i < count; ++i)
    bytes += need(client->create(kPod, gated_pod("gated-" + std::to_string(i), kPodBytes - bare)), "create pod")->text().size();
  std::printf("bench: %d pods of %zu bytes\n", count, bytes / size_t(std::max(count, 1)));
  return 0;
}

// ---- many watchers ----

// Watches of one ConfigMap, whose data.at is the time of its change in milliseconds.
class Watched {
 public:
  Watched(Client& client, const ServerAccess& access, const std::string& name, int count)
      : client_(client), key_{"default", name}, delays_(static_cast<size_t>(count)) {
    json::value body = body_at(now_ms());
    make(body, "metadata") = json::object{{"name", name}, {"namespace", "default"}};
    (void)need(client.create(kConfigMap, body), "create config map");
    auto seen = [&](int watch, std::string_view at) {
      std::vector<double>& ms = delays_[size_t(watch)].ms;
      ms.push_back(now_ms() - std::strtod(std::string(at).c_str(), nullptr));
      if (ms.size() == 1) begun_++;  // the initial state of the watch
    };
    std::string path = "/api/v1/namespaces/default/configmaps?watch=true&fieldSelector=metadata.name%3D" + name;
    all_ = need(LightWatchers::make(access, path, count, "\"at\":\"", seen), "watch");
    if (!until([&] { return begun_ == count; })) die("not every watch begins");
  }

  // Returns how long the request took. Blocks until it is answered.
  double change() {
    double begun = now_ms();
    (void)need(client_.patch(kConfigMap, key_, PatchType::merge, body_at(begun)), "patch");
    changes_++;
    return now_ms() - begun;
  }

  // Ends the watches. The delays of each watch, in the order of the changes.
  std::vector<Samples> end() {
    nap_ms(500);
    all_.reset();
    for (Samples& each : delays_) {
      if (each.ms.size() != changes_ + 1)
        die("a watcher saw " + std::to_string(each.ms.size() - 1) + " of " + std::to_string(changes_));
      each.ms.erase(each.ms.begin());
    }
    return std::move(delays_);
  }

 private:
  static json::object body_at(double at) { return json::object{{"data", json::object{{"at", std::to_string(at)}}}}; }

  Client& client_;
  Key key_;
  std::vector<Samples> delays_;  // written by the thread of `all_`
  std::atomic<int> begun_ = 0;
  size_t changes_ = 0;
  std::unique_ptr<LightWatchers> all_;
};

int watchers(const char* kubeconfig, int count, int per_second, int seconds) {
  auto client = connect(kubeconfig);
  Watched watched(*client, client->http().access(), "watched", count);
  int changes = per_second * seconds;
  double begun = now_ms();
  for (int i = 0; i < changes; ++i) {
    double due = begun + 1e3 * i / per_second;
    if (double left = due - now_ms(); left > 0) nap_ms(int(left));
    watched.change();
  }
  double took = now_ms() - begun;
  Samples all;
  for (const Samples& each : watched.end()) all.ms.insert(all.ms.end(), each.ms.begin(), each.ms.end());
  all.print("change to watcher");
  bar(all.at(.5) < 5, "%d watchers, %.0f changes/s: median %.2f ms (bar 5)", count, 1e3 * changes / took, all.at(.5));
  return 0;
}

// An event begins when its change is on the disk. Nobody outside sees that moment: the writer's response is sent right after it,
// so the event's time is counted from the response. An event may also arrive before the response: then it took no time.
int last_watcher(const char* kubeconfig, int changes) {
  constexpr std::pair<int, double> kBars[] = {{1, 0.3}, {50, 0.6}, {300, 1}};  // watchers, milliseconds
  auto client = connect(kubeconfig);
  for (auto [count, most_ms] : kBars) {
    std::string title = std::to_string(count) + (count == 1 ? " watcher" : " watchers");
    Watched watched(*client, client->http().access(), "watched-by-" + std::to_string(count), count);
    Samples requests, last, events;
    for (int i = 0; i < changes; ++i) {
      requests.ms.push_back(watched.change());
      nap_ms(20);  // the watches come to rest
    }
    std::vector<Samples> delays = watched.end();
    for (size_t i = 0; i < requests.ms.size(); ++i) {
      double latest = 0;
      for (const Samples& each : delays) latest = std::max(latest, each.ms[i]);
      last.ms.push_back(latest);
      events.ms.push_back(std::max(0.0, latest - requests.ms[i]));
    }
    requests.print((title + ": the request").c_str());
    last.print((title + ": request to last").c_str());
    events.print((title + ": event to last").c_str());
    bar(events.at(.5) <= most_ms, "an event reaches the last of %s after %.2f ms (bar %.1f)", title.c_str(), events.at(.5),
        most_ms);
  }
  return 0;
}

// ---- the cost of an idle machine ----

int64_t field_kib(const std::string& text, const std::string& name) {
  size_t at = text.find("\n" + name + ":");
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at + name.size() + 2, nullptr, 10);
}

int64_t pss_kib(const std::string& pid, const char* part = "Pss") {
  return field_kib("\n" + slurp("/proc/" + pid + "/smaps_rollup"), part);
}

double cpu_seconds(const std::string& pid) {  // including ended threads
  std::string stat = slurp("/proc/" + pid + "/stat");
  size_t paren = stat.rfind(')');
  if (paren == std::string::npos) return 0;
  std::istringstream rest(stat.substr(paren + 2));
  std::string skip;
  for (int i = 0; i < 11; ++i) rest >> skip;
  double user = 0, system = 0;
  rest >> user >> system;
  return (user + system) / double(::sysconf(_SC_CLK_TCK));
}

int64_t written_bytes(const std::string& pid) {
  std::string io = "\n" + slurp("/proc/" + pid + "/io");
  size_t at = io.find("\nwrite_bytes:");
  return at == std::string::npos ? 0 : std::strtoll(io.c_str() + at + 13, nullptr, 10);
}

int64_t kernel_kib() {  // kernel memory for processes and namespaces
  std::string info = "\n" + slurp("/proc/meminfo");
  int64_t sum = 0;
  for (const char* name : {"Slab", "KernelStack", "PageTables", "Percpu", "VmallocUsed"}) sum += field_kib(info, name);
  return sum;
}

// ---- by certificate and by token ----

int token(const char* kubeconfig, const char* token, const std::string& daemon, int rounds, int seconds) {
  constexpr int kConnections = 8;
  if (make_gated(kubeconfig, 1)) return 1;
  ServerAccess by_certificate = need(read_kubeconfig(kubeconfig), "kubeconfig"), by_token = by_certificate;
  by_certificate.token.clear();
  by_token.token = token;
  struct Way {
    const char* name;
    const ServerAccess& access;
    Samples rate, cost;  // responses per second; microseconds of the daemon's processor time for one
  } ways[] = {{"certificate", by_certificate, {}, {}}, {"token", by_token, {}, {}}};
  for (int round = -1; round < rounds; ++round)  // one warm-up round for both
    for (int pass = 0; pass < 2; ++pass) {
      Way& way = ways[(round + 2 + pass) % 2];  // they alternate in being first
      double cpu = cpu_seconds(daemon);
      std::chrono::milliseconds span(round < 0 ? 500 : 1000 * seconds);
      double rate = need(answers_per_second(way.access, "/api/v1/namespaces/default/pods/gated-0", kConnections, span), "GET");
      double answers = rate * double(span.count()) / 1e3;
      if (round < 0) continue;
      way.rate.ms.push_back(rate);
      way.cost.ms.push_back((cpu_seconds(daemon) - cpu) * 1e6 / answers);
    }
  Samples ratios;  // of each round, since the machine's speed drifts
  for (size_t i = 0; i < ways[0].rate.ms.size(); ++i) ratios.ms.push_back(ways[1].rate.ms[i] / ways[0].rate.ms[i]);
  for (Way& way : ways)
    std::printf("bench: GET by %-12s n=%zu  median %.0f a second (%.0f to %.0f), %.1f us of the daemon each\n", way.name,
                way.rate.ms.size(), way.rate.at(.5), way.rate.at(0), way.rate.at(1), way.cost.at(.5));
  double ratio = ratios.at(.5);
  bar(ratio >= 0.9, "GET by token %.2f of GET by certificate (median of the rounds' ratios, %.2f to %.2f; bar 0.9)", ratio,
      ratios.at(0), ratios.at(1));
  return 0;
}

int write_answer(const char* kubeconfig, const char* path, const std::string& file) {
  ServerAccess access = need(read_kubeconfig(kubeconfig), "kubeconfig");
  access.token.clear();
  (void)need(sys::replace_file(file, need(answer_bytes(access, path), "GET"), 0600), "write");
  return 0;
}

int against_bare(const char* kubeconfig, const char* token, const std::string& path, const std::string& port, int connections,
                 int rounds, int seconds, double least) {
  ServerAccess by_certificate = need(read_kubeconfig(kubeconfig), "kubeconfig");
  by_certificate.token.clear();
  ServerAccess by_token = by_certificate;
  by_token.token = token;
  ServerAccess bare = by_certificate, bare_by_token = by_token;  // it reads the same requests
  bare.server = bare_by_token.server = "https://127.0.0.1:" + port;
  struct Way {
    const char* name;
    const ServerAccess &ours, &bare;
    Samples rate, bare_rate, ratio;  // responses per second; of each round, since the machine's speed drifts
  } ways[] = {{"certificate", by_certificate, bare, {}, {}, {}}, {"token", by_token, bare_by_token, {}, {}, {}}};
  for (int round = -1; round < rounds; ++round)  // one warm-up round for all
    for (Way& way : ways) {
      std::chrono::milliseconds span(round < 0 ? 500 : 1000 * seconds);
      double rates[2];
      for (int pass = 0; pass < 2; ++pass) {  // they take turns in being first
        const bool is_bare = (round + pass) % 2 == 0;
        rates[is_bare] = need(answers_per_second(is_bare ? way.bare : way.ours, path, connections, span), "GET");
      }
      if (round < 0) continue;
      way.rate.ms.push_back(rates[0]), way.bare_rate.ms.push_back(rates[1]);
      way.ratio.ms.push_back(rates[0] / rates[1]);
    }
  for (Way& way : ways) {
    std::printf(
        "bench: GET %s by %s over %d connections n=%zu  median %.0f a second (%.0f to %.0f), bare loop %.0f (%.0f to %.0f)\n",
        path.c_str(), way.name, connections, way.rate.ms.size(), way.rate.at(.5), way.rate.at(0), way.rate.at(1),
        way.bare_rate.at(.5), way.bare_rate.at(0), way.bare_rate.at(1));
    bar(way.ratio.at(.5) >= least,
        "by %s over %d connections %.2f of the bare loop (median of the rounds' ratios, %.2f to %.2f; bar %.1f)", way.name,
        connections, way.ratio.at(.5), way.ratio.at(0), way.ratio.at(1), least);
  }
  return 0;
}

int memory(const char* kubeconfig, const std::string& daemon, int count) {
  int64_t before = pss_kib(daemon);
  if (make_gated(kubeconfig, count)) return 1;
  nap_ms(3000);  // until pending work is done
  double more = double(pss_kib(daemon) - before) / 1024;
  bar(more <= 60, "%d pods add %.1f MiB to the daemon's memory (bar 60)", count, more);
  return 0;
}

// Counts its events.
class Counted : public WatchSink {
 public:
  void on_event(const WatchEvent& event) override {
    if (event.object) events_++;
  }
  void on_end(const Error& why) override { die("watch: " + why.text()); }
  int events() const { return events_; }

 private:
  std::atomic<int> events_ = 0;
};

void print_pss(const char* when, const std::string& daemon) {
  std::printf("bench: %-34s %6.1f MiB: %.1f its own, %.1f of files\n", when, double(pss_kib(daemon)) / 1024,
              double(pss_kib(daemon, "Pss_Anon")) / 1024, double(pss_kib(daemon, "Pss_File")) / 1024);
}

// Objects of about a kilobyte; then pods, created all at once as by a Deployment.
int comes_back(const char* kubeconfig, const std::string& daemon, int objects, int pods, int seconds) {
  auto client = connect(kubeconfig);
  nap_ms(1000 * seconds);  // until the effects of the start are over
  print_pss("fresh", daemon);
  int64_t fresh = pss_kib(daemon);
  Counted seen;
  auto watch = need(client->watch(kConfigMap, {.ns = "default"}, seen), "watch");
  for (int i = 0; i < objects; ++i)
    (void)need(client->create(kConfigMap, json::object{{"apiVersion", "v1"},
                                                       {"kind", "ConfigMap"},
                                                       {"metadata", json::object{{"name", "passing-" + std::to_string(i)},
                                                                                 {"namespace", "default"}}},
                                                       {"data", json::object{{"text", std::string(1000, 'x')}}}}),
               "create config map");
  for (int i = 0; i < 10; ++i)
    if (need(client->list(kConfigMap, {.ns = "default"}), "list").items.size() < size_t(objects)) die("the list is not whole");
  if (!until([&] { return seen.events() >= objects; })) die("the watch missed something");
  print_pss("with all objects", daemon);
  for (int i = 0; i < objects; ++i)
    (void)need(client->remove(kConfigMap, {"default", "passing-" + std::to_string(i)}), "delete config map");
  if (!until([&] { return seen.events() >= 2 * objects; })) die("the watch missed something");
  watch.reset();
  constexpr int kAtOnce = 50;  // the node's limit is 110
  for (int begun = 0; begun < pods; begun += kAtOnce) {
    int end = std::min(pods, begun + kAtOnce);
    auto name = [](int i) { return "passing-" + std::to_string(i); };
    for (int i = begun; i < end; ++i) (void)need(client->create(kPod, pod_body(name(i), "stay", "Always")), "create pod");
    auto running = [&] {
      ObjectList list = need(client->list(kPod, {.ns = "default"}), "list pods");
      return std::count_if(list.items.begin(), list.items.end(), [](const ObjectPtr& pod) {
        return pod->name().starts_with("passing-") && get_string(pod->json(), "status.phase") == "Running";
      });
    };
    if (!until([&] { return nap_ms(100), running() == end - begun; }, 120'000)) die("not all pods run");
    if (end == pods) print_pss("with the last pods", daemon);
    for (int i = begun; i < end; ++i) remove_pod(*client, name(i));
    if (!until([&] { return nap_ms(100), running() == 0; }, 120'000)) die("not all pods went");
  }
  print_pss("right after", daemon);
  client.reset();
  nap_ms(1000 * seconds);
  print_pss("in the end", daemon);
  double ratio = double(pss_kib(daemon)) / double(fresh);
  bar(fresh <= 18 * 1024, "fresh PSS %.1f MiB (bar 18)", double(fresh) / 1024);
  bar(ratio <= 1.1, "%d s after %d objects and %d pods: %.2f of the fresh PSS (bar 1.1)", seconds, objects, pods, ratio);
  return 0;
}

// Records when an unknown pod runs.
class RunningPods : public WatchSink {
 public:
  void on_event(const WatchEvent& event) override {
    if (!event.object) return;
    bool runs = event.type != EventType::deleted && get_string(event.object->json(), "status.phase") == "Running";
    all_.with([&](All& all) {
      if (runs && all.names.insert(event.object->name()).second) all.last_ms = now_ms();
      if (event.type == EventType::deleted) all.gone++;
    });
  }
  void on_end(const Error& why) override { die("watch: " + why.text()); }
  size_t count() const {
    return all_.with([](const All& all) { return all.names.size(); });
  }
  size_t gone() const {
    return all_.with([](const All& all) { return all.gone; });
  }
  double last_ms() const {
    return all_.with([](const All& all) { return all.last_ms; });
  }

 private:
  struct All {
    std::set<std::string> names;
    double last_ms = 0;
    size_t gone = 0;
  };
  Guarded<All> all_;
};

// The pods are created over eight connections, as fast as the server takes them.
int many_pods(const char* kubeconfig, const std::string& daemon, int count, int seconds) {
  constexpr int kConnections = 8;
  constexpr double kTimeout = 180'000;
  auto client = connect(kubeconfig);
  nap_ms(1000 * seconds);  // until the effects of the start are over
  int64_t fresh = pss_kib(daemon), most = 0;
  print_pss("fresh", daemon);
  RunningPods pods;
  auto watch = need(client->watch(kPod, {.ns = "default"}, pods), "watch pods");
  double begun = now_ms();
  std::vector<std::jthread> creators;
  for (int part = 0; part < kConnections; ++part)
    creators.emplace_back([&, part] {
      auto own = connect(kubeconfig);
      for (int i = part; i < count; i += kConnections)
        (void)need(own->create(kPod, pod_body("many-" + std::to_string(i), "stay", "Always")), "create pod");
    });
  auto measured = [&](const std::function<bool()>& done) {
    return until(
        [&] {
          most = std::max(most, pss_kib(daemon));
          nap_ms(100);
          return done();
        },
        kTimeout);
  };
  if (!measured([&] { return pods.count() == size_t(count); }))
    die(std::to_string(pods.count()) + " of " + std::to_string(count) + " pods run");
  creators.clear();
  double per_second = 1e3 * count / (pods.last_ms() - begun);
  print_pss("with all pods", daemon);
  double deleted = now_ms();
  for (int i = 0; i < count; ++i) remove_pod(*client, "many-" + std::to_string(i));
  if (!measured([&] { return pods.gone() == size_t(count); })) die("not all pods went");
  std::printf("bench: %d pods deleted one after another in %.1f s\n", count, (now_ms() - deleted) / 1e3);
  watch.reset();
  client.reset();
  nap_ms(1000 * seconds);
  print_pss("in the end", daemon);
  double ratio = double(pss_kib(daemon)) / double(fresh);
  bar(per_second >= 150, "%d pods in one go: %.0f a second to Running (bar 150)", count, per_second);
  bar(most <= 60 * 1024, "PSS %.1f MiB at most meanwhile (bar 60)", double(most) / 1024);
  bar(ratio <= 1.1, "%d s after they are gone: %.2f of the fresh PSS (bar 1.1)", seconds, ratio);
  return 0;
}

// ---- claims ----

json::value with_volume(json::value pod, json::object volume) {
  volume["name"] = "data";
  make(pod, "spec.volumes") = json::array{json::value(std::move(volume))};
  json::value mount = json::object{{"name", "data"}, {"mountPath", "/data"}};
  pod.at("spec").at("containers").as_array().at(0).as_object()["volumeMounts"] = json::array{std::move(mount)};
  return pod;
}

json::object volume_of_claim(const std::string& claim) {
  return json::object{{"persistentVolumeClaim", json::object{{"claimName", claim}}}};
}

void make_claim(Client& client, const std::string& name) {
  json::object request{{"requests", json::object{{"storage", "16Mi"}}}};
  json::object spec{{"accessModes", json::array{"ReadWriteOnce"}}, {"resources", std::move(request)}};
  json::object body{{"apiVersion", "v1"},
                    {"kind", "PersistentVolumeClaim"},
                    {"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                    {"spec", std::move(spec)}};
  (void)need(client.create(kPersistentVolumeClaim, body), "create claim");
}

size_t count_of(Client& client, const Kind& kind) { return need(client.list(kind, {}), "list").items.size(); }

// The total time, and the time after the POST of the claim.
std::pair<double, double> start_with_claim(Client& client, const char* logs, const std::string& name) {
  double begun = now_ms();
  make_claim(client, name);
  double claimed = now_ms(), stamp = 0;
  ObjectPtr pod = need(client.create(kPod, with_volume(pod_body(name, "0", "Never"), volume_of_claim(name))), "create pod");
  if (!until([&] { return (stamp = stamp_in(log_of(logs, *pod, 0))) > 0; })) die("pod " + name + " did not start");
  remove_pod(client, name);
  (void)need(client.remove(kPersistentVolumeClaim, {"default", name}), "delete claim");
  if (!until([&] { return nap_ms(20), count_of(client, kPersistentVolume) == 0; })) die("the volume of " + name + " stays");
  return {stamp - begun, stamp - claimed};
}

int claim_start(const char* kubeconfig, const char* logs, int count) {
  auto client = connect(kubeconfig);
  Samples plain, claimed, whole, ratios;
  for (int i = -5; i < count; ++i) {  // five warm-up rounds for both
    std::string name = "plain-" + std::to_string(i + 5);
    double begun = now_ms(), stamp = 0;
    json::object empty_dir{{"emptyDir", json::object{}}};
    ObjectPtr pod = need(client->create(kPod, with_volume(pod_body(name, "0", "Never"), std::move(empty_dir))), "create pod");
    if (!until([&] { return (stamp = stamp_in(log_of(logs, *pod, 0))) > 0; })) die("pod " + name + " did not start");
    remove_pod(*client, name);
    if (!until([&] { return nap_ms(20), !client->get(kPod, {"default", name}); })) die("pod " + name + " stays");
    auto [all, after_claim] = start_with_claim(*client, logs, "claimed-" + std::to_string(i + 5));
    if (i < 0) continue;
    plain.ms.push_back(stamp - begun);
    claimed.ms.push_back(after_claim);
    whole.ms.push_back(all);
    ratios.ms.push_back(after_claim / (stamp - begun));
  }
  plain.print("POST pod with an emptyDir");
  claimed.print("POST pod with a new claim");
  whole.print("POST claim, POST pod");
  bar(claimed.at(.5) <= 1.3 * plain.at(.5),
      "with a new claim %.2f of what it takes with an emptyDir (medians; %.2f the median of the ratios; bar 1.3)",
      claimed.at(.5) / plain.at(.5), ratios.at(.5));
  return 0;
}

// The daemon's mounts below the directory: others on this machine have their own.
std::set<std::string> mounts_of(const std::string& pid, const std::string& directory) {
  std::istringstream lines(slurp("/proc/" + pid + "/mountinfo"));
  std::set<std::string> places;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 5; ++i) words >> word;
    if (word.starts_with(directory)) places.insert(word);
  }
  return places;
}

std::set<std::string> entries_of(const std::string& directory) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) names.insert(entry.path().filename());
  for (const char* ours : {".coracle", ".coracle.projects"}) names.erase(ours);  // the disk's mark, and records
  return names;
}

// The names of the daemon's threads.
std::multiset<std::string> threads_of(const std::string& pid) {
  std::multiset<std::string> names;
  std::error_code none;
  for (const auto& task : fs::directory_iterator("/proc/" + pid + "/task", none)) {
    std::string name = slurp(task.path().string() + "/comm");
    names.insert(name.substr(0, name.find('\n')));
  }
  return names;
}

// Adds the directories' projects, if the file system has project quotas.
void add_projects(const std::string& volumes, std::set<uint32_t>& projects) {
  for (const std::string& name : entries_of(volumes)) {
    Fd directory = need(sys::open_directory(volumes + "/" + name), "open");
    auto number = sys::project_of(directory);
    if (number && *number != 0) projects.insert(*number);
  }
}

int claims_pass(const char* kubeconfig, const std::string& daemon, const std::string& state, int claims, int at_once,
                int seconds) {
  auto client = connect(kubeconfig);
  const std::string volumes = state + "/volumes";
  nap_ms(1000 * seconds);  // until the effects of the start are over
  print_pss("fresh", daemon);
  const int64_t fresh = pss_kib(daemon);
  const auto fresh_threads = threads_of(daemon);
  const auto for_storage = [&] {
    size_t count = 0;
    for (const char* name : {"storage", "places", "nfs"}) count += fresh_threads.count(name);
    return count;
  }();
  bar(for_storage == 0, "%zu threads for storage before the first claim (bar 0)", for_storage);
  const std::string around = fs::path(state).parent_path().string() + "/";  // also the directory of run-time files
  const auto mounts = mounts_of(daemon, around), pods = entries_of(state + "/pods"), there = entries_of(volumes);
  std::set<uint32_t> projects;
  auto name = [](int i) { return "passing-" + std::to_string(i); };
  double begun_ms = now_ms();
  for (int begun = 0; begun < claims; begun += at_once) {
    const int end = std::min(claims, begun + at_once);
    for (int i = begun; i < end; ++i) {
      make_claim(*client, name(i));
      (void)need(client->create(kPod, with_volume(pod_body(name(i), "stay", "Always"), volume_of_claim(name(i)))), "create pod");
    }
    auto running = [&] {
      ObjectList list = need(client->list(kPod, {.ns = "default"}), "list pods");
      return std::count_if(list.items.begin(), list.items.end(), [](const ObjectPtr& pod) {
        return pod->name().starts_with("passing-") && get_string(pod->json(), "status.phase") == "Running";
      });
    };
    if (!until([&] { return nap_ms(100), running() == end - begun; }, 240'000)) die("not all pods run");
    if (!until([&] { return entries_of(volumes).size() == there.size() + size_t(end - begun); }))
      die("a directory too many or too few");
    add_projects(volumes, projects);
    for (int i = begun; i < end; ++i) {
      remove_pod(*client, name(i));
      (void)need(client->remove(kPersistentVolumeClaim, {"default", name(i)}), "delete claim");
    }
    auto gone = [&] { return count_of(*client, kPersistentVolumeClaim) + count_of(*client, kPersistentVolume) == 0; };
    if (!until([&] { return nap_ms(100), gone(); }, 240'000)) die("not all claims and volumes went");
  }
  std::printf("bench: %d claims with pods came and went in %.0f s, %d at a time\n", claims, (now_ms() - begun_ms) / 1e3, at_once);
  print_pss("right after", daemon);
  auto goes = [](const char* what, const std::function<bool()>& gone) {
    if (!until([&] { return nap_ms(50), gone(); }, 60'000)) die(std::string(what) + " stay");
  };
  goes("directories of volumes", [&] { return entries_of(volumes) == there; });
  goes("directories of pods", [&] { return entries_of(state + "/pods") == pods; });
  goes("mounts", [&] { return mounts_of(daemon, around) == mounts; });
  if (projects.empty()) std::printf("bench: nothing counts by projects in %s\n", volumes.c_str());
  else
    goes("projects of the quota", [&] {
      Fd place = need(sys::open_directory(volumes), "open");
      return std::none_of(projects.begin(), projects.end(), [&](uint32_t number) {
        auto use = sys::project_use(place, number);
        return use && (use->limit.count != 0 || use->inodes != 0);
      });
    });
  client.reset();
  nap_ms(1000 * seconds);
  print_pss("in the end", daemon);
  std::vector<std::string> more;
  std::ranges::set_difference(threads_of(daemon), fresh_threads, std::back_inserter(more));
  bar(more.empty(), "%d s after %d claims: %zu more threads than before them%s%s (bar 0)", seconds, claims, more.size(),
      more.empty() ? "" : ", such as ", more.empty() ? "" : more[0].c_str());
  const int64_t end = pss_kib(daemon);
  bar(end - fresh <= 512, "what no claim uses any more costs %.2f MiB (bar 0.5)", double(end - fresh) / 1024);
  double ratio = double(end) / double(fresh);
  bar(ratio <= 1.1, "%d s after %d claims: %.2f of the fresh PSS (bar 1.1)", seconds, claims, ratio);
  return 0;
}

int stalled(const char* kubeconfig, const std::string& daemon, int count) {
  constexpr int kChanges = 50;
  auto client = connect(kubeconfig);
  auto body = [](char letter) { return json::object{{"data", json::object{{"text", std::string(200'000, letter)}}}}; };
  json::value first = body('a');
  make(first, "metadata") = json::object{{"name", "large"}, {"namespace", "default"}};
  (void)need(client->create(kConfigMap, first), "create config map");
  nap_ms(5000);
  auto most_during_changes = [&] {
    int64_t most = 0;
    for (int i = 0; i < kChanges; ++i) {
      (void)need(client->patch(kConfigMap, {"default", "large"}, PatchType::merge, body(char('b' + i % 20))), "patch");
      nap_ms(20);
      most = std::max(most, pss_kib(daemon));
    }
    return most;
  };
  int64_t alone = most_during_changes();  // the changes themselves need memory, and load code for the first time
  auto clients =
      need(StalledClients::make(client->http().access(), "/api/v1/namespaces/default/configmaps?watch=true", count), "watch");
  double more = double(most_during_changes() - alone) / 1024;
  bar(more <= 16, "%d watchers that read nothing of %d changes of 200 KB take %.1f MiB (bar 16)", count, kChanges, more);
  (void)client->remove(kConfigMap, {"default", "large"});  // the machine is removed anyway
  return 0;
}

struct Spent {
  double cpu_percent;  // of one core
  int64_t written;     // bytes
};

// The resources that the daemon and its pods use without requests.
Spent watch_idle(int seconds, const std::string& daemon, const std::vector<std::string>& pauses) {
  auto all_cpu = [&] {
    double sum = cpu_seconds(daemon);
    for (const std::string& pid : pauses) sum += cpu_seconds(pid);
    return sum;
  };
  auto all_written = [&] {
    int64_t sum = written_bytes(daemon);
    for (const std::string& pid : pauses) sum += written_bytes(pid);
    return sum;
  };
  double cpu = all_cpu(), begun = now_ms();
  int64_t written = all_written();
  while (now_ms() - begun < seconds * 1e3) nap_ms(1000);
  return {(all_cpu() - cpu) / ((now_ms() - begun) / 1e3) * 100, all_written() - written};
}

// ---- many writes at once on a slow card ----

constexpr double kCommitsMax = 4, kReadMsMax = 5;

json::value object_named(const char* kind, const std::string& name, const std::string& ns) {
  return json::object{{"apiVersion", "v1"}, {"kind", kind}, {"metadata", json::object{{"name", name}, {"namespace", ns}}}};
}

// Creates all bodies at the same time, each over its own connection. Returns the time until the last one is created.
double create_at_once(const std::vector<std::unique_ptr<Remote>>& clients, const Kind& kind,
                      const std::vector<json::value>& bodies) {
  std::atomic<bool> begins = false;
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < bodies.size(); i++)
    threads.emplace_back([&, i] {
      begins.wait(false);
      (void)need(clients[i]->create(kind, bodies[i]), "create");
    });
  double begun = now_ms();
  begins = true;
  begins.notify_all();
  threads.clear();
  return now_ms() - begun;
}

int at_once(const char* kubeconfig, const char* card, int ms, int count, const std::string& run) {
  std::vector<std::unique_ptr<Remote>> clients;
  for (int i = 0; i < count; ++i) clients.push_back(connect(kubeconfig));
  Remote& first = *clients.front();
  const std::string ns = "limited-" + run;
  (void)need(first.create(kNamespace, object_named("Namespace", ns, "")), "create namespace");
  json::value quota = object_named("ResourceQuota", "all", ns);
  make(quota, "spec.hard") = json::object{{"pods", std::to_string(2 * count)}, {"requests.memory", "100Gi"}};
  (void)need(first.create(kResourceQuota, quota), "create quota");
  auto counted = [&] {
    auto now = first.get(kResourceQuota, {ns, "all"});
    return now && find((*now)->json(), "status.used.pods");
  };
  if (!until(counted)) die("the quota is not counted");
  if (!until([&] { return first.get(kServiceAccount, {ns, "default"}).ok(); })) die("the namespace has no service account");
  for (auto& client : clients) (void)need(client->list(kResourceQuota, {.ns = ns}), "list");  // opens the connection

  std::ofstream(card) << ms << std::endl;
  Samples alone;
  for (int i = 0; i < 5; i++) {
    double begun = now_ms();
    (void)need(first.create(kConfigMap, object_named("ConfigMap", run + "-alone-" + std::to_string(i), ns)), "create config map");
    alone.ms.push_back(now_ms() - begun);
  }
  const double commit = alone.at(.5);
  std::printf("bench: %s: one create takes %.0f ms on a card of %d ms\n", run.c_str(), commit, ms);

  Samples reads;
  std::jthread reader([&](std::stop_token stop) {
    auto client = connect(kubeconfig);
    while (!stop.stop_requested()) {
      double begun = now_ms();
      (void)need(client->get(kResourceQuota, {ns, "all"}), "get");
      reads.ms.push_back(now_ms() - begun);
      nap_ms(1);
    }
  });
  auto measure = [&](const Kind& kind, const std::function<json::value(const std::string& name)>& body) {
    std::vector<json::value> bodies;
    for (int i = 0; i < count; ++i) bodies.push_back(body(run + "-" + std::to_string(i)));
    double took = create_at_once(clients, kind, bodies);
    bar(took <= kCommitsMax * ms, "%s: %d %s at once take the time of %.1f commits (bar %.0f)", run.c_str(), count,
        std::string(kind.resource).c_str(), took / ms, kCommitsMax);
  };
  measure(kService, [&](const std::string& name) {
    json::value service = object_named("Service", name, ns);
    make(service, "spec") = json::object{{"type", "NodePort"}, {"ports", json::array{json::object{{"port", 80}}}}};
    return service;
  });
  measure(kPod, [&](const std::string& name) {
    json::value pod = gated_pod(name, 0);
    make(pod, "metadata.namespace") = ns;
    make(pod.at("spec").at("containers").at(0), "resources.requests.memory") = "1Mi";
    return pod;
  });
  measure(kConfigMap, [&](const std::string& name) { return object_named("ConfigMap", name, ns); });
  measure(kCustomResourceDefinition, [&](const std::string& name) {
    json::value definition = object_named("CustomResourceDefinition", name + ".example.com", "");
    make(definition, "apiVersion") = "apiextensions.k8s.io/v1";
    json::object schema{{"openAPIV3Schema", json::object{{"type", "object"}}}};
    json::object version{{"name", "v1"}, {"served", true}, {"storage", true}, {"schema", std::move(schema)}};
    make(definition, "spec") = json::object{{"group", "example.com"},
                                            {"scope", "Namespaced"},
                                            {"names", json::object{{"plural", name}, {"kind", "Kind-" + name}}},
                                            {"versions", json::array{std::move(version)}}};
    return definition;
  });
  reader.request_stop();
  reader.join();
  reads.print("reads meanwhile");
  bar(reads.at(.99) <= kReadMsMax, "%s: 99 of 100 reads take at most %.2f ms (bar %.0f)", run.c_str(), reads.at(.99), kReadMsMax);
  fs::remove(card);
  json::value used = need(first.get(kResourceQuota, {ns, "all"}), "get quota")->json();
  if (get_string(used, "status.used.pods") != std::to_string(count)) die("the quota lost count");
  return 0;
}

// ---- what one request costs ----

struct Costs {
  double calls = 0, bytes = 0;                 // of malloc
  std::map<std::string, double> system_calls;  // by name
};

Costs operator/(Costs costs, double by) {
  costs.calls /= by, costs.bytes /= by;
  for (auto& [name, number] : costs.system_calls) number /= by;
  return costs;
}

Costs operator-(Costs from, const Costs& less) {
  from.calls -= less.calls, from.bytes -= less.bytes;
  for (const auto& [name, number] : less.system_calls) from.system_calls[name] -= number;
  return from;
}

void print(const char* what, const Costs& costs) {
  std::string calls;
  double all = 0;
  for (const auto& [name, number] : costs.system_calls) {
    all += number;
    if (number < 0.05) continue;
    char text[64];
    std::snprintf(text, sizeof text, " %s %.1f", name.c_str(), number);
    calls += text;
  }
  std::printf("bench: %-34s %7.1f allocations of %8.0f bytes, %5.1f system calls:%s\n", what, costs.calls, costs.bytes, all,
              calls.c_str());
}

// Counts the daemon's allocations and, in a second run, its system calls during `run`.
class CostCounter {
 public:
  CostCounter(const char* counts, std::string daemon, std::string file)
      : counts_(counts), daemon_(std::move(daemon)), file_(std::move(file)) {}

  template <typename F>
  Costs of(F&& run) {
    run();  // what is only paid once
    const auto before = allocations();
    run();
    const auto after = allocations();
    Costs out{double(after.first - before.first), double(after.second - before.second), {}};
    const pid_t tracer = trace();
    run();
    ::kill(tracer, SIGINT);
    ::waitpid(tracer, nullptr, 0);
    out.system_calls = traced();
    return out;
  }

 private:
  std::pair<uint64_t, uint64_t> allocations() const {
    std::string text = slurp(counts_);
    uint64_t numbers[2];
    if (text.size() < sizeof numbers) die("no allocations are counted");
    std::memcpy(numbers, text.data(), sizeof numbers);
    return {numbers[0], numbers[1]};
  }
  pid_t trace() const {
    std::string program = "strace";
    char flag_follow[] = "-f", flag_count[] = "-c", flag_pid[] = "-p", flag_output[] = "-o";
    std::string pid_text = daemon_, file = file_;
    char* command[] = {program.data(), flag_follow, flag_count, flag_output, file.data(), flag_pid, pid_text.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    if (::posix_spawnp(&pid, command[0], &actions, nullptr, command, environ) != 0) die("strace does not start");
    posix_spawn_file_actions_destroy(&actions);
    auto all_traced = [&] {
      for (const auto& thread : fs::directory_iterator("/proc/" + daemon_ + "/task"))
        if (slurp(thread.path() / "status").find("\nTracerPid:\t0\n") != std::string::npos) return false;
      return true;
    };
    if (!until(all_traced)) die("strace does not attach");
    return pid;
  }
  // The lines of the summary end with: calls [errors] name.
  std::map<std::string, double> traced() const {
    std::map<std::string, double> out;
    std::istringstream lines(slurp(file_));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      double share, seconds, each, calls;
      if (!(words >> share >> seconds >> each >> calls)) continue;
      std::string name, word;
      while (words >> word) name = word;
      if (name != "total") out[name] = calls;
    }
    return out;
  }
  const char* counts_;
  const std::string daemon_, file_;
};

int request_costs(const char* kubeconfig, const char* token, const char* counts, const std::string& daemon, const char* file,
                  int count) {
  constexpr int kListed = 500, kLists = 10, kWatches = 8;
  if (make_gated(kubeconfig, kListed)) return 1;
  auto client = connect(kubeconfig);
  ServerAccess by_token = need(read_kubeconfig(kubeconfig), "kubeconfig");
  by_token.token = token;
  by_token.client_certificate_pem.clear(), by_token.client_key_pem.clear();
  auto account = need(Remote::make(std::move(by_token)), "client");
  CostCounter counter(counts, daemon, file);
  auto get_by = [&](Remote& by) {
    return counter.of([&] {
      for (int i = 0; i < count; ++i) (void)need(by.get(kPod, {"default", "gated-0"}), "get");
    }) / count;
  };
  print("GET of 4 KB by certificate", get_by(*client));
  print("GET of 4 KB by token and role", get_by(*account));
  print("an item of a LIST of 500", counter.of([&] {
    for (int i = 0; i < kLists; ++i) (void)need(client->http().send({.path = "/api/v1/namespaces/default/pods"}), "list");
  }) / (kLists * kListed));
  int made = 0;
  print("create of 1 KB", counter.of([&] {
    for (int i = 0; i < count; ++i) {
      json::value body = object_named("ConfigMap", "cost-" + std::to_string(made++), "default");
      make(body, "data") = json::object{{"text", std::string(1000, 'x')}};
      (void)need(client->create(kConfigMap, body), "create");
    }
  }) / count);
  int turn = 0;
  auto with_turn = [&](json::value body) {
    make(body, "data.turn") = std::to_string(turn++);
    return body;
  };
  auto patch = [&](PatchType type, const json::value& body) {
    UpdateOptions options{.subresource = "", .field_manager = "bench", .force = type == PatchType::apply};
    (void)need(client->patch(kConfigMap, {"default", "cost-0"}, type, body, options), "patch");
  };
  auto print_changes = [&](const char* what, const std::function<void()>& change) {
    print(what, counter.of([&] {
      for (int i = 0; i < count; ++i) change();
    }) / count);
  };
  const json::value map = object_named("ConfigMap", "cost-0", "default");
  json::value whole = map;
  make(whole, "data.text") = std::string(1000, 'x');
  print_changes("update of 1 KB", [&] { (void)need(client->update(kConfigMap, with_turn(whole)), "update"); });
  print_changes("strategic patch of 1 KB", [&] { patch(PatchType::strategic, with_turn(json::object())); });
  print_changes("JSON patch of 1 KB", [&] {
    patch(PatchType::json, json::array{json::object{{"op", "add"}, {"path", "/data/turn"}, {"value", std::to_string(turn++)}}});
  });
  print_changes("server-side apply of 1 KB", [&] { patch(PatchType::apply, with_turn(map)); });
  const Key gated{"default", "gated-0"};
  print_changes("patch of a pod's status, 4 KB", [&] {
    json::object status{{"message", std::to_string(turn++)}};
    (void)need(
        client->patch(kPod, gated, PatchType::strategic, json::object{{"status", std::move(status)}}, {.subresource = "status"}),
        "patch a status");
  });
  print_changes("patch of a pod's condition, 4 KB", [&] {  // as kubelet and kubectl make it, with the order
    json::object condition{{"type", "PodScheduled"}, {"status", "False"}, {"message", std::to_string(turn++)}};
    json::object status{{"$setElementOrder/conditions", json::array{json::object{{"type", "PodScheduled"}}}},
                        {"conditions", json::array{std::move(condition)}}};
    (void)need(
        client->patch(kPod, gated, PatchType::strategic, json::object{{"status", std::move(status)}}, {.subresource = "status"}),
        "patch a condition");
  });
  auto change = [&] {
    for (int i = 0; i < count; ++i) patch(PatchType::merge, with_turn(json::object()));
  };
  const Costs unwatched = counter.of(change) / count;
  print("merge patch of 1 KB", unwatched);
  std::vector<std::unique_ptr<Counted>> sinks;
  std::vector<std::unique_ptr<Watch>> watches;
  const Revision now = need(client->get(kConfigMap, {"default", "cost-0"}), "get")->revision();
  for (int i = 0; i < kWatches; ++i) {
    sinks.push_back(std::make_unique<Counted>());
    watches.push_back(need(client->watch(kConfigMap, {.ns = "default", .after = now}, *sinks.back()), "watch"));
  }
  int expected = 0;
  const Costs watched = counter.of([&] {
    const int before = sinks[0]->events();
    change();
    expected = before + count;
    if (!until([&] { return std::all_of(sinks.begin(), sinks.end(), [&](auto& sink) { return sink->events() >= expected; }); }))
      die("events are missing");
  }) / count;
  print("an event for each of 8 watches", (watched - unwatched) / kWatches);
  watches.clear();
  return 0;
}

// ---- what a change costs among many objects ----

constexpr int kFewObjects = 100,
              kChangePaceMs = 60;  // slower than the service rules are applied, so that each change is paid for
constexpr double kGrowthMax = 1.2;

double cpu_ms(const std::string& pid) {  // of all threads, also ended ones
  clockid_t clock;
  timespec spent;
  if (::clock_getcpuclockid(parse_number<pid_t>(pid).value_or(0), &clock) != 0 || ::clock_gettime(clock, &spent) != 0)
    die("the daemon's processor time cannot be read");
  return double(spent.tv_sec) * 1e3 + double(spent.tv_nsec) / 1e6;
}

// Waits until the daemon has done what earlier changes left to do.
void await_rest(const std::string& daemon) {
  constexpr double kRestMs = 10, kTimeoutMs = 300'000;
  double before = cpu_ms(daemon);
  auto rests = [&] {
    nap_ms(1000);
    return cpu_ms(daemon) - std::exchange(before, cpu_ms(daemon)) < kRestMs;
  };
  if (!until(rests, kTimeoutMs)) die("the daemon does not come to rest");
}

struct ChangeCost {
  Samples cpu, request;  // ms: of the daemon, with what follows in it; of the request alone
};

ChangeCost cost_of(const std::string& daemon, int count, const std::function<void()>& change) {
  ChangeCost out;
  await_rest(daemon);
  for (int i = 0; i < count; ++i) {
    double cpu = cpu_ms(daemon), begun = now_ms();
    change();
    out.request.ms.push_back(now_ms() - begun);
    nap_ms(kChangePaceMs);
    out.cpu.ms.push_back(cpu_ms(daemon) - cpu);
  }
  return out;
}

int growth(const char* kubeconfig, const std::string& daemon, int count, int services, int objects) {
  auto client = connect(kubeconfig);
  int maps_made = 0, services_made = 0, turn = 0;
  auto create_map = [&] {
    json::value body = object_named("ConfigMap", "map-" + std::to_string(maps_made++), "default");
    make(body, "data") = json::object{{"text", std::string(1000, 'x')}};
    (void)need(client->create(kConfigMap, body), "create a ConfigMap");
  };
  auto create_service = [&] {
    std::string name = "service-" + std::to_string(services_made++);
    json::value body = object_named("Service", name, "default");
    make(body, "spec") = json::object{{"selector", json::object{{"app", name}, {"part-of", "bench"}}},
                                      {"ports", json::array{json::object{{"port", 80}}}}};
    (void)need(client->create(kService, body), "create a Service");
  };
  auto annotate = [&](const Kind& kind, const char* name) {
    json::value body = json::object();
    make(body, "metadata.annotations") = json::object{{"turn", std::to_string(turn++)}};
    (void)need(client->patch(kind, {"default", name}, PatchType::merge, body), "patch");
  };
  json::value pod = gated_pod("gated", 1000);
  make(pod, "metadata.labels") = json::object{{"app", "service-0"}, {"part-of", "bench"}};
  (void)need(client->create(kPod, pod), "create a pod");
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"create of a ConfigMap", create_map},
      {"patch of a ConfigMap", [&] { annotate(kConfigMap, "map-0"); }},
      {"create of a Service", create_service},
      {"patch of a Service", [&] { annotate(kService, "service-0"); }},
      {"patch of a pod", [&] { annotate(kPod, "gated"); }},
  };
  auto fill = [&](int maps_wanted, int services_wanted) {
    while (maps_made < maps_wanted) create_map();
    while (services_made < services_wanted) create_service();
  };
  std::vector<ChangeCost> few;
  fill(kFewObjects, kFewObjects);
  for (const auto& [what, change] : changes) few.push_back(cost_of(daemon, count, change));
  fill(objects, services);
  std::printf("bench: among %d ConfigMaps and %d Services, beside those among %d\n", maps_made, services_made, kFewObjects);
  for (size_t i = 0; i < std::size(changes); ++i) {
    ChangeCost many = cost_of(daemon, count, changes[i].second);
    double cpu = many.cpu.at(.5), request = many.request.at(.5), ratio = cpu / few[i].cpu.at(.5);
    std::printf("bench: %-24s request %.2f ms (%.2f), the daemon's CPU %.2f ms (%.2f)\n", changes[i].first, request,
                few[i].request.at(.5), cpu, few[i].cpu.at(.5));
    bar(ratio <= kGrowthMax, "%s: %.2f of its CPU among %d (bar %.1f)", changes[i].first, ratio, kFewObjects, kGrowthMax);
  }
  return 0;
}

int quiet(int seconds, const std::string& daemon, const std::vector<std::string>& pauses) {
  Spent spent = watch_idle(seconds, daemon, pauses);
  std::printf("bench: %zu pods, %d s idle, the daemon's PSS %.1f MiB\n", pauses.size(), seconds, double(pss_kib(daemon)) / 1024);
  bar(spent.cpu_percent <= 0.2, "CPU %.3f %% of a core (bar 0.2)", spent.cpu_percent);
  bar(spent.written == 0, "%.1f KiB written (bar 0)", double(spent.written) / 1024);
  return 0;
}

int idle(int seconds, int64_t kernel_before_kib, const std::string& daemon, const std::vector<std::string>& pauses) {
  auto [share, written] = watch_idle(seconds, daemon, pauses);
  int64_t pause_kib = 0;
  for (const std::string& pid : pauses) pause_kib += pss_kib(pid);
  double each = double(pause_kib) / double(pauses.size());
  std::printf("bench: %zu pods, %d s idle\n", pauses.size(), seconds);
  std::printf("bench: kernel memory per pod, all in all: %.0f KiB\n",
              double(kernel_kib() - kernel_before_kib) / double(pauses.size()));
  std::printf("bench: the daemon's PSS: %.1f MiB its own, %.1f MiB of files (program and libraries); its RSS %.1f MiB\n",
              double(pss_kib(daemon, "Pss_Anon")) / 1024, double(pss_kib(daemon, "Pss_File")) / 1024,
              double(pss_kib(daemon, "Rss")) / 1024);
  bar(pss_kib(daemon) <= 25 * 1024, "daemon PSS %.1f MiB (bar 25)", double(pss_kib(daemon)) / 1024);
  bar(each <= 0.1 * 1024, "our other processes %.1f KiB PSS per pod (bar 102)", each);
  bar(share <= 0.2, "CPU %.3f %% of a core (bar 0.2)", share);
  bar(written <= 64 * 1024, "%.1f KiB written (bar 64)", double(written) / 1024);
  return 0;
}

// ---- from start to ready ----

int ready(const char* kubeconfig, const char* log, char** command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  auto client = connect(kubeconfig);
  pid_t pid;
  double begun = now_ms();
  if (::posix_spawnp(&pid, command[0], &actions, nullptr, command, environ) != 0) die("the daemon does not start");
  bool there = until([&] {
    Result<HttpAnswer> answer = client->http().send({.path = "/readyz"});
    return answer && answer->status == 200;
  });
  double took = now_ms() - begun;
  std::printf("pid %d\n", int(pid));
  if (!there) die("the daemon does not become ready");
  bar(took <= 300, "ready after %.0f ms (bar 300)", took);
  return 0;
}

int make_bundle(const char* directory) {
  std::string path = std::string(directory) + "/config.json";
  json::value config = need(parse_json(slurp(path)), "runc's config.json");
  make(config, "process.args") = json::array{"/stamp", "0"};
  make(config, "process.terminal") = false;
  make(config, "linux.seccomp") = runtime::default_seccomp();
  std::ofstream(path) << to_text(config);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::string verb = argc > 1 ? argv[1] : "";
  auto number = [&](int i) { return parse_number<int>(argv[i]).value_or(0); };
  if (verb == "bundle" && argc == 3) return make_bundle(argv[2]);
  if (verb == "pod-start" && argc == 6) return pod_start(argv[2], argv[3], argv[4], number(5));
  if (verb == "crash" && argc == 6) return crash(argv[2], argv[3], argv[4], number(5));
  if (verb == "killed" && argc == 5) return killed(argv[2], argv[3], number(4));
  if (verb == "replaced" && argc == 4) return replaced(argv[2], number(3));
  if (verb == "pods" && argc == 4) return make_pods(argv[2], number(3));
  if (verb == "objects" && argc == 4) return make_objects(argv[2], number(3));
  if (verb == "list" && argc == 4) return list_pods(argv[2], number(3));
  if (verb == "gated" && argc == 4) return make_gated(argv[2], number(3));
  if (verb == "watchers" && argc == 6) return watchers(argv[2], number(3), number(4), number(5));
  if (verb == "last-watcher" && argc == 4) return last_watcher(argv[2], number(3));
  if (verb == "many-pods" && argc == 6) return many_pods(argv[2], argv[3], number(4), number(5));
  if (verb == "token" && argc == 7) return token(argv[2], argv[3], argv[4], number(5), number(6));
  if (verb == "answer" && argc == 5) return write_answer(argv[2], argv[3], argv[4]);
  if (verb == "against-bare" && argc == 10)
    return against_bare(argv[2], argv[3], argv[4], argv[5], number(6), number(7), number(8), std::strtod(argv[9], nullptr));
  if (verb == "memory" && argc == 5) return memory(argv[2], argv[3], number(4));
  if (verb == "comes-back" && argc == 7) return comes_back(argv[2], argv[3], number(4), number(5), number(6));
  if (verb == "claim-start" && argc == 5) return claim_start(argv[2], argv[3], number(4));
  if (verb == "claims-pass" && argc == 8) return claims_pass(argv[2], argv[3], argv[4], number(5), number(6), number(7));
  if (verb == "stalled" && argc == 5) return stalled(argv[2], argv[3], number(4));
  if (verb == "at-once" && argc == 7) return at_once(argv[2], argv[3], number(4), number(5), argv[6]);
  if (verb == "request-costs" && argc == 8) return request_costs(argv[2], argv[3], argv[4], argv[5], argv[6], number(7));
  if (verb == "growth" && argc == 7) return growth(argv[2], argv[3], number(4), number(5), number(6));
  if (verb == "kernel-kib") return std::printf("%lld\n", static_cast<long long>(kernel_kib())), 0;
  if (verb == "idle" && argc > 5) return idle(number(2), number(3), argv[4], {argv + 5, argv + argc});
  if (verb == "quiet" && argc > 4) return quiet(number(2), argv[3], {argv + 4, argv + argc});
  if (verb == "ready" && argc > 4) return ready(argv[2], argv[3], argv + 4);
  std::fprintf(stderr, "driver: see the head of driver.cc\n");
  return 2;
}
