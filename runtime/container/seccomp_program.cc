// SPDX-License-Identifier: Apache-2.0
// See seccomp_program.h.
#include "runtime/container/seccomp_program.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/evp.h>
#include <seccomp.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/base/text.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"

namespace coracle::runtime {
namespace {

constexpr int kFormat = 2;                 // part of the hash: programs of another making are not found
constexpr size_t kInstructionsMax = 4096;  // BPF_MAXINSNS
constexpr size_t kRulesMax = 10000;
constexpr int kEperm = 1, kEnosys = 38;

Error bad(const std::string& text) { return Error(Code::invalid, "linux.seccomp." + text); }

struct Context {
  scmp_filter_ctx handle = nullptr;
  ~Context() {
    if (handle) ::seccomp_release(handle);
  }
};

Result<uint32_t> action_of(std::string_view name, std::optional<uint32_t> errno_ret) {
  if (name == "SCMP_ACT_ALLOW") return uint32_t(SCMP_ACT_ALLOW);
  if (name == "SCMP_ACT_ERRNO") return uint32_t(SCMP_ACT_ERRNO(errno_ret.value_or(kEperm)));
  if (name == "SCMP_ACT_KILL" || name == "SCMP_ACT_KILL_THREAD") return uint32_t(SCMP_ACT_KILL_THREAD);
  if (name == "SCMP_ACT_KILL_PROCESS") return uint32_t(SCMP_ACT_KILL_PROCESS);
  if (name == "SCMP_ACT_TRAP") return uint32_t(SCMP_ACT_TRAP);
  if (name == "SCMP_ACT_LOG") return uint32_t(SCMP_ACT_LOG);
  if (name == "SCMP_ACT_TRACE") return uint32_t(SCMP_ACT_TRACE(errno_ret.value_or(kEperm)));
  return bad("action " + quoted(name) + " is not supported");
}

Result<scmp_compare> operator_of(std::string_view name) {
  static const std::map<std::string_view, scmp_compare> known = {{"SCMP_CMP_NE", SCMP_CMP_NE},
                                                                 {"SCMP_CMP_LT", SCMP_CMP_LT},
                                                                 {"SCMP_CMP_LE", SCMP_CMP_LE},
                                                                 {"SCMP_CMP_EQ", SCMP_CMP_EQ},
                                                                 {"SCMP_CMP_GE", SCMP_CMP_GE},
                                                                 {"SCMP_CMP_GT", SCMP_CMP_GT},
                                                                 {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ}};
  auto found = known.find(name);
  if (found == known.end()) return bad("syscalls: operator " + quoted(name));
  return found->second;
}

std::optional<uint64_t> number(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (!value) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64()) return uint64_t(value->get_int64());  // as C reads a negative literal
  return std::nullopt;
}

struct Conditions {
  std::vector<scmp_arg_cmp> all;
  bool repeats_argument = false;  // libseccomp takes one comparison per argument: more means "or", as others read it
};

Result<Conditions> conditions_of(const json::object& rule) {
  Conditions out;
  const json::value* args = rule.if_contains("args");
  if (!args || args->is_null()) return out;
  if (!args->is_array()) return bad("syscalls.args is not a list");
  bool seen[6] = {};
  for (const json::value& item : args->get_array()) {
    if (!item.is_object()) return bad("syscalls.args is not a list of objects");
    const json::object& arg = item.get_object();
    auto index = number(arg, "index"), value = number(arg, "value");
    if (!index || *index > 5 || !value) return bad("syscalls.args: index or value is missing or out of range");
    scmp_arg_cmp compare{};
    compare.arg = unsigned(*index);
    compare.op = TRY(operator_of(get_string(item, "op")));
    compare.datum_a = *value;
    if (compare.op == SCMP_CMP_MASKED_EQ) compare.datum_b = number(arg, "valueTwo").value_or(0);
    out.repeats_argument |= seen[*index];
    seen[*index] = true;
    out.all.push_back(compare);
  }
  return out;
}

Result<void> add(const Context& context, uint32_t action, int call, const std::vector<scmp_arg_cmp>& conditions,
                 std::string_view name) {
  int rc = ::seccomp_rule_add_array(context.handle, action, call, unsigned(conditions.size()),
                                    conditions.empty() ? nullptr : conditions.data());
  // A call that the other architecture of the machine lacks, or a rule that says what another has said.
  if (rc == 0 || rc == -EEXIST || rc == -EDOM || rc == -EFAULT) return {};
  return bad("syscalls: " + std::string(name) + ": " + std::string(::strerror(-rc)));
}

Result<void> add_rule(const Context& context, const json::value& value, uint32_t default_action, int& newest) {
  if (!value.is_object()) return bad("syscalls is not a list of objects");
  const json::object& rule = value.get_object();
  std::optional<uint32_t> errno_ret;
  if (auto given = number(rule, "errnoRet")) errno_ret = uint32_t(*given);
  uint32_t action = TRY(action_of(get_string(value, "action"), errno_ret));
  Conditions conditions = TRY(conditions_of(rule));
  for (const json::value& item : get_array(value, "names")) {
    if (!item.is_string()) return bad("syscalls.names is not a list of names");
    std::string name(item.get_string());
    int call = ::seccomp_syscall_resolve_name(name.c_str());
    if (call == __NR_SCMP_ERROR) continue;  // another machine's, or newer than libseccomp
    newest = std::max(newest, call);
    if (action == default_action) continue;
    if (!conditions.repeats_argument) {
      TRY(add(context, action, call, conditions.all, name));
      continue;
    }
    for (const scmp_arg_cmp& condition : conditions.all) TRY(add(context, action, call, {condition}, name));
  }
  return {};
}

Result<uint32_t> architecture_of(std::string_view name) {
  std::string lower = to_lower(name.starts_with("SCMP_ARCH_") ? name.substr(10) : name);
  uint32_t token = ::seccomp_arch_resolve_name(lower.c_str());
  if (token == 0) return bad("architectures: " + quoted(name));
  return token;
}

// The native one, its 32-bit relatives (a profile that forgets them is bypassed through them), and what the profile
// names.
Result<void> add_architectures(const Context& context, const json::value& profile) {
  std::vector<uint32_t> wanted;
#if defined(__x86_64__)
  wanted = {SCMP_ARCH_X86, SCMP_ARCH_X32};
#elif defined(__aarch64__)
  wanted = {SCMP_ARCH_ARM};
#endif
  for (const json::value& item : get_array(profile, "architectures")) {
    if (!item.is_string()) return bad("architectures is not a list of names");
    uint32_t token = TRY(architecture_of(std::string_view(item.get_string())));
    wanted.push_back(token);
  }
  for (uint32_t token : wanted) {
    int rc = ::seccomp_arch_add(context.handle, token);
    if (rc != 0 && rc != -EEXIST) continue;  // of another family: its programs cannot run here
  }
  return {};
}

Result<uint32_t> flags_of(const json::value& profile) {
  uint32_t flags = 0;
  for (const json::value& item : get_array(profile, "flags")) {
    std::string_view name = item.is_string() ? std::string_view(item.get_string()) : std::string_view();
    if (name == "SECCOMP_FILTER_FLAG_LOG")
      flags |= SECCOMP_FILTER_FLAG_LOG;
    else if (name == "SECCOMP_FILTER_FLAG_SPEC_ALLOW")
      flags |= SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    else if (name == "SECCOMP_FILTER_FLAG_TSYNC")
      continue;  // one thread: nothing to do
    else
      return bad("flags: " + quoted(name));
  }
  return flags;
}

Result<std::vector<uint64_t>> export_program(const Context& context) {
  Fd file = TRY(sys::make_memfd("seccomp", "", false));
  int rc = ::seccomp_export_bpf(context.handle, file.get());
  if (rc != 0) return Error(Code::internal, std::string("export seccomp program: ") + ::strerror(-rc));
  Fd again = TRY(sys::open(sys::fd_path(file), O_RDONLY));
  std::string bytes = TRY(sys::read_all(again));
  std::vector<uint64_t> out(bytes.size() / sizeof(uint64_t));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(uint64_t));
  return out;
}

