// SPDX-License-Identifier: Apache-2.0
// Kills a writing process at random times, repeatedly on the same file, and compares its output with the state that the next
// start finds: every acknowledged durable write is there, every watcher saw a sequence without gaps from which nothing durable is
// lost, and no revision was used for two different changes. CORACLE_CRASH_TRIES sets the number of rounds (100).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <sstream>

#include "tests/store/engine/engine_fixture.h"

extern char** environ;

namespace coracle::engine {
namespace {

struct Record {  // the change of one revision
  std::string what, name, value;
  bool operator==(const Record&) const = default;
};

struct Story {  // the output of one process
  Revision start = 0;
  std::map<Revision, Record> acknowledged;
  std::map<Revision, Record> seen;
  std::map<std::string, std::vector<Revision>> watchers;
  std::map<std::string, bool> removing;  // a removal was begun, and no later change of that name was acknowledged
  std::vector<std::string> errors;
};

Story read_story(const std::string& text) {
  Story story;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string who;
    Revision revision = 0;
    Record record;
    if (!(words >> who)) continue;
    if (who == "error") {
      story.errors.push_back(line);
    } else if (who == "removing") {
      words >> record.name;
      story.removing[record.name] = true;
    } else if (words >> revision; who == "start") {
      story.start = revision;
    } else if (words >> record.what >> record.name >> record.value; who == "ack") {
      story.acknowledged[revision] = record;
      story.removing[record.name] = false;
    } else {
      story.watchers[who].push_back(revision);
      story.seen[revision] = record;
    }
  }
  return story;
}

// Runs the child until it has printed `lines` lines and `after` has passed since, then kills it. Returns its output.
std::string run_and_kill(const std::string& path, unsigned seed, int lines, std::chrono::microseconds after) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  std::string number = std::to_string(seed), file = path, program = std::getenv("CORACLE_CRASH_CHILD");
  char* argv[] = {program.data(), file.data(), number.data(), nullptr};
  pid_t child = -1;
  int failed = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  std::string output;
  if (failed) {
    ::close(pipe[0]);
    ADD_FAILURE() << program << ": " << std::strerror(failed);
    return output;
  }

  std::optional<std::chrono::steady_clock::time_point> kill_at;
  char buffer[65536];
  for (;;) {
    auto now = std::chrono::steady_clock::now();
    if (!kill_at && std::count(output.begin(), output.end(), '\n') >= lines) kill_at = now + after;
    if (kill_at && now >= *kill_at) break;
    timespec wait{10, 0};
    if (kill_at) wait = {0, long(std::chrono::nanoseconds(*kill_at - now).count())};
    pollfd ready{pipe[0], POLLIN, 0};
    if (::ppoll(&ready, 1, &wait, nullptr) <= 0) continue;
    ssize_t got = ::read(pipe[0], buffer, sizeof buffer);
    if (got <= 0) break;
    output.append(buffer, size_t(got));
  }
  ::kill(child, SIGKILL);
  for (ssize_t got; (got = ::read(pipe[0], buffer, sizeof buffer)) > 0;) output.append(buffer, size_t(got));
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
  return output;
}

class CrashTest : public testing::Test {
 protected:
  // Opens a copy: the original stays as the crash left it, for the next process.
  void open_copy() {
    engine_.reset();
    copy_ = std::make_unique<TemporaryDirectory>();
    for (const char* suffix : {"", "-wal"}) {
      std::string from = directory_ / ("state.db" + std::string(suffix));
      if (std::filesystem::exists(from)) std::filesystem::copy_file(from, *copy_ / ("state.db" + std::string(suffix)));
    }
    Options options;
    options.find_kind = [](std::string_view, std::string_view) { return &kConfigMap; };
    engine_ = MUST(Engine::open(*copy_ / "state.db", options));
  }

  void check_watchers(const Story& story) {
    for (const auto& [watcher, revisions] : story.watchers) {
      Revision expected = story.start;
      for (Revision revision : revisions) ASSERT_EQ(revision, ++expected) << watcher << " has a gap or a repetition";
    }
  }

