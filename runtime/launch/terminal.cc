// SPDX-License-Identifier: Apache-2.0
// The child's standard streams: a terminal of the container's devpts, or the given pipes. The terminal's master is sent over the
// report socket; no name is resolved twice. Source: pts(4), ioctl_tty(2) TIOCGPTPEER.
#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"

namespace coracle::launch {
namespace {

void bind_console(const Child& child) noexcept {
  int dev =
      must(child, Stage::terminal, k_openat2(child.root, "/dev", O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS));
  int made = k_openat2(dev, "console", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, RESOLVE_BENEATH);
  if (made >= 0) k_close(made);
  int console = must(child, Stage::terminal, k_openat2(dev, "console", O_PATH | O_NOFOLLOW, 0, RESOLVE_BENEATH));
  int tree = must(child, Stage::terminal, k_open_tree(child.terminal, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | kAtEmptyPath));
  must(child, Stage::terminal, k_move_mount(tree, "", console, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  k_close(tree);
  k_close(console);
  k_close(dev);
}

}  // namespace

void open_terminal(Child& child) noexcept {
  const Plan& plan = child.header();
  if (!(plan.flags & kPlanTerminal)) return;
  int near_end = must(child, Stage::terminal,
                      k_openat2(child.root, "/dev/pts/ptmx", O_RDWR | O_NOCTTY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS));
  FileSystemInfo about;
  must(child, Stage::terminal, k_fstatfs(near_end, &about));
  if (about.type != kDevptsSuperMagic) fail(child, Stage::terminal, kExdev);
  int unlocked = 0;
  must(child, Stage::terminal, k_ioctl(near_end, TIOCSPTLCK, &unlocked));
  child.terminal = must(child, Stage::terminal, k_ioctl_value(near_end, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  WindowSize size{plan.rows, plan.columns, 0, 0};
  if (plan.rows && plan.columns) must(child, Stage::terminal, k_ioctl(child.terminal, TIOCSWINSZ, &size));
  must(child, Stage::terminal, k_fchownat(child.terminal, "", plan.terminal_uid, unsigned(-1), kAtEmptyPath));
  tell(child, Note::terminal, near_end, Stage::terminal);
  k_close(near_end);
  if (plan.flags & kPlanConsole) bind_console(child);
}

namespace {

// Makes the process's user the owner of its pipe. A program may reopen its output, for example as /dev/stdout, if it only writes
// to log files; the kernel then checks the owner. Not for files and devices: they have their own owners.
void own_pipe(const Child& child, int fd) noexcept {
  struct statx about;
  must(child, Stage::stdio, k_statx(fd, "", kAtEmptyPath, &about), fd);
  if ((about.stx_mode & kModeTypeMask) != kModeFifo || about.stx_uid == child.header().terminal_uid) return;
  (void)k_fchown(fd, child.header().terminal_uid, unsigned(-1));  // on failure the process still has the descriptor
}

}  // namespace

void take_streams(const Child& child) noexcept {
  for (int i = 0; i < 3; ++i) {
    int from = child.terminal >= 0 ? child.terminal : child.launch->stdio[i];
    if (from == i) {  // dup3 rejects equal numbers; only clear close-on-exec
      must(child, Stage::stdio, k_fcntl(i, 2 /* F_SETFD */, 0), i);
    } else {
      must(child, Stage::stdio, k_dup3(from, i, 0), i);
    }
  }
  if (child.terminal >= 0) must(child, Stage::terminal, k_ioctl_value(0, TIOCSCTTY, 0));
  else
    for (int i = 0; i < 3; ++i) own_pipe(child, i);
}

}  // namespace coracle::launch
