// SPDX-License-Identifier: Apache-2.0
// How a command joins coraclectl: it adds itself to the tree of commands, with its flags, and hands over what to run when it was
// chosen.
// One file per command (or family); command.cc holds their table.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctl/flags.h"
#include "ctl/output.h"
#include "ctl/session.h"

namespace coracle::ctl {

// Exit codes: 0 done, 1 the server, the input or the command line is wrong (of diff, 2: 1 says that something differs); exec
// gives its process' own.
class Commands {
 public:
  using Run = std::function<Result<int>()>;

  Commands(Command root, GlobalFlags& flags) : root_(root), flags_(flags) {}

  // Adds a command below the root, or below `parent`.
  Command add(std::string_view name, std::string_view description, Command parent = {});
  // What runs when `command` was given.
  void on(Command command, Run run);
  // --dry-run=none, client or server. `value` has what the line says once the command runs, and every request of its session
  // keeps to it: a command that has the flag cannot write in a dry run.
  void add_dry_run(Command command, DryRun& value);
  // -o and its flags (output.h). They are read before the command runs; where a template of it fails, the exit code is 1.
  void add_output(Command command, Output& output);
  // Words behind the command are taken and mean nothing: kubectl does not look at them.
  void ignore_words(Command command);
  // Takes the flag out of help and completion; a line that gives it is warned: "Flag --NAME has been deprecated, INSTEAD".
  void deprecate(Flag flag, std::string instead);
  // Does what the line, which was read, asks for; there is something. Gives the exit code. Errors: the command's; bad_request for
  // another value of --dry-run.
  Result<int> run();
  // The words of the line that will be read, where they are known: then add_commands() only adds commands that one of them names.
  void expect(std::vector<std::string> words) { expected_ = std::move(words); }
  bool is_expected(std::string_view names) const;  // one of "apply diff", as far as is known
  // The connection, made on first use.
  Result<Session*> session();
  GlobalFlags& flags() { return flags_; }
  Command root() const { return root_; }
  const Run& chosen() const { return chosen_; }
  // What stands behind "--" in a line of `command` is for a program in a container: the parser does not get it, and it is in
  // rest(). In the line of another command it is arguments, whatever it looks like.
  void keep_rest(Command command) { keeps_rest_.push_back(command); }
  // The words of the line that the parser gets; those that it does not get are moved to rest(). Pure but for that.
  std::vector<std::string> take_rest(std::vector<std::string> words);
  const std::vector<std::string>& rest() const { return rest_; }
  // The line, as --record keeps it (CommandLine::recorded()); whoever reads the line sets it.
  void set_recorded(std::string line) { recorded_ = std::move(line); }
  const std::string& recorded() const { return recorded_; }

 private:
  struct DryRunFlag {
    std::string text = "none";
    Flag flag;
    DryRun* value;
  };
  Command root_;
  GlobalFlags& flags_;
  std::unique_ptr<Session> session_;
  Run chosen_;
  std::vector<std::unique_ptr<DryRunFlag>> dry_run_flags_;
  std::vector<Output> outputs_;
  std::vector<std::pair<Flag, std::string>> deprecated_;
  DryRun dry_run_ = DryRun::none;
  std::vector<Command> keeps_rest_;
  std::vector<std::string> rest_, expected_, ignored_;
  std::string recorded_;
};

// The flags of all commands, and the commands that the line may name (Commands::expect()), by the functions below and some in
// headers of their own. A line that can be read means the same as with all commands.
void add_commands(Commands& commands);
void add_get(Commands& commands);
void add_apply(Commands& commands);
void add_create(Commands& commands);
void add_run(Commands& commands);
void add_expose(Commands& commands);
void add_delete(Commands& commands);
void add_describe(Commands& commands);
void add_logs(Commands& commands);
void add_exec(Commands& commands);  // exec, attach
void add_cp(Commands& commands);
void add_port_forward(Commands& commands);
void add_events(Commands& commands);
void add_edit(Commands& commands);
void add_set(Commands& commands);
void add_scale(Commands& commands);  // scale, autoscale
void add_rollout(Commands& commands);
void add_certificate(Commands& commands);  // certificate approve, deny
void add_wait(Commands& commands);
void add_why(Commands& commands);
void add_node(Commands& commands);  // cordon, uncordon, drain, taint
void add_top(Commands& commands);   // top pods, top nodes
void add_version(Commands& commands);
void add_image(Commands& commands);  // image list, pull, import, pack, remove
void add_kustomize(Commands& commands);
void add_volume(Commands& commands);  // volume export, import
void add_backup(Commands& commands);  // backup, restore, store
void add_doctor(Commands& commands);
void add_health(Commands& commands);
void add_boot(Commands& commands);
void add_completion(Commands& commands);
void add_help(Commands& commands);    // help, options, alpha
void add_kuberc(Commands& commands);  // kuberc set, kuberc view
void add_plugin(Commands& commands);  // plugin list
void add_proxy(Commands& commands);
void add_debug(Commands& commands);

// What a shell asks for while a line is typed; see completion.h. Never fails, never complains.
Result<int> run_complete(Commands& commands, const std::vector<std::string>& words);
// Prints the tree of commands with their flags, as the manual is made from it: a line for each, that begins with what it is
// ("command", "about", "alias", "argument", "flag", "footer"). Source: systemd/manual/manual.py reads it.
Result<int> run_manual(Commands& commands);
constexpr const char* kImages = "/coracle/v1/images";  // the machine's images, beside Kubernetes' paths

constexpr const char* kStore = "/coracle/v1/store";  // its store, likewise

// Flags that many commands share.
struct FileFlags {
  std::vector<std::string> files;
  std::string kustomize;  // a directory
  bool recursive = false, validates = false, is_strict = false;
  bool empty() const { return files.empty() && kustomize.empty(); }
  // The same, whose documents are validated unless --validate says that nothing is.
  FileFlags validated(const std::string& validate) const;
  void add_to(Command command, bool with_kustomize = true);
};
// The objects of the files, or of the kustomization. Its warnings go to standard error. Errors: bad_request for both; those of
// the other read_documents(); those of kustomize::build().
Result<std::vector<Document>> read_documents(const FileFlags& flags, std::vector<Error>* wrong = nullptr);

// What --dry-run=`text` means: "none", "client", "server", and what it was before 1.18: "unchanged" (no value), "true", "false",
// of which standard error gets a warning. Errors: bad_request, in kubectl's words.
Result<DryRun> parse_dry_run(const std::string& text);

// Runs a program on our terminal and waits. Gives its exit status, 128 + signal. Errors: from posix_spawn.
Result<int> run_program(const std::vector<std::string>& argv);

void out(std::string_view text);           // to standard output, all of it
void tell(std::string_view text);          // to standard error, for people: what a terminal would obey is written out (escape.h)
std::string dry_run_note(DryRun dry_run);  // " (dry run)", " (server dry run)" or nothing
// What became of an object: the object itself where `output` is a format for objects, its name where it is name, else
// "pod/web created". In JSON its members are sorted, as kubectl prints what is no type of Go to it; or they are as given, with
// the kind first, as it prints what it made itself.
void print_outcome(const Output& output, DryRun dry_run, json::value object, const schema::KindInfo& kind, std::string_view what,
                   JsonOrder order = JsonOrder::sorted);
// To standard error, as kubectl words it: what the server said, or what we could not do.
void print_failure(const Error& error);
// Several failures as kubectl prints them: one as ever, more without a head, one to a line. Nothing when there are none.
void print_failures(const std::vector<Error>& errors);

}  // namespace coracle::ctl
