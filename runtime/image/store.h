// SPDX-License-Identifier: Apache-2.0
// The image store: what the runtime's ImageStore is, over one directory of this machine. What comes from strangers is
// fetched, read and unpacked by a process of its own (job.h); the store hears what there is, and lists it.
//
//   pull:    reference ─▶ registry ─▶ manifest ─▶ layers: download ▸ verify ▸ unpack (several at once) ─┐
//   import:  archive ─▶ spool ─▶ manifest ─▶ layers: verify ▸ unpack ──────────────────────────────────┤
//                                                              layers/<chain id>/ ◀── rename, in order ┘
//                                     images.json ◀── last of all: an image is there when it is listed there
//
// On the disk, all of it private to root (0700):
//   images.json          which images there are, their names and digests
//   configs/<hex>        image configurations, content-addressed
//   pulled/<hex>         by which right each image came (pulled_record.h); an image without one was there before such records
//   layers/<chain id>/   unpacked layers: diff/ in the overlay's form, layer.json with the size
//   partial/<hex>        compressed layers on their way here; a pull goes on where it stopped
//   staging/             layers being unpacked; emptied when the store is opened
//   snapshots/<name>/    upper/, work/, and the link `image` to the image's id
// Nothing becomes visible before it is whole, verified and on the disk; every step is a rename or is thrown away.
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
  std::string state_dir;                                  // made when absent, 0700
  std::function<runtime::RegistrySettings()> registries;  // asked before each pull, from any thread; absent: none
  std::string architecture;                               // as images name it; "" = this machine's
  std::string worker_program = "/usr/libexec/coracle/coracle-image";
  std::chrono::milliseconds retry_delay{500};  // the first one; doubles
};

class Store : public runtime::ImageStore {
 public:
  virtual Snapshots& snapshots() = 0;
};

// Opens the directory, throws away what was half-made, and reads what there is. One process at a time. Thread-safe.
// Errors: conflict when another process has it open.
Result<std::unique_ptr<Store>> make_store(const Options& options);

}  // namespace coracle::image
