// SPDX-License-Identifier: Apache-2.0
// Planning, value in and value out: mounts, devices, programs, limits, filters.
#include "runtime/container/explain.h"
#include "runtime/container/plan.h"

#include <gtest/gtest.h>
#include <linux/mount.h>

#include "runtime/oci/defaults.h"

namespace coracle::runtime {
namespace {

oci::Mount mount(const char* type, std::vector<std::string> options, const char* source = "/src",
                 const char* destination = "/d") {
  oci::Mount out;
  out.type = type;
  out.source = source;
  out.destination = destination;
  out.options = std::move(options);
  return out;
}

TEST(Plan, sorts_mount_options) {
  MountOptions bind = *parse_mount_options(mount("bind", {"rbind", "ro", "nosuid", "rslave", "noatime"}));
  EXPECT_TRUE(bind.is_bind && bind.is_recursive);
  EXPECT_EQ(bind.set, uint64_t(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME));
  EXPECT_EQ(bind.clear, uint64_t(MOUNT_ATTR__ATIME));
  EXPECT_EQ(bind.propagation, uint64_t((1 << 19) | 16384));
  MountOptions deep = *parse_mount_options(mount("bind", {"rbind", "rro"}));
  EXPECT_EQ(deep.set, 0u);
  EXPECT_EQ(deep.set_recursive, uint64_t(MOUNT_ATTR_RDONLY));
  MountOptions last = *parse_mount_options(mount("bind", {"ro", "rw"}));
  EXPECT_EQ(last.set, 0u);
  EXPECT_EQ(last.clear, uint64_t(MOUNT_ATTR_RDONLY));
  MountOptions tmpfs = *parse_mount_options(mount("tmpfs", {"size=1m", "mode=755", "nodev", "huge=never", "sync"}));
  EXPECT_FALSE(tmpfs.is_bind);
  ASSERT_EQ(tmpfs.data.size(), 4u);
  EXPECT_EQ(tmpfs.data[0].key + "=" + tmpfs.data[0].value, "size=1m");
  EXPECT_FALSE(tmpfs.data[3].has_value);
  EXPECT_FALSE(parse_mount_options(mount("bind", {"bind", "wobble"})).ok());
  MountOptions back = *parse_mount_options(mount("bind", {"rbind", "rro", "rrw", "noatime", "relatime"}));
  EXPECT_EQ(back.set_recursive, 0u);
  EXPECT_EQ(back.clear_recursive, uint64_t(MOUNT_ATTR_RDONLY));
  EXPECT_EQ(back.set, 0u);
  EXPECT_EQ(back.clear, uint64_t(MOUNT_ATTR__ATIME));
  EXPECT_EQ(parse_mount_options(mount("tmpfs", {"sync", "async", "loud", "noiversion", "defaults"}))->data.size(), 2u);
  EXPECT_TRUE(parse_mount_options(mount("none", {"sync", "bind", "async"}))->data.empty());
  EXPECT_TRUE(parse_mount_options(mount("tmpfs", {"tmpcopyup"}))->copies_up);
  EXPECT_FALSE(parse_mount_options(mount("bind", {"tmpcopyup"})).ok());
  EXPECT_TRUE(parse_mount_options(mount("bind", {"ridmap"}))->is_recursively_idmapped);
}

TEST(Plan, shares_shm_in_the_pod_and_guards_the_kernel_s_places) {
  oci::Spec spec = oci::default_spec();
  auto mounts = *plan_mounts(spec, {}, {});
  ASSERT_EQ(mounts.size(), 7u);
  EXPECT_TRUE(mounts[0].flags & launch::kMountProc);
  for (const MountDraft& each : mounts) EXPECT_TRUE(each.flags & launch::kMountNoLinks) << each.destination;
  EXPECT_EQ(mounts[3].kind, launch::MountKind::pod_shm);
  EXPECT_EQ(mounts[6].type, "cgroup2");
  SandboxFacts host;
  host.has_ipc = false;
  mounts = *plan_mounts(spec, host, {});
  EXPECT_EQ(mounts[3].kind, launch::MountKind::attach);
  EXPECT_EQ(mounts[3].source, "/dev/shm");
  spec.mounts = {mount("bind", {"rbind"}, "")};
  EXPECT_FALSE(plan_mounts(spec, {}, {}).ok());
}

TEST(Plan, searches_programs_as_execvp_but_not_in_the_current_directory) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(plan_programs("/bin/sh", {"PATH=/x"}), Paths{"/bin/sh"});
  EXPECT_EQ(plan_programs("./run", {}), Paths{"./run"});
  EXPECT_EQ(plan_programs("sh", {"PATH=/a::/b"}), (Paths{"/a/sh", "/b/sh"}));
  EXPECT_EQ(plan_programs("sh", {"PATH=/a", "PATH=/b"}), Paths{"/b/sh"});
  EXPECT_TRUE(plan_programs("sh", {"XPATH=/a"}).empty());
}

TEST(Plan, gives_no_capability_that_it_has_not) {
  oci::Capabilities wanted;
  wanted.bounding = wanted.permitted = {"CAP_CHOWN", "CAP_SYS_RESOURCE"};
  wanted.effective = {"CAP_CHOWN", "CAP_KILL"};
  wanted.ambient = {"CAP_CHOWN"};
  OwnFacts own;
  own.capabilities = ~(uint64_t(1) << kCapSysResource);
  CapabilitySets sets = *plan_capabilities(wanted, own);
  EXPECT_EQ(sets.bounding, 1u);
  EXPECT_EQ(sets.permitted, 1u);
  EXPECT_EQ(sets.effective, 1u);  // not what is not permitted
  EXPECT_EQ(sets.ambient, 0u);    // not what is not inheritable
  own.oom_score_adj = -500;
  EXPECT_EQ(plan_oom_score(-997, own), -500);
  EXPECT_EQ(plan_oom_score(100, own), 100);
  own.capabilities = ~uint64_t(0);
  EXPECT_EQ(plan_oom_score(-997, own), -997);
}

TEST(Plan, explains_failures_as_users_know_them) {
  oci::Spec spec;
  spec.process.args = {"nginx"};
  auto text = [&](launch::Stage stage, int err, int index = -1) {
    return explain_failure({pause::Kind::reply, err, uint32_t(stage), index, 0}, spec, {"/a", "/b"}).text();
  };
  EXPECT_EQ(text(launch::Stage::exec, ENOENT), "exec: \"nginx\": executable file not found in $PATH");
  EXPECT_EQ(text(launch::Stage::mount, ENODEV, 1), "mounts: /b: mount: No such device");
  EXPECT_EQ(text(launch::Stage::slot, EEXIST), "the id is in use");
  EXPECT_EQ(text(launch::Stage(9999), EIO), "launch: Input/output error");
}

}  // namespace
}  // namespace coracle::runtime
