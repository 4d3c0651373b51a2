// SPDX-License-Identifier: Apache-2.0
// See preferences.h.
#include "ctl/preferences.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "ctl/command.h"
#include "ctl/completion.h"
#include "ctl/help.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/run.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr std::string_view kBeta = "kubectl.config.k8s.io/v1beta1", kAlpha = "kubectl.config.k8s.io/v1alpha1";
constexpr size_t kKubercBytesMax = 1 << 20;
constexpr int kVerbosityOfFiles = 5;  // -v, from which on a file without preferences is told

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void note_unknown(const json::object& object, const std::string& at, std::initializer_list<std::string_view> known,
                  std::vector<std::string>& unknown) {
  for (const auto& [name, value] : object)
    if (std::find(known.begin(), known.end(), name) == known.end())
      unknown.push_back("unknown field " + coracle::quoted(at + std::string(name)));
}

// A list of objects, each with the members that `make_one` keeps. Errors: invalid, naming the field.
template <typename F>
Result<json::array> read_list(const json::value& document, const char* field, F&& make_one) {
  json::array made;
  const json::value* list = find(document, field);
  if (!list || list->is_null()) return made;
  if (!list->is_array()) return Error(Code::invalid, std::string(field) + ": expected a list");
  size_t index = 0;
  for (const json::value& one : list->get_array()) {
    std::string at = std::string(field) + "[" + std::to_string(index++) + "]";
    if (!one.is_object()) return Error(Code::invalid, at + ": expected an object");
    json::object object = TRY(make_one(one.get_object(), at + "."));
    made.push_back(std::move(object));
  }
  return made;
}

Result<void> take_text(const json::object& from, const char* field, const std::string& at, json::object& to, bool always = true) {
  const json::value* value = from.if_contains(field);
  if (value && !value->is_null() && !value->is_string()) return Error(Code::invalid, at + field + ": expected a string");
  std::string text(value && value->is_string() ? std::string_view(value->get_string()) : std::string_view());
  if (always || !text.empty()) to[field] = text;
  return {};
}

Result<void> take_texts(const json::object& from, const char* field, const std::string& at, json::object& to) {
  const json::value* value = from.if_contains(field);
  if (!value || value->is_null()) return {};
  if (!value->is_array()) return Error(Code::invalid, at + field + ": expected a list");
  for (const json::value& one : value->get_array())
    if (!one.is_string()) return Error(Code::invalid, at + field + ": expected strings");
  if (!value->get_array().empty()) to[field] = *value;
  return {};
}

// "options" of v1beta1, "flags" of v1alpha1.
Result<void> take_options(const json::object& from, const char* field, const std::string& at, json::object& to, bool always,
                          std::vector<std::string>& unknown) {
  auto one_option = [&](const json::object& one, const std::string& here) -> Result<json::object> {
    note_unknown(one, at + here, {"name", "default"}, unknown);
    json::object option;
    TRY(take_text(one, "name", at + here, option));
    TRY(take_text(one, "default", at + here, option));
    return option;
  };
  json::array options = TRY(read_list(json::value(from), field, one_option));
  if (always) to["options"] = options.empty() && !from.if_contains(field) ? json::value(nullptr) : json::value(options);
  else if (!options.empty()) to["options"] = std::move(options);
  return {};
}

// A Preference of either version as v1beta1.
Result<json::object> read_preference(const json::value& document, std::vector<std::string>& unknown) {
  bool alpha = get_string(document, "apiVersion") == kAlpha;
  const char* defaults_field = alpha ? "overrides" : "defaults";
  const char* options_field = alpha ? "flags" : "options";
  if (alpha) note_unknown(document.get_object(), "", {"kind", "apiVersion", "overrides", "aliases"}, unknown);
  else
    note_unknown(document.get_object(), "",
                 {"kind", "apiVersion", "defaults", "aliases", "credentialPluginPolicy", "credentialPluginAllowlist"}, unknown);
  json::object read{{"kind", "Preference"}, {"apiVersion", kBeta}, {"defaults", nullptr}, {"aliases", nullptr}};
  auto one_default = [&](const json::object& one, const std::string& at) -> Result<json::object> {
    note_unknown(one, at, {"command", options_field}, unknown);
    json::object made;
    TRY(take_text(one, "command", at, made));
    TRY(take_options(one, options_field, at, made, true, unknown));
    return made;
  };
  auto one_alias = [&](const json::object& one, const std::string& at) -> Result<json::object> {
    note_unknown(one, at, {"name", "command", "prependArgs", "appendArgs", options_field}, unknown);
    json::object made;
    TRY(take_text(one, "name", at, made));
    TRY(take_text(one, "command", at, made));
    TRY(take_texts(one, "prependArgs", at, made));
    TRY(take_texts(one, "appendArgs", at, made));
    TRY(take_options(one, options_field, at, made, false, unknown));
    return made;
  };
  auto one_entry = [&](const json::object& one, const std::string& at) -> Result<json::object> {
    note_unknown(one, at, {"name", "command"}, unknown);
    json::object made;
    TRY(take_text(one, "name", at, made, false));
    TRY(take_text(one, "command", at, made, false));
    return made;
  };
  json::array defaults = TRY(read_list(document, defaults_field, one_default));
  json::array aliases = TRY(read_list(document, "aliases", one_alias));
  if (find(document, defaults_field)) read["defaults"] = std::move(defaults);
  if (find(document, "aliases")) read["aliases"] = std::move(aliases);
  if (alpha) return read;
  TRY(take_text(document.get_object(), "credentialPluginPolicy", "", read, false));
  const json::value* entries = find(document, "credentialPluginAllowlist");
  json::array allowlist = TRY(read_list(document, "credentialPluginAllowlist", one_entry));
  if (entries && entries->is_array()) read["credentialPluginAllowlist"] = std::move(allowlist);
  return read;
}

