// SPDX-License-Identifier: Apache-2.0
// See image_archive.h.
#include "runtime/image/fetch/image_archive.h"

#include <set>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/image/fetch/tar.h"
#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

constexpr int kLinksMax = 8;  // in a chain
constexpr size_t kNameMax = 4096;

// "./a//b/../c" → "a/c": names in an archive are only used as keys, never as paths.
std::string normal(std::string_view name, std::string_view from_dir = {}) {
  std::vector<std::string> parts;
  auto walk = [&](std::string_view text) {
    for (std::string_view part : split(text, '/')) {
      if (part.empty() || part == ".") continue;
      if (part != "..") parts.emplace_back(part);
      else if (!parts.empty()) parts.pop_back();
    }
  };
  if (!name.starts_with('/')) walk(from_dir);
  walk(name);
  return join(parts, "/");
}

constexpr std::string_view kBlobs = "blobs/sha256/";

std::string blob_name(const Digest& digest) { return std::string(kBlobs) + digest.hex(); }

// Checks that the blob exists and has the size stated by `whose` ("the index", "the manifest").
Result<void> check_blob(const Spool& spool, const Descriptor& descriptor, std::string_view whose) {
  const std::string name = blob_name(descriptor.digest), shown = descriptor.digest.text();
  if (!spool.has(name))
    return Error(Code::invalid, "the archive holds no blob " + shown + ", which " + std::string(whose) + " names");
  Fd file = TRY(spool.open(name));
  struct stat info = TRY(sys::stat(file));
  if (info.st_size != descriptor.size)
    return Error(Code::invalid, "the blob " + shown + " has " + std::to_string(info.st_size) + " bytes; " + std::string(whose) +
                                    " says " + std::to_string(descriptor.size));
  return {};
}

Result<std::string> read_blob(const Spool& spool, const Descriptor& descriptor, std::string_view whose) {
  TRY(check_blob(spool, descriptor, whose));
  std::string text = TRY(spool.text(blob_name(descriptor.digest)));
  if (digest_of(text) != descriptor.digest)
    return Error(Code::invalid, "the blob " + descriptor.digest.text() + " is not what its digest says");
  return text;
}

// Entries of an index for other platforms may be missing from an archive; existing ones must match.
Result<void> check_entries(const Spool& spool, const Index& index, std::string_view whose) {
  std::set<Digest> good;
  for (const Descriptor& entry : index.manifests) {
    if (!spool.has(blob_name(entry.digest))) continue;
    TRY(check_blob(spool, entry, whose));
    if (good.insert(entry.digest).second) TRY(read_blob(spool, entry, whose));
  }
  return {};
}

// The digest that is part of a name, to be verified.
Result<std::optional<Descriptor>> promised_by_name(const Spool& spool, const std::string& name) {
  std::optional<Descriptor> none;
  if (!name.starts_with(kBlobs)) return none;
  auto digest = Digest::parse("sha256:" + name.substr(kBlobs.size()));
  if (!digest) return none;
  if (!spool.has(name))
    return Error(Code::invalid, "the archive holds no blob " + digest->text() + ", which manifest.json names");
  Fd file = TRY(spool.open(name));
  struct stat info = TRY(sys::stat(file));
  return std::optional<Descriptor>(Descriptor{"", *std::move(digest), info.st_size, {}, {}});
}

// ---- docker save ----

Result<ArchivedImage> read_docker_image(const Spool& spool, const json::value& entry) {
  const std::string config_name = normal(get_string(entry, "Config"));
  auto promised = TRY(promised_by_name(spool, config_name));
  std::string config = TRY(spool.text(config_name));
  if (promised && digest_of(config) != promised->digest)
    return Error(Code::invalid, "the blob " + promised->digest.text() + " is not what its digest says");
  ArchivedImage image{{}, {}, digest_of(config), config, {}};
  for (const json::value& tag : get_array(entry, "RepoTags")) {
    if (!tag.is_string()) return Error(Code::invalid, "RepoTags holds what is no string");
    Reference name = TRY(parse_reference(std::string_view(tag.get_string())));
    image.names.push_back(std::move(name));
  }
  const json::array& layers = get_array(entry, "Layers");
  if (layers.size() > kLayersMax) return Error(Code::too_large, "more than " + std::to_string(kLayersMax) + " layers");
  for (const json::value& layer : layers) {
    if (!layer.is_string()) return Error(Code::invalid, "Layers holds what is no string");
    std::string name = normal(std::string_view(layer.get_string()));
    auto descriptor = TRY(promised_by_name(spool, name));
    image.layers.push_back({std::move(name), std::move(descriptor)});
  }
  return image;
}

Error too_many_images() {
  return Error(Code::too_large, "more than " + std::to_string(kArchiveImagesMax) + " images in one archive");
}

Result<std::vector<ArchivedImage>> read_docker(const Spool& spool) {
  std::string text = TRY(spool.text("manifest.json"));
  auto document = parse_json(text);
  if (!document) return document.take_error().as(Code::invalid).wrap("manifest.json");
  if (!document->is_array()) return Error(Code::invalid, "manifest.json is no list");
  if (document->get_array().size() > kArchiveImagesMax) return too_many_images();
  std::vector<ArchivedImage> images;
  for (const json::value& entry : document->get_array()) {
    ArchivedImage image = TRY(read_docker_image(spool, entry).wrap("manifest.json"));
    images.push_back(std::move(image));
  }
  return images;
}

// ---- OCI layout ----

