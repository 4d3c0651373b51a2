// SPDX-License-Identifier: Apache-2.0
// The child's file system: the root and every mount of the plan, devices, masks, pivot. Sources on the host are passed as
// descriptors; destinations in the container are resolved by openat2 inside its root. Paths are never concatenated. Source: OCI
// runtime-spec config.md (mounts), config-linux.md (devices, masked and read-only paths); mount_setattr(2).
#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"

namespace coracle::launch {
namespace {

constexpr uint64_t kInRoot = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
constexpr uint64_t kNoLinks = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS;
constexpr int kCwd = -100;  // AT_FDCWD

constexpr int kLinksMax = 8;

int make_directories(int root, const char* path, uint64_t resolve, int links_left = kLinksMax) noexcept;

// `name` in `parent` is a dangling link: creates its target inside the root. `walked` is the path of the link with its name.
int make_link_target(int root, int parent, const char* walked, const char* name, uint64_t resolve, int links_left) noexcept {
  if (links_left == 0 || resolve & RESOLVE_NO_SYMLINKS) return -kEloop;
  char target[kPathMax];
  size_t used = 0;
  char link[kPathMax];
  long n = k_readlinkat(parent, name, link, sizeof link - 1);
  if (n < 0) return int(n);
  link[n] = 0;
  if (link[0] != '/')
    for (const char* at = walked; at != name; ++at) target[used++] = *at;
  if (used + size_t(n) + 1 > sizeof target) return -kE2big;
  copy_text(target + used, link, sizeof target - used);
  int made = make_directories(root, target, resolve, links_left - 1);
  if (made >= 0) k_close(made);
  return made < 0 ? made : 0;
}

int open_inside(int root, const char* path, uint64_t resolve) noexcept {
  return k_openat2(root, *path ? path : "/", O_PATH | O_DIRECTORY, 0, resolve);
}

// mkdir -p inside the root for a path that does not exist. Each prefix is resolved from the root, so that links have the meaning
// that they have inside. Usually only the last component is missing: then the others are not walked.
int make_missing(int root, const char* path, uint64_t resolve, int links_left = kLinksMax) noexcept {
  char walked[kPathMax];
  size_t used = 0;
  for (size_t i = 0; path[i] && path[i + 1]; ++i)
    if (path[i] == '/' && path[i + 1] != '/') used = i;
  if (used + 1 > sizeof walked) return -kE2big;
  copy_text(walked, path, used + 1);
  int at = open_inside(root, walked, resolve);
  const bool has_parent = at >= 0;
  if (has_parent) path += used;
  else used = 0, at = open_inside(root, "", resolve);
  bool is_missing = has_parent;  // then everything beneath is missing too
  while (at >= 0 && *path) {
    while (*path == '/') ++path;
    size_t part = 0;
    while (path[part] && path[part] != '/') ++part;
    if (part == 0) break;
    if (used + part + 2 > sizeof walked) return -kE2big;
    walked[used++] = '/';
    char* name = walked + used;
    for (size_t i = 0; i < part; ++i) walked[used++] = path[i];
    walked[used] = 0;
    path += part;
    is_missing = is_missing && !same(name, "..");
    int next = is_missing ? -kEnoent : open_inside(root, walked, resolve);
    if (next == -kEnoent && !same(name, "..")) {
      is_missing = true;
      int rc = k_mkdirat(at, name, 0755);
      if (rc >= 0 || rc == -kEexist) next = open_inside(root, walked, resolve);
      if (rc < 0 && rc != -kEexist) next = rc;
      if (rc == -kEexist) is_missing = false;
      if (rc == -kEexist && next == -kEnoent) {
        rc = make_link_target(root, at, walked, name, resolve, links_left);
        next = rc < 0 ? rc : open_inside(root, walked, resolve);
      }
    }
    k_close(at);
    at = next;
  }
  return at;
}

int make_directories(int root, const char* path, uint64_t resolve, int links_left) noexcept {
  int there = open_inside(root, path, resolve);
  return there == -kEnoent ? make_missing(root, path, resolve, links_left) : there;
}

struct Split {
  char parent[kPathMax];
  const char* name;
};

bool split(const char* path, Split& out) noexcept {
  size_t slash = 0, n = length(path);
  if (n + 1 > sizeof out.parent) return false;
  for (size_t i = 0; i < n; ++i) {
    out.parent[i] = path[i];
    if (path[i] == '/') slash = i;
  }
  out.parent[slash] = 0;
  out.name = path + slash + (path[slash] == '/' ? 1 : 0);
  return true;
}

// Creates an empty file. For a dangling link its target is created, inside the root.
int make_file(int root, const char* path, uint64_t resolve) noexcept {
  char place[kPathMax], link[kPathMax];
  Split parts;
  if (length(path) + 1 > sizeof place) return -kE2big;
  copy_text(place, path, sizeof place);
  for (int links_left = kLinksMax;; --links_left) {
    if (!split(place, parts)) return -kE2big;
    int parent = make_directories(root, parts.parent, resolve);
    if (parent < 0) return parent;
    int made = k_openat2(parent, parts.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644, RESOLVE_BENEATH);
    long n = made == -kEexist ? k_readlinkat(parent, parts.name, link, sizeof link - 1) : 0;
    k_close(parent);
    if (made >= 0) k_close(made);
    if (made >= 0 || (made == -kEexist && n < 0)) return 0;  // EEXIST without a link: something else exists by now
    if (made != -kEexist) return made;
    if (links_left == 0 || resolve & RESOLVE_NO_SYMLINKS) return -kEloop;
    link[n] = 0;
    size_t used = link[0] == '/' ? 0 : length(parts.parent);
    if (used + size_t(n) + 2 > sizeof place) return -kE2big;
    copy_text(place, used ? parts.parent : "", sizeof place);
    if (link[0] != '/') place[used++] = '/';
    copy_text(place + used, link, sizeof place - used);
  }
}

uint64_t resolve_of(const MountStep& step) noexcept { return step.flags & kMountNoLinks ? kNoLinks : kInRoot; }

int open_mount_point(int root, const char* path, const MountStep& step) noexcept {
  return k_openat2(root, path, O_PATH | (step.flags & kMountOnLink ? O_NOFOLLOW : 0), 0, resolve_of(step));
}

// Opens the mount point and creates it if it is missing.
int open_destination(int root, const char* path, bool on_file, const MountStep& step) noexcept {
  int fd = open_mount_point(root, path, step);
  if (fd != -kEnoent) return fd;
  if (!on_file) return make_missing(root, path, resolve_of(step));
  int made = make_file(root, path, resolve_of(step));
  return made < 0 ? made : open_mount_point(root, path, step);
}

int move_to(int tree, int destination) noexcept {
  return k_move_mount(tree, "", destination, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

// A directory cannot be mounted on a file or vice versa; the kernel has no specific error for that.
void attach(const Child& child, int tree, int destination, bool is_file, int at) noexcept {
  int rc = move_to(tree, destination);
  struct statx about;
  if (rc == -kEinval && k_statx(destination, "", kAtEmptyPath, &about) >= 0) {
    bool on_directory = (about.stx_mode & kModeTypeMask) == kModeDirectory;
    if (on_directory && is_file) fail(child, Stage::mount, kFileOverDirectory, at);
    if (!on_directory && !is_file) fail(child, Stage::mount, kDirectoryOverFile, at);
  }
  must(child, Stage::mount, rc, at);
}

// A read-only tmpfs stays writable until everything on it is created: mount points, devices, links. Engines mount /dev like that
// for a container without writable files.
bool becomes_readonly(const Child& child, const MountStep& step) noexcept {
  return step.kind == MountKind::file_system && step.attributes & MOUNT_ATTR_RDONLY && same(child.text(step.type), "tmpfs");
}

// Where to resolve a path: from the root, or from the procfs or sysfs mounted above it. Another user of the root could rename its
// mount point meanwhile, and masks would be misplaced; the descriptor always refers to the same mount.
struct Place {
  int dir;
  const char* path;
};

bool is_the_kernel_s(const Child& child, const MountStep& step) noexcept {
  if (step.kind != MountKind::file_system) return false;
  const char* type = child.text(step.type);
  return same(type, "proc") || same(type, "sysfs");
}

// The rest of the path beneath the directory, or nullptr.
const char* beneath(const char* path, const char* dir) noexcept {
  while (*dir && *path == *dir) ++path, ++dir;
  if (*dir || (*path && *path != '/')) return nullptr;
  return *path ? path : "/";
}

Place place_of(const Child& child, const char* path, uint32_t mounts_done) noexcept {
  Place out{child.root, path};
  const MountStep* mounts = child.items<MountStep>(child.header().mounts);
  for (uint32_t i = 0; i < mounts_done; ++i) {  // later mounts cover earlier ones
    const char* rest = beneath(path, child.text(mounts[i].destination));
    if (!rest) continue;
    out = is_the_kernel_s(child, mounts[i]) ? Place{mounts[i].fd, rest} : Place{child.root, path};
  }
  return out;
}

// A tmpfs without a mode option gets the mode of the directory that it covers, as if it were given. Source: runc and crun, which
// engines rely on.
void keep_mode(const Child& child, const MountStep& step, int context, int at) noexcept {
  const Place place = place_of(child, child.text(step.destination), uint32_t(at));
  int there = k_openat2(place.dir, place.path, O_PATH, 0, resolve_of(step));
  if (there < 0) return;  // it will be created, or a later step reports the error
  struct statx about;
  must(child, Stage::mount, k_statx(there, "", kAtEmptyPath, &about), at);
  k_close(there);
  char mode[] = "0000";
  for (int i = 0; i < 4; ++i) mode[i] = char('0' + (about.stx_mode >> (3 * (3 - i)) & 7));
  must(child, Stage::mount, k_fsconfig(context, FSCONFIG_SET_STRING, "mode", mode), at);
}

int new_file_system(const Child& child, const MountStep& step, int at) noexcept {
  int context = must(child, Stage::mount, k_fsopen(child.text(step.type)), at);
  const uint32_t* options = child.items<uint32_t>(step.options);
  for (uint32_t i = 0; i + 1 < step.options.count; i += 2) {
    const char* value = child.text(options[i + 1]);
    must(child, Stage::mount, k_fsconfig(context, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, child.text(options[i]), value),
         at);
  }
  if (step.flags & kMountKeepMode) keep_mode(child, step, context, at);
  must(child, Stage::mount, k_fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr), at);
  unsigned later = becomes_readonly(child, step) ? unsigned(MOUNT_ATTR_RDONLY) : 0;
  int tree = must(child, Stage::mount, k_fsmount(context, unsigned(step.attributes) & ~later), at);
  k_close(context);
  return tree;
}

bool has_option(const Child& child, const MountStep& step, const char* name) noexcept {
  const uint32_t* options = child.items<uint32_t>(step.options);
  for (uint32_t i = 0; i + 1 < step.options.count; i += 2)
    if (same(child.text(options[i]), name)) return true;
  return false;
}

// Fills a tmpfs with the contents that it covers. Its root gets the owner and mode of the directory, unless they are given.
void copy_up(const Child& child, const MountStep& step, int tree, int destination, int at) noexcept {
  int from = must(child, Stage::mount, k_openat2(destination, ".", O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH), at);
  int to = must(child, Stage::mount, k_openat2(tree, ".", O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH), at);
  struct statx about;
  must(child, Stage::mount, k_statx(from, "", kAtEmptyPath, &about), at);
  must(child, Stage::mount, copy_tree(from, to), at);
  if (!has_option(child, step, "mode")) {
    must(child, Stage::mount, k_fchown(to, about.stx_uid, about.stx_gid), at);
    must(child, Stage::mount, k_fchmod(to, about.stx_mode & 07777), at);
  }
  k_close(from);
  k_close(to);
}

int clone_tree(const Child& child, const char* path, Stage stage, int at) noexcept {
  return must(child, stage, k_open_tree(kCwd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), at);
}

// A child process in a new cgroup namespace creates the mount. Entering it and returning would need privileges over the host's,
// which the root of a user namespace lacks. Both share their descriptor table and agree on a number in advance.
int new_cgroup_tree(const Child& child, const MountStep& step, int at) noexcept {
  int tree = must(child, Stage::mount, k_openat(kCwd, "/", O_PATH | O_CLOEXEC), at);
  clone_args arguments{};
  arguments.flags = CLONE_FILES | CLONE_NEWCGROUP;
  arguments.exit_signal = kSigchld;
  int pid = must(child, Stage::mount, k_clone3(&arguments), at);
  if (pid == 0) {
    int made = new_file_system(child, step, at);
    must(child, Stage::mount, k_dup3(made, tree, O_CLOEXEC), at);
    k_close(made);
    k_exit(0);
  }
  int status = 0;
  must(child, Stage::mount, k_wait4(pid, &status, 0), at);
  if (status != 0) fail(child, Stage::mount, kEintr, at);  // the child has reported its error; the first report counts
  return tree;
}

// What to change of a mount that is there. The modes of atime are alternatives: the kernel sets one where all are cleared.
mount_attr attributes_of(const MountStep& step) noexcept {
  mount_attr out{};
  out.attr_set = step.attributes;
  if (step.attributes & MOUNT_ATTR__ATIME) out.attr_clr = MOUNT_ATTR__ATIME;
  return out;
}

int inner_tree(const Child& child, const MountStep& step, int at) noexcept {
  int source = must(child, Stage::mount, k_openat2(child.root, child.text(step.type), O_PATH, 0, kInRoot), at);
  const unsigned beneath = step.flags & kMountBeneath ? unsigned(kAtRecursive) : 0;
  int tree = must(child, Stage::mount,
                  k_open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | unsigned(kAtEmptyPath) | beneath), at);
  k_close(source);
  mount_attr attributes = attributes_of(step);
  attributes.propagation = kMsPrivate;
  must(child, Stage::mount, k_mount_setattr(tree, "", unsigned(kAtEmptyPath) | beneath, &attributes), at);
  return tree;
}

// With the attributes and the propagation of a new mount, whatever those of the source are.
int outer_tree(const Child& child, const MountStep& step, int at) noexcept {
  int tree = clone_tree(child, child.text(step.type), Stage::mount, at);
  mount_attr attributes{};
  attributes.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODIRATIME |
                        MOUNT_ATTR__ATIME;  // first, then those that are set
  attributes.attr_set = step.attributes;
  attributes.propagation = kMsPrivate;
  must(child, Stage::mount, k_mount_setattr(tree, "", kAtEmptyPath, &attributes), at);
  return tree;
}

bool is_file(const Child& child, const MountStep& step, int tree, int at) noexcept {
  if (step.kind != MountKind::inner) return step.flags & kMountOnFile;
  struct statx about;
  must(child, Stage::mount, k_statx(tree, "", kAtEmptyPath, &about), at);
  return (about.stx_mode & kModeTypeMask) != kModeDirectory;
}

bool is_cgroup(const char* type) noexcept { return type && (same(type, "cgroup2") || same(type, "cgroup")); }

// The tree to attach, still detached.
int make_tree(Child& child, const MountStep& step, int at) noexcept {
  if (step.kind == MountKind::attach) return request_fd(child, step.fd, Stage::mount, at);
  if (step.kind == MountKind::inner) return inner_tree(child, step, at);
  const bool is_foreign = child.has(kPlanHostCgroups) && is_cgroup(child.text(step.type));
  if (step.kind == MountKind::file_system)
    return is_foreign ? new_cgroup_tree(child, step, at) : new_file_system(child, step, at);
  if (step.kind == MountKind::outer) return outer_tree(child, step, at);
  int tree = clone_tree(child, "/shm", Stage::mount, at);  // pause's tmpfs, shared by the pod's containers
  mount_attr attributes = attributes_of(step);
  must(child, Stage::mount, k_mount_setattr(tree, "", kAtEmptyPath, &attributes), at);
  return tree;
}

// Where mounts are listed in the order of creation. A tree of the plan was created before all others, so it is cloned again at
// its turn. Then the list has the order of the mounts. The unmount waits for all processors.
int make_anew(const Child& child, int tree, int destination, int at) noexcept {
  int copy =
      must(child, Stage::mount, k_open_tree(tree, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | kAtEmptyPath | kAtRecursive), at);
  must(child, Stage::mount, k_fchdir(tree), at);
  must(child, Stage::mount, k_umount2(".", kMntDetach), at);
  must(child, Stage::mount, k_chdir("/"), at);
  must(child, Stage::mount, move_to(copy, destination), at);
  return copy;
}

void keep_writable(const Child& child, const MountStep& step, int at) noexcept {
  int place = must(child, Stage::mount, open_destination(child.root, child.text(step.destination), false, step), at);
  int tree = must(child, Stage::mount, k_open_tree(place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | kAtEmptyPath), at);
  must(child, Stage::mount, move_to(tree, place), at);
  k_close(tree);
  k_close(place);
}

// What a copy of the mounts for another user namespace does not have.
constexpr unsigned long kLostPropagation = kMsUnbindable | kMsShared;

void set_propagation(const Child& child, int mount, const MountStep& step, int at) noexcept {
  mount_attr attributes{};
  attributes.propagation = step.propagation & ~kMsRec;
  unsigned flags = kAtEmptyPath | (step.propagation & kMsRec ? unsigned(kAtRecursive) : 0);
  must(child, Stage::mount, k_mount_setattr(mount, "", flags, &attributes), at);
}

// Nobody else can reach the new file system, so that the name of a directory in it leads nowhere else.
void mount_in_held(const Child& child, const MountStep& step, int at) noexcept {
  const MountStep* holder = &step;
  while (holder != child.items<MountStep>(child.header().mounts) && !(holder->flags & kMountHolds)) --holder;
  Split parts;
  if (!split(child.text(step.destination), parts)) fail(child, Stage::mount, kE2big, at);
  int tree = outer_tree(child, step, at);
  int rc = k_mkdirat(holder->fd, parts.name, 0755);
  if (rc != -kEexist) must(child, Stage::mount, rc, at);
  must(child, Stage::mount, k_move_mount(tree, "", holder->fd, parts.name, MOVE_MOUNT_F_EMPTY_PATH), at);
  k_close(tree);
}

// The launch itself uses links there: /proc/self. Source: crun
void check_is_no_kernel_s_link(const Child& child, int destination, int at) noexcept {
  FileSystemInfo about;
  must(child, Stage::mount, k_fstatfs(destination, &about), at);
  if (about.type == kProcSuperMagic || about.type == kSysfsMagic || about.type == kDevptsSuperMagic)
    fail(child, Stage::mount, kEperm, at);
}

void copy_link(const Child& child, const MountStep& step, int at) noexcept {
  const char* target = child.text(step.type);
  const Place place = place_of(child, child.text(step.destination), uint32_t(at));
  Split parts;
  if (!split(place.path, parts)) fail(child, Stage::mount, kE2big, at);
  int parent = must(child, Stage::mount, make_directories(place.dir, parts.parent, resolve_of(step)), at);
  int rc = k_symlinkat(target, parent, parts.name);
  char there[kPathMax];
  long n = rc == -kEexist ? k_readlinkat(parent, parts.name, there, sizeof there - 1) : -1;
  there[n < 0 ? 0 : n] = 0;
  if (n < 0 || !same(there, target)) must(child, Stage::mount, rc, at);
  k_close(parent);
}

void mount_one(Child& child, MountStep& step, int at) noexcept {
  if (step.kind == MountKind::own_directory) return keep_writable(child, step, at);
  if (step.kind == MountKind::link) return copy_link(child, step, at);
  if (step.flags & kMountInHeld) return mount_in_held(child, step, at);
  int tree = make_tree(child, step, at);
  const Place place = place_of(child, child.text(step.destination), uint32_t(at));
  const bool on_file = is_file(child, step, tree, at);
  int destination = must(child, Stage::mount, open_destination(place.dir, place.path, on_file, step), at);
  if (step.flags & kMountOnLink) check_is_no_kernel_s_link(child, destination, at);
  if (step.flags & kMountCopyUp) {
    act_as_host(child);  // the copied files may have any owner
    copy_up(child, step, tree, destination, at);
    act_as_container(child);
  }
  attach(child, tree, destination, on_file, at);
  if (step.flags & kMountAnew) tree = make_anew(child, tree, destination, at);
  k_close(destination);
  // Until then an unbindable mount would make it impossible to bind the tree for hooks.
  const bool is_later = step.propagation & kMsUnbindable && child.has(kPlanUnshareMounts);
  if (step.propagation && !is_later) set_propagation(child, tree, step, at);
  if (step.flags & kMountProc) child.proc = tree;
  if (is_the_kernel_s(child, step) || becomes_readonly(child, step) || step.flags & kMountHolds) {
    step.fd = tree;  // in our private copy of the plan, for place_of, make_file_systems_readonly and mount_in_held
  } else if (step.kind != MountKind::attach) {
    k_close(tree);
  }
}

// Mounts the root at its path in the bundle, for hooks that look for the container's mounts there; otherwise over "/" of the
// starting tree. Absolute paths still resolve in that tree, because a mount on a process's own root is not followed.
void attach_root(Child& child) noexcept {
  child.root = request_fd(child, child.header().root_fd, Stage::root, 0);
  if (child.has(kPlanInHostTree)) return;
  if (child.has(kPlanHostTree)) must(child, Stage::propagation, k_mount_change("/", kMsSlave | kMsRec));
  const char* place = child.text(child.header().root_path);
  must(child, Stage::root,
       k_move_mount(child.root, "", kCwd, place ? place : "/", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS));
}

uint32_t device_number(uint32_t major, uint32_t minor) noexcept {
  return (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~0xffu) << 12;
}

bool is_device(const struct statx& there, const DeviceStep& step) noexcept {
  return (there.stx_mode & kModeTypeMask) == (step.mode & kModeTypeMask) && there.stx_rdev_major == step.major &&
         there.stx_rdev_minor == step.minor;
}

// Device nodes cannot be created in a user namespace: binds the host's node if it is the same device.
void bind_device(const Child& child, const DeviceStep& step, int parent, const char* name, int at) noexcept {
  int tree = clone_tree(child, child.text(step.path), Stage::device, at);
  struct statx there;
  must(child, Stage::device, k_statx(tree, "", kAtEmptyPath, &there), at);
  if (!is_device(there, step)) fail(child, Stage::device, kEperm, at);
  int made = k_openat2(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644, RESOLVE_BENEATH);
  if (made < 0 && made != -kEexist) fail(child, Stage::device, -made, at);
  if (made >= 0) k_close(made);
  int place = must(child, Stage::device, k_openat2(parent, name, O_PATH | O_NOFOLLOW, 0, RESOLVE_BENEATH), at);
  must(child, Stage::device, move_to(tree, place), at);
  k_close(place);
  k_close(tree);
}

// The parent directory of the last device or link. Most are in the same directory, which is opened only once.
struct LastParent {
  char path[kPathMax];
  int fd = -1;
};

int open_parent(const Child& child, const Split& parts, LastParent& last, Stage stage, int at) noexcept {
  if (last.fd >= 0 && same(last.path, parts.parent)) return last.fd;
  if (last.fd >= 0) k_close(last.fd);
  last.fd = must(child, stage, make_directories(child.root, parts.parent, kNoLinks), at);
  copy_text(last.path, parts.parent, sizeof last.path);
  return last.fd;
}

void make_device(const Child& child, const DeviceStep& step, LastParent& last, int at) noexcept {
  Split parts;
  if (!split(child.text(step.path), parts)) fail(child, Stage::device, kE2big, at);
  int parent = open_parent(child, parts, last, Stage::device, at);
  act_as_host(child);
  int rc = k_mknodat(parent, parts.name, step.mode, device_number(step.major, step.minor));
  if (rc == -kEperm && child.has(kPlanHostTree)) {
    bind_device(child, step, parent, parts.name, at);
  } else {
    if (rc == -kEexist) {  // the image's node is accepted if it is the same device
      struct statx there;
      must(child, Stage::device, k_statx(parent, parts.name, kAtSymlinkNofollow, &there), at);
      if (!is_device(there, step)) fail(child, Stage::device, kEexist, at);
      rc = 0;
    }
    must(child, Stage::device, rc, at);
    // Owner before mode: changing the owner may clear mode bits.
    must(child, Stage::device, k_fchownat(parent, parts.name, step.uid, step.gid, kAtSymlinkNofollow), at);
    must(child, Stage::device, k_fchmodat(parent, parts.name, step.mode & 07777), at);
  }
  act_as_container(child);
}

void make_link(const Child& child, const LinkStep& step, LastParent& last, int at) noexcept {
  Split parts;
  if (!split(child.text(step.path), parts)) fail(child, Stage::link, kE2big, at);
  int rc = k_symlinkat(child.text(step.target), open_parent(child, parts, last, Stage::link, at), parts.name);
  if (rc != -kEexist) must(child, Stage::link, rc, at);
}

// The first mask of each kind, where it was attached: the others are clones of it, with its attributes. -1: none yet.
struct Masks {
  int empty = -1, null = -1;
};

// Never from the image, where any file may be called /dev/null (CVE-2025-31133).
int null_mask(const Child& child, int at) noexcept {
  int tree = clone_tree(child, child.text(child.header().null_path), Stage::mask, at);
  struct statx about;
  must(child, Stage::mask, k_statx(tree, "", kAtEmptyPath, &about), at);
  bool is_null = (about.stx_mode & kModeTypeMask) == kModeCharacter && about.stx_rdev_major == 1 && about.stx_rdev_minor == 3;
  if (!is_null) fail(child, Stage::mask, kExdev, at);
  return tree;
}

int empty_mask(const Child& child, int at) noexcept {
  if (const char* path = child.text(child.header().empty_path)) return clone_tree(child, path, Stage::mask, at);
  int context = must(child, Stage::mask, k_fsopen("tmpfs"), at);
  must(child, Stage::mask, k_fsconfig(context, FSCONFIG_SET_STRING, "size", "0"), at);
  must(child, Stage::mask, k_fsconfig(context, FSCONFIG_SET_STRING, "nr_inodes", "1"), at);
  must(child, Stage::mask, k_fsconfig(context, FSCONFIG_SET_STRING, "mode", "755"), at);
  must(child, Stage::mask, k_fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr), at);
  int tree = must(child, Stage::mask, k_fsmount(context, 0), at);
  k_close(context);
  return tree;
}

int first_mask(const Child& child, bool is_directory, int at) noexcept {
  int tree = is_directory ? empty_mask(child, at) : null_mask(child, at);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | (is_directory ? MOUNT_ATTR_NODEV : 0);
  must(child, Stage::mask, k_mount_setattr(tree, "", kAtEmptyPath, &attributes), at);
  return tree;
}

// Covers a file with /dev/null and a directory with an empty directory.
void mask(const Child& child, Masks& masks, const char* path, int at) noexcept {
  const Place found = place_of(child, path, child.header().mounts.count);
  int destination = k_openat2(found.dir, found.path, O_PATH, 0, kInRoot);
  if (destination == -kEnoent || destination == -kEnotdir) return;  // nothing to hide
  must(child, Stage::mask, destination, at);
  struct statx about;
  must(child, Stage::mask, k_statx(destination, "", kAtEmptyPath, &about), at);
  const bool is_directory = (about.stx_mode & kModeTypeMask) == kModeDirectory;
  int& first = is_directory ? masks.empty : masks.null;
  const bool is_first = first < 0;
  int tree = is_first ? first_mask(child, is_directory, at)
                      : must(child, Stage::mask, k_open_tree(first, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | kAtEmptyPath), at);
  must(child, Stage::mask, move_to(tree, destination), at);
  if (is_first) first = tree;
  else k_close(tree);
  k_close(destination);
}

void make_readonly(const Child& child, const char* path, int at) noexcept {
  const Place found = place_of(child, path, child.header().mounts.count);
  int place = k_openat2(found.dir, found.path, O_PATH, 0, kInRoot);
  if (place == -kEnoent || place == -kEnotdir) return;
  must(child, Stage::readonly, place, at);
  int tree =
      must(child, Stage::readonly, k_open_tree(place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | kAtEmptyPath | kAtRecursive), at);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  must(child, Stage::readonly, k_mount_setattr(tree, "", kAtEmptyPath | kAtRecursive, &attributes), at);
  must(child, Stage::readonly, move_to(tree, place), at);
  k_close(tree);
  k_close(place);
}

}  // namespace

