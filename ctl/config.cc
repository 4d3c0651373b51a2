// SPDX-License-Identifier: Apache-2.0
// See config.h.
#include "ctl/config.h"

#include "ctl/print.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/client/kubeconfig.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

struct File {
  std::string path;
  json::value config;
};

Result<File> open_file(Commands& commands) {
  File file;
  file.path = TRY(find_kubeconfig(commands.flags().kubeconfig));
  std::string text = TRY(sys::read_file(file.path));
  std::vector<json::value> documents = TRY(parse_yaml(text).wrap(file.path));
  if (documents.empty() || !documents.front().is_object()) return Error(Code::invalid, file.path + ": is no kubeconfig");
  file.config = std::move(documents.front());
  return file;
}

Result<void> save(const File& file) { return sys::replace_file(file.path, to_yaml(file.config), 0600); }

json::value* context_named(json::value& config, const std::string& name) {
  json::value* contexts = config.as_object().if_contains("contexts");
  if (!contexts || !contexts->is_array()) return nullptr;
  for (auto& entry : contexts->as_array())
    if (get_string(entry, "name") == name) return &entry;
  return nullptr;
}

Result<int> run_view(Commands& commands) {
  std::string path = TRY(find_kubeconfig(commands.flags().kubeconfig));
  std::string text = TRY(sys::read_file(path));
  out(redacted_kubeconfig(text));
  return 0;
}

Result<int> run_current(Commands& commands) {
  File file = TRY(open_file(commands));
  std::string_view current = get_string(file.config, "current-context");
  if (current.empty()) return Error(Code::not_found, "current-context is not set");
  out(std::string(current) + "\n");
  return 0;
}

Result<int> run_get_contexts(Commands& commands, bool names_only) {
  File file = TRY(open_file(commands));
  Columns columns;
  if (!names_only) columns.add({"CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"});
  for (const auto& entry : get_array(file.config, "contexts")) {
    std::string name(get_string(entry, "name"));
    if (names_only) columns.add({name});
    else
      columns.add({name == get_string(file.config, "current-context") ? "*" : "", name,
                   std::string(get_string(entry, "context.cluster")), std::string(get_string(entry, "context.user")),
                   std::string(get_string(entry, "context.namespace"))});
  }
  out(columns.text());
  return 0;
}

Result<int> run_use(Commands& commands, const std::string& name) {
  File file = TRY(open_file(commands));
  TRY(use_context(file.config, name));
  TRY(save(file));
  out("Switched to context " + coracle::quoted(name) + ".\n");
  return 0;
}

Result<int> run_set(Commands& commands, std::string name, bool current) {
  const GlobalFlags& flags = commands.flags();
  File file = TRY(open_file(commands));
  if (current) name = get_string(file.config, "current-context");
  if (name.empty())
    return Error(Code::bad_request, current ? "current-context is not set" : "a context's name, or --current, is required");
  bool was = set_context(file.config, name, {flags.cluster, flags.user, flags.ns});
  TRY(save(file));
  out("Context " + coracle::quoted(name) + (was ? " modified.\n" : " created.\n"));
  return 0;
}

}  // namespace

Result<void> use_context(json::value& config, const std::string& name) {
  if (!context_named(config, name)) {
    std::vector<std::string> names;
    for (const auto& entry : get_array(config, "contexts")) names.emplace_back(get_string(entry, "name"));
    return Error(Code::not_found, "no context exists with the name " + coracle::quoted(name) +
                                      (names.empty() ? "" : "; there are: " + join(names, ", ")));
  }
  config.as_object()["current-context"] = name;
  return {};
}

bool set_context(json::value& config, const std::string& name, const ContextChange& change) {
  json::value* entry = context_named(config, name);
  bool was = entry != nullptr;
  if (!was) {
    json::value& contexts = config.as_object()["contexts"];
    if (!contexts.is_array()) contexts.emplace_array();
    contexts.as_array().push_back(json::object{{"name", name}, {"context", json::object()}});
    entry = &contexts.as_array().back();
  }
  for (const auto& [field, value] :
       {std::pair{"cluster", &change.cluster}, std::pair{"user", &change.user}, std::pair{"namespace", &change.ns}})
    if (!value->empty()) make(*entry, std::string("context.") + field) = *value;
  return was;
}

void add_config(Commands& commands) {
  Command config = commands.add("config", "The kubeconfig in force");
  config.require_command();
  Command view = commands.add("view", "Show it, secrets left out", config);
  commands.on(view, [&commands] { return run_view(commands); });
  Command current = commands.add("current-context", "The context in use", config);
  commands.on(current, [&commands] { return run_current(commands); });
  auto names_only = std::make_shared<std::string>();
  Command list = commands.add("get-contexts", "The contexts there are", config);
  list.add_option("-o,--output", *names_only, "name").one_of({"name"});
  commands.on(list, [&commands, names_only] { return run_get_contexts(commands, !names_only->empty()); });
  auto used = std::make_shared<std::string>();
  Command use = commands.add("use-context", "Use another context from now on", config);
  use.alias("use");
  use.add_option("name", *used, "CONTEXT").required();
  commands.on(use, [&commands, used] { return run_use(commands, *used); });
  auto changed = std::make_shared<std::string>();
  auto is_current = std::make_shared<bool>(false);
  Command set = commands.add("set-context", "Change a context by --cluster, --user, --namespace", config);
  set.add_option("name", *changed, "CONTEXT");
  set.add_flag("--current", *is_current, "the one in use");
  commands.on(set, [&commands, changed, is_current] { return run_set(commands, *changed, *is_current); });
}

}  // namespace coracle::ctl
