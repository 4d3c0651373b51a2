// SPDX-License-Identifier: Apache-2.0
// simulation: runs scenarios, each determined by its seed, and prints the events of one that fails.
//   simulation COUNT [FIRST]   COUNT scenarios from seed FIRST on (default 1), on all cores
//   simulation --seed N        runs one scenario and prints each call
// Exits with 0 if all passed.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "tests/simulation/scenario.h"

namespace coracle::simulation {
namespace {

constexpr uint64_t kTwice = 20;          // every twentieth scenario runs twice and must give the same result
constexpr size_t kFailuresMax = 20;      // stops after so many failures
constexpr unsigned kWorkersPerCore = 4;  // many wait: admission waits up to a second for a new namespace's account

struct Sum {
  uint64_t passed = 0, steps = 0, changes = 0, deaths = 0;
  std::vector<uint64_t> failed;
};

int run_one(uint64_t seed) {
  set_log_sink(
      [](LogLevel, std::string_view component, std::string_view text, LogFields fields) {
        std::printf("log: %.*s: %.*s", int(component.size()), component.data(), int(text.size()), text.data());
        for (const auto& [name, value] : fields)
          std::printf(" %.*s=%.*s", int(name.size()), name.data(), int(value.size()), value.data());
        std::printf("\n");
      },
      LogLevel::debug);
  Outcome outcome = run_scenario(seed, stdout);
  for (const std::string& violation : outcome.violations) std::printf("VIOLATED %s\n", violation.c_str());
  std::printf("seed %lu: %s (%s)\n", seed, outcome.violations.empty() ? "passed" : "FAILED", outcome.about.c_str());
  return outcome.violations.empty() ? 0 : 1;
}

void run_some(std::atomic<uint64_t>& next, uint64_t end, Guarded<Sum>& sum) {
  for (uint64_t seed; (seed = next++) < end;) {
    Outcome outcome = run_scenario(seed, nullptr);
    if (seed % kTwice == 0 && run_scenario(seed, nullptr).print != outcome.print)
      outcome.violations.push_back("the same seed, another story");
    bool enough = sum.with([&](Sum& sum) {
      sum.steps += outcome.steps, sum.changes += outcome.calls, sum.deaths += outcome.deaths;
      if (outcome.violations.empty()) return sum.passed++, false;
      std::printf("seed %lu: %s (%s)\n", seed, outcome.violations.front().c_str(), outcome.about.c_str());
      std::fflush(stdout);
      sum.failed.push_back(seed);
      return sum.failed.size() >= kFailuresMax;
    });
    if (enough) next = end;
  }
}

int run_many(uint64_t count, uint64_t first, const char* self) {
  set_log_sink([](LogLevel, std::string_view, std::string_view, LogFields) {}, LogLevel::error);
  std::atomic<uint64_t> next = first;
  Guarded<Sum> shared;
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < kWorkersPerCore * std::max(1u, std::thread::hardware_concurrency()); ++i)
      workers.emplace_back([&] { run_some(next, first + count, shared); });
  }
  Sum sum = shared.with([](Sum& sum) { return sum; });
  std::printf("%lu scenarios passed, %zu failed; %lu steps, %lu changes, %lu deaths of the daemon\n", sum.passed,
              sum.failed.size(), sum.steps, sum.changes, sum.deaths);
  if (sum.failed.empty()) return 0;
  std::printf("the story of the first: %s --seed %lu\n", self, sum.failed.front());
  return 1;
}

}  // namespace
}  // namespace coracle::simulation

int main(int argc, char** argv) {
  using namespace coracle::simulation;
  auto number = [&](int at, uint64_t otherwise) { return at < argc ? std::strtoull(argv[at], nullptr, 10) : otherwise; };
  if (argc > 1 && std::strcmp(argv[1], "--seed") == 0) return run_one(number(2, 1));
  return run_many(number(1, 200), number(2, 1), argv[0]);
}
