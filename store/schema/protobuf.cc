// SPDX-License-Identifier: Apache-2.0
// See protobuf.h. Two walks: the reader converts tag after tag to JSON by the type's field numbers. The writer iterates over the
// type's fields, which are in the order of their numbers. Like Go's encoder it writes every field that is not a pointer, even if
// it is zero: the bytes are identical.
#include "store/schema/protobuf.h"

#include <bit>
#include <limits>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/object/markup.h"
#include "store/schema/decode.h"
#include "store/schema/wire.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kMagic{"k8s\0", 4};

struct Envelope {  // runtime.Unknown
  std::string_view api_version, kind, raw;
};

Result<Envelope> open_envelope(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return malformed_protobuf("the body does not begin with k8s\\0");
  Envelope envelope;
  for (WireReader unknown(bytes.substr(kMagic.size())); !unknown.done();) {
    WireField field = TRY(unknown.next());
    if (field.number == 2) envelope.raw = field.bytes;
    if (field.number != 1) continue;
    for (WireReader type_meta(field.bytes); !type_meta.done();) {
      WireField name = TRY(type_meta.next());
      if (name.number == 1) envelope.api_version = name.bytes;
      if (name.number == 2) envelope.kind = name.bytes;
    }
  }
  if (!is_utf8(envelope.api_version) || !is_utf8(envelope.kind)) return malformed_protobuf("a name is not UTF-8");
  return envelope;
}

const Field* by_number(const Type& type, uint16_t inlined, uint32_t number) {
  for (const Field& field : type.fields()) {
    if (field.number == number && field.inlined == inlined && number != 0) return &field;
  }
  return nullptr;
}

// The nested message `number` inside the nested message `inlined` (0: of the type itself), in the form of Field::inlined; 0:
// none.
uint16_t nested(const Type& type, uint16_t inlined, uint32_t number) {
  if (number == 0 || number > 255 || inlined > 255) return 0;
  uint16_t inner = uint16_t(inlined * 256 + number);
  for (const Field& field : type.fields()) {
    if (field.inlined == inner || (inlined == 0 && field.inlined / 256 == inner)) return inner;
  }
  return 0;
}

// ---- decoding ----

class Reader {
 public:
  Result<json::value> message(const Type& type, std::string_view bytes, size_t depth) {
    json::object out;
    TRY(add_fields(type, 0, bytes, depth, out));
    if (type.either) return chosen(type, out);
    return json::value(std::move(out));
  }

  Result<json::value> enveloped(std::string_view bytes, const Type* expected, size_t depth) {
    Envelope envelope = TRY(open_envelope(bytes));
    const Type* type = envelope.kind.empty() ? expected : root_type(envelope.api_version, envelope.kind);
    if (!type) {
      return Error(Code::unsupported,
                   "no kind " + quoted(envelope.kind) + " is known in version " + quoted(envelope.api_version));
    }
    json::value object = TRY(message(*type, envelope.raw, depth));
    object.get_object()["apiVersion"] = envelope.kind.empty() ? type->api_version() : envelope.api_version;
    object.get_object()["kind"] = type->name();
    return object;
  }

 private:
  // Go also marks a schema as allowed, so fields other than the flag take precedence. An empty message is false, or an empty
  // list.
  static json::value chosen(const Type& type, json::object& fields) {
    const Field* flag = nullptr;
    for (const Field& field : type.fields()) {
      if (field.form == Form::boolean) flag = &field;
      else if (json::value* found = fields.if_contains(field.name())) return std::move(*found);
    }
    if (!flag) return json::value(json::array_kind);
    json::value* found = fields.if_contains(flag->name());
    return json::value(found && found->is_bool() && found->get_bool());
  }

