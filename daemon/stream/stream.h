// SPDX-License-Identifier: Apache-2.0
// What the API asks of the node's pods beside objects: logs, exec, connections to their ports. The API room knows only this; the
// node room implements it; main wires them. A remote node would stand here as a client of its kubelet port.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle {

struct LogRequest {
  Key pod;
  std::string container;
  bool follow = false, previous = false, timestamps = false;
  std::optional<int64_t> tail_lines, limit_bytes;
  std::optional<WallTime> since;
  std::string stream;  // "stdout" or "stderr"; "": both
};

struct ExecRequest {
  Key pod;
  std::string container;
  std::vector<std::string> command;  // empty: attach to the container's own process
  bool tty = false, use_stdin = false, use_stdout = true, use_stderr = true;
};

// The client's end of an exec, given by the API. Calls come from the node's threads; false: the client is gone.
class ExecOutput {
 public:
  virtual ~ExecOutput() = default;
  virtual bool write_stdout(std::string_view bytes) = 0;
  virtual bool write_stderr(std::string_view bytes) = 0;
};

// A running exec, given by the node. Destroying it hangs up: the process is killed when it is still there.
class ExecSession {
 public:
  virtual ~ExecSession() = default;
  virtual Result<void> write_stdin(std::string_view bytes) = 0;  // blocks while the process does not read
  virtual void close_stdin() = 0;
  virtual void resize(uint16_t width, uint16_t height) = 0;  // cells
  virtual Result<int> wait() = 0;                            // exit code once all output was delivered; 128+n for signals
  // The client is gone: kills the process, and makes a wait() or write_stdin() under way in another thread return soon.
  virtual void hang_up() { close_stdin(); }
};

class PodStreams {
 public:
  virtual ~PodStreams() = default;
  // Gives the log's lines to `out` until done, or with follow until the container has ended or `out` returns false; an empty one
  // says that nothing more is there for now. Blocks.
  virtual Result<void> logs(const LogRequest& request, const std::function<bool(std::string_view)>& out) = 0;
  // `out` must outlive the session.
  virtual Result<std::unique_ptr<ExecSession>> exec(const ExecRequest& request, ExecOutput& out) = 0;
  // A connected, non-blocking TCP socket to `port` on the pod's own loopback (127.0.0.1, or else ::1): a server that listens
  // there only is reached too, and nobody else's port is. Blocks for seconds at most. Errors: not_found (no such pod),
  // unavailable (it does not run, nobody listens), timeout, cancelled.
  virtual Result<Fd> connect(const Key& pod, uint16_t port, std::stop_token stop) = 0;
};

// The node's images, for `coraclectl image`: GET/POST/DELETE under /coracle/v1/images.
class NodeImages {
 public:
  virtual ~NodeImages() = default;
  virtual json::value list() = 0;  // [{id, references, digests, sizeBytes, created, platform, otherMachine, config}]
  // Calls `progress` with {done, total, layersDone, layersTotal} (bytes) as it goes. Returns the image.
  // `user` and `password`: "" = none.
  virtual Result<json::value> pull(const std::string& reference, const std::string& user, const std::string& password,
                                   const std::function<void(const json::value&)>& progress) = 0;
  // `archive` is read to its end (a pipe will do). Returns the images it held.
  virtual Result<json::value> import(const Fd& archive, const std::string& name) = 0;
  // Writes an OCI archive of these to `archive` (a pipe will do). Blocks until all is written.
  virtual Result<void> write_archive(const std::vector<std::string>& references, const Fd& archive) = 0;
  // {"image": as it was or is left, "deleted": with its content, "users": [containers that go on with it]}
  virtual Result<json::value> remove(const std::string& reference) = 0;
  virtual Result<json::value> tag(const std::string& reference, const std::string& name) = 0;  // the image
  virtual Result<json::value> prune(bool all) = 0;                                             // what was removed
};

// What the volumes of claims on the node hold, for `coraclectl volume`: /coracle/v1/volumes. Both block. Errors: not_found;
// unavailable, the claim is not bound; conflict, a pod uses it; unsupported, its volume is of another kind.
class NodeVolumes {
 public:
  virtual ~NodeVolumes() = default;
  // Writes a tar stream, packed by zstd, to `archive` (a pipe will do). `while_in_use`: although a pod may change it meanwhile.
  virtual Result<void> export_volume(const Key& claim, bool while_in_use, const Fd& archive) = 0;
  // Reads `archive` to its end into the claim's volume: all of it or nothing. `replace`: what the volume holds goes. Returns
  // {"entries": of the archive, "bytes": of its files}. Errors: already_exists, the volume is not empty.
  virtual Result<json::value> import_volume(const Key& claim, bool replace, const Fd& archive) = 0;
};

}  // namespace coracle
