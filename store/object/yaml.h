// SPDX-License-Identifier: Apache-2.0
// YAML parsing and writing. It parses as Kubernetes does: the scalars of YAML 1.1 (yes and on are true, 0x10 is 16), merge keys,
// several documents. JSON is YAML, so it reads both kinds of manifests. libyaml does the work; Kubernetes' library is a port of
// it. Writing: yaml_emitter.h. Pure. Source: YAML 1.1; sigs.k8s.io/yaml (semantics).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

constexpr size_t kYamlBytesMax = 16u << 20;  // of a text; of what aliases add to it; of values with anchors
constexpr size_t kYamlDepthMax = kJsonDepthMax;
constexpr size_t kYamlTagDirectivesMax = 100;    // libyaml's time grows with the square of their number
constexpr size_t kYamlNodesMax = 2'000'000;      // of a text; an alias counts as its value
constexpr size_t kYamlAliasNodesMax = 100'000;   // nodes that aliases may add: a few lines must not expand to gigabytes
constexpr size_t kYamlAnchorNodesMax = 500'000;  // nodes in values with anchors; a nested value counts for each

// Parses all documents; empty ones are skipped. A UTF-8 byte order mark at the beginning is skipped. `lines`, if given, receives
// the first line of each document. A duplicate key in a map is an error; with `duplicates` the last one wins, and the paths are
// added to it, as parse_json() does ("spec.replicas"). Errors: bad_request, with the line; too_large for a limit.
Result<std::vector<json::value>> parse_yaml(std::string_view text, std::vector<size_t>* lines = nullptr,
                                            std::vector<std::string>* duplicates = nullptr);

// The duplicate keys in the maps of a text that parse_yaml() accepts, as Go's reader words them: line 3: key "a" already set in
// map. Empty if it does not accept the text.
std::vector<std::string> duplicate_keys_by_line(std::string_view text);

// Writes one document as kubectl does, without "---": keys sorted, lines broken after 80 characters where that changes nothing.
std::string to_yaml(const json::value& value);

}  // namespace coracle
