// SPDX-License-Identifier: Apache-2.0
// See name_hash.h.
#include "ctl/name_hash.h"

#include "ctl/last_applied.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr size_t kHashLetters = 10;

// Digits and vowels that could make words become other letters.
char name_letter(char hex) {
  switch (hex) {
    case '0': return 'g';
    case '1': return 'h';
    case '3': return 'k';
    case 'a': return 'm';
    case 'e': return 't';
    default: return hex;
  }
}

}  // namespace

std::string name_hash(const json::value& object) {
  std::string_view kind = kind_in(object);
  view::ConfigMap map(object);  // a Secret has its data and whether it is immutable at the same place
  json::object hashed{{"kind", kind}, {"name", metadata_of(object).name()}, {"data", map.data()}};
  if (kind == "Secret") hashed["type"] = view::Secret(object).type();
  if (map.has_immutable()) hashed["immutable"] = map.immutable();
  const json::object& binary = map.binary_data();
  if (kind == "ConfigMap" && !binary.empty()) hashed["binaryData"] = binary;
  Sha256 digest = sha256_of(escaped_markup(to_sorted_text(hashed)));
  std::string letters;
  for (char c : hex(as_text(digest)).substr(0, kHashLetters)) letters += name_letter(c);
  return letters;
}

void append_hash(json::value& object) {
  std::string name(metadata_of(object).name());
  make(object, "metadata.name") = name + "-" + name_hash(object);
}

}  // namespace coracle::ctl
