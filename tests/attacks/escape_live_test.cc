// SPDX-License-Identifier: Apache-2.0
// The escape suite: escape.cc runs in a container with a pod's defaults, and the result of each attempt is compared with
// escape_outcomes.tsv, the results in Docker's default container. Nothing that Docker stops may succeed, and nothing that Docker
// permits may fail, except in the few rows with a reason.
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/attacks/attack_fixture.h"

namespace coracle::attacks {
namespace {

struct Expectation {
  bool stops = false;   // Docker stops it
  bool beyond = false;  // this runtime stops it although Docker does not
};

std::map<std::string, Expectation> outcomes() {
  std::map<std::string, Expectation> out;
  const std::string text = read_text(ESCAPE_OUTCOMES);
  for (std::string_view line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    auto fields = split(line, '\t');
    EXPECT_EQ(fields.size(), 4u) << line;
    if (fields.size() != 4) continue;
    EXPECT_TRUE(fields[1] == "stops" || fields[1] == "lets") << line;
    EXPECT_TRUE(fields[3] == "=" || fields[3].starts_with("beyond: ")) << line;
    out[std::string(fields[0])] = {fields[1] == "stops", fields[3] != "="};
  }
  return out;
}

class Escape : public Attack {
 protected:
  void SetUp() override {
    Attack::SetUp();
    if (IsSkipped()) return;
    fs::copy_file(ESCAPE, rootfs() + "/escape");
    name_ = "coracle-escape-" + std::to_string(::getpid());
    socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path + 1, sizeof address.sun_path - 2);
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), socklen_t(sizeof(sa_family_t) + 1 + name_.size())), 0);
    ASSERT_EQ(::listen(socket_.get(), 1), 0);
    key_ = 0x434f5200 + (::getpid() & 0xff);
    shared_ = ::shmget(key_, 4096, IPC_CREAT | 0666);
    ASSERT_GE(shared_, 0);
  }
  void TearDown() override {
    if (shared_ >= 0) ::shmctl(shared_, IPC_RMID, nullptr);
    Attack::TearDown();
  }
  std::vector<std::string> command() {
    return {"/escape", host() + "/secret", std::to_string(::getpid()), name_, std::to_string(key_)};
  }
  void judge(const std::string& said) {
    auto known = outcomes();
    ASSERT_GT(known.size(), 150u);
    size_t tried = 0, stopped = 0;
    for (std::string_view line : split(said, '\n')) {
      auto fields = split(line, '\t');
      if (fields.size() != 3) {
        EXPECT_EQ(line, "");
        continue;
      }
      auto outcome = known.find(std::string(fields[0]));
      ASSERT_NE(outcome, known.end()) << "no outcome for " << fields[0];
      const int error = parse_number<int>(fields[1]).value_or(-1);
      ++tried;
      stopped += error != 0;
      // Needs the host's root; root in a user namespace is not enough.
      const bool is_host_root_s = GetParam() == Caller::own_users &&
                                  (fields[0] == "read kpagecount" || fields[0] == "node null" || fields[0] == "node tun");
      if (outcome->second.stops || outcome->second.beyond || is_host_root_s) {
        EXPECT_NE(error, 0) << fields[0] << " got through";
      } else {  // a feature that the kernel lacks counts as not stopped
        EXPECT_TRUE(error != EPERM && error != EACCES) << fields[0] << " is stopped, and Docker does not: " << fields[2];
      }
      known.erase(outcome);
    }
#if defined(__x86_64__)
    for (const auto& [name, outcome] : known) ADD_FAILURE() << name << " was not tried";
#endif
    std::printf("measured: %zu attempts, %zu stopped\n", tried, stopped);
  }

 private:
  std::string name_;
  Fd socket_;
  int key_ = 0, shared_ = -1;
};
INSTANTIATE_TEST_SUITE_P(Of, Escape, testing::Values(Caller::daemon, Caller::command_line, Caller::own_users), name_of);

TEST_P(Escape, finds_nothing_that_docker_stops) {
  ContainerSpec spec = fixture_->program("app-0", command());
  Outcome got = run(spec);
  ASSERT_EQ(got.refusal, "");
  EXPECT_EQ(got.code, 0);
  judge(got.out);
}

TEST_P(Escape, of_an_exec_finds_nothing_either) {
  ASSERT_EQ(start(shell("sleep 1000")).refusal, "");
  Outcome got = exec(command());
  ASSERT_EQ(got.refusal, "");
  judge(got.out);
  stop();
}

// The control: without a filter and with every capability, stopped attempts succeed; so the suite can distinguish them.
TEST_P(Escape, can_tell) {
  ContainerSpec spec = fixture_->program("app-0", command());
  spec.spec.linux_.seccomp.reset();
  spec.spec.linux_.masked_paths.clear();
  spec.spec.linux_.readonly_paths.clear();
  for (auto* list : {&spec.spec.process.capabilities->bounding, &spec.spec.process.capabilities->effective,
                     &spec.spec.process.capabilities->permitted})
    list->push_back("CAP_SYS_ADMIN");
  Outcome got = run(spec);
  ASSERT_EQ(got.refusal, "");
  for (const char* name : {"mount tmpfs", "unshare user", "fsopen", "keyctl", "capability 21", "sethostname", "list firmware"})
    EXPECT_NE(got.out.find(std::string(name) + "\t0\t"), got.out.npos) << name << " did not get through without protection";
  // Here only the user namespace protects.
  for (const char* name : {"write core_pattern", "mount bind", "read timer_list"})
    EXPECT_EQ(got.out.find(std::string(name) + "\t0\t") != got.out.npos, GetParam() != Caller::own_users)
        << name << " did not get through without protection, or did in a user namespace";
}

}  // namespace
}  // namespace coracle::attacks
