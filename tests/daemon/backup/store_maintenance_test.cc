// SPDX-License-Identifier: Apache-2.0
// Backup and restore as the daemon performs them, without HTTP: what is restored, what is refused, a restore that is interrupted
// at every step, and when the store is maintained.
#include "daemon/backup/store_maintenance.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/registry/bootstrap.h"
#include "store/engine/copy.h"
#include "store/object/object.h"
#include "tests/catalogs.h"

namespace coracle::backup {
namespace {

namespace fs = std::filesystem;

void put_file(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class Machine {  // a state directory and the daemon's operations on its store
 public:
  explicit Machine(const std::string& key) {
    char path[] = "/tmp/coracle-maintenance-XXXXXX";
    state_dir = ::mkdtemp(path);
    put_file(state_dir + "/pki/ca.key", key);
    put_file(state_dir + "/pki/ca.crt", "certificate of " + key);
    start();
  }
  ~Machine() {
    stop();
    fs::remove_all(state_dir);
  }
  void start() {
    MUST(adopt(state_dir));
    engine::Options options;
    options.find_kind = find_built_in();
    engine = MUST(engine::Engine::open(state_dir + "/state.db", options));
    maintenance = std::make_unique<StoreMaintenance>(
        StoreMaintenanceConfig{state_dir, "1.0", "edge", built_in_catalogs(), nullptr}, *engine, clock);
  }
  void stop() { maintenance.reset(), engine.reset(); }
  void restart() { stop(), start(); }

  Result<ObjectPtr> try_put(const std::string& name, const std::string& value) {
    json::value body = {{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "u-" + name}}},
                        {"data", {{"value", value}}}};
    return engine->write({&kConfigMap, {"default", name}, body, std::nullopt}, engine::Durability::durable);
  }
  ObjectPtr put(const std::string& name, const std::string& value) { return MUST(try_put(name, value)); }
  std::string value(const std::string& name) {
    auto found = engine->get(kConfigMap, {"default", name});
    return found ? std::string(get_string((*found)->json(), "data.value")) : "absent";
  }
  std::string save(bool keys = true) {
    Fd copy = MUST(maintenance->backup(keys));
    std::string out;
    char piece[4096];
    for (ssize_t got; (got = ::read(copy.get(), piece, sizeof piece)) > 0;) out.append(piece, size_t(got));
    return out;
  }
  Result<json::value> bring(const std::string& bytes, bool keys = true) {
    return maintenance->restore(
        [&](const auto& take) -> Result<void> {
          for (size_t at = 0; at < bytes.size(); at += 1000) take(std::string_view(bytes).substr(at, 1000));
          return {};
        },
        keys);
  }
  std::vector<std::string> left_over() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(state_dir))
      if (std::string name = entry.path().filename(); name != "pki" && !name.starts_with("state.db")) names.push_back(name);
    return names;
  }

  std::string state_dir;
  FakeClock clock;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<StoreMaintenance> maintenance;
};

TEST(StoreMaintenance, brings_back_what_was_there_and_keeps_what_is) {
  Machine machine("k1");
  machine.put("a", "then"), machine.put("gone", "1");
  std::string saved = machine.save();
  EXPECT_EQ(machine.left_over(), std::vector<std::string>()) << "a backup leaves nothing";
  machine.put("a", "now"), machine.put("new", "1");
  ASSERT_TRUE(machine.engine->remove(kConfigMap, {"default", "gone"}, std::nullopt, engine::Durability::durable));
  Revision before = machine.engine->revision();

  json::value restored = MUST(machine.bring(saved));
  EXPECT_EQ(get_int(restored, "objects"), 2);
  EXPECT_EQ(get_string(restored, "taken"), "2023-11-14T22:13:20Z");
  EXPECT_TRUE(get_bool(restored, "keys"));
  EXPECT_FALSE(machine.try_put("late", "1")) << "what is acknowledged now would be lost";
  machine.restart();
  EXPECT_EQ(machine.value("a"), "then");
  EXPECT_EQ(machine.value("gone"), "1");
  EXPECT_EQ(machine.value("new"), "absent");
  EXPECT_GT(MUST(machine.engine->get(kConfigMap, {"default", "a"}))->revision(), before);
  EXPECT_EQ(machine.engine->watch(kConfigMap, "", before).error().code(), Code::gone);
  std::string kept(get_string(restored, "kept"));
  EXPECT_EQ(machine.left_over(), std::vector<std::string>{fs::path(kept).filename()});
  EXPECT_EQ(MUST(engine::read_copy(kept + "/state.db", find_built_in())).objects.size(), 2u) << "a and new";
  EXPECT_EQ(text_of(kept + "/pki/ca.key"), "k1");
}

