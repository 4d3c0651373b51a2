// SPDX-License-Identifier: Apache-2.0
// Profiles and the decisions of their compiled programs, for each call.
#include "runtime/container/seccomp_program.h"

#include <linux/audit.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>

#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/sys/file.h"
#include "tests/runtime/container/bpf_machine.h"
#include "tests/runtime/expect.h"

namespace coracle::runtime {
namespace {

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
  // Each start of a process loads the whole program into the kernel.
  EXPECT_LT(compiled->instructions.size(), 500u);
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

Result<SeccompProgram> compile(const std::string& text) {
  json::value profile = TRY(parse_json(text));
  return compile_seccomp(profile, 0);
}

seccomp_data call_on(uint32_t architecture, const char* name, std::array<uint64_t, 6> args = {}) {
  seccomp_data out{};
  out.nr = ::seccomp_syscall_resolve_name_arch(architecture, name);
  out.arch = architecture == SCMP_ARCH_X32 ? uint32_t(SCMP_ARCH_X86_64) : architecture;
  std::copy(args.begin(), args.end(), out.args);
  return out;
}
seccomp_data call_on(uint32_t architecture, int number) {
  seccomp_data out = call_on(architecture, "read");
  out.nr = number;
  return out;
}

TEST(Seccomp, knows_every_action) {
  struct Row {
    const char* action;
    uint32_t want;
  };
  for (const Row& row :
       {Row{R"("SCMP_ACT_KILL")", SECCOMP_RET_KILL_THREAD}, Row{R"("SCMP_ACT_KILL_THREAD")", SECCOMP_RET_KILL_THREAD},
        Row{R"("SCMP_ACT_KILL_PROCESS")", SECCOMP_RET_KILL_PROCESS}, Row{R"("SCMP_ACT_TRAP")", SECCOMP_RET_TRAP},
        Row{R"("SCMP_ACT_ERRNO")", SECCOMP_RET_ERRNO | 1}, Row{R"("SCMP_ACT_ERRNO","errnoRet":0)", SECCOMP_RET_ERRNO},
        Row{R"("SCMP_ACT_ERRNO","errnoRet":4094)", SECCOMP_RET_ERRNO | 4094}, Row{R"("SCMP_ACT_TRACE")", SECCOMP_RET_TRACE | 1},
        Row{R"("SCMP_ACT_TRACE","errnoRet":65535)", SECCOMP_RET_TRACE | 65535}, Row{R"("SCMP_ACT_LOG")", SECCOMP_RET_LOG},
        Row{R"("SCMP_ACT_NOTIFY")", SECCOMP_RET_USER_NOTIF}}) {
    auto one = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/s","syscalls":[{"names":["mkdirat"],"action":)" +
                       std::string(row.action) + "}]}");
    ASSERT_OK(one);
    EXPECT_EQ(run_filter(*one, call(SYS_mkdirat)), row.want) << row.action;
    EXPECT_EQ(run_filter(*one, call(SYS_getppid)), uint32_t(SECCOMP_RET_ALLOW)) << row.action;
    if (std::string(row.action).find("NOTIFY") != std::string::npos) continue;
    // The same as a default action: without rules, and with one.
    std::string otherwise = row.action;
    if (size_t at = otherwise.find("errnoRet"); at != otherwise.npos) otherwise.replace(at, 1, "defaultE");
    for (const char* rules : {"", R"(,"syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}])"}) {
      auto all = compile(R"({"defaultAction":)" + otherwise + rules + "}");
      ASSERT_OK(all);
      EXPECT_EQ(run_filter(*all, call(SYS_getppid)),
                *rules && row.want != SECCOMP_RET_LOG && (row.want & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_TRACE
                    ? SECCOMP_RET_ERRNO | uint32_t(ENOSYS)
                    : row.want)
          << row.action << rules;
    }
  }
}

