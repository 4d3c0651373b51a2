// SPDX-License-Identifier: Apache-2.0
// libarchive turns names into the locale's encoding: UTF-8 for as long as this lives, on this thread alone.
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
