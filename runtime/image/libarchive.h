// SPDX-License-Identifier: Apache-2.0
// The functions of libarchive that coraclectl uses. In namespace coracle, their names mean the pointers below, so calls are
// written as with a linked library. A program links one of two definitions: coracle-image needs libarchive always and links it
// (libarchive_linked.cc); coraclectl loads it for the commands that use it (libarchive_loaded.cc), since the library and those
// that it needs take more time at a start than most commands.
//
// dpkg-shlibdeps does not see what is loaded. The Debian package depends on libarchive all the same: coracle-image is in it too.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "runtime/base/result.h"

#define CORACLE_ARCHIVE_FUNCTIONS(X)        \
  X(archive_entry_copy_pathname)            \
  X(archive_entry_copy_sourcepath)          \
  X(archive_entry_dev)                      \
  X(archive_entry_filetype)                 \
  X(archive_entry_free)                     \
  X(archive_entry_hardlink)                 \
  X(archive_entry_ino64)                    \
  X(archive_entry_new)                      \
  X(archive_entry_nlink)                    \
  X(archive_entry_pathname)                 \
  X(archive_entry_perm)                     \
  X(archive_entry_set_filetype)             \
  X(archive_entry_set_gid)                  \
  X(archive_entry_set_gname)                \
  X(archive_entry_set_hardlink)             \
  X(archive_entry_set_mtime)                \
  X(archive_entry_set_pathname)             \
  X(archive_entry_set_perm)                 \
  X(archive_entry_set_size)                 \
  X(archive_entry_set_uid)                  \
  X(archive_entry_set_uname)                \
  X(archive_entry_size)                     \
  X(archive_entry_unset_atime)              \
  X(archive_entry_unset_birthtime)          \
  X(archive_entry_unset_ctime)              \
  X(archive_error_string)                   \
  X(archive_read_data)                      \
  X(archive_read_disk_descend)              \
  X(archive_read_disk_entry_from_file)      \
  X(archive_read_disk_new)                  \
  X(archive_read_disk_open)                 \
  X(archive_read_disk_set_behavior)         \
  X(archive_read_disk_set_symlink_hybrid)   \
  X(archive_read_disk_set_symlink_physical) \
  X(archive_read_free)                      \
  X(archive_read_new)                       \
  X(archive_read_next_header)               \
  X(archive_read_next_header2)              \
  X(archive_read_open_fd)                   \
  X(archive_read_support_format_gnutar)     \
  X(archive_read_support_format_tar)        \
  X(archive_set_error)                      \
  X(archive_write_close)                    \
  X(archive_write_data)                     \
  X(archive_write_disk_new)                 \
  X(archive_write_disk_set_options)         \
  X(archive_write_finish_entry)             \
  X(archive_write_free)                     \
  X(archive_write_header)                   \
  X(archive_write_new)                      \
  X(archive_write_open)                     \
  X(archive_write_open_fd)                  \
  X(archive_write_set_bytes_in_last_block)  \
  X(archive_write_set_bytes_per_block)      \
  X(archive_write_set_format_gnutar)        \
  X(archive_write_set_format_option)        \
  X(archive_write_set_format_pax)           \
  X(archive_write_set_format_pax_restricted)

namespace coracle {

#define CORACLE_DECLARE(name) extern decltype(&::name) name;
CORACLE_ARCHIVE_FUNCTIONS(CORACLE_DECLARE)
#undef CORACLE_DECLARE

// Loads libarchive, the first time; before that, a program that does not link it must not call its functions. Errors:
// unavailable. Thread-safe.
Result<void> load_libarchive();

}  // namespace coracle
