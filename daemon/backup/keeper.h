// SPDX-License-Identifier: Apache-2.0
// Keeper: looks after the store's file. Copies of it while the daemon runs, restored copies, and the checks and compactions
// that it does by itself when nothing is written.
//
//   backup:   engine's snapshot + keys ─▶ one file, given out as a descriptor
//   restore:  stream ─▶ <state>/restore/upload ▸ check all of it ▸ seal the engine ▸ <state>/restore/{store.db,pki/} ▸ ready
//             ▸ the client is answered ▸ the house starts anew ▸ adopt(): the old ones aside, the new ones in their place
//
// The name `ready` is the point of no return: before it, a power cut leaves the old store; from it on, the next start adopts
// the new one, and may itself be cut off at any step. Everything blocks. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/engine/engine.h"
#include "store/schema/catalog_source.h"

namespace coracle::backup {

struct KeeperConfig {
  std::string state_dir;  // holds state.db and pki/
  std::string version;    // of Coracle
  std::string node;
  const schema::CatalogSource& catalogs;  // must outlive the keeper
};

// Hands over the bytes of an upload piece by piece until `take` returns false or it ends.
using Source = std::function<Result<void>(const std::function<bool(std::string_view)>& take)>;

class Keeper {
 public:
  Keeper(KeeperConfig config, engine::Engine& engine, const Clock& clock = system_clock());
  // What starts the house anew once a restored store waits for it. Called from a request's thread: must return at once.
  void on_restored(std::function<void()> start_anew) { start_anew_ = std::move(start_anew); }

  // A copy of the store, with the certificates and keys unless they are not wanted. The file has no name any more.
  // Errors: the disk's.
  Result<Fd> backup(bool keys);
  // Checks what `source` gives and makes it the next store; its certificates and keys too, where it has some and they are
  // wanted. From then on nothing can be written. Returns what was restored: {objects, taken, node, version, keys, kept,
  // warnings}. Errors: invalid when it is no whole copy; conflict while another restore is under way; the disk's. Then
  // nothing has happened.
  Result<json::value> restore(const Source& source, bool keys);
  void start_anew() const;  // after a restore was answered

  // {bytes, unusedBytes, objects, objectsBytes, objectsBytesMax (0: no limit), revision, check: {time, findings}}; check: the
  // latest one.
  Result<json::value> state();
  json::value check();  // now. Returns `check` of state(); what is wrong is logged too
  Result<void> compact();
  // Once an hour: checks and compacts when that is due and nothing is being written.
  void tend();

 private:
  struct Checked {
    WallTime at;
    SteadyTime when;
    std::vector<std::string> findings;
  };
  Result<json::value> adopt_upload(const std::string& upload, bool keys);
  bool quiet() const;

  const KeeperConfig config_;
  engine::Engine& engine_;
  const Clock& clock_;
  std::function<void()> start_anew_;
  const SteadyTime started_;
  Guarded<std::optional<Checked>> checked_;
  Guarded<std::optional<SteadyTime>> compacted_;
  Guarded<bool> restoring_;
};

// Before the store is opened: puts a restored one in its place where one waits, and takes away what an unfinished restore
// left. May be cut off anywhere and called again. Errors: the disk's.
Result<void> adopt(const std::string& state_dir);

}  // namespace coracle::backup
