// SPDX-License-Identifier: Apache-2.0
// See flags.h. The only file of coraclectl that includes CLI11.
#include "ctl/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"

namespace coracle::ctl {

constexpr const char* kOneText = "KEY=VALUE,...";  // the type of a list that is one text to its user
constexpr const char* kDuration = "DURATION";      // the type of a text that is a duration
constexpr const char* kPairs = "KEY=VALUE";        // the type of a list of such pairs

// ---- flags ----

Flag Flag::required() const {
  option_->required();
  return *this;
}

Flag Flag::one_of(std::initializer_list<std::string_view> all) const {
  option_->check(CLI::IsMember(std::vector<std::string>(all.begin(), all.end())));
  return *this;
}

Flag Flag::delimiter(char sign) const {
  option_->delimiter(sign);
  return *this;
}

Flag Flag::optional_value(std::string_view otherwise) const {
  option_->expected(0, 1)->default_str(std::string(otherwise));
  return *this;
}

Flag Flag::as_duration() const {
  option_->type_name(kDuration);
  return *this;
}

Flag Flag::as_pairs() const {
  option_->type_name(kPairs);
  return *this;
}

Flag Flag::hide() const {
  option_->group("");
  return *this;
}

size_t Flag::count() const { return option_->count(); }

std::string Flag::name() const { return long_names().empty() ? option_->get_name() : long_names().front(); }
const std::vector<std::string>& Flag::long_names() const { return option_->get_lnames(); }
Flag Flag::as_text() const {
  option_->type_name(kOneText);
  return *this;
}

const std::vector<std::string>& Flag::short_names() const { return option_->get_snames(); }
const std::string& Flag::about() const { return option_->get_description(); }
bool Flag::hidden() const { return option_->get_group().empty(); }
bool Flag::is_required() const { return option_->get_required(); }
bool Flag::is_argument() const { return option_->get_positional(); }

std::string Flag::default_text() const {
  std::string noted = option_->get_default_str();
  if (!may_have_value()) return noted.empty() ? "false" : noted;  // add_flag() noted it
  option_->capture_default_str();
  std::string text = option_->get_default_str();
  option_->default_str(noted);  // of a flag that may stand alone, what it means then
  bool no_values = text == "{}" || text == "[]";
  if (no_values) return option_->get_type_name() == kOneText ? "" : "[]";
  return text;
}

bool Flag::needs_value() const { return option_->get_items_expected_min() > 0; }
bool Flag::may_have_value() const { return option_->get_items_expected_max() > 0; }
bool Flag::takes_many() const { return option_->get_expected_max() > 1; }

// ---- commands ----

Command Command::add_command(std::string_view name, std::string_view about) const {
  CLI::App* app = app_->add_subcommand(std::string(name), std::string(about))->fallthrough();
  app->require_subcommand(0, 1);  // after a line's command, a word that equals another command's name is an argument
  return Command(app);
}

namespace {

template <typename T>
Flag add_single(CLI::App& app, std::string_view names, T& value, std::string_view about) {
  CLI::Option* option = app.add_option(std::string(names), value, std::string(about));
  if (!option->get_positional()) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return Flag(option);
}

}  // namespace

Flag Command::add_option(std::string_view names, std::string& value, std::string_view about) const {
  return add_single(*app_, names, value, about);
}

Flag Command::add_option(std::string_view names, int& value, std::string_view about) const {
  return add_single(*app_, names, value, about);
}

Flag Command::add_option(std::string_view names, int64_t& value, std::string_view about) const {
  return add_single(*app_, names, value, about);
}

Flag Command::add_option(std::string_view names, std::vector<std::string>& values, std::string_view about) const {
  CLI::Option* option = app_->add_option(std::string(names), values, std::string(about));
  if (!option->get_positional()) option->allow_extra_args(false);
  return Flag(option);
}

Flag Command::add_flag(std::string_view names, bool& value, std::string_view about) const {
  CLI::Option* option = app_->add_flag(std::string(names), value, std::string(about));
  if (value) option->default_str("true");
  return Flag(option);
}

Command Command::alias(std::string_view name) const {
  app_->alias(std::string(name));
  return *this;
}

Command Command::footer(std::string_view text) const {
  app_->footer(std::string(text));
  return *this;
}

Command Command::hide() const {
  app_->group("");
  return *this;
}

void Command::require_command() const { app_->require_subcommand(1); }

void Command::on_chosen(std::function<void()> act) const {
  app_->callback([app = app_, act = std::move(act)] {
    if (app->get_subcommands().empty()) act();
  });
}

std::string Command::name() const { return app_->get_name(); }
std::string Command::about() const { return app_->get_description(); }
std::string Command::footer() const { return app_->get_footer(); }
std::vector<std::string> Command::aliases() const { return app_->get_aliases(); }
bool Command::hidden() const { return app_->get_group().empty(); }
bool Command::answers_to(const std::string& word) const { return app_->check_name(word); }
Command Command::parent() const { return Command(app_->get_parent()); }

std::vector<Command> Command::commands() const {
  std::vector<Command> all;
  for (CLI::App* app : app_->get_subcommands([](CLI::App*) { return true; })) all.push_back(Command(app));
  return all;
}

std::vector<Flag> Command::flags() const {
  std::vector<Flag> all;
  for (CLI::Option* option : app_->get_options()) all.push_back(Flag(option));
  return all;
}

Flag Command::find_flag(const std::string& dashed) const { return Flag(app_->get_option_no_throw(dashed)); }

Command Command::given_command() const {
  auto given = app_->get_subcommands();
  return given.empty() ? Command() : Command(given.front());
}

// ---- command line ----

std::optional<bool> parse_bool(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "TRUE", "true", "True"},
      kFalse{"0", "f", "F", "FALSE", "false", "False"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) return false;
  return std::nullopt;
}

