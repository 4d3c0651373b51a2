// SPDX-License-Identifier: Apache-2.0
// coracle-image from outside: what it may and may not while a stranger's bytes are in it, what is left when it dies,
// and what goes over the wire. The stranger here is a pipe that does not end. Needs root.
#include "runtime/image/worker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <thread>

#include "runtime/image/store.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"
#include "tests/runtime/image/builder.h"

namespace coracle::image {
namespace {

using namespace test;
namespace fs = std::filesystem;

TEST(Job, survives_the_wire) {
  Job job;
  job.store = "/s", job.staging = "7", job.platform = {"arm", "linux", "v7"}, job.name = "a/b:c", job.import = true;
  job.credentials = {{"r.example", "me", "p\"w", "t", "ns/key/u1"}};
  job.insecure_registries = {"x:5000"};
  job.mirrors = {{"docker.io", {"https://m"}}};
  job.retry_delay = std::chrono::milliseconds(7);
  json::object sent = job.to_json();
  EXPECT_EQ(Job::from_json(sent).to_json(), sent);
  for (const char* key : {"store", "staging", "architecture", "variant", "name", "import", "insecureRegistries", "mirrors",
                          "credentials", "retryDelayMs"})
    EXPECT_TRUE(sent.contains(key)) << key;

  JobEvents events;
  auto failed = hear(outcome_message(Error(Code::unauthorized, "who are you?")), events);
  ASSERT_TRUE(failed.ok() && failed->has_value());
  EXPECT_EQ((*failed)->error().code(), Code::unauthorized);
  EXPECT_EQ((*failed)->error().text(), "who are you?");
  for (const char* text : {"{}", "[]", R"({"outcome":{"code":99}})", R"({"outcome":{"code":-1}})"}) {
    auto heard = hear(*parse_json(text), events);
    bool is_error = !heard || (heard->has_value() && (*heard)->error().code() == Code::internal);
    EXPECT_TRUE(is_error) << text;
  }
  EXPECT_FALSE(hear(*parse_json(R"({"pin":"../x","layers":[]})"), events).ok());

  std::vector<std::optional<size_t>> used;
  events.add = [&](const Record&, std::optional<size_t> which) -> Result<void> {
    used.push_back(which);
    return {};
  };
  for (std::optional<size_t> which : {std::optional<size_t>(), std::optional<size_t>(0), std::optional<size_t>(3)})
    ASSERT_TRUE(hear(add_message({digest_of("x"), {"a/b:1"}, {}}, which), events).ok());
  EXPECT_EQ(used, (std::vector<std::optional<size_t>>{std::nullopt, 0, 3}));
}

std::string field(const std::string& status, const std::string& name) {
  size_t at = status.find("\n" + name + ":\t");
  if (at == status.npos) return "";
  at += name.size() + 3;
  return status.substr(at, status.find('\n', at) - at);
}

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    open(CORACLE_IMAGE);
  }
  void TearDown() override { stop(); }
  void open(const std::string& program) {
    store_.reset();
    Options options;
    options.state_dir = dir_.path() + "/state";
    options.worker_program = program;
    auto made = make_store(options);
    ASSERT_TRUE(made.ok()) << made.error().text();
    store_ = std::move(*made);
  }
  // An import under way, in the middle of its archive.
  void begin() {
    auto pipe = sys::make_pipe();
    ASSERT_TRUE(pipe.ok());
    far_ = std::move(pipe->write);
    job_ = std::thread([this, near = std::move(pipe->read)] { result_ = store_->import(near, ""); });
    std::string tar = make_tar({{"f", 'f', std::string(4000, 'x')}});
    ASSERT_TRUE(sys::write_all(far_, std::string_view(tar).substr(0, 3000)).ok());
    for (int i = 0; i < 1000 && !(pid_ = worker()); ++i) ::usleep(10'000);
    ASSERT_NE(pid_, 0) << "no worker has confined itself";
  }
  void stop() {
    far_ = Fd();
    if (job_.joinable()) job_.join();
  }
  // Our child that filters its system calls.
  static int worker() {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::string status = read_text(entry.path() / "status");
      if (field(status, "PPid") == std::to_string(::getpid()) && field(status, "Seccomp") == "2")
        return std::stoi(entry.path().filename());
    }
    return 0;
  }
  std::string proc(const std::string& file) { return read_text("/proc/" + std::to_string(pid_) + "/" + file); }

  TempDir dir_;
  std::unique_ptr<Store> store_;
  Fd far_;
  int pid_ = 0;
  std::thread job_;
  Result<std::vector<runtime::Image>> result_{std::vector<runtime::Image>()};
};

TEST_F(WorkerTest, is_confined) {
  ASSERT_NO_FATAL_FAILURE(begin());
  std::string status = proc("status");
  EXPECT_EQ(field(status, "NoNewPrivs"), "1");
  uint64_t wanted = *oci::capability_set(
      {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_MKNOD", "CAP_SETFCAP", "CAP_SYS_ADMIN"});
  for (const char* set : {"CapPrm", "CapEff", "CapBnd"})
    EXPECT_EQ(std::stoull(field(status, set), nullptr, 16) & ~wanted, 0u) << set;
  EXPECT_EQ(std::stoull(field(status, "CapInh"), nullptr, 16), 0u);
  EXPECT_EQ(proc("oom_score_adj"), "500\n");
  std::istringstream mounts(proc("mountinfo"));
  std::string store = fs::canonical(dir_.path() + "/state");
  bool found = false;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string skip, place, options;
    words >> skip >> skip >> skip >> skip >> place >> options;
    bool ours = place == store;
    found |= ours;
    EXPECT_TRUE(options.starts_with(ours ? "rw" : "ro")) << line;
    for (const char* flag : {"nosuid", "nodev"}) EXPECT_NE(options.find(flag), options.npos) << line;
    EXPECT_TRUE(!ours || options.find("noexec") != options.npos) << line;
  }
  EXPECT_TRUE(found);
}

TEST_F(WorkerTest, its_death_is_an_error_and_leaves_nothing) {
  ASSERT_NO_FATAL_FAILURE(begin());
  EXPECT_FALSE(fs::is_empty(dir_.path() + "/state/staging"));
  ASSERT_EQ(::kill(pid_, SIGKILL), 0);
  job_.join();
  ASSERT_FALSE(result_.ok());
  EXPECT_EQ(result_.error().text(), "coracle-image ended before its work was done");
  EXPECT_TRUE(fs::is_empty(dir_.path() + "/state/staging"));
  EXPECT_NE(::kill(pid_, 0), 0) << "it is buried";
}

TEST_F(WorkerTest, an_archive_that_breaks_off_is_an_error) {
  ASSERT_NO_FATAL_FAILURE(begin());
  stop();
  ASSERT_FALSE(result_.ok());
  EXPECT_EQ(result_.error().code(), Code::invalid) << result_.error().text();
}

TEST_F(WorkerTest, who_is_missing_is_named) {
  open("/nowhere/coracle-image");
  Fd null = *sys::open("/dev/null", O_RDONLY);
  auto result = store_->import(null, "");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().text().find("coracle-image"), std::string::npos) << result.error().text();
}

}  // namespace
}  // namespace coracle::image
