// SPDX-License-Identifier: Apache-2.0
// The time until the first instruction of a pod's container: sandbox and container with our runtime, and the restart of a
// container in an existing sandbox, each interleaved with `runc run` of the same root, command and seccomp profile.
//   runtime_bench [rounds]
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/oci/capabilities.h"
#include "runtime/oci/parse.h"
#include "tests/runtime/container/live_runtime.h"

namespace coracle::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Series {
  const char* name;
  std::vector<double> values;
  double at(double share) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, size_t(share * double(values.size())))];
  }
};

// The container writes one byte as soon as it runs; the measurement ends when it arrives.
void wait_first_byte(const Fd& from) {
  char byte;
  if (::read(from.get(), &byte, 1) != 1) std::fprintf(stderr, "the container said nothing\n");
}

ContainerSpec speaking(LiveRuntime& fixture, const std::string& id, const sys::Pipe& out) {
  ContainerSpec spec = fixture.program(id, {"/bin/busybox", "echo", "x"});
  spec.log.path.clear();
  auto streams = std::make_shared<std::array<Fd, 3>>();
  (*streams)[0] = MUST(sys::open("/dev/null", O_RDONLY));
  (*streams)[1] = MUST(sys::duplicate(out.write));
  (*streams)[2] = MUST(sys::duplicate(out.write));
  spec.streams = std::move(streams);
  return spec;
}

double time_pod(LiveRuntime& fixture, int round, double& restart, double& setup) {
  sys::Pipe out = MUST(sys::make_pipe());
  SandboxSpec sandbox;
  sandbox.id = "bench-" + std::to_string(round);
  sandbox.hostname = sandbox.id;
  auto begin = Clock::now();
  MUST(fixture.runtime->create_sandbox(sandbox));
  setup = Milliseconds(Clock::now() - begin).count();
  MUST(fixture.runtime->start_container(sandbox.id, speaking(fixture, "app-0", out)));
  wait_first_byte(out.read);
  double whole = Milliseconds(Clock::now() - begin).count();
  sys::Pipe again = MUST(sys::make_pipe());
  begin = Clock::now();
  MUST(fixture.runtime->start_container(sandbox.id, speaking(fixture, "app-1", again)));
  wait_first_byte(again.read);
  restart = Milliseconds(Clock::now() - begin).count();
  MUST(fixture.runtime->remove_sandbox(sandbox.id));
  return whole;
}

void write_bundle(LiveRuntime& fixture) {
  oci::Spec spec = fixture.program("runc", {"/bin/busybox", "echo", "x"}).spec;
  for (const char* type : {"pid", "mount", "ipc", "uts", "network", "cgroup"}) spec.linux_.namespaces.push_back({type, ""});
  json::object profile = spec.linux_.seccomp->get_object();
  for (const std::string& cap : spec.process.capabilities->bounding) {
    const json::value* calls = profile.at("capabilities").get_object().if_contains(cap);
    if (calls) profile.at("syscalls").get_array().push_back(json::object{{"names", *calls}, {"action", "SCMP_ACT_ALLOW"}});
  }
  profile.erase("capabilities");
  profile["architectures"] = json::array{"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
  spec.linux_.seccomp = std::move(profile);
  MUST(sys::make_directories(fixture.path() + "/bundle"));
  MUST(sys::replace_file(fixture.path() + "/bundle/config.json", to_text(oci::to_json(spec))));
}

double time_other(LiveRuntime& fixture, const char* program, int round) {
  sys::Pipe out = MUST(sys::make_pipe());
  std::string id = "coracle-bench-" + std::to_string(::getpid()) + "-" + std::to_string(round),
              bundle = fixture.path() + "/bundle";
  const char* argv[] = {program, "run", "--bundle", bundle.c_str(), id.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  auto begin = Clock::now();
  pid_t pid = -1;
  if (::posix_spawnp(&pid, program, &actions, nullptr, const_cast<char**>(argv), environ) != 0) std::exit(77);
  ::posix_spawn_file_actions_destroy(&actions);
  out.write.reset();
  wait_first_byte(out.read);
  double took = Milliseconds(Clock::now() - begin).count();
  int status;
  ::waitpid(pid, &status, 0);
  return took;
}

void print(Series& series, double base) {
  std::printf("%-34s median %7.2f ms   p99 %7.2f ms   ratio %5.2f\n", series.name, series.at(0.5), series.at(0.99),
              series.at(0.5) / base);
}

int run(int rounds) {
  if (std::string why = LiveRuntime::missing(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  LiveRuntime fixture;
  MUST(fixture.open());
  write_bundle(fixture);
  Series setup{"sandbox", {}}, pod{"sandbox + container", {}}, restart{"container again", {}}, runc{"runc run", {}};
  for (int i = -2; i < rounds; ++i) {  // two warm-up rounds
    double again, made;
    double whole = time_pod(fixture, i + 2, again, made);
    double other = time_other(fixture, "runc", i + 2);
    if (i < 0) continue;
    setup.values.push_back(made);
    pod.values.push_back(whole);
    restart.values.push_back(again);
    runc.values.push_back(other);
  }
  double base = runc.at(0.5);
  for (Series* series : {&runc, &setup, &pod, &restart}) print(*series, base);
  return 0;
}

}  // namespace
}  // namespace coracle::runtime

int main(int argc, char** argv) { return coracle::runtime::run(argc > 1 ? std::atoi(argv[1]) : 100); }
