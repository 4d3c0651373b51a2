// SPDX-License-Identifier: Apache-2.0
// Options: what a request says beside the object it is about, in its query or, for deletions, in its body: ListOptions,
// CreateOptions, DeleteOptions and their kin, read and checked as Kubernetes does. What cannot be read is a bad request; what
// contradicts itself is invalid, with a cause for each finding.
// Source: apimachinery meta/v1 conversion and validation, internalversion/validation; apiserver endpoints/handlers.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/api/call.h"

namespace coracle::api {

struct ListParameters {         // of a list, a watch or the deletion of a collection
  ListOptions options;          // with the namespace of the URL
  std::string revision, match;  // resourceVersion, resourceVersionMatch: as given
  std::optional<bool> send_initial_events;
  bool bookmarks = false;
  std::optional<int64_t> timeout_seconds;
};
Result<ListParameters> read_list_parameters(const Call& call, bool watch);

// A resourceVersion as a number, or what Go's parser says of it.
std::optional<Revision> parse_revision(std::string_view text);
std::string unparsable(std::string_view go_function, std::string_view text, bool is_number);
// resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax
Cause invalid_revision(std::string_view text);

// Waits a moment for a revision that is yet to come. Errors: timeout.
Result<void> await_revision(const Call& call, Revision wanted);

// `options` names them: "CreateOptions", "UpdateOptions" or "PatchOptions".
Result<registry::Writer> read_writer(Call& call, std::string_view options);

struct DeleteParameters {
  DeleteOptions options;
  bool dry_run = false;
  bool accepts_later = false;  // orphanDependents=false: 202 for what is not gone at once
};
// The body's options, or, without a body, the query's; dryRun counts wherever it stands. Reads the body.
Result<DeleteParameters> read_delete_parameters(Call& call);

Error invalid_options(std::string_view options, std::vector<Cause> causes);

}  // namespace coracle::api
