// SPDX-License-Identifier: Apache-2.0
// The annotation in which client-side apply stores the configuration that it applied last. Pure. The texts are the same, byte for
// byte, as those that kubectl stores, so that both find an unchanged file unchanged.
// Source: kubectl pkg/util/apply.go.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/json.h"

namespace coracle::ctl {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// The value of the annotation on a live object; nothing if it has none.
std::optional<std::string_view> last_applied_text(const json::value& live);
// The configuration in the annotation; null if there is none or it is not JSON.
json::value last_applied_of(const json::value& live);

// The value of the annotation for an object that a file has: one line of JSON, with sorted members and without the annotation.
std::string applied_text(const json::value& object);
json::value with_last_applied(const json::value& object);  // the object with that annotation

// Adds the annotation to an object that was made from flags. Its members keep their order, which is that of Go's types.
void save_config(json::value& object);

// JSON text as Go's encoder writes it, which escapes what HTML and JavaScript would not read as text.
std::string escaped_markup(const std::string& text);

}  // namespace coracle::ctl
