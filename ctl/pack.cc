// SPDX-License-Identifier: Apache-2.0
// See pack.h. The layer goes into a temporary file first: its digest stands in the archive before it.
#include "ctl/pack.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "ctl/archive_handles.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

constexpr time_t kEpoch = 1'577'836'800;  // 2020-01-01: the same directory gives the same digest on any day

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_, EVP_sha256(), nullptr); }
  Sha256(const Sha256&) = delete;
  ~Sha256() { EVP_MD_CTX_free(context_); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }
  std::string digest() {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(context_, bytes, &size);
    return "sha256:" + hex(std::string_view(reinterpret_cast<char*>(bytes), size));
  }

 private:
  EVP_MD_CTX* context_;
};

std::string digest_of(std::string_view text) {
  Sha256 sha;
  sha.add(text);
  return sha.digest();
}

struct LayerSink {
  int fd;
  Sha256 sha;
  int64_t size = 0;
};

la_ssize_t write_layer(archive*, void* user, const void* bytes, size_t size) {
  auto& sink = *static_cast<LayerSink*>(user);
  sink.sha.add(std::string_view(static_cast<const char*>(bytes), size));
  sink.size += int64_t(size);
  const char* at = static_cast<const char*>(bytes);
  for (size_t left = size; left > 0;) {
    ssize_t wrote = ::write(sink.fd, at, left);
    if (wrote < 0) return -1;
    at += wrote;
    left -= size_t(wrote);
  }
  return la_ssize_t(size);
}

Result<void> copy_content(archive* to, int fd, int64_t size, const std::string& name) {
  char buffer[65536];
  while (size > 0) {
    ssize_t got = ::read(fd, buffer, size_t(std::min<int64_t>(size, sizeof buffer)));
    if (got < 0) return Error::from_errno("read " + name);
    if (got == 0) return Error(Code::conflict, name + " shrank while it was read");
    if (archive_write_data(to, buffer, size_t(got)) < 0) return archive_failed(to, "write " + name);
    size -= got;
  }
  return {};
}

Result<void> add_file(archive* to, archive* disk, const std::string& root, const std::string& relative,
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
  archive_entry_set_mtime(entry.get(), kEpoch, 0);
  if (archive_entry_filetype(entry.get()) == AE_IFSOCK) return {};
  if (archive_entry_filetype(entry.get()) == AE_IFREG && archive_entry_nlink(entry.get()) > 1) {
    auto [known, fresh] = links.emplace(std::pair(archive_entry_dev(entry.get()), archive_entry_ino64(entry.get())), relative);
    if (!fresh) {
      archive_entry_set_hardlink(entry.get(), known->second.c_str());
      archive_entry_set_size(entry.get(), 0);
    }
  }
  if (archive_write_header(to, entry.get()) < ARCHIVE_WARN) return archive_failed(to, "write " + relative);
  if (archive_entry_filetype(entry.get()) != AE_IFREG || archive_entry_size(entry.get()) == 0) return {};
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return Error::from_errno("open " + path);
  return copy_content(to, file.get(), archive_entry_size(entry.get()), path);
}

Result<void> write_layer_tar(const std::string& root, LayerSink& sink) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code broken;
  for (auto it = fs::recursive_directory_iterator(root, broken); !broken && it != fs::recursive_directory_iterator();
       it.increment(broken))
    names.push_back(it->path().lexically_relative(root));
  if (broken) return Error::from_errno(broken.value(), "read " + root);
  std::sort(names.begin(), names.end());
  ArchiveWriter layer(archive_write_new());
  archive_write_set_format_pax_restricted(layer.get());
  if (archive_write_open(layer.get(), &sink, nullptr, write_layer, nullptr) != ARCHIVE_OK)
    return archive_failed(layer.get(), "write the layer");
  ArchiveReader disk(archive_read_disk_new());
  archive_read_disk_set_symlink_physical(disk.get());
  archive_read_disk_set_behavior(disk.get(), ARCHIVE_READDISK_NO_FFLAGS);
  std::map<std::pair<dev_t, ino_t>, std::string> links;
  for (const auto& name : names) TRY(add_file(layer.get(), disk.get(), root, name, links));
  if (archive_write_close(layer.get()) != ARCHIVE_OK) return archive_failed(layer.get(), "write the layer");
  return {};
}

