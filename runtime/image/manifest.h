// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes and image configurations: their JSON read into structs, hostile until checked. Pure.
// Source: opencontainers/image-spec manifest.md, image-index.md, config.md; distribution/distribution
// docs "Image Manifest Version 2, Schema 2" for docker's names of the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/image/digest.h"
#include "runtime/runtime.h"

namespace coracle::image {

// Manifests, indexes and configurations, in bytes: what a registry takes of the first two (distribution, 4 MiB).
constexpr size_t kManifestMax = 4 << 20;
constexpr size_t kLayersMax = 128;                    // of one image; docker makes 125 and no more
constexpr size_t kIndexEntriesMax = 1000;             // containerd has no limit; there are not a hundred platforms
constexpr int kIndexDepthMax = 2;                     // an index, and one that it names
constexpr int64_t kLayerSizeMax = int64_t(32) << 30;  // of one layer as transferred

struct Platform {  // "" = not said
  std::string architecture, os, variant;
  std::string text() const;  // "linux/arm/v7"
};

Platform this_machine();
// Whether what is made for a platform can run on a machine, as far as both say. Source: containerd, platforms.OnlyStrict and
// Only.
bool runs_on(const Platform& made_for, const Platform& machine);

struct Descriptor {
  std::string media_type;
  Digest digest;
  int64_t size = 0;
  Platform platform;  // of an index's entries
  std::string name;   // annotations: containerd's image name, or OCI's ref.name
};

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;
};

struct Index {
  std::vector<Descriptor> manifests;
};

// What one has after reading a manifest's text: exactly one of them.
struct ManifestOrIndex {
  std::optional<Manifest> manifest;
  std::optional<Index> index;
};

// `content_type` is what the server called it, "" when nobody did. Errors: invalid for what is ambiguous, too big or
// malformed; unsupported for docker's schema 1 and for artifacts that are no image.
Result<ManifestOrIndex> parse_manifest(std::string_view text, std::string_view content_type);

// The entry for a platform: same operating system and architecture, the variant as near as possible; else one that says nothing,
// of which its configuration tells what it is for.
// Errors: not_found, naming what there is.
Result<Descriptor> choose(const Index& index, const Platform& platform);

struct Configuration {
  runtime::ImageConfig config;
  WallTime created;
  Platform platform;
  std::vector<Digest> diff_ids;
};

Result<Configuration> parse_configuration(std::string_view text);

// Chain ids name a layer together with all below it. Source: image-spec config.md, "Layer ChainID".
std::vector<Digest> chain_ids(const std::vector<Digest>& diff_ids);

}  // namespace coracle::image
