// SPDX-License-Identifier: Apache-2.0
// Kubernetes' protobuf, converted from and to JSON with the field numbers of the tables; there are no generated messages.
//   body = "k8s\0" + runtime.Unknown{1: TypeMeta{1 apiVersion, 2 kind}, 2: raw, 3: contentEncoding, 4: contentType}
// The object is in raw, without apiVersion and kind. Input is untrusted: sizes, depth and counts are limited, unknown field
// numbers are skipped, UTF-8 is checked. Pure; thread-safe. Source: apimachinery runtime/serializer/protobuf, generated.proto of
// each group; protobuf wire format.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"
#include "store/schema/wire.h"

namespace coracle::schema {

constexpr size_t kProtobufDepthMax = 100;
constexpr size_t kProtobufValuesMax = 1'000'000;  // values created from one message

// The object of an enveloped body, with apiVersion and kind, canonical (decode.h). `expected` is the type if the envelope names
// none. Errors: bad_request; unsupported for an unknown kind; too_large.
Result<json::value> from_protobuf(std::string_view bytes, const Type* expected = nullptr);

// Encodes with an envelope. Uses apiVersion and kind of `object`; also encodes lists, Status, DeleteOptions,
// PartialObjectMetadata(List). Errors: not_acceptable if the type has no protobuf (Table); internal if a value contradicts the
// schema.
Result<std::string> to_protobuf(const json::value& object);

// Encodes a list item by item, so that not all items must be in memory.
class ProtobufList {
 public:
  // `head`: the list without its items; `member` is their field. Errors: those of to_protobuf.
  static Result<ProtobufList> begin(const json::object& head, std::string_view member);
  Result<void> add(const json::value& item);  // Errors: those of to_protobuf
  std::string end();                          // must be the last call

 private:
  ProtobufList() = default;
  WireWriter wire_;
  const Field* items_ = nullptr;
  size_t raw_ = 0;
};

// One frame of a watch: length, then WatchEvent{1 type, 2 RawExtension{1 raw}}. `type`: "ADDED"; `object`: enveloped bytes.
std::string watch_frame(std::string_view type, std::string_view object);

// Messages without an envelope. Errors: as from_protobuf() and to_protobuf().
Result<json::value> message_from_protobuf(const Type& type, std::string_view bytes);
Result<std::string> message_to_protobuf(const Type& type, const json::value& value);

}  // namespace coracle::schema
