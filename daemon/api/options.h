// SPDX-License-Identifier: Apache-2.0
// The options of a request: ListOptions, CreateOptions, DeleteOptions and the others, from its query or, for deletions, from its
// body. They are parsed and validated as in Kubernetes. Unparsable options are a bad request; contradictory options are invalid,
// with one cause for each problem. Source: apimachinery meta/v1 conversion and validation, internalversion/validation; apiserver
// endpoints/handlers.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/api/call.h"

namespace coracle::api {

struct ListParameters {         // of list, watch and deletecollection
  ListOptions options;          // with the namespace of the URL
  std::string revision, match;  // resourceVersion, resourceVersionMatch: as given
  std::optional<bool> send_initial_events;
  bool bookmarks = false;
  std::optional<int64_t> timeout_seconds;
};
// Errors of this and of the others that read options: bad_request, invalid.
Result<ListParameters> read_list_parameters(const Call& call, bool watch);

// Parses a resourceVersion. unparsable() is the error text of Go's parser.
std::optional<Revision> parse_revision(std::string_view text);
std::string unparsable(std::string_view go_function, std::string_view text, bool is_number);
// resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax
Cause invalid_revision(std::string_view text);

// Waits a short time for a revision that does not exist yet. Errors: timeout.
Result<void> await_revision(const Call& call, Revision wanted);

// `options` is the kind: "CreateOptions", "UpdateOptions" or "PatchOptions". `causes`: what is wrong with other options of it.
Result<registry::Writer> read_writer(Call& call, std::string_view options, std::vector<Cause> causes = {});

struct DeleteParameters {
  DeleteOptions options;
  bool dry_run = false;
  bool accepts_later = false;  // orphanDependents=false: respond 202 if the object is not deleted at once
};
// The options from the body or, without a body, from the query; dryRun counts in both places. Reads the body.
Result<DeleteParameters> read_delete_parameters(Call& call);

// The error for options that contradict each other. `options`: as for read_writer().
Error invalid_options(std::string_view options, std::vector<Cause> causes);

}  // namespace coracle::api