  // Adds the fields of one message to `out`. `inlined` identifies a nested message of the type; 0: the type's own message.
  Result<void> add_fields(const Type& type, uint16_t inlined, std::string_view bytes, size_t depth, json::object& out) {
    if (depth > kProtobufDepthMax) return malformed_protobuf("nested too deeply");
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece = TRY(wire.next());
      if (++values_ > kProtobufValuesMax) return Error(Code::too_large, "a protobuf message has too many values");
      if (uint16_t inner = nested(type, inlined, piece.number)) {
        if (piece.wire != Wire::bytes) return malformed_protobuf("a message without a length");
        TRY(add_fields(type, inner, piece.bytes, depth + 1, out));
      } else if (const Field* field = by_number(type, inlined, piece.number)) {
        TRY(add(*field, piece, depth, out));
      }
    }
    return {};
  }

  Result<void> add(const Field& field, const WireField& piece, size_t depth, json::object& out) {
    json::value& slot = out[field.name()];
    if (field.shape == Shape::one) {
      slot = TRY(one(field, piece, depth));
      return {};
    }
    if (field.shape == Shape::map) {
      if (!slot.is_object()) slot.emplace_object();
      return add_entry(field, piece, depth, slot.get_object());
    }
    if (!slot.is_array()) slot.emplace_array();
    if (piece.wire == Wire::bytes && is_integer(field.form)) return add_packed(field, piece.bytes, slot.get_array());
    json::value item = TRY(one(field, piece, depth));
    slot.get_array().push_back(std::move(item));
    return {};
  }

  Result<void> add_packed(const Field& field, std::string_view bytes, json::array& items) {
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece;
      piece.integer = TRY(wire.varint());
      if (++values_ > kProtobufValuesMax) return Error(Code::too_large, "a protobuf message has too many values");
      json::value item = TRY(one(field, piece, 0));
      items.push_back(std::move(item));
    }
    return {};
  }

  Result<void> add_entry(const Field& field, const WireField& piece, size_t depth, json::object& entries) {
    if (piece.wire != Wire::bytes) return malformed_protobuf("a map entry without a length");
    std::string_view key;
    json::value value;
    for (WireReader wire(piece.bytes); !wire.done();) {
      WireField part = TRY(wire.next());
      if (part.number == 1 && part.wire == Wire::bytes) key = part.bytes;
      if (part.number != 2) continue;
      value = TRY(one(field, part, depth));
    }
    if (!is_utf8(key)) return malformed_protobuf("a map key is not UTF-8");
    entries[key] = std::move(value);  // decoding converts null to the zero value
    return {};
  }

  static bool is_integer(Form form) { return form == Form::int32 || form == Form::int64 || form == Form::boolean; }

  Result<json::value> one(const Field& field, const WireField& piece, size_t depth) {
    Wire wanted = is_integer(field.form) ? Wire::varint : field.form == Form::number ? Wire::fixed64 : Wire::bytes;
    if (piece.wire != wanted) return malformed_protobuf("field " + std::string(field.name()) + " has another wire type");
    switch (field.form) {
      case Form::string: return string(piece.bytes);
      case Form::int32: return json::value(int64_t(int32_t(uint32_t(piece.integer))));
      case Form::int64: return json::value(int64_t(piece.integer));
      case Form::boolean: return json::value(piece.integer != 0);
      case Form::number: return json::value(std::bit_cast<double>(piece.integer));
      case Form::bytes: return json::value(base64_encode(piece.bytes));
      case Form::time:
      case Form::micro_time: return time(piece.bytes, field.form == Form::micro_time);
      case Form::duration: return duration(piece.bytes);
      case Form::quantity: return quantity(piece.bytes);
      case Form::int_or_string: return int_or_string(piece.bytes);
      case Form::any:
      case Form::fields: return raw_json(piece.bytes, depth + 1);
      case Form::strings: return strings(piece.bytes);
      case Form::object: return message(field.type(), piece.bytes, depth + 1);
    }
    return json::value();
  }

  static Result<json::value> string(std::string_view bytes) {
    if (!is_utf8(bytes)) return malformed_protobuf("a string is not UTF-8");
    return json::value(bytes);
  }

  // The first string of a message: the encoding of Quantity.
  static Result<json::value> quantity(std::string_view bytes) {
    std::string_view text;
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece = TRY(wire.next());
      if (piece.number == 1) text = piece.bytes;
    }
    return string(text.empty() ? "0" : text);
  }

  static Result<json::value> time(std::string_view bytes, bool micro) {
    int64_t seconds = 0, nanos = 0;
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece = TRY(wire.next());
      if (piece.number == 1) seconds = int64_t(piece.integer);
      if (piece.number == 2) nanos = int64_t(piece.integer);
    }
    bool known = seconds >= kGoZeroTimeSeconds && seconds <= kCalendarSecondsMax && nanos >= 0 && nanos < 1'000'000'000;
    if (!known) return malformed_protobuf("a time is out of range");
    CalendarTime when{seconds, int32_t(micro ? nanos : 0)};
    if (bytes.empty() || is_go_zero_time(when)) return json::value();
    return json::value(micro ? format_micro_time(when) : format_time(when));
  }

  static Result<json::value> duration(std::string_view bytes) {
    int64_t nanos = 0;
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece = TRY(wire.next());
      if (piece.number == 1) nanos = int64_t(piece.integer);
    }
    return json::value(format_duration(std::chrono::nanoseconds(nanos)));
  }

  static Result<json::value> int_or_string(std::string_view bytes) {
    bool is_string = false;
    int64_t number = 0;
    std::string_view text;
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece = TRY(wire.next());
      if (piece.number == 1) is_string = piece.integer != 0;
      if (piece.number == 2) number = int32_t(uint32_t(piece.integer));
      if (piece.number == 3) text = piece.bytes;
    }
    if (is_string) return string(text);
    return json::value(number);
  }

  static Result<json::value> strings(std::string_view bytes) {
    json::array items;
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece = TRY(wire.next());
      if (piece.number != 1) continue;
      json::value item = TRY(string(piece.bytes));
      items.push_back(std::move(item));
    }
    return json::value(std::move(items));
  }

  // RawExtension and FieldsV1: JSON text, or another envelope, in field 1.
  Result<json::value> raw_json(std::string_view bytes, size_t depth) {
    if (depth > kProtobufDepthMax) return malformed_protobuf("nested too deeply");
    std::string_view raw;
    for (WireReader wire(bytes); !wire.done();) {
      WireField piece = TRY(wire.next());
      if (piece.number == 1) raw = piece.bytes;
    }
    if (raw.empty()) return json::value();
    if (raw.starts_with(kMagic)) return enveloped(raw, nullptr, depth);
    return parse_json(raw);
  }

  size_t values_ = 0;
};

