// SPDX-License-Identifier: Apache-2.0
// The layers of a pull unpacked by another process: one has the network and none of the rights that unpacking takes, the other
// the rights and no network.
//
//   downloads (RemoteUnpacker)                       unpacks (serve_unpacker)
//     begin: diff ids ───────────────────────────────▶ which of them are in the store ──▶ reply
//     stage: layer, its descriptor ──────────────────▶ a thread for each: verify ▸ unpack ──▶ reply
//            its bytes ── a pipe of their own ───────▶
//     keep: layer ───────────────────────────────────▶ in its place ──▶ reply
//
// A request is one packet: a JSON document, the pipe for the reply, and that of the bytes. Whoever finds the other one gone ends.
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
  Result<Fd> send(const json::object& request, const Fd* bytes) const;  // returns where the reply comes
  Result<json::value> ask(const json::object& request) const;
  const Fd& socket_;  // SOCK_SEQPACKET
};

// Does what the other side of the socket asks for, until it is gone. Errors: what is no request.
Result<void> serve_unpacker(const Fd& socket, Unpacker& unpacker);

}  // namespace coracle::image
