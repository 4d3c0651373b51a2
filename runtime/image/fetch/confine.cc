// SPDX-License-Identifier: Apache-2.0
// See confine.h. Source: mount_setattr(2), capabilities(7), seccomp(2), proc(5) oom_score_adj; kernel
// Documentation/filesystems/overlayfs.rst for why trusted.* attributes need CAP_SYS_ADMIN.
#include "runtime/image/fetch/confine.h"

#include <fcntl.h>
#include <linux/mount.h>

#include "runtime/container/seccomp_program.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/process.h"

namespace coracle::image {
namespace {

constexpr uint64_t kSlave = 1 << 19;  // MS_SLAVE; <sys/mount.h> clashes with <linux/mount.h>
constexpr int kOomScore = 500;        // before any daemon, after nobody

// Mounts that the machine undoes while we work are undone here too: nothing stays busy because of us.
Result<void> confine_files(const std::string& store) {
  Fd root = TRY(sys::open("/", O_PATH | O_DIRECTORY));
  TRY(sys::change_mount(root, {.propagation = kSlave, .recursive = true}));
  Fd own = TRY(sys::clone_mount(store, false));
  TRY(sys::change_mount(own, {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC}));
  TRY(sys::change_mount(root, {.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .recursive = true}));
  Fd place = TRY(sys::open(store, O_PATH | O_DIRECTORY));
  return sys::attach_mount(own, place);
}

}  // namespace

Result<void> confine(const std::string& store) {
  TRY(sys::set_own_oom_score(kOomScore));
  TRY(confine_files(store).wrap("confine files"));
  // The profile is that of a container without CAP_SYS_ADMIN, which is kept for the overlay's attributes and nothing
  // else.
  uint64_t files =
      TRY(oci::capability_set({"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_MKNOD", "CAP_SETFCAP"}));
  uint64_t attributes = TRY(oci::capability_set({"CAP_SYS_ADMIN"}));
  runtime::SeccompProgram filter = TRY(runtime::compile_seccomp(oci::default_seccomp(), files).wrap("confine system calls"));
  TRY(sys::keep_capabilities(files | attributes).wrap("confine capabilities"));
  return sys::filter_system_calls(filter.instructions, filter.flags).wrap("confine system calls");
}

}  // namespace coracle::image
