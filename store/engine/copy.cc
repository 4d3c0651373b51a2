// SPDX-License-Identifier: Apache-2.0
// See copy.h.
#include "store/engine/copy.h"

#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "store/engine/disk.h"
#include "store/engine/layout.h"
#include "store/object/object.h"

namespace coracle::engine {
namespace {

constexpr size_t kRowsAtOnce = 256;

constexpr const char* kLabelTables =
    "CREATE TABLE files(name TEXT PRIMARY KEY, content TEXT NOT NULL);"
    "CREATE TABLE label(id INTEGER PRIMARY KEY, taken TEXT NOT NULL, version TEXT NOT NULL, node TEXT NOT NULL,"
    " revision INTEGER NOT NULL, objects INTEGER NOT NULL, files INTEGER NOT NULL, digest INTEGER NOT NULL);";

// FNV-1a: detects corruption by a storage card or in transfer. Not a protection against tampering: whoever can write the file can
// write the digest.
class Digest {
 public:
  void add(std::string_view text) {
    for (char c : text) step(static_cast<unsigned char>(c));
    step(0);
  }
  void add(const RestingObject& object, Revision revision) {
    for (std::string_view part : {object.kind().group, object.kind().resource, object.ns(), object.name(), object.uid()})
      add(part);
    add(std::to_string(revision));
    std::string buffer;
    add(object.text(buffer));
  }
  int64_t value() const { return int64_t(hash_); }