// ---- encoding ----

Error contradiction(const Field& field) {
  return Error(Code::internal, "field " + std::string(field.name()) + " contradicts the schema");
}

class Writer {
 public:
  // `object` is canonical, or nullptr for a message that was never set.
  Result<void> message(const Type& type, const json::object* object) {
    Open open;
    uint16_t inlined = 0;  // fields of a nested message are contiguous
    for (const Field& field : type.fields()) {
      if (field.number == 0) continue;
      if (field.inlined != inlined) enter(open, inlined, field.inlined);
      const json::value* value = object ? object->if_contains(field.name()) : nullptr;
      TRY(add(field, value && !value->is_null() ? value : nullptr));
    }
    enter(open, inlined, 0);
    return {};
  }

  Result<void> either(const Type& type, const json::value& value) {
    const Field* chosen = type.alternative(value);
    for (const Field& field : type.fields()) {
      static const json::value allowed(true);
      if (&field == chosen) TRY(add(field, &value));
      else if (field.form == Form::boolean) TRY(add(field, &allowed));  // as in Go: a schema implies true
    }
    return {};
  }

  std::string take() { return wire_.take(); }

 private:
  using Open = std::vector<std::pair<uint16_t, size_t>>;  // nested messages being written: number, start

  // Ends and begins nested messages to get from one to another.
  void enter(Open& open, uint16_t& from, uint16_t to) {
    std::vector<uint16_t> path;
    if (to > 255) path.push_back(to / 256);
    if (to) path.push_back(to % 256);
    size_t common = 0;
    while (common < open.size() && common < path.size() && open[common].first == path[common]) ++common;
    for (; open.size() > common; open.pop_back()) wire_.end(open.back().second);
    for (; common < path.size(); ++common) open.emplace_back(path[common], wire_.begin(path[common]));
    from = to;
  }

