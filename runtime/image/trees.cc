// SPDX-License-Identifier: Apache-2.0
// See trees.h.
#include "runtime/image/trees.h"

#include "runtime/image/worker.h"

namespace coracle::image {
namespace {

class WorkerTrees final : public runtime::Trees {
 public:
  WorkerTrees(std::string program, std::string store) : program_(std::move(program)), store_(std::move(store)) {}
  Result<runtime::TreeCount> write(const Fd& directory, const Fd& archive, const runtime::TreeProgress& progress,
                                   std::stop_token stop) override {
    return run(JobKind::write_tree, directory, archive, progress, std::move(stop));
  }
  Result<runtime::TreeCount> read(const Fd& archive, const Fd& directory, const runtime::TreeProgress& progress,
                                  std::stop_token stop) override {
    return run(JobKind::read_tree, archive, directory, progress, std::move(stop));
  }
  Result<runtime::TreeCount> copy(const Fd& from, const Fd& to, const runtime::TreeProgress& progress,
                                  std::stop_token stop) override {
    return run(JobKind::copy_tree, from, to, progress, std::move(stop));
  }

 private:
  Result<runtime::TreeCount> run(JobKind kind, const Fd& from, const Fd& to, const runtime::TreeProgress& progress,
                                 std::stop_token stop) {
    Job job;
    job.kind = kind;
    job.store = store_;
    runtime::TreeCount last;
    JobEvents events;
    events.counted = [&](const runtime::TreeCount& done) {
      last = done;
      if (progress) progress(done);
    };
    TRY(run_job(program_, job, {&from, &to}, events, std::move(stop)));
    return last;
  }

  const std::string program_, store_;
};

}  // namespace

std::unique_ptr<runtime::Trees> make_trees(std::string program, std::string store) {
  return std::make_unique<WorkerTrees>(std::move(program), std::move(store));
}

}  // namespace coracle::image
