// SPDX-License-Identifier: Apache-2.0
// Planning, value in and value out: mounts, devices, programs, limits, filters.
#include "runtime/container/plan.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cstring>

#include "runtime/container/seccomp_program.h"
#include "runtime/oci/capabilities.h"
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
  EXPECT_FALSE(parse_mount_options(mount("tmpfs", {"tmpcopyup"})).ok());
}

TEST(Plan, shares_shm_in_the_pod_and_guards_the_kernel_s_places) {
  oci::Spec spec = oci::default_spec();
  auto mounts = *plan_mounts(spec, {});
  ASSERT_EQ(mounts.size(), 7u);
  EXPECT_TRUE(mounts[0].flags & pause::kMountProc);
  for (const MountDraft& each : mounts) EXPECT_TRUE(each.flags & pause::kMountNoLinks) << each.destination;
  EXPECT_EQ(mounts[3].kind, pause::MountKind::pod_shm);
  EXPECT_EQ(mounts[6].type, "cgroup2");
  SandboxFacts host;
  host.has_ipc = false;
  mounts = *plan_mounts(spec, host);
  EXPECT_EQ(mounts[3].kind, pause::MountKind::attach);
  EXPECT_EQ(mounts[3].source, "/dev/shm");
  spec.mounts = {mount("bind", {"rbind"}, "")};
  EXPECT_FALSE(plan_mounts(spec, {}).ok());
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
  auto text = [&](pause::Stage stage, int err, int index = -1) {
    return explain_failure({pause::Kind::reply, err, uint32_t(stage), index, 0}, spec, {"/a", "/b"}).text();
  };
  EXPECT_EQ(text(pause::Stage::exec, ENOENT), "exec: \"nginx\": executable file not found in $PATH");
  EXPECT_EQ(text(pause::Stage::mount, ENODEV, 1), "mount /b: No such device");
  EXPECT_EQ(text(pause::Stage::slot, EEXIST), "the id is in use");
  EXPECT_EQ(text(pause::Stage(9999), EIO), "launch: Input/output error");
}

// ---- seccomp: the program is run here as the kernel would run it ----

uint32_t run_filter(const SeccompProgram& program, const seccomp_data& data) {
  uint32_t a = 0, x = 0;
  auto load = [&](uint32_t offset) {
    uint32_t word;
    std::memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof word);
    return word;
  };
  for (size_t pc = 0; pc < program.instructions.size(); ++pc) {
    sock_filter step;
    std::memcpy(&step, &program.instructions[pc], sizeof step);
    bool jump = false;
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        a = load(step.k);
        continue;
      case BPF_RET | BPF_K:
        return step.k;
      case BPF_JMP | BPF_JA:
        pc += step.k;
        continue;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= step.k;
        continue;
      case BPF_MISC | BPF_TAX:
        x = a;
        continue;
      case BPF_JMP | BPF_JEQ | BPF_K:
        jump = a == step.k;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        jump = a > step.k;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        jump = a >= step.k;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        jump = a & step.k;
        break;
      default:
        ADD_FAILURE() << "instruction " << step.code << " at " << pc;
        return x;
    }
    pc += jump ? step.jt : step.jf;
  }
  ADD_FAILURE() << "the program runs off its end";
  return 0;
}

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif

seccomp_data call(int number, uint64_t first = 0) {
  seccomp_data out{};
  out.nr = number;
  out.arch = kArch;
  out.args[0] = first;
  return out;
}

