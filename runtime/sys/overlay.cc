// SPDX-License-Identifier: Apache-2.0
// There are three ways to pass the layers, because a parameter of fsconfig is limited to 255 bytes and layers have long paths.
// One layer at a time ("lowerdir+", since Linux 6.8); all of them as short names of descriptors; and mount(2), whose options may
// be a page long, for images with many layers on older kernels. See overlay.h.
#include "runtime/sys/overlay.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "runtime/base/scope.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

constexpr size_t kParameterMax = 255;  // bytes, fsconfig(2)
constexpr size_t kOptionsMax = 4095;   // bytes, mount(2)

struct Set {  // sets parameters until the first failure
  const Fd& context;
  Result<void> text(const char* key, const std::string& value) {
    if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, key, value.c_str(), 0) < 0)
      return Error::from_errno(std::string("overlay ") + key + "=" + value);
    return {};
  }
  // Uses a descriptor of the directory, which is kept open, if its path is too long.
  Result<void> directory(const char* key, const std::string& path, std::vector<Fd>& held) {
    if (path.size() <= kParameterMax) return text(key, path);
    Fd dir = TRY(open(path, O_PATH | O_DIRECTORY));
    held.push_back(std::move(dir));
    return text(key, fd_path(held.back()));
  }
};

Result<Fd> open_context() {
  Fd context(int(::syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC)));
  if (!context) return Error::from_errno("fsopen overlay");
  return context;
}

// The layer need not survive a power failure, so overlayfs need not sync it ("volatile"); kernels before 5.10 do not support the
// option.
Result<Fd> finish(const Fd& context, const Overlay& overlay, std::vector<Fd>& held) {
  Set set{context};
  if (!overlay.upper.empty()) {
    TRY(set.directory("upperdir", overlay.upper, held));
    TRY(set.directory("workdir", overlay.work, held));
    if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_FLAG, "volatile", nullptr, 0) < 0 && errno != EINVAL)
      return Error::from_errno("overlay volatile");
  }
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return Error::from_errno("make overlay");
  unsigned attributes = overlay.upper.empty() ? MOUNT_ATTR_RDONLY : 0;
  Fd mount(int(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributes)));
  if (!mount) return Error::from_errno("fsmount overlay");
  return mount;
}

Result<Fd> mount_one_by_one(const Overlay& overlay) {
  Fd context = TRY(open_context());
  std::vector<Fd> held;
  Set set{context};
  for (const std::string& layer : overlay.lower) TRY(set.directory("lowerdir+", layer, held));
  return finish(context, overlay, held);
}

Result<std::string> join_descriptors(const std::vector<std::string>& paths, std::vector<Fd>& held) {
  std::string out;
  for (const std::string& path : paths) {
    Fd dir = TRY(open(path, O_PATH | O_DIRECTORY));
    held.push_back(std::move(dir));
    out += (out.empty() ? "" : ":") + fd_path(held.back());
  }
  return out;
}

Result<Fd> mount_by_descriptor(const Overlay& overlay) {
  Fd context = TRY(open_context());
  std::vector<Fd> held;
  std::string lower = TRY(join_descriptors(overlay.lower, held));
  if (lower.size() > kParameterMax) return Error(Code::too_large, "too many layers for one parameter");
  Set set{context};
  TRY(set.text("lowerdir", lower));
  return finish(context, overlay, held);
}

