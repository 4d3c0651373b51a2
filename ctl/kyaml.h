// SPDX-License-Identifier: Apache-2.0
// KYAML, a strict subset of YAML between it and JSON: braces and brackets, all strings quoted, keys only where YAML could take
// them for something else. Pure. Source: KEP-5295; sigs.k8s.io/yaml/kyaml.
#pragma once

#include <string>
#include <string_view>

#include "ctl/go_json.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

// One document, with "---" before it.
std::string to_kyaml(const json::value& value, JsonOrder order = JsonOrder::sorted);

// True where a YAML parser may read the unquoted text as something else than a string: "no", "0x1f", "1:20", "2026-01-02".
bool is_ambiguous_yaml(std::string_view text);

}  // namespace coracle::ctl
