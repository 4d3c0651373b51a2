// SPDX-License-Identifier: Apache-2.0
// The schema compiler, run at build time: text (described in model.h) → tables.inc and views.h.
//   generate <tables.inc> <views.h> <text>...
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
  if (argc < 4) {
    std::cerr << "usage: generate <tables.inc> <views.h> <text>...\n";
    return 2;
  }
  generate::Model model = generate::parse(std::vector<std::string>(argv + 3, argv + argc));
  write(argv[1], generate::write_tables(model));
  write(argv[2], generate::write_views(model));
}
