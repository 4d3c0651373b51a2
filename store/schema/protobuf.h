// SPDX-License-Identifier: Apache-2.0
// Kubernetes' protobuf, transcoded from and to JSON by the tables' field numbers: no generated messages.
//   body = "k8s\0" + runtime.Unknown{1: TypeMeta{1 apiVersion, 2 kind}, 2: raw, 3: contentEncoding, 4: contentType}
// The object is in raw, without apiVersion and kind. Input is hostile: sizes, depth and counts have limits, unknown field
// numbers are skipped, UTF-8 is checked. Pure; thread-safe.
// Source: apimachinery runtime/serializer/protobuf, generated.proto of each group; protobuf wire format.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"
#include "store/schema/wire.h"

namespace coracle::schema {

constexpr size_t kProtobufDepthMax = 100;
constexpr size_t kProtobufValuesMax = 1'000'000;  // values made from one message

// The object of an enveloped body, with apiVersion and kind, canonical (decode.h). `expected` names the type when the
// envelope says none. Errors: bad_request; unsupported when the schema does not know the kind; too_large.
Result<json::value> from_protobuf(std::string_view bytes, const Type* expected = nullptr);

// Enveloped. Reads apiVersion and kind of `object`; lists, Status, DeleteOptions, PartialObjectMetadata(List) too.
// Errors: not_acceptable when the schema has no protobuf for it (Table); internal when a value contradicts the schema.
Result<std::string> to_protobuf(const json::value& object);

// The same of a list, whose items come one after the other and need not be there together.
class ProtobufList {
 public:
  // `head`: the list without its items, which are in `member`. Errors: as to_protobuf.
  static Result<ProtobufList> begin(const json::object& head, std::string_view member);
  Result<void> add(const json::value& item);
  std::string end();  // nothing may follow

 private:
  ProtobufList() = default;
  WireWriter wire_;
  const Field* items_ = nullptr;
  size_t raw_ = 0;
};

// One frame of a watch: length, then WatchEvent{1 type, 2 RawExtension{1 raw}}. `type`: "ADDED"; `object` is enveloped bytes.
std::string watch_frame(std::string_view type, std::string_view object);

// The bare messages, without an envelope.
Result<json::value> message_from_protobuf(const Type& type, std::string_view bytes);
Result<std::string> message_to_protobuf(const Type& type, const json::value& value);

}  // namespace coracle::schema
