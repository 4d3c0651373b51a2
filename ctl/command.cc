// SPDX-License-Identifier: Apache-2.0
// What every command uses, and their table. See command.h.
#include "ctl/command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "ctl/about.h"
#include "ctl/apply.h"
#include "ctl/auth.h"
#include "ctl/completion.h"
#include "ctl/config.h"
#include "ctl/create.h"
#include "ctl/escape.h"
#include "ctl/kustomize/build.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"

extern char** environ;

namespace coracle::ctl {

Command Commands::add(std::string_view name, std::string_view description, Command parent) {
  return (parent ? parent : root_).add_command(name, description);
}

void Commands::on(Command command, Run run) {
  command.on_chosen([this, run = std::move(run)] { chosen_ = run; });
}

bool Commands::is_expected(std::string_view names) const {
  if (expected_.empty()) return true;
  std::vector<std::string_view> all = split(names, ' ');
  return std::find_first_of(expected_.begin(), expected_.end(), all.begin(), all.end()) != expected_.end();
}

std::vector<std::string> Commands::take_rest(std::vector<std::string> words) {
  auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return words;
  std::vector<std::string> before(words.begin(), dashes);
  before.emplace_back();  // no word is being typed after them
  Command command = parse_line(root_, before).command;
  if (std::find(keeps_rest_.begin(), keeps_rest_.end(), command) == keeps_rest_.end()) return words;
  rest_.assign(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return words;
}

void Commands::add_dry_run(Command command, DryRun& value) {
  auto& added = *dry_run_flags_.emplace_back(std::make_unique<DryRunFlag>());
  added.value = &value;
  added.flag = command.add_option("--dry-run", added.text, "none, client or server").optional_value("unchanged");
}

void Commands::add_output(Command command, Output& output) {
  output.add_to(command);
  outputs_.push_back(output);
}

void Commands::ignore_words(Command command) { (void)command.add_option("ignored", ignored_, "none").hide(); }

void Commands::deprecate(Flag flag, std::string instead) { deprecated_.emplace_back(flag.hide(), std::move(instead)); }

Result<int> Commands::run() {
  for (const auto& [flag, instead] : deprecated_)
    if (flag.count() > 0) tell("Flag --" + flag.name() + " has been deprecated, " + instead + "\n");
  if (flags_.profile != "none")
    return Error(Code::unsupported, "--profile=" + flags_.profile + ": only none; perf(1) measures a program like this");
  for (const auto& one : dry_run_flags_) {
    if (one->flag.count() == 0) continue;
    dry_run_ = TRY(parse_dry_run(one->text));
    *one->value = dry_run_;
  }
  for (auto& output : outputs_) TRY(output.prepare());
  auto ran = chosen_();
  for (auto& output : outputs_) {
    std::vector<Error> failures = output.take_failures();
    if (failures.empty()) continue;
    print_failures(failures);
    if (ran) ran = 1;
  }
  int code = TRY(std::move(ran));
  const size_t warnings = session_ && flags_.warnings_as_errors ? session_->warnings() : 0;
  if (code != 0 || warnings == 0) return code;
  return Error(Code::invalid, std::to_string(warnings) + (warnings == 1 ? " warning received" : " warnings received"));
}

Result<Session*> Commands::session() {
  if (!session_) {
    std::unique_ptr<Session> opened = TRY(Session::open(flags_));
    opened->set_dry_run(dry_run_);
    if (flags_.match_server_version) TRY(check_server_version(*opened));
    session_ = std::move(opened);  // only now: who asks again after an error, as health does, gets the error again
  }
  return session_.get();
}

void FileFlags::add_to(Command command, bool with_kustomize) {
  command.add_option("-f,--filename", files, "file, directory, pattern as *.yaml, URL, or - for standard input").delimiter(',');
  if (with_kustomize) command.add_option("-k,--kustomize", kustomize, "directory with a kustomization, instead of files");
  command.add_flag("-R,--recursive", recursive, "look into subdirectories too");
}

FileFlags FileFlags::validated(const std::string& validate) const {
  FileFlags copy = *this;
  const std::string validation = field_validation_of(validate).value_or("Strict");
  copy.validates = validation != "Ignore", copy.is_strict = validation == "Strict";
  return copy;
}

Result<std::vector<Document>> read_documents(const FileFlags& flags, std::vector<Error>* wrong) {
  if (flags.kustomize.empty()) return read_documents(flags.files, flags.recursive, wrong, flags.validates);
  if (!flags.files.empty()) return Error(Code::bad_request, "only one of -f or -k can be specified");
  if (flags.recursive) return Error(Code::bad_request, "the -k flag can't be used with -f or -R");
  kustomize::Built built = TRY(kustomize::build(flags.kustomize, {}));
  for (const std::string& warning : built.warnings) tell(warning + "\n");
  return documents_of(std::move(built.objects), flags.kustomize, wrong);
}

Result<DryRun> parse_dry_run(const std::string& text) {
  auto old = [&](const std::string& form, const char* instead, DryRun meant) {
    tell("Warning: --dry-run" + form + " is deprecated" + (form.empty() ? "" : " (boolean value)") +
         " and can be replaced with --dry-run=" + instead + ".\n");
    return meant;
  };
  if (text == "none") return DryRun::none;
  if (text == "client") return DryRun::client;
  if (text == "server") return DryRun::server;
  if (text == "unchanged") return old("", "client", DryRun::client);
  if (auto flag = parse_bool(text)) return old("=" + text, *flag ? "client" : "none", *flag ? DryRun::client : DryRun::none);
  return Error(Code::bad_request, R"(Invalid dry-run value ()" + text + R"(). Must be "none", "server", or "client".)");
}

std::string dry_run_note(DryRun dry_run) {
  return dry_run == DryRun::client ? " (dry run)" : dry_run == DryRun::server ? " (server dry run)" : "";
}

namespace {

// As Go writes a type of Kubernetes.
void put_kind_first(json::value& object) {
  json::object ordered{{"kind", kind_in(object)}, {"apiVersion", api_version_in(object)}};
  for (auto& [name, value] : object.as_object())
    if (name != "kind" && name != "apiVersion") ordered[name] = std::move(value);
  object = std::move(ordered);
}

}  // namespace

void print_outcome(const Output& output, DryRun dry_run, json::value object, const schema::KindInfo& kind, std::string_view what,
                   JsonOrder order) {
  if (output.prints_objects()) {
    if (order == JsonOrder::given) put_kind_first(object);
    return void(output.print(std::move(object), order));
  }
  std::string name = message_name(kind, metadata_of(object).name());
  if (output == "name") out(name + "\n");
  else out(name + " " + std::string(what) + dry_run_note(dry_run) + "\n");
}

namespace {

// What the server finds wrong with an object, one finding to a line, as kubectl says it: without the file. Nothing when the error
// is of another kind.
std::optional<std::string> findings(const Error& error) {
  const ErrorDetails& details = *error.details();
  if (error.code() != Code::invalid) return std::nullopt;
  bool named = !details.kind.empty() || !details.name.empty();
  if (named && details.causes.empty()) return std::nullopt;
  std::string text =
      named ? "The " + details.kind + " " + coracle::quoted(details.name) + " is invalid: " : "The request is invalid: ";
  if (details.causes.empty()) return text + error.text();
  std::vector<std::string> found;
  for (const Cause& cause : details.causes) {
    std::string one = (cause.field.empty() ? "" : cause.field + ": ") + cause.message;
    if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(std::move(one));
  }
  if (found.size() == 1) return text + found.front();
  for (const std::string& one : found) text += "\n* " + one;
  return text;
}

// What kubectl prints without "error: " before it.
bool stands_alone(std::string_view text) {
  for (const char* beginning :
       {"error: ", "Error in configuration: ", "Unable to connect to the server: ", "The connection to the server "})
    if (text.starts_with(beginning)) return true;
  return false;
}

}  // namespace

void print_failure(const Error& error) {
  bool from_server = error.details() != nullptr;
  auto listed = from_server ? findings(error) : std::nullopt;
  if (listed) tell(*listed + "\n");
  else if (from_server && reason_of(error) == "Unauthorized")
    tell("error: You must be logged in to the server (" + error.text() + ")\n");
  else if (from_server) tell("Error from server (" + std::string(reason_of(error)) + "): " + error.text() + "\n");
  else tell((stands_alone(error.text()) ? "" : "error: ") + error.text() + "\n");
}

void print_failures(const std::vector<Error>& errors) {
  if (errors.size() == 1) return print_failure(errors.front());
  for (const auto& error : errors) {
    if (error.details()) print_failure(error);
    else tell(error.text() + "\n");
  }
}

void tell(std::string_view text) {
  std::string shown = visible_lines(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Result<int> run_program(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = 0;
  if (int failed = ::posix_spawnp(&pid, pointers[0], nullptr, nullptr, pointers.data(), environ))
    return Error::from_errno(failed, "run " + argv.front());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return Error::from_errno("wait for " + argv.front());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

namespace {

void add_global_flags(Command root, GlobalFlags& flags) {
  root.add_option("--kubeconfig", flags.kubeconfig, "the kubeconfig file");
  root.add_option("--context", flags.context, "its context to use");
  root.add_option("--cluster", flags.cluster, "its cluster to use");
  root.add_option("--user", flags.user, "its user to be");
  root.add_option("-n,--namespace", flags.ns, "the namespace");
  root.add_option("-s,--server", flags.server, "the server's URL");
  root.add_option("--tls-server-name", flags.tls_server_name, "the name in the server's certificate; else that of its URL");
  root.add_option("--certificate-authority", flags.certificate_authority, "the CA's certificate file");
  root.add_flag("--insecure-skip-tls-verify", flags.insecure_skip_tls_verify, "trust any server");
  root.add_option("--client-certificate", flags.client_certificate, "a file with our certificate");
  root.add_option("--client-key", flags.client_key, "a file with its key");
  root.add_option("--token", flags.token, "a bearer token");
  root.add_option("--username", flags.username, "a name, for basic authentication");
  root.add_option("--password", flags.password, "its password");
  root.add_option("--as", flags.as, "the user to act as");
  root.add_option("--as-group", flags.as_groups, "a group to act as; may be repeated");
  root.add_option("--as-uid", flags.as_uid, "the UID to act as");
  root.add_option("--as-user-extra", flags.as_user_extra, "KEY=VALUE that the user to act as has; may be repeated");
  root.add_option("--request-timeout", flags.request_timeout, "give up on a request after this; 0: never");
  root.add_option("--cache-dir", flags.cache_dir, "nothing is kept between runs: taken for the sake of scripts");
  root.add_flag("--disable-compression", flags.disable_compression, "answers are never compressed: likewise");
  root.add_flag("--warnings-as-errors", flags.warnings_as_errors, "exit with 1 when the server warned");
  root.add_option("--kuberc", flags.kuberc, "the file with your preferences; KUBERC=off: none");
  root.add_flag("--match-server-version", flags.match_server_version, "only go on with a server of the client's version");
  root.add_option("--profile", flags.profile, "none: taken for the sake of scripts, since there is no Go runtime to profile");
  root.add_option("--profile-output", flags.profile_output, "likewise");
  root.add_option("--log-flush-frequency", flags.log_flush_frequency, "likewise: messages are never held back").as_duration();
  root.add_option("--vmodule", flags.vmodule, "likewise: -v counts for all of the program");
  root.add_option("-v,--v", flags.verbosity, "say more: 6 shows requests, 8 their bodies");
}

struct Family {
  std::string_view names;  // of its commands below the root, with spaces between them
  void (*add)(Commands&);
  bool reads_tree = false;  // its commands need all others
};

// In the order of help.
constexpr Family kFamilies[] = {
    {"get", add_get},
    {"describe", add_describe},
    {"apply", add_apply},
    {"diff", add_diff},
    {"create", add_create},
    {"replace", add_replace},
    {"run", add_run},
    {"expose", add_expose},
    {"label annotate", add_label},
    {"patch", add_patch},
    {"edit", add_edit},
    {"set", add_set},
    {"scale autoscale", add_scale},
    {"delete", add_delete},
    {"logs", add_logs},
    {"exec attach", add_exec},
    {"cp", add_cp},
    {"port-forward", add_port_forward},
    {"events", add_events},
    {"rollout", add_rollout},
    {"certificate", add_certificate},
    {"wait", add_wait},
    {"why", add_why},
    {"cordon uncordon drain taint", add_node},
    {"top", add_top},
    {"api-resources api-versions", add_api_resources},
    {"explain", add_explain},
    {"version", add_version},
    {"cluster-info", add_cluster_info},
    {"config", add_config},
    {"auth", add_auth},
    {"image", add_image},
    {"volume", add_volume},
    {"kustomize", add_kustomize},
    {"backup restore store", add_backup},
    {"doctor", add_doctor},
    {"health", add_health},
    {"boot", add_boot},
    {"completion", add_completion},
    {"proxy", add_proxy},
    {"debug", add_debug},
    {"kuberc", add_kuberc},
    {"plugin", add_plugin, true},
    {"help options alpha", add_help, true},
};

}  // namespace

void add_commands(Commands& commands) {
  add_global_flags(commands.root(), commands.flags());
  auto needs_all = [&](const Family& family) { return family.reads_tree && commands.is_expected(family.names); };
  const bool all = std::any_of(std::begin(kFamilies), std::end(kFamilies), needs_all);
  for (const Family& family : kFamilies)
    if (all || commands.is_expected(family.names)) family.add(commands);
}

}  // namespace coracle::ctl
