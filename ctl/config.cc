// SPDX-License-Identifier: Apache-2.0
// See config.h. The commands that set whole entries stand in config_set.cc.
#include "ctl/config.h"

#include <algorithm>

#include "ctl/config_property.h"
#include "ctl/config_view.h"
#include "ctl/help.h"
#include "ctl/kubeconfig_files.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

using Arguments = std::vector<std::string>;

Result<KubeconfigFiles> open_files(Commands& commands, KubeconfigUse use) {
  return KubeconfigFiles::open(commands.flags().kubeconfig, use);
}

// ---- view ----

struct ViewFlags {
  Arguments args;
  Output output{OutputSet::objects, "yaml"};
  bool merge = true, flatten = false, minify = false, raw = false;
};

Result<int> run_view(Commands& commands, const ViewFlags& flags) {
  if (!flags.args.empty())
    return Error(Code::bad_request,
                 "unexpected arguments: [" + join(flags.args, " ") + "]\nSee 'coraclectl config view -h' for help and examples");
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::read));
  if (!flags.merge && !files.explicit_file()) return Error(Code::bad_request, "if merge==false a precise file must be specified");
  json::value config = files.merged(flags.flatten);
  if (flags.minify) {
    if (!commands.flags().context.empty()) config.get_object()["current-context"] = commands.flags().context;
    TRY(minify_kubeconfig(config));
  }
  if (flags.flatten) TRY(flatten_kubeconfig(config));
  else if (!flags.raw) redact_kubeconfig(config);
  flags.output.print(ordered_kubeconfig(config), JsonOrder::given);
  return 0;
}

// ---- what there is ----

Result<int> run_current_context(Commands& commands) {
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::read));
  std::string current = files.current_context();
  if (current.empty()) return Error(Code::not_found, "current-context is not set");
  out(current + "\n");
  return 0;
}

struct ContextsFlags {
  Arguments args;
  std::string output;
  bool no_headers = false;
};

Result<int> run_get_contexts(Commands& commands, const ContextsFlags& flags) {
  if (!flags.output.empty() && flags.output != "name")
    return Error(Code::bad_request, "--output " + flags.output +
                                        " is not available in kubectl config get-contexts; resetting to default output format");
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::read));
  std::vector<Error> failures;
  Arguments shown;
  for (const auto& name : flags.args) {
    if (files.find(kContextList, name)) shown.push_back(name);
    else failures.emplace_back(Code::not_found, "context " + name + " not found");
  }
  std::sort(shown.begin(), shown.end());
  if (flags.args.empty()) shown = files.names(kContextList);
  bool names_only = flags.output == "name";
  Columns columns;
  if (!names_only && !flags.no_headers) columns.add({"CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"});
  for (const auto& name : shown) {
    const json::value& context = *files.find(kContextList, name);
    if (names_only) columns.add({name});
    else
      columns.add({name == files.current_context() ? "*" : "", name, std::string(get_string(context, "cluster")),
                   std::string(get_string(context, "user")), std::string(get_string(context, "namespace"))});
  }
  out(columns.text());
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<int> run_names(Commands& commands, const KubeconfigList& list) {
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::read));
  out("NAME\n");
  for (const auto& name : files.names(list)) out(name + "\n");
  return 0;
}

// ---- changes ----

Result<int> run_use_context(Commands& commands, const Arguments& args) {
  if (args.size() != 1) return unexpected_arguments("use-context", args);
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::change));
  const std::string& name = args.front();
  if (name.empty()) return Error(Code::bad_request, "empty context names are not allowed");
  if (!files.find(kContextList, name)) {
    Arguments names = files.names(kContextList);
    return Error(Code::not_found, "no context exists with the name: " + coracle::quoted(name) +
                                      (names.empty() ? "" : "; there are: " + join(names, ", ")));
  }
  files.set_current_context(name);
  TRY(files.save());
  out("Switched to context " + coracle::quoted(name) + ".\n");
  return 0;
}

Result<int> run_rename_context(Commands& commands, const Arguments& args) {
  if (args.size() != 2) return unexpected_arguments("rename-context", args);
  const std::string &name = args[0], &to = args[1];
  if (to.empty()) return Error(Code::bad_request, "You must specify a new non-empty context name");
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::change));
  const std::string refusal = "cannot rename the context " + coracle::quoted(name) + ", ";
  if (!files.find(kContextList, name)) return Error(Code::not_found, refusal + "it's not in " + files.default_file());
  if (files.find(kContextList, to))
    return Error(Code::already_exists,
                 refusal + "the context " + coracle::quoted(to) + " already exists in " + files.default_file());
  files.rename(kContextList, name, to);
  if (files.current_context() == name) files.set_current_context(to);
  TRY(files.save());
  out("Context " + coracle::quoted(name) + " renamed to " + coracle::quoted(to) + ".\n");
  return 0;
}

Result<int> run_delete_entry(Commands& commands, const KubeconfigList& list, const Arguments& args) {
  const std::string what = list.field;
  if (args.size() != 1 && what == "user")
    return Error(Code::bad_request,
                 what + " to delete is required\nSee 'coraclectl config delete-" + what + " -h' for help and examples");
  if (args.size() != 1) {  // for kubectl this is no failure
    out(help_of(command_at(commands.root(), {"config", "delete-" + what}), terminal_width()));
    return 0;
  }
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::change));
  const std::string& name = args.front();
  if (!files.remove(list, name))
    return Error(Code::not_found, "cannot delete " + what + " " + name + ", not in " + files.default_file());
  if (what == "context" && files.current_context() == name)
    tell("warning: this removed your active context, use \"kubectl config use-context\" to select a different one\n");
  TRY(files.save());
  out("deleted " + what + " " + name + " from " + files.default_file() + "\n");
  return 0;
}

