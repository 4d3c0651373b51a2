// SPDX-License-Identifier: Apache-2.0
// See store_maintenance.h.
#include "daemon/backup/store_maintenance.h"

#include <sys/stat.h>

#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/engine/copy.h"
#include "store/object/object.h"
#include "store/schema/catalog.h"
#include "store/schema/decode.h"
#include "store/schema/views.h"

namespace coracle::backup {
namespace {

constexpr Bytes kDiskLeft{int64_t(32) << 20};         // free disk space that an upload must leave
constexpr size_t kLookEvery = 1 << 20;                // bytes of an upload between two checks of the disk
constexpr std::chrono::minutes kQuiet{1};             // time without a durable write
constexpr std::chrono::hours kCheckEvery{24};         // if the store is quiet
constexpr std::chrono::hours kCheckAtLeastEvery{72};  // even if it is never quiet
constexpr std::chrono::hours kCompactEvery{24};
constexpr uint64_t kWorthCompacting = 1 << 20;  // unused bytes; see worth_compacting
constexpr size_t kFindingsLogged = 5;

std::string restore_dir(const std::string& state_dir) { return state_dir + "/restore"; }

// Compaction writes twice the used size. It requires that at least half of the file is unused, so that all compactions together
// write no more than was written before them.
bool worth_compacting(const engine::FileSize& size) { return size.unused >= kWorthCompacting && size.unused >= size.bytes / 2; }

Result<void> sync_directory(const std::string& path) {
  Fd directory = TRY(sys::open_directory(path));
  return sys::sync(directory);
}

Result<std::vector<engine::KeptFile>> read_keys(const std::string& directory) {
  std::vector<engine::KeptFile> files;
  if (!sys::exists(directory)) return files;
  std::vector<sys::DirEntry> entries = TRY(sys::list(directory));
  for (const auto& entry : entries) {
    if (!entry.name.ends_with(".crt") && !entry.name.ends_with(".key")) continue;
    std::string content = TRY(sys::read_file(directory + "/" + entry.name));
    files.push_back({entry.name, std::move(content)});
  }
  return files;
}

// Checks that this version can serve every object. Returns warnings about what only a newer version supports.
Result<std::vector<std::string>> check_objects(const std::vector<RestingPtr>& objects, const schema::Catalog& catalog) {
  std::vector<std::string> warnings;
  for (const RestingPtr& resting : objects) {
    ObjectPtr object = resting->awake();
    std::string name = object->kind().qualified_resource() + " " + object->key().text();
    view::PartialObjectMetadata shown(*object);
    const schema::KindInfo* info = catalog.by_kind(shown.api_version(), shown.kind());
    if (!info) {
      warnings.push_back(name + " is of a kind that this version does not serve; it is kept");
      continue;
    }
    auto decoded = schema::decode(info->type(), object->json());
    if (!decoded) return Error(Code::invalid, "holds " + name + ", which cannot be read: " + decoded.error().text());
    for (const std::string& warning : decoded->warnings) warnings.push_back(name + ": " + warning);
  }
  return warnings;
}

Result<void> take_upload(const std::string& path, const Source& source) {
  Fd file = TRY(sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
  Result<void> written;
  size_t since_look = kLookEvery;
  auto take = [&](std::string_view bytes) {
    if (!written) return true;  // reads to the end, because the client does not read the response before
    if (since_look += bytes.size(); since_look >= kLookEvery) {
      since_look = 0;
      auto disk = sys::disk_usage(file);
      if (disk && disk->available < kDiskLeft) written = Error(Code::unavailable, "the disk is nearly full");
    }
    if (written) written = sys::write_all(file, bytes);
    return true;
  };
  auto sent = source(take);
  TRY(std::move(written));
  return sent;
}

// The directory for the present store. Without a clock battery the same time may occur twice.
std::string name_aside(const std::string& state_dir, WallTime now) {
  std::string first = state_dir + "/before-restore-" + format_time(now);
  std::erase(first, ':');
  std::string name = first;
  for (int i = 2; sys::exists(name); i++) name = first + "-" + std::to_string(i);
  return name;
}

json::value checked_json(WallTime at, const std::vector<std::string>& findings) {
  json::array list;
  for (const std::string& finding : findings) list.emplace_back(finding);
  return json::object{{"time", format_time(at)}, {"findings", std::move(list)}};
}

}  // namespace

StoreMaintenance::StoreMaintenance(StoreMaintenanceConfig config, engine::Engine& engine, const Clock& clock)
    : config_(std::move(config)), engine_(engine), clock_(clock), started_(clock.steady()) {}

// ---- backup ----

Result<Fd> StoreMaintenance::backup(bool keys) {
  engine::Copy copy;
  if (keys) copy.files = TRY(read_keys(config_.state_dir + "/pki"));
  engine::Snapshot snapshot = engine_.snapshot();
  copy.label = {format_time(clock_.now()), config_.version, config_.node, snapshot.revision};
  copy.reserved = snapshot.revision;
  copy.objects = std::move(snapshot.objects);
  std::string directory = config_.state_dir + "/backup-XXXXXX";
  if (!::mkdtemp(directory.data())) return Error::from_errno("make a directory in " + config_.state_dir);
  // The descriptor keeps the data; most of it is never written to the disk.
  Scope remove([&] { (void)sys::remove_tree(directory); });
  std::string path = directory + "/copy";
  TRY(engine::write_copy(path, copy).wrap("copy the store"));
  return sys::open(path, O_RDONLY);
}

// ---- restore ----

Result<json::value> StoreMaintenance::restore(const Source& source, bool keys) {
  bool alone = restoring_.with([](bool& busy) { return !std::exchange(busy, true); });
  if (!alone) return Error(Code::conflict, "another restore is under way");
  std::string directory = restore_dir(config_.state_dir);
  Scope give_up([&] {
    (void)sys::unlink(directory + "/ready");  // first: with it, a partly removed restore would be adopted
    (void)sys::remove_tree(directory);
    restoring_.with([](bool& busy) { busy = false; });
  });
  TRY(sys::remove_tree(directory));
  TRY(sys::make_directories(directory, 0700));
  TRY(take_upload(directory + "/upload", source).wrap("receive the backup"));
  json::value restored = TRY(adopt_upload(directory + "/upload", keys));
  give_up.dismiss();
  return restored;
}

Result<json::value> StoreMaintenance::adopt_upload(const std::string& upload, bool keys) {
  std::string directory = restore_dir(config_.state_dir);
  engine::Copy copy =
      TRY(engine::read_copy(upload, std::bind_front(&schema::CatalogSource::stored_kind, &config_.catalogs)).wrap("the backup"));
  std::vector<std::string> warnings = TRY(check_objects(copy.objects, *config_.catalogs.now()).wrap("the backup"));
  bool with_keys = keys && !copy.files.empty();
  if (with_keys) {
    TRY(sys::make_directories(directory + "/pki", 0700));
    for (const auto& file : copy.files)
      TRY(sys::replace_file(directory + "/pki/" + file.name, file.content, file.name.ends_with(".key") ? 0600 : 0644));
  }
  // From here on no write is acknowledged, because the restored store would not contain it.
  Revision last = engine_.seal(Error(Code::unavailable, "the store is being replaced by a restored copy; try again in a moment"));
  Scope unseal([&] { engine_.unseal(); });
  TRY(engine::write_store(directory + "/store.db", copy.objects, std::max(last, copy.reserved)).wrap("write the restored store"));
  TRY(sync_directory(directory));
  std::string aside = name_aside(config_.state_dir, clock_.now());
  TRY(sys::replace_file(directory + "/ready", aside));
  unseal.dismiss();
  (void)sys::unlink(upload);  // if that fails, it is removed when the store is adopted
  log_notice("store", "a backup was restored; the daemon starts anew over it", {{"taken", copy.label.taken}, {"kept", aside}});
  json::array told;
  for (const std::string& warning : warnings) told.emplace_back(warning);
  return json::object{{"objects", copy.objects.size()}, {"taken", copy.label.taken}, {"node", copy.label.node},
                      {"version", copy.label.version},  {"keys", with_keys},         {"kept", aside},
                      {"warnings", std::move(told)}};
}

void StoreMaintenance::start_anew() const {
  if (config_.start_anew) config_.start_anew();
}

Result<void> adopt(const std::string& state_dir) {
  std::string directory = restore_dir(state_dir);
  if (!sys::exists(directory)) return {};
  auto aside = sys::read_file(directory + "/ready");
  if (!aside && aside.error().code() == Code::not_found) return sys::remove_tree(directory);  // it was not completed
  if (!aside) return aside.take_error();
  Fd state = TRY(sys::open_directory(state_dir));
  Fd fresh = TRY(sys::open_directory(directory));
  TRY(sys::make_directories(*aside, 0700));
  Fd old = TRY(sys::open_directory(*aside));
  TRY(sys::sync(state));
  auto move_aside = [&](const std::string& name) -> Result<void> {
    if (sys::exists(*aside + "/" + name) || !sys::exists(state_dir + "/" + name)) return {};
    return sys::rename_at(state, name, old, name);
  };
  if (sys::exists(directory + "/pki")) {
    TRY(move_aside("pki"));
    TRY(sys::rename_at(fresh, "pki", state, "pki"));
  }
  if (sys::exists(directory + "/store.db")) {
    for (const char* name : {"state.db-wal", "state.db-shm", "state.db"}) TRY(move_aside(name));
    TRY(sys::sync(old));
    TRY(sys::rename_at(fresh, "store.db", state, "state.db"));
  }
  TRY(sys::sync(state));
  log_notice("store", "the restored store is in place", {{"kept", *aside}});
  return sys::remove_tree(directory);
}

// ---- maintenance ----

Result<json::value> StoreMaintenance::state() {
  engine::FileSize size = TRY(engine_.file_size());
  engine::Usage usage = engine_.usage();
  json::object out{
      {"bytes", size.bytes},         {"unusedBytes", size.unused},         {"objects", engine_.snapshot().objects.size()},
      {"objectsBytes", usage.bytes}, {"objectsBytesMax", usage.bytes_max}, {"revision", engine_.revision()}};
  checked_.with([&](const auto& checked) {
    if (checked) out["check"] = checked_json(checked->at, checked->findings);
  });
  return json::value(std::move(out));
}

json::value StoreMaintenance::check() {
  std::vector<std::string> findings = engine_.check();
  for (size_t i = 0; i < findings.size() && i < kFindingsLogged; i++)
    log_error("store",
              "the store's file is damaged; memory still has everything: save it with coraclectl backup, then write it anew with "
              "coraclectl restore",
              {{"finding", findings[i]}});
  WallTime now = clock_.now();
  json::value told = checked_json(now, findings);
  checked_.with([&](auto& checked) { checked = Checked{now, clock_.steady(), std::move(findings)}; });
  return told;
}

Result<void> StoreMaintenance::compact() {
  compacted_.with([&](auto& compacted) { compacted = clock_.steady(); });
  return engine_.compact_file();
}

bool StoreMaintenance::quiet() const { return clock_.steady() - engine_.last_written() >= kQuiet; }

void StoreMaintenance::maintain() {
  SteadyTime now = clock_.steady();
  auto last = checked_.with([](const auto& checked) { return checked ? std::optional(checked->when) : std::nullopt; });
  SteadyTime since = last.value_or(started_);
  bool overdue = now - since >= kCheckAtLeastEvery, due = !last || now - since >= kCheckEvery;
  if (overdue || (due && quiet())) check();
  auto compacted = compacted_.with([](const auto& at) { return at; });
  if (!quiet() || (compacted && now - *compacted < kCompactEvery)) return;
  auto size = engine_.file_size();
  if (!size || !worth_compacting(*size)) return;
  auto done = compact();
  if (!done) log_warning("store", done.error().text());
}

}  // namespace coracle::backup
