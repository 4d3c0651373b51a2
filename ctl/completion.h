// SPDX-License-Identifier: Apache-2.0
// Shell completion: the words that may be inserted at the cursor. A shell calls `coraclectl __complete WORDS...`. The candidates
// come from the command tree (flags, and the first word of an argument's description: KIND, POD, NODE) and from the objects on
// the server.
//   words ──parse_line──▶ Line ──complete (asks Names)──▶ Completion ──▶ "word\tabout" lines, ":bits" ──▶ the shell's script
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctl/flags.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {

struct Line {                                // a partly typed command line
  Command command;                           // the innermost command named so far
  std::vector<std::string> positionals;      // the command's arguments, without flags
  std::map<std::string, std::string> given;  // flags with values, by name
  Flag flag;                                 // the flag whose value is being typed, or none
  std::string stem, word;                    // "--output=" and "ya" for "--output=ya"; otherwise "" and the word being typed
  bool behind_dashes = false;                // the cursor is after "--": words for a program in a container
};

// `words` follow the program's name. The last one is being typed and may be empty.
Line parse_line(Command root, const std::vector<std::string>& words);

class Names {  // candidates from the server. Every list is empty when the server cannot be reached; no error is reported.
 public:
  virtual ~Names() = default;
  virtual std::vector<std::string> objects(const schema::KindInfo& kind) = 0;
  virtual std::vector<std::string> containers(const schema::KindInfo& kind,
                                              const std::string& name) = 0;  // of a pod or a pod template
  virtual std::vector<std::string> images() = 0;
  virtual std::vector<std::string> of_kubeconfig(const std::string& list) = 0;  // "contexts", "clusters", "users"
};

struct Completion {
  struct Word {
    std::string text, about;
  };
  std::vector<Word> words;
  bool files = false;     // the shell completes file names itself
  bool no_space = false;  // the shell adds no space: the word may go on
};

Completion complete(const Line& line, Names& names);

}  // namespace coracle::ctl
