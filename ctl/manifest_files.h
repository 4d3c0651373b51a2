// SPDX-License-Identifier: Apache-2.0
// Where the manifests are that -f names: files, directories, patterns, standard input, URLs. What is in them is session.h's.
// Source: k8s.io/cli-runtime pkg/resource/builder.go, FilenameParam and Path; visitor.go.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::ctl {

// What `names` stand for, in the order in which it is read: paths of files, "-" for standard input, and URLs. A directory stands
// for its *.json, *.yaml and *.yml, sorted, with `recursive` also of those below it; a name that is no path is a pattern
// ("*.yaml", "d?/[a-c]*.json"), whose matches are sorted too. Reads directories, no files. Errors: not_found for what is not
// there and for directories without a manifest; errno's for a directory that cannot be read; bad_request for standard input
// twice.
Result<std::vector<std::string>> manifest_sources(const std::vector<std::string>& names, bool recursive);

bool is_url(const std::string& source);

// The text of one of these. Blocks. Errors: errno's; not_found; those of download().
Result<std::string> read_manifest(const std::string& source);

}  // namespace coracle::ctl