TEST(Seccomp, knows_every_operator_on_every_argument) {
  constexpr uint64_t kHigh = uint64_t(7) << 32;
  struct Row {
    const char* op;
    uint64_t value, value_two, argument;
    bool want;
  };
  const Row rows[] = {
      {"NE", 5, 0, 5, false},
      {"NE", 5, 0, 6, true},
      {"NE", 5, 0, kHigh + 5, true},
      {"LT", 5, 0, 4, true},
      {"LT", 5, 0, 5, false},
      {"LT", kHigh + 5, 0, kHigh + 4, true},
      {"LT", kHigh + 5, 0, 6, true},
      {"LT", 5, 0, kHigh, false},
      {"LE", 5, 0, 5, true},
      {"LE", 5, 0, 6, false},
      {"LE", kHigh, 0, kHigh + 1, false},
      {"EQ", 5, 0, 5, true},
      {"EQ", 5, 0, kHigh + 5, false},
      {"EQ", ~uint64_t(0), 0, ~uint64_t(0), true},
      {"GE", 5, 0, 5, true},
      {"GE", 5, 0, 4, false},
      {"GE", kHigh + 5, 0, kHigh + 4, false},
      {"GT", 5, 0, 5, false},
      {"GT", 5, 0, kHigh, true},
      {"MASKED_EQ", 0xff, 0x12, 0xa12, true},
      {"MASKED_EQ", 0xff, 0x12, 0xa13, false},
      {"MASKED_EQ", kHigh, kHigh, kHigh + 99, true},
      {"MASKED_EQ", kHigh, kHigh, 99, false},
      {"MASKED_EQ", 0x7e020000, 0, 0x11, true},
  };
  for (const Row& row : rows) {
    for (int index = 0; index < 6; ++index) {
      auto one = compile(
          R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["splice"],"action":"SCMP_ACT_KILL","args":[{"index":)" +
          std::to_string(index) + R"(,"value":)" + std::to_string(row.value) + R"(,"valueTwo":)" + std::to_string(row.value_two) +
          R"(,"op":"SCMP_CMP_)" + row.op + "\"}]}]}");
      ASSERT_OK(one);
      std::array<uint64_t, 6> args;
      args.fill(1000);
      args[size_t(index)] = row.argument;
      EXPECT_EQ(run_filter(*one, call_on(kArch, "splice", args)) == SECCOMP_RET_KILL_THREAD, row.want)
          << row.op << " " << row.value << " " << row.argument << " of " << index;
    }
  }
}

TEST(Seccomp, several_conditions_are_all_or_either) {
  // Conditions on different arguments must all hold; of those on one argument, any: as in other runtimes.
  auto all = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["splice"],"action":"SCMP_ACT_ERRNO","args":[
    {"index":0,"value":1,"op":"SCMP_CMP_EQ"},{"index":3,"value":9,"op":"SCMP_CMP_GT"},{"index":5,"value":3,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}]}]})");
  ASSERT_OK(all);
  constexpr uint32_t kNo = SECCOMP_RET_ERRNO | 1, kYes = SECCOMP_RET_ALLOW;
  EXPECT_EQ(run_filter(*all, call_on(kArch, "splice", {1, 0, 0, 10, 0, 2})), kNo);
  EXPECT_EQ(run_filter(*all, call_on(kArch, "splice", {2, 0, 0, 10, 0, 2})), kYes);
  EXPECT_EQ(run_filter(*all, call_on(kArch, "splice", {1, 0, 0, 9, 0, 2})), kYes);
  EXPECT_EQ(run_filter(*all, call_on(kArch, "splice", {1, 0, 0, 10, 0, 3})), kYes);
  auto either = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["splice"],"action":"SCMP_ACT_ERRNO","args":[
    {"index":0,"value":1,"op":"SCMP_CMP_EQ"},{"index":0,"value":9,"op":"SCMP_CMP_GT"},{"index":1,"value":4,"op":"SCMP_CMP_EQ"}]}]})");
  ASSERT_OK(either);
  EXPECT_EQ(run_filter(*either, call_on(kArch, "splice", {1})), kNo);
  EXPECT_EQ(run_filter(*either, call_on(kArch, "splice", {10})), kNo);
  EXPECT_EQ(run_filter(*either, call_on(kArch, "splice", {5, 4})), kNo);
  EXPECT_EQ(run_filter(*either, call_on(kArch, "splice", {5, 5})), kYes);
  // A duplicate rule is ignored; a contradiction to an earlier rule is reported, not dropped.
  const std::string rule = R"({"names":["socket"],"action":"SCMP_ACT_ERRNO","args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"}]})";
  EXPECT_TRUE(compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[)" + rule + "," + rule + "]}").ok());
  auto both = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[)" + rule +
                      R"(,{"names":["socket"],"action":"SCMP_ACT_KILL","args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"}]}]})");
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().text(), "linux.seccomp.syscalls[1]: socket: another rule for the same arguments decides otherwise");
}

bool holds(const oci::SeccompCondition& condition, const std::array<uint64_t, 6>& args) {
  uint64_t argument = args[condition.index];
  switch (condition.op) {
    case oci::SeccompOperator::ne: return argument != condition.value;
    case oci::SeccompOperator::lt: return argument < condition.value;
    case oci::SeccompOperator::le: return argument <= condition.value;
    case oci::SeccompOperator::eq: return argument == condition.value;
    case oci::SeccompOperator::ge: return argument >= condition.value;
    case oci::SeccompOperator::gt: return argument > condition.value;
    case oci::SeccompOperator::masked_eq: return (argument & condition.value) == (condition.value_two & condition.value);
  }
  return false;
}

