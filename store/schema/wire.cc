// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format. See wire.h.
#include "store/schema/wire.h"

namespace coracle::schema {
namespace {

constexpr int kVarintBytesMax = 10;
constexpr uint64_t kFieldNumberMax = (1u << 29) - 1;

size_t put_varint(char* into, uint64_t value) {
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) into[size++] = char(uint8_t(value) | 0x80);
  into[size++] = char(value);
  return size;
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uint8_t(bytes[i]);
  return value;
}

}  // namespace

Result<uint64_t> WireReader::varint() {
  uint64_t value = 0;
  for (int i = 0; i < kVarintBytesMax; ++i) {
    if (rest_.empty()) return malformed_protobuf("it ends within a number");
    uint8_t byte = uint8_t(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  return malformed_protobuf("a number is too long");
}

Result<WireField> WireReader::next() {
  uint64_t tag = TRY(varint());
  WireField field;
  if (tag >> 3 == 0 || tag >> 3 > kFieldNumberMax) return malformed_protobuf("a field has an impossible number");
  field.number = uint32_t(tag >> 3);
  field.wire = Wire(tag & 7);
  size_t fixed = field.wire == Wire::fixed64 ? 8 : field.wire == Wire::fixed32 ? 4 : 0;
  if (fixed) {
    if (rest_.size() < fixed) return malformed_protobuf("it ends within a number");
    field.integer = little_endian(rest_.substr(0, fixed));
    rest_.remove_prefix(fixed);
  } else if (field.wire == Wire::varint) {
    field.integer = TRY(varint());
  } else if (field.wire == Wire::bytes) {
    uint64_t size = TRY(varint());
    if (size > rest_.size()) return malformed_protobuf("a length exceeds the message");
    field.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
  } else {
    return malformed_protobuf("a field has an unknown wire type");
  }
  return field;
}

void WireWriter::raw_varint(uint64_t value) {
  char buffer[kVarintBytesMax];
  out_.append(buffer, put_varint(buffer, value));
}

void WireWriter::varint(uint32_t number, uint64_t value) {
  tag(number, Wire::varint);
  raw_varint(value);
}

void WireWriter::fixed64(uint32_t number, uint64_t value) {
  tag(number, Wire::fixed64);
  for (int i = 0; i < 8; ++i) out_ += char(uint8_t(value >> (8 * i)));
}

void WireWriter::bytes(uint32_t number, std::string_view value) {
  tag(number, Wire::bytes);
  raw_varint(value.size());
  out_ += value;
}

size_t WireWriter::begin(uint32_t number) {
  tag(number, Wire::bytes);
  return out_.size();
}

void WireWriter::end(size_t begun) {
  char buffer[kVarintBytesMax];
  out_.insert(begun, buffer, put_varint(buffer, out_.size() - begun));
}

Error malformed_protobuf(std::string_view what) { return Error(Code::bad_request, "malformed protobuf: " + std::string(what)); }

}  // namespace coracle::schema
