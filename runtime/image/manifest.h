// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes and image configurations: untrusted JSON, parsed and checked. Pure. Source: opencontainers/image-spec
// manifest.md, image-index.md, config.md; distribution/distribution docs "Image Manifest Version 2, Schema 2" for docker's media
// types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/image/digest.h"
#include "runtime/runtime.h"

namespace coracle::image {

// The maximum size in bytes of manifests, indexes and configurations: the limit of registries for manifests (distribution, 4
// MiB).
constexpr size_t kManifestMax = 4 << 20;
constexpr size_t kLayersMax = 128;                    // of one image; docker creates at most 125
constexpr size_t kIndexEntriesMax = 1000;             // containerd has no limit; there are fewer than a hundred platforms
constexpr int kIndexDepthMax = 2;                     // an index that refers to an index
constexpr int64_t kLayerSizeMax = int64_t(32) << 30;  // of one layer as transferred

struct Platform {  // "": unspecified
  std::string architecture, os, variant;
  std::string text() const;  // "linux/arm/v7"
};

Platform this_machine();
// The same for the machine's name in uname(2), and a program with such pointers. A program of 32 bits on a kernel of 64, as
// Raspberry Pi OS has them, runs images of 32 bits: its filters of system calls know no others.
Platform platform_of(const std::string& machine, size_t pointer_bytes);
// True if an image for `made_for` can run on `machine`, as far as both are specified. Source: containerd, platforms.OnlyStrict
// and Only.
bool runs_on(const Platform& made_for, const Platform& machine);

struct Descriptor {
  std::string media_type;
  Digest digest;
  int64_t size = 0;
  Platform platform;  // of an entry of an index
  std::string name;   // annotation: containerd's image name, or OCI's ref.name
};

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;
};

struct Index {
  std::vector<Descriptor> manifests;
};

// The result of parsing a manifest: exactly one of them is set.
struct ManifestOrIndex {
  std::optional<Manifest> manifest;
  std::optional<Index> index;
};

// `content_type` is from the server; "" if unknown. Errors: invalid for ambiguous, oversized or malformed text; unsupported for
// docker's schema 1 and for artifacts that are not images.
Result<ManifestOrIndex> parse_manifest(std::string_view text, std::string_view content_type);

// The entry for a platform: same operating system and architecture, and the best variant. Otherwise an entry without a platform,
// for which the configuration decides. Errors: not_found, with the platforms of the index.
Result<Descriptor> choose(const Index& index, const Platform& platform);

struct Configuration {
  runtime::ImageConfig config;
  WallTime created;
  Platform platform;
  std::vector<Digest> diff_ids;
};

Result<Configuration> parse_configuration(std::string_view text);

// A chain id identifies a layer together with all layers below it. Source: image-spec config.md, "Layer ChainID".
std::vector<Digest> chain_ids(const std::vector<Digest>& diff_ids);

}  // namespace coracle::image
