// SPDX-License-Identifier: Apache-2.0
// Kinds of stored objects: those of the process, and those that only occur in a file (a custom resource whose definition has been
// deleted), which are kept unchanged. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "store/object/kind.h"

namespace coracle::engine {

using FindKind = std::function<const Kind*(std::string_view group, std::string_view resource)>;

class StoredKinds {
 public:
  explicit StoredKinds(FindKind find) : find_(std::move(find)) {}
  StoredKinds(StoredKinds&&) = default;
  // `text` is an object of that kind: it contains the version and kind of an unknown kind. The result lives as long as this
  // object.
  const Kind* of(std::string_view group, std::string_view resource, bool namespaced, std::string_view text);

 private:
  struct Foreign {
    std::string group, version, kind, resource;
    Kind value;
  };
  FindKind find_;
  std::deque<Foreign> foreign_;
};

}  // namespace coracle::engine
