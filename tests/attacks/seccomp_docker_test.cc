// SPDX-License-Identifier: Apache-2.0
// The default seccomp profile against docker_calls.tsv, for each call, in both directions: calls that Docker's default profile
// stops are stopped, and others are allowed, for a container without capabilities, with Docker's own, and with each one that
// permits something; for native calls and for those of the related 32-bit architecture.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "runtime/container/seccomp_program.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "tests/runtime/container/bpf_machine.h"

namespace coracle::runtime {
namespace {

using Whom = std::set<std::string>;

std::map<std::string, Whom> known_calls() {
  std::map<std::string, Whom> out;
  std::ifstream file(DOCKER_CALLS);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    while (words >> word) out[name].insert(word);
    EXPECT_FALSE(out[name].empty()) << line;
  }
  return out;
}

struct Machine {
  const char* name;
  uint32_t token, audit;
};
const Machine kMachines[] = {
#if defined(__x86_64__)
    {"x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64},
    {"i386", SCMP_ARCH_X86, AUDIT_ARCH_I386},
#elif defined(__aarch64__)
    {"aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64},
    {"arm", SCMP_ARCH_ARM, AUDIT_ARCH_ARM},
#endif
};

void compare(const std::map<std::string, Whom>& known, const std::vector<std::string>& capabilities) {
  auto program = compile_seccomp(oci::default_seccomp(), *oci::capability_set(capabilities));
  ASSERT_TRUE(program.ok()) << program.error().text();
  const Whom held(capabilities.begin(), capabilities.end());
  size_t compared = 0;
  for (const Machine& machine : kMachines) {
    for (int number = 0; number < 1000; ++number) {
      char* found = ::seccomp_syscall_resolve_num_arch(machine.token, number);
      if (!found) continue;  // newer than the library: no profile has it
      const std::string name = found;
      ::free(found);
      seccomp_data data{};
      data.nr = number;
      data.arch = machine.audit;
      auto outcome = known.find(name);
      bool lets = outcome != known.end() && (outcome->second.count("everyone") || outcome->second.count("arguments"));
      if (outcome != known.end())
        for (const std::string& whom : outcome->second) lets |= held.count(whom) > 0;
      ++compared;
      EXPECT_EQ(run_filter(*program, data) == SECCOMP_RET_ALLOW, lets)
          << machine.name << " " << name << ": Docker " << (lets ? "lets" : "stops") << " it";
    }
  }
  EXPECT_GT(compared, 600u);
}

TEST(DefaultSeccomp, is_docker_s_call_by_call) {
  const auto known = known_calls();
  ASSERT_GT(known.size(), 350u);
  compare(known, {});
  compare(known, oci::default_spec().process.capabilities->bounding);
  Whom gates;
  for (const auto& [name, whom] : known)
    for (const std::string& each : whom)
      if (each.starts_with("CAP_")) gates.insert(each);
  EXPECT_GT(gates.size(), 10u);
  for (const std::string& capability : gates) compare(known, {capability});
}

// Sockets, namespaces, personalities: calls whose result depends on an argument, with every relevant value.
TEST(DefaultSeccomp, is_docker_s_argument_by_argument) {
  auto program = compile_seccomp(oci::default_seccomp(), 0);
  ASSERT_TRUE(program.ok()) << program.error().text();
  auto lets = [&](const char* name, uint64_t first) {
    seccomp_data data{};
    data.nr = ::seccomp_syscall_resolve_name(name);
    data.arch = kMachines[0].audit;
    data.args[0] = first;
    return run_filter(*program, data) == SECCOMP_RET_ALLOW;
  };
  for (uint64_t family = 0; family <= 45; ++family)  // all existing families
    EXPECT_EQ(lets("socket", family), family != 38 && family != 40) << "socket of family " << family;
  for (uint64_t above : {uint64_t(1) << 32, uint64_t(1) << 63, uint64_t(0xffffffff) << 32})  // the kernel ignores these bits
    for (uint64_t family : {38, 40}) EXPECT_FALSE(lets("socket", above + family)) << above + family;
  const std::set<uint64_t> personas = {0, 8, 0x20000, 0x20008, 0xffffffff};
  for (int bit = 0; bit < 32; ++bit)
    for (uint64_t other : {uint64_t(0), uint64_t(8), uint64_t(0x20000)}) {
      uint64_t persona = uint64_t(1) << bit | other;
      EXPECT_EQ(lets("personality", persona), personas.count(persona) > 0) << "personality " << persona;
    }
  const uint64_t namespaces = 0x7E020000;
  for (int bit = 0; bit < 32; ++bit)
    EXPECT_EQ(lets("clone", uint64_t(1) << bit), !(namespaces >> bit & 1)) << "clone flag " << bit;
}

}  // namespace
}  // namespace coracle::runtime
