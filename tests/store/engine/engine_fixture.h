// SPDX-License-Identifier: Apache-2.0
// A directory with an engine, and ways to stop it: cleanly or like a crash.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "store/engine/engine.h"
#include "store/object/object.h"

namespace coracle::engine {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "coracle-engine-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The number of objects that a start after a power failure would find: opens a copy of the current files.
inline size_t rows_of_copy(const std::string& path) {
  TemporaryDirectory copy;
  for (const char* suffix : {"", "-wal"})
    if (std::filesystem::exists(path + suffix)) std::filesystem::copy_file(path + suffix, copy / ("db" + std::string(suffix)));
  sqlite3* handle = nullptr;
  size_t rows = size_t(-1);
  auto count = [](void* out, int, char** values, char**) { return *static_cast<size_t*>(out) = std::stoul(values[0]), 0; };
  if (sqlite3_open((copy / "db").c_str(), &handle) == SQLITE_OK)
    sqlite3_exec(handle, "SELECT count(*) FROM objects", count, &rows, nullptr);
  sqlite3_close(handle);
  return rows;
}

class EngineFixture : public testing::Test {
 protected:
  void SetUp() override {
    options_.find_kind = [](std::string_view group, std::string_view resource) -> const Kind* {
      for (const Kind* kind : {&kConfigMap, &kPod, &kSecret})
        if (kind->group == group && kind->resource == resource) return kind;
      return nullptr;
    };
    reopen();
  }
  Engine& engine() { return *engine_; }
  std::string path() const { return directory_ / "state.db"; }
  void close() { engine_.reset(); }
  void reopen() {
    close();
    engine_ = MUST(Engine::open(path(), options_));
  }
  // Keeps the running engine and opens a copy of its files, as a start after SIGKILL would.
  void crash_and_reopen() {
    std::filesystem::create_directory(directory_ / "crashed");
    for (const char* suffix : {"", "-wal"})
      std::filesystem::copy_file(path() + suffix, directory_ / ("crashed/state.db" + std::string(suffix)));
    close();
    for (const char* suffix : {"", "-wal"}) std::filesystem::remove(path() + suffix);
    for (const char* suffix : {"", "-wal"})
      std::filesystem::rename(directory_ / ("crashed/state.db" + std::string(suffix)), path() + suffix);
    std::filesystem::remove(directory_ / "crashed");
    engine_ = MUST(Engine::open(path(), options_));
  }

  static Key key(const std::string& name) { return {"default", name}; }
  static json::value body(const std::string& name, const std::string& value, const std::string& ns = "default") {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"namespace", ns}, {"uid", "uid-" + name}}},
            {"data", {{"value", value}}}};
  }
  Result<ObjectPtr> try_put(const std::string& name, const std::string& value, std::optional<Revision> expected,
                            Durability durability = Durability::durable) {
    return engine().write({&kConfigMap, key(name), body(name, value), expected}, durability);
  }
  ObjectPtr put(const std::string& name, const std::string& value, Durability durability = Durability::durable) {
    return MUST(try_put(name, value, std::nullopt, durability));
  }
  std::vector<std::string> names(const ListOptions& options = {}) {
    std::vector<std::string> out;
    for (const ObjectPtr& object : MUST(engine().list(kConfigMap, options)).items) out.push_back(object->name());
    return out;
  }
  size_t rows_of_a_copy() const { return rows_of_copy(path()); }
  size_t wait_for_rows_of_a_copy(size_t wanted) const {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    size_t rows = 0;
    while ((rows = rows_of_a_copy()) != wanted && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return rows;
  }
  size_t files_aside() const {
    size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      found +=
          entry.path().string().find(".damaged-") != std::string::npos && entry.path().string().find("-wal") == std::string::npos;
    return found;
  }

  TemporaryDirectory directory_;
  Options options_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace coracle::engine
