// SPDX-License-Identifier: Apache-2.0
// Compares the OCI runtimes' command lines: create, start, wait, delete of the same bundle, exec in the same running container,
// and the memory of a container with one static program. It acts as an engine: it spawns the commands, is the subreaper of the
// containers' processes, and waits for them by pidfd, so that only the runtimes are measured. It also runs thousands of
// containers, one after another.
//   bench_oci bundle DIRECTORY [SECCOMP]         writes DIRECTORY/config.json, as an engine would, for DIRECTORY/rootfs;
//                                                SECCOMP: a file with linux.seccomp in the place of our default
//   bench_oci time BUNDLE ROUNDS NAME=COMMAND…   in turns, so that disturbances affect all
//   bench_oci runs BUNDLE ROUNDS NAME=COMMAND…   run in the foreground, in turns: cold, each time with a state directory of its
//                                                own, where no runtime keeps a compiled seccomp program yet; and warm
//   bench_oci peak BUNDLE NAME=COMMAND…          memory.peak of the container's cgroup (cgroup v2)
//   bench_oci cycles BUNDLE ROUNDS COMMAND       create, start, kill, delete
// COMMAND is a program and its global options, separated by blanks; a first word @FILE is a mount namespace to start it in. The
// results of "time" and "runs" are lines "bench: …" for people and, for scripts, "ratio OPERATION NAME PEER MEDIAN PEER_MEDIAN
// RATIO" for each pair (milliseconds; RATIO is the median of each turn's ratio).
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"

namespace fs = std::filesystem;
using namespace coracle;

namespace {

constexpr int kTimeoutMs = 120'000;  // for one command, or for the end of one container
constexpr int kWarmUp = 3;
constexpr int kRuntimesMax = 4;

[[noreturn]] void die(const std::string& why) {
  std::printf("not ok - %s\n", why.c_str());
  std::exit(1);
}

double now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) / 1e6;
}

std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// ---- processes ----

struct Runtime {
  std::string name;
  std::vector<std::string> command;
  int mounts = -1;  // a mount namespace; -1: ours
};

Runtime runtime_of(const std::string& argument) {
  size_t equals = argument.find('=');
  Runtime out;
  std::string command = argument;
  if (equals != argument.npos && argument.find(' ') > equals && argument.find('/') > equals) {
    out.name = argument.substr(0, equals);
    command = argument.substr(equals + 1);
  }
  std::istringstream words(command);
  for (std::string word; words >> word;) out.command.push_back(word);
  if (!out.command.empty() && out.command[0].starts_with("@")) {
    out.mounts = ::open(out.command[0].c_str() + 1, O_RDONLY | O_CLOEXEC);
    if (out.mounts < 0) die(out.command[0] + ": " + std::strerror(errno));
    out.command.erase(out.command.begin());
  }
  if (out.command.empty()) die("no command in " + argument);
  if (out.name.empty()) out.name = fs::path(out.command[0]).filename();
  return out;
}

std::string text_of(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

void enter_mounts(int mounts) {
  static const int own = ::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (::setns(mounts < 0 ? own : mounts, CLONE_NEWNS) < 0) die(std::string("setns: ") + std::strerror(errno));
}

// Runs a command to its end. Its output goes to a file that is only read on failure.
double run(const Runtime& runtime, const std::vector<std::string>& arguments, const std::string& log, bool may_fail = false) {
  std::vector<std::string> words = runtime.command;
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid;
  if (runtime.mounts >= 0) enter_mounts(runtime.mounts);
  double begun = now_ms();
  if (int wrong = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ); wrong != 0)
    die(words[0] + ": " + std::strerror(wrong));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  double took = now_ms() - begun;
  if (runtime.mounts >= 0) enter_mounts(-1);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0 && !may_fail)
    die(text_of(words) + ": " + (WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status)) : "killed") + ": " +
        slurp(log));
  return took;
}

