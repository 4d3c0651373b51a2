// SPDX-License-Identifier: Apache-2.0
// Sets the locale of this thread to UTF-8 while it lives, because libarchive converts names to the locale's encoding.
// Source: uselocale(3), libarchive's archive_entry_paths(3).
#pragma once

#include <locale.h>

namespace coracle::image {

class Utf8Locale {
 public:
  Utf8Locale() : utf8_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)), before_(utf8_ ? ::uselocale(utf8_) : nullptr) {}
  ~Utf8Locale() {
    if (!utf8_) return;
    ::uselocale(before_);
    ::freelocale(utf8_);
  }
  Utf8Locale(const Utf8Locale&) = delete;

 private:
  locale_t utf8_, before_;
};

}  // namespace coracle::image
