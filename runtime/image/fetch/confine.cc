// SPDX-License-Identifier: Apache-2.0
// See confine.h. Source: mount_setattr(2), pivot_root(2), capabilities(7), seccomp(2), proc(5) oom_score_adj; kernel
// Documentation/filesystems/overlayfs.rst for why trusted.* attributes need CAP_SYS_ADMIN; nsswitch.conf(5),
// update-ca-certificates(8).
#include "runtime/image/fetch/confine.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include "runtime/container/seccomp_program.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/process.h"

namespace coracle::image {
namespace {

constexpr uint64_t kSlave = 1 << 19;  // MS_SLAVE; <sys/mount.h> clashes with <linux/mount.h>
constexpr int kOomScore = 500;        // killed before any daemon
constexpr uint64_t kPlain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

// The host's files, directories and sockets that a download can see, if they exist. Private keys are not among them.
struct Shown {
  const char* path;
  bool has_code = false;  // libraries that the C library loads for name lookups
};
constexpr Shown kShown[] = {
    {"/etc/ssl/certs"},
    {"/etc/ssl/openssl.cnf"},
    {"/usr/share/ca-certificates"},
    {"/usr/local/share/ca-certificates"},
    {"/etc/resolv.conf"},
    {"/etc/hosts"},
    {"/etc/nsswitch.conf"},
    {"/etc/host.conf"},
    {"/etc/gai.conf"},
    {"/etc/services"},
    {"/etc/ld.so.cache"},
    {"/lib", true},
    {"/lib64", true},
    {"/usr/lib", true},
    {"/run/avahi-daemon/socket"},                 // nss-mdns: names in .local
    {"/run/systemd/resolve/io.systemd.Resolve"},  // nss-resolve
};

Result<Fd> empty_directory() { return sys::new_file_system("tmpfs", {{"mode", "0755"}, {"size", "1m"}}, kPlain); }

// Creates a mount point at `path` beneath `root`: a directory or a file.
Result<Fd> make_place(const Fd& root, const std::string& path, bool is_directory) {
  if (is_directory) return sys::make_directories_in(root, path, 0755);
  size_t slash = path.rfind('/');
  Fd parent = TRY(sys::make_directories_in(root, path.substr(0, slash), 0755));
  const std::string name = path.substr(slash + 1);
  Fd made = TRY(sys::open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444));
  return sys::open_at(parent, name, O_PATH | O_NOFOLLOW);
}

Result<void> show(const Fd& root, const Shown& what) {
  auto mount = sys::clone_mount(what.path, false);
  if (!mount && mount.error().code() == Code::not_found) return {};
  if (!mount) return mount.take_error();
  struct stat info = TRY(sys::stat(*mount));
  uint64_t attributes = MOUNT_ATTR_RDONLY | (what.has_code ? kPlain & ~uint64_t(MOUNT_ATTR_NOEXEC) : kPlain);
  TRY(sys::change_mount(*mount, {.set = attributes, .propagation = kSlave}));
  Fd place = TRY(make_place(root, what.path, S_ISDIR(info.st_mode)));
  return sys::attach_mount(*mount, place);
}

// Mounts a directory of the store, writable. The copy of a shared mount (systemd makes all mounts shared) would be shared with
// it: later mounts beneath would appear in the host's store too. So it becomes a slave.
Result<void> show_store(const Fd& root, const Fd& store, const std::string& path) {
  TRY(sys::change_mount(store, {.set = kPlain, .propagation = kSlave}));
  Fd place = TRY(make_place(root, path, true));
  return sys::attach_mount(store, place);
}

// Mounts an empty root over the store, in this process's mount namespace, from which nothing propagates to the host. Unmounts on
// the host propagate here until the old root is detached.
Result<Fd> begin_root(const std::string& store) {
  Fd old_root = TRY(sys::open("/", O_PATH | O_DIRECTORY));
  TRY(sys::change_mount(old_root, {.propagation = kSlave, .recursive = true}));
  Fd root = TRY(empty_directory());
  Fd place = TRY(sys::open(store, O_PATH | O_DIRECTORY));
  TRY(sys::attach_mount(root, place));
  return root;
}

Result<void> finish_root(const Fd& root) {
  TRY(sys::change_mount(root, {.set = kPlain | MOUNT_ATTR_RDONLY}));
  return sys::enter_root(root);
}

Result<void> show_locales(const Fd& root) {  // the C library needs them for UTF-8 names in archives
  return show(root, {"/usr/lib/locale"}).wrap("/usr/lib/locale");
}

Result<void> hide_all(const std::string& store) {
  Fd root = TRY(begin_root(store));
  TRY(show_locales(root));
  return finish_root(root);
}

Result<void> hide_all_but_store(const std::string& store) {
  Fd own = TRY(sys::clone_mount(store, false));
  Fd root = TRY(begin_root(store));
  TRY(show_store(root, own, store));
  TRY(show_locales(root));
  // The containers' files are hidden, because unpacking layers does not need them.
  Fd cover = TRY(empty_directory());
  TRY(sys::change_mount(cover, {.set = kPlain | MOUNT_ATTR_RDONLY}));
  Fd snapshots = TRY(sys::open_in(root, store + "/snapshots", O_PATH | O_DIRECTORY));
  TRY(sys::attach_mount(cover, snapshots));
  return finish_root(root);
}

Result<void> hide_all_but_downloads(const std::string& store) {
  Fd configs = TRY(sys::clone_mount(store + "/configs", false));
  Fd partial = TRY(sys::clone_mount(store + "/partial", false));
  Fd root = TRY(begin_root(store));
  for (const Shown& what : kShown) TRY(show(root, what).wrap(what.path));
  TRY(show_store(root, configs, store + "/configs"));
  TRY(show_store(root, partial, store + "/partial"));
  return finish_root(root);
}

// Drops all capabilities except `kept`, and all system calls that the filter does not allow.
Result<void> confine_rights(const runtime::SeccompProgram& filter, uint64_t kept) {
  TRY(sys::keep_capabilities(kept).wrap("confine capabilities"));
  return sys::filter_system_calls(filter.instructions, filter.flags).wrap("confine system calls");
}

// The filter of a container with these capabilities. Compiled before the files are hidden, because that needs /proc.
Result<runtime::SeccompProgram> system_calls_with(uint64_t capabilities) {
  return runtime::compile_seccomp(oci::default_seccomp(), capabilities).wrap("confine system calls");
}

}  // namespace

namespace {

Result<void> confine_to_files(const std::string& store, Result<void> (*hide)(const std::string& store)) {
  TRY(sys::set_own_oom_score(kOomScore));
  // The filter is that of a container without CAP_SYS_ADMIN, which is only kept for the overlay's attributes.
  uint64_t files =
      TRY(oci::capability_set({"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_MKNOD", "CAP_SETFCAP"}));
  uint64_t attributes = TRY(oci::capability_set({"CAP_SYS_ADMIN"}));
  runtime::SeccompProgram filter = TRY(system_calls_with(files));
  TRY(hide(store).wrap("confine files"));
  return confine_rights(filter, files | attributes);
}

}  // namespace

Result<void> confine_unpacking(const std::string& store) { return confine_to_files(store, hide_all_but_store); }

Result<void> confine_to_descriptors(const std::string& store) { return confine_to_files(store, hide_all); }

Result<void> confine_download(const std::string& store) {
  TRY(sys::set_own_oom_score(kOomScore));
  runtime::SeccompProgram filter = TRY(system_calls_with(0));
  TRY(hide_all_but_downloads(store).wrap("confine files"));
  return confine_rights(filter, 0);
}

}  // namespace coracle::image