TEST(Seccomp, several_rules_for_a_call_are_any_of_them) {
  std::mt19937_64 random(7);
  const uint64_t values[] = {0, 1, 2, 5, 0xff, uint64_t(1) << 32, (uint64_t(1) << 32) + 1, ~uint64_t(0)};
  auto pick = [&] { return values[random() % std::size(values)]; };
  const std::vector<std::string> operators = oci::seccomp_operator_names();
  for (int round = 0; round < 300; ++round) {
    json::array rules;
    for (uint64_t count = 1 + random() % 4; count; --count) {
      json::array args;
      for (unsigned index = 0; index < 6; ++index) {
        if (random() % 3) continue;
        uint64_t value = pick();
        args.push_back(json::object{
            {"index", index}, {"value", value}, {"valueTwo", pick()}, {"op", operators[random() % operators.size()]}});
      }
      if (args.empty()) continue;
      std::shuffle(args.begin(), args.end(), random);
      rules.push_back(json::object{{"names", json::array{"splice"}}, {"action", "SCMP_ACT_ALLOW"}, {"args", args}});
    }
    json::value profile = json::object{{"defaultAction", "SCMP_ACT_ERRNO"}, {"syscalls", rules}};
    auto read = oci::parse_seccomp(profile);
    ASSERT_OK(read);
    auto program = compile_seccomp(profile, 0);
    ASSERT_OK(program);
    for (int question = 0; question < 200; ++question) {
      std::array<uint64_t, 6> args;
      for (uint64_t& argument : args) argument = pick();
      bool want = std::any_of(read->rules.begin(), read->rules.end(), [&](const oci::SeccompRule& rule) {
        return std::all_of(rule.conditions.begin(), rule.conditions.end(),
                           [&](const oci::SeccompCondition& condition) { return holds(condition, args); });
      });
      uint32_t got = run_filter(*program, call_on(kArch, "splice", args));
      if ((got == SECCOMP_RET_ALLOW) != want) {
        ADD_FAILURE() << "want " << want << ", got " << got << ": " << to_text(profile);
        break;
      }
    }
  }
}

// libseccomp's own compiler, for the rules that it compiles correctly: rules without arguments.
Result<SeccompProgram> compile_by_library(const std::vector<std::string>& calls, uint32_t action, uint32_t otherwise,
                                          const std::vector<uint32_t>& relatives) {
  std::unique_ptr<void, decltype(&::seccomp_release)> context(::seccomp_init(otherwise), ::seccomp_release);
  ::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, otherwise == SCMP_ACT_ALLOW ? SCMP_ACT_KILL_PROCESS : otherwise);
  for (uint32_t relative : relatives) ::seccomp_arch_add(context.get(), relative);
  for (const std::string& call : calls)
    if (int number = ::seccomp_syscall_resolve_name(call.c_str()); number != __NR_SCMP_ERROR)
      ::seccomp_rule_add(context.get(), action, number, 0);
  Fd file = TRY(sys::make_memfd("seccomp", "", false));
  if (::seccomp_export_bpf(context.get(), file.get()) != 0) return Error(Code::internal, "export");
  std::string bytes = TRY(sys::read_from_start(file, kSeccompInstructionsMax * sizeof(uint64_t)));
  SeccompProgram out;
  out.instructions.resize(bytes.size() / sizeof(uint64_t));
  std::memcpy(out.instructions.data(), bytes.data(), bytes.size());
  return out;
}

