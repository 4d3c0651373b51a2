// SPDX-License-Identifier: Apache-2.0
// Type and Field: the schema of Kubernetes types as read-only data. generate/ compiles the text under types/ to one pool of
// characters and to arrays of these structs. They contain indexes, not pointers, so that the tables need no relocation, heap or
// initialisation, and processes share their pages.
//
//   store/kinds/*/*.v1 ──generate──▶ tables.inc ──tables.cc──▶ Type, Field ──▶ decode, default, validate, merge, protobuf,
//   openapi,
//                        └──▶ views.h                                   tables, explain
//
// Thread-safe: everything is constant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::schema {

struct Text {  // a string in the pool
  uint32_t at = 0;
  uint32_t size = 0;
  std::string_view view() const;
};

enum class Form : uint8_t {  // of one value
  string,
  int32,
  int64,
  boolean,
  number,      // a double
  bytes,       // base64 in JSON
  time,        // RFC 3339 to the second
  micro_time,  // RFC 3339 with six digits
  duration,    // "1m30s", in Go's format
  quantity,    // "100m", "1Gi"; a number is accepted
  int_or_string,
  any,      // any JSON (RawExtension)
  fields,   // the field set of managedFields (FieldsV1): any JSON object
  strings,  // a list of strings that is a message in protobuf (ExtraValue, Verbs)
  object,   // type() is its type
};

enum class Shape : uint8_t { one, list, map };  // map: keys are strings

enum class ListKind : uint8_t { atomic, set, map };  // how lists merge for several managers; map: by list_keys()

struct Type;

struct Field {
  Text name_, default_, values_, merge_key_, list_keys_, doc_;
  uint16_t type_;
  uint16_t number;   // in protobuf; 0: none
  uint16_t inlined;  // number of the nested protobuf message that contains it; 0: none; two levels: outer * 256 + inner
  Form form;
  Shape shape;
  ListKind list;
  bool required;         // must be given
  bool may_be_empty;     // required, but may be empty
  bool always;           // written even if empty or zero
  bool pointer;          // unset differs from zero
  bool closed;           // only values() are allowed; otherwise they are only the known ones
  bool merges;           // strategic merge: list items merge by merge_key() or, without one, by value
  bool retains_keys;     // strategic merge: a patch drops the keys that it does not name ($retainKeys)
  bool replaced;         // strategic merge: an object that a patch replaces as a whole
  bool atomic;           // server-side apply replaces the map or object as a whole
  bool granular;         // an object that server-side apply merges by its fields, though its type is atomic
  bool ruled;            // required and closed are only used in documents; a rule in validate/ checks the field
  bool default_by_rule;  // the default depends on other fields: a rule in store/kinds

  std::string_view name() const { return name_.view(); }             // in JSON
  std::string_view doc() const { return doc_.view(); }               // one line; "" if absent
  std::string_view default_json() const { return default_.view(); }  // "": none
  std::string_view merge_key() const { return merge_key_.view(); }
  std::vector<std::string_view> values() const;     // of an enumeration
  std::vector<std::string_view> list_keys() const;  // ListKind::map
  const Type& type() const;                         // Form::object only
};

struct Package {  // one group and version
  Text name_, group_, version_, openapi_;
  std::string_view name() const { return name_.view(); }        // "core", "apps"
  std::string_view group() const { return group_.view(); }      // "", "apps", "discovery.k8s.io"
  std::string_view version() const { return version_.view(); }  // "v1"
  std::string_view openapi() const { return openapi_.view(); }  // "io.k8s.api.apps.v1"
};

struct Type {
  Text name_, doc_, api_version_;
  uint16_t first_field, field_count;
  uint16_t package_;
  bool root;                                              // has apiVersion and kind: can be sent on its own
  bool atomic;                                            // server-side apply replaces it as a whole
  bool either;                                            // a union: in JSON the value of one of its fields, see alternative()
  std::string_view name() const { return name_.view(); }  // "PodSpec"
  std::string_view doc() const { return doc_.view(); }
  std::string_view api_version() const { return api_version_.view(); }  // root types: "v1", "apps/v1"
  const Package& package() const;
  std::string openapi_name() const;       // "io.k8s.api.core.v1.PodSpec"
  std::span<const Field> fields() const;  // in canonical order
  const Field* field(std::string_view json_name) const;
  // The same, for lookups in order: searches first after `last`, the previous result (nullptr: none).
  const Field* field_after(const Field* last, std::string_view json_name) const;
  // For a union: the first field whose shape and form match `value`; nullptr if none does.
  const Field* alternative(const json::value& value) const;
  uint16_t index() const;  // position in all_types()
};

// Of the schema text.
std::span<const Type> all_types();
std::span<const Package> all_packages();

// Null if there is none.
const Type* type_named(std::string_view openapi_name);  // "io.k8s.api.core.v1.PodSpec"
// The type of an object with apiVersion and kind: "v1" "Pod", "apps/v1" "DeploymentList", "v1" "Status". Types that belong to
// every group (DeleteOptions, Status, ...) are found under any apiVersion.
const Type* root_type(std::string_view api_version, std::string_view kind);

}  // namespace coracle::schema