// Waits until the container's first process has ended, whoever its parent is, and reaps it if we are the parent.
void wait_end(pid_t pid) {
  int fd = int(::syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) {
    pollfd ended{fd, POLLIN, 0};
    if (::poll(&ended, 1, kTimeoutMs) != 1) die("process " + std::to_string(pid) + " does not end");
    ::close(fd);
  }
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

pid_t read_pid(const std::string& path) {
  pid_t pid = pid_t(std::atol(slurp(path).c_str()));
  if (pid <= 0) die("no pid in " + path);
  return pid;
}

// ---- one container ----

struct Times {
  std::vector<double> create, start, remove, whole, exec, cold, run;
};

struct Bench {
  std::string bundle;
  std::string scratch;  // directory for pid files and output
  int next = 0;

  std::string log() const { return scratch + "/log"; }
  std::string fresh_id() { return "bench-" + std::to_string(::getpid()) + "-" + std::to_string(next++); }
  std::string pid_file(const std::string& id) const { return scratch + "/" + id; }

  double create(const Runtime& runtime, const std::string& id, const std::string& where) {
    return run(runtime, {"create", "--bundle", where, "--pid-file", pid_file(id), id}, log());
  }

  void round(const Runtime& runtime, Times* times) {
    std::string id = fresh_id();
    double begun = now_ms();
    double created = create(runtime, id, bundle + "/ends");
    pid_t pid = read_pid(pid_file(id));
    double started = run(runtime, {"start", id}, log());
    wait_end(pid);
    double removed = run(runtime, {"delete", id}, log());
    double whole = now_ms() - begun;
    fs::remove(pid_file(id));
    if (!times) return;
    times->create.push_back(created);
    times->start.push_back(started);
    times->remove.push_back(removed);
    times->whole.push_back(whole);
  }
};

double median(std::vector<double> values, double share = .5) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[std::min(values.size() - 1, size_t(share * double(values.size())))];
}

void print(const char* what, const Runtime& runtime, const std::vector<double>& values) {
  std::printf("bench: %-22s %-12s n=%zu  median %8.2f ms  p90 %8.2f  least %8.2f\n", what, runtime.name.c_str(), values.size(),
              median(values), median(values, .9), median(values, 0));
}

using Row = std::pair<const char*, std::vector<double> Times::*>;

void print_all(const std::vector<Runtime>& runtimes, const std::vector<Times>& times, std::span<const Row> rows) {
  for (const auto& [what, member] : rows)
    for (size_t each = 0; each < runtimes.size(); ++each) print(what, runtimes[each], times[each].*member);
}

std::vector<double> quotients(const std::vector<double>& of, const std::vector<double>& by) {
  std::vector<double> out;
  for (size_t turn = 0; turn < of.size(); ++turn) out.push_back(of[turn] / by[turn]);
  return out;
}

void print_ratios(const std::vector<Runtime>& runtimes, const std::vector<Times>& times, std::span<const Row> rows) {
  for (const auto& [what, member] : rows)
    for (size_t one = 0; one < runtimes.size(); ++one)
      for (size_t other = 0; other < runtimes.size(); ++other)
        if (one != other)
          std::printf("ratio %s %s %s %.3f %.3f %.3f\n", what, runtimes[one].name.c_str(), runtimes[other].name.c_str(),
                      median(times[one].*member), median(times[other].*member),
                      median(quotients(times[one].*member, times[other].*member)));
}

// Which one of `count` is in the place `place` of a round. The first measured round is 0; those before it warm up. On a busy
// machine, who comes after a slow one is faster. So in 2 * count rounds each is in each place twice, and comes twice after each
// other one: the orders are a zigzag (0, 1, -1, 2, -2 …) in all its rotations, and their mirror images (a Williams design).
constexpr size_t turn_of(size_t place, int round, size_t count) {
  const size_t period = 2 * count, turn = size_t(round + kWarmUp * int(period)) % period;
  const size_t zigzag = place % 2 ? (place + 1) / 2 : count - place / 2;
  const size_t rotated = (turn + zigzag) % count;
  return turn < count ? rotated : (count - rotated) % count;
}

// Whether that is so.
constexpr bool is_fair(size_t count) {
  for (size_t one = 0; one < count; ++one)
    for (size_t other = 0; other < count; ++other) {
      size_t follows = 0, is_there = 0;
      for (int round = -kWarmUp; round < int(2 * count) - kWarmUp; ++round)
        for (size_t place = 0; place < count; ++place) {
          if (turn_of(place, round, count) != one) continue;
          if (place == other) ++is_there;
          if (place > 0 && turn_of(place - 1, round, count) == other) ++follows;
        }
      if (is_there != 2 || follows != (one == other ? 0u : 2u)) return false;
    }
  return true;
}
static_assert(is_fair(2) && is_fair(3) && is_fair(kRuntimesMax));