TEST(StoreMaintenance, keys_come_along_unless_they_are_not_wanted) {
  Machine first("k1"), second("k2"), third("k3");
  first.put("a", "1");
  MUST(second.bring(first.save()));
  second.restart();
  EXPECT_EQ(text_of(second.state_dir + "/pki/ca.key"), "k1");
  EXPECT_EQ(fs::status(second.state_dir + "/pki/ca.key").permissions(), fs::perms(0600));
  EXPECT_EQ(second.value("a"), "1");

  std::string bare = first.save(false);
  EXPECT_EQ(bare.find("certificate of k1"), bare.npos);
  EXPECT_FALSE(get_bool(MUST(third.bring(bare)), "keys"));
  third.restart();
  EXPECT_EQ(text_of(third.state_dir + "/pki/ca.key"), "k3");
  MUST(third.bring(first.save(), false));
  third.restart();
  EXPECT_EQ(text_of(third.state_dir + "/pki/ca.key"), "k3");
  EXPECT_EQ(third.value("a"), "1");
}

TEST(StoreMaintenance, refuses_without_a_trace) {
  Machine machine("k1");
  for (int i = 0; i < 30; i++) machine.put("a" + std::to_string(i), std::string(400, 'x'));
  std::string saved = machine.save();
  std::string broken = saved;
  broken[broken.find("xxxx")] = 'y';
  struct Row {
    std::string bytes, says;
  };
  for (const Row& row :
       {Row{"", "the backup: is empty"}, Row{saved.substr(0, saved.size() / 2), "the backup: is damaged or cut off"},
        Row{std::string(9000, 'z'), "the backup: is damaged or cut off"},
        Row{broken, "the backup: is damaged: what it holds is not what was written to it"}}) {
    auto refused = machine.bring(row.bytes);
    ASSERT_FALSE(refused) << row.says;
    EXPECT_EQ(refused.error().code(), Code::invalid);
    EXPECT_TRUE(refused.error().text().starts_with(row.says)) << refused.error().text();
    EXPECT_EQ(machine.left_over(), std::vector<std::string>());
    EXPECT_TRUE(machine.try_put("a0", row.says)) << "nothing is sealed";
  }
  auto cut = machine.maintenance->restore(
      [](const auto& take) -> Result<void> { return take("SQLite"), Error(Code::unavailable, "the client is gone"); }, true);
  EXPECT_EQ(cut.error().text(), "receive the backup: the client is gone");
  EXPECT_EQ(machine.left_over(), std::vector<std::string>());
}

TEST(StoreMaintenance, refuses_objects_that_cannot_be_read) {
  Machine machine("k1");
  json::value body = {{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", {{"name", "bad"}, {"namespace", "default"}, {"uid", "u"}}},
                      {"data", 5}};
  MUST(machine.engine->write({&kConfigMap, {"default", "bad"}, body, std::nullopt}, engine::Durability::durable));
  auto refused = machine.bring(machine.save());
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().text().starts_with("the backup: holds configmaps default/bad, which cannot be read: "))
      << refused.error().text();
}