TEST(Seccomp, decides_on_whole_calls_as_libseccomp_does) {
#if defined(__x86_64__)
  const std::vector<uint32_t> relatives = {SCMP_ARCH_X86, SCMP_ARCH_X32};
  const std::vector<uint32_t> first_numbers = {0, 0x40000000};
#else
  const std::vector<uint32_t> relatives = {SCMP_ARCH_ARM};
  const std::vector<uint32_t> first_numbers = {0, 0xf0000};
#endif
  std::vector<std::string> all;
  for (int number = 0; number < 500; ++number)
    if (char* found = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number)) {
      all.emplace_back(found);
      std::free(found);
    }
  std::mt19937_64 random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> calls;
    const uint64_t every = 1 + random() % 8;
    for (const std::string& call : all)
      if (call != "socketcall" && call != "ipc" && random() % every == 0) calls.push_back(call);
    calls.push_back(all.back());
    const bool allows = random() % 2;  // the action for all other calls
    json::object rule{{"names", json::array(calls.begin(), calls.end())},
                      {"action", allows ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW"}};
    auto ours = compile_seccomp(
        json::object{{"defaultAction", allows ? "SCMP_ACT_ALLOW" : "SCMP_ACT_ERRNO"}, {"syscalls", json::array{rule}}}, 0);
    ASSERT_OK(ours);
    auto theirs = compile_by_library(calls, allows ? SCMP_ACT_ERRNO(1) : uint32_t(SCMP_ACT_ALLOW),
                                     allows ? uint32_t(SCMP_ACT_ALLOW) : SCMP_ACT_ERRNO(1), relatives);
    ASSERT_OK(theirs);
    std::vector<uint32_t> architectures = relatives;
    architectures.push_back(::seccomp_arch_native());
    architectures.push_back(SCMP_ARCH_MIPSEL);
    for (uint32_t architecture : architectures) {
      for (uint32_t first : first_numbers) {
        for (uint32_t number = first; number < first + 600; ++number) {
          const bool is_multiplexer = architecture == SCMP_ARCH_X86 && (number == 102 || number == 117);
          for (uint64_t argument = 0; argument < (is_multiplexer ? 30u : 1u); ++argument) {
            seccomp_data data = call_on(architecture, int(number));
            data.args[0] = argument;
            const uint32_t want = run_filter(*theirs, data), got = run_filter(*ours, data);
            const bool is_future = got == (SECCOMP_RET_ERRNO | ENOSYS) && want == (SECCOMP_RET_ERRNO | 1u);
            if (got == want || is_future) continue;
            FAIL() << "architecture " << architecture << " number " << number << " argument " << argument << ": " << got
                   << " instead of " << want;
          }
        }
      }
    }
  }
}

#if defined(__x86_64__)
TEST(Seccomp, what_i386_hides_behind_one_call_is_refused_where_anything_of_it_is) {
  const std::string rules =
      R"({"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":5,"args":[{"index":0,"value":16,"op":"SCMP_CMP_EQ"}]},
    {"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":6,"args":[{"index":0,"value":38,"op":"SCMP_CMP_EQ"}]},
    {"names":["semget"],"action":"SCMP_ACT_ERRNO","errnoRet":7,"args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"},{"index":0,"value":2,"op":"SCMP_CMP_EQ"}]})";
  auto some = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[)" + rules + "]}");
  ASSERT_OK(some);
  auto i386 = [&](const SeccompProgram& program, int number, uint64_t first) {
    seccomp_data data = call_on(SCMP_ARCH_X86, number);
    data.args[0] = first;
    return run_filter(program, data);
  };
  constexpr uint32_t kYes = SECCOMP_RET_ALLOW, kNo = SECCOMP_RET_ERRNO;
  EXPECT_EQ(i386(*some, 359, 16), kNo | 5);  // socket by its own call number
  EXPECT_EQ(i386(*some, 359, 38), kNo | 6);
  EXPECT_EQ(i386(*some, 359, 2), kYes);
  EXPECT_EQ(i386(*some, 102, 1), kNo | 5);  // through socketcall
  EXPECT_EQ(i386(*some, 102, 2), kYes);     // bind
  EXPECT_EQ(i386(*some, 117, 2), kNo | 7);  // semget through ipc
  EXPECT_EQ(i386(*some, 117, 0x10002), kNo | 7);
  EXPECT_EQ(i386(*some, 117, 1), kYes);
  // A call that is allowed for some arguments is not allowed where the filter cannot see them.
  auto few = compile(R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["socket"],"action":"SCMP_ACT_ALLOW",
    "args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"},{"index":0,"value":2,"op":"SCMP_CMP_EQ"}]}]})");
  ASSERT_OK(few);
  EXPECT_EQ(i386(*few, 359, 2), kYes);
  EXPECT_EQ(i386(*few, 359, 3), kNo | 1);
  EXPECT_EQ(i386(*few, 102, 1), kNo | 1);
  // Unless the profile allows it by name.
  auto named = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["socketcall"],"action":"SCMP_ACT_LOG"},)" +
                       rules + "]}");
  ASSERT_OK(named);
  EXPECT_EQ(i386(*named, 102, 1), SECCOMP_RET_LOG);
}
#endif

