// SPDX-License-Identifier: Apache-2.0
// Cuts the power at all kinds of moments (SQLite on a disk that loses unsynced data), starts again, and compares the state with
// the acknowledged writes: the engine's file always has the whole state of some revision, not older than the last durable write.
// CORACLE_POWER_CUTS sets the number of rounds (300).
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "runtime/base/log.h"
#include "store/engine/engine.h"
#include "store/object/object.h"
#include "tests/store/engine/power_cut_vfs.h"

namespace coracle::engine {
namespace {

using Contents = std::map<std::string, std::string>;  // name -> value

class PowerCutTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([](LogLevel, std::string_view, std::string_view, LogFields) {}, LogLevel::error);
  }
  void TearDown() override {
    engine_.reset();
    disk_.reset();
  }

  Result<void> put(const std::string& name, Durability durability) {
    json::value body = {{"metadata", {{"name", name}, {"namespace", "default"}}}, {"data", {{"value", std::string(9000, 'x')}}}};
    auto done = engine_->write({&kConfigMap, {"default", name}, body, std::nullopt}, durability);
    return done ? Result<void>() : done.take_error();
  }

  Result<void> start() {
    Options options;
    options.find_kind = [](std::string_view, std::string_view) { return &kConfigMap; };
    options.soft_delay = options.lazy_delay = std::chrono::hours(1);
    options.vfs = disk_->vfs();
    engine_ = TRY(Engine::open("/state.db", options));
    return {};
  }

  Contents contents() {
    Contents all;
    for (const ObjectPtr& object : MUST(engine_->list(kConfigMap, {})).items)
      all[object->name()] = get_string(object->json(), "data.value");
    return all;
  }

  // Writes randomly until the power fails. Keeps the state after each revision, and the last revision that must survive.
  void write_until_dark(std::mt19937& random) {
    for (int i = 0; i < 400 && !disk_->power_is_off(); i++) {
      std::string name = "n" + std::to_string(random() % 12);
      Durability durability = random() % 2 ? Durability::durable : Durability::soft;
      bool removes = random() % 6 == 0;
      json::value body = {{"apiVersion", "v1"},
                          {"kind", "ConfigMap"},
                          {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "u"}}},
                          {"data", {{"value", std::to_string(random())}, {"padding", std::string(random() % 6000, 'p')}}}};
      auto done = removes ? engine_->remove(kConfigMap, {"default", name}, std::nullopt, durability)
                          : engine_->write({&kConfigMap, {"default", name}, body, std::nullopt}, durability);
      if (!done) {
        if (done.error().code() == Code::not_found) continue;
        ASSERT_TRUE(disk_->power_is_off()) << done.error().text();
        attempted_ = state_;  // the write failed, but may be on the disk nevertheless
        if (removes) attempted_->erase(name);
        else (*attempted_)[name] = get_string(body, "data.value");
        return;
      }
      ASSERT_GT((*done)->revision(), newest_) << "a revision came twice";
      newest_ = (*done)->revision();
      if (removes) state_.erase(name);
      else state_[name] = get_string((*done)->json(), "data.value");
      history_.emplace_back(newest_, state_);
      if (durability == Durability::durable) durable_ = history_.size() - 1;
    }
  }

  // The state is that after some write: the last durable one or a later one.
  void check_a_prefix_survived() {
    Contents now = contents();
    bool known = attempted_ && now == *attempted_;
    for (size_t i = durable_; i < history_.size() && !known; i++) known = history_[i].second == now;
    EXPECT_TRUE(known) << "the state is none that ever was since the last durable write";
    EXPECT_GE(engine_->revision(), newest_);
    state_ = now;
    newest_ = engine_->revision();
    history_ = {{newest_, now}};
    durable_ = 0;
    attempted_.reset();
  }

  std::unique_ptr<PowerCutDisk> disk_;
  std::unique_ptr<Engine> engine_;
  Contents state_;
  std::optional<Contents> attempted_;
  std::vector<std::pair<Revision, Contents>> history_{{0, {}}};
  size_t durable_ = 0;
  Revision newest_ = 0;
};

