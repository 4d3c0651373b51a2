// SPDX-License-Identifier: Apache-2.0
// coracle-image from outside: its confinement while it handles untrusted data, the state after it is killed, and its protocol
// with the daemon. The untrusted data comes from an endless pipe. Needs root.
#include "runtime/image/worker.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <stop_token>
#include <thread>

#include "runtime/image/fetch/http.h"
#include "runtime/image/store.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"
#include "runtime/sys/socket.h"
#include "tests/runtime/image/builder.h"

namespace coracle::image {
namespace {

using namespace test;
namespace fs = std::filesystem;

TEST(Job, survives_the_wire) {
  Job job;
  job.store = "/s", job.staging = "7", job.platform = {"arm", "linux", "v7"}, job.name = "a/b:c", job.kind = JobKind::import;
  job.images = {{digest_of("x"), {"a/b:1"}, {}}};
  job.credentials = {{"r.example", "me", "p\"w", "t", "ns/key/u1"}};
  job.insecure_registries = {"x:5000"};
  job.mirrors = {{"docker.io", {"https://m"}}};
  job.hosts = {{"m:1", {false, {"ca", "cert", "key"}, {}}}, {"*", {}}};
  job.mirror_repository = "hub/b";
  job.servers.emplace();
  json::object without_servers = job.to_json();
  EXPECT_EQ(MUST(Job::from_json(without_servers)).to_json(), without_servers) << "none may be asked, which is not the default";
  job.servers = std::vector<runtime::RegistryServer>{{"https://m/v2", false, {"ca", "cert", "key"}, false, {"X: y"}}, {}};
  job.retry_delay = std::chrono::milliseconds(7);
  json::object sent = job.to_json();
  EXPECT_EQ(MUST(Job::from_json(sent)).to_json(), sent);
  for (const char* key : {"store", "staging", "architecture", "variant", "name", "kind", "images", "insecureRegistries",
                          "mirrors", "hosts", "mirrorRepository", "servers", "credentials", "retryDelayMs"})
    EXPECT_TRUE(sent.contains(key)) << key;

  JobEvents events;
  auto failed = hear(outcome_message(Error(Code::unauthorized, "who are you?")), events);
  ASSERT_TRUE(failed.ok() && failed->has_value());
  EXPECT_EQ((*failed)->error().code(), Code::unauthorized);
  EXPECT_EQ((*failed)->error().text(), "who are you?");
  EXPECT_FALSE(runtime::is_registry_unreachable((*failed)->error()));
  failed = hear(outcome_message(unreachable(Error(Code::timeout, "nobody answers"))), events);
  ASSERT_TRUE(failed.ok() && failed->has_value());
  EXPECT_EQ((*failed)->error().code(), Code::timeout);
  EXPECT_TRUE(runtime::is_registry_unreachable((*failed)->error()));
  failed = hear(outcome_message(Error::from_errno(ENOSPC, "write")), events);
  ASSERT_TRUE(failed.ok() && failed->has_value());
  EXPECT_EQ((*failed)->error().code(), Code::unavailable);
  EXPECT_FALSE(runtime::is_registry_unreachable((*failed)->error())) << "a full disk";
  failed = hear(json::object{{"outcome", {{"code", 0}, {"text", std::string(1 << 20, 'x')}}}}, events);
  ASSERT_TRUE(failed.ok() && failed->has_value());
  EXPECT_LT((*failed)->error().text().size(), 5000u) << "a worker that strangers took over says as much as it likes";
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
    options.retry_delay = std::chrono::milliseconds(5);
    auto made = make_store(options);
    ASSERT_TRUE(made.ok()) << made.error().text();
    store_ = std::move(*made);
  }
  // Starts an import that stays in the middle of its archive.
  void begin() {
    auto pipe = sys::make_pipe();
    ASSERT_TRUE(pipe.ok());
    far_ = std::move(pipe->write);
    job_ = std::thread([this, near = std::move(pipe->read)] { result_ = store_->import(near, ""); });
    std::string tar = make_tar({{"f", 'f', std::string(4000, 'x')}});
    ASSERT_TRUE(sys::write_all(far_, std::string_view(tar).substr(0, 3000)).ok());
    ASSERT_NO_FATAL_FAILURE(wait_for_workers(1));
    pid_ = workers().front();
  }
  // Starts a pull from a server that never answers.
  void begin_pull() {
    auto listener = sys::listen_tcp("127.0.0.1", 0);
    ASSERT_TRUE(listener.ok()) << listener.error().text();
    far_ = std::move(*listener);
    const std::string name = sys::local_endpoint(far_).text() + "/app:1";
    job_ = std::thread([this, name] {
      auto got = store_->pull(name, {}, nullptr, cancel_.get_token());
      if (!got) result_ = got.take_error();
    });
    ASSERT_NO_FATAL_FAILURE(wait_for_workers(2));
    for (int pid : workers()) (namespace_of(pid, "net") == namespace_of(::getpid(), "net") ? downloads_ : unpacks_) = pid;
    ASSERT_NE(downloads_, 0);
    ASSERT_NE(unpacks_, 0);
  }
  void wait_for_workers(size_t count) {
    for (int i = 0; i < 6000 && workers().size() < count; ++i) ::usleep(10'000);
    ASSERT_EQ(workers().size(), count) << "so many have confined themselves";
  }
  void stop() {
    cancel_.request_stop();
    far_ = Fd();
    if (job_.joinable()) job_.join();
  }
  // Our child processes with a seccomp filter.
  static std::vector<int> workers() {
    std::vector<int> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::string status = read_text(entry.path() / "status");
      if (field(status, "PPid") == std::to_string(::getpid()) && field(status, "Seccomp") == "2")
        found.push_back(std::stoi(entry.path().filename()));
    }
    return found;
  }
  static std::string namespace_of(int pid, const std::string& type) {
    return fs::read_symlink("/proc/" + std::to_string(pid) + "/ns/" + type);
  }
  static fs::path root_of(int pid) { return "/proc/" + std::to_string(pid) + "/root"; }
  std::string proc(const std::string& file) { return read_text("/proc/" + std::to_string(pid_) + "/" + file); }
  // The confinement that both kinds of worker share.
  static void expect_confined(int pid, const std::vector<std::string>& capabilities) {
    std::string status = read_text("/proc/" + std::to_string(pid) + "/status");
    EXPECT_EQ(field(status, "NoNewPrivs"), "1");
    uint64_t wanted = *oci::capability_set(capabilities);
    for (const char* set : {"CapPrm", "CapEff", "CapBnd"})
      EXPECT_EQ(std::stoull(field(status, set), nullptr, 16) & ~wanted, 0u) << set;
    EXPECT_EQ(std::stoull(field(status, "CapInh"), nullptr, 16), 0u);
    EXPECT_EQ(read_text("/proc/" + std::to_string(pid) + "/oom_score_adj"), "500\n");
    for (const char* type : {"mnt", "pid", "ipc"}) EXPECT_NE(namespace_of(pid, type), namespace_of(::getpid(), type)) << type;
    for (const char* secret :
         {"/etc/shadow", "/etc/passwd", "/etc/ssl/private", "/root", "/home", "/proc", "/sys", "/dev", "/etc/coracle"})
      EXPECT_FALSE(fs::exists(root_of(pid).string() + secret)) << secret;
  }
  // The writable mounts of the process. All of its mounts must be nodev and nosuid, the writable ones also noexec.
  static std::set<std::string> writable_mounts(int pid) {
    std::istringstream mounts(read_text("/proc/" + std::to_string(pid) + "/mountinfo"));
    std::set<std::string> writable;
    for (std::string line; std::getline(mounts, line);) {
      std::istringstream words(line);
      std::string skip, place, options;
      words >> skip >> skip >> skip >> skip >> place >> options;
      if (options.starts_with("rw")) writable.insert(place);
      for (const char* flag : {"nosuid", "nodev"}) EXPECT_NE(options.find(flag), options.npos) << line;
      EXPECT_TRUE(options.starts_with("ro") || options.find("noexec") != options.npos) << line;
    }
    return writable;
  }
  std::string state() const { return fs::canonical(dir_.path() + "/state"); }
  std::string first_part() const { return *std::next(fs::path(state()).begin()); }  // "var" of "/var/tmp/…"

