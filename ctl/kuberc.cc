// SPDX-License-Identifier: Apache-2.0
// kuberc view, kuberc set: show and change a person's preferences; preferences.h applies them. Source: kubectl kuberc.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "ctl/command.h"
#include "ctl/help.h"
#include "ctl/preferences.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr mode_t kKubercMode = 0644;

struct KubercFlags {
  Output output{OutputSet::objects, "yaml"};
  std::string section, command, name, policy;
  std::vector<std::string> options, prepend, append, allowlist;
  bool overwrite = false;
};

Result<KubercFile> kuberc_file(Commands& commands) {
  KubercFile file = TRY(KubercFile::find(commands.flags().kuberc));
  if (file.path.empty()) return Error(Code::bad_request, "KUBERC is disabled via KUBERC=off environment variable");
  return file;
}

json::value new_preference() {
  return json::object{
      {"kind", "Preference"}, {"apiVersion", "kubectl.config.k8s.io/v1beta1"}, {"defaults", nullptr}, {"aliases", nullptr}};
}

// Null where the file is empty. Errors: not_found; invalid.
Result<json::value> load_kuberc(const KubercFile& file) {
  std::string text = TRY(sys::read_file(file.path));
  std::vector<std::string> unknown;
  return decode_preference(text, file.path, unknown).wrap("error reading kuberc file");
}

Result<std::string> yaml_of(const json::value& document) {
  json::value sorted = TRY(parse_json(to_sorted_text(document)));
  return to_yaml(sorted);
}

Result<int> save_kuberc(const json::value& document, const std::string& path) {
  std::string text = TRY(yaml_of(document)), directory = std::filesystem::path(path).parent_path();
  if (!directory.empty()) TRY(sys::make_directories(directory).wrap("failed to create directory " + directory));
  TRY(sys::replace_file(path, text, kKubercMode).wrap("failed to write kuberc file"));
  out("Updated " + path + "\n");
  return 0;
}

// ---- view ----

// Asks a person who has no preferences whether he wants the recommended ones.
Result<int> offer_defaults(const std::string& path) {
  out("kuberc file not found at " + path + "\n");
  out("Would you like to generate a default kuberc file with recommended options? (y/N): ");
  std::string answer;
  if (!std::getline(std::cin, answer) || to_lower(trim(answer)) != "y") return 0;
  auto one = [](const char* command, const char* flag) {
    return json::object{{"command", command}, {"options", json::array{json::object{{"name", flag}, {"default", "true"}}}}};
  };
  json::value document = new_preference();
  document.as_object()["defaults"] = json::array{one("apply", "server-side"), one("delete", "interactive")};
  return save_kuberc(document, path);
}

Result<int> run_kuberc_view(Commands& commands, const KubercFlags& flags) {
  KubercFile file = TRY(kuberc_file(commands));
  auto loaded = load_kuberc(file);
  if (!loaded && loaded.error().code() == Code::not_found) {
    if (file.is_given) return Error(Code::not_found, "kuberc file not found at " + file.path);
    return offer_defaults(file.path);
  }
  if (!loaded) return loaded.take_error();
  json::value document = loaded->is_null() ? new_preference() : *std::move(loaded);
  for (const char* list : {"defaults", "aliases"})
    if (json::value& value = document.as_object()[list]; value.is_null()) value = json::array();
  if (flags.output == "name") out("preference.kubectl.config.k8s.io/<unknown>\n");
  else flags.output.print(std::move(document), JsonOrder::given);
  return 0;
}

// ---- set ----

Result<void> check_set(const KubercFlags& flags) {
  auto refused = [](const std::string& text) { return Error(Code::bad_request, text); };
  bool defaults = flags.section == "defaults", aliases = flags.section == "aliases",
       plugins = flags.section == "credentialplugin";
  if (!defaults && !aliases && !plugins)
    return refused(R"(--section must be "defaults", "aliases", or "credentialplugin", got: )" + flags.section);
  if (aliases && flags.name.empty()) return refused("--name is required when --section=aliases");
  if (defaults && !flags.name.empty()) return refused("--name should not be specified when --section=defaults");
  if (defaults && (!flags.prepend.empty() || !flags.append.empty()))
    return refused("--prependarg and --appendarg are only valid for --section=aliases");
  if (!plugins && flags.command.empty()) return refused("--command is required when --section=aliases or --section=defaults");
  if (!plugins) return {};
  if (flags.policy.empty()) return refused("--policy is required when --section=credentialplugin");
  if (flags.policy == "AllowAll" || flags.policy == "DenyAll") {
    if (flags.allowlist.empty()) return {};
    return refused("--allowlist-entry may only be used when --section=credentialplugin and --policy=Allowlist");
  }
  if (flags.policy != "Allowlist")
    return refused(R"(--policy must be "AllowAll", "DenyAll", or "Allowlist", got: )" + flags.policy);
  if (flags.allowlist.empty())
    return refused("--allowlist-entry is required when --section=credentialplugin and --policy=Allowlist");
  return {};
}

Result<json::array> options_given(const KubercFlags& flags) {
  json::array options;
  for (const std::string& option : flags.options) {
    size_t equals = option.find('=');
    if (equals == option.npos)
      return Error(Code::bad_request, "invalid option format " + coracle::quoted(option) + ", expected flag=value");
    std::string name = option.substr(0, equals);
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    options.push_back(json::object{{"name", name}, {"default", option.substr(equals + 1)}});
  }
  return options;
}