  Result<void> add(const Field& field, const json::value* value) {
    if (field.shape == Shape::list) {
      if (!value) return {};
      const json::array* items = value->if_array();
      if (!items) return contradiction(field);
      for (const json::value& item : *items) {
        TRY(one(field, field.number, &item));
      }
      return {};
    }
    if (field.shape == Shape::map) {
      if (!value) return {};
      const json::object* entries = value->if_object();
      if (!entries) return contradiction(field);
      for (const auto& pair : *entries) {
        size_t begun = wire_.begin(field.number);
        wire_.bytes(1, pair.key());
        TRY(one(field, 2, &pair.value()));
        wire_.end(begun);
      }
      return {};
    }
    bool nothing_to_write = field.pointer || field.form == Form::bytes || field.form == Form::strings;
    if (!value && nothing_to_write) return {};
    return one(field, field.number, value);
  }

  Result<void> one(const Field& field, uint32_t number, const json::value* value) {
    switch (field.form) {
      case Form::string: {
        if (value && !value->is_string()) return contradiction(field);
        wire_.bytes(number, value ? std::string_view(value->get_string()) : std::string_view());
        return {};
      }
      case Form::int32:
      case Form::int64: {
        if (value && !value->is_int64()) return contradiction(field);
        wire_.varint(number, value ? uint64_t(value->get_int64()) : 0);
        return {};
      }
      case Form::boolean: {
        if (value && !value->is_bool()) return contradiction(field);
        wire_.varint(number, value && value->get_bool());
        return {};
      }
      case Form::number: {
        if (value && !value->is_number()) return contradiction(field);
        wire_.fixed64(number, std::bit_cast<uint64_t>(value ? value->to_number<double>() : 0.0));
        return {};
      }
      case Form::bytes: {
        auto bytes = base64_decode(value && value->is_string() ? std::string_view(value->get_string()) : std::string_view());
        if (!bytes) return contradiction(field);
        wire_.bytes(number, *bytes);
        return {};
      }
      default: break;
    }
    size_t begun = wire_.begin(number);
    TRY(body(field, value));
    wire_.end(begun);
    return {};
  }

  // For the forms that are messages.
  Result<void> body(const Field& field, const json::value* value) {
    switch (field.form) {
      case Form::time:
      case Form::micro_time: return time(field, value);
      case Form::duration: {
        auto span = value && value->is_string() ? parse_duration(value->get_string()) : std::chrono::nanoseconds(0);
        if (!span || (value && !value->is_string())) return contradiction(field);
        wire_.varint(1, uint64_t(span->count()));
        return {};
      }
      case Form::quantity: {
        if (value && !value->is_string()) return contradiction(field);
        wire_.bytes(1, value ? std::string_view(value->get_string()) : "0");
        return {};
      }
      case Form::int_or_string: {
        bool is_string = value && value->is_string();
        if (value && !is_string && !value->is_int64()) return contradiction(field);
        wire_.varint(1, is_string);
        wire_.varint(2, value && !is_string ? uint64_t(value->get_int64()) : 0);
        wire_.bytes(3, is_string ? std::string_view(value->get_string()) : std::string_view());
        return {};
      }
      case Form::any:
      case Form::fields: {
        if (!value) return {};
        std::string text = to_text(*value);
        escape_markup(text);
        wire_.bytes(1, text);
        return {};
      }
      case Form::strings: {
        if (!value || !value->is_array()) return contradiction(field);
        for (const json::value& item : value->get_array()) {
          if (!item.is_string()) return contradiction(field);
          wire_.bytes(1, item.get_string());
        }
        return {};
      }
      default: {
        if (value && field.type().either) return either(field.type(), *value);
        if (value && !value->is_object()) return contradiction(field);
        return message(field.type(), value ? &value->get_object() : nullptr);
      }
    }
  }

