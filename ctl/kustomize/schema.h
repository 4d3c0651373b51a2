// SPDX-License-Identifier: Apache-2.0
// The schema for strategic merge patches: which lists merge by which keys. It comes from the built-in types, restricted to what
// kustomize's own schema (of Kubernetes 1.21) has, so that results are the same; or from an OpenAPI file that the kustomization
// names, which then replaces the built-in one. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/kustomize/id.h"
#include "store/schema/type.h"

namespace coracle::kustomize {

class OpenApi;

// The schema of one value. Without one, everything is absent.
class Schema {
 public:
  Schema() = default;
  bool known() const { return type_ || field_ || json_; }
  Schema field(std::string_view name) const;
  Schema elements() const;
  bool merges() const;                    // a list whose items merge instead of being replaced
  std::vector<std::string> keys() const;  // that identify an item; none: by value

 private:
  friend class OpenApi;
  const schema::Type* type_ = nullptr;    // of an object
  const schema::Field* field_ = nullptr;  // of a list or map
  bool owner_is_ephemeral_ = false;       // ephemeral containers' ports did not merge in 1.21
  const json::value* json_ = nullptr;     // in an OpenAPI file
  const OpenApi* file_ = nullptr;
};

class OpenApi {
 public:
  OpenApi() = default;
  // From an OpenAPI v2 document, as JSON or YAML. Errors: invalid.
  static Result<std::shared_ptr<const OpenApi>> read(std::string_view text);
  Schema of(const Gvk& gvk) const;  // of a type

 private:
  friend class Schema;
  Schema at(const json::value* value) const;  // follows $ref
  bool from_file_ = false;
  json::value document_;
};

}  // namespace coracle::kustomize