// The entry of `list` whose `field` is `value`, which may be there only with --overwrite; a new one otherwise.
Result<json::object*> kuberc_entry(json::value& document, const char* list, const char* field, const std::string& value,
                                   const KubercFlags& flags) {
  json::value& entries = document.as_object()[list];
  if (!entries.is_array()) entries.emplace_array();
  for (json::value& entry : entries.get_array()) {
    if (get_string(entry, field) != value) continue;
    if (flags.overwrite) return &entry.as_object();
    return Error(Code::already_exists,
                 (std::string_view(list) == "aliases" ? "alias " + coracle::quoted(value) + " already exists"
                                                      : "defaults for command " + coracle::quoted(value) + " already exist") +
                     ", use --overwrite to replace");
  }
  entries.get_array().emplace_back(json::object{{field, value}});
  return &entries.get_array().back().get_object();
}

Result<json::array> allowlist_given(const KubercFlags& flags) {
  json::array entries;
  std::vector<std::string> wrong;
  for (const std::string& pairs : flags.allowlist)
    for (std::string_view pair : split(pairs, ',')) {
      size_t equals = pair.find('=');
      std::string field(pair.substr(0, equals)), value(equals == pair.npos ? "" : pair.substr(equals + 1));
      if (equals == pair.npos) wrong.push_back("improperly formatted allowlist entry: " + coracle::quoted(pair));
      else if (field == "name") wrong.emplace_back(R"(allowlist entry field "name" is deprecated, use "command" instead)");
      else if (field != "command") wrong.push_back("unrecognized allowlist entry field: " + coracle::quoted(field));
      else if (trim(value).empty()) wrong.push_back("empty value in allowlist entry for field " + coracle::quoted(field));
      else entries.push_back(json::object{{"command", value}});
    }
  if (wrong.size() == 1) return Error(Code::bad_request, wrong.front());
  if (!wrong.empty()) return Error(Code::bad_request, "[" + join(wrong, ", ") + "]");
  return entries;
}

// The members of an alias stand in the order of the type.
json::object ordered_alias(const json::object& entry) {
  json::object ordered;
  for (const char* field : {"name", "command", "prependArgs", "appendArgs", "options"})
    if (const json::value* value = entry.if_contains(field)) ordered[field] = *value;
  return ordered;
}

Result<int> run_kuberc_set(Commands& commands, const KubercFlags& flags) {
  KubercFile file = TRY(kuberc_file(commands));
  TRY(check_set(flags));
  auto loaded = load_kuberc(file);
  if (!loaded && loaded.error().code() != Code::not_found) return loaded.take_error();
  json::value document = !loaded || loaded->is_null() ? new_preference() : *std::move(loaded);
  json::array options = TRY(options_given(flags));
  if (flags.section == "defaults") {
    json::object* entry = TRY(kuberc_entry(document, "defaults", "command", flags.command, flags));
    if (!options.empty() || !entry->contains("options"))
      (*entry)["options"] = options.empty() ? json::value(nullptr) : json::value(std::move(options));
  } else if (flags.section == "aliases") {
    json::object* entry = TRY(kuberc_entry(document, "aliases", "name", flags.name, flags));
    (*entry)["command"] = flags.command;
    if (!options.empty()) (*entry)["options"] = std::move(options);
    if (!flags.prepend.empty()) (*entry)["prependArgs"] = array_of(flags.prepend);
    if (!flags.append.empty()) (*entry)["appendArgs"] = array_of(flags.append);
    *entry = ordered_alias(*entry);
  } else {
    if (flags.policy == "Allowlist") {
      json::array entries = TRY(allowlist_given(flags));
      document.as_object()["credentialPluginAllowlist"] = std::move(entries);
    }
    document.as_object()["credentialPluginPolicy"] = flags.policy;
  }
  return save_kuberc(document, file.path);
}

}  // namespace

void add_kuberc(Commands& commands) {
  Command kuberc = commands.add("kuberc", "Your own preferences: aliases, and defaults of flags, in ~/.kube/kuberc");
  commands.on(kuberc, [kuberc]() -> Result<int> { return tell(help_of(kuberc, terminal_width())), 1; });
  auto view_flags = std::make_shared<KubercFlags>();
  Command view = commands.add("view", "Show the preferences", kuberc);
  commands.ignore_words(view);
  commands.add_output(view, view_flags->output);
  view.add_option("--kuberc", commands.flags().kuberc, "the file with the preferences");
  commands.on(view, [&commands, view_flags] { return run_kuberc_view(commands, *view_flags); });

  auto flags = std::make_shared<KubercFlags>();
  Command set = commands.add("set", "Change the preferences", kuberc);
  commands.ignore_words(set);
  set.add_option("--section", flags->section, "defaults, aliases or credentialplugin").required();
  set.add_option("--command", flags->command, "the command that gets defaults, or that the alias means: get, 'set env'");
  set.add_option("--name", flags->name, "the alias");
  set.add_option("--option", flags->options, "FLAG=VALUE; may be repeated");
  set.add_option("--prependarg", flags->prepend, "an argument that the alias puts first; may be repeated");
  set.add_option("--appendarg", flags->append, "an argument that the alias puts last; may be repeated");
  set.add_option("--policy", flags->policy, "which credential plugins may run: AllowAll, DenyAll or Allowlist");
  set.add_option("--allowlist-entry", flags->allowlist, "command=PROGRAM that may run; may be repeated");
  set.add_flag("--overwrite", flags->overwrite, "replace what is there");
  set.add_option("--kuberc", commands.flags().kuberc, "the file with the preferences");
  commands.on(set, [&commands, flags] { return run_kuberc_set(commands, *flags); });
}

}  // namespace coracle::ctl
