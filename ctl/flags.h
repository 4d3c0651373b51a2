// SPDX-License-Identifier: Apache-2.0
// A program's command line: the tree of its commands with their flags and arguments, and the reading of a line. A cover for
// CLI11, whose templates take seconds to compile: flags.cc alone includes it.
//   CommandLine ──root()──▶ Command ──add_command()──▶ Command ──add_option(), add_flag()──▶ Flag
//               ──parse(line)──▶ the variables of the flags that it gives, on_chosen() of the command that it names
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace coracle::ctl {

// A flag as "-o,--output", or an argument as "name", which has its place instead. A handle: it is copied freely, is good as long
// as its CommandLine, and may stand for none, of which nothing can be asked.
class Flag {
 public:
  Flag() = default;
  explicit Flag(CLI::Option* option) : option_(option) {}
  explicit operator bool() const { return option_; }

  // Each gives the flag back.
  Flag required() const;                                           // a line without it is wrong
  Flag one_of(std::initializer_list<std::string_view> all) const;  // a line with another value is wrong
  Flag delimiter(char sign) const;                                 // one word may hold several values of a list
  Flag as_text() const;                                            // of a list: help shows its default as one empty text
  Flag optional_value(std::string_view otherwise) const;           // "--flag" alone means "--flag=otherwise", which is not empty
  Flag as_duration() const;                                        // of a text: a line with another than "1m30s" or "30" is wrong
  Flag as_pairs() const;                                           // of a list: a line with another than "KEY=VALUE,..." is wrong
  Flag hide() const;                                               // from help and completion

  size_t count() const;  // how many values the line gave it

  std::string name() const;                             // "output": the first long name, or else what there is, as "-x"
  const std::vector<std::string>& long_names() const;   // without dashes
  const std::vector<std::string>& short_names() const;  // likewise
  const std::string& about() const;
  bool hidden() const;  // from help
  bool is_required() const;
  bool is_argument() const;  // not named, but in its place
  // What a line that does not give it means: "false", "30s", "[]", "" for an empty text. Good until a line is read.
  std::string default_text() const;
  bool needs_value() const;  // and takes the next word for it
  bool may_have_value() const;
  bool takes_many() const;  // values

 private:
  CLI::Option* option_ = nullptr;
};

// A command of the tree, or its root. A handle, as Flag is.
class Command {
 public:
  Command() = default;
  explicit Command(CLI::App* app) : app_(app) {}
  explicit operator bool() const { return app_; }
  bool operator==(const Command&) const = default;

  // A command below this one. What is a flag of this one is accepted behind that one too. A name twice is a bug, and ends the
  // process.
  Command add_command(std::string_view name, std::string_view about) const;

  // A flag with a value, or an argument. `value` is where a line's goes: it outlives the parsing, holds the default, and is left
  // alone by a line that does not give it; of a flag that is given several times, the last one counts. A number has to be one. A
  // name twice is a bug, as above.
  Flag add_option(std::string_view names, std::string& value, std::string_view about) const;
  Flag add_option(std::string_view names, int& value, std::string_view about) const;
  Flag add_option(std::string_view names, int64_t& value, std::string_view about) const;
  // A flag takes one word each time that it is given, and its values add up; an argument takes all words that are left.
  Flag add_option(std::string_view names, std::vector<std::string>& values, std::string_view about) const;
  // A flag without a value, but for "--name=false" and what else Go reads as a bool. Behind "!" a name that means the contrary:
  // "--wait,!--no-wait".
  Flag add_flag(std::string_view names, bool& value, std::string_view about) const;

  Command alias(std::string_view name) const;   // gives the command back
  Command footer(std::string_view text) const;  // below its help; gives the command back
  Command hide() const;                         // from help; gives the command back
  void require_command() const;                 // a line that names none of the commands below is wrong
  // Calls `act` once a line was read without an error, if the line names this command and none below it.
  void on_chosen(std::function<void()> act) const;

  std::string name() const;
  std::string about() const;
  std::string footer() const;
  std::vector<std::string> aliases() const;
  bool hidden() const;                              // from help
  bool answers_to(const std::string& word) const;   // is its name, or an alias
  Command parent() const;                           // of the root: none
  std::vector<Command> commands() const;            // below it, in the order of help
  std::vector<Flag> flags() const;                  // and arguments, in that order; not those of the commands above
  Flag find_flag(const std::string& dashed) const;  // by "-o" or "--output", likewise; none where there is none

  Command given_command() const;  // of those below, the one that the line named, or none

 private:
  CLI::App* app_ = nullptr;
};

// As Go's strconv.ParseBool, by which kubectl reads "--wait=false": 1, t, T, true, True, TRUE and their contraries. Nothing for
// others.
std::optional<bool> parse_bool(std::string_view text);

// Owns the tree.
class CommandLine {
 public:
  CommandLine(std::string_view program, std::string_view about);
  ~CommandLine();

  Command root() const { return Command(app_.get()); }

  // Reads a line, once, the program first. Flags are read as kubectl reads them: "-n=default" is "-n default", "--output=" is an
  // empty value, and a flag whose value may be left out never takes the next word. Gives true where the line asks for help, which
  // is the caller's to print. Errors: bad_request, with the parser's words; of a value that its flag cannot have, with those of
  // kubectl.
  Result<bool> parse(int count, const char* const* words);

  // The line as kubectl's --record keeps it: the program's name without its directory, what is no flag, `rest`, and then each
  // flag with its whole name and its value: "coraclectl scale deployment/web --replicas=3 --record=true". A token and a password
  // are left out. For a line that was read.
  std::string recorded(const std::vector<std::string>& rest) const;

 private:
  std::unique_ptr<CLI::App> app_;
  std::string program_;                         // as the line calls it
  std::vector<std::string> arguments_, given_;  // of the line; the flags as "--name=value"
};

}  // namespace coracle::ctl
