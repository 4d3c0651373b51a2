// SPDX-License-Identifier: Apache-2.0
// Builds a kustomization: what `kubectl kustomize DIR` prints, and `-k DIR` sends.
//
//   kustomization file ──settings.h──▶ resources, bases, components ──▶ generators ──▶ transformers ──▶ vars    for each
//   directory then, once: hashes in names ──▶ name references ──▶ values of vars ──▶ order
//
// Files come from the directory tree only: remote bases, charts and external plugins are refused. Blocks on the file system;
// each build is bounded (loader.h, node.h). Source: kustomize 5.8.1, which kubectl 1.36 contains.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::kustomize {

enum class Order : uint8_t { as_given, by_kind };  // of the objects, unless the kustomization has sortOptions

struct BuildOptions {
  bool restricted = true;  // files of a kustomization have to be in or below its directory
  Order order = Order::as_given;
  bool managed_by_label = false;
};

struct Built {
  std::vector<json::value> objects;
  std::vector<std::string> warnings;
};

// Errors: with the kustomization file, and the field or object.
Result<Built> build(const std::string& directory, const BuildOptions& options);

// The namespace that an object is in, "default" if it has none; "" for a kind that is certainly in none.
std::string namespace_of(const json::value& object);

std::string to_yaml_stream(const std::vector<json::value>& objects);  // documents separated by ---

}  // namespace coracle::kustomize