TEST(StoreMaintenance, a_power_cut_leaves_the_old_store_or_the_new_one) {
  // A complete restore is waiting. The power fails after each rename in turn, and the next start has to finish the restore.
  for (int done = 0; done <= 5; done++) {
    Machine machine("k1");
    machine.put("a", "then");
    std::string saved = machine.save();
    machine.put("a", "now");
    put_file(machine.state_dir + "/pki/ca.key", "k2");
    std::string aside(get_string(MUST(machine.bring(saved)), "kept"));
    machine.stop();
    put_file(machine.state_dir + "/state.db-wal", "");
    int left = done;
    auto step = [&](const std::string& from, const std::string& to) {
      if (left-- > 0) fs::rename(from, to);
    };
    if (left-- > 0) fs::create_directory(aside);
    step(machine.state_dir + "/pki", aside + "/pki");
    step(machine.state_dir + "/restore/pki", machine.state_dir + "/pki");
    step(machine.state_dir + "/state.db-wal", aside + "/state.db-wal");
    step(machine.state_dir + "/state.db", aside + "/state.db");
    machine.start();
    EXPECT_EQ(machine.value("a"), "then") << done;
    EXPECT_EQ(text_of(machine.state_dir + "/pki/ca.key"), "k1") << done;
    EXPECT_EQ(text_of(aside + "/pki/ca.key"), "k2") << done;
    EXPECT_EQ(MUST(engine::read_copy(aside + "/state.db", find_built_in())).objects.size(), 1u) << done;
    EXPECT_EQ(machine.left_over(), std::vector<std::string>{fs::path(aside).filename()}) << done;
    machine.restart();
    EXPECT_EQ(machine.value("a"), "then") << "adopted once";
  }
}

TEST(StoreMaintenance, an_unfinished_restore_is_forgotten_at_the_next_start) {
  Machine machine("k1");
  machine.put("a", "now");
  machine.stop();
  put_file(machine.state_dir + "/restore/upload", "SQLite");
  put_file(machine.state_dir + "/restore/pki/ca.key", "k2");
  put_file(machine.state_dir + "/restore/store.db", "half");
  machine.start();
  EXPECT_EQ(machine.value("a"), "now");
  EXPECT_EQ(text_of(machine.state_dir + "/pki/ca.key"), "k1");
  EXPECT_EQ(machine.left_over(), std::vector<std::string>());
}

TEST(StoreMaintenance, two_restores_at_the_same_time_of_day_keep_both_old_stores) {
  Machine machine("k1");
  machine.put("a", "1");
  std::string saved = machine.save();
  MUST(machine.bring(saved));
  machine.restart();
  MUST(machine.bring(saved));
  machine.restart();
  EXPECT_EQ(machine.left_over().size(), 2u);
}

TEST(StoreMaintenance, looks_after_the_file_when_nothing_is_written) {
  Machine machine("k1");
  for (int i = 0; i < 500; i++) machine.put("a" + std::to_string(i), std::string(4000, 'x'));
  for (int i = 0; i < 490; i++)
    ASSERT_TRUE(
        machine.engine->remove(kConfigMap, {"default", "a" + std::to_string(i)}, std::nullopt, engine::Durability::durable));
  machine.maintenance->maintain();
  EXPECT_FALSE(find(MUST(machine.maintenance->state()), "check")) << "it was written to a moment ago";
  machine.clock.advance(std::chrono::hours(24 * 365 * 40));  // later than the last write, which has the real clock's time
  EXPECT_GT(get_int(MUST(machine.maintenance->state()), "unusedBytes"), 1 << 20);
  machine.maintenance->maintain();
  json::value state = MUST(machine.maintenance->state());
  EXPECT_EQ(get_array(state, "check.findings").size(), 0u);
  EXPECT_NE(get_string(state, "check.time"), "");
  EXPECT_EQ(get_int(state, "unusedBytes"), 0);
  std::string first(get_string(state, "check.time"));
  machine.clock.advance(std::chrono::hours(1));
  machine.maintenance->maintain();
  EXPECT_EQ(get_string(MUST(machine.maintenance->state()), "check.time"), first) << "once a day";
  machine.clock.advance(std::chrono::hours(24));
  machine.maintenance->maintain();
  EXPECT_NE(get_string(MUST(machine.maintenance->state()), "check.time"), first);
}

}  // namespace
}  // namespace coracle::backup