 private:
  void step(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
  uint64_t hash_ = 0xcbf29ce484222325;
};

Result<void> write_rows(Database& database, const Copy& copy) {
  Digest digest;
  Statement put = TRY(database.prepare("INSERT INTO objects VALUES(?,?,?,?,?,?,?,?)"));
  int64_t id = 0;
  for (const RestingPtr& each : copy.objects) {
    const RestingObject& object = *each;
    std::string buffer;
    digest.add(object, object.revision());
    put.bind(++id).bind(object.kind().group).bind(object.kind().resource).bind(object.ns()).bind(object.name());
    put.bind(object.uid()).bind(int64_t(object.revision())).bind(object.text(buffer));
    TRY(put.run());
  }
  Statement keep = TRY(database.prepare("INSERT INTO files VALUES(?,?)"));
  for (const KeptFile& file : copy.files) {
    digest.add(file.name), digest.add(file.content);
    TRY(keep.bind(file.name).bind(file.content).run());
  }
  Statement mark = TRY(database.prepare("UPDATE marks SET reserved=? WHERE id=1"));
  TRY(mark.bind(int64_t(copy.reserved)).run());
  Statement label = TRY(database.prepare("INSERT INTO label VALUES(1,?,?,?,?,?,?,?)"));
  label.bind(copy.label.taken).bind(copy.label.version).bind(copy.label.node).bind(int64_t(copy.label.revision));
  label.bind(int64_t(copy.objects.size())).bind(int64_t(copy.files.size())).bind(digest.value());
  return label.run();
}

// Only our tables are allowed: a view or trigger could contain foreign code.
Result<bool> check_tables(Database& database) {
  Statement all = TRY(database.prepare("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"));
  std::set<std::string> names;
  for (;;) {
    bool row = TRY(all.step());
    if (!row) break;
    std::string name(all.text(1));
    bool known = name == "objects" || name == "marks" || name == "files" || name == "label";
    if (all.text(0) != "table" || !known)
      return Error(Code::invalid, "holds the " + std::string(all.text(0)) + " " + quoted(name) + ", which is not Coracle's");
    names.insert(name);
  }
  if (!names.contains("objects") || !names.contains("marks")) return Error(Code::invalid, "lacks the tables of a store");
  return names.contains("label");
}

Result<void> read_objects(Database& database, Copy& copy, Digest& digest) {
  Statement all = TRY(database.prepare("SELECT grp, resource, ns, name, uid, revision, body FROM objects ORDER BY id"));
  std::set<std::pair<const Kind*, Key>> seen;
  for (;;) {
    bool row = TRY(all.step());
    if (!row) return {};
    Key key{std::string(all.text(2)), std::string(all.text(3))};
    const Kind* kind = copy.kinds->of(all.text(0), all.text(1), !key.ns.empty(), all.text(6));
    std::string name = kind->qualified_resource() + " " + key.text();
    if (!seen.insert({kind, key}).second) return Error(Code::invalid, "holds " + name + " twice");
    auto object = TRY(RestingObject::from_text(*kind, key, Revision(all.integer(5)), all.text(4), all.text(6)));
    auto body = Object::make(*kind, object->awake()->json());
    if (!body || (*body)->key() != key || (*body)->uid() != object->uid())
      return Error(Code::invalid, "holds " + name + ", whose text is not that object");
    copy.reserved = std::max(copy.reserved, object->revision());
    digest.add(*object, object->revision());
    copy.objects.push_back(std::move(object));
  }
}

Result<void> read_label(Database& database, Copy& copy, Digest& digest) {
  Statement files = TRY(database.prepare("SELECT name, content FROM files ORDER BY rowid"));
  for (;;) {
    bool row = TRY(files.step());
    if (!row) break;
    copy.files.push_back({std::string(files.text(0)), std::string(files.text(1))});
    const std::string& name = copy.files.back().name;
    if (name.empty() || name.front() == '.' || name.find_first_of(std::string_view("/\0", 2)) != name.npos)
      return Error(Code::invalid, "holds a file with the name " + quoted(name));
    digest.add(name), digest.add(copy.files.back().content);
  }
  Statement label = TRY(database.prepare("SELECT taken, version, node, revision, objects, files, digest FROM label"));
  bool row = TRY(label.step());
  if (!row) return Error(Code::invalid, "was never finished: it bears no label");
  copy.label = {std::string(label.text(0)), std::string(label.text(1)), std::string(label.text(2)), Revision(label.integer(3))};
  copy.reserved = std::max(copy.reserved, copy.label.revision);
  bool complete = label.integer(4) == int64_t(copy.objects.size()) && label.integer(5) == int64_t(copy.files.size());
  if (!complete || label.integer(6) != digest.value())
    return Error(Code::invalid, "is damaged: what it holds is not what was written to it");
  return {};
}

Result<Copy> read_checked(const std::string& path, FindKind find_kind) {
  Database database = TRY(Database::open(path, nullptr));
  TRY(database.execute(
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;"));
  int64_t pages = TRY(database.query_integer("PRAGMA page_count"));
  if (pages == 0) return Error(Code::invalid, "is empty");
  TRY(check_layout(database, true));
  bool labelled = TRY(check_tables(database));
  Copy copy;
  copy.kinds = std::make_shared<StoredKinds>(std::move(find_kind));
  int64_t reserved = TRY(database.query_integer("SELECT reserved FROM marks WHERE id=1"));
  copy.reserved = Revision(std::max<int64_t>(reserved, 0));
  Digest digest;
  TRY(read_objects(database, copy, digest));
  if (labelled) TRY(read_label(database, copy, digest));
  return copy;
}

}  // namespace

Result<void> write_copy(const std::string& path, const Copy& copy) {
  Database database = TRY(Database::open(path, nullptr));
  // The caller syncs the file if needed; it may be in memory only.
  TRY(database.execute(
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-512;"));
  TRY(make_tables(database));
  TRY(database.execute(std::string("BEGIN;") + kLabelTables));
  TRY(write_rows(database, copy));
  return database.execute("COMMIT");
}

Result<Copy> read_copy(const std::string& path, FindKind find_kind) {
  auto read = read_checked(path, std::move(find_kind));
  if (read) return read;
  Error why = read.take_error();
  bool is_damaged = why.details() && why.details()->reason == kDamaged;
  if (is_damaged) return Error(Code::invalid, "is damaged or cut off: " + why.text());
  bool of_the_disk = why.code() == Code::unavailable || why.err() != 0;
  if (of_the_disk) return why;
  return std::move(why).as(Code::invalid);
}

Result<void> write_store(const std::string& path, const std::vector<RestingPtr>& objects, Revision above) {
  std::vector<RestingPtr> ordered = objects;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const RestingPtr& a, const RestingPtr& b) { return a->revision() < b->revision(); });
  auto disk = TRY(Disk::open(path, nullptr));
  std::vector<Row> rows;
  int64_t id = 0;
  TRY(disk->commit({}, above + ordered.size()));
  for (const RestingPtr& object : ordered) {
    ++id;
    rows.push_back({id, object->awake()->with_revision(above + Revision(id))->at_rest()});
    if (rows.size() < kRowsAtOnce) continue;
    TRY(disk->commit(rows, std::nullopt));
    rows.clear();
  }
  return disk->commit(rows, std::nullopt);
}

}  // namespace coracle::engine
