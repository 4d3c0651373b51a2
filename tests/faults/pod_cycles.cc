// SPDX-License-Identifier: Apache-2.0
// Pods that are created and removed, one after another, during one daemon's life: afterwards the machine is unchanged, and so are
// the daemon's descriptors and threads. tests/oci/cycles.sh does the same for coracle-oci.
//   pod_cycles        CORACLE_CYCLES: number of cycles (100; 10,000 with CORACLE_LONG=1)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/faults/machine.h"
#include "tests/runtime/container/live_runtime.h"

namespace coracle::faults {
namespace {

namespace fs = std::filesystem;
using runtime::LiveRuntime;

int number_ = 0, bad_ = 0;

void say(bool good, const std::string& what) {
  std::printf("%s %d - %s\n", good ? "ok" : "not ok", ++number_, what.c_str());
  std::fflush(stdout);
  if (!good) ++bad_;
}

size_t entries_of(const char* path) {
  size_t out = 0;
  for (const auto& entry : fs::directory_iterator(path)) (void)entry, ++out;
  return out;
}

// Every third pod has two containers, every fourth ends by itself.
Result<void> live(LiveRuntime& fixture, int i) {
  runtime::SandboxSpec pod;
  pod.id = "pod-" + std::to_string(i % 7);
  TRY(fixture.runtime->create_sandbox(pod));
  const bool ends = i % 4 == 0;
  TRY(fixture.runtime->start_container(pod.id, fixture.program("app-0", ends ? std::vector<std::string>{"/bin/true"}
                                                                             : std::vector<std::string>{"/bin/sleep", "1000"})));
  if (i % 3 == 0) TRY(fixture.runtime->start_container(pod.id, fixture.shell("side-0", "echo said; sleep 1000")));
  if (i % 5 == 0 && !ends) {
    runtime::ExecSpec exec;
    exec.args = {"/bin/true"};
    auto process = TRY(fixture.runtime->exec(pod.id, "app-0", exec));
    int code = TRY(process->wait({}));
    if (code != 0) return Error(Code::internal, "exec ended with " + std::to_string(code));
  }
  TRY(fixture.runtime->kill_container(pod.id, "app-0"));
  return fixture.runtime->remove_sandbox(pod.id);
}

Machine without_logs(const Places& places) {
  Machine out = look(places);
  std::erase_if(out["files"], [](const std::string& each) { return each.find(".log") != std::string::npos; });
  return out;
}

void reap_orphans() {  // this is the first process of a pid namespace
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

int cycle(int rounds) {
  LiveRuntime fixture;
  if (auto opened = fixture.open(); !opened) {
    say(false, "the runtime opens: " + opened.error().text());
    return 1;
  }
  const std::string& root = fixture.config.cgroup_root;
  const Places places{fixture.path(), fixture.path() + "/nothing", root.substr(root.rfind('/') + 1)};
  for (int i = 0; i < 70; ++i)  // warms up what is created once and kept
    if (auto lived = live(fixture, i); !lived) return say(false, "pod " + std::to_string(i) + ": " + lived.error().text()), 1;
  const Machine before = without_logs(places);
  const size_t descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
  int i = 0;
  Result<void> lived;
  for (; i < rounds && lived && !is_to_end(); ++i) lived = live(fixture, i);
  say(lived.ok(), std::to_string(i) + " pods come and go" + (lived ? "" : ": " + lived.error().text()));
  std::string differs;
  for (int tries = 0; tries < 200; ++tries, ::usleep(10000)) {
    reap_orphans();
    if ((differs = difference(before, without_logs(places))).empty()) break;
  }
  say(differs.empty(), "the machine is as before " + differs);
  const size_t now = entries_of("/proc/self/fd"), threads_now = entries_of("/proc/self/task");
  say(now == descriptors, "open descriptors: " + std::to_string(descriptors) + " before, " + std::to_string(now) + " after");
  say(threads_now == threads, "threads: " + std::to_string(threads) + " before, " + std::to_string(threads_now) + " after");
  std::printf("1..%d\n", number_);
  return bad_ ? 1 : 0;
}

}  // namespace
}  // namespace coracle::faults

int main() {
  using namespace coracle;
  if (std::string why = runtime::LiveRuntime::missing(); !why.empty()) {
    std::printf("ok 1 - pod_cycles # SKIP %s\n", why.c_str());
    return 77;
  }
  faults::enter_own_machine();
  const char *is_long = std::getenv("CORACLE_LONG"), *wanted = std::getenv("CORACLE_CYCLES");
  return faults::cycle(wanted ? std::atoi(wanted) : is_long && *is_long == '1' ? 10000 : 100);
}
