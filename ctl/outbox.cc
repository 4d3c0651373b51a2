// SPDX-License-Identifier: Apache-2.0
// See outbox.h.
#include "ctl/outbox.h"

namespace coracle::ctl {

Result<void> Outbox::send(Opcode opcode, std::string_view payload) {
  uint32_t bits = random_();
  frames_.push_back(encode_frame(opcode, payload, {uint8_t(bits), uint8_t(bits >> 8), uint8_t(bits >> 16), uint8_t(bits >> 24)}));
  bytes_ += frames_.back().size();
  return flush();
}

Result<void> Outbox::flush() {
  while (!frames_.empty()) {
    size_t count = TRY(socket_.write_some(std::string_view(frames_.front()).substr(sent_)));
    if (count == 0) return {};
    sent_ += count, bytes_ -= count;
    if (sent_ == frames_.front().size()) frames_.pop_front(), sent_ = 0;
  }
  return {};
}

}  // namespace coracle::ctl
