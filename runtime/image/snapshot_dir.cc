// SPDX-License-Identifier: Apache-2.0
// See snapshot_dir.h. The link is created last: a directory without one is incomplete.
#include "runtime/image/snapshot_dir.h"

#include <algorithm>

#include "runtime/base/scope.h"
#include "runtime/image/snapshot.h"
#include "runtime/sys/file.h"
#include "runtime/sys/overlay.h"

namespace coracle::image {

bool is_snapshot_name(std::string_view name) {
  auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  };
  return !name.empty() && name.size() <= kSnapshotNameMax && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), good);
}

Result<SnapshotDir::Found> SnapshotDir::load() {
  Found out;
  std::vector<sys::DirEntry> entries = TRY(sys::list(dir_));
  for (const auto& entry : entries) {
    if (auto held = sys::read_link_at(dir_, entry.name)) {
      out.holds[entry.name] = *held;
      continue;
    }
    Fd snapshot = TRY(sys::open_at(dir_, entry.name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    auto image = sys::read_link_at(snapshot, "image");
    if (image) {
      out.snapshots[entry.name] = *image;
    } else {
      TRY(sys::unless_read_only(sys::remove_tree(dir_, entry.name)));
    }
  }
  return out;
}

Result<void> SnapshotDir::create(const std::string& name, const std::string& image_id, const std::string& root_like,
                                 const Fd* id_map) {
  TRY(sys::make_directory_at(dir_, name, 0700).wrap("make snapshot"));
  Scope undo([&] { (void)sys::remove_tree(dir_, name); });  // the original error is reported
  Fd snapshot = TRY(sys::open_at(dir_, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(sys::make_directory_at(snapshot, "upper", 0755));
  TRY(sys::make_directory_at(snapshot, "work", 0700));
  Fd upper = TRY(sys::open_at(snapshot, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  Fd like;
  if (id_map) like = TRY(sys::clone_id_mapped(root_like, *id_map));
  else like = TRY(sys::open(root_like, O_PATH | O_DIRECTORY));
  struct stat info = TRY(sys::stat(like));
  TRY(sys::change_owner(upper, info.st_uid, info.st_gid));
  TRY(sys::change_mode(upper, info.st_mode & 07777));
  TRY(sys::symlink_at(image_id, snapshot, "image"));
  undo.dismiss();
  return {};
}

Result<Fd> SnapshotDir::mount(const std::string& name, const std::vector<std::string>& lower, const Fd* id_map) const {
  std::string base = path_ + "/" + name;
  return sys::mount_overlay({lower, base + "/upper", base + "/work", trash_path_, id_map}).wrap("mount snapshot " + name);
}

Result<Fd> SnapshotDir::mount_read_only(const std::vector<std::string>& lower, const Fd* id_map) const {
  if (lower.size() == 1) return id_map ? sys::clone_id_mapped(lower[0], *id_map) : sys::mount_read_only(lower[0]);
  return sys::mount_overlay({lower, "", "", trash_path_, id_map}).wrap("mount image");
}

Result<Fd> SnapshotDir::writable(const std::string& name) const {
  if (!is_snapshot_name(name)) return Error(Code::not_found, "no snapshot " + name);
  Fd snapshot = TRY(sys::open_at(dir_, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  return sys::open_at(snapshot, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<void> SnapshotDir::hold(const std::string& holder, const std::string& image_id) {
  const std::string made = "hold-" + std::to_string(++made_);
  TRY(sys::symlink_at(image_id, trash_, made).wrap("hold image"));
  auto renamed = sys::rename_at(trash_, made, dir_, holder);
  if (!renamed) (void)sys::unlink_at(trash_, made);  // otherwise the next start deletes it
  return std::move(renamed).wrap("hold image");
}

Result<void> SnapshotDir::release(const std::string& holder) {
  auto gone = sys::unlink_at(dir_, holder);
  if (!gone && gone.error().code() != Code::not_found) return gone.take_error().wrap("release image");
  return {};
}

Result<void> SnapshotDir::remove(const std::string& name) {
  std::string doomed = "snapshot-" + std::to_string(++made_);
  auto moved = sys::rename_at(dir_, name, trash_, doomed);
  if (!moved && moved.error().code() == Code::not_found) return {};
  TRY(std::move(moved));
  return sys::remove_tree(trash_, doomed);
}

}  // namespace coracle::image
