// SPDX-License-Identifier: Apache-2.0
// Job: what the store orders from coracle-image, and what it hears while that works. Bringing an image means speaking
// to strangers' servers and reading strangers' archives, with the libraries that takes: a process of its own does it,
// confined, for as long as it takes, and then its memory is the machine's again. A pull has two: one speaks to registries, the
// other one has no network and unpacks what the first one hands it (fetch/remote_unpacker.h).
//
//   store                                    coracle-image (one process per import or export, two per pull)
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

struct Job {
  std::string store;    // the image store's directory
  std::string staging;  // this job's own below its staging/; "" when it writes an archive
  Platform platform;
  std::string name;     // what to pull; of an import: what to call its image, or ""
  bool import = false;  // an archive, which comes along as a descriptor; else a pull, with what follows
  bool write = false;   // an archive of `images` into the descriptor that comes along, and nothing else
  std::vector<Record> images;
  bool unpack = false;  // the layers of a pull, for the process at the other end of the socket that comes along
  std::vector<runtime::Credentials> credentials;
  std::vector<std::string> insecure_registries;
  std::map<std::string, std::vector<std::string>> mirrors;
  std::chrono::milliseconds retry_delay{500};

  json::object to_json() const;
  static Result<Job> from_json(const json::value& from);  // Errors: invalid
};

struct JobEvents {
  // Before it is looked what is there: nothing of this may be collected until the job is over.
  std::function<Result<void>(const Digest& id, const std::vector<Digest>& chain)> pin;
  // This image is complete and on the disk, its configuration too. Its names are those it came with or was asked for
  // by. `used`: which of the job's credentials the registry took, if it asked for any.
  std::function<Result<void>(const Record& image, std::optional<size_t> used)> add;
  std::function<void(const runtime::PullProgress& progress)> progress;  // may be null
};

class Wire {  // one end
 public:
  explicit Wire(Fd socket) : socket_(std::move(socket)) {}
  Result<void> send(const json::object& message);
  // Blocks. Nothing: the other end is gone. Errors: too_large, bad_request.
  Result<std::optional<json::value>> receive();
  // A descriptor, or none, ahead of everything else.
  Result<void> send_file(const Fd* file);
  Result<std::optional<Fd>> receive_file();

 private:
  Fd socket_;
  std::string arrived_;
};

// What goes over the wire beside the job itself.
json::object pin_message(const Digest& id, const std::vector<Digest>& chain);
json::object add_message(const Record& image, std::optional<size_t> used);
json::object progress_message(const runtime::PullProgress& progress);
json::object outcome_message(const Result<void>& outcome);

// Tells `events` what a message from the worker says. The outcome, once there is one. Errors: what `events` answered;
// internal for what is no message.
Result<std::optional<Result<void>>> hear(const json::value& message, const JobEvents& events);

}  // namespace coracle::image
