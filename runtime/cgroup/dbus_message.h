// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the D-Bus messages that are needed for systemd's manager. Pure; bus.h transports them.
//
// Why not a library: coracle-oci is a static program that runs for a millisecond. libsystemd only exists as a shared library.
// libdbus authenticates with the user id in its own user namespace, which the peer rejects.
//
//   header (16 bytes, ends with the length of the fields) │ fields a(yv), padded to 8 │ body
// Source: the D-Bus Specification, "Type System", "Marshaling", "Message Protocol".
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::cgroup {

constexpr size_t kMessageHead = 16;              // bytes that contain the lengths of a message
constexpr size_t kMessageMax = size_t{1} << 20;  // the specification allows 128 MiB; systemd's replies are far smaller

struct Message {
  enum class Type : uint8_t { method_call = 1, method_return = 2, error = 3, signal = 4 };
  Type type = Type::method_call;
  uint32_t serial = 0, reply_serial = 0;                         // 0: none
  std::string destination, path, interface, member, error_name;  // "": none
  std::string signature, body;                                   // of the body; "": no body
  bool operator==(const Message&) const = default;
};

// Uses the native byte order. Texts are UTF-8 without NUL.
std::string encode(const Message& message);
// The total length of a message that begins with these kMessageHead bytes. Errors: invalid; too_large.
Result<size_t> message_length(std::string_view head);
// Header fields without a member in Message are skipped. Errors: invalid; unsupported for another byte order.
Result<Message> decode(std::string_view bytes);
// The leading values of a body that are strings, paths or uint32 (as decimal). Errors: invalid.
Result<std::vector<std::string>> first_words(const Message& message);

// Writes a body; a body begins at a multiple of 8. The values must match the message's signature.
class MessageWriter {
 public:
  // Types b, y, i, u, x, t, s (and o), and arrays of these.
  template <typename T>
  void add(const T& value) {
    if constexpr (std::same_as<T, bool>) add_number(uint32_t(value));
    else if constexpr (std::integral<T>) add_number(value);
    else if constexpr (std::convertible_to<const T&, std::string_view>) add_text(value);
    else
      add_array(sizeof(typename T::value_type) == 8 ? 8 : 1, [&] {
        for (const auto& each : value) add(each);
      });
  }
  void add_signature(std::string_view signature);  // g
  template <typename T>
  void add_variant(const T& value) {
    add_signature(signature_of<T>());
    add(value);
  }
  // `fill()` adds the items. `alignment`: 8 for x, t and structures; 1 is enough for others.
  template <typename Fill>
  void add_array(size_t alignment, Fill fill) {
    add_number(uint32_t(0));
    size_t length_at = bytes_.size() - sizeof(uint32_t);
    align(alignment);
    size_t start = bytes_.size();
    fill();
    set_number(length_at, uint32_t(bytes_.size() - start));
  }
  void begin_structure() { align(8); }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  static std::string signature_of() {
    if constexpr (std::same_as<T, bool>) return "b";
    else if constexpr (std::same_as<T, uint8_t>) return "y";
    else if constexpr (std::same_as<T, int32_t>) return "i";
    else if constexpr (std::same_as<T, uint32_t>) return "u";
    else if constexpr (std::same_as<T, int64_t>) return "x";
    else if constexpr (std::same_as<T, uint64_t>) return "t";
    else if constexpr (std::same_as<T, std::string>) return "s";
    else return "a" + signature_of<typename T::value_type>();
  }
  template <typename T>
  void add_number(T value) {
    align(sizeof value);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_text(std::string_view text);
  void align(size_t to) { bytes_.resize((bytes_.size() + to - 1) / to * to, '\0'); }
  void set_number(size_t at, uint32_t value);
  std::string bytes_;
};

}  // namespace coracle::cgroup
