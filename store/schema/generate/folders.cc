// SPDX-License-Identifier: Apache-2.0
// Writes families.inc and strategies.inc: the lists of what the folders of store/kinds register. A folder registers rules if it
// has <folder>_kinds.cc, and strategies if it has server/<folder>_strategy.cc.
#include <filesystem>
#include <set>
#include <sstream>

#include "store/schema/generate/model.h"

namespace generate {
namespace {

namespace fs = std::filesystem;

// The names of the folders of `files` that contain a file <before><folder><after>.
std::set<std::string> folders_with(const std::vector<std::string>& files, const std::string& before, const std::string& after) {
  std::set<std::string> names;
  for (const std::string& file : files) {
    fs::path folder = fs::path(file).parent_path();
    std::string name = folder.filename();
    if (fs::exists(folder / (before + name + after))) names.insert(name);
  }
  return names;
}

std::string write_list(const std::set<std::string>& names, const std::string& type, const std::string& suffix,
                       const std::string& list) {
  std::ostringstream out;
  out << "// Generated from the folders of store/kinds. Not to be edited.\n";
  for (const std::string& name : names) out << "extern const " << type << " " << name << suffix << ";\n";
  out << "const " << type << "* const " << list << "[] = {\n";
  for (const std::string& name : names) out << "    &" << name << suffix << ",\n";
  out << "};\n";
  return out.str();
}

}  // namespace

std::string write_families(const std::vector<std::string>& files) {
  return write_list(folders_with(files, "", "_kinds.cc"), "KindFamily", "_family", "kKindFamilies");
}

std::string write_strategies(const std::vector<std::string>& files) {
  return write_list(folders_with(files, "server/", "_strategy.cc"), "StrategyFamily", "_strategies", "kStrategyFamilies");
}

}  // namespace generate
