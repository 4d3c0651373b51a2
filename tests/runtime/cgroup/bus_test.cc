// SPDX-License-Identifier: Apache-2.0
// Requests to systemd and the handling of its replies. The peer is a fake manager on systemd's library (sd-bus) that listens
// where a user's systemd does. container_live_test.cc uses the real one.
#include "runtime/cgroup/bus.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "runtime/base/fd.h"

namespace coracle::cgroup {
namespace {

constexpr const char* kManagerObject = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";

Fd listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(out.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(out.get(), 2), 0);
  return out;
}

bool is_listening(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(out.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// A manager that serves one direct connection, or the clients on a bus. `heard` records its requests; it is read after the
// manager has ended.
class FakeManager {
 public:
  static constexpr struct OnBus {
  } kOnBus{};
  FakeManager(OnBus, const std::string& bus_address) {
    EXPECT_GE(sd_bus_new(&bus_), 0);
    EXPECT_GE(sd_bus_set_address(bus_, bus_address.c_str()), 0);
    EXPECT_GE(sd_bus_set_bus_client(bus_, 1), 0);
    EXPECT_GE(sd_bus_start(bus_), 0);
    EXPECT_GE(sd_bus_request_name(bus_, "org.freedesktop.systemd1", 0), 0);
    thread_ = std::thread([this] { serve(); });
  }
  explicit FakeManager(const std::string& socket) {
    std::filesystem::create_directories(std::filesystem::path(socket).parent_path());
    listener_ = listen_at(socket);
    thread_ = std::thread([this] { serve(); });
  }
  FakeManager(const FakeManager&) = delete;
  ~FakeManager() { finish(); }
  void finish() {
    is_over_ = true;
    if (listener_) ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

  std::vector<std::string> heard;
  // Set before a client connects.
  std::string unknown_property;  // StartTransientUnit and SetUnitProperties reject it as unknown
  int failed_ones = 0;           // number of times that an old failed unit has this name
  const char* outcome = "done";
  bool ends_before_the_job = false;
  sd_bus_error refusal = SD_BUS_ERROR_NULL;

 private:
  static FakeManager& of(void* self) { return *static_cast<FakeManager*>(self); }

  // "name=type:value …" for a(sv); the first error goes to `error`.
  std::string read_properties(sd_bus_message* from, sd_bus_error* error) {
    std::string out;
    EXPECT_GE(sd_bus_message_enter_container(from, 'a', "(sv)"), 0);
    while (sd_bus_message_enter_container(from, 'r', "sv") > 0) {
      const char *name = nullptr, *contents = nullptr;
      EXPECT_GE(sd_bus_message_read(from, "s", &name), 0);
      EXPECT_GE(sd_bus_message_peek_type(from, nullptr, &contents), 0);
      if (name == unknown_property && !sd_bus_error_is_set(error))
        sd_bus_error_setf(error, "org.freedesktop.DBus.Error.PropertyReadOnly", "Cannot set property %s, or unknown property.",
                          name);
      out += std::string(name) + "=" + contents + ":" + read_value(from, contents) + " ";
      EXPECT_GE(sd_bus_message_exit_container(from), 0);
    }
    EXPECT_GE(sd_bus_message_exit_container(from), 0);
    return out;
  }

  static std::string read_value(sd_bus_message* from, const std::string& type) {
    std::string out;
    EXPECT_GE(sd_bus_message_enter_container(from, 'v', type.c_str()), 0);
    bool is_array = type[0] == 'a';
    if (is_array) {
      EXPECT_GE(sd_bus_message_enter_container(from, 'a', type.c_str() + 1), 0);
    }
    while (true) {
      std::string word;
      int read = read_basic(from, type.back(), word);
      EXPECT_GE(read, 0);
      if (read <= 0) break;
      out += (out.empty() ? "" : ",") + word;
      if (!is_array) break;
    }
    if (is_array) {
      EXPECT_GE(sd_bus_message_exit_container(from), 0);
    }
    EXPECT_GE(sd_bus_message_exit_container(from), 0);
    return out;
  }

  static int read_basic(sd_bus_message* from, char type, std::string& out) {
    union {
      const char* text;
      uint8_t y;
      int b;
      int32_t i;
      uint32_t u;
      int64_t x;
      uint64_t t;
    } value{};
    int read = sd_bus_message_read_basic(from, type, &value);
    if (read > 0)
      out = type == 's'   ? value.text
            : type == 'y' ? std::to_string(value.y)
            : type == 'b' ? (value.b ? "true" : "false")
            : type == 'i' ? std::to_string(value.i)
            : type == 'u' ? std::to_string(value.u)
            : type == 'x' ? std::to_string(value.x)
                          : std::to_string(value.t);
    return read;
  }

  int answer_with_job(sd_bus_message* to, const char* unit) {
    const char* job = "/org/freedesktop/systemd1/job/7";
    auto end = [&](const char* which, const char* result) {
      EXPECT_GE(sd_bus_emit_signal(bus_, kManagerObject, kManager, "JobRemoved", "uoss", 7u, which, unit, result), 0);
    };
    end("/org/freedesktop/systemd1/job/6", "failed");  // another job
    if (ends_before_the_job) end(job, outcome);
    int sent = sd_bus_reply_method_return(to, "o", job);
    if (!ends_before_the_job) end(job, outcome);
    return sent;
  }

  static int start_transient_unit(sd_bus_message* in, void* self, sd_bus_error* error) {
    FakeManager& it = of(self);
    const char *unit = nullptr, *mode = nullptr;
    EXPECT_GE(sd_bus_message_read(in, "ss", &unit, &mode), 0);
    std::string properties = it.read_properties(in, error);
    EXPECT_GE(sd_bus_message_skip(in, "a(sa(sv))"), 0);
    EXPECT_GT(sd_bus_message_at_end(in, true), 0);
    it.heard.push_back(std::string("start ") + unit + " " + mode + " " + properties);
    if (sd_bus_error_is_set(error)) return -EINVAL;
    if (sd_bus_error_is_set(&it.refusal)) return sd_bus_error_copy(error, &it.refusal);
    if (it.failed_ones > 0)
      return sd_bus_error_setf(error, "org.freedesktop.systemd1.UnitExists", "Unit %s was already loaded.", unit);
    return it.answer_with_job(in, unit);
  }
  static int set_unit_properties(sd_bus_message* in, void* self, sd_bus_error* error) {
    FakeManager& it = of(self);
    const char* unit = nullptr;
    int is_runtime = 0;
    EXPECT_GE(sd_bus_message_read(in, "sb", &unit, &is_runtime), 0);
    it.heard.push_back(std::string("set ") + unit + (is_runtime ? " runtime " : " ") + it.read_properties(in, error));
    return sd_bus_error_is_set(error) ? -EINVAL : sd_bus_reply_method_return(in, "");
  }
  static int attach_processes(sd_bus_message* in, void* self, sd_bus_error*) {
    const char *unit = nullptr, *inside = nullptr;
    const void* pids = nullptr;
    size_t size = 0;
    EXPECT_GE(sd_bus_message_read(in, "ss", &unit, &inside), 0);
    EXPECT_GE(sd_bus_message_read_array(in, 'u', &pids, &size), 0);
    EXPECT_EQ(size, sizeof(uint32_t));
    of(self).heard.push_back(std::string("attach ") + unit + " " + inside + " " +
                             std::to_string(*static_cast<const uint32_t*>(pids)));
    return sd_bus_reply_method_return(in, "");
  }
  static int stop_unit(sd_bus_message* in, void* self, sd_bus_error* error) {
    const char *unit = nullptr, *mode = nullptr;
    EXPECT_GE(sd_bus_message_read(in, "ss", &unit, &mode), 0);
    of(self).heard.push_back(std::string("stop ") + unit + " " + mode);
    if (std::string(unit).starts_with("no"))
      return sd_bus_error_setf(error, "org.freedesktop.systemd1.NoSuchUnit", "Unit %s not loaded.", unit);
    return of(self).answer_with_job(in, unit);
  }
  static int reset_failed_unit(sd_bus_message* in, void* self, sd_bus_error*) {
    const char* unit = nullptr;
    EXPECT_GE(sd_bus_message_read(in, "s", &unit), 0);
    of(self).heard.push_back(std::string("reset ") + unit);
    --of(self).failed_ones;
    return sd_bus_reply_method_return(in, "");
  }

  void accept() {
    int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    sd_id128_t id;
    EXPECT_GE(sd_id128_randomize(&id), 0);
    EXPECT_GE(sd_bus_new(&bus_), 0);
    EXPECT_GE(sd_bus_set_fd(bus_, fd, fd), 0);
    EXPECT_GE(sd_bus_set_server(bus_, 1, id), 0);
    EXPECT_GE(sd_bus_start(bus_), 0);
  }

  void serve() {
    static const sd_bus_vtable table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", start_transient_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("SetUnitProperties", "sba(sv)", "", set_unit_properties, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("AttachProcessesToUnit", "ssau", "", attach_processes, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", stop_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ResetFailedUnit", "s", "", reset_failed_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
        SD_BUS_VTABLE_END};
    if (listener_) accept();
    if (!bus_) return;
    EXPECT_GE(sd_bus_add_object_vtable(bus_, nullptr, kManagerObject, kManager, table, this), 0);
    while (!is_over_ && sd_bus_is_open(bus_) > 0) {
      int processed = sd_bus_process(bus_, nullptr);
      if (processed < 0) break;
      if (processed == 0) sd_bus_wait(bus_, 20'000);
    }
    bus_ = sd_bus_flush_close_unref(bus_);
  }

  Fd listener_;
  sd_bus* bus_ = nullptr;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

class BusTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/coracle-bus-XXXXXX";
    ASSERT_TRUE(::mkdtemp(pattern));
    directory_ = pattern;
    ::setenv("XDG_RUNTIME_DIR", pattern, 1);
    ::unsetenv("DBUS_SESSION_BUS_ADDRESS");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string own_socket() const { return directory_ + "/systemd/private"; }
  std::string directory_;
};

TEST_F(BusTest, properties_of_every_type_arrive) {
  FakeManager manager(own_socket());
  {
    auto bus = Bus::open(true);
    ASSERT_TRUE(bus) << bus.error().text();
    auto started = bus->start_scope("a-b.scope", {{"Slice", std::string("user.slice")},
                                                  {"Delegate", true},
                                                  {"OOMScore", int32_t{-5}},
                                                  {"Nice", uint32_t{6}},
                                                  {"Far", int64_t{-7}},
                                                  {"MemoryMax", uint64_t{1} << 40},
                                                  {"Words", std::vector<std::string>{"one", ""}},
                                                  {"AllowedCPUs", std::vector<uint8_t>{3, 1}},
                                                  {"PIDs", std::vector<uint32_t>{42}},
                                                  {"None", std::vector<std::string>{}}});
    EXPECT_TRUE(started) << started.error().text();
    EXPECT_TRUE(bus->set_properties("a-b.scope", {{"TasksMax", uint64_t{9}}}));
    EXPECT_TRUE(bus->attach("a-b.scope", "/inside", 77));
    EXPECT_TRUE(bus->stop("a-b.scope"));
    EXPECT_TRUE(bus->stop("none.scope"));
  }
  manager.finish();
  EXPECT_EQ(manager.heard,
            (std::vector<std::string>{"start a-b.scope fail Slice=s:user.slice Delegate=b:true OOMScore=i:-5 Nice=u:6 Far=x:-7 "
                                      "MemoryMax=t:1099511627776 Words=as:one, AllowedCPUs=ay:3,1 PIDs=au:42 None=as: ",
                                      "set a-b.scope runtime TasksMax=t:9 ", "attach a-b.scope /inside 77",
                                      "stop a-b.scope replace", "reset a-b.scope", "stop none.scope replace"}));
}

TEST_F(BusTest, a_job_that_ends_before_its_name_is_told_is_not_missed) {
  FakeManager manager(own_socket());
  manager.ends_before_the_job = true;
  auto bus = Bus::open(true);
  ASSERT_TRUE(bus) << bus.error().text();
  EXPECT_TRUE(bus->start_scope("a.scope", {}));
}

TEST_F(BusTest, a_job_that_fails_is_told) {
  FakeManager manager(own_socket());
  manager.outcome = "canceled";
  auto bus = Bus::open(true);
  ASSERT_TRUE(bus) << bus.error().text();
  auto started = bus->start_scope("a.scope", {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().text(), "systemd: start a.scope: canceled");
}

TEST_F(BusTest, what_systemd_does_not_know_and_is_optional_is_left_out) {
  FakeManager manager(own_socket());
  manager.unknown_property = "MemoryZSwapMax";
  {
    auto bus = Bus::open(true);
    ASSERT_TRUE(bus) << bus.error().text();
    EXPECT_TRUE(bus->start_scope("a.scope", {{"MemoryMax", uint64_t{1}}, {"MemoryZSwapMax", uint64_t{2}, true}}));
    auto asked = bus->set_properties("a.scope", {{"MemoryZSwapMax", uint64_t{2}}});
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().text(),
              "systemd: SetUnitProperties a.scope: Cannot set property MemoryZSwapMax, or unknown property.");
    EXPECT_EQ(asked.error().code(), Code::invalid);
  }
  manager.finish();
  ASSERT_EQ(manager.heard.size(), 3u);
  EXPECT_EQ(manager.heard[1], "start a.scope fail MemoryMax=t:1 ");
}

TEST_F(BusTest, a_failed_one_of_that_name_is_forgotten_once) {
  for (int left_behind : {1, 2}) {
    std::filesystem::remove_all(directory_ + "/systemd");
    FakeManager manager(own_socket());
    manager.failed_ones = left_behind;
    auto bus = Bus::open(true);
    ASSERT_TRUE(bus) << bus.error().text();
    auto started = bus->start_scope("a.scope", {});
    EXPECT_EQ(started.ok(), left_behind == 1);
    if (!started) {
      EXPECT_EQ(started.error().code(), Code::conflict);
    }
  }
}

TEST_F(BusTest, a_refusal_is_told_in_systemds_words) {
  FakeManager manager(own_socket());
  manager.refusal = SD_BUS_ERROR_MAKE_CONST("org.freedesktop.DBus.Error.AccessDenied", "Not for you.");
  auto bus = Bus::open(true);
  ASSERT_TRUE(bus) << bus.error().text();
  auto started = bus->start_scope("a.scope", {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), Code::forbidden);
  EXPECT_EQ(started.error().text(), "systemd: StartTransientUnit a.scope: Not for you.");
}

TEST_F(BusTest, words_that_are_no_text_are_not_sent) {
  FakeManager manager(own_socket());
  auto bus = Bus::open(true);
  ASSERT_TRUE(bus) << bus.error().text();
  EXPECT_EQ(bus->start_scope("a.scope", {{"Description", std::string("\xff")}}).error().code(), Code::invalid);
  EXPECT_EQ(bus->start_scope("a\xff.scope", {}).error().code(), Code::invalid);
  EXPECT_EQ(bus->attach("a.scope", std::string("/\0", 2), 1).error().code(), Code::invalid);
  EXPECT_TRUE(bus->start_scope("a.scope", {}));  // the connection still works
}

TEST_F(BusTest, where_nobody_listens_both_ways_are_named) {
  auto bus = Bus::open(true);
  ASSERT_FALSE(bus);
  EXPECT_EQ(bus.error().code(), Code::unavailable);
  EXPECT_EQ(bus.error().text(), "the user's systemd cannot be reached: " + own_socket() +
                                    ": connect: No such file or directory; by D-Bus: " + directory_ +
                                    "/bus: connect: No such file or directory; the cgroup manager cgroupfs needs neither");
  ::setenv("DBUS_SESSION_BUS_ADDRESS", "tcp:host=localhost", 1);
  EXPECT_NE(Bus::open(true).error().text().find("\"tcp:host=localhost\" names no unix:path="), std::string::npos);
}

// Through dbus-daemon, as on machines where systemd's own socket is not accessible.
TEST_F(BusTest, the_manager_is_reached_by_way_of_a_bus) {
  const std::string address = "unix:path=" + directory_ + "/bus";
  int pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)::freopen("/dev/null", "w", stderr);
    ::execlp("dbus-daemon", "dbus-daemon", "--session", "--nofork", "--nopidfile", ("--address=" + address).c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (!is_listening(directory_ + "/bus") && ::waitpid(pid, &status, WNOHANG) == 0) ::usleep(1000);  // waits for the socket
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) GTEST_SKIP() << "dbus-daemon is missing";
  // Runs also if the rest fails.
  std::shared_ptr<void> end(nullptr, [&](void*) {
    ::kill(pid, SIGTERM);
    ::waitpid(pid, &status, 0);
  });
  {
    auto nobody = Bus::open(true);
    ASSERT_TRUE(nobody) << nobody.error().text();
    EXPECT_FALSE(nobody->start_scope("a.scope", {}));  // the bus exists, but no systemd is on it
    FakeManager manager(FakeManager::kOnBus, address);
    auto bus = Bus::open(true);
    ASSERT_TRUE(bus) << bus.error().text();
    auto started = bus->start_scope("a.scope", {{"MemoryMax", uint64_t{1}}});
    EXPECT_TRUE(started) << started.error().text();
    EXPECT_TRUE(bus->stop("a.scope"));
    manager.finish();
    EXPECT_EQ(manager.heard,
              (std::vector<std::string>{"start a.scope fail MemoryMax=t:1 ", "stop a.scope replace", "reset a.scope"}));
  }
}

TEST_F(BusTest, a_bus_that_refuses_and_one_that_goes_are_told) {
  Fd listener = listen_at(directory_ + "/a bus");
  ::setenv("DBUS_SESSION_BUS_ADDRESS", ("unix:abstract=x;unix:path=" + directory_ + "/a%20bus,guid=1").c_str(), 1);
  for (std::string answer : {"REJECTED EXTERNAL\r\n", "", "DATA\r\nOK 0123\r\n"}) {
    std::thread other([&] {
      Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      EXPECT_EQ(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL), ssize_t(answer.size()));
      ::shutdown(peer.get(), SHUT_WR);
      char rest[256];
      while (::recv(peer.get(), rest, sizeof rest, 0) > 0) continue;
    });
    auto bus = Bus::open(true);
    other.join();
    ASSERT_FALSE(bus);
    std::string expected =
        answer.starts_with("REJECTED") ? "it does not let us in: \"REJECTED EXTERNAL\\r\\n\"" : "the connection was ended";
    EXPECT_NE(bus.error().text().find(expected), std::string::npos) << bus.error().text();
  }
}

}  // namespace
}  // namespace coracle::cgroup
