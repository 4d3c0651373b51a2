// SPDX-License-Identifier: Apache-2.0
// Attachments on record: which sandbox has which address and which host ports, so that the next daemon knows. One small
// file each under a directory of /run: a sandbox does not survive a reboot, so neither need this, and the flash is never
// written for it.
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
  // What cannot be read is left out, and its file removed: its sandbox will be attached anew.
  Result<std::vector<Attachment>> load();
  Result<void> store(const Attachment& attachment);
  Result<void> remove(const std::string& sandbox);  // succeeds when there is none

 private:
  std::string directory_;
};

}  // namespace coracle::network