TEST(Seccomp, holds_on_every_architecture_by_its_own_numbers) {
  auto compiled = compile(R"({"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_X86_64","SCMP_ARCH_X86",
    "SCMP_ARCH_X32","SCMP_ARCH_AARCH64","SCMP_ARCH_ARM","SCMP_ARCH_RISCV64","SCMP_ARCH_PPC64LE","SCMP_ARCH_S390X",
    "SCMP_ARCH_LOONGARCH64"],"syscalls":[{"names":["read","statx","openat2","waitpid"],"action":"SCMP_ACT_ALLOW"},
    {"names":["kill"],"action":"SCMP_ACT_ERRNO","errnoRet":7,"args":[{"index":1,"value":9,"op":"SCMP_CMP_EQ"}]},
    {"names":["set_tls"],"action":"SCMP_ACT_ALLOW"}]})");
  ASSERT_OK(compiled);
  constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kEperm = SECCOMP_RET_ERRNO | 1, kEnosys = SECCOMP_RET_ERRNO | 38;
  for (uint32_t architecture : std::initializer_list<uint32_t>{SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32, SCMP_ARCH_AARCH64,
                                                               SCMP_ARCH_ARM, SCMP_ARCH_RISCV64, SCMP_ARCH_PPC64LE}) {
    EXPECT_EQ(run_filter(*compiled, call_on(architecture, "read")), kAllow) << std::hex << architecture;
    EXPECT_EQ(run_filter(*compiled, call_on(architecture, "openat2")), kAllow) << std::hex << architecture;
    EXPECT_EQ(run_filter(*compiled, call_on(architecture, "write")), kEperm) << std::hex << architecture;
    EXPECT_EQ(run_filter(*compiled, call_on(architecture, "kill", {1, 9})), SECCOMP_RET_ERRNO | 7u) << std::hex << architecture;
    EXPECT_EQ(run_filter(*compiled, call_on(architecture, "kill", {1, 8})), kEperm) << std::hex << architecture;
    int newest = ::seccomp_syscall_resolve_name_arch(architecture, "openat2");
    EXPECT_EQ(run_filter(*compiled, call_on(architecture, newest + 1)), kEnosys) << std::hex << architecture;
    EXPECT_EQ(run_filter(*compiled, call_on(architecture, newest - 1)), kEperm) << std::hex << architecture;
  }
  EXPECT_EQ(run_filter(*compiled, call_on(SCMP_ARCH_X86, "waitpid")), kAllow);
  EXPECT_EQ(run_filter(*compiled, call_on(SCMP_ARCH_ARM, "set_tls")), kAllow);     // 0xf0005
  EXPECT_EQ(run_filter(*compiled, call_on(SCMP_ARCH_ARM, "cacheflush")), kEperm);  // an old call, though its number is large
  EXPECT_EQ(run_filter(*compiled, call_on(SCMP_ARCH_ARM, 0xeffff)), kEnosys);
  EXPECT_EQ(run_filter(*compiled, call_on(SCMP_ARCH_X86_64, 0x3fffffff)), kEnosys);
  EXPECT_EQ(run_filter(*compiled, call_on(SCMP_ARCH_MIPSEL, "read")), kEperm);  // its architecture is not in the filter
}

TEST(Seccomp, architectures_that_are_not_named_are_no_way_around) {
  const char* rules = R"("syscalls":[{"names":["mkdirat"],"action":"SCMP_ACT_ERRNO"}]})";
  auto plain = compile(std::string(R"({"defaultAction":"SCMP_ACT_ALLOW",)") + rules);
  ASSERT_OK(plain);
  EXPECT_EQ(run_filter(*plain, call_on(SCMP_ARCH_MIPSEL, "read")), SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
  for (uint32_t relative : std::initializer_list<uint32_t>{SCMP_ARCH_X86, SCMP_ARCH_X32}) {
    EXPECT_EQ(run_filter(*plain, call_on(relative, "mkdirat")), SECCOMP_RET_ERRNO | 1u);
    EXPECT_EQ(run_filter(*plain, call_on(relative, "read")), SECCOMP_RET_ALLOW);
  }
  auto own = compile(std::string(R"({"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86_64"],)") + rules);
  ASSERT_OK(own);
  for (uint32_t relative : std::initializer_list<uint32_t>{SCMP_ARCH_X86, SCMP_ARCH_X32})
    EXPECT_EQ(run_filter(*own, call_on(relative, "read")), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(run_filter(*own, call(-1)), SECCOMP_RET_ALLOW) << "a tracer skips the call by this number";
  // The native architecture need not be listed.
  auto other = compile(std::string(R"({"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86"],)") + rules);
  ASSERT_OK(other);
  EXPECT_EQ(run_filter(*other, call(SYS_mkdirat)), SECCOMP_RET_ERRNO | 1u);
#endif
}

TEST(Seccomp, speaks_of_flags_and_listeners) {
  auto flags = [](const char* list) {
    auto one = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","flags":[)" + std::string(list) + "]}");
    return one ? one->flags : ~uint32_t(0);
  };
  EXPECT_EQ(flags(""), 0u);
  EXPECT_EQ(flags(R"("SECCOMP_FILTER_FLAG_TSYNC")"), 0u);  // a process with one thread needs no TSYNC
  EXPECT_EQ(flags(R"("SECCOMP_FILTER_FLAG_LOG")"), uint32_t(SECCOMP_FILTER_FLAG_LOG));
  EXPECT_EQ(flags(R"("SECCOMP_FILTER_FLAG_LOG","SECCOMP_FILTER_FLAG_SPEC_ALLOW")"),
            uint32_t(SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW));
  EXPECT_EQ(flags(R"("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV")"), 0u);  // the kernel refuses the flag without a listener
  auto listens = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","flags":["SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"],
    "listenerPath":"/run/agent","listenerMetadata":"m","syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_NOTIFY"}]})");
  ASSERT_OK(listens);
  EXPECT_EQ(listens->flags, uint32_t(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV));
  EXPECT_EQ(listens->listener, (oci::SeccompListener{"/run/agent", "m"}));
  auto idle = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/run/agent"})");
  ASSERT_OK(idle);
  EXPECT_FALSE(idle->listener.has_value());  // ignored, since no action notifies
  // Without a list of flags the kernel is not to slow down speculation for whoever has a filter.
  EXPECT_EQ(idle->flags, uint32_t(SECCOMP_FILTER_FLAG_SPEC_ALLOW));
  for (const char* none : {R"(,"flags":null)", ""}) {
    auto program = compile(R"({"defaultAction":"SCMP_ACT_ALLOW")" + std::string(none) + "}");
    ASSERT_OK(program);
    EXPECT_EQ(program->flags, uint32_t(SECCOMP_FILTER_FLAG_SPEC_ALLOW)) << none;
  }
}

