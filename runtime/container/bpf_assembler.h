// SPDX-License-Identifier: Apache-2.0
// Instructions of a classic BPF program over seccomp_data, one after the other, with jumps forward to where a label will stand.
// Source: seccomp(2); bpf(4), linux/filter.h; kernel Documentation/networking/filter.rst.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace coracle::runtime {

struct BpfLabel {
  std::vector<size_t> jumps;  // that lead to it
};

class BpfAssembler {
 public:
  void load(uint32_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset); }
  void mask(uint32_t bits) { emit(BPF_ALU | BPF_AND | BPF_K, 0, 0, bits); }
  void ret(uint32_t action) { emit(BPF_RET | BPF_K, 0, 0, action); }
  void jump(BpfLabel& to) {
    to.jumps.push_back(out_.size());
    emit(BPF_JMP | BPF_JA, 0, 0, 0);
  }
  // `test`: BPF_JEQ, BPF_JGT, BPF_JGE of what was loaded with `value`.
  void jump_if(uint16_t test, uint32_t value, BpfLabel& to) {
    emit(uint16_t(BPF_JMP | test | BPF_K), 0, 1, value);
    jump(to);
  }
  void jump_unless(uint16_t test, uint32_t value, BpfLabel& to) {
    emit(uint16_t(BPF_JMP | test | BPF_K), 1, 0, value);
    jump(to);
  }
  void ret_if_equal(uint32_t value, uint32_t action) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    ret(action);
  }
  // The label stands before the next instruction.
  void bind(const BpfLabel& label) {
    for (size_t jump : label.jumps) out_[jump].k = uint32_t(out_.size() - jump - 1);
  }
  std::vector<uint64_t> instructions() const {
    std::vector<uint64_t> out(out_.size());
    if (!out.empty()) std::memcpy(out.data(), out_.data(), out.size() * sizeof out[0]);
    return out;
  }

 private:
  void emit(uint16_t code, uint8_t when_true, uint8_t when_false, uint32_t value) {
    out_.push_back({code, when_true, when_false, value});
  }
  std::vector<sock_filter> out_;
};

}  // namespace coracle::runtime