Result<void> add_text(archive* to, const std::string& name, std::string_view text) {
  ArchiveEntry entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), kEpoch, 0);
  archive_entry_set_size(entry.get(), int64_t(text.size()));
  if (archive_write_header(to, entry.get()) != ARCHIVE_OK || archive_write_data(to, text.data(), text.size()) < 0)
    return archive_failed(to, "write " + name);
  return {};
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

json::object descriptor(std::string_view media_type, const std::string& digest, int64_t size) {
  return {{"mediaType", media_type}, {"digest", digest}, {"size", size}};
}

std::string blob_path(const std::string& digest) { return "blobs/sha256/" + digest.substr(7); }

}  // namespace

Result<void> pack_directory(const std::string& directory, const std::string& name, const ImageConfig& config,
                            const Fd& archive_fd) {
  struct stat status;
  if (::stat(directory.c_str(), &status) != 0) return Error::from_errno("open " + directory);
  if (!S_ISDIR(status.st_mode)) return Error(Code::invalid, directory + " is not a directory");
  if (name.empty()) return Error(Code::invalid, "the image needs a name: localhost/NAME:TAG");
  Fd layer_file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!layer_file) return Error::from_errno("open a temporary file in /tmp");
  LayerSink sink{layer_file.get(), {}};
  TRY(write_layer_tar(directory, sink));
  std::string layer_digest = sink.sha.digest();
  std::string image = config_text(config, layer_digest);
  json::object manifest{
      {"schemaVersion", 2},
      {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
      {"config", descriptor("application/vnd.oci.image.config.v1+json", digest_of(image), int64_t(image.size()))},
      {"layers", json::array{descriptor("application/vnd.oci.image.layer.v1.tar", layer_digest, sink.size)}}};
  std::string manifest_text = to_text(manifest);
  json::object entry =
      descriptor("application/vnd.oci.image.manifest.v1+json", digest_of(manifest_text), int64_t(manifest_text.size()));
  entry["annotations"] = json::object{{"org.opencontainers.image.ref.name", name}, {"io.containerd.image.name", name}};
  entry["platform"] = json::object{{"architecture", architecture()}, {"os", "linux"}};
  std::string index = to_text(json::object{{"schemaVersion", 2},
                                           {"mediaType", "application/vnd.oci.image.index.v1+json"},
                                           {"manifests", json::array{std::move(entry)}}});

  ArchiveWriter out(archive_write_new());
  archive_write_set_format_pax_restricted(out.get());
  if (archive_write_open_fd(out.get(), archive_fd.get()) != ARCHIVE_OK) return archive_failed(out.get(), "write the archive");
  TRY(add_text(out.get(), "oci-layout", R"({"imageLayoutVersion":"1.0.0"})"));
  TRY(add_text(out.get(), "index.json", index));
  TRY(add_text(out.get(), blob_path(digest_of(manifest_text)), manifest_text));
  TRY(add_text(out.get(), blob_path(digest_of(image)), image));
  ArchiveEntry layer(archive_entry_new());
  archive_entry_set_pathname(layer.get(), blob_path(layer_digest).c_str());
  archive_entry_set_filetype(layer.get(), AE_IFREG);
  archive_entry_set_perm(layer.get(), 0644);
  archive_entry_set_mtime(layer.get(), kEpoch, 0);
  archive_entry_set_size(layer.get(), sink.size);
  if (archive_write_header(out.get(), layer.get()) != ARCHIVE_OK) return archive_failed(out.get(), "write the layer");
  if (::lseek(layer_file.get(), 0, SEEK_SET) < 0) return Error::from_errno("rewind the layer");
  TRY(copy_content(out.get(), layer_file.get(), sink.size, "the layer"));
  if (archive_write_close(out.get()) != ARCHIVE_OK) return archive_failed(out.get(), "write the archive");
  return {};
}

}  // namespace coracle::ctl
