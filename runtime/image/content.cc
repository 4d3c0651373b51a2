// SPDX-License-Identifier: Apache-2.0
// See content.h. Files are created by rename; so is a layer, after everything in it has been synced.
#include "runtime/image/content.h"

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/image/manifest.h"
#include "runtime/image/pulled_record.h"
#include "runtime/sys/inode.h"

namespace coracle::image {
namespace {

constexpr size_t kIndexMax = 16 << 20;
constexpr size_t kLayerRecordMax = 4096;
constexpr int kIndexVersion = 1;

bool is_old(const struct stat& info, std::chrono::seconds age) {
  return system_clock().now() - WallTime(std::chrono::seconds(info.st_mtime)) > age;
}

Result<Fd> ensure_dir(const Fd& dir, const std::string& name, mode_t mode) {
  auto made = sys::make_directory_at(dir, name, mode);
  if (!made && made.error().code() != Code::already_exists) return made.take_error();
  return sys::open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

json::object to_json(const Record& record) {
  json::object to{{"id", record.id.text()},
                  {"references", json::array(record.references.begin(), record.references.end())},
                  {"digests", json::array(record.digests.begin(), record.digests.end())}};
  if (record.untagged) to["untagged"] = true;
  return to;
}

Result<Record> record_from(const json::value& from) {
  Digest id = TRY(Digest::parse(get_string(from, "id")));
  return Record{std::move(id), get_strings(from, "references"), get_strings(from, "digests"), get_bool(from, "untagged")};
}

Result<Content> Content::open(const std::string& path) {
  TRY(sys::make_directories(path, 0700));
  Content content;
  content.path_ = path;
  content.root_ = TRY(sys::open_directory(path));
  TRY(sys::unless_read_only(sys::change_mode(content.root_, 0700)).wrap(path));
  content.lock_ = TRY(sys::lock_file(path + "/lock"));
  // The workers of a killed process die with it, but not at the same instant: each holds this lock as long as it lives.
  TRY(sys::lock(content.root_, sys::Lock::exclusive).wrap(path));
  TRY(sys::lock(content.root_, sys::Lock::none).wrap(path));
  TRY(sys::unless_read_only(sys::remove_tree(content.root_, "staging")));
  content.staging_ = TRY(ensure_dir(content.root_, "staging", 0700));
  content.configs_ = TRY(ensure_dir(content.root_, "configs", 0700));
  content.pulled_ = TRY(ensure_dir(content.root_, "pulled", 0700));
  content.layers_ = TRY(ensure_dir(content.root_, "layers", 0700));
  content.partial_ = TRY(ensure_dir(content.root_, "partial", 0700));
  content.snapshots_ = TRY(ensure_dir(content.root_, "snapshots", 0700));
  content.empty_ = TRY(ensure_dir(content.root_, "empty", 0755));
  return content;
}

Result<Content> Content::join(const std::string& path, const std::string& staging) {
  constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  Content content;
  content.path_ = path;
  content.root_ = TRY(sys::open_directory(path));
  TRY(sys::lock(content.root_, sys::Lock::shared).wrap(path));
  Fd all = TRY(sys::open_at(content.root_, "staging", kDirectory));
  if (!staging.empty()) content.staging_ = TRY(sys::open_at(all, staging, kDirectory));
  content.configs_ = TRY(sys::open_at(content.root_, "configs", kDirectory));
  content.layers_ = TRY(sys::open_at(content.root_, "layers", kDirectory));
  content.partial_ = TRY(sys::open_at(content.root_, "partial", kDirectory));
  return content;
}

Result<Content> Content::join_for_download(const std::string& path) {
  Content content;
  content.path_ = path;
  content.configs_ = TRY(sys::open_directory(path + "/configs"));
  content.partial_ = TRY(sys::open_directory(path + "/partial"));
  return content;
}

Result<std::vector<Record>> Content::read_index() const {
  auto text = sys::read_file_at(root_, "images.json", kIndexMax);
  if (!text && text.error().code() == Code::not_found) return std::vector<Record>();
  if (!text) return text.take_error();
  auto document = parse_json(*text);
  if (!document) return document.take_error().wrap(path_ + "/images.json");
  if (get_int(*document, "version") != kIndexVersion)
    return Error(Code::unsupported, path_ + "/images.json is of another version");
  std::vector<Record> records;
  for (const json::value& image : get_array(*document, "images")) {
    Record record = TRY(record_from(image).wrap("images.json"));
    records.push_back(std::move(record));
  }
  return records;
}

Result<void> Content::write_index(const std::vector<Record>& records) const {
  json::array images;
  for (const Record& record : records) images.push_back(to_json(record));
  return sys::replace_file_at(root_, "images.json",
                              to_text(json::object{{"version", kIndexVersion}, {"images", std::move(images)}}));
}

Result<std::string> Content::read_config(const Digest& id) const {
  std::string text = TRY(sys::read_file_at(configs_, id.hex(), kManifestMax));
  if (digest_of(text) != id) return Error(Code::invalid, "the configuration " + id.text() + " is damaged");
  return text;
}

Result<void> Content::write_config(const Digest& id, std::string_view text) const {
  if (auto there = read_config(id)) return {};
  return sys::replace_file_at(configs_, id.hex(), text);
}

Result<std::string> Content::read_pulled(const Digest& id) const {
  return sys::read_file_at(pulled_, id.hex(), kPulledRecordMax);
}

Result<void> Content::write_pulled(const Digest& id, std::string_view text) const {
  return sys::replace_file_at(pulled_, id.hex(), text);
}

bool Content::has_layer(const Digest& chain) const { return bool(sys::stat_at(layers_, chain.hex())); }

std::string Content::layer_path(const Digest& chain) const { return path_ + "/layers/" + chain.hex() + "/diff"; }

Result<Fd> Content::open_layer(const Digest& chain) const {
  Fd layer = TRY(sys::open_at(layers_, chain.hex(), O_PATH | O_DIRECTORY | O_NOFOLLOW));
  return sys::open_at(layer, "diff", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<Bytes> Content::layer_size(const Digest& chain) const {
  Fd layer = TRY(sys::open_at(layers_, chain.hex(), O_PATH | O_DIRECTORY | O_NOFOLLOW));
  std::string text = TRY(sys::read_file_at(layer, "layer.json", kLayerRecordMax));
  auto document = parse_json(text);
  if (!document) return document.take_error();
  return Bytes(get_int(*document, "size"));
}

Result<Staging> Content::stage() {
  std::string name = std::to_string(__atomic_add_fetch(&staged_, 1, __ATOMIC_RELAXED));
  Fd dir = TRY(ensure_dir(staging_, name, 0700));
  Fd diff = TRY(ensure_dir(dir, "diff", 0755));
  TRY(sys::change_mode(diff, 0755));  // the mode of a root without an entry
  return Staging(staging_, std::move(name), std::move(diff));
}

Result<void> Content::keep_layer(Staging staging, const Digest& chain, Bytes size) const {
  Fd dir = TRY(sys::open_at(staging_, staging.name(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(sys::replace_file_at(dir, "layer.json", to_text(json::object{{"size", size.count}})));
  TRY(sys::sync_file_system(dir));
  auto placed = sys::rename_at(staging_, staging.name(), layers_, chain.hex());
  if (!placed) {
    if (has_layer(chain)) return {};
    return placed;
  }
  staging.kept();
  return sys::sync(layers_);
}

Result<Fd> Content::open_partial(const Digest& blob) const {
  for (;;) {
    Fd partial = TRY(sys::open_at(partial_, blob.hex(), O_RDWR | O_CREAT | O_APPEND, 0600));
    TRY(sys::lock(partial, sys::Lock::exclusive));
    struct stat info = TRY(sys::stat(partial));
    if (info.st_nlink > 0) return partial;  // otherwise the previous holder has deleted it
  }
}

Result<void> Content::drop_partial(const Digest& blob) const { return sys::remove_tree(partial_, blob.hex()); }

Result<void> Content::collect(const std::set<Digest>& configs, const std::set<Digest>& chains, const std::set<Digest>& doomed,
                              std::chrono::seconds age) const {
  auto sweep = [&](const Fd& dir, const std::set<Digest>* keep) -> Result<void> {
    std::vector<sys::DirEntry> entries = TRY(sys::list(dir));
    for (const auto& [name, type, inode] : entries) {
      auto digest = Digest::parse("sha256:" + name);
      if (digest && keep && keep->contains(*digest)) continue;
      auto info = sys::stat_at(dir, name);
      bool goes = info && (is_old(*info, age) || (digest && doomed.contains(*digest)));
      if (!goes) continue;
      // Moved first: a half-deleted directory after a power failure must not look like a layer.
      std::string trash = "trash-" + name;
      TRY(sys::rename_at(dir, name, staging_, trash));
      TRY(sys::remove_tree(staging_, trash));
    }
    return {};
  };
  TRY(sweep(configs_, &configs));
  TRY(sweep(pulled_, &configs));
  TRY(sweep(layers_, &chains));
  return sweep(partial_, nullptr);
}

}  // namespace coracle::image