// What is made has the mode that is asked for, whatever its launcher's umask is.
void make_file_system(Child& child) noexcept {
  const Plan& plan = child.header();
  const unsigned umask = k_umask(0);
  attach_root(child);
  act_as_container(child);
  MountStep* mounts = child.items<MountStep>(plan.mounts);
  for (uint32_t i = 0; i < plan.mounts.count; ++i) mount_one(child, mounts[i], int(i));
  LastParent last;
  const DeviceStep* devices = child.items<DeviceStep>(plan.devices);
  for (uint32_t i = 0; i < plan.devices.count; ++i) make_device(child, devices[i], last, int(i));
  const LinkStep* links = child.items<LinkStep>(plan.links);
  for (uint32_t i = 0; i < plan.links.count; ++i) make_link(child, links[i], last, int(i));
  if (last.fd >= 0) k_close(last.fd);
  act_as_host(child);
  k_umask(umask);
}

bool loses_propagation(const Child& child) noexcept {
  const MountStep* mounts = child.items<MountStep>(child.header().mounts);
  for (uint32_t i = 0; i < child.header().mounts.count; ++i)
    if (mounts[i].propagation & kLostPropagation) return true;
  return child.header().root_propagation & kLostPropagation;
}

// With the launcher's privileges: a directory above may let only others in, whom the user namespace does not know.
void restore_propagation(const Child& child) noexcept {
  const MountStep* mounts = child.items<MountStep>(child.header().mounts);
  const uint32_t count = child.header().mounts.count;
  for (uint32_t i = 0; i < count; ++i) {
    const char* path = child.text(mounts[i].destination);
    bool is_covered = false;
    for (uint32_t later = i + 1; later < count; ++later)
      is_covered |= beneath(path, child.text(mounts[later].destination)) != nullptr;
    if (!(mounts[i].propagation & kLostPropagation) || is_covered) continue;
    int root = must(child, Stage::mount, k_openat(kCwd, "/", O_PATH | O_DIRECTORY), int(i));
    int mount = open_mount_point(root, path, mounts[i]);
    k_close(root);
    if (mount == -kEnoent || mount == -kEnotdir) continue;  // a mask covers it, or a hook has taken it away
    must(child, Stage::mount, mount, int(i));
    struct statx about;
    must(child, Stage::mount, k_statx(mount, "", kAtEmptyPath, &about), int(i));
    if (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) set_propagation(child, mount, mounts[i], int(i));
    k_close(mount);
  }
  const uint64_t of_root = child.header().root_propagation;
  if (of_root & kLostPropagation) must(child, Stage::propagation, k_mount_change("/", (unsigned long)of_root));
}

