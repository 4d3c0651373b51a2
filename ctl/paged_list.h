// SPDX-License-Identifier: Apache-2.0
// Lists in parts, so that neither side holds an answer of any size at once.
#pragma once

#include "ctl/session.h"

namespace coracle::ctl {

constexpr int64_t kChunkSize = 500;  // kubectl's --chunk-size

// The whole list, from answers of at most `chunk_size` objects; 0: from one. Its revision is that of the last answer. Errors: the
// server's; of a list that changed too much meanwhile, gone.
Result<json::value> paged_list(Session& session, Request request, int64_t chunk_size);

// A list's error as kubectl says it: with the kind and, if the list was selected, what by.
Error about_list(Error error, const schema::KindInfo& kind, const std::string& labels, const std::string& fields);

}  // namespace coracle::ctl