Result<int> run_set(Commands& commands, const Arguments& args, bool raw) {
  if (args.size() != 2) return unexpected_arguments("set", args);
  if (args[1].empty()) return Error(Code::bad_request, "you cannot use set to unset a property");
  if (args[0].empty()) return Error(Code::bad_request, "you must specify a property");
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::change));
  TRY(set_property(files, args[0], args[1], raw));
  TRY(files.save());
  out("Property " + coracle::quoted(args[0]) + " set.\n");
  return 0;
}

Result<int> run_unset(Commands& commands, const Arguments& args) {
  if (args.size() != 1) return unexpected_arguments("unset", args);
  if (args[0].empty()) return Error(Code::bad_request, "you must specify a property");
  KubeconfigFiles files = TRY(open_files(commands, KubeconfigUse::change));
  TRY(unset_property(files, args[0]));
  TRY(files.save());
  out("Property " + coracle::quoted(args[0]) + " unset.\n");
  return 0;
}

void add_readers(Commands& commands, Command config) {
  auto view_flags = std::make_shared<ViewFlags>();
  Command view = commands.add("view", "Show it: all files merged, secrets left out", config);
  view.add_option("args", view_flags->args, "none");
  commands.add_output(view, view_flags->output);
  view.add_flag("--merge", view_flags->merge, "merge all files (--merge=false: only that of --kubeconfig)");
  view.add_flag("--flatten", view_flags->flatten, "with the content of files that it names, for use elsewhere");
  view.add_flag("--minify", view_flags->minify, "only what the current context uses");
  view.add_flag("--raw", view_flags->raw, "with certificates and secrets");
  commands.on(view, [&commands, view_flags] { return run_view(commands, *view_flags); });
  Command current = commands.add("current-context", "The context in use", config);
  commands.ignore_words(current);
  commands.on(current, [&commands] { return run_current_context(commands); });
  auto contexts_flags = std::make_shared<ContextsFlags>();
  Command contexts = commands.add("get-contexts", "The contexts there are", config);
  contexts.add_option("args", contexts_flags->args, "CONTEXT...");
  contexts.add_option("-o,--output", contexts_flags->output, "name");
  contexts.add_flag("--no-headers", contexts_flags->no_headers, "no line of column names");
  commands.on(contexts, [&commands, contexts_flags] { return run_get_contexts(commands, *contexts_flags); });
  Command clusters = commands.add("get-clusters", "The clusters there are", config);
  commands.ignore_words(clusters);
  commands.on(clusters, [&commands] { return run_names(commands, kClusterList); });
  Command users = commands.add("get-users", "The users there are", config);
  commands.ignore_words(users);
  commands.on(users, [&commands] { return run_names(commands, kUserList); });
}

void add_changers(Commands& commands, Command config) {
  using Run = Result<int> (*)(Commands&, const Arguments&);
  auto add = [&](const char* name, const char* about, const char* arguments, Run run) {
    auto args = std::make_shared<Arguments>();
    Command command = commands.add(name, about, config);
    command.add_option("args", *args, arguments);
    commands.on(command, [&commands, args, run] { return run(commands, *args); });
    return command;
  };
  add("use-context", "Use another context from now on", "CONTEXT", run_use_context).alias("use");
  add("rename-context", "Give a context another name", "CONTEXT NEW_NAME", run_rename_context);
  add("delete-context", "Take a context away", "CONTEXT",
      [](Commands& all, const Arguments& args) { return run_delete_entry(all, kContextList, args); });
  add("delete-cluster", "Take a cluster away", "CLUSTER",
      [](Commands& all, const Arguments& args) { return run_delete_entry(all, kClusterList, args); });
  add("delete-user", "Take a user away", "USER",
      [](Commands& all, const Arguments& args) { return run_delete_entry(all, kUserList, args); });
  add("unset", "Take one value away: unset users.me.token", "PROPERTY", run_unset);
  auto args = std::make_shared<Arguments>();
  auto raw = std::make_shared<bool>(false);
  Command set = commands.add("set", "Set one value: set clusters.here.server https://10.0.0.1:6443", config);
  set.add_option("args", *args, "PROPERTY VALUE");
  set.add_flag("--set-raw-bytes", *raw, "the value of a -data field is not base64 yet");
  commands.on(set, [&commands, args, raw] { return run_set(commands, *args, *raw); });
}

}  // namespace

Error unexpected_arguments(std::string_view command, const std::vector<std::string>& args) {
  return Error(Code::bad_request,
               "Unexpected args: [" + join(args, " ") + "]\nSee 'coraclectl config " + std::string(command) + " --help'.");
}

void add_config(Commands& commands) {
  Command config = commands.add("config", "The kubeconfig in force");
  config.require_command();
  add_readers(commands, config);
  add_changers(commands, config);
  add_config_setters(commands, config);
}

}  // namespace coracle::ctl