Result<Fd> mount_classic(const Overlay& overlay) {
  std::vector<Fd> held;
  std::string lower = TRY(join_descriptors(overlay.lower, held));
  std::string options = "lowerdir=" + lower;
  if (!overlay.upper.empty()) {
    std::string upper = TRY(join_descriptors({overlay.upper}, held));
    std::string work = TRY(join_descriptors({overlay.work}, held));
    options += ",upperdir=" + upper + ",workdir=" + work + ",volatile";
  }
  if (options.size() > kOptionsMax) return Error(Code::too_large, "too many layers");
  static std::atomic<uint64_t> counter{0};
  std::string place = overlay.staging + "/mount-" + std::to_string(++counter);
  if (::mkdir(place.c_str(), 0700) < 0) return Error::from_errno("make " + place);
  Scope undo([&] { (void)::rmdir(place.c_str()); });
  unsigned long flags = overlay.upper.empty() ? MS_RDONLY : 0;
  if (::mount("overlay", place.c_str(), "overlay", flags, options.c_str()) < 0) return Error::from_errno("mount overlay");
  undo.add([&] { (void)::umount2(place.c_str(), MNT_DETACH); });
  Fd mount(int(::syscall(SYS_open_tree, AT_FDCWD, place.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!mount) return Error::from_errno("detach overlay");
  return mount;
}

}  // namespace

namespace {

Result<Fd> mount_one_way(const Overlay& overlay, OverlayWay way) {
  switch (way) {
    case OverlayWay::one_by_one: return mount_one_by_one(overlay);
    case OverlayWay::by_descriptor: return mount_by_descriptor(overlay);
    case OverlayWay::classic: return mount_classic(overlay);
    case OverlayWay::automatic: break;
  }
  auto mounted = mount_one_by_one(overlay);
  if (mounted || mounted.error().err() != EINVAL) return mounted;
  mounted = mount_by_descriptor(overlay);
  if (mounted || mounted.error().code() != Code::too_large) return mounted;
  return mount_classic(overlay);
}

// Before Linux 6.15 a layer must be mounted in our mount namespace. So the id-mapped copies are attached for a moment, one over
// the other, in a private mount namespace that ends with this thread.
Result<Fd> mount_id_mapped(const Overlay& overlay, OverlayWay way) {
  if (::unshare(CLONE_NEWNS) < 0) return Error::from_errno("unshare mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return Error::from_errno("make mounts private");
  // A separate tmpfs, so that nothing is created in a layer.
  if (::mount("layers", overlay.staging.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=700") < 0)
    return Error::from_errno("mount staging");
  const std::string beneath = overlay.staging + "/layers";
  if (::mkdir(beneath.c_str(), 0700) < 0) return Error::from_errno("make " + beneath);
  Fd place = TRY(open(beneath, O_PATH | O_DIRECTORY));
  Overlay mapped = overlay;
  std::vector<Fd> layers;
  for (std::string& path : mapped.lower) {
    Fd layer = TRY(clone_id_mapped(path, *overlay.id_map));
    constexpr unsigned kByDescriptor = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    if (::syscall(SYS_move_mount, layer.get(), "", place.get(), "", kByDescriptor) < 0) return Error::from_errno("attach layer");
    path = fd_path(layer);
    layers.push_back(std::move(layer));
  }
  auto mounted = mount_one_way(mapped, way);
  if (!mounted && mounted.error().err() == EINVAL)
    return Error(Code::unsupported, "overlay over id-mapped layers: this kernel may not know it (Linux 5.19 and later do): " +
                                        mounted.error().text());
  return mounted;
}

}  // namespace

Result<Fd> mount_overlay(const Overlay& overlay, OverlayWay way) {
  if (!overlay.id_map) return mount_one_way(overlay, way);
  std::optional<Result<Fd>> mounted;
  start_thread("overlay", [&] { mounted = mount_id_mapped(overlay, way); }).join();
  return std::move(*mounted);
}

Result<Fd> clone_id_mapped(const std::string& path, const Fd& id_map) {
  Fd mount(int(::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!mount) return Error::from_errno("open tree " + path);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = uint64_t(id_map.get());
  if (::syscall(SYS_mount_setattr, mount.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0) return mount;
  if (errno != EINVAL) return Error::from_errno("id-map " + path);
  return Error(Code::unsupported, "the file system of " + path + " cannot be id-mapped, or not by this kernel");
}

Result<Fd> mount_read_only(const std::string& path) {
  Fd mount(int(::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!mount) return Error::from_errno("open tree " + path);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, mount.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
    return Error::from_errno("make tree read-only");
  return mount;
}

}  // namespace coracle::sys
