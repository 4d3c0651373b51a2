// SPDX-License-Identifier: Apache-2.0
// Image archives: a tar (plain or compressed) that contains an OCI layout or the format of `docker save`; untrusted. The files
// are first spooled to a directory, because the index may be at the end.
//
//   stream ─▶ spool (numbered files) ─▶ manifest.json or index.json ─▶ per image: names, configuration, layers
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

// docker, containerd and podman have no such limits. The disk limits large archives; these limits stop an endless stream from
// filling it.
constexpr size_t kArchiveFilesMax = 20'000;
constexpr int64_t kArchiveBytesMax = int64_t(64) << 30;
constexpr size_t kArchiveImagesMax = 1000;

class Spool {  // the files of an archive by name
 public:
  // Reads the stream to its end into `dir`. Errors: invalid, too_large, I/O errors.
  static Result<Spool> read(Source& stream, const Fd& dir);

  bool has(const std::string& name) const { return resolve(name) != nullptr; }
  Result<Fd> open(const std::string& name) const;           // Errors: invalid if the archive does not contain it
  Result<std::string> text(const std::string& name) const;  // Errors: too_large above kManifestMax

 private:
  struct File {
    std::string stored;  // its name in dir
    std::string link;    // or the target of the link
  };
  const File* resolve(std::string name) const;
  const Fd* dir_ = nullptr;
  std::map<std::string, File> files_;
};

struct ArchivedLayer {
  std::string file;                      // in the spool
  std::optional<Descriptor> descriptor;  // from the OCI manifest, or from the name in a docker archive; the size is checked
};

struct ArchivedImage {
  std::vector<Reference> names;    // from the archive
  std::optional<Digest> manifest;  // its digest, if it has one
  Digest id;
  std::string configuration;  // the text, verified
  std::vector<ArchivedLayer> layers;
};

// The images in the archive for this platform. Errors: invalid, unsupported, too_large, not_found (platform).
Result<std::vector<ArchivedImage>> read_archive(const Spool& spool, const Platform& platform);

}  // namespace coracle::image