uint64_t step(uint16_t code, uint8_t when_true, uint8_t when_false, uint32_t value) {
  sock_filter filter{code, when_true, when_false, value};
  uint64_t out;
  std::memcpy(&out, &filter, sizeof out);
  return out;
}

// Calls that are newer than everything the profile speaks of fail with ENOSYS rather than EPERM: programs ask for new
// calls first and fall back only when there is no such call.
void answer_newer_calls(std::vector<uint64_t>& program, int newest, uint32_t default_action) {
  if ((default_action & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO || newest <= 0) return;
#if defined(__x86_64__)
  constexpr uint32_t kNative = AUDIT_ARCH_X86_64, kOtherNumbers = 0x40000000;  // x32
#elif defined(__aarch64__)
  constexpr uint32_t kNative = AUDIT_ARCH_AARCH64, kOtherNumbers = 0xffffffff;
#endif
  const uint64_t head[] = {
      step(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, arch)),
      step(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, kNative),
      step(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)),
      step(BPF_JMP | BPF_JGE | BPF_K, 2, 0, kOtherNumbers),
      step(BPF_JMP | BPF_JGT | BPF_K, 0, 1, uint32_t(newest)),
      step(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | kEnosys),
  };
  program.insert(program.begin(), std::begin(head), std::end(head));
}

Result<std::string> hash_of(const json::value& profile, uint64_t capabilities) {
  const scmp_version* version = ::seccomp_version();
  std::string text = std::to_string(kFormat) + " " + std::to_string(version->major) + "." +
                     std::to_string(version->minor) + "." + std::to_string(version->micro) + " " +
                     std::to_string(::seccomp_arch_native()) + " " + std::to_string(capabilities) + "\n" +
                     to_text(profile);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (::EVP_Digest(text.data(), text.size(), digest, &size, ::EVP_sha256(), nullptr) != 1)
    return Error(Code::internal, "sha256");
  return hex(std::string_view(reinterpret_cast<char*>(digest), size));
}

