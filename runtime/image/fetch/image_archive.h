// SPDX-License-Identifier: Apache-2.0
// Image archives: a tar (plain, gzip, zstd) holding an OCI layout or what `docker save` writes, hostile. Its files are
// spooled to a directory first, because what they mean may stand at the end.
//
//   stream ─▶ spool (files by number) ─▶ manifest.json or index.json ─▶ per image: names, configuration, layers
//
// Source: opencontainers/image-spec image-layout.md; moby image/spec v1.2 "Combined Image JSON + Filesystem Changeset".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/image/fetch/source.h"
#include "runtime/image/manifest.h"
#include "runtime/image/reference.h"

namespace coracle::image {

// docker, containerd and podman have no such limits. What an archive may be is bounded by the disk; a stream without end is not
// to fill it.
constexpr size_t kArchiveFilesMax = 20'000;
constexpr int64_t kArchiveBytesMax = int64_t(64) << 30;
constexpr size_t kArchiveImagesMax = 1000;

class Spool {  // an archive's files, by their names in it
 public:
  // Reads the stream to its end into `dir`. Errors: invalid, too_large, and the disk's.
  static Result<Spool> read(Source& stream, const Fd& dir);

  bool has(const std::string& name) const { return resolve(name) != nullptr; }
  Result<Fd> open(const std::string& name) const;           // Errors: invalid when the archive does not hold it
  Result<std::string> text(const std::string& name) const;  // Errors: too_large beyond kManifestMax

 private:
  struct File {
    std::string stored;  // its name in dir
    std::string link;    // or what it stands for
  };
  const File* resolve(std::string name) const;
  const Fd* dir_ = nullptr;
  std::map<std::string, File> files_;
};

struct ArchivedLayer {
  std::string file;                      // in the spool
  std::optional<Descriptor> descriptor;  // what an OCI manifest says of it, or a docker one by its name; the size is checked
};

struct ArchivedImage {
  std::vector<Reference> names;    // as the archive says
  std::optional<Digest> manifest;  // its digest, where there is one
  Digest id;
  std::string configuration;  // text, verified
  std::vector<ArchivedLayer> layers;
};

// Which images it holds, for this platform. Errors: invalid, unsupported, too_large, not_found (platform).
Result<std::vector<ArchivedImage>> read_archive(const Spool& spool, const Platform& platform);

}  // namespace coracle::image
