// SPDX-License-Identifier: Apache-2.0
// See dbus_message.h.
#include "runtime/cgroup/dbus_message.h"

#include <bit>
#include <cstring>

#include "runtime/base/text.h"

namespace coracle::cgroup {
namespace {

constexpr char kByteOrder = std::endian::native == std::endian::little ? 'l' : 'B';
constexpr uint8_t kVersion = 1;

enum Field : uint8_t { path = 1, interface, member, error_name, reply_serial, destination, sender, signature };

Error damaged(const char* what) { return Error(Code::invalid, std::string("D-Bus message: ") + what); }

// Parses a message from its start; the input is untrusted.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  size_t at() const { return at_; }

  Result<void> align(size_t to) { return skip((to - at_ % to) % to); }
  Result<void> skip(size_t count) {
    if (count > bytes_.size() - at_) return damaged("it ends too early");
    at_ += count;
    return {};
  }
  template <typename T>
  Result<T> number() {
    TRY(align(sizeof(T)));
    TRY(skip(sizeof(T)));
    T value;
    std::memcpy(&value, bytes_.data() + at_ - sizeof value, sizeof value);
    return value;
  }
  Result<std::string> text() {
    uint32_t length = TRY(number<uint32_t>());
    return text_of(length);
  }
  Result<std::string> signature() {
    uint8_t length = TRY(number<uint8_t>());
    return text_of(length);
  }
  // Skips the value of a variant.
  Result<void> skip_value(const std::string& signature) {
    if (signature == "s" || signature == "o") return text().ok() ? Result<void>() : damaged("it ends too early");
    if (signature == "g") return this->signature().ok() ? Result<void>() : damaged("it ends too early");
    size_t size = signature == "y"                                                               ? 1
                  : signature == "n" || signature == "q"                                         ? 2
                  : signature == "b" || signature == "i" || signature == "u" || signature == "h" ? 4
                  : signature == "x" || signature == "t" || signature == "d"                     ? 8
                                                                                                 : 0;
    if (size == 0) return damaged("a header field is of a type that none has");
    TRY(align(size));
    return skip(size);
  }

 private:
  Result<std::string> text_of(size_t length) {
    size_t start = at_;
    TRY(skip(length));
    TRY(skip(1));
    std::string_view found = bytes_.substr(start, length);
    if (bytes_[at_ - 1] != '\0' || found.find('\0') != found.npos || !is_utf8(found)) return damaged("a text is none");
    return std::string(found);
  }
  std::string_view bytes_;
  size_t at_ = 0;
};

Result<void> read_field(Reader& from, Message& out) {
  uint8_t code = TRY(from.number<uint8_t>());
  std::string type = TRY(from.signature());
  std::string* text = code == Field::path          ? &out.path
                      : code == Field::interface   ? &out.interface
                      : code == Field::member      ? &out.member
                      : code == Field::error_name  ? &out.error_name
                      : code == Field::destination ? &out.destination
                                                   : nullptr;
  if (text) {
    if (type != (code == Field::path ? "o" : "s")) return damaged("a header field is of another type");
    *text = TRY(from.text());
  } else if (code == Field::reply_serial) {
    if (type != "u") return damaged("a header field is of another type");
    out.reply_serial = TRY(from.number<uint32_t>());
  } else if (code == Field::signature) {
    if (type != "g") return damaged("a header field is of another type");
    out.signature = TRY(from.signature());
  } else {
    TRY(from.skip_value(type));
  }
  return {};
}

struct Lengths {
  size_t fields = 0, body = 0;
  size_t body_at() const { return (kMessageHead + fields + 7) / 8 * 8; }
};

Result<Lengths> read_lengths(std::string_view head) {
  if (head.size() < kMessageHead) return damaged("it ends too early");
  if (head[0] != kByteOrder) return Error(Code::unsupported, "D-Bus message: of another byte order");
  if (uint8_t(head[3]) != kVersion) return damaged("of another protocol");
  auto number_at = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, head.data() + at, sizeof value);
    return value;
  };
  Lengths out{number_at(12), number_at(4)};
  if (out.fields > kMessageMax || out.body > kMessageMax || out.body_at() + out.body > kMessageMax)
    return Error(Code::too_large, "D-Bus message: longer than 1 MiB");
  return out;
}

}  // namespace

void MessageWriter::add_text(std::string_view text) {
  add_number(uint32_t(text.size()));
  bytes_.append(text);
  bytes_ += '\0';
}

void MessageWriter::add_signature(std::string_view signature) {
  bytes_ += char(signature.size());
  bytes_.append(signature);
  bytes_ += '\0';
}

void MessageWriter::set_number(size_t at, uint32_t value) { std::memcpy(bytes_.data() + at, &value, sizeof value); }

std::string encode(const Message& message) {
  MessageWriter out;
  out.add(uint8_t(kByteOrder));
  out.add(uint8_t(message.type));
  out.add(uint8_t(0));  // no flags: a reply is expected
  out.add(kVersion);
  out.add(uint32_t(message.body.size()));
  out.add(message.serial);
  out.add_array(8, [&] {
    auto begin = [&](Field field, const char* type) {
      out.begin_structure();
      out.add(uint8_t(field));
      out.add_signature(type);
    };
    auto text = [&](Field field, const char* type, const std::string& value) {
      if (value.empty()) return;
      begin(field, type);
      out.add(value);
    };
    text(Field::path, "o", message.path);
    text(Field::member, "s", message.member);
    text(Field::interface, "s", message.interface);
    text(Field::error_name, "s", message.error_name);
    text(Field::destination, "s", message.destination);
    if (message.reply_serial) {
      begin(Field::reply_serial, "u");
      out.add(message.reply_serial);
    }
    if (!message.signature.empty()) {
      begin(Field::signature, "g");
      out.add_signature(message.signature);
    }
  });
  out.begin_structure();  // the body is aligned like a structure
  return out.bytes() + message.body;
}

Result<size_t> message_length(std::string_view head) {
  Lengths lengths = TRY(read_lengths(head));
  return lengths.body_at() + lengths.body;
}

Result<Message> decode(std::string_view bytes) {
  Lengths lengths = TRY(read_lengths(bytes));
  if (bytes.size() != lengths.body_at() + lengths.body) return damaged("its length is another than it says");
  uint8_t type = uint8_t(bytes[1]);
  if (type < uint8_t(Message::Type::method_call) || type > uint8_t(Message::Type::signal)) return damaged("of no known type");
  Message out;
  out.type = Message::Type(type);
  std::memcpy(&out.serial, bytes.data() + 8, sizeof out.serial);
  Reader from(bytes.substr(0, lengths.body_at()));
  TRY(from.skip(kMessageHead));
  while (from.at() < kMessageHead + lengths.fields) {
    TRY(from.align(8));
    TRY(read_field(from, out));
  }
  if (from.at() != kMessageHead + lengths.fields) return damaged("its fields are longer than it says");
  out.body = bytes.substr(lengths.body_at());
  return out;
}

Result<std::vector<std::string>> first_words(const Message& message) {
  Reader from(message.body);
  std::vector<std::string> out;
  for (char type : message.signature) {
    if (type == 'u') {
      uint32_t number = TRY(from.number<uint32_t>());
      out.push_back(std::to_string(number));
    } else if (type == 's' || type == 'o') {
      std::string text = TRY(from.text());
      out.push_back(std::move(text));
    } else {
      break;
    }
  }
  return out;
}

}  // namespace coracle::cgroup
