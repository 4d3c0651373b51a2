// SPDX-License-Identifier: Apache-2.0
// The process that crash_test.cc kills: several writers and watchers on one engine. It prints the acknowledged writes and the
// observed events on standard output until it is killed. One line per record, each written with one call:
//   "start 17"                  the engine is open; its revision
//   "ack 18 put w0-3 D42"       revision, what, name, value; D: durable, S: soft
//   "ack 19 del w0-3 S"
//   "removing w0-3"             a removal is about to be tried
//   "seen2 18 put w0-3 D42"     watcher 2
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/log.h"
#include "store/engine/engine.h"
#include "store/object/object.h"

using namespace coracle;
using namespace coracle::engine;

namespace {

constexpr int kWriters = 4, kKeys = 5, kWatchers = 3;

void tell(const std::string& line) {
  std::string text = line + "\n";
  (void)!::write(STDOUT_FILENO, text.data(), text.size());  // short enough to be atomic on a pipe
}

std::string record(const Event& event) {
  bool removed = event.type == EventType::deleted;
  std::string value(removed ? get_string(event.object->json(), "metadata.uid") : get_string(event.object->json(), "data.value"));
  return std::to_string(event.revision) + (removed ? " del " : " put ") + event.object->name() + " " + value;
}

json::value body(const std::string& name, const std::string& value, size_t padding) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "?"}}},
          {"data", {{"value", value}, {"padding", std::string(padding, 'p')}}}};
}

void keep_writing(Engine& engine, int writer, unsigned seed) {
  std::mt19937 random(seed * 31 + unsigned(writer));
  for (int i = 0;; i++) {
    std::string name = "w" + std::to_string(writer) + "-" + std::to_string(random() % kKeys);
    bool durable = random() % 100 < 60;
    Durability durability = durable ? Durability::durable : random() % 2 ? Durability::soft : Durability::lazy;
    if (random() % 10 == 0) {
      tell("removing " + name);
      auto gone = engine.remove(kConfigMap, {"default", name}, std::nullopt, durability);
      if (gone) tell("ack " + std::to_string((*gone)->revision()) + " del " + name + " " + (durable ? "D" : "S"));
      else if (gone.error().code() != Code::not_found) return tell("error " + gone.error().text());
    } else {
      std::string value = (durable ? "D" : "S") + std::to_string(seed) + "-" + std::to_string(i);
      auto stored = engine.write({&kConfigMap, {"default", name}, body(name, value, random() % 3000), std::nullopt}, durability);
      if (!stored) return tell("error " + stored.error().text());
      tell("ack " + std::to_string((*stored)->revision()) + " put " + name + " " + value);
    }
  }
}

void keep_watching(Engine& engine, int number, Revision after) {
  auto watcher = MUST(engine.watch(kConfigMap, "", after));
  for (;;) {
    auto event = watcher->take({}, std::chrono::steady_clock::now() + std::chrono::hours(1));
    if (!event) return;  // the watch was too slow and ended, which is allowed
    if (*event) tell("seen" + std::to_string(number) + " " + record(**event));
  }
}

}  // namespace

int main(int, char** argv) {
  unsigned seed = unsigned(std::atoi(argv[2]));
  Options options;
  options.find_kind = [](std::string_view, std::string_view) { return &kConfigMap; };
  options.soft_delay = std::chrono::milliseconds(seed % 10);
  options.lazy_delay = std::chrono::milliseconds(20);
  options.watch_queue_max = 1 << 20;
  auto engine = Engine::open(argv[1], options);
  if (!engine) return tell("error " + engine.error().text()), 1;
  Revision start = (*engine)->revision();
  tell("start " + std::to_string(start));
  std::vector<std::jthread> threads;
  for (int i = 0; i < kWatchers; i++) threads.emplace_back(keep_watching, std::ref(**engine), i, start);
  for (int i = 0; i < kWriters; i++) threads.emplace_back(keep_writing, std::ref(**engine), i, seed);
}
