// SPDX-License-Identifier: Apache-2.0
// Resolves "user[:group]" to numbers with an image's /etc/passwd and /etc/group, which are untrusted. Pure, except
// read_account_file. Source: opencontainers/image-spec config.md "User"; passwd(5), group(5).
#pragma once

#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::image {

constexpr size_t kPasswdMax = 1 << 20;  // bytes; larger files are an error
constexpr size_t kGroupsMax = 1024;     // supplementary groups of one user; the kernel's limit is 65536
constexpr uint32_t kIdMax = INT32_MAX;  // as the kubelet and runc

// "" is root. A number needs no entry; a name does. Errors: invalid.
Result<oci::User> find_user(std::string_view user, std::string_view passwd, std::string_view group);

// The text of one of the two files in a root file system that the container's image shaped: a regular file, or a link to one
// there, not larger than kPasswdMax; "" when absent. Errors: invalid, too_large.
Result<std::string> read_account_file(const Fd& root, const std::string& path);

}  // namespace coracle::image