std::vector<FlagDefault> flag_defaults_of(const json::value& one) {
  std::vector<FlagDefault> options;
  for (const json::value& option : get_array(one, "options"))
    options.push_back({std::string(get_string(option, "name")), std::string(get_string(option, "default"))});
  return options;
}

Result<void> check_flag_names(const std::vector<FlagDefault>& options) {
  for (const FlagDefault& option : options)
    if (option.name.starts_with('-'))
      return Error(Code::invalid, "flag name " + option.name + " should be in long form without dashes");
  return {};
}

Result<void> check_policy(const json::value& document) {
  std::string policy(get_string(document, "credentialPluginPolicy"));
  const json::value* entries = find(document, "credentialPluginAllowlist");
  bool listed = entries && entries->is_array();
  if (policy.empty() || policy == "AllowAll" || policy == "DenyAll") {
    if (!listed) return {};
    return Error(Code::invalid, "misconfigured credential plugin allowlist: plugin policy is " + coracle::quoted(policy) +
                                    " but allowlist is non-nil");
  }
  if (policy != "Allowlist") return Error(Code::invalid, "unknown plugin policy: " + coracle::quoted(policy));
  if (!listed) return Error(Code::invalid, R"(credential plugin policy set to "Allowlist", but allowlist is unspecified)");
  if (entries->get_array().empty())
    return Error(Code::invalid,
                 R"(credential plugin policy set to "Allowlist", but allowlist is empty; use "DenyAll" policy instead)");
  size_t number = 0;
  for (const json::value& entry : entries->get_array())
    if (++number; get_string(entry, "command").empty() && get_string(entry, "name").empty())
      return Error(Code::invalid, "misconfigured credential plugin allowlist: empty allowlist entry #" + std::to_string(number));
  return {};
}

// The value of --kuberc on the line; the tree of commands may not be there yet.
Result<std::string> given_kuberc(const std::vector<std::string>& words) {
  constexpr std::string_view kFlag = "--kuberc";
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    std::string_view word = words[i];
    if (!word.starts_with(kFlag)) continue;
    word.remove_prefix(kFlag.size());
    std::string value;
    if (word.empty()) value = i + 1 < words.size() ? words[i + 1] : "";
    else if (word.starts_with('=')) value = word.substr(1);
    else continue;
    if (value.empty()) return Error(Code::bad_request, "kuberc file is not found");
    return value;
  }
  return std::string();
}

size_t own_words(const std::vector<std::string>& words) {  // up to "--"
  return size_t(std::find(words.begin(), words.end(), "--") - words.begin());
}

Line line_of(Command root, std::vector<std::string> words) {
  words.resize(own_words(words));
  words.emplace_back();  // no word is being typed after it
  return parse_line(root, words);
}

// Where the first word stands that is neither a flag nor a flag's value; there is one.
size_t first_argument(Command root, const std::vector<std::string>& words) {
  size_t at = 0;
  while (line_of(root, {words.begin(), words.begin() + ptrdiff_t(at) + 1}).positionals.empty()) ++at;
  return at;
}

Flag flag_named(Command command, const std::string& name) {
  for (; command; command = command.parent())
    if (Flag flag = command.find_flag("--" + name)) return flag;
  return {};
}

