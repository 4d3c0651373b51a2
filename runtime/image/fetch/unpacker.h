// SPDX-License-Identifier: Apache-2.0
// Unpacker: where the layers of one image are verified and unpacked: in this process, or in another one that has no network
// (remote_unpacker.h). What it is given is hostile; it takes nobody's word for what a layer is but the layer's own digests.
#pragma once

#include <map>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/image/content.h"
#include "runtime/image/digest.h"
#include "runtime/image/fetch/source.h"
#include "runtime/image/fetch/unpack.h"
#include "runtime/image/manifest.h"

namespace coracle::image {

class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // First of all: the image's layers by their diff ids, bottom first. Returns which of them the store has already.
  virtual Result<std::vector<bool>> begin(const std::vector<Digest>& diff_ids) = 0;
  // Reads the bytes of a layer from `stream` to the end, verifies and unpacks them. `descriptor` may be null (docker archives
  // promise only the diff id). Thread-safe. Errors: the stream's own; invalid when the bytes are not what was promised.
  virtual Result<void> stage(size_t layer, Source& stream, const Descriptor* descriptor) = 0;
  // Puts a staged layer in its place in the store. Those below it are there.
  virtual Result<void> keep(size_t layer) = 0;
};

class LocalUnpacker : public Unpacker {
 public:
  explicit LocalUnpacker(Content& content) : content_(content) {}
  Result<std::vector<bool>> begin(const std::vector<Digest>& diff_ids) override;
  Result<void> stage(size_t layer, Source& stream, const Descriptor* descriptor) override;
  Result<void> keep(size_t layer) override;

 private:
  struct StagedLayer {
    Staging staging;
    Unpacked unpacked;
  };
  Content& content_;
  std::vector<Digest> diff_ids_, chain_;
  Guarded<std::map<size_t, StagedLayer>> staged_;
};

// Reads a layer that is in the store already, as stage() but without unpacking it: an archive has to hold what it promises.
Result<void> check_layer(Source& stream, const Descriptor* descriptor, const Digest& diff_id);

}  // namespace coracle::image
