// SPDX-License-Identifier: Apache-2.0
// Escapes text for HTML, between tags and in quoted attributes. Source: HTML, "13.3 Serializing HTML fragments"; Go
// html.EscapeString.
#pragma once

#include <string>
#include <string_view>

namespace coracle::api {

std::string escape_html(std::string_view text);

}  // namespace coracle::api
