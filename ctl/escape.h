// SPDX-License-Identifier: Apache-2.0
// Escapes text from objects for a terminal. Without it, anybody who may write an event, an annotation or a container's message
// could colour, overwrite or hide what the administrator reads, or insert input. Control characters are printed as text:
//   ESC ─▶ ^[    BEL ─▶ ^G    CR ─▶ \r    DEL ─▶ ^?    U+009B ─▶ \u009b    U+202E ─▶ \u202e    a byte that is no UTF-8 ─▶ \x9b
// Used for all output that people read: tables, describe, events, custom-columns, why, errors and warnings. JSON and YAML have
// escapes of their own; jsonpath and logs print the bytes unchanged, as kubectl does. Pure and idempotent.
// Source: kubectl's printers (which escape ESC and CR); ECMA-48; Unicode's bidirectional controls, "Trojan Source".
#pragma once

#include <string>
#include <string_view>

namespace coracle::ctl {

std::string visible_line(std::string_view text);   // returns one line: line breaks and tabs are escaped too
std::string visible_lines(std::string_view text);  // keeps line breaks and tabs

}  // namespace coracle::ctl
