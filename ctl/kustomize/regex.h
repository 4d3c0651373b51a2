// SPDX-License-Identifier: Apache-2.0
// Regular expressions for the selectors of patches, replacements and images. Time is linear in text and pattern: std::regex may
// take exponential time and overflow the stack, and a kustomization may come from anywhere. Pure.
// Syntax, of RE2's: . [a-z] [^a-z] \d \w \s \D \W \S | ( ) (?: ) (?i) * + ? {n,m} ^ $. Bytes, not characters, are matched.
#pragma once

#include <bitset>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::kustomize {

constexpr size_t kRegexBytesMax = 1000;
constexpr size_t kRegexStepsMax = 20'000;  // of the compiled program: repetitions are written out

class Regex {
 public:
  // Errors: invalid, with the pattern and what is wrong; too_large.
  static Result<Regex> compile(std::string_view pattern);
  // "" matches everything; any other pattern has to match the whole text.
  static Result<Regex> compile_anchored(std::string_view pattern);
  bool finds(std::string_view text) const;  // a match anywhere in the text

  enum class Op : uint8_t { set, split, jump, begin, end, match };
  struct Step {
    Op op;
    uint32_t to = 0, other = 0;  // split: both; jump: `to`; set: index in sets
  };

 private:
  friend class RegexParser;
  std::vector<Step> steps_;
  std::vector<std::bitset<256>> sets_;
};

}  // namespace coracle::kustomize
