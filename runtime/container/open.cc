// SPDX-License-Identifier: Apache-2.0
// runtime::open: assembles the runtime. The only file that uses both the image store and the containers.
#include <set>

#include "runtime/base/log.h"
#include "runtime/container/local_runtime.h"
#include "runtime/image/store.h"
#include "runtime/image/trees.h"
#include "runtime/runtime.h"

namespace coracle::runtime {

Result<std::unique_ptr<Runtime>> open(const Config& config) {
  image::Options options;
  options.state_dir = config.state_dir + "/images";
  options.registries = config.registries;
  options.worker_program = config.image_program;
  auto store = TRY(image::make_store(options).wrap("image store"));
  image::Snapshots& snapshots = store->snapshots();
  auto trees = image::make_trees(config.image_program, options.state_dir);
  auto runtime = TRY(LocalRuntime::open(config, std::move(store), &snapshots, std::move(trees)));
  runtime->drop_stray_snapshots();
  return std::unique_ptr<Runtime>(std::move(runtime));
}

}  // namespace coracle::runtime