TEST(Seccomp, names_the_field_that_is_wrong) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row : {
           Row{R"([])", "linux.seccomp: not an object"},
           Row{R"({})", "linux.seccomp.defaultAction: missing"},
           Row{R"({"defaultAction":"ALLOW"})", "linux.seccomp.defaultAction: unknown \"ALLOW\""},
           Row{R"({"defaultAction":"SCMP_ACT_ALLOW","defaultErrnoRet":1})",
               "linux.seccomp.defaultErrnoRet: only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take one"},
           Row{R"({"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":4095})", "linux.seccomp.defaultErrnoRet: out of range"},
           Row{R"({"defaultAction":"SCMP_ACT_NOTIFY","listenerPath":"/s"})",
               "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY cannot be used for every call"},
           Row{R"({"defaultAction":"SCMP_ACT_ALLOW","flags":["SECCOMP_FILTER_FLAG_WISH"]})",
               "linux.seccomp.flags[0]: unknown \"SECCOMP_FILTER_FLAG_WISH\""},
           Row{R"({"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86","SCMP_ARCH_PDP11"]})",
               "linux.seccomp.architectures[1]: unknown \"SCMP_ARCH_PDP11\""},
           Row{R"({"defaultAction":"SCMP_ACT_ALLOW","listenerMetadata":"x"})",
               "linux.seccomp.listenerMetadata: listenerPath is missing"},
           Row{R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":{}})", "linux.seccomp.syscalls: not a list"},
           Row{R"({"defaultAction":"SCMP_ACT_ALLOW","capabilities":{"CAP_KILL":"kill"}})",
               "linux.seccomp.capabilities.CAP_KILL: not a list"},
       }) {
    auto got = compile(row.text);
    ASSERT_FALSE(got.ok()) << row.text;
    EXPECT_EQ(got.error().text(), row.want);
    EXPECT_EQ(got.error().code(), Code::invalid);
  }
  for (const Row& row : {
           Row{R"("action":"SCMP_ACT_KILL")", "names: missing"},
           Row{R"("names":[],"action":"SCMP_ACT_KILL")", "names: empty"},
           Row{R"("names":"read","action":"SCMP_ACT_KILL")", "names: not a list"},
           Row{R"("names":["read"])", "action: missing"},
           Row{R"("names":["read"],"action":"SCMP_ACT_HUG")", "action: unknown \"SCMP_ACT_HUG\""},
           Row{R"("names":["read"],"action":"SCMP_ACT_KILL","errnoRet":1)",
               "errnoRet: only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take one"},
           Row{R"("names":["read"],"action":"SCMP_ACT_TRACE","errnoRet":65536)", "errnoRet: out of range"},
           Row{R"("names":["read"],"action":"SCMP_ACT_KILL","args":[{"value":1,"op":"SCMP_CMP_EQ"}])", "args[0].index: missing"},
           Row{R"("names":["read"],"action":"SCMP_ACT_KILL","args":[{"index":6,"value":1,"op":"SCMP_CMP_EQ"}])",
               "args[0].index: out of range"},
           Row{R"("names":["read"],"action":"SCMP_ACT_KILL","args":[{"index":0,"value":-1,"op":"SCMP_CMP_EQ"}])",
               "args[0].value: out of range"},
           Row{R"("names":["read"],"action":"SCMP_ACT_KILL","args":[{"index":0,"value":1,"op":"EQ"}])",
               "args[0].op: unknown \"EQ\""},
           Row{R"("names":["read","write"],"action":"SCMP_ACT_NOTIFY")",
               "action: SCMP_ACT_NOTIFY cannot be used for the write syscall"},
       }) {
    auto got = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/s","syscalls":[{)" + std::string(row.text) + "}]}");
    ASSERT_FALSE(got.ok()) << row.text;
    EXPECT_EQ(got.error().text(), "linux.seccomp.syscalls[0]." + std::string(row.want));
  }
  const char* notify = R"({"defaultAction":"SCMP_ACT_ALLOW",%s"syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_NOTIFY"}]})";
  for (auto [path, want] : {std::pair("", "linux.seccomp.listenerPath: SCMP_ACT_NOTIFY needs one"),
                            std::pair(R"("listenerPath":"agent",)", "linux.seccomp.listenerPath: not absolute")}) {
    std::string text = notify;
    auto got = compile(text.replace(text.find("%s"), 2, path));
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().text(), want);
  }
}

