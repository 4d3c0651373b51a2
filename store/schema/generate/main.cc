// SPDX-License-Identifier: Apache-2.0
// The schema compiler, run at build time: text (model.h describes it) → tables.inc and views.h.
//   generate <tables.inc> <views.h> <text>...
#include <fstream>
#include <iostream>

#include "store/schema/generate/model.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: generate <tables.inc> <views.h> <text>...\n";
    return 2;
  }
  generate::Model model = generate::parse(std::vector<std::string>(argv + 3, argv + argc));
  std::ofstream tables(argv[1]), views(argv[2]);
  tables << generate::write_tables(model);
  views << generate::write_views(model);
  tables.close();
  views.close();
  if (!tables || !views) generate::fail(argv[1], "cannot be written");
}
