// SPDX-License-Identifier: Apache-2.0
// Kinds of stored objects: those that the process knows, and those that only a file still speaks of (a custom resource
// whose definition is gone), which are kept as they are. One thread at a time.
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
  // `text` is an object of that kind: it says the version and the kind's name of one that nobody knows. Lives as long as this.
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