int time_all(Bench& bench, int rounds, const std::vector<Runtime>& runtimes) {
  std::vector<Times> times(runtimes.size());
  for (int i = -kWarmUp; i < rounds; ++i)
    for (size_t each = 0; each < runtimes.size(); ++each) {
      const size_t pass = turn_of(each, i, runtimes.size());
      bench.round(runtimes[pass], i < 0 ? nullptr : &times[pass]);
    }
  std::vector<std::string> ids;
  std::vector<pid_t> pids;
  for (size_t each = 0; each < runtimes.size(); ++each) {
    ids.push_back(bench.fresh_id());
    bench.create(runtimes[each], ids[each], bench.bundle + "/stays-" + std::to_string(each));
    pids.push_back(read_pid(bench.pid_file(ids[each])));
    run(runtimes[each], {"start", ids[each]}, bench.log());
  }
  for (int i = -kWarmUp; i < rounds; ++i)
    for (size_t each = 0; each < runtimes.size(); ++each) {
      const size_t pass = turn_of(each, i, runtimes.size());
      double took = run(runtimes[pass], {"exec", ids[pass], "/stamp", "0"}, bench.log());
      if (i >= 0) times[pass].exec.push_back(took);
    }
  for (size_t each = 0; each < runtimes.size(); ++each) {
    run(runtimes[each], {"kill", ids[each], "KILL"}, bench.log());
    wait_end(pids[each]);
    run(runtimes[each], {"delete", ids[each]}, bench.log());
  }
  const Row rows[] = {{"create", &Times::create},
                      {"start", &Times::start},
                      {"delete", &Times::remove},
                      {"create+start+delete", &Times::whole},
                      {"exec", &Times::exec}};
  print_all(runtimes, times, rows);
  print_ratios(runtimes, times, std::span(rows).subspan(3));
  return 0;
}

int time_runs(Bench& bench, int rounds, const std::vector<Runtime>& runtimes) {
  std::vector<Times> times(runtimes.size());
  auto run_once = [&](const Runtime& runtime) {
    return run(runtime, {"run", "--bundle", bench.bundle + "/ends", bench.fresh_id()}, bench.log());
  };
  for (int i = -kWarmUp; i < rounds; ++i)
    for (size_t each = 0; each < runtimes.size(); ++each) {
      const size_t pass = turn_of(each, i, runtimes.size());
      Runtime cold = runtimes[pass];
      const std::string state = bench.scratch + "/cold";
      cold.command.insert(cold.command.end(), {"--root", state});  // the last one counts
      const double first = run_once(cold);
      fs::remove_all(state);
      const double next = run_once(runtimes[pass]);
      if (i < 0) continue;
      times[pass].cold.push_back(first);
      times[pass].run.push_back(next);
    }
  const Row rows[] = {{"cold-run", &Times::cold}, {"run", &Times::run}};
  print_all(runtimes, times, rows);
  print_ratios(runtimes, times, rows);
  return 0;
}

// The cgroup v2 path of a process; "" if it has none.
std::string group_of(pid_t pid) {
  std::istringstream lines(slurp("/proc/" + std::to_string(pid) + "/cgroup"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3);
  return "";
}

// From here on, everything runs on one processor, also the containers. Before Linux 6.2, a process loses its affinity when it
// enters a cgroup with a cpuset, so the parent cgroup is limited to that processor too.
void stay_on_one_processor() {
  cpu_set_t mine, one;
  if (::sched_getaffinity(0, sizeof mine, &mine) < 0) die("sched_getaffinity");
  int cpu = 0;
  while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &mine)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::sched_setaffinity(0, sizeof one, &one) < 0) die("sched_setaffinity");
  std::error_code ignored;  // without the controller there is no cpuset
  fs::create_directory("/sys/fs/cgroup/coracle-bench", ignored);
  std::ofstream("/sys/fs/cgroup/cgroup.subtree_control") << "+cpuset";
  std::ofstream("/sys/fs/cgroup/coracle-bench/cpuset.cpus") << cpu;
}

