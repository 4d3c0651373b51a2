// SPDX-License-Identifier: Apache-2.0
// Attachment records: the address and host ports of each sandbox, for the next daemon. There is one small file per sandbox in a
// directory below /run: sandboxes do not survive a reboot, so the records need not either, and no flash is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/network/address.h"
#include "daemon/network/proxy.h"

namespace coracle::network {

struct Attachment {
  std::string sandbox;
  Ipv4 address;
  std::vector<HostPort> host_ports;
  bool operator==(const Attachment&) const = default;
};

std::string encode(const Attachment& attachment);
Result<Attachment> decode_attachment(std::string_view sandbox, std::string_view text);  // Errors: invalid

class AttachmentRecords {
 public:
  explicit AttachmentRecords(std::string directory) : directory_(std::move(directory)) {}
  // Unreadable records are removed and left out; their sandboxes will be attached again. Errors of all: of the files.
  Result<std::vector<Attachment>> load();
  Result<void> store(const Attachment& attachment);
  Result<void> remove(const std::string& sandbox);  // succeeds if there is none

 private:
  std::string directory_;
};

}  // namespace coracle::network