// A conditional jump reaches 255 instructions; longer distances need additional jumps.
TEST(Seccomp, a_long_profile_is_looked_up_to_its_ends) {
  constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kRefused = SECCOMP_RET_ERRNO | 1;
  constexpr int kCalls = 100;  // for each of the machine's architectures
  std::string rules;
  std::vector<int> named;
  for (int number = 0; number < kCalls; ++number) {
    char* name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    if (!name) continue;
    named.push_back(number);
    rules += (rules.empty() ? "" : ",") + std::string(R"({"names":[")") + name + R"("],"action":"SCMP_ACT_ALLOW","args":[)" +
             R"({"index":0,"value":)" + std::to_string(number + 1) + R"(,"op":"SCMP_CMP_EQ"},)" +
             R"({"index":1,"value":4294967296,"op":"SCMP_CMP_LE"}]})";
    std::free(name);
  }
  auto one = compile(R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[)" + rules + "]}");
  ASSERT_OK(one);
  EXPECT_GT(one->instructions.size(), 900u);
  for (int number : named) {
    seccomp_data data = call(number, uint64_t(number) + 1);
    data.args[1] = uint64_t(1) << 32;
    EXPECT_EQ(run_filter(*one, data), kAllow) << number;
    data.args[1]++;
    EXPECT_EQ(run_filter(*one, data), kRefused) << number;
    EXPECT_EQ(run_filter(*one, call(number, uint64_t(number) + 2)), kRefused) << number;
  }
}

TEST(Seccomp, ignores_calls_of_other_machines) {
  auto one = compile(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
    {"names":["mkdir","mkdirat","no_such_call","s390_pci_mmio_read"],"action":"SCMP_ACT_ERRNO","errnoRet":13}]})");
  ASSERT_OK(one);
  EXPECT_EQ(run_filter(*one, call(SYS_mkdirat)), uint32_t(SECCOMP_RET_ERRNO | 13));
  EXPECT_EQ(run_filter(*one, call(2000)), uint32_t(SECCOMP_RET_ALLOW));
  auto checked = [](const char* name) {
    return check_call_names(*parse_json(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read",")" +
                                        std::string(name) + R"("],"action":"SCMP_ACT_LOG"}]})"));
  };
  EXPECT_TRUE(checked("s390_pci_mmio_read"));
  EXPECT_EQ(checked("no_such_call").error().text(), "linux.seccomp.syscalls: \"no_such_call\" is unknown to libseccomp");
}

