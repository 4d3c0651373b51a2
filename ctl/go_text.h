// SPDX-License-Identifier: Apache-2.0
// Go's view of text: runes, the classes of characters that its packages ask for, quoted strings. kubectl's templates and KYAML
// are defined by it. Pure. Source: Go's unicode, unicode/utf8 and strconv packages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::ctl {

constexpr char32_t kRuneError = 0xfffd;
constexpr char32_t kRuneMax = 0x10ffff;

struct Rune {
  char32_t value = kRuneError;
  size_t width = 0;                                                  // in bytes; 0: the text is empty
  bool broken() const { return value == kRuneError && width == 1; }  // a byte that is no UTF-8
};

Rune first_rune(std::string_view text);
size_t count_runes(std::string_view text);
std::string_view first_runes(std::string_view text, size_t count);  // at most that many
void append_rune(std::string& out, char32_t rune);                  // U+FFFD for what is no rune
bool is_rune(char32_t rune);                                        // no surrogate, and not too large

// Beyond ASCII these follow the C library's tables, which are of another version of Unicode than Go's.
bool is_printable(char32_t rune);  // letters, marks, numbers, punctuation, symbols and the ASCII space
bool is_alphanumeric(char32_t rune);
bool is_space_rune(char32_t rune);

// In quotes, with escapes; with `ascii` also for all that is beyond ASCII. As %q and %+q print it.
std::string go_quoted(std::string_view text, char quote = '"', bool ascii = false);
std::string go_quoted_rune(char32_t rune, bool ascii = false);  // in single quotes
std::string shown_rune(char32_t rune);                          // as %#U: "U+002A '*'"

// The character that `text` begins with, where a `quote` encloses it; removes it. Errors: invalid, "invalid syntax".
struct UnquotedChar {
  char32_t value;
  bool multibyte;
};
Result<UnquotedChar> take_unquoted(std::string_view& text, char quote);
// The content of a string literal, "…" or `…`. Errors: invalid, "invalid syntax".
Result<std::string> go_unquoted(std::string_view literal);
// The same for jsonpath, which takes '…' for a string, too.
Result<std::string> unquoted_extended(std::string_view literal);

}  // namespace coracle::ctl