// Only the capabilities that the profile speaks of matter: containers with different ones share a program.
uint64_t relevant(const json::value& profile, uint64_t capabilities) {
  uint64_t mentioned = 0;
  for (const auto& [name, calls] : get_object(profile, "capabilities"))
    if (auto bit = oci::capability_number(std::string(name))) mentioned |= uint64_t(1) << *bit;
  return capabilities & mentioned;
}

}  // namespace

Result<SeccompProgram> compile_seccomp(const json::value& profile, uint64_t capabilities) {
  if (!profile.is_object()) return Error(Code::invalid, "linux.seccomp is not an object");
  std::optional<uint32_t> errno_ret;
  if (auto given = number(profile.get_object(), "defaultErrnoRet")) errno_ret = uint32_t(*given);
  uint32_t default_action = TRY(action_of(get_string(profile, "defaultAction"), errno_ret));
  Context context{::seccomp_init(default_action)};
  if (!context.handle) return Error(Code::internal, "seccomp_init");
  (void)::seccomp_attr_set(context.handle, SCMP_FLTATR_CTL_OPTIMIZE, 2);  // older libraries: slower to load, as right
  (void)::seccomp_attr_set(context.handle, SCMP_FLTATR_ACT_BADARCH, default_action);
  TRY(add_architectures(context, profile));
  const json::array& rules = get_array(profile, "syscalls");
  if (rules.size() > kRulesMax) return Error(Code::too_large, "linux.seccomp.syscalls");
  int newest = 0;
  // What a capability allows comes first: an unconditional rule makes later conditional ones for the same call moot.
  for (const auto& [name, calls] : get_object(profile, "capabilities")) {
    auto bit = oci::capability_number(std::string(name));
    if (!bit || !(capabilities >> *bit & 1)) continue;
    json::value rule = json::object{{"names", calls}, {"action", "SCMP_ACT_ALLOW"}};
    TRY(add_rule(context, rule, default_action, newest));
  }
  for (const json::value& rule : rules) TRY(add_rule(context, rule, default_action, newest));
  SeccompProgram out;
  out.flags = TRY(flags_of(profile));
  out.instructions = TRY(export_program(context));
  answer_newer_calls(out.instructions, newest, default_action);
  if (out.instructions.size() > kInstructionsMax)
    return Error(Code::too_large, "linux.seccomp: the program is too long");
  return out;
}

Result<SeccompPtr> SeccompCache::get(const json::value& profile, uint64_t capabilities) {
  capabilities = relevant(profile, capabilities);
  std::string hash = TRY(hash_of(profile, capabilities));
  if (auto found = find(hash)) return found;
  auto made = std::make_shared<SeccompProgram>();
  *made = TRY(compile_seccomp(profile, capabilities));
  made->hash = hash;
  std::string bytes(made->instructions.size() * sizeof(uint64_t), '\0');
  std::memcpy(bytes.data(), made->instructions.data(), bytes.size());
  std::string file = std::to_string(made->flags) + "\n" + bytes;
  TRY(sys::make_directories(directory_, 0700));
  TRY(sys::replace_file(directory_ + "/" + hash, file, 0600));
  SeccompPtr program = std::move(made);
  programs_.with([&](auto& programs) { programs[hash] = program; });
  return program;
}

Result<SeccompPtr> SeccompCache::find(const std::string& hash) {
  SeccompPtr found = programs_.with([&](auto& programs) {
    auto at = programs.find(hash);
    return at == programs.end() ? nullptr : at->second;
  });
  if (found) return found;
  return load(hash);
}

Result<SeccompPtr> SeccompCache::load(const std::string& hash) {
  if (hash.size() != 64 || hash.find_first_not_of("0123456789abcdef") != hash.npos)
    return Error(Code::not_found, "no such seccomp program");
  std::string file = TRY(sys::read_file(directory_ + "/" + hash));
  size_t line = file.find('\n');
  auto flags = parse_number<uint32_t>(std::string_view(file).substr(0, line == file.npos ? 0 : line));
  size_t size = line == file.npos ? 0 : file.size() - line - 1;
  // A power cut may have left it short: then it is made again.
  if (!flags || size == 0 || size % sizeof(uint64_t) != 0 || size / sizeof(uint64_t) > kInstructionsMax)
    return Error(Code::not_found, "seccomp program on the disk is damaged");
  auto program = std::make_shared<SeccompProgram>();
  program->hash = hash;
  program->flags = *flags;
  program->instructions.resize(size / sizeof(uint64_t));
  std::memcpy(program->instructions.data(), file.data() + line + 1, size);
  SeccompPtr out = std::move(program);
  programs_.with([&](auto& programs) { programs[hash] = out; });
  return out;
}

}  // namespace coracle::runtime