void act_as_container(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (plan.fs_uid == 0 && plan.fs_gid == 0) return;
  k_setfsgid(plan.fs_gid);
  k_setfsuid(plan.fs_uid);
  raise_effective(child);  // an image's root may not be writable for its owner
}

void act_as_host(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (plan.fs_uid == 0 && plan.fs_gid == 0) return;
  k_setfsuid(0);
  k_setfsgid(0);
}

// That of the host's tree, where we still are in it. A negative errno when there is none.
int host_proc() noexcept {
  int proc = k_openat(kCwd, "/proc", O_PATH | O_DIRECTORY);
  if (proc < 0) return proc;
  FileSystemInfo about;
  int rc = k_fstatfs(proc, &about);
  if (rc >= 0 && about.type == kProcSuperMagic) return proc;
  k_close(proc);
  return rc < 0 ? rc : -kExdev;
}

void have_proc(Child& child) noexcept {
  const Plan& plan = child.header();
  bool is_needed = child.has(kPlanSetOomScore) || plan.apparmor || plan.selinux || plan.sysctls.count;
  if (child.proc >= 0 || !is_needed) return;
  if (child.has(kPlanProc)) {
    child.proc = request_fd(child, plan.proc_fd, Stage::mount, -1);
    return;
  }
  int context = must(child, Stage::mount, k_fsopen("proc"));
  int rc = k_fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr);
  if (rc >= 0) rc = k_fsmount(context, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  k_close(context);
  // In a user namespace one of our own may be refused (the host's is partly hidden, or its processes are not ours).
  if (rc == -kEperm && child.has(kPlanHostTree)) rc = host_proc();
  child.proc = must(child, Stage::mount, rc);
}

