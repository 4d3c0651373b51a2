// SPDX-License-Identifier: Apache-2.0
// The layers of one image brought into the store: each read, verified and unpacked into staging by a few workers, then put
// in place in order, bottom first.
//
//   worker: claim ▸ source ▸ hash ▸ decompress ▸ hash ▸ unpack ▸ both digests as promised?  ─▶ staged
//   caller: staged layer i ▸ inherit from 0…i-1 ▸ keep          (and reports progress meanwhile)
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "runtime/image/content.h"
#include "runtime/image/fetch/source.h"
#include "runtime/image/fetch/unpack.h"
#include "runtime/image/manifest.h"
#include "runtime/runtime.h"

namespace coracle::image {

constexpr int kLayerWorkersMax = 3;  // layers at once

struct StagedLayer {
  Staging staging;
  Unpacked unpacked;
};

// Reads the layer's bytes from `stream` to the end. `descriptor` may be null (docker archives promise only the diff id).
// Errors: invalid when the bytes are not what was promised.
Result<StagedLayer> stage_layer(Content& content, Source& stream, const Descriptor* descriptor, const Digest& diff_id,
                                bool bottom);

// Reads a layer that is in the store already, as stage_layer but without unpacking it: an archive has to hold what it promises.
Result<void> check_layer(Source& stream, const Descriptor* descriptor, const Digest& diff_id);

struct LayerJob {
  Digest chain, diff_id;
  bool bottom = false;
  bool present = false;  // nothing to do
  Bytes size;            // as transferred
};

// How a worker gets layer `index`, staged. Called on several threads; `done` counts what was transferred.
using FetchLayer = std::function<Result<StagedLayer>(size_t index, std::atomic<int64_t>& done, std::stop_token stop)>;

// Returns when all are in the store, or with the first error, after every worker has stopped.
Result<void> bring_layers(Content& content, const std::vector<LayerJob>& jobs, const FetchLayer& fetch,
                          const std::function<void(const runtime::PullProgress&)>& progress, std::stop_token stop);

}  // namespace coracle::image
