// SPDX-License-Identifier: Apache-2.0
// See send_buffer.h.
#include "ctl/send_buffer.h"

#include "runtime/base/random.h"

namespace coracle::ctl {

void SendBuffer::append(std::string_view bytes) {
  if (bytes.empty() || fault_) return;
  pieces_.emplace_back(bytes);
  bytes_ += bytes.size();
}

void SendBuffer::flush() {
  while (!pieces_.empty()) {
    auto count = socket_.write_some(std::string_view(pieces_.front()).substr(sent_));
    if (!count) {
      fault_ = count.take_error();
      pieces_.clear();
      bytes_ = sent_ = 0;
      return;
    }
    if (*count == 0) return;
    sent_ += *count, bytes_ -= *count;
    if (sent_ == pieces_.front().size()) pieces_.pop_front(), sent_ = 0;
  }
}

void SendBuffer::send(Opcode opcode, std::string_view payload) {
  std::array<uint8_t, 4> mask;
  fill_random(mask);
  append(encode_frame(opcode, payload, mask));
  flush();
}

}  // namespace coracle::ctl