TEST_F(PowerCutTest, what_survives_is_the_state_at_some_revision_since_the_last_durable_write) {
  const char* wanted = std::getenv("CORACLE_POWER_CUTS");
  int cuts = wanted ? std::atoi(wanted) : 300;
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  disk_ = std::make_unique<PowerCutDisk>(seed);
  for (int cut = 0; cut < cuts && !HasFailure(); cut++) {
    disk_->cut_power_after(int(random() % (cut % 4 ? 200 : 12)));  // every fourth cut happens during the start
    auto started = start();
    if (started) write_until_dark(random);
    engine_.reset();
    disk_->restore_power();
    started = start();
    ASSERT_TRUE(started) << "cut " << cut << ": " << started.error().text();
    check_a_prefix_survived();
    if (cut % 3) engine_.reset();
    else disk_->cut_power_after(int(random() % 6)), engine_.reset(), disk_->restore_power();  // during the stop
  }
}

TEST_F(PowerCutTest, a_full_disk_stops_only_what_has_to_be_on_it) {
  disk_ = std::make_unique<PowerCutDisk>(1);
  ASSERT_TRUE(start());
  ASSERT_TRUE(put("kept", Durability::durable));
  disk_->set_full(true);
  Revision newest = engine_->revision();
  for (int round = 0; round < 5; round++) {
    if (round % 2) engine_.reset();
    else disk_->cut_power_after(0), engine_.reset(), disk_->restore_power();
    auto started = start();
    ASSERT_TRUE(started) << "round " << round << ": " << started.error().text();
    EXPECT_EQ(contents().size(), 1u) << "what was soft on a full disk is gone";
    EXPECT_EQ(contents().count("kept"), 1u);
    auto refused = put("durable", Durability::durable);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::unavailable);
    EXPECT_NE(refused.error().text().find("No space left on device"), std::string::npos) << refused.error().text();
    for (Durability durability : {Durability::soft, Durability::lazy, Durability::passing})
      ASSERT_TRUE(put("soft" + std::to_string(int(durability)), durability));
    EXPECT_EQ(contents().size(), 4u);
    EXPECT_NE(engine_->revision(), newest) << "a revision came twice";
    newest = engine_->revision();
  }
  disk_->set_full(false);
  ASSERT_TRUE(put("durable", Durability::durable)) << "it heals by itself";
  EXPECT_GT(engine_->revision(), newest);
  newest = engine_->revision();
  disk_->cut_power_after(0), engine_.reset(), disk_->restore_power();
  ASSERT_TRUE(start());
  EXPECT_EQ(contents().size(), 5u) << "with the durable write went those before it";
  EXPECT_GT(engine_->revision(), newest);
}

TEST_F(PowerCutTest, a_new_store_on_a_full_disk_is_an_error) {
  disk_ = std::make_unique<PowerCutDisk>(1);
  disk_->set_full(true);
  auto started = start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().text().find("No space left on device"), std::string::npos) << started.error().text();
}

TEST_F(PowerCutTest, the_log_does_not_grow_without_limit) {
  disk_ = std::make_unique<PowerCutDisk>(1);
  ASSERT_TRUE(start());
  for (int i = 0; i < 3000; i++) {
    json::value body = {{"metadata", {{"name", "a"}, {"namespace", "default"}}},
                        {"data", {{"value", std::string(8000, char('a' + i % 26)) + std::to_string(i)}}}};
    ASSERT_TRUE(engine_->write({&kConfigMap, {"default", "a"}, body, std::nullopt}, Durability::durable));
  }
  EXPECT_LT(disk_->size("/state.db-wal"), 6 << 20);
  EXPECT_LT(disk_->size("/state.db"), 1 << 20);
}

}  // namespace
}  // namespace coracle::engine
