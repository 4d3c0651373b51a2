// SPDX-License-Identifier: Apache-2.0
// The image store: implements the runtime's ImageStore in one directory. A separate process (job.h) fetches, parses and unpacks
// untrusted data; the store lists the result.
//
//   pull:    reference ─▶ registry ─▶ manifest ─▶ layers: download ▸ verify ▸ unpack (several at once) ─┐
//   import:  archive ─▶ spool ─▶ manifest ─▶ layers: verify ▸ unpack ──────────────────────────────────┤
//                                                              layers/<chain id>/ ◀── rename, in order ┘
//                                     images.json ◀── written last: an image exists when it is listed there
//
// On the disk, all of it private to root (0700):
//   images.json          the images, their names and digests
//   configs/<hex>        image configurations, content-addressed
//   pulled/<hex>         who may use each image (pulled_record.h); an image without a file is older than these records
//   layers/<chain id>/   unpacked layers: diff/ in the overlay's form, layer.json with the size
//   partial/<hex>        compressed layers while they are downloaded; a later pull resumes them
//   staging/             layers being unpacked; emptied when the store is opened
//   snapshots/<name>/    upper/, work/, and the link `image` to the image's id
// Everything becomes visible only when it is complete, verified and synced; each step is a rename or is discarded.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/image/snapshot.h"
#include "runtime/runtime.h"

namespace coracle::image {

struct Options {
  std::string state_dir;                                  // created if absent, 0700
  std::function<runtime::RegistrySettings()> registries;  // called before each pull, from any thread; absent: none
  std::string architecture;                               // as in image manifests; "": this machine's
  std::string worker_program = "/usr/libexec/coracle/coracle-image";
  std::chrono::milliseconds retry_delay{500};  // the first delay; doubles each time
};

class Store : public runtime::ImageStore {
 public:
  virtual Snapshots& snapshots() = 0;
};

// Opens the directory, deletes incomplete data, and reads the images. Only one process at a time. Thread-safe. Errors: conflict
// if another process has opened it.
Result<std::unique_ptr<Store>> make_store(const Options& options);

}  // namespace coracle::image
