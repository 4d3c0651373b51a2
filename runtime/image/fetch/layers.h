// SPDX-License-Identifier: Apache-2.0
// Adds the layers of one image to the store: a few workers read, verify and unpack each layer into staging. Then the layers are
// moved to their place in order, bottom first.
//
//   worker: claim ▸ source ▸ Unpacker::stage: hash ▸ decompress ▸ hash ▸ unpack ▸ compare both digests
//   caller: layer i ▸ Unpacker::keep: inherit from 0…i-1          (and reports progress meanwhile)
#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "runtime/image/fetch/unpacker.h"
#include "runtime/runtime.h"

namespace coracle::image {

constexpr int kLayerWorkersMax = 3;  // concurrent layers

struct LayerJob {
  bool present = false;  // already in the store
  Bytes size;            // as transferred, compressed
};

// Reads layer `index` and stages it. Called on several threads; adds transferred bytes to `done`.
using FetchLayer = std::function<Result<void>(size_t index, std::atomic<int64_t>& done, std::stop_token stop)>;

// Returns when all layers are in the store, or with the first error after all workers have stopped.
Result<void> bring_layers(Unpacker& unpacker, const std::vector<LayerJob>& jobs, const FetchLayer& fetch,
                          const std::function<void(const runtime::PullProgress&)>& progress, std::stop_token stop);

}  // namespace coracle::image
