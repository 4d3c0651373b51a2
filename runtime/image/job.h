// SPDX-License-Identifier: Apache-2.0
// Job: the protocol between the store and coracle-image. Fetching an image means talking to untrusted servers and parsing
// untrusted archives with several libraries. A confined process does that and exits, and then its memory is free again. A pull
// has two processes: one talks to registries, and the other has no network and unpacks what the first one sends
// (fetch/remote_unpacker.h).
//
//   store                                    coracle-image (two processes for a pull, one for any other job)
//     job, archive ──────────────────────────▶ confines itself ▸ manifest ▸ configuration
//     none of this is collected ◀──── pin ──── image, layers
//              └──────────────────────── go ─▶ download ▸ verify ▸ unpack ▸ keep
//     progress ◀──────────────────────────────
//     the image is listed ◀─────────── add ─── all of it is on the disk         (an archive: once per image)
//     done, or an error ◀─────────────────────
//
// One JSON document per line, over a stream socket. Each side ends the job if the other is gone: workers end with the store's
// process, and the store cancels a job by killing its worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/image/content.h"
#include "runtime/image/manifest.h"
#include "runtime/runtime.h"

namespace coracle::image {

enum class JobKind : uint8_t {
  pull,        // from a registry                                            descriptors: the process that unpacks
  import,      // the images in an archive                                   the archive
  export_,     // `images` into an archive                                   the archive
  unpack,      // the layers of a pull, for the process that downloads       that process
  write_tree,  // runtime::Trees::write                                      the directory, the archive
  read_tree,   // runtime::Trees::read                                       the archive, the directory
  copy_tree,   // runtime::Trees::copy                                       both directories
};

struct Job {
  JobKind kind = JobKind::pull;
  std::string store;    // the directory of the image store
  std::string staging;  // the job's directory below staging/; "" for a job that stores nothing
  Platform platform;
  std::string name;  // the reference to pull; for an import: a name for its image, or ""
  std::vector<Record> images;
  std::vector<runtime::Credentials> credentials;
  std::vector<std::string> insecure_registries;
  std::map<std::string, std::vector<std::string>> mirrors;
  std::map<std::string, runtime::RegistryHost> hosts;           // without their credentials, which are among `credentials`
  std::string mirror_repository;                                // the repository's name on mirrors
  std::optional<std::vector<runtime::RegistryServer>> servers;  // instead of mirrors and of the registry itself
  size_t machine_credentials = 0;                               // the last ones of `credentials`; not part of the message
  std::chrono::milliseconds retry_delay{500};

  json::object to_json() const;
  static Result<Job> from_json(const json::value& from);  // Errors: invalid
};

struct JobEvents {  // a function that is null is not used by jobs of this kind
  // Called before the store is examined: nothing of this image may be collected until the job ends.
  std::function<Result<void>(const Digest& id, const std::vector<Digest>& chain)> pin;
  // The image is complete and synced, with its configuration. Its names are from the archive or the request. `used`: the index of
  // the credentials that the registry accepted, if it required any.
  std::function<Result<void>(const Record& image, std::optional<size_t> used)> add;
  std::function<void(const runtime::PullProgress& progress)> progress;  // may be null
  runtime::TreeProgress counted;                                        // may be null
};

class Wire {  // one end of the connection
 public:
  explicit Wire(Fd socket) : socket_(std::move(socket)) {}
  Result<void> send(const json::object& message);
  // Blocks. Nothing: the other end is closed. Errors: too_large, bad_request.
  Result<std::optional<json::value>> receive();
  // The job's descriptors, or none; sent before everything else.
  Result<void> send_files(const std::vector<const Fd*>& files);
  Result<std::vector<Fd>> receive_files();

 private:
  Fd socket_;
  std::string arrived_;
};

// The messages besides the job itself.
json::object pin_message(const Digest& id, const std::vector<Digest>& chain);
json::object add_message(const Record& image, std::optional<size_t> used);
json::object progress_message(const runtime::PullProgress& progress);
json::object counted_message(const runtime::TreeCount& count);
bool wants_leave(const json::value& message);  // true if the sender waits for {"go":true}
// The text of an error is shortened to fit into a message, and converted to UTF-8, because it may contain names from an archive.
// Of its details only is_registry_unreachable() is kept.
json::object outcome_message(const Result<void>& outcome);

// Passes a message from the worker to `events`. Returns the outcome if the message contains it. Errors: those that `events`
// returns; internal for a malformed message.
Result<std::optional<Result<void>>> hear(const json::value& message, const JobEvents& events);

}  // namespace coracle::image
