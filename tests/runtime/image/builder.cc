// SPDX-License-Identifier: Apache-2.0
// See builder.h.
#include "tests/runtime/image/builder.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/json.h"
#include "runtime/image/digest.h"
#include "runtime/image/manifest.h"

namespace coracle::image::test {
namespace {

namespace fs = std::filesystem;

la_ssize_t append(archive*, void* out, const void* bytes, size_t size) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
  return la_ssize_t(size);
}

mode_t type_of(char type) {
  switch (type) {
    case 'd': return AE_IFDIR;
    case 'l': return AE_IFLNK;
    case 'c': return AE_IFCHR;
    case 'b': return AE_IFBLK;
    case 'p': return AE_IFIFO;
    default: return AE_IFREG;
  }
}

std::string media_type(Packing packing) {
  std::string type = "application/vnd.oci.image.layer.v1.tar";
  return packing == Packing::gzip ? type + "+gzip" : packing == Packing::zstd ? type + "+zstd" : type;
}

}  // namespace

std::string make_tar(const std::vector<Entry>& entries) {
  std::string out;
  archive* writer = archive_write_new();
  archive_write_set_format_pax(writer);
  archive_write_set_bytes_per_block(writer, 512);
  archive_write_open(writer, &out, nullptr, append, nullptr);
  for (const Entry& from : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, from.name.c_str());
    archive_entry_set_filetype(entry, type_of(from.type));
    archive_entry_set_perm(entry, from.mode);
    archive_entry_set_uid(entry, from.uid);
    archive_entry_set_gid(entry, from.gid);
    archive_entry_set_mtime(entry, from.mtime, 0);
    if (from.type == 'l') archive_entry_set_symlink(entry, from.content.c_str());
    if (from.type == 'h') archive_entry_set_hardlink(entry, from.content.c_str());
    if (from.type == 'c' || from.type == 'b') {
      archive_entry_set_rdevmajor(entry, from.major);
      archive_entry_set_rdevminor(entry, from.minor);
    }
    for (const auto& [name, value] : from.attributes)
      archive_entry_xattr_add_entry(entry, name.c_str(), value.data(), value.size());
    archive_entry_set_size(entry, from.type == 'f' ? int64_t(from.content.size()) : 0);
    archive_write_header(writer, entry);
    if (from.type == 'f') archive_write_data(writer, from.content.data(), from.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  return out;
}

namespace {

std::string pack_by_archive(const std::string& bytes, Packing packing) {
  std::string out;
  archive* writer = archive_write_new();
  if (packing == Packing::xz) archive_write_add_filter_xz(writer);
  if (packing == Packing::bzip2) archive_write_add_filter_bzip2(writer);
  if (packing == Packing::lz4) archive_write_add_filter_lz4(writer);
  archive_write_set_format_raw(writer);
  archive_write_set_bytes_per_block(writer, 0);
  archive_write_open(writer, &out, nullptr, append, nullptr);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, bytes.data(), bytes.size());
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  return out;
}

}  // namespace

std::string pack(const std::string& bytes, Packing packing) {
  if (packing == Packing::plain) return bytes;
  if (packing == Packing::zstd) {
    std::string out(ZSTD_compressBound(bytes.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
    return out;
  }
  if (packing != Packing::gzip) return pack_by_archive(bytes, packing);
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string digest_text(const std::string& bytes) { return digest_of(bytes).text(); }

std::string oci_config(const TestImage& image) {
  json::array diffs;
  for (const TestLayer& layer : image.layers) diffs.emplace_back(digest_text(layer.tar));
  return to_text(json::object{
      {"created", "2024-01-02T03:04:05Z"},
      {"architecture", image.architecture.empty() ? this_machine().architecture : image.architecture},
      {"os", "linux"},
      {"config", *parse_json(image.config)},
      {"rootfs", {{"type", "layers"}, {"diff_ids", diffs}}},
  });
}

std::map<std::string, std::string> oci_layout(const TestImage& image, const std::string& name) {
  std::map<std::string, std::string> files;
  auto blob = [&](const std::string& bytes) {
    files["blobs/sha256/" + digest_of(bytes).hex()] = bytes;
    return bytes;
  };
  std::string config = blob(oci_config(image));
  json::array layers;
  for (const TestLayer& layer : image.layers) {
    std::string packed = blob(pack(layer.tar, layer.packing));
    layers.push_back({{"mediaType", media_type(layer.packing)}, {"digest", digest_text(packed)}, {"size", packed.size()}});
  }
  std::string manifest = blob(to_text(json::object{
      {"schemaVersion", 2},
      {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
      {"config",
       {{"mediaType", "application/vnd.oci.image.config.v1+json"}, {"digest", digest_text(config)}, {"size", config.size()}}},
      {"layers", layers},
  }));
  json::object top{
      {"mediaType", "application/vnd.oci.image.manifest.v1+json"}, {"digest", digest_text(manifest)}, {"size", manifest.size()}};
  if (!name.empty()) top["annotations"] = {{"org.opencontainers.image.ref.name", name}};
  files["index.json"] = to_text(json::object{{"schemaVersion", 2}, {"manifests", json::array{top}}});
  files["oci-layout"] = R"({"imageLayoutVersion":"1.0.0"})";
  return files;
}

std::map<std::string, std::string> docker_layout(const TestImage& image, const std::string& tag) {
  std::map<std::string, std::string> files;
  std::string config = oci_config(image), config_name = digest_of(config).hex() + ".json";
  files[config_name] = config;
  json::array layers, tags;
  for (const TestLayer& layer : image.layers) {
    std::string name = digest_of(layer.tar).hex() + "/layer.tar";
    files[name] = pack(layer.tar, layer.packing);
    layers.emplace_back(name);
  }
  if (!tag.empty()) tags.emplace_back(tag);
  files["manifest.json"] = to_text(json::array{json::object{{"Config", config_name}, {"RepoTags", tags}, {"Layers", layers}}});
  return files;
}

std::string archive_of(const std::map<std::string, std::string>& files, Packing packing) {
  std::vector<Entry> entries;
  for (const auto& [name, content] : files) entries.push_back({name, 'f', content});
  return pack(make_tar(entries), packing);
}

TempDir::TempDir() {
  const char* given = std::getenv("TMPDIR");  // without it not /tmp, which may be mounted with nodev and nosuid
  std::string pattern = (fs::path(given ? given : "/var/tmp") / "coracle-image-XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string tree_of(const std::string& path) {
  std::vector<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    struct stat info {};
    ::lstat(entry.path().c_str(), &info);
    std::ostringstream line;
    char type = S_ISDIR(info.st_mode)    ? 'd'
                : S_ISLNK(info.st_mode)  ? 'l'
                : S_ISCHR(info.st_mode)  ? 'c'
                : S_ISBLK(info.st_mode)  ? 'b'
                : S_ISFIFO(info.st_mode) ? 'p'
                                         : 'f';
    line << entry.path().lexically_relative(path).string() << ' ' << type << ' ' << std::oct << (info.st_mode & 07777) << std::dec
         << ' ' << info.st_uid << ':' << info.st_gid;
    if (type == 'f') line << ' ' << read_text(entry.path()).substr(0, 40);
    if (type == 'l') line << " -> " << fs::read_symlink(entry.path()).string();
    lines.push_back(line.str());
  }
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace coracle::image::test