void leave_proc(Child& child) noexcept {
  if (child.proc >= 0) k_close(child.proc);
  child.proc = -1;
}

namespace {

bool is_repeated(const Child& child, const uint32_t* paths, uint32_t at) noexcept {
  for (uint32_t i = 0; i < at; ++i)
    if (same(child.text(paths[i]), child.text(paths[at]))) return true;
  return false;
}

}  // namespace

void restrict_file_system(Child& child) noexcept {
  const Plan& plan = child.header();
  const uint32_t* readonly = child.items<uint32_t>(plan.readonly_paths);
  for (uint32_t i = 0; i < plan.readonly_paths.count; ++i)
    if (!is_repeated(child, readonly, i)) make_readonly(child, child.text(readonly[i]), int(i));
  const uint32_t* masked = child.items<uint32_t>(plan.masked_paths);
  Masks masks;
  for (uint32_t i = 0; i < plan.masked_paths.count; ++i)
    if (!is_repeated(child, masked, i)) mask(child, masks, child.text(masked[i]), int(i));
  if (masks.empty >= 0) k_close(masks.empty);
  if (masks.null >= 0) k_close(masks.null);
}

void make_working_directory(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (!child.has(kPlanMakeDirectory)) return;
  const unsigned umask = k_umask(0);
  act_as_container(child);
  int fd = make_directories(child.root, child.text(plan.cwd), kInRoot);
  act_as_host(child);
  k_umask(umask);
  if (fd >= 0) k_close(fd);  // errors are reported by the later chdir
}