// Whether the line gives the flag itself: as "--name", "--name=value", "-n…", or among other letters of one word.
bool is_given(Flag flag, const std::vector<std::string>& words) {
  auto letters_only = [](std::string_view word) {
    return word.size() > 1 && std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isalpha(c); });
  };
  for (size_t i = 0; i < own_words(words); ++i) {
    const std::string& word = words[i];
    for (const auto& name : flag.long_names())
      if (word == "--" + name || word.starts_with("--" + name + "=")) return true;
    for (const auto& name : flag.short_names()) {
      if (word.starts_with("-" + name)) return true;
      if (word.starts_with('-') && letters_only(word) && word.find(name) != word.npos) return true;
    }
  }
  return false;
}

// `kind` and `where` say in an error what the flag is, and for what.
Result<void> add_flags(Command command, const std::vector<FlagDefault>& options, const char* kind, const std::string& where,
                       std::vector<std::string>& words) {
  for (const FlagDefault& option : options) {
    Flag flag = flag_named(command, option.name);
    if (!flag || flag.is_argument())
      return Error(Code::invalid, std::string("invalid ") + kind + " " + option.name + " " + where);
    if (is_given(flag, words)) continue;
    if (!flag.may_have_value() && !parse_bool(option.value))
      return Error(Code::invalid, "could not apply value " + option.value + " to flag " + option.name + ": true or false");
    words.insert(words.begin() + ptrdiff_t(own_words(words)), "--" + option.name + "=" + option.value);
  }
  return {};
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> fields;
  for (std::string_view word : split(text, ' '))
    if (!trim(word).empty()) fields.emplace_back(trim(word));
  return fields;
}

}  // namespace

Result<KubercFile> KubercFile::find(const std::string& given) {
  std::string from_environment = variable("KUBERC"), home = variable("HOME");
  if (from_environment == "off") {
    if (!given.empty())
      return Error(Code::bad_request, "disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive");
    return KubercFile();
  }
  if (!given.empty()) return KubercFile{given, true};
  if (!from_environment.empty()) return KubercFile{from_environment, true};
  return KubercFile{home + "/.kube/kuberc", false};
}

Result<json::value> decode_preference(std::string_view text, const std::string& path, std::vector<std::string>& unknown) {
  std::vector<json::value> documents = TRY(parse_yaml(text).wrap(path));
  bool any = false;
  for (const json::value& document : documents) {
    if (document.is_null()) continue;
    any = true;
    std::string_view version = get_string(document, "apiVersion");
    if (!document.is_object() || get_string(document, "kind") != "Preference" || (version != kBeta && version != kAlpha))
      continue;
    std::vector<std::string> found;
    auto read = read_preference(document, found);
    if (!read && documents.size() == 1) return read.take_error().wrap(path);
    if (!read) continue;
    unknown = std::move(found);
    return json::value(*std::move(read));
  }
  if (any) return Error(Code::invalid, "no valid preferences found in " + path + ": kind Preference of " + std::string(kBeta));
  return json::value();
}

Result<Preferences> preferences_of(const json::value& document) {
  Preferences preferences;
  TRY(check_policy(document));
  std::set<std::string> names;
  for (const json::value& one : get_array(document, "aliases")) {
    CommandAlias alias{std::string(get_string(one, "name")), std::string(get_string(one, "command")),
                       get_strings(one, "prependArgs"), get_strings(one, "appendArgs"), flag_defaults_of(one)};
    bool letters =
        !alias.name.empty() && std::all_of(alias.name.begin(), alias.name.end(), [](unsigned char c) { return std::isalpha(c); });
    if (!letters) return Error(Code::invalid, "invalid alias name, can only include alphabetical characters");
    TRY(check_flag_names(alias.options));
    if (!names.insert(alias.name).second) return Error(Code::invalid, "duplicate alias name " + alias.name);
    preferences.aliases.push_back(std::move(alias));
  }
  for (const json::value& one : get_array(document, "defaults")) {
    CommandDefaults defaults{std::string(get_string(one, "command")), flag_defaults_of(one)};
    TRY(check_flag_names(defaults.options));
    preferences.defaults.push_back(std::move(defaults));
  }
  preferences.plugin_policy = get_string(document, "credentialPluginPolicy");
  for (const json::value& entry : get_array(document, "credentialPluginAllowlist")) {
    std::string_view command = get_string(entry, "command");
    preferences.plugin_allowlist.emplace_back(command.empty() ? get_string(entry, "name") : command);
  }
  return preferences;
}

