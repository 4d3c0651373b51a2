// SPDX-License-Identifier: Apache-2.0
// Job: what the store orders from coracle-image, and what it hears while that works. Bringing an image means speaking
// to strangers' servers and reading strangers' archives, with the libraries that takes: a process of its own does it,
// confined, for as long as it takes, and then its memory is the machine's again. A pull has two: one speaks to registries, the
// other one has no network and unpacks what the first one hands it (fetch/remote_unpacker.h).
//
//   store                                    coracle-image (two processes for a pull, one for any other job)
//     job, archive ──────────────────────────▶ confine itself ▸ manifest ▸ configuration
//     nothing of this is collected ◀── pin ─── which image, which layers
//              └──────────────────────── go ─▶ download ▸ verify ▸ unpack ▸ keep
//     progress ◀──────────────────────────────
//     the image is listed ◀─────────── add ─── all of it is on the disk         (an archive: once per image)
//     done, or an error ◀─────────────────────
//
// One JSON document per line, over a stream socket. Whoever finds the other one gone ends the job: the store's process
// that is killed takes its workers along, and a job is cancelled by killing its worker.
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
  std::string store;    // the image store's directory
  std::string staging;  // this job's own below its staging/; "" when it stores nothing
  Platform platform;
  std::string name;  // what to pull; of an import: what to call its image, or ""
  std::vector<Record> images;
  std::vector<runtime::Credentials> credentials;
  std::vector<std::string> insecure_registries;
  std::map<std::string, std::vector<std::string>> mirrors;
  std::chrono::milliseconds retry_delay{500};

  json::object to_json() const;
  static Result<Job> from_json(const json::value& from);  // Errors: invalid
};

struct JobEvents {  // what is null is not said in jobs of this kind
  // Before it is looked what is there: nothing of this may be collected until the job is over.
  std::function<Result<void>(const Digest& id, const std::vector<Digest>& chain)> pin;
  // This image is complete and on the disk, its configuration too. Its names are those it came with or was asked for
  // by. `used`: which of the job's credentials the registry took, if it asked for any.
  std::function<Result<void>(const Record& image, std::optional<size_t> used)> add;
  std::function<void(const runtime::PullProgress& progress)> progress;  // may be null
  runtime::TreeProgress counted;                                        // may be null
};

class Wire {  // one end
 public:
  explicit Wire(Fd socket) : socket_(std::move(socket)) {}
  Result<void> send(const json::object& message);
  // Blocks. Nothing: the other end is gone. Errors: too_large, bad_request.
  Result<std::optional<json::value>> receive();
  // Descriptors, or none, ahead of everything else.
  Result<void> send_files(const std::vector<const Fd*>& files);
  Result<std::vector<Fd>> receive_files();

 private:
  Fd socket_;
  std::string arrived_;
};

// What goes over the wire beside the job itself.
json::object pin_message(const Digest& id, const std::vector<Digest>& chain);
json::object add_message(const Record& image, std::optional<size_t> used);
json::object progress_message(const runtime::PullProgress& progress);
json::object counted_message(const runtime::TreeCount& count);
bool wants_leave(const json::value& message);  // who said it waits for {"go":true}
// Of an error's text it has as much as fits into a message, in UTF-8, whatever an archive made us say.
json::object outcome_message(const Result<void>& outcome);

// Tells `events` what a message from the worker says. The outcome, once there is one, with no longer text than that. Errors: what
// `events` answered; internal for what is no message.
Result<std::optional<Result<void>>> hear(const json::value& message, const JobEvents& events);

}  // namespace coracle::image
