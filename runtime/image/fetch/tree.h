// SPDX-License-Identifier: Apache-2.0
// runtime::Trees in coracle-image: writes a directory tree as an archive, unpacks one, and copies a tree. Every step works by
// descriptor inside the trees; links are not followed out of them. Paths have at most 4095 bytes.
#pragma once

#include "runtime/base/fd.h"
#include "runtime/runtime.h"

namespace coracle::image {

// `counted`: called from time to time and at the end; may be null. Unpacked or copied data is synced to the disk on return.
Result<void> write_tree(const Fd& directory, const Fd& archive, const runtime::TreeProgress& counted);
Result<void> read_tree(const Fd& archive, const Fd& directory, const runtime::TreeProgress& counted);
Result<void> copy_tree(const Fd& from, const Fd& to, const runtime::TreeProgress& counted);

// The attributes that are preserved.
bool is_tree_attribute(std::string_view name);

}  // namespace coracle::image
