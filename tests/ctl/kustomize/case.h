// SPDX-License-Identifier: Apache-2.0
// Cases of kustomizations: a text file with a sentence, then files as "-- path --" and their content. Beside the files: "build",
// the directory to build; "want", the output; "error", a part of the error. tests/clients/kustomize.sh compares them with
// kubectl.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace coracle::kustomize {

inline std::map<std::string, std::string> sections_of(std::string_view text) {
  std::map<std::string, std::string> sections;
  std::string name = "about";
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (line.starts_with("-- ") && line.ends_with(" --") && line.size() > 6) sections[name = line.substr(3, line.size() - 6)];
    else sections[name].append(line).append("\n");
  }
  return sections;
}

}  // namespace coracle::kustomize
