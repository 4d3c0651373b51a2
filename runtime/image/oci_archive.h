// SPDX-License-Identifier: Apache-2.0
// An OCI archive, written as a stream. Others read it too: beside the index stands docker's manifest.json.
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

struct ArchiveLayer {  // a tar stream, uncompressed
  Digest digest;
  int64_t size = 0;  // in bytes
  std::function<Result<void>(const Sink& to)> write;
};

struct ArchiveImage {
  std::string configuration;  // its text, whose diff_ids are the layers' digests
  Platform platform;
  std::vector<size_t> layers;      // indexes into the archive's, from the bottom up
  std::vector<std::string> names;  // "docker.io/library/nginx:1.27"; empty: it has none
};

// Errors: the sink's and the layers'; conflict when a layer writes something else than its digest and size say.
Result<void> write_oci_archive(const std::vector<ArchiveImage>& images, const std::vector<ArchiveLayer>& layers, const Sink& to);

}  // namespace coracle::image