void make_file_systems_readonly(const Child& child) noexcept {
  if (child.has(kPlanJoinedMounts)) return;  // no file system was created
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  MountStep* mounts = child.items<MountStep>(child.header().mounts);
  for (uint32_t i = 0; i < child.header().mounts.count; ++i) {
    if (!becomes_readonly(child, mounts[i])) continue;
    must(child, Stage::mount, k_mount_setattr(mounts[i].fd, "", kAtEmptyPath, &attributes), int(i));
    mounts[i].attributes = 0;  // in our private copy of the plan
  }
}

namespace {

constexpr size_t kMountLineMax = 2 * kPathMax;  // a line of mountinfo has two paths, with escapes of four characters

// Removes the next word from the line and returns it, terminated by NUL in place.
char* take_word(char*& line) noexcept {
  char* word = line;
  while (*line && *line != ' ') ++line;
  if (*line) *line++ = 0;
  return word;
}

// "\040" is a space. Source: proc_pid_mountinfo(5).
void unescape(char* text) noexcept {
  char* to = text;
  for (const char* from = text; *from; ++to) {
    const bool is_octal = from[0] == '\\' && from[1] && from[2] && from[3];
    *to = is_octal ? char((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0')) : *from;
    from += is_octal ? 4 : 1;
  }
  *to = 0;
}

// The mount point in a line of mountinfo if it is a complete procfs or sysfs; otherwise null.
const char* kernel_file_system_place(char* line) noexcept {
  for (int i = 0; i < 3; ++i) take_word(line);
  const char* root = take_word(line);
  char* place = take_word(line);
  while (*line && !same(take_word(line), "-")) {
  }
  const char* type = take_word(line);
  if (!same(root, "/") || (!same(type, "proc") && !same(type, "sysfs"))) return nullptr;
  unescape(place);
  return place;
}

void hide(const Child& child, const char* place) noexcept {
  int rc = k_umount2(place, kMntDetach);
  if (rc == -kEnoent) return;             // it was unmounted with its parent
  if (rc != -kEinval && rc != -kEperm) {  // these: locked by an outer user namespace, or unmounted already
    must(child, Stage::pivot, rc);
    return;
  }
  int context = must(child, Stage::pivot, k_fsopen("tmpfs"));
  must(child, Stage::pivot, k_fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr));
  int tree = must(child, Stage::pivot, k_fsmount(context, MOUNT_ATTR_RDONLY));
  rc = k_move_mount(tree, "", kCwd, place, MOVE_MOUNT_F_EMPTY_PATH);
  if (rc != -kEnoent) must(child, Stage::pivot, rc);
  k_close(tree);
  k_close(context);
}

// Without pivot_root the starting tree stays reachable. A complete procfs or sysfs in it would allow a nested user namespace to
// mount one without masks, because the kernel checks whether a fully visible one exists. Source: fs/namespace.c,
// mnt_already_visible.
void hide_kernel_file_systems(const Child& child) noexcept {
  const char* root = child.text(child.header().root_path);
  if (!root) return;  // the host's root, with all its mounts
  int list = must(child, Stage::pivot, k_openat(kCwd, "/proc/self/mountinfo", O_RDONLY));
  int copy = must(child, Stage::pivot, k_memfd("mountinfo"));  // a copy from before the first unmount
  char line[kMountLineMax];
  long n;
  while ((n = k_read(list, line, sizeof line)) > 0) must(child, Stage::pivot, int(k_write(copy, line, size_t(n))));
  must(child, Stage::pivot, int(n));
  must(child, Stage::pivot, int(k_seek_start(copy)));
  for (size_t used = 0; (n = k_read(copy, line + used, sizeof line - used)) > 0;) {
    const size_t filled = used + size_t(n);
    size_t from = 0;
    for (size_t i = used; i < filled; ++i) {
      if (line[i] != '\n') continue;
      line[i] = 0;
      const char* place = kernel_file_system_place(line + from);
      if (place && !beneath(place, root)) hide(child, place);
      from = i + 1;
    }
    if (from == 0 && filled == sizeof line) fail(child, Stage::pivot, kE2big);
    used = filled - from;
    for (size_t i = 0; i < used; ++i) line[i] = line[from + i];
  }
  must(child, Stage::pivot, int(n));
  k_close(copy);
  k_close(list);
}

}  // namespace

void enter_root(Child& child) noexcept {
  const Plan& plan = child.header();
  make_file_systems_readonly(child);
  mount_attr attributes{};
  if (plan.flags & kPlanReadonlyRoot) {
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    must(child, Stage::root, k_mount_setattr(child.root, "", kAtEmptyPath, &attributes));
  }
  must(child, Stage::pivot, k_fchdir(child.root));
  if (child.has(kPlanInHostTree)) {
    must(child, Stage::pivot, k_chroot("."));
  } else if (child.has(kPlanNoPivot)) {
    hide_kernel_file_systems(child);
    // Mounted over "/", so that ".." cannot lead out.
    if (child.text(plan.root_path)) must(child, Stage::pivot, k_move_mount(child.root, "", kCwd, "/", MOVE_MOUNT_F_EMPTY_PATH));
    must(child, Stage::pivot, k_chroot("."));
  } else {
    must(child, Stage::pivot, k_pivot_root(".", "."));
    must(child, Stage::pivot, k_umount2(".", kMntDetach));
  }
  must(child, Stage::pivot, k_chdir("/"));
  if (plan.root_propagation) must(child, Stage::propagation, k_mount_change("/", (unsigned long)plan.root_propagation));
}

void write_proc(const Child& child, const char* path, const char* value, Stage stage, int index) noexcept {
  FileSystemInfo about;
  must(child, stage, k_fstatfs(child.proc, &about), index);
  if (about.type != kProcSuperMagic) fail(child, stage, kExdev, index);
  // "self" is an ordinary symbolic link, not a magic link: the path stays on this procfs.
  int fd = must(child, stage, k_openat2(child.proc, path, O_WRONLY, 0, RESOLVE_BENEATH | RESOLVE_NO_XDEV), index);
  must(child, stage, int(k_write(fd, value, length(value))), index);
  k_close(fd);
}

}  // namespace coracle::launch