// Uses one processor: the kernel charges 64 pages in advance on each processor that a cgroup's processes run on (mm/memcontrol.c,
// MEMCG_CHARGE_BATCH), so with several processors the peak depends on where they ran.
int peak(Bench& bench, const std::vector<Runtime>& runtimes) {
  stay_on_one_processor();
  for (size_t each = 0; each < runtimes.size(); ++each) {
    std::vector<double> peaks;
    for (int round = 0; round < 5; ++round) {  // the first round includes first reads from disk
      std::string id = bench.fresh_id();
      bench.create(runtimes[each], id, bench.bundle + "/stays-" + std::to_string(each));
      pid_t pid = read_pid(bench.pid_file(id));
      run(runtimes[each], {"start", id}, bench.log());
      std::string text = slurp(group_of(pid) + "/memory.peak");
      if (text.empty()) die("no memory.peak in " + group_of(pid));
      peaks.push_back(double(std::atoll(text.c_str())) / 1024);
      ::kill(pid, SIGKILL);
      wait_end(pid);
      run(runtimes[each], {"delete", "--force", id}, bench.log());
    }
    std::printf("bench: memory.peak %-12s median %.0f KiB, most %.0f KiB\n", runtimes[each].name.c_str(), median(peaks),
                median(peaks, 1));
    std::printf("peak %s %.0f\n", runtimes[each].name.c_str(), median(peaks));
  }
  return 0;
}

int cycles(Bench& bench, int rounds, const Runtime& runtime) {
  double begun = now_ms();
  for (int i = 0; i < rounds; ++i) {
    std::string id = bench.fresh_id();
    bench.create(runtime, id, bench.bundle + "/stays-0");
    pid_t pid = read_pid(bench.pid_file(id));
    run(runtime, {"start", id}, bench.log());
    run(runtime, {"kill", id, "KILL"}, bench.log());
    wait_end(pid);
    run(runtime, {"delete", id}, bench.log());
    fs::remove(bench.pid_file(id));
  }
  std::printf("measured: %d cycles of create, start, kill, delete with %s: %.1f ms each\n", rounds, runtime.name.c_str(),
              (now_ms() - begun) / std::max(rounds, 1));
  return 0;
}

// ---- the bundle ----

json::array words(std::initializer_list<const char*> list) {
  json::array out;
  for (const char* word : list) out.emplace_back(word);
  return out;
}

json::object mount(const char* where, const char* type, const std::string& source, std::initializer_list<const char*> options) {
  return {{"destination", where}, {"type", type}, {"source", source}, {"options", words(options)}};
}

json::array namespaces() {
  json::array out;
  for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"}) out.push_back(json::object{{"type", type}});
  return out;
}

// The default profile with only the specification's syntax: rules for held capabilities are expanded.
json::value plain_seccomp(const json::array& held) {
  json::object profile = oci::default_seccomp().get_object();
  if (const json::value* by_capability = profile.if_contains("capabilities")) {
    for (const json::value& capability : held)
      if (const json::value* calls = by_capability->get_object().if_contains(capability.get_string()))
        profile.at("syscalls").get_array().push_back(json::object{{"names", *calls}, {"action", "SCMP_ACT_ALLOW"}});
    profile.erase("capabilities");
  }
#if defined(__x86_64__)
  profile["architectures"] = words({"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"});
#elif defined(__aarch64__)
  profile["architectures"] = words({"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"});
#endif
  return profile;
}

