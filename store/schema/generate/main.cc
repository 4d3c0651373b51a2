// SPDX-License-Identifier: Apache-2.0
// The schema compiler, run at build time: text (described in model.h) → tables.inc and views.h; the folders of the text → the lists
// of what their code registers.
//   generate <tables.inc> <views.h> <families.inc> <strategies.inc> <text>...
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "store/schema/generate/model.h"

namespace {

// A file with the same contents is not written, so that dependent files are not rebuilt.
void write(const char* path, const std::string& text) {
  std::ifstream before(path, std::ios::binary);
  if (before && std::string(std::istreambuf_iterator<char>(before), {}) == text) return;
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) generate::fail(path, "cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::cerr << "usage: generate <tables.inc> <views.h> <families.inc> <strategies.inc> <text>...\n";
    return 2;
  }
  std::vector<std::string> files(argv + 5, argv + argc);
  generate::Model model = generate::parse(files);
  write(argv[1], generate::write_tables(model));
  write(argv[2], generate::write_views(model));
  write(argv[3], generate::write_families(files));
  write(argv[4], generate::write_strategies(files));
}
