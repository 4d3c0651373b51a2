// SPDX-License-Identifier: Apache-2.0
// The layers of a pull, unpacked by another process. One process has the network but none of the privileges for unpacking; the
// other has the privileges but no network.
//
//   downloads (RemoteUnpacker)                       unpacks (serve_unpacker)
//     begin: diff ids ───────────────────────────────▶ which of them are in the store ──▶ reply
//     stage: layer, its descriptor ──────────────────▶ a thread for each: verify ▸ unpack ──▶ reply
//            its bytes ── a separate pipe ───────────▶
//     keep: layer ───────────────────────────────────▶ moved to its place ──▶ reply
//
// A request is one packet: a JSON document, a pipe for the reply, and the pipe of the bytes. Each process exits if the other is
// gone.
#pragma once

#include "runtime/base/json.h"
#include "runtime/image/fetch/unpacker.h"

namespace coracle::image {

class RemoteUnpacker : public Unpacker {
 public:
  explicit RemoteUnpacker(const Fd& socket) : socket_(socket) {}
  Result<std::vector<bool>> begin(const std::vector<Digest>& diff_ids) override;
  Result<void> stage(size_t layer, Source& stream, const Descriptor* descriptor) override;
  Result<void> keep(size_t layer) override;

 private:
  Result<Fd> send(const json::object& request, const Fd* bytes) const;  // returns the pipe of the reply
  Result<json::value> ask(const json::object& request) const;
  const Fd& socket_;  // SOCK_SEQPACKET
};

// Executes the requests on the socket until the other side closes it. Errors: a malformed request.
Result<void> serve_unpacker(const Fd& socket, Unpacker& unpacker);

}  // namespace coracle::image
