// SPDX-License-Identifier: Apache-2.0
// See layers.h.
#include "runtime/image/fetch/layers.h"

#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/scope.h"

namespace coracle::image {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{100};

struct Board {  // where workers and the caller meet
  size_t next = 0;
  std::vector<std::optional<Result<StagedLayer>>> results;
};

void work(Guarded<Board>& board, const std::vector<LayerJob>& jobs, const FetchLayer& fetch, std::atomic<int64_t>& done,
          std::stop_token stop) {
  for (;;) {
    size_t mine = board.with([&](Board& at) {
      while (at.next < jobs.size() && jobs[at.next].present) ++at.next;
      return at.next++;
    });
    if (mine >= jobs.size()) return;
    auto staged = stop.stop_requested() ? Result<StagedLayer>(Error(Code::cancelled, "cancelled")) : fetch(mine, done, stop);
    board.with([&](Board& at) { at.results[mine].emplace(std::move(staged)); });
    board.notify();
  }
}

Result<void> keep(Content& content, const std::vector<LayerJob>& jobs, size_t index, StagedLayer layer) {
  if (!layer.unpacked.implicit_dirs.empty() && index > 0) {
    std::vector<Fd> opened;
    std::vector<const Fd*> below;  // topmost first
    for (size_t i = index; i-- > 0;) {
      Fd lower = TRY(content.open_layer(jobs[i].chain));
      opened.push_back(std::move(lower));
    }
    for (const Fd& lower : opened) below.push_back(&lower);
    TRY(inherit_directories(layer.staging.diff(), layer.unpacked.implicit_dirs, below));
  }
  return content.keep_layer(std::move(layer.staging), jobs[index].chain, layer.unpacked.size);
}

Result<void> check_compressed(const HashingSource& compressed, const Descriptor& descriptor) {
  if (compressed.size() == descriptor.size && compressed.digest() == descriptor.digest) return {};
  return Error(Code::invalid, "the layer is not what its digest says: " + compressed.digest().text() + " instead of " +
                                  descriptor.digest.text());
}

Result<void> check_unpacked(const HashingSource& tar, const Digest& diff_id) {
  if (tar.digest() == diff_id) return {};
  return Error(Code::invalid, "the unpacked layer is not what the image configuration says: " + tar.digest().text() +
                                  " instead of " + diff_id.text());
}

}  // namespace

Result<StagedLayer> stage_layer(Content& content, Source& stream, const Descriptor* descriptor, const Digest& diff_id,
                                bool bottom) {
  Staging staging = TRY(content.stage());
  HashingSource compressed(stream, descriptor ? descriptor->size : kLayerSizeMax);
  DecompressingSource plain(compressed);
  HashingSource tar(plain);
  Unpacked unpacked = TRY(unpack_layer(tar, staging.diff(), bottom));
  TRY(compressed.drain());
  if (descriptor) TRY(check_compressed(compressed, *descriptor));
  TRY(check_unpacked(tar, diff_id));
  return StagedLayer{std::move(staging), std::move(unpacked)};
}

Result<void> check_layer(Source& stream, const Descriptor* descriptor, const Digest& diff_id) {
  HashingSource compressed(stream, descriptor ? descriptor->size : kLayerSizeMax);
  if (descriptor) {
    TRY(compressed.drain());
    return check_compressed(compressed, *descriptor);
  }
  DecompressingSource plain(compressed);
  HashingSource tar(plain);
  TRY(tar.drain());
  return check_unpacked(tar, diff_id);
}

Result<void> bring_layers(Content& content, const std::vector<LayerJob>& jobs, const FetchLayer& fetch,
                          const std::function<void(const runtime::PullProgress&)>& progress, std::stop_token stop) {
  Guarded<Board> board;
  board.with([&](Board& at) { at.results.resize(jobs.size()); });
  std::atomic<int64_t> done{0};
  runtime::PullProgress report;
  report.layers_total = int(jobs.size());
  int missing = 0;
  for (const LayerJob& job : jobs) {
    if (job.present) {
      ++report.layers_done;
    } else {
      ++missing;
      report.total += job.size;
    }
  }
  auto tell = [&] {
    report.done = Bytes(std::min(done.load(), report.total.count));
    if (progress) progress(report);
  };
  tell();
  std::stop_source halt;  // of the workers: the caller's wish, or the first error
  std::stop_callback pass_on(stop, [&] { halt.request_stop(); });
  std::vector<std::jthread> workers;  // joined before anything they use goes away
  for (int i = 0; i < std::min(missing, kLayerWorkersMax); ++i)
    workers.emplace_back([&] { work(board, jobs, fetch, done, halt.get_token()); });
  Scope stop_workers([&] { halt.request_stop(); });

  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].present) continue;
    std::optional<Result<StagedLayer>> result;
    while (!result) {
      auto deadline = std::chrono::steady_clock::now() + kProgressEvery;
      board.wait_until(
          {}, deadline, [&](const Board& at) { return at.results[i].has_value(); },
          [&](Board& at) {
            if (!at.results[i]) return;
            result.emplace(std::move(*at.results[i]));
            at.results[i].reset();
          });
      tell();
    }
    StagedLayer layer = TRY(std::move(*result));
    TRY(keep(content, jobs, i, std::move(layer)));
    ++report.layers_done;
    tell();
  }
  return {};
}

}  // namespace coracle::image
