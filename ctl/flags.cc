// SPDX-License-Identifier: Apache-2.0
// See flags.h. The only file of coraclectl that CLI11 is seen from.
#include "ctl/flags.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

namespace coracle::ctl {

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

size_t Flag::count() const { return option_->count(); }

std::string Flag::name() const { return long_names().empty() ? option_->get_name() : long_names().front(); }
const std::vector<std::string>& Flag::long_names() const { return option_->get_lnames(); }
const std::vector<std::string>& Flag::short_names() const { return option_->get_snames(); }
const std::string& Flag::about() const { return option_->get_description(); }
bool Flag::hidden() const { return option_->get_group().empty(); }
bool Flag::is_argument() const { return option_->get_positional(); }
bool Flag::needs_value() const { return option_->get_items_expected_min() > 0; }
bool Flag::takes_many() const { return option_->get_expected_max() > 1; }

// ---- commands ----

Command Command::add_command(std::string_view name, std::string_view about) const {
  return Command(app_->add_subcommand(std::string(name), std::string(about))->fallthrough());
}

Flag Command::add_option(std::string_view names, std::string& value, std::string_view about) const {
  return Flag(app_->add_option(std::string(names), value, std::string(about)));
}

Flag Command::add_option(std::string_view names, int& value, std::string_view about) const {
  return Flag(app_->add_option(std::string(names), value, std::string(about)));
}

Flag Command::add_option(std::string_view names, int64_t& value, std::string_view about) const {
  return Flag(app_->add_option(std::string(names), value, std::string(about)));
}

Flag Command::add_option(std::string_view names, std::vector<std::string>& values, std::string_view about) const {
  CLI::Option* option = app_->add_option(std::string(names), values, std::string(about));
  if (!option->get_positional()) option->allow_extra_args(false);
  return Flag(option);
}

Flag Command::add_flag(std::string_view names, bool& value, std::string_view about) const {
  return Flag(app_->add_flag(std::string(names), value, std::string(about)));
}

Command Command::alias(std::string_view name) const {
  app_->alias(std::string(name));
  return *this;
}

Command Command::footer(std::string_view text) const {
  app_->footer(std::string(text));
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
std::string Command::help() const { return app_->help(); }
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

// ---- the line ----

CommandLine::CommandLine(std::string_view program, std::string_view about)
    : app_(std::make_unique<CLI::App>(std::string(about), std::string(program))) {
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Result<std::string> CommandLine::parse(int count, const char* const* words) {
  try {  // wall: CLI11 reports by exceptions
    app_->parse(count, words);
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::ParseError& thrown) {
    return Error(Code::bad_request, thrown.what());
  } catch (const std::out_of_range&) {  // of CLI11 2.1, for the value of a flag that takes none: --no-wait=99999999999999999999
    return Error(Code::bad_request, "the value of a flag is out of range");
  }
  return std::string();
}

}  // namespace coracle::ctl
