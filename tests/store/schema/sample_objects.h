// SPDX-License-Identifier: Apache-2.0
// One valid object of every kind that can be created, by apiVersion and kind, for tests over all kinds: the files
// store/kinds/<folder>/<folder>_samples.yaml. Tests fail if a kind of the catalog is missing there. Namespaced objects are in
// "default". A program that uses them needs CORACLE_SOURCE, the directory of the source.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/sys/file.h"
#include "store/object/yaml.h"

namespace coracle {

// The text has neither apiVersion nor kind; "" for a kind whose objects must be generated.
inline const std::map<std::string, std::string>& sample_objects() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> samples;
    const char* source = std::getenv("CORACLE_SOURCE");
    for (const auto& folder : std::filesystem::directory_iterator(std::string(source ? source : ".") + "/store/kinds")) {
      std::filesystem::path file = folder.path() / (folder.path().filename().string() + "_samples.yaml");
      if (!std::filesystem::exists(file)) continue;
      for (json::value& object : MUST(parse_yaml(MUST(sys::read_file(file.string()))))) {
        std::string kind = std::string(get_string(object, "apiVersion")) + "/" + std::string(get_string(object, "kind"));
        object.get_object().erase("apiVersion");
        object.get_object().erase("kind");
        samples.emplace(std::move(kind), object.get_object().empty() ? "" : to_text(object));
      }
    }
    if (samples.empty())
      MUST(Result<void>(Error(Code::not_found, "no samples: CORACLE_SOURCE must name the directory of the source")));
    return samples;
  }();
  return all;
}

}  // namespace coracle
