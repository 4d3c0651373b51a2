// SPDX-License-Identifier: Apache-2.0
// See convert.h. The conversions are in store/kinds.
#include "store/schema/convert.h"

#include "store/object/object.h"
#include "store/schema/decode.h"
#include "store/schema/kind_family.h"

namespace coracle::schema {
namespace {

const VersionConversion* conversion_of(const KindInfo& info) {
  for (const KindFamily* family : kind_families())
    for (const VersionConversion& conversion : family->conversions)
      if (conversion.kind == info.kind.kind && conversion.api_version == info.kind.api_version()) return &conversion;
  return nullptr;
}

}  // namespace

json::value convert(const KindInfo& from, const KindInfo& to, json::value object) {
  if (&from == &to || !object.is_object()) return object;
  json::object& body = object.get_object();
  if (const VersionConversion* conversion = conversion_of(from)) conversion->to_stored(body);
  if (const VersionConversion* conversion = conversion_of(to)) conversion->from_stored(body);
  body["apiVersion"] = to.kind.api_version();
  body["kind"] = to.kind.kind;
  auto canonical = decode(to.type(), std::move(object));
  return MUST(std::move(canonical)).value;  // a test checks that conversions produce valid objects
}

ObjectPtr shown_as(const KindInfo& to, ObjectPtr stored) {
  const KindInfo& from = to.stored();
  if (&from == &to || !stored) return stored;
  return MUST(Object::make(to.kind, convert(from, to, stored->json())));
}

}  // namespace coracle::schema
