// SPDX-License-Identifier: Apache-2.0
// Completion of a command line: what may stand where the cursor is. Shells ask by `coraclectl __complete WORDS...`; what
// may stand there follows from the tree of commands (its flags, and what the descriptions of its arguments begin
// with: KIND, POD, NODE) and from the machine's objects.
//   words ──parse_line──▶ Line ──complete (asks Names)──▶ Completion ──▶ "word\tabout" lines, ":bits" ──▶ the shell's script
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctl/flags.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {

struct Line {                                // a command line as far as it was typed
  Command command;                           // the deepest one named
  std::vector<std::string> positionals;      // behind the command, flags left out
  std::map<std::string, std::string> given;  // flags with values, by name
  Flag flag;                                 // whose value is being typed
  std::string stem, word;                    // "--output=" and "ya" of "--output=ya"; else "" and the word being typed
  bool behind_dashes = false;                // behind "--": words for a program in a container
};

// `words`: behind the program's name; the last one is being typed, perhaps empty.
Line parse_line(Command root, const std::vector<std::string>& words);

class Names {  // what the machine knows. Quiet: empty when it cannot be asked.
 public:
  virtual ~Names() = default;
  virtual std::vector<std::string> objects(const schema::KindInfo& kind) = 0;
  virtual std::vector<std::string> containers(const schema::KindInfo& kind,
                                              const std::string& name) = 0;  // of a pod, or a template
  virtual std::vector<std::string> images() = 0;
  virtual std::vector<std::string> of_kubeconfig(const std::string& list) = 0;  // "contexts", "clusters", "users"
};

struct Completion {
  struct Word {
    std::string text, about;
  };
  std::vector<Word> words;
  bool files = false;     // the shell's own file names instead
  bool no_space = false;  // more of the same word may follow
};

Completion complete(const Line& line, Names& names);

}  // namespace coracle::ctl
