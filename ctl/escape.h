// SPDX-License-Identifier: Apache-2.0
// Texts of objects as a terminal may show them. Whoever may write an event, an annotation or a container's message could
// otherwise colour, overwrite or hide what the administrator reads, or type for him. What a terminal would obey is written out
// instead:
//   ESC ─▶ ^[    BEL ─▶ ^G    CR ─▶ \r    DEL ─▶ ^?    U+009B ─▶ \u009b    U+202E ─▶ \u202e    a byte that is no UTF-8 ─▶ \x9b
// Used wherever people read: tables, describe, events, custom-columns, why, errors and warnings. JSON and YAML escape by
// themselves; jsonpath and logs give the bytes as they are, as kubectl's do. Pure; what was escaped once stays as it is.
// Source: kubectl's printers (which escape ESC and CR); ECMA-48; Unicode's bidirectional controls, "Trojan Source".
#pragma once

#include <string>
#include <string_view>

namespace coracle::ctl {

std::string visible_line(std::string_view text);   // one line: line breaks and tabs are written out too
std::string visible_lines(std::string_view text);  // line breaks and tabs stay

}  // namespace coracle::ctl
