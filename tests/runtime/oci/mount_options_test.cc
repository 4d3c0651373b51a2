// SPDX-License-Identifier: Apache-2.0
// The table of mount options.
#include "runtime/oci/mount_options.h"

#include <gtest/gtest.h>
#include <linux/mount.h>

#include <algorithm>

namespace coracle::oci {
namespace {

TEST(OciMountOptions, know_what_the_specification_asks_for) {
  // The table "Linux mount options", except "remount", which means nothing for new mounts.
  for (const char* name :
       {"async",       "atime",          "bind",       "defaults",      "dev",    "diratime",    "dirsync",     "exec",
        "lazytime",    "loud",           "mand",       "noatime",       "nodev",  "nodiratime",  "noexec",      "noiversion",
        "nolazytime",  "nomand",         "norelatime", "nostrictatime", "nosuid", "nosymfollow", "private",     "ratime",
        "rbind",       "rdev",           "rdiratime",  "relatime",      "rexec",  "rnoatime",    "rnodiratime", "rnoexec",
        "rnorelatime", "rnostrictatime", "rnosuid",    "rnosymfollow",  "ro",     "rprivate",    "rrelatime",   "rro",
        "rrw",         "rshared",        "rslave",     "rstrictatime",  "rsuid",  "rsymfollow",  "runbindable", "rw",
        "shared",      "silent",         "slave",      "strictatime",   "suid",   "symfollow",   "sync",        "tmpcopyup",
        "unbindable",  "idmap",          "ridmap",     "iversion"})
    EXPECT_TRUE(mount_option(name)) << name;
  for (const char* name : {"copy-symlink", "dest-nofollow", "src-nofollow"}) EXPECT_TRUE(mount_option(name)) << name;  // crun's
  for (const char* name : {"size=5", "mode=755", "acl", "remount", "rsync", "rbin", "r"})
    EXPECT_FALSE(mount_option(name)) << name;
  auto names = mount_option_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) EXPECT_TRUE(mount_option(name)) << name;
}

TEST(OciMountOptions, mean_what_they_say) {
  EXPECT_EQ(mount_option("ro")->set, uint64_t(MOUNT_ATTR_RDONLY));
  EXPECT_EQ(mount_option("rrw")->clear, uint64_t(MOUNT_ATTR_RDONLY));
  EXPECT_EQ(mount_option("rrw")->kind, MountOptionKind::recursive_attribute);
  EXPECT_EQ(mount_option("relatime")->kind, MountOptionKind::attribute);  // not parsed as the recursive form of "elatime"
  EXPECT_EQ(mount_option("rnoatime")->clear, uint64_t(MOUNT_ATTR__ATIME));
  for (const char* name : {"ratime", "rnorelatime", "rnostrictatime"}) {
    EXPECT_EQ(mount_option(name)->kind, MountOptionKind::recursive_attribute) << name;
    EXPECT_EQ(mount_option(name)->clear, uint64_t(MOUNT_ATTR__ATIME)) << name;
    EXPECT_EQ(mount_option(name)->set, 0u) << name;
  }
  EXPECT_EQ(mount_option("atime")->clear, 0u);
  EXPECT_EQ(mount_option("rslave")->set, uint64_t(1 << 19 | 16384));
  EXPECT_TRUE(mount_option("rbind")->is_recursive);
  EXPECT_FALSE(mount_option("idmap")->is_recursive);
}

}  // namespace
}  // namespace coracle::oci
