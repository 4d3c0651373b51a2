// SPDX-License-Identifier: Apache-2.0
// What is wrong with a text that parse_yaml() refused, in kubectl's words. Pure. Source: apimachinery pkg/util/yaml/decoder.go,
// YAMLOrJSONDecoder; Go's encoding/json/jsontext.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::ctl {

// A text that begins with { was meant as JSON, so what stands after "error parsing NAME: " is said of JSON then:
// "json: offset 53: invalid character '"' after object key". Before errors that are not parse_yaml's stands the name alone.
Error parse_error(Error error, const std::string& name, std::string_view text);

// The first mistake in JSON values that stand one after the other, as Go's decoder tells it. Nothing: there is none.
std::optional<std::string> json_mistake(std::string_view text);

}  // namespace coracle::ctl
