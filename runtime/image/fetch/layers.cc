// SPDX-License-Identifier: Apache-2.0
// See layers.h.
#include "runtime/image/fetch/layers.h"

#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/scope.h"
#include "runtime/base/thread.h"

namespace coracle::image {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{100};

struct Board {  // state that workers and the caller share
  size_t next = 0;
  std::vector<std::optional<Result<void>>> results;
};

void work(Guarded<Board>& board, const std::vector<LayerJob>& jobs, const FetchLayer& fetch, std::atomic<int64_t>& done,
          std::stop_token stop) {
  for (;;) {
    size_t mine = board.with([&](Board& at) {
      while (at.next < jobs.size() && jobs[at.next].present) ++at.next;
      return at.next++;
    });
    if (mine >= jobs.size()) return;
    auto staged = stop.stop_requested() ? Result<void>(Error(Code::cancelled, "cancelled")) : fetch(mine, done, stop);
    board.with([&](Board& at) { at.results[mine].emplace(std::move(staged)); });
    board.notify();
  }
}

}  // namespace

Result<void> bring_layers(Unpacker& unpacker, const std::vector<LayerJob>& jobs, const FetchLayer& fetch,
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
  std::stop_source halt;  // stops the workers: on the caller's request or an error
  std::stop_callback pass_on(stop, [&] { halt.request_stop(); });
  std::vector<std::jthread> workers;  // joined before what they use is destroyed
  for (int i = 0; i < std::min(missing, kLayerWorkersMax); ++i)
    workers.push_back(start_thread("layers", [&] { work(board, jobs, fetch, done, halt.get_token()); }));
  Scope stop_workers([&] { halt.request_stop(); });

  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].present) continue;
    std::optional<Result<void>> result;
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
    TRY(std::move(*result));
    TRY(unpacker.keep(i));
    ++report.layers_done;
    tell();
  }
  return {};
}

}  // namespace coracle::image
