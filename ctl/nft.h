// SPDX-License-Identifier: Apache-2.0
// The kernel's packet filter as nft(8) sees it, for the doctor. The library is loaded when it is asked for: five libraries
// come with it that no other command should have to load. Source: libnftables(3).
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// What `nft -j list ruleset` prints, of our network namespace. Errors: unavailable without the library; forbidden.
Result<json::value> list_ruleset();
// Makes a table with NAT and maps like ours in a network namespace of its own. Errors: what nft said.
Result<void> try_nftables();

}  // namespace coracle::ctl
