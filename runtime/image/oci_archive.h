// SPDX-License-Identifier: Apache-2.0
// Writes an OCI archive as a stream. It also contains docker's manifest.json, for other tools.
//   oci-layout ▸ index.json ▸ manifest.json ▸ manifests, configurations ▸ layers, each once
// Source: opencontainers/image-spec image-layout.md, image-index.md, annotations.md; docker image save.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/image/digest.h"
#include "runtime/image/manifest.h"
#include "runtime/image/tar_writer.h"

namespace coracle::image {

struct ArchiveLayer {  // an uncompressed tar stream
  Digest digest;
  int64_t size = 0;  // in bytes
  std::function<Result<void>(const Sink& to)> write;
};

struct ArchiveImage {
  std::string configuration;  // its text; its diff_ids are the digests of the layers
  Platform platform;
  std::vector<size_t> layers;      // indexes into the archive's layers, bottom first
  std::vector<std::string> names;  // "docker.io/library/nginx:1.27"; may be empty
};

// Errors: the sink's and the layers'; conflict if a layer's output does not match its digest and size.
Result<void> write_oci_archive(const std::vector<ArchiveImage>& images, const std::vector<ArchiveLayer>& layers, const Sink& to);

}  // namespace coracle::image
