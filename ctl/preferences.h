// SPDX-License-Identifier: Apache-2.0
// A person's preferences in the kuberc file: defaults for flags of commands, aliases, and which credential plugins may run. A
// line is changed as the file says before it is read:
//   words ──read_preferences──▶ Preferences ──apply_preferences──▶ words
// Source: kubectl pkg/kuberc; the API group kubectl.config.k8s.io, versions v1beta1 and v1alpha1 (KEP-3104).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/flags.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

struct FlagDefault {
  std::string name, value;
};

struct CommandDefaults {
  std::string command;  // "get", "set env"
  std::vector<FlagDefault> options;
};

struct CommandAlias {
  std::string name, command;
  std::vector<std::string> prepend, append;
  std::vector<FlagDefault> options;
};

struct Preferences {
  std::vector<CommandDefaults> defaults;
  std::vector<CommandAlias> aliases;
  std::string plugin_policy;  // "": as AllowAll
  std::vector<std::string> plugin_allowlist;
};

struct KubercFile {
  std::string path;                                          // "": there are no preferences, KUBERC=off
  bool is_given = false;                                     // by the flag or $KUBERC: then it has to be there
  static Result<KubercFile> find(const std::string& given);  // Errors: bad_request where the flag contradicts $KUBERC
};

// The first document of `text` that is a Preference, as v1beta1 has it; null where the text is empty. `unknown` gets what a
// Preference does not have: `unknown field "defaults[0].x"`. Errors: invalid where there are only others. Pure.
Result<json::value> decode_preference(std::string_view text, const std::string& path, std::vector<std::string>& unknown);
// Of such a document. Errors: invalid, for names that kubectl does not take. Pure.
Result<Preferences> preferences_of(const json::value& document);

// The value of -v in a line whose flags are not read yet; 0 without. Pure.
int given_verbosity(const std::vector<std::string>& words);

// Those of the line's --kuberc, of $KUBERC or of ~/.kube/kuberc; nothing where there are none. A file of the last kind that
// cannot be read is told and left out. Errors: for one that was given.
Result<std::optional<Preferences>> read_preferences(const std::vector<std::string>& words);

// The line as the preferences change it: `words` follow the program's name. Errors: invalid, in kubectl's words. Pure.
Result<std::vector<std::string>> apply_preferences(Command root, const Preferences& preferences, std::vector<std::string> words);

// Whether the policy lets `command` run, which a credential plugin's kubeconfig names. Errors: forbidden, in client-go's words.
Result<void> check_plugin_policy(const std::string& policy, const std::vector<std::string>& allowlist,
                                 const std::string& command);

}  // namespace coracle::ctl
