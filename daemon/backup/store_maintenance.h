// SPDX-License-Identifier: Apache-2.0
// StoreMaintenance: maintenance of the store's file: backups while the daemon runs, restoring a backup, and periodic checks and
// compactions while nothing is written.
//
//   backup:   engine's snapshot + keys ─▶ one file, returned as a descriptor
//   restore:  stream ─▶ <state>/restore/upload ▸ check all of it ▸ seal the engine ▸ <state>/restore/{store.db,pki/} ▸ ready
//             ▸ respond to the client ▸ the daemon restarts in process ▸ adopt(): move the old files aside, the new ones in place
//
// The file `ready` is the point of no return: after a power cut before it, the old store remains; from then on, the next start
// adopts the new store, and each step of that may be interrupted and repeated. All functions block. Thread-safe.
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

struct StoreMaintenanceConfig {
  std::string state_dir;  // holds state.db and pki/
  std::string version;    // of Coracle
  std::string node;
  const schema::CatalogSource& catalogs;  // must outlive this
  // Restarts the daemon in process when a restored store is ready. Called on a request's thread: it must return at once.
  std::function<void()> start_anew;
};

// Passes the bytes of an upload to `take` in pieces until it returns false or the upload ends.
using Source = std::function<Result<void>(const std::function<bool(std::string_view)>& take)>;

class StoreMaintenance {
 public:
  StoreMaintenance(StoreMaintenanceConfig config, engine::Engine& engine, const Clock& clock = system_clock());

  // Copies the store and, if `keys`, the certificates and keys to an unlinked file. Errors: of the disk.
  Result<Fd> backup(bool keys);
  // Checks the backup from `source` and makes it the next store, with its certificates and keys if it has them and `keys` is
  // true. After that, nothing can be written. Returns what was restored: {objects, taken, node, version, keys, kept, warnings}.
  // Errors: invalid if the backup is incomplete; conflict while another restore runs; unavailable if the disk is nearly full; of
  // the disk. On an error nothing has changed.
  Result<json::value> restore(const Source& source, bool keys);
  void start_anew() const;  // call after the response to a restore was sent

  // {bytes, unusedBytes, objects, objectsBytes, objectsBytesMax (0: no limit), revision, check: {time, findings}}; check: the
  // latest one. Errors: of the disk.
  Result<json::value> state();
  json::value check();     // checks now. Returns `check` of state(); findings are logged too
  Result<void> compact();  // as Engine::compact_file()
  // Call once an hour. Checks and compacts the store if that is due and nothing is being written.
  void maintain();

 private:
  struct Checked {
    WallTime at;
    SteadyTime when;
    std::vector<std::string> findings;
  };
  Result<json::value> adopt_upload(const std::string& upload, bool keys);
  bool quiet() const;

  const StoreMaintenanceConfig config_;
  engine::Engine& engine_;
  const Clock& clock_;
  const SteadyTime started_;
  Guarded<std::optional<Checked>> checked_;
  Guarded<std::optional<SteadyTime>> compacted_;
  Guarded<bool> restoring_;
};

// Call before the store is opened. Puts a restored store that is ready in its place, and removes the files of an incomplete
// restore. May be interrupted at any point and repeated. Errors: of the disk.
Result<void> adopt(const std::string& state_dir);

}  // namespace coracle::backup