TEST(Seccomp, default_profile_allows_programs_and_refuses_the_rest) {
  constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kEperm = SECCOMP_RET_ERRNO | 1, kEnosys = SECCOMP_RET_ERRNO | 38;
  auto compiled = compile_seccomp(oci::default_seccomp(), 0);
  ASSERT_TRUE(compiled.ok()) << compiled.error().text();
  EXPECT_LT(compiled->instructions.size(), 4096u);
  struct Row {
    const char* name;
    seccomp_data data;
    uint32_t want;
  };
  for (const Row& row : {
           Row{"read", call(SYS_read), kAllow},
           Row{"execve", call(SYS_execve), kAllow},
           Row{"openat2", call(SYS_openat2), kAllow},
           Row{"mount", call(SYS_mount), kEperm},
           Row{"unshare", call(SYS_unshare), kEperm},
           Row{"bpf", call(SYS_bpf), kEperm},
           Row{"kexec_load", call(SYS_kexec_load), kEperm},
           Row{"keyctl", call(SYS_keyctl), kEperm},
           Row{"add_key", call(SYS_add_key), kEperm},
           Row{"userfaultfd", call(SYS_userfaultfd), kEperm},
           Row{"reboot", call(SYS_reboot), kEperm},
           Row{"init_module", call(SYS_init_module), kEperm},
           Row{"open_by_handle_at", call(SYS_open_by_handle_at), kEperm},
           Row{"chroot", call(SYS_chroot), kEperm},
           Row{"clone of a thread", call(SYS_clone, 0x3d0f00), kAllow},
           Row{"clone of a user namespace", call(SYS_clone, 0x10000000), kEperm},
           Row{"clone of a mount namespace", call(SYS_clone, 0x20000), kEperm},
           Row{"clone3", call(SYS_clone3), kEnosys},
           Row{"socket", call(SYS_socket, 2), kAllow},
           Row{"vsock", call(SYS_socket, 40), kEperm},
           Row{"the kernel's ciphers", call(SYS_socket, 38), kEperm},
           Row{"vsock with a bit that only the filter sees", call(SYS_socket, (uint64_t(1) << 32) + 40), kEperm},
           Row{"ciphers with a bit that only the filter sees", call(SYS_socket, (uint64_t(1) << 32) + 38), kEperm},
           Row{"the families between and beyond", call(SYS_socket, 39), kAllow},
           Row{"express data path", call(SYS_socket, 44), kAllow},
           Row{"process_vm_readv", call(SYS_process_vm_readv), kAllow},
           Row{"personality", call(SYS_personality, 0), kAllow},
           Row{"odd personality", call(SYS_personality, 0x400000), kEperm},
           Row{"a call of the future", call(2000), kEnosys},
       })
    EXPECT_EQ(run_filter(*compiled, row.data), row.want) << row.name;
  seccomp_data foreign = call(SYS_read);
  foreign.arch = 0x12345678;
  EXPECT_EQ(run_filter(*compiled, foreign), kEperm);
}

TEST(Seccomp, profile_follows_the_capabilities) {
  auto plain = compile_seccomp(oci::default_seccomp(), *oci::capability_set({"CAP_SYS_CHROOT"}));
  auto admin = compile_seccomp(oci::default_seccomp(), *oci::capability_set({"CAP_SYS_ADMIN"}));
  ASSERT_TRUE(plain.ok() && admin.ok());
  EXPECT_EQ(run_filter(*plain, call(SYS_chroot)), uint32_t(SECCOMP_RET_ALLOW));
  EXPECT_EQ(run_filter(*plain, call(SYS_mount)), uint32_t(SECCOMP_RET_ERRNO | 1));
  for (int number : {int(SYS_mount), int(SYS_unshare), int(SYS_setns), int(SYS_clone3)})
    EXPECT_EQ(run_filter(*admin, call(number)), uint32_t(SECCOMP_RET_ALLOW)) << number;
  EXPECT_EQ(run_filter(*admin, call(SYS_clone, 0x10000000)), uint32_t(SECCOMP_RET_ALLOW));
}

TEST(Seccomp, reads_profiles_and_names_what_is_wrong) {
  auto compile = [](const char* text) { return compile_seccomp(*parse_json(text), 0); };
  auto one = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
    {"names":["mkdir","mkdirat","no_such_call"],"action":"SCMP_ACT_ERRNO","errnoRet":13},
    {"names":["socket"],"action":"SCMP_ACT_ERRNO","args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"},{"index":0,"value":2,"op":"SCMP_CMP_EQ"}]}]})");
  ASSERT_TRUE(one.ok()) << one.error().text();
  EXPECT_EQ(run_filter(*one, call(SYS_mkdirat)), uint32_t(SECCOMP_RET_ERRNO | 13));
  EXPECT_EQ(run_filter(*one, call(SYS_socket, 1)), uint32_t(SECCOMP_RET_ERRNO | 1));  // two on one argument: either
  EXPECT_EQ(run_filter(*one, call(SYS_socket, 2)), uint32_t(SECCOMP_RET_ERRNO | 1));
  EXPECT_EQ(run_filter(*one, call(SYS_socket, 3)), uint32_t(SECCOMP_RET_ALLOW));
  EXPECT_EQ(run_filter(*one, call(2000)), uint32_t(SECCOMP_RET_ALLOW));
  for (
      const char* bad :
      {R"({})", R"({"defaultAction":"ALLOW"})", R"([])",
       R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"]}]})",
       R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_KILL","args":[{"index":6,"value":1,"op":"SCMP_CMP_EQ"}]}]})",
       R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_KILL","args":[{"index":0,"value":1,"op":"EQ"}]}]})",
       R"({"defaultAction":"SCMP_ACT_ALLOW","flags":["SECCOMP_FILTER_FLAG_WISH"]})",
       R"({"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_PDP11"]})"}) {
    auto got = compile(bad);
    ASSERT_FALSE(got.ok()) << bad;
    EXPECT_EQ(got.error().code(), Code::invalid) << bad;
    EXPECT_TRUE(got.error().text().starts_with("linux.seccomp")) << got.error().text();
  }
}

}  // namespace
}  // namespace coracle::runtime