int given_verbosity(const std::vector<std::string>& words) {
  int verbosity = 0;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    std::string_view word = words[i];
    const bool is_long = word.starts_with("--v");
    if (!is_long && !word.starts_with("-v")) continue;
    word.remove_prefix(is_long ? 3 : 2);
    if (word.empty()) word = i + 1 < words.size() ? std::string_view(words[i + 1]) : std::string_view();
    else if (word.starts_with('=')) word.remove_prefix(1);
    else if (is_long) continue;  // --validate
    verbosity = parse_number<int>(word).value_or(verbosity);
  }
  return verbosity;
}

Result<std::optional<Preferences>> read_preferences(const std::vector<std::string>& words) {
  if (to_lower(variable("KUBECTL_KUBERC")) == "false") return std::optional<Preferences>();
  std::string given = TRY(given_kuberc(words));
  KubercFile file = TRY(KubercFile::find(given));
  if (file.path.empty()) return std::optional<Preferences>();
  auto text = sys::read_file(file.path, kKubercBytesMax);
  bool missing = !text && text.error().code() == Code::not_found;
  if (missing && !file.is_given) return std::optional<Preferences>();
  if (missing) return Error(Code::not_found, "kuberc error kuberc: open " + file.path + ": no such file or directory");
  std::vector<std::string> unknown;
  Result<json::value> document = text ? decode_preference(*text, file.path, unknown) : Result<json::value>(text.take_error());
  if (!document && !file.is_given) {
    tell("kuberc: no preferences loaded from " + file.path + ": " + document.error().text() + "\n");
    return std::optional<Preferences>();
  }
  if (!document) return Error(Code::invalid, "kuberc error kuberc: " + document.error().text());
  if (!unknown.empty())
    tell("kuberc: ignoring strict decoding error in " + file.path + ": strict decoding error: " + join(unknown, ", ") + "\n");
  if (document->is_null()) {
    if (given_verbosity(words) >= kVerbosityOfFiles) tell("kuberc: no preferences found in " + file.path + "\n");
    return std::optional<Preferences>();
  }
  Preferences preferences = TRY(preferences_of(*document));
  return std::optional(std::move(preferences));
}

Result<std::vector<std::string>> apply_preferences(Command root, const Preferences& preferences, std::vector<std::string> words) {
  Line line = line_of(root, words);
  bool unknown_command = line.command == root && !line.positionals.empty();
  if (unknown_command) {
    auto alias = std::find_if(preferences.aliases.begin(), preferences.aliases.end(),
                              [&](const CommandAlias& one) { return one.name == line.positionals.front(); });
    if (alias == preferences.aliases.end()) return words;
    std::vector<std::string> path = words_of(alias->command);
    Command command = path.empty() ? Command() : command_at(root, path);
    if (!command)
      return Error(Code::invalid,
                   "command " + coracle::quoted(alias->command) + " not found to set alias " + coracle::quoted(alias->name));
    TRY(add_flags(command, alias->options, "alias flag", "in alias " + alias->name, words));
    auto at = words.erase(words.begin() + ptrdiff_t(first_argument(root, words)));
    path.insert(path.end(), alias->prepend.begin(), alias->prepend.end());
    words.insert(at, path.begin(), path.end());
    words.insert(words.end(), alias->append.begin(), alias->append.end());
    return words;  // an alias has its own defaults, as kubectl's
  }
  for (const CommandDefaults& defaults : preferences.defaults) {
    std::vector<std::string> path = words_of(defaults.command);
    Command command = path.empty() ? Command() : command_at(root, path);
    if (!command) {
      tell("Warning: command " + coracle::quoted(defaults.command) + " not found to set kuberc override\n");
      continue;
    }
    if (path_of(command) != path_of(line.command)) continue;
    TRY(add_flags(line.command, defaults.options, "flag", "for command " + defaults.command, words));
  }
  return words;
}

Result<void> check_plugin_policy(const std::string& policy, const std::vector<std::string>& allowlist,
                                 const std::string& command) {
  const std::string kBefore = "Unable to connect to the server: getting credentials: ";
  if (policy.empty() || policy == "AllowAll") return {};
  if (policy != "Allowlist")
    return Error(Code::forbidden,
                 kBefore + "plugin " + coracle::quoted(command) + " not allowed: policy set to " + coracle::quoted(policy));
  auto resolved = [](const std::string& name) { return name.find('/') == name.npos ? sys::find_program(name) : name; };
  std::string path = resolved(command);
  for (const std::string& entry : allowlist)
    if (entry == command || entry == path || (!path.empty() && resolved(entry) == path)) return {};
  return Error(Code::forbidden, kBefore + "plugin path " + coracle::quoted(path.empty() ? command : path) +
                                    " is not permitted by the credential plugin allowlist");
}

}  // namespace coracle::ctl
