// SPDX-License-Identifier: Apache-2.0
// Content: the directory of the image store, and the operations on it that must survive a crash. Layout: store.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/image/digest.h"
#include "runtime/runtime.h"
#include "runtime/sys/file.h"

namespace coracle::image {

// The entry of an image in images.json. Names are in the order in which they were added.
struct Record {
  Digest id;
  std::vector<std::string> references, digests;
  bool untagged = false;  // it had tags that other images have taken
  bool operator==(const Record&) const = default;
};

json::object to_json(const Record& record);
Result<Record> record_from(const json::value& from);

// A layer in progress: a directory below staging/ that the destructor removes unless kept() was called.
class Staging {
 public:
  Staging(const Fd& parent, std::string name, Fd diff) : parent_(&parent), name_(std::move(name)), diff_(std::move(diff)) {}
  Staging(Staging&& other) noexcept
      : parent_(std::exchange(other.parent_, nullptr)), name_(std::move(other.name_)), diff_(std::move(other.diff_)) {}
  Staging& operator=(Staging&&) = delete;
  ~Staging() {
    if (parent_) (void)sys::remove_tree(*parent_, name_);  // remains are removed when the store is opened again
  }
  const Fd& diff() const { return diff_; }
  const std::string& name() const { return name_; }
  void kept() { parent_ = nullptr; }

 private:
  const Fd* parent_;
  std::string name_;
  Fd diff_;
};

class Content {
 public:
  // Errors: conflict if another process uses the directory.
  static Result<Content> open(const std::string& path);
  // For a worker of the process that has opened the store. `staging` is the worker's own directory below staging/; "" for a
  // worker that only reads.
  static Result<Content> join(const std::string& path, const std::string& staging);
  // For a worker that only downloads: it can only access configurations and partial downloads.
  static Result<Content> join_for_download(const std::string& path);

  Result<std::vector<Record>> read_index() const;  // empty if there is none yet
  Result<void> write_index(const std::vector<Record>& records) const;

  Result<std::string> read_config(const Digest& id) const;  // verified
  Result<void> write_config(const Digest& id, std::string_view text) const;

  Result<std::string> read_pulled(const Digest& id) const;  // pulled_record.h. Errors: not_found
  Result<void> write_pulled(const Digest& id, std::string_view text) const;

  bool has_layer(const Digest& chain) const;
  Result<Bytes> layer_size(const Digest& chain) const;
  std::string layer_path(const Digest& chain) const;  // the path of its diff directory
  Result<Fd> open_layer(const Digest& chain) const;   // the same directory, opened
  Result<Staging> stage();
  // Moves a staged layer to its place and syncs it. It is no error if the layer already exists.
  Result<void> keep_layer(Staging staging, const Digest& chain, Bytes size) const;

  // Opens the partial download of a blob for reading and appending, at offset 0. Waits while another job uses it.
  Result<Fd> open_partial(const Digest& blob) const;
  Result<void> drop_partial(const Digest& blob) const;

  // Deletes configurations, pull records and layers that are not in `configs` and `chains`, if they are doomed or were not
  // changed for `age`. Deletes partial downloads by age only.
  Result<void> collect(const std::set<Digest>& configs, const std::set<Digest>& chains, const std::set<Digest>& doomed,
                       std::chrono::seconds age) const;

  const Fd& snapshots() const { return snapshots_; }
  const Fd& spool() const { return staging_; }
  const std::string& path() const { return path_; }

 private:
  Content() = default;
  std::string path_;
  Fd lock_, root_, configs_, pulled_, layers_, partial_, staging_, snapshots_, empty_;
  uint64_t staged_ = 0;
};

}  // namespace coracle::image