  TempDir dir_;
  std::unique_ptr<Store> store_;
  Fd far_;
  int pid_ = 0, downloads_ = 0, unpacks_ = 0;
  std::stop_source cancel_;
  std::thread job_;
  Result<std::vector<runtime::Image>> result_{std::vector<runtime::Image>()};
};

const std::vector<std::string> kMakesFiles = {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER",   "CAP_FSETID",
                                              "CAP_MKNOD", "CAP_SETFCAP",      "CAP_SYS_ADMIN"};

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

// Expects that only the path to the store and the locales are visible.
void expect_only_store(int pid, const std::string& first_part) {
  const fs::path root = "/proc/" + std::to_string(pid) + "/root";
  EXPECT_EQ(names_in(root), (std::set<std::string>{first_part, "usr"}));
  EXPECT_EQ(names_in(root / "usr"), std::set<std::string>{"lib"});
  EXPECT_EQ(names_in(root / "usr/lib"), std::set<std::string>{"locale"});
}

TEST_F(WorkerTest, is_confined) {
  ASSERT_NO_FATAL_FAILURE(begin());
  expect_confined(pid_, kMakesFiles);
  EXPECT_NE(namespace_of(pid_, "net"), namespace_of(::getpid(), "net")) << "an archive takes no network";
  EXPECT_EQ(writable_mounts(pid_), std::set<std::string>{state()});
  expect_only_store(pid_, first_part());
  EXPECT_TRUE(fs::exists(root_of(pid_).string() + state() + "/layers"));
  fs::create_directory(dir_.path() + "/state/snapshots/x");
  EXPECT_TRUE(fs::is_empty(root_of(pid_).string() + state() + "/snapshots")) << "the containers' files";
  fs::remove(dir_.path() + "/state/snapshots/x");
}

TEST_F(WorkerTest, a_pull_is_two_of_which_one_has_the_network_and_one_the_rights) {
  ASSERT_NO_FATAL_FAILURE(begin_pull());
  expect_confined(unpacks_, kMakesFiles);
  EXPECT_EQ(writable_mounts(unpacks_), std::set<std::string>{state()});
  expect_only_store(unpacks_, first_part());

  expect_confined(downloads_, {});
  EXPECT_EQ(writable_mounts(downloads_), (std::set<std::string>{state() + "/configs", state() + "/partial"}));
  EXPECT_EQ(names_in(root_of(downloads_).string() + state()), (std::set<std::string>{"configs", "partial"}));
  EXPECT_EQ(namespace_of(downloads_, "pid") == namespace_of(unpacks_, "pid"), false) << "neither sees the other";
  std::set<std::string> shown = names_in(root_of(downloads_));
  for (const std::string& each :
       {std::string("etc"), std::string("lib"), std::string("lib64"), std::string("run"), std::string("usr"), first_part()})
    shown.erase(each);
  EXPECT_EQ(shown, std::set<std::string>());
  for (const char* each : {"/etc/ssl/certs", "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"})
    EXPECT_EQ(fs::exists(root_of(downloads_).string() + each), fs::exists(each)) << each;
  for (const std::string& each : names_in(root_of(downloads_) / "etc"))
    EXPECT_TRUE(
        (std::set<std::string>{"ssl", "resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf", "services", "ld.so.cache"}
             .contains(each)))
        << each;
  stop();
  ASSERT_FALSE(result_.ok());
  EXPECT_EQ(result_.error().code(), Code::cancelled);
  EXPECT_TRUE(workers().empty());
  EXPECT_TRUE(fs::is_empty(dir_.path() + "/state/staging"));
}

TEST_F(WorkerTest, the_death_of_either_ends_a_pull) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(begin_pull());
    ASSERT_EQ(::kill(i ? unpacks_ : downloads_, SIGKILL), 0);
    if (i) far_ = Fd();  // the remaining worker notices that its server, and then its peer, has ended
    job_.join();
    ASSERT_FALSE(result_.ok());
    EXPECT_TRUE(workers().empty());
    EXPECT_TRUE(fs::is_empty(dir_.path() + "/state/staging"));
    downloads_ = unpacks_ = 0;
  }
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

std::string mounts_here() { return read_text("/proc/thread-self/mountinfo"); }

// With shared mounts, as systemd sets them up: a mount in one copy appears in all copies.
TEST_F(WorkerTest, mounts_nothing_in_a_machine_whose_mounts_are_shared) {
  std::string before, during_import, after;
  std::thread([&] {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr), 0);
    before = mounts_here();
    ASSERT_NO_FATAL_FAILURE(begin());
    during_import = mounts_here();
    stop();
    cancel_ = {};
    ASSERT_NO_FATAL_FAILURE(begin_pull());
    after = mounts_here();
    stop();
  }).join();
  EXPECT_FALSE(before.empty());
  EXPECT_EQ(during_import, before);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace coracle::image
