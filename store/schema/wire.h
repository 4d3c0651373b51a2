// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format only: tags, varints, lengths. Used by the conversion (protobuf.h) and by OpenAPI's protobuf form.
// Reading is safe for untrusted input: every length is checked against the remaining bytes. Source: protobuf.dev, "Encoding".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::schema {

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  Wire wire = Wire::varint;
  uint64_t integer = 0;    // varint, fixed64, fixed32
  std::string_view bytes;  // Wire::bytes
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  // Errors: bad_request if the bytes are not a protobuf message.
  Result<WireField> next();
  Result<uint64_t> varint();  // an element of a packed list

 private:
  std::string_view rest_;
};

class WireWriter {
 public:
  void varint(uint32_t number, uint64_t value);
  void fixed64(uint32_t number, uint64_t value);
  void bytes(uint32_t number, std::string_view value);
  // A nested message: everything written between begin and end is its body.
  size_t begin(uint32_t number);
  void end(size_t begun);
  void append(std::string_view raw) { out_ += raw; }
  std::string take() { return std::move(out_); }

 private:
  void raw_varint(uint64_t value);
  void tag(uint32_t number, Wire wire) { raw_varint(uint64_t(number) << 3 | uint64_t(wire)); }
  std::string out_;
};

Error malformed_protobuf(std::string_view what);  // bad_request

}  // namespace coracle::schema
