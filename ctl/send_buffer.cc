// SPDX-License-Identifier: Apache-2.0
// See send_buffer.h.
#include "ctl/send_buffer.h"

#include "runtime/base/random.h"

namespace coracle::ctl {

Result<void> SendBuffer::send(Opcode opcode, std::string_view payload) {
  std::array<uint8_t, 4> mask;
  fill_random(mask);
  frames_.push_back(encode_frame(opcode, payload, mask));
  bytes_ += frames_.back().size();
  return flush();
}

Result<void> SendBuffer::flush() {
  while (!frames_.empty()) {
    size_t count = TRY(socket_.write_some(std::string_view(frames_.front()).substr(sent_)));
    if (count == 0) return {};
    sent_ += count, bytes_ -= count;
    if (sent_ == frames_.front().size()) frames_.pop_front(), sent_ = 0;
  }
  return {};
}

}  // namespace coracle::ctl
