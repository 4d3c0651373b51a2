// SPDX-License-Identifier: Apache-2.0
// The cost of the engine: durable writes by one and by eight threads, soft writes, and a start with that data. Prints "bench:"
// lines. The directory given (or the working one) determines the measured disk.
#include "store/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

using namespace coracle;
using namespace coracle::engine;

namespace {

using Steady = std::chrono::steady_clock;

double micros(Steady::duration span) { return std::chrono::duration<double, std::micro>(span).count(); }

json::value pod(const std::string& name, int generation) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "3f0a7d0e-6a0e-4a57-9f0c-000000000000"}}},
          {"spec", {{"nodeName", std::to_string(generation)}, {"padding", std::string(2800, 'p')}}}};
}

void measure(Engine& engine, const char* what, int threads, int each, Durability durability) {
  std::vector<std::vector<double>> spans{size_t(threads)};
  auto begin = Steady::now();
  {
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; t++) {
      writers.emplace_back([&, t] {
        for (int i = 0; i < each; i++) {
          std::string name = "pod-" + std::to_string(t) + "-" + std::to_string(i % 50);
          auto start = Steady::now();
          (void)MUST(engine.write({&kPod, {"default", name}, pod(name, i), std::nullopt}, durability));
          spans[size_t(t)].push_back(micros(Steady::now() - start));
        }
      });
    }
  }
  double seconds = micros(Steady::now() - begin) / 1e6;
  std::vector<double> all;
  for (const auto& one : spans) all.insert(all.end(), one.begin(), one.end());
  std::ranges::sort(all);
  std::printf("bench: engine %s, %d threads: %.0f writes/s, median %.0f us, p99 %.0f us\n", what, threads,
              double(all.size()) / seconds, all[all.size() / 2], all[all.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path directory = std::filesystem::path(argc > 1 ? argv[1] : ".") / "engine-bench.tmp";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  Options options;
  options.find_kind = [](std::string_view, std::string_view) { return &kPod; };
  std::string path = directory / "state.db";
  {
    auto engine = MUST(Engine::open(path, options));
    measure(*engine, "durable", 1, 500, Durability::durable);
    measure(*engine, "durable", 8, 250, Durability::durable);
    measure(*engine, "soft", 1, 5000, Durability::soft);
    for (int i = 0; i < 1000; i++) {
      std::string name = "more-" + std::to_string(i);
      (void)MUST(engine->write({&kPod, {"default", name}, pod(name, i), std::nullopt}, Durability::soft));
    }
  }
  auto begin = Steady::now();
  auto engine = MUST(Engine::open(path, options));
  std::printf("bench: engine start over %zu objects: %.1f ms\n", engine->count(kPod), micros(Steady::now() - begin) / 1000);
  engine.reset();
  std::filesystem::remove_all(directory);
}
