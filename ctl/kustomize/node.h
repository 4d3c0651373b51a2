// SPDX-License-Identifier: Apache-2.0
// Node: the tree of a YAML document while a kustomization works on it. It keeps what JSON loses: the order of keys, the text of
// a scalar, and whether the scalar was quoted. Kustomize copies texts between fields without regard to their types, and the type
// follows from text, tag and quotes at the end only: a number that is patched onto a quoted string is a string.
//
//   YAML ──read.h──▶ Node ──transformers──▶ Node ──to_json()──▶ JSON ──▶ YAML or the API
//
// Pure. Source: YAML 1.2, as kustomize's library reads it: "yes" and "on" are text, 0644 is octal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::kustomize {

constexpr size_t kTextBytesMax = 16u << 20;  // of one scalar
constexpr size_t kTreeNodesMax = 300'000;    // of one resource
constexpr size_t kTreeDepthMax = kJsonDepthMax;

// Type of a scalar; none: it follows from the text.
enum class Tag : uint8_t { none, string, integer, number, boolean, null, time };

struct Member;

struct Node {
  enum class Kind : uint8_t { scalar, map, list };

  Kind kind = Kind::scalar;
  Tag tag = Tag::none;
  bool quoted = false;          // a scalar that was written with quotes or as a block
  bool kept = false;            // a null that stays, though null in a patch removes a field
  uint32_t begin = 0, end = 0;  // where a scalar was read: the number of characters before it, and before what follows
  std::string text;             // scalar
  std::vector<Member> members;
  std::vector<Node> items;

  static Node scalar(std::string text, Tag tag = Tag::none);
  static Node string(std::string text);
  static Node null();
  static Node map();
  static Node list();

  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_map() const { return kind == Kind::map; }
  bool is_list() const { return kind == Kind::list; }
  bool is_null() const { return tag == Tag::null; }
  bool is_text() const { return is_scalar() && (tag == Tag::string || tag == Tag::none); }
  bool empty() const;              // null, {} or []
  std::string_view value() const;  // the text; "" for null, maps and lists

  const Node* find(std::string_view key) const;  // nullptr: absent, or this is not a map
  Node* find(std::string_view key);
  // Sets a field. An existing one keeps its place and its quotes. A null that is not kept removes it. This must be a map.
  void set(std::string_view key, Node value);
  Node& make(std::string_view key, Kind kind);  // the field, created if it is absent or null
  bool erase(std::string_view key);
};

struct Member {
  std::string key;
  Node value;
};

const char* kind_name(Node::Kind kind);  // "text", "a map", "a list"

// The type of a plain scalar.
Tag tag_of(std::string_view text);

// Errors: invalid, with the path, for a text that does not fit its tag, which arises by copying; too_large.
Result<json::value> to_json(const Node& node);
Node from_json(const json::value& value);

// Errors: too_large if the tree has too many nodes, is too deep, or has a too long text.
Result<void> check_size(const Node& node);

// JSON as Go's encoding/json writes it: members sorted, HTML characters escaped. Hashes are computed of it.
std::string go_json(const json::value& value, int indent = 0);

}  // namespace coracle::kustomize
