// SPDX-License-Identifier: Apache-2.0
// Unpacker: verifies and unpacks the layers of one image, in this process or in another one without network (remote_unpacker.h).
// Its input is untrusted; it identifies a layer only by the digests of its bytes.
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
  // Call first: the image's layers by their diff ids, bottom first. Returns which of them are in the store already.
  virtual Result<std::vector<bool>> begin(const std::vector<Digest>& diff_ids) = 0;
  // Reads a layer from `stream` to its end, verifies and unpacks it. `descriptor` may be null (docker archives only contain the
  // diff id). Thread-safe. Errors: the stream's; invalid if the bytes do not match the digests.
  virtual Result<void> stage(size_t layer, Source& stream, const Descriptor* descriptor) = 0;
  // Moves a staged layer to its place in the store. The layers below it must be there.
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

// Verifies a layer that is already in the store, like stage() but without unpacking: an archive must contain what its manifest
// describes.
Result<void> check_layer(Source& stream, const Descriptor* descriptor, const Digest& diff_id);

}  // namespace coracle::image
