// SPDX-License-Identifier: Apache-2.0
// YAML in and out, read as Kubernetes reads it: the scalars of YAML 1.1 (yes and on are true, 0x10 is 16), merge keys, several
// documents in one text; written as kubectl writes it: keys sorted, block style. JSON is YAML, so manifests of both kinds enter
// here. libyaml does the reading and writing; Kubernetes' own library is a port of it. Pure.
// Source: YAML 1.1; sigs.k8s.io/yaml (semantics).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

constexpr size_t kYamlBytesMax = 16u << 20;  // of a text; of what aliases add to it; of what has anchors
constexpr size_t kYamlDepthMax = kJsonDepthMax;
constexpr size_t kYamlTagDirectivesMax = 100;    // libyaml compares each with all before it, and a tag with all
constexpr size_t kYamlNodesMax = 2'000'000;      // of a text, aliases counted as what they stand for
constexpr size_t kYamlAliasNodesMax = 100'000;   // nodes that aliases may add: a few lines must not become gigabytes
constexpr size_t kYamlAnchorNodesMax = 500'000;  // nodes of values with anchors; of one in another they count for both

// All documents; empty ones are left out. A UTF-8 byte order mark at the beginning is skipped. `lines`, when given, gets the line
// each document starts on. A key that stands twice in a map is an error, unless `duplicates` is given: then the last one counts,
// and the paths are added to it as parse_json() does ("spec.replicas"). Errors: bad_request, naming the line; too_large for a
// limit.
Result<std::vector<json::value>> parse_yaml(std::string_view text, std::vector<size_t>* lines = nullptr,
                                            std::vector<std::string>* duplicates = nullptr);

// One document, without "---".
std::string to_yaml(const json::value& value);

}  // namespace coracle
