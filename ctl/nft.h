// SPDX-License-Identifier: Apache-2.0
// nftables for doctor. libnftables is loaded on first use, because it brings five more libraries that no other command needs.
// Source: libnftables(3).
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// The output of `nft -j list ruleset` in this network namespace. Errors: unavailable without the library; forbidden.
Result<json::value> list_ruleset();
// Tries a table with NAT and maps, as the daemon uses them, in a new network namespace. Errors: the message of nft.
Result<void> try_nftables();

}  // namespace coracle::ctl
