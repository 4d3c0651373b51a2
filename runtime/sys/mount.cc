// SPDX-License-Identifier: Apache-2.0
// See mount.h.
#include "runtime/sys/mount.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

extern "C" int umount2(const char* path, int flags) noexcept;  // <sys/mount.h> clashes with <linux/mount.h>

namespace coracle::sys {
namespace {

constexpr int kMntDetach = 2;

int fsconfig(const Fd& context, unsigned command, const char* key, const char* value) {
  return int(::syscall(SYS_fsconfig, context.get(), command, key, value, 0));
}

// The message of the file system itself ("e overlay: ..."), if there is one.
Error context_error(const Fd& context, const std::string& doing) {
  Error error = Error::from_errno(doing);
  char line[512];
  ssize_t n = ::read(context.get(), line, sizeof line);
  if (n <= 2) return error;
  std::string said(line + 2, size_t(n - 2));
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return std::move(error).wrap(said);
}

Result<Fd> open_tree(int dir, const char* path, unsigned flags, const std::string& what) {
  Fd tree(int(::syscall(SYS_open_tree, dir, path, flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree) return Error::from_errno("clone mount " + what);
  return tree;
}

}  // namespace

Result<Fd> new_file_system(const std::string& type, const std::vector<FsOption>& options, uint64_t attributes) {
  Fd context(int(::syscall(SYS_fsopen, type.c_str(), FSOPEN_CLOEXEC)));
  if (!context) return Error::from_errno("open file system " + type);
  for (const FsOption& option : options) {
    int rc = option.has_value ? fsconfig(context, FSCONFIG_SET_STRING, option.key.c_str(), option.value.c_str())
                              : fsconfig(context, FSCONFIG_SET_FLAG, option.key.c_str(), nullptr);
    if (rc < 0) return context_error(context, type + " option " + option.key);
  }
  if (fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr) < 0) return context_error(context, "create " + type);
  Fd mount(int(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, unsigned(attributes))));
  if (!mount) return context_error(context, "mount " + type);
  return mount;
}

Result<Fd> clone_mount(const Fd& place, bool recursive) {
  return open_tree(place.get(), "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), "");
}

Result<Fd> clone_mount(const std::string& path, bool recursive) {
  return open_tree(AT_FDCWD, path.c_str(), recursive ? AT_RECURSIVE : 0, path);
}

Result<void> change_mount(const Fd& mount, const MountChange& change) {
  mount_attr attributes{};
  attributes.attr_set = change.set;
  attributes.attr_clr = change.clear;
  attributes.propagation = change.propagation;
  if (change.id_map) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = uint64_t(change.id_map->get());
  }
  unsigned flags = AT_EMPTY_PATH | (change.recursive ? AT_RECURSIVE : 0);
  if (::syscall(SYS_mount_setattr, mount.get(), "", flags, &attributes, sizeof attributes) < 0)
    return Error::from_errno("change mount attributes");
  return {};
}

Result<void> attach_mount(const Fd& mount, const Fd& place) {
  constexpr unsigned kFlags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
  if (::syscall(SYS_move_mount, mount.get(), "", place.get(), "", kFlags) < 0) return Error::from_errno("attach mount");
  return {};
}

Result<void> enter_root(const Fd& mount) {
  // The old root is stacked on the new one and then detached, so no directory for it is needed.
  if (::fchdir(mount.get()) < 0) return Error::from_errno("enter root");
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return Error::from_errno("pivot_root");
  if (::umount2(".", kMntDetach) < 0) return Error::from_errno("leave the old root");
  if (::chdir("/") < 0) return Error::from_errno("enter root");
  return {};
}

Result<void> detach_mount(const std::string& path) {
  if (::umount2(path.c_str(), kMntDetach) < 0) return Error::from_errno("detach mount " + path);
  return {};
}

std::string plain_path(std::string_view field) {
  std::string plain;
  for (size_t i = 0; i < field.size(); ++i) {
    auto code = field[i] == '\\' && i + 3 < field.size() ? parse_number<unsigned>(field.substr(i + 1, 3), 8) : std::nullopt;
    plain += code ? char(*code) : field[i];
    if (code) i += 3;
  }
  return plain;
}

namespace {

struct Mounted : MountAround {
  std::string id, root;  // root: the path in the file system that is at `place`
};

// The mounts of this thread's mount namespace, in the order of creation. See proc_pid_mountinfo(5).
Result<std::vector<Mounted>> mounted() {
  std::string table = TRY(read_file("/proc/thread-self/mountinfo"));
  std::vector<Mounted> all;
  for (std::string_view line : split(table, '\n')) {
    auto fields = split(line, ' ');
    auto dash = std::ranges::find(fields, "-");  // after the optional fields
    if (fields.size() < 5 || fields.end() - dash < 2) continue;
    all.push_back(
        {{plain_path(fields[4]), std::string(dash[1]), std::string(fields[2])}, std::string(fields[0]), plain_path(fields[3])});
  }
  return all;
}

// The absolute path as it is written, without "." and "..", and with a slash at its end.
std::string as_directory(std::string_view path) {
  std::string whole = "/";
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") whole.resize(std::max<size_t>(whole.rfind('/', whole.size() - 2) + 1, 1));
    else whole.append(part).push_back('/');
  }
  return whole;
}

MountAround innermost(const std::vector<Mounted>& all, const std::string& directory) {
  const Mounted* found = nullptr;
  for (const Mounted& one : all) {
    const std::string place = one.place == "/" ? one.place : one.place + "/";
    if (directory.starts_with(place) && (!found || one.place.size() >= found->place.size())) found = &one;
  }
  return found ? MountAround(*found) : MountAround{"/", "", ""};
}

// nullopt: it is no link, or is not there.
std::optional<std::string> link_target(const std::string& directory) {
  char target[PATH_MAX];
  const std::string name = directory.substr(0, std::max<size_t>(directory.size() - 1, 1));
  const ssize_t size = ::readlink(name.c_str(), target, sizeof target);
  return size > 0 ? std::optional(std::string(target, size_t(size))) : std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> mounts_on(const std::string& directory) {
  const size_t slash = directory.rfind('/');
  std::string place;
  if (slash > 0) place = TRY(absolute_path(directory.substr(0, slash)));
  place += directory.substr(slash);
  std::vector<Mounted> all = TRY(mounted());
  std::vector<std::string> types;
  for (Mounted& one : all)
    if (one.place == place) types.push_back(std::move(one.type));
  return types;
}

Result<MountAround> mount_around(std::string_view path) {
  const std::vector<Mounted> all = TRY(mounted());
  return innermost(all, as_directory(path));
}

Result<MountAround> mount_behind(std::string_view path, std::string_view local) {
  constexpr int kLinksMax = 40;  // the kernel's
  const std::vector<Mounted> all = TRY(mounted());
  const std::string local_mount = innermost(all, as_directory(local)).place;
  std::string at = "/", rest(path);  // `at` holds no links
  for (int links = 0; links <= kLinksMax;) {
    const size_t begin = rest.find_first_not_of('/');
    if (begin == rest.npos) break;
    const size_t end = std::min(rest.find('/', begin), rest.size());
    const std::string next = as_directory(at + rest.substr(begin, end - begin));
    rest.erase(0, end);
    const std::string mount = innermost(all, next).place;
    const bool may_hang = mount != "/" && mount != local_mount;
    auto target = may_hang ? std::nullopt : link_target(next);
    if (!target) at = next;
    else if (target->starts_with('/')) at = "/";
    if (may_hang) break;
    if (!target) continue;
    rest.insert(0, *target);
    ++links;
  }
  return innermost(all, as_directory(at + rest));
}

Result<PlaceInDevice> place_in_device(const Fd& file) {
  constexpr std::string_view kMountId = "mnt_id:";
  std::string about = TRY(read_file("/proc/thread-self/fdinfo/" + std::to_string(file.get())));
  std::string_view id;
  for (std::string_view line : split(about, '\n'))
    if (line.starts_with(kMountId)) id = line.substr(std::min(line.find_first_not_of(" \t", kMountId.size()), line.size()));
  std::string path = TRY(place_of(file));
  std::vector<Mounted> all = TRY(mounted());
  auto mount = std::ranges::find(all, id, &Mounted::id);
  const bool is_found = mount != all.end() && path.starts_with(mount->place);
  if (!is_found) return Error(Code::not_found, "the mount of " + path + " is not attached");
  std::string below = path == mount->place ? "" : mount->place == "/" ? path : path.substr(mount->place.size());
  std::string whole = (mount->root == "/" ? "" : mount->root) + below;
  return PlaceInDevice{mount->device, mount->type, whole.empty() ? "/" : std::move(whole)};
}

bool lists_mounts_by_age(std::string_view release) {
  const size_t dot = std::min(release.find('.'), release.size());
  const std::string_view rest = release.substr(std::min(dot + 1, release.size()));
  auto major = parse_number<int>(release.substr(0, dot));
  auto minor = parse_number<int>(rest.substr(0, rest.find_first_not_of("0123456789")));
  return !major || !minor || *major > 6 || (*major == 6 && *minor >= 8);
}

bool lists_mounts_by_age() {
  utsname name{};
  (void)::uname(&name);  // cannot fail with a valid buffer
  return lists_mounts_by_age(name.release);
}

Result<void> detach_below(const std::string& directory, const std::function<Result<void>(const MountAround& mount)>& detach) {
  auto real = absolute_path(directory);  // the kernel's name for it
  if (!real && real.error().code() == Code::not_found) return {};
  std::string prefix = TRY(std::move(real));
  prefix += "/";
  std::vector<Mounted> below = TRY(mounted());
  std::erase_if(below, [&](const Mounted& one) { return !one.place.starts_with(prefix); });
  for (auto one = below.rbegin(); one != below.rend(); ++one) {
    auto done = detach ? detach(*one) : detach_mount(one->place);
    bool is_gone = !done && (done.error().err() == EINVAL || done.error().err() == ENOENT);
    if (!done && !is_gone) return done.take_error();
  }
  return {};
}

}  // namespace coracle::sys
