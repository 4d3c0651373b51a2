// SPDX-License-Identifier: Apache-2.0
// See pack.h. The layer is first written to a temporary file: the archive needs its digest before its data.
#include "ctl/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/base/json.h"
#include "runtime/image/oci_archive.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

Result<void> copy_content(const Fd& from, int64_t size, const std::string& name, const image::Sink& to) {
  char buffer[65536];
  while (size > 0) {
    ssize_t got = ::read(from.get(), buffer, size_t(std::min<int64_t>(size, sizeof buffer)));
    if (got < 0) return Error::from_errno("read " + name);
    if (got == 0) return Error(Code::conflict, name + " shrank while it was read");
    TRY(to(std::string_view(buffer, size_t(got))));
    size -= got;
  }
  return {};
}

Result<void> add_file(image::TarWriter& to, archive* disk, const std::string& root, const std::string& relative,
                      std::map<std::pair<dev_t, ino_t>, std::string>& links) {
  std::string path = root + "/" + relative;
  ArchiveEntry entry(archive_entry_new());
  archive_entry_copy_sourcepath(entry.get(), path.c_str());
  archive_entry_copy_pathname(entry.get(), relative.c_str());
  if (archive_read_disk_entry_from_file(disk, entry.get(), -1, nullptr) != ARCHIVE_OK)
    return archive_failed(disk, "read " + path);
  archive_entry_set_uid(entry.get(), 0);
  archive_entry_set_gid(entry.get(), 0);
  archive_entry_set_uname(entry.get(), "");
  archive_entry_set_gname(entry.get(), "");
  archive_entry_unset_atime(entry.get());
  archive_entry_unset_ctime(entry.get());
  archive_entry_unset_birthtime(entry.get());
  archive_entry_set_mtime(entry.get(), image::kArchiveTime, 0);
  if (archive_entry_filetype(entry.get()) == AE_IFSOCK) return {};
  if (archive_entry_filetype(entry.get()) == AE_IFREG && archive_entry_nlink(entry.get()) > 1) {
    auto [known, fresh] = links.emplace(std::pair(archive_entry_dev(entry.get()), archive_entry_ino64(entry.get())), relative);
    if (!fresh) {
      archive_entry_set_hardlink(entry.get(), known->second.c_str());
      archive_entry_set_size(entry.get(), 0);
    }
  }
  TRY(to.add(entry.get()));
  if (archive_entry_filetype(entry.get()) != AE_IFREG || archive_entry_size(entry.get()) == 0) return {};
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return Error::from_errno("open " + path);
  return copy_content(file, archive_entry_size(entry.get()), path, [&](std::string_view bytes) { return to.data(bytes); });
}

Result<void> write_layer_tar(const std::string& root, const image::Sink& sink) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code broken;
  for (auto it = fs::recursive_directory_iterator(root, broken); !broken && it != fs::recursive_directory_iterator();
       it.increment(broken))
    names.push_back(it->path().lexically_relative(root));
  if (broken) return Error::from_errno(broken.value(), "read " + root);
  std::sort(names.begin(), names.end());
  image::TarWriter layer(sink);
  ArchiveReader disk(archive_read_disk_new());
  archive_read_disk_set_symlink_physical(disk.get());
  archive_read_disk_set_behavior(disk.get(), ARCHIVE_READDISK_NO_FFLAGS);
  std::map<std::pair<dev_t, ino_t>, std::string> links;
  for (const auto& name : names) TRY(add_file(layer, disk.get(), root, name, links));
  return layer.end();
}

std::string architecture() {
#if defined(__aarch64__)
  return "arm64";
#elif defined(__x86_64__)
  return "amd64";
#elif defined(__riscv)
  return "riscv64";
#else
  return "arm";
#endif
}

std::string config_text(const ImageConfig& config, const std::string& layer_digest) {
  json::object settings;
  if (!config.entrypoint.empty()) settings["Entrypoint"] = json::value_from(config.entrypoint);
  if (!config.cmd.empty()) settings["Cmd"] = json::value_from(config.cmd);
  std::vector<std::string> env = config.env;
  if (std::none_of(env.begin(), env.end(), [](const auto& pair) { return pair.starts_with("PATH="); }))
    env.insert(env.begin(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  settings["Env"] = json::value_from(env);
  if (!config.user.empty()) settings["User"] = config.user;
  if (!config.working_dir.empty()) settings["WorkingDir"] = config.working_dir;
  return to_text(json::object{{"created", "2020-01-01T00:00:00Z"},
                              {"architecture", architecture()},
                              {"os", "linux"},
                              {"config", std::move(settings)},
                              {"rootfs", {{"type", "layers"}, {"diff_ids", json::array{layer_digest}}}}});
}

}  // namespace

Result<void> pack_directory(const std::string& directory, const std::string& name, const ImageConfig& config, const Fd& archive) {
  struct stat status;
  if (::stat(directory.c_str(), &status) != 0) return Error::from_errno("open " + directory);
  if (!S_ISDIR(status.st_mode)) return Error(Code::invalid, directory + " is not a directory");
  if (name.empty()) return Error(Code::invalid, "the image needs a name: localhost/NAME:TAG");
  TRY(load_libarchive());
  Fd layer_file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!layer_file) return Error::from_errno("open a temporary file in /tmp");
  image::Sha256 sum;
  TRY(write_layer_tar(directory, [&](std::string_view bytes) {
    sum.update(bytes);
    return sys::write_all(layer_file, bytes);
  }));
  const image::Digest digest = sum.digest();
  auto read_back = [&](const image::Sink& to) -> Result<void> {
    if (::lseek(layer_file.get(), 0, SEEK_SET) < 0) return Error::from_errno("rewind the layer");
    return copy_content(layer_file, sum.size(), "the layer", to);
  };
  return image::write_oci_archive({{config_text(config, digest.text()), {architecture(), "linux", ""}, {0}, {name}}},
                                  {{digest, sum.size(), read_back}},
                                  [&](std::string_view bytes) { return sys::write_all(archive, bytes); });
}

}  // namespace coracle::ctl