TEST(Seccomp, cache_finds_what_it_made) {
  char directory[] = "/tmp/coracle-seccomp-test-XXXXXX";
  ASSERT_TRUE(::mkdtemp(directory));
  json::value plain = *parse_json(R"({"defaultAction":"SCMP_ACT_ERRNO","flags":["SECCOMP_FILTER_FLAG_LOG"]})");
  json::value listens = *parse_json(R"({"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/run/a\nb","listenerMetadata":"m\n",
    "syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_NOTIFY"}]})");
  for (const json::value* profile : {&plain, &listens}) {
    SeccompCache cache(directory);
    auto made = cache.get(*profile, 0);
    ASSERT_OK(made);
    EXPECT_EQ(*made, *cache.get(*profile, 5));  // the same program
    auto found = SeccompCache(directory).find((*made)->name);
    ASSERT_OK(found);
    EXPECT_EQ((*found)->flags, (*made)->flags);
    EXPECT_EQ((*found)->instructions, (*made)->instructions);
    EXPECT_EQ((*found)->listener, (*made)->listener);
    // A file of which a power failure has left a part is not used: the program is compiled again.
    std::string path = std::string(directory) + "/" + (*made)->name;
    std::ifstream stored(path, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(stored)), {});
    for (size_t lost : {size_t(8), (*made)->instructions.size() * 8, (*made)->instructions.size() * 8 + 1}) {
      for (bool is_cut : {true, false}) {  // or it reads as zeros
        std::ofstream(path, std::ios::trunc | std::ios::binary)
            << whole.substr(0, whole.size() - lost) << std::string(is_cut ? 0 : lost, '\0');
        SCOPED_TRACE(std::to_string(lost) + (is_cut ? " bytes cut" : " bytes are zeros"));
        EXPECT_CODE(SeccompCache(directory).find((*made)->name), Code::not_found);
        auto again = SeccompCache(directory).get(*profile, 0);
        ASSERT_OK(again);
        EXPECT_EQ((*again)->name, (*made)->name);
        EXPECT_EQ((*again)->instructions, (*made)->instructions);
      }
    }
    for (const char* damage : {"", "2", "2\n", "{}\n12345678", "x\n12345678",
                               R"({"flags":-1,"key":0})"
                               "\n12345678",
                               R"({"flags":2})"
                               "\n12345678",
                               R"({"flags":2,"key":9})"
                               "\n12345678",
                               R"({"flags":2,"key":0})"
                               "\n1234567",
                               R"({"flags":2,"key":0,"sum":""})"
                               "\n12345678"}) {
      std::ofstream(path, std::ios::trunc) << damage;
      EXPECT_CODE(SeccompCache(directory).find((*made)->name), Code::not_found);
    }
    std::ofstream(path, std::ios::trunc) << R"({"flags":2,"key":3})"
                                            "\nkey12345678";
    EXPECT_TRUE(SeccompCache(directory).find((*made)->name).ok());
    EXPECT_CODE(SeccompCache(directory).find("../" + (*made)->name), Code::not_found);
    EXPECT_EQ(::unlink(path.c_str()), 0);
  }
  EXPECT_EQ(::rmdir(directory), 0);
}

// Profiles with equal hashes can be constructed: neither may get the other's program.
TEST(Seccomp, cache_tells_apart_what_shares_a_name) {
  char directory[] = "/tmp/coracle-seccomp-test-XXXXXX";
  ASSERT_TRUE(::mkdtemp(directory));
  auto path = [&](const std::string& name) { return std::string(directory) + "/" + name; };
  json::value one = *parse_json(R"({"defaultAction":"SCMP_ACT_ERRNO"})");
  json::value other = *parse_json(R"({"defaultAction":"SCMP_ACT_ALLOW"})");
  SeccompPtr first = *SeccompCache(directory).get(one, 0);
  SeccompPtr second = *SeccompCache(directory).get(other, 0);
  ASSERT_NE(first->name, second->name);
  ASSERT_EQ(::rename(path(first->name).c_str(), path(second->name).c_str()), 0);
  auto again = SeccompCache(directory).get(other, 0);
  ASSERT_OK(again);
  EXPECT_NE((*again)->name, second->name);
  EXPECT_EQ((*again)->instructions, second->instructions);
  EXPECT_EQ((*SeccompCache(directory).find(second->name))->instructions, first->instructions);
  EXPECT_EQ((*SeccompCache(directory).get(other, 0))->name, (*again)->name);  // from now on, it is found
  for (const std::string& name : {second->name, (*again)->name}) EXPECT_EQ(::unlink(path(name).c_str()), 0);
  EXPECT_EQ(::rmdir(directory), 0);
}

TEST(Seccomp, library_and_kernel_say_what_they_know) {
  auto holds = [](const std::vector<std::string>& list, const char* name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  SeccompInfo info = seccomp_info();
  EXPECT_TRUE(info.version.starts_with("2.")) << info.version;
  for (const char* name : {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"})
    EXPECT_TRUE(holds(info.architectures, name)) << name;
  // The types of all kernels that Coracle supports.
  for (const std::string& name : oci::seccomp_flag_names()) EXPECT_TRUE(holds(info.flags, name.c_str())) << name;
}

}  // namespace
}  // namespace coracle::runtime