  Result<void> time(const Field& field, const json::value* value) {
    if (!value || value->is_null()) return {};
    if (!value->is_string()) return contradiction(field);
    auto when = parse_calendar_time(value->get_string());
    if (!when) return contradiction(field);
    wire_.varint(1, uint64_t(when->seconds));
    wire_.varint(2, field.form == Form::micro_time ? uint64_t(when->nanos) : 0);
    return {};
  }

  WireWriter wire_;
};

bool has_protobuf(const Type& type) {
  for (const Field& field : type.fields()) {
    if (field.number) return true;
  }
  return false;
}

Result<json::value> canonical(const Type& type, json::value value) {
  Decoded decoded = TRY(decode(type, std::move(value)));
  return std::move(decoded.value);
}

}  // namespace

Result<json::value> from_protobuf(std::string_view bytes, const Type* expected) {
  json::value object = TRY(Reader().enveloped(bytes, expected, 0));
  const Type* type = root_type(get_string(object, "apiVersion"), get_string(object, "kind"));
  return canonical(type ? *type : *expected, std::move(object));
}

Result<json::value> message_from_protobuf(const Type& type, std::string_view bytes) {
  json::value value = TRY(Reader().message(type, bytes, 0));
  return canonical(type, std::move(value));
}

Result<std::string> message_to_protobuf(const Type& type, const json::value& value) {
  Writer writer;
  if (type.either) {
    TRY(writer.either(type, value));
    return writer.take();
  }
  if (!value.is_object()) return Error(Code::internal, "a message must be an object");
  TRY(writer.message(type, &value.get_object()));
  return writer.take();
}

namespace {

// Errors: not_acceptable.
Result<const Type*> enveloped_type(const json::value& object) {
  std::string_view api_version = get_string(object, "apiVersion"), kind = get_string(object, "kind");
  const Type* type = root_type(api_version, kind);
  if (!type || !has_protobuf(*type))
    return Error(Code::not_acceptable, "there is no protobuf form of " + quoted(kind) + " in version " + quoted(api_version));
  return type;
}

// Returns the position at which the object begins.
size_t begin_envelope(WireWriter& wire, const json::value& object) {
  wire.append(kMagic);
  size_t type_meta = wire.begin(1);
  wire.bytes(1, get_string(object, "apiVersion"));
  wire.bytes(2, get_string(object, "kind"));
  wire.end(type_meta);
  return wire.begin(2);
}

std::string end_envelope(WireWriter& wire, size_t begun) {
  wire.end(begun);
  wire.bytes(3, "");
  wire.bytes(4, "");
  return wire.take();
}

}  // namespace

Result<std::string> to_protobuf(const json::value& object) {
  const Type* type = TRY(enveloped_type(object));
  std::string raw = TRY(message_to_protobuf(*type, object));
  WireWriter wire;
  size_t begun = begin_envelope(wire, object);
  wire.append(raw);
  return end_envelope(wire, begun);
}

Result<ProtobufList> ProtobufList::begin(const json::object& head, std::string_view member) {
  const json::value object(head);
  const Type* type = TRY(enveloped_type(object));
  ProtobufList out;
  for (const Field& field : type->fields())
    if (field.name() == member && field.shape == Shape::list && field.number) out.items_ = &field;
  if (!out.items_) return Error(Code::internal, "a list without " + std::string(member));
  std::string rest = TRY(message_to_protobuf(*type, object));
  out.raw_ = begin_envelope(out.wire_, object);
  out.wire_.append(rest);
  return out;
}

Result<void> ProtobufList::add(const json::value& item) {
  std::string message = TRY(message_to_protobuf(items_->type(), item));
  wire_.bytes(items_->number, message);
  return {};
}

std::string ProtobufList::end() { return end_envelope(wire_, raw_); }

std::string watch_frame(std::string_view type, std::string_view object) {
  WireWriter event;
  event.bytes(1, type);
  size_t extension = event.begin(2);
  event.bytes(1, object);
  event.end(extension);
  std::string body = event.take();
  std::string frame;
  for (int shift : {24, 16, 8, 0}) frame += char(uint8_t(body.size() >> shift));
  return frame + body;
}

}  // namespace coracle::schema