namespace {

// What Go's strconv.ParseInt finds wrong with a number, which may be "0x10"; "" if nothing is.
std::string fault_of_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  (void)std::strtoll(text.c_str(), &end, 0);
  bool is_number = !text.empty() && *end == '\0';
  if (is_number && errno != ERANGE) return {};
  return "strconv.ParseInt: parsing " + coracle::quoted(text) + (is_number ? ": value out of range" : ": invalid syntax");
}

// What Go's time.ParseDuration finds wrong with a duration; "" if nothing is. A number of seconds is taken, too.
std::string fault_of_duration(std::string_view text) {
  if (parse_number<uint32_t>(text) || parse_duration(text)) return {};
  const std::string quoted = coracle::quoted(text);
  std::string_view rest = text;
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  while (!rest.empty()) {
    size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    if (digits == 0) break;
    rest.remove_prefix(digits);
    std::string_view unit = rest.substr(0, rest.find_first_of("0123456789."));
    if (unit.empty()) return "time: missing unit in duration " + quoted;
    static constexpr std::array<std::string_view, 8> kUnits{"ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"};
    if (std::find(kUnits.begin(), kUnits.end(), unit) == kUnits.end())
      return "time: unknown unit " + coracle::quoted(unit) + " in duration " + quoted;
    rest.remove_prefix(unit.size());
  }
  return "time: invalid duration " + quoted;
}

// What pflag finds wrong with pairs; "" if nothing is. A single pair may have commas in its value.
std::string fault_of_pairs(std::string_view text) {
  std::vector<std::string_view> pairs{text};
  if (std::count(text.begin(), text.end(), '=') > 1) pairs = split(text, ',');
  for (std::string_view pair : pairs)
    if (pair.find('=') == pair.npos) return std::string(pair) + " must be formatted as key=value";
  return {};
}

std::string fault_of_value(const std::string& type, const std::string& value) {
  if (type == "INT") return fault_of_number(value);
  if (type == kDuration) return fault_of_duration(value);
  return type == kPairs ? fault_of_pairs(value) : "";
}

// CLI11 keeps the "=" of "-n=default", takes the next word as the value of "--output=", and takes "pods" as the value of
// "--dry-run pods". So this class parses flags as kubectl's pflag does, and rewrites them in the one form that CLI11 parses the
// same way:
//   -n=default, -ndefault ─▶ -n default     --output= ─▶ --output ""     --cascade ─▶ --cascade=background
//   -w=false ─▶ --watch=false     -itn=default ─▶ -i -t -n default
class FlagWords {
 public:
  explicit FlagWords(CLI::App* root) : app_(root) {}

  // `words` follow the program's name. Errors: bad_request for a bool flag with a value that is not a bool.
  Result<std::vector<std::string>> read(const std::vector<std::string>& words) {
    rest_ = &words;
    for (at_ = 0; at_ < words.size();) {
      const std::string& word = words[at_++];
      if (word == "--") return arguments_only();
      if (word.size() < 2 || word.front() != '-') argument(word);
      else if (word.starts_with("--")) TRY(long_flag(word));
      else TRY(short_flags(word));
    }
    return std::move(read_);
  }

  // What was read: the arguments, and the flags as "--name=value".
  std::vector<std::string> take_arguments() { return std::move(arguments_); }
  std::vector<std::string> take_given() { return std::move(given_); }

 private:
  // What is behind "--". CLI11 gives that to the root, so the sign goes; then it could not tell what begins with a dash from a
  // flag, but nothing of Kubernetes' is called so.
  Result<std::vector<std::string>> arguments_only() {
    for (; at_ < rest_->size(); ++at_) {
      const std::string& word = (*rest_)[at_];
      if (word.size() > 1 && word.front() == '-')
        return Error(Code::bad_request, "unexpected argument " + coracle::quoted(word) + " behind --: flags stand before it");
      read_.push_back(word);
      arguments_.push_back(word);
    }
    return std::move(read_);
  }

  void argument(const std::string& word) {
    for (Command command : Command(app_).commands())
      if (command.answers_to(word)) {
        app_ = app_->get_subcommand(command.name());
        break;
      }
    read_.push_back(word);
    arguments_.push_back(word);
  }

  // "--token" is no secret, its value is one.
  void note_given(const CLI::Option& option, const std::string& name, const std::string& value) {
    std::string whole = name.starts_with("--") || option.get_lnames().empty() ? name : "--" + option.get_lnames().front();
    bool is_secret = whole == "--token" || whole == "--password";
    given_.push_back(whole + "=" + (is_secret ? "CLASSIFIED" : value));
  }

