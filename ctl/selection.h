// SPDX-License-Identifier: Apache-2.0
// Which objects a line means, where it may name them by words (KIND NAME, KIND/NAME), by files, by a selector or by --all: what
// of these may stand together, and what only seems to. A line that could mean fewer objects than the command would take is an
// error. Source: k8s.io/cli-runtime pkg/resource/builder.go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/command.h"

namespace coracle::ctl {

struct SelectionFlags {
  const FileFlags& files;
  std::string_view selector, field_selector;  // as typed
  bool all = false;                           // --all, of commands that refuse it beside names
  bool kind_means_all = false;                // a kind alone means all its objects
  bool all_namespaces = false;

  // Spaces alone select nothing, and are as good as no selector. So are the commas of a field selector without a term, as
  // "$A,$B" is where neither is set: a server takes it for one that matches everything.
  std::string labels() const;
  std::string fields() const;
  bool has_selector() const { return !labels().empty() || !fields().empty(); }
};

// The objects that `args` name; one without a name stands for those of its kind that the selectors match. Nothing where the
// objects are in files. Pure. Errors: bad_request, in kubectl's words, for what contradicts itself, for a line that names
// nothing, and as parse_named(); with `unknown`, unknown kinds are told there.
Result<std::vector<Named>> named_by(const SelectionFlags& selection, const std::vector<std::string>& args,
                                    std::vector<Error>* unknown = nullptr);
// Removes the documents whose labels the selector does not match. Pure. Errors: bad_request for a malformed one.
Result<void> select_documents(std::string_view selector, std::vector<Document>& documents);

}  // namespace coracle::ctl