// Like that of podman for `podman run --network none --pids-limit 2048 IMAGE /stamp`, with the files that it binds.
void write_config(const std::string& directory, const std::string& rootfs, const std::string& group, const char* argument,
                  const std::string& profile) {
  fs::create_directories(directory);
  fs::create_directories(directory + "/shm");
  for (const char* name : {"hostname", "hosts", "resolv.conf", ".containerenv"})
    std::ofstream(directory + "/" + name) << "bench\n";
  json::array held = words({"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_NET_BIND_SERVICE",
                            "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT"});
  json::object process{{"user", json::object{{"uid", 0}, {"gid", 0}, {"umask", 18}}},
                       {"args", words({"/stamp", argument})},
                       {"env", words({"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm",
                                      "container=podman", "HOME=/root"})},
                       {"cwd", "/"},
                       {"capabilities", json::object{{"bounding", held}, {"effective", held}, {"permitted", held}}},
                       {"rlimits", json::array{json::object{{"type", "RLIMIT_NOFILE"}, {"hard", 1024}, {"soft", 1024}},
                                               json::object{{"type", "RLIMIT_NPROC"}, {"hard", 1000}, {"soft", 1000}}}}};
  json::array mounts{
      mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
      mount("/dev", "tmpfs", "tmpfs", {"nosuid", "noexec", "strictatime", "mode=755", "size=65536k"}),
      mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}),
      mount("/dev/pts", "devpts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}),
      mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
      mount("/run/.containerenv", "bind", directory + "/.containerenv", {"bind", "rprivate"}),
      mount("/etc/hostname", "bind", directory + "/hostname", {"bind", "rprivate"}),
      mount("/etc/hosts", "bind", directory + "/hosts", {"bind", "rprivate"}),
      mount("/etc/resolv.conf", "bind", directory + "/resolv.conf", {"bind", "rprivate"}),
      mount("/dev/shm", "bind", directory + "/shm", {"bind", "rprivate", "nosuid", "noexec", "nodev"}),
      mount("/sys/fs/cgroup", "cgroup", "cgroup", {"rprivate", "nosuid", "noexec", "nodev", "relatime", "ro"})};
  json::object linux_part{
      {"sysctl", json::object{{"net.ipv4.ping_group_range", "0 0"}}},
      {"resources", json::object{{"devices", json::array{json::object{{"allow", false}, {"access", "rwm"}}}},
                                 {"pids", json::object{{"limit", 2048}}}}},
      {"cgroupsPath", group},
      {"namespaces", namespaces()},
      {"seccomp", profile.empty() ? plain_seccomp(held) : MUST(parse_json(slurp(profile)))},
      {"maskedPaths",
       words({"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
              "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/fs/selinux", "/sys/dev/block"})},
      {"readonlyPaths", words({"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})}};
  json::object config{{"ociVersion", "1.0.2"}, {"process", std::move(process)}, {"root", json::object{{"path", rootfs}}},
                      {"hostname", "bench"},   {"mounts", std::move(mounts)},   {"linux", std::move(linux_part)}};
  std::ofstream(directory + "/config.json") << to_pretty(config) << "\n";
}

// One bundle for the short-lived containers; for the long-lived ones one per runtime, equal except for the cgroup.
int write_bundles(const std::string& directory, const std::string& profile) {
  write_config(directory + "/ends", directory + "/rootfs", "/coracle-bench/ends", "0", profile);
  for (int each = 0; each < kRuntimesMax; ++each) {
    std::string name = "stays-" + std::to_string(each);
    write_config(directory + "/" + name, directory + "/rootfs", "/coracle-bench/" + name, "stay", profile);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::string verb = argc > 2 ? argv[1] : "";
  if (verb == "bundle") return write_bundles(fs::absolute(argv[2]), argc > 3 ? argv[3] : "");
  Bench bench{argc > 2 ? argv[2] : "", argc > 2 ? std::string(argv[2]) + "/scratch" : ""};
  if (argc > 3) fs::create_directories(bench.scratch);
  std::vector<Runtime> runtimes;
  for (int i = verb == "peak" ? 3 : 4; i < argc; ++i) runtimes.push_back(runtime_of(argv[i]));
  if (verb == "time" && !runtimes.empty()) return time_all(bench, std::atoi(argv[3]), runtimes);
  if (verb == "runs" && !runtimes.empty()) return time_runs(bench, std::atoi(argv[3]), runtimes);
  if (verb == "peak" && !runtimes.empty()) return peak(bench, runtimes);
  if (verb == "cycles" && runtimes.size() == 1) return cycles(bench, std::atoi(argv[3]), runtimes[0]);
  std::fprintf(stderr, "bench_oci: see the head of oci.cc\n");
  return 2;
}
