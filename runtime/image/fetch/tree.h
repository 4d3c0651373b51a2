// SPDX-License-Identifier: Apache-2.0
// What coracle-image does for runtime::Trees: a directory tree as an archive, out of one, and copied. Every step is by descriptor
// inside the trees; no link in them is followed out. Paths are at most 4095 bytes long.
#pragma once

#include "runtime/base/fd.h"
#include "runtime/runtime.h"

namespace coracle::image {

// `counted`: called now and then, and at the end. May be null. What is read or copied is on the disk when they return.
Result<void> write_tree(const Fd& directory, const Fd& archive, const runtime::TreeProgress& counted);
Result<void> read_tree(const Fd& archive, const Fd& directory, const runtime::TreeProgress& counted);
Result<void> copy_tree(const Fd& from, const Fd& to, const runtime::TreeProgress& counted);

// The attributes that go along.
bool is_tree_attribute(std::string_view name);

}  // namespace coracle::image