  CLI::Option* find(const std::string& dashed) const {  // looks in the parent commands too
    for (CLI::App* app = app_; app; app = app->get_parent())
      if (CLI::Option* option = app->get_option_no_throw(dashed)) return option;
    return nullptr;
  }

  static bool is_switch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }  // takes no value
  static bool may_stand_alone(const CLI::Option& option) { return option.get_items_expected_min() == 0; }

  Result<void> long_flag(const std::string& word) {
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::replace(name.begin(), name.end(), '_', '-');  // "--no_headers" is "--no-headers", as in kubectl
    CLI::Option* option = find(name);
    if (!option) return read_.push_back(word), Result<void>();  // CLI11 reports the error
    if (equals == word.npos) return without_value(*option, name);
    return give(*option, name, word.substr(equals + 1));
  }

  // "-n=default", "-ndefault", "-n default", "-it", "-itn=default".
  Result<void> short_flags(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      std::string name = {'-', word[i]}, rest = word.substr(i + 1);
      CLI::Option* option = find(name);
      if (!option) return read_.push_back("-" + word.substr(i)), Result<void>();
      if (rest.size() > 1 && rest.front() == '=') return give(*option, name, rest.substr(1));
      if (may_stand_alone(*option)) {
        TRY(without_value(*option, name));
        continue;
      }
      return rest.empty() ? without_value(*option, name) : give(*option, name, rest);
    }
    return {};
  }

  Result<void> without_value(const CLI::Option& option, const std::string& name) {
    if (is_switch(option)) {
      note_given(option, name, "true");
      read_.push_back(name);
      return {};
    }
    if (may_stand_alone(option)) return give(option, name, option.get_default_str());
    if (at_ < rest_->size()) return give(option, name, (*rest_)[at_++]);
    read_.push_back(name);  // CLI11 reports the error
    return {};
  }

  // Says, as pflag, which flag it is about: "-w, --watch".
  static Error invalid(const CLI::Option& option, const std::string& name, const std::string& value, const std::string& fault) {
    std::string shown = name;
    if (!option.get_snames().empty() && !option.get_lnames().empty())
      shown = "-" + option.get_snames().front() + ", --" + option.get_lnames().front();
    return Error(Code::bad_request,
                 "invalid argument " + coracle::quoted(value) + " for " + coracle::quoted(shown) + " flag: " + fault);
  }

  Result<void> give(const CLI::Option& option, const std::string& name, const std::string& value) {
    std::string whole = name.starts_with("--") || option.get_lnames().empty() ? name : "--" + option.get_lnames().front();
    note_given(option, name, value);
    if (is_switch(option)) {
      auto flag = parse_bool(value);
      if (!flag)
        return invalid(option, whole, value, "strconv.ParseBool: parsing " + coracle::quoted(value) + ": invalid syntax");
      read_.push_back(whole + (*flag ? "=true" : "=false"));
    } else if (value.empty() && option.get_delimiter() != '\0') {
      return {};  // an empty list
    } else if (std::string fault = fault_of_value(option.get_type_name(), value); !fault.empty()) {
      return invalid(option, whole, value, fault);
    } else if (may_stand_alone(option) && !value.empty()) {
      read_.push_back(whole + "=" + value);  // as a separate word, CLI11 could take it for a command
    } else {
      read_.push_back(whole);
      read_.push_back(value);
    }
    return {};
  }

  CLI::App* app_;  // the innermost command that the line has named so far
  const std::vector<std::string>* rest_ = nullptr;
  size_t at_ = 0;
  std::vector<std::string> read_, arguments_, given_;
};

}  // namespace

CommandLine::CommandLine(std::string_view program, std::string_view about)
    : app_(std::make_unique<CLI::App>(std::string(about), std::string(program))) {
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Result<bool> CommandLine::parse(int count, const char* const* words) {
  FlagWords reader(app_.get());
  std::vector<std::string> read = TRY(reader.read(std::vector<std::string>(words + 1, words + count)));
  program_ = words[0];
  arguments_ = reader.take_arguments();
  given_ = reader.take_given();
  std::vector<const char*> line = {words[0]};
  for (const auto& word : read) line.push_back(word.c_str());
  try {  // boundary: CLI11 reports errors by exceptions
    app_->parse(int(line.size()), line.data());
  } catch (const CLI::CallForHelp&) {
    return true;
  } catch (const CLI::ParseError& thrown) {
    return Error(Code::bad_request, thrown.what());
  } catch (const std::out_of_range&) {  // CLI11 2.1 throws it for a value of a flag that takes none
    return Error(Code::bad_request, "the value of a flag is out of range");
  }
  return false;
}

std::string CommandLine::recorded(const std::vector<std::string>& rest) const {
  std::string text = program_.substr(program_.rfind('/') + 1);  // npos + 1 is 0
  for (const auto* words : {&arguments_, &rest, &given_})
    for (const std::string& word : *words) text += " " + word;
  return text;
}

}  // namespace coracle::ctl