  // No revision was used for two changes, in this output or any earlier one.
  void check_meaning(const Story& story) {
    for (const auto* records : {&story.acknowledged, &story.seen}) {
      for (const auto& [revision, record] : *records) {
        ASSERT_GT(revision, story.start);
        ASSERT_LE(revision, engine_->revision());
        Record known = record;
        if (known.what == "del") known.value = "";  // an acknowledgement has the durability, a watch event does not
        auto [was, fresh] = meaning_.insert({revision, known});
        ASSERT_TRUE(fresh || was->second == known) << "revision " << revision << " means two things";
      }
    }
  }

  // The latest durable record of each name must have survived: the object has that revision or a later one.
  void check_nothing_durable_is_lost(const Story& story) {
    std::map<std::string, std::pair<Revision, Record>> latest;
    for (const auto* records : {&story.acknowledged, &story.seen}) {
      for (const auto& [revision, record] : *records) {
        if (!record.value.starts_with('D')) continue;
        auto& entry = latest[record.name];
        if (revision >= entry.first) entry = {revision, record};
      }
    }
    for (const auto& [name, entry] : latest) {
      const auto& [revision, record] = entry;
      auto found = engine_->get(kConfigMap, {"default", name});
      if (!found) {
        ASSERT_TRUE(record.what == "del" || removed_after(story, name, revision))
            << name << " is lost: revision " << revision << " " << record.value;
      } else if (record.what == "put") {
        ASSERT_GE((*found)->revision(), revision) << name << " is older than revision " << revision;
      } else {
        ASSERT_GT((*found)->revision(), revision) << name << " was removed and is back";
      }
    }
  }

  static bool removed_after(const Story& story, const std::string& name, Revision revision) {
    for (const auto* records : {&story.acknowledged, &story.seen})
      for (auto later = records->upper_bound(revision); later != records->end(); ++later)
        if (later->second.what == "del" && later->second.name == name) return true;
    auto removing = story.removing.find(name);  // the removal was in progress when the process was killed
    return removing != story.removing.end() && removing->second;
  }

  // The stored objects match the records of their revisions.
  void check_contents() {
    for (const ObjectPtr& object : MUST(engine_->list(kConfigMap, {})).items) {
      auto told = meaning_.find(object->revision());
      if (told == meaning_.end()) continue;
      ASSERT_EQ(told->second, (Record{"put", object->name(), std::string(get_string(object->json(), "data.value"))}));
    }
  }

  TemporaryDirectory directory_;
  std::unique_ptr<TemporaryDirectory> copy_;
  std::unique_ptr<Engine> engine_;
  std::map<Revision, Record> meaning_;
};

TEST_F(CrashTest, loses_nothing_that_was_acknowledged_and_repeats_no_revision) {
  if (!std::getenv("CORACLE_CRASH_CHILD")) GTEST_SKIP() << "CORACLE_CRASH_CHILD names no program";
  const char* wanted = std::getenv("CORACLE_CRASH_TRIES");
  int tries = wanted ? std::atoi(wanted) : 100;
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  size_t acknowledged = 0;
  for (int i = 0; i < tries && !HasFailure(); i++) {
    std::string output =
        run_and_kill(directory_ / "state.db", unsigned(i), 1 + int(random() % 150), std::chrono::microseconds(random() % 3'000));
    Story story = read_story(output);
    ASSERT_EQ(story.errors, std::vector<std::string>{}) << "try " << i;
    acknowledged += story.acknowledged.size();
    open_copy();
    ASSERT_NO_FATAL_FAILURE(check_watchers(story)) << "try " << i;
    ASSERT_NO_FATAL_FAILURE(check_meaning(story)) << "try " << i;
    ASSERT_NO_FATAL_FAILURE(check_nothing_durable_is_lost(story)) << "try " << i;
    ASSERT_NO_FATAL_FAILURE(check_contents()) << "try " << i;
  }
  std::printf("%d kills, %zu acknowledged writes\n", tries, acknowledged);
  EXPECT_GT(acknowledged, size_t(tries));
}

}  // namespace
}  // namespace coracle::engine
