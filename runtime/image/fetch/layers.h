// SPDX-License-Identifier: Apache-2.0
// The layers of one image brought into the store: each read, verified and unpacked into staging by a few workers, then put
// in place in order, bottom first.
//
//   worker: claim ▸ source ▸ Unpacker::stage: hash ▸ decompress ▸ hash ▸ unpack ▸ both digests as promised?
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

constexpr int kLayerWorkersMax = 3;  // layers at once

struct LayerJob {
  bool present = false;  // nothing to do
  Bytes size;            // as transferred
};

// How a worker gets layer `index` staged. Called on several threads; `done` counts what was transferred.
using FetchLayer = std::function<Result<void>(size_t index, std::atomic<int64_t>& done, std::stop_token stop)>;

// Returns when all are in the store, or with the first error, after every worker has stopped.
Result<void> bring_layers(Unpacker& unpacker, const std::vector<LayerJob>& jobs, const FetchLayer& fetch,
                          const std::function<void(const runtime::PullProgress&)>& progress, std::stop_token stop);

}  // namespace coracle::image