Result<ArchivedImage> read_oci_image(const Spool& spool, const Descriptor& top, const Platform& platform) {
  Descriptor at = top;
  std::string_view whose = "index.json";
  for (int depth = 0; depth <= kIndexDepthMax; ++depth) {
    std::string text = TRY(read_blob(spool, at, whose));
    ManifestOrIndex document = TRY(parse_manifest(text, at.media_type).wrap(at.digest.text()));
    if (document.index) {
      whose = "the index";
      TRY(check_entries(spool, *document.index, whose));
      at = TRY(choose(*document.index, platform));
      continue;
    }
    const Descriptor& config = document.manifest->config;
    std::string configuration = TRY(read_blob(spool, config, "the manifest"));
    ArchivedImage image{{}, top.digest, config.digest, std::move(configuration), {}};
    for (const Descriptor& layer : document.manifest->layers) {
      TRY(check_blob(spool, layer, "the manifest"));
      image.layers.push_back({blob_name(layer.digest), layer});
    }
    return image;
  }
  return Error(Code::invalid, "indexes within indexes within indexes");
}

// A bare tag ("latest", which some tools write as the reference's name) is ignored.
Result<std::vector<Reference>> names_of(const Descriptor& descriptor) {
  std::vector<Reference> names;
  if (descriptor.name.find_first_of(":/") == std::string::npos) return names;
  Reference name = TRY(parse_reference(descriptor.name));
  names.push_back(std::move(name));
  return names;
}

Result<std::vector<ArchivedImage>> read_oci(const Spool& spool, const Platform& platform) {
  std::string text = TRY(spool.text("index.json"));
  ManifestOrIndex top = TRY(parse_manifest(text, "").wrap("index.json"));
  if (!top.index) return Error(Code::invalid, "index.json is no index");
  TRY(check_entries(spool, *top.index, "index.json"));
  std::map<std::string, Index> by_name;  // one image may have entries for several platforms
  for (const Descriptor& entry : top.index->manifests) by_name[entry.name].manifests.push_back(entry);
  if (by_name.size() > kArchiveImagesMax) return too_many_images();
  std::vector<ArchivedImage> images;
  for (const auto& [name, index] : by_name) {
    Descriptor chosen = index.manifests.front();
    if (index.manifests.size() > 1) chosen = TRY(choose(index, platform));
    ArchivedImage image = TRY(read_oci_image(spool, chosen, platform));
    image.names = TRY(names_of(chosen));
    images.push_back(std::move(image));
  }
  return images;
}

}  // namespace

Result<Spool> Spool::read(Source& stream, const Fd& dir) {
  Spool spool;
  spool.dir_ = &dir;
  TarReader tar(stream);
  int64_t bytes = 0;
  for (size_t count = 0;; ++count) {
    archive_entry* entry = TRY(tar.next());
    if (!entry) break;
    const char* raw = archive_entry_pathname(entry);
    if (!raw || std::string_view(raw).size() > kNameMax) return Error(Code::invalid, "an entry has no good name");
    std::string name = normal(raw);
    if (count >= kArchiveFilesMax) return Error(Code::too_large, "more than 20000 files in the archive");
    const char* hard = archive_entry_hardlink(entry);
    const char* symbolic = archive_entry_symlink(entry);
    if (hard) {
      spool.files_[name] = {"", normal(hard)};
    } else if (archive_entry_filetype(entry) == AE_IFLNK && symbolic) {
      size_t slash = name.rfind('/');
      spool.files_[name] = {"", normal(symbolic, slash == name.npos ? "" : std::string_view(name).substr(0, slash))};
    } else if (archive_entry_filetype(entry) == AE_IFREG) {
      std::string stored = std::to_string(count);  // of duplicate names the last one wins
      Fd file = TRY(sys::open_at(dir, stored, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
      for (int64_t at = 0;;) {
        TarReader::Piece piece = TRY(tar.data());
        if (piece.bytes.empty()) break;
        if (piece.offset != at) return Error(Code::invalid, coracle::quoted(name) + " is a sparse file");
        at += int64_t(piece.bytes.size());
        bytes += int64_t(piece.bytes.size());
        if (bytes > kArchiveBytesMax) return Error(Code::too_large, "the archive holds more than 64 GiB");
        TRY(sys::write_all(file, piece.bytes));
      }
      spool.files_[name] = {stored, ""};
    }
  }
  TRY(stream.drain());
  return spool;
}

const Spool::File* Spool::resolve(std::string name) const {
  for (int links = 0; links <= kLinksMax; ++links) {
    auto found = files_.find(name);
    if (found == files_.end()) return nullptr;
    if (found->second.link.empty()) return &found->second;
    name = found->second.link;
  }
  return nullptr;
}

Result<Fd> Spool::open(const std::string& name) const {
  const File* file = resolve(name);
  if (!file) return Error(Code::invalid, "the archive holds no " + coracle::quoted(name));
  return sys::open_at(*dir_, file->stored, O_RDONLY | O_NOFOLLOW);
}

Result<std::string> Spool::text(const std::string& name) const {
  Fd file = TRY(open(name));
  return sys::read_all(file, kManifestMax).wrap(name);
}

Result<std::vector<ArchivedImage>> read_archive(const Spool& spool, const Platform& platform) {
  if (spool.has("manifest.json")) return read_docker(spool);
  if (spool.has("index.json")) return read_oci(spool, platform);
  return Error(Code::invalid, "no image archive: it holds neither manifest.json nor index.json");
}

}  // namespace coracle::image
