// SPDX-License-Identifier: Apache-2.0
// The API server's interface to the node beside objects: logs, exec, port connections, images and volumes. The node agent
// implements it, and the daemon connects the two, so neither depends on the other. For a remote node, a client of its kubelet
// port would implement it.
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
  std::vector<std::string> command;  // empty: attach to the container's main process
  bool tty = false, use_stdin = false, use_stdout = true, use_stderr = true;
};

// The client's side of an exec, provided by the API server. Called on the node's threads; false: the client is gone.
class ExecOutput {
 public:
  virtual ~ExecOutput() = default;
  virtual bool write_stdout(std::string_view bytes) = 0;
  virtual bool write_stderr(std::string_view bytes) = 0;
};

// A running exec, provided by the node. The destructor kills the process if it still runs.
class ExecSession {
 public:
  virtual ~ExecSession() = default;
  // Blocks while the process does not read. Errors: unavailable if it does not read any more, or has no standard input;
  // cancelled.
  virtual Result<void> write_stdin(std::string_view bytes) = 0;
  virtual void close_stdin() = 0;
  virtual void resize(uint16_t width, uint16_t height) = 0;  // in character cells
  // Blocks until the process has ended and all output was delivered. Returns its exit code; 128+n for signal n. Errors: cancelled
  // after hang_up(); the runtime's.
  virtual Result<int> wait() = 0;
  // The client is gone: kills the process; a wait() or write_stdin() in another thread then returns soon.
  virtual void hang_up() { close_stdin(); }
};

class PodStreams {
 public:
  virtual ~PodStreams() = default;
  // Passes the log's lines to `out` until the end, or with follow until the container has ended or `out` returns false. An empty
  // piece means that there is nothing more for now. Blocks. Errors, with the kubelet's texts: not_found (no such pod);
  // bad_request (no such container, or it has no log yet).
  virtual Result<void> logs(const LogRequest& request, const std::function<bool(std::string_view)>& out) = 0;
  // Starts a process. `out` must outlive the session. Blocks until it runs. Errors, with the kubelet's texts: not_found (no such
  // pod); bad_request (no such container, or the pod has ended); internal (the container does not run); the runtime's.
  virtual Result<std::unique_ptr<ExecSession>> exec(const ExecRequest& request, ExecOutput& out) = 0;
  // Returns a connected, non-blocking TCP socket to `port` on the pod's loopback (127.0.0.1, or else ::1). So servers that listen
  // on loopback only are reachable, and ports of other pods are not. Blocks for some seconds at most. Errors: not_found (no such
  // pod), unavailable (it does not run, or nothing listens), timeout, cancelled.
  virtual Result<Fd> connect(const Key& pod, uint16_t port, std::stop_token stop) = 0;
};

// The node's images, for `coraclectl image`: GET/POST/DELETE under /coracle/v1/images. All but list() block for the network or
// the disk. Errors: not_found; invalid for a malformed name or archive; unauthorized and unavailable of a registry; too_large;
// conflict if a container uses what would be removed; cancelled; errno's.
class NodeImages {
 public:
  virtual ~NodeImages() = default;
  virtual json::value list() = 0;  // [{id, references, digests, sizeBytes, created, platform, otherMachine, config}]
  // Pulls an image and returns it. Calls `progress` with {done, total, layersDone, layersTotal} (bytes). `user` and `password`:
  // "" = none.
  virtual Result<json::value> pull(const std::string& reference, const std::string& user, const std::string& password,
                                   const std::function<void(const json::value&)>& progress) = 0;
  // Reads `archive` (may be a pipe) to its end. Returns the imported images.
  virtual Result<json::value> import(const Fd& archive, const std::string& name) = 0;
  // Writes an OCI archive of the images to `archive` (may be a pipe). Blocks until it is complete.
  virtual Result<void> write_archive(const std::vector<std::string>& references, const Fd& archive) = 0;
  // {"image": its state before or after, "deleted": whether its content is deleted, "users": [containers that still use it]}
  virtual Result<json::value> remove(const std::string& reference) = 0;
  virtual Result<json::value> tag(const std::string& reference, const std::string& name) = 0;  // returns the image
  virtual Result<json::value> prune(bool all) = 0;                                             // returns the removed images
};

// Export and import of claims' volumes, for `coraclectl volume`: /coracle/v1/volumes. Both functions block. Errors: not_found;
// unavailable if the claim is not bound; conflict if a pod uses it; unsupported for another kind of volume.
class NodeVolumes {
 public:
  virtual ~NodeVolumes() = default;
  // Writes a tar stream compressed with zstd to `archive` (may be a pipe). `while_in_use` allows it while a pod may change the
  // content.
  virtual Result<void> export_volume(const Key& claim, bool while_in_use, const Fd& archive) = 0;
  // Replaces the content of the claim's volume by that of `archive`, which is read to its end, completely or not at all.
  // `replace`: the volume need not be empty. Returns {"entries": of the archive, "bytes": of its files}. Errors: already_exists
  // if the volume is not empty.
  virtual Result<json::value> import_volume(const Key& claim, bool replace, const Fd& archive) = 0;
};

}  // namespace coracle
