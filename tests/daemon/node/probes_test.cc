// SPDX-License-Identifier: Apache-2.0
// Probes: thresholds, startup probes before the others, and each kind of action against a real listener.
#include "daemon/node/probe/probes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "daemon/node/probe/grpc_health.h"
#include "daemon/node/probe/http_get.h"
#include "daemon/node/task_pool.h"
#include "tests/closed_port.h"
#include "tests/daemon/parsed.h"
#include "tests/runtime/fake_runtime.h"

namespace coracle::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ProbeCount, counts_in_a_row) {
  struct Row {
    const char* name;
    int success, failure;
    std::optional<bool> initial;
    std::string results;  // + success, - failure
    std::string want;     // the state after each result: t, f, ?
  };
  for (const Row& row :
       {Row{"one success", 1, 3, {}, "+", "t"}, Row{"three failures", 1, 3, true, "---", "ttf"},
        Row{"a success between", 1, 3, true, "--+--", "ttttt"}, Row{"two successes", 2, 1, false, "+-++", "ffft"},
        Row{"unknown until one counts", 2, 2, {}, "+-+-++", "?????t"}, Row{"back again", 1, 2, {}, "+--+", "ttft"}}) {
    ProbeTiming timing;
    timing.success_threshold = row.success;
    timing.failure_threshold = row.failure;
    ProbeCount count(timing, row.initial);
    std::string got;
    for (char result : row.results) {
      auto before = count.result();
      bool changed = count.add(result == '+');
      EXPECT_EQ(changed, count.result() != before) << row.name;
      got += !count.result() ? '?' : *count.result() ? 't' : 'f';
    }
    EXPECT_EQ(got, row.want) << row.name;
  }
}

class ProbesTest : public ::testing::Test {
 protected:
  ProbesTest() {
    runtime_.images_fake().add("docker.io/library/web:1");
    EXPECT_TRUE(runtime_.create_sandbox({.id = "u"}));
    runtime::ContainerSpec spec{.id = "a-0"};
    spec.spec.process.args = {"x"};
    EXPECT_TRUE(runtime_.start_container("u", spec));
    runtime_.on_exec([this](const std::string&, const std::string&, const runtime::ExecSpec& exec) {
      ran_.push_back(exec.args[0]);
      return runtime::FakeRuntime::ExecAnswer{.exit_code = fails_.count(exec.args[0]) ? 1 : 0, .out = "because"};
    });
  }
  void watch(const std::string& probes, bool was_started = false, bool was_ready = false) {
    probes_.watch(
        {"u", "a", "a-0", parsed(R"({"name":"a",)" + probes + "}"), "127.0.0.1", clock_.steady(), was_started, was_ready});
  }
  std::string run() {  // the probes that ran since the last call
    while (probes_.run_one()) {
    }
    std::string text;
    for (auto& name : std::exchange(ran_, {})) text += name;
    return text;
  }
  static std::string exec(const char* kind, const char* name, const char* more = "") {
    return std::string("\"") + kind + R"(Probe":{"exec":{"command":[")" + name + R"("]},"periodSeconds":10)" + more + "}";
  }
  FakeClock clock_;
  runtime::FakeRuntime runtime_{clock_};
  Actions actions_{runtime_};
  std::vector<std::string> ran_, told_;
  std::set<std::string> fails_;
  int changes_ = 0;
  Probes probes_{actions_, clock_, [this](const std::string&) { ++changes_; },
                 [this](const Probes::Warning& warning) { told_.push_back(std::string(warning.reason) + " " + warning.text); }};
};

TEST_F(ProbesTest, startup_comes_first) {
  fails_ = {"s"};
  watch(exec("startup", "s") + "," + exec("liveness", "l") + "," + exec("readiness", "r"));
  EXPECT_EQ(run(), "s");
  EXPECT_FALSE(probes_.verdict("u", "a-0").startup_passed);
  fails_ = {};
  clock_.advance(seconds(10));
  EXPECT_EQ(run(), "slr");
  EXPECT_TRUE(probes_.verdict("u", "a-0").startup_passed);
  EXPECT_TRUE(probes_.verdict("u", "a-0").ready);
  clock_.advance(seconds(10));
  EXPECT_EQ(run(), "lr");  // and then it has finished
}

TEST_F(ProbesTest, a_startup_that_fails_too_often_condemns) {
  fails_ = {"s"};
  watch(exec("startup", "s", R"(,"failureThreshold":2)"));
  run();
  EXPECT_FALSE(probes_.verdict("u", "a-0").failed);
  clock_.advance(seconds(10));
  run();
  EXPECT_EQ(probes_.verdict("u", "a-0").failed, ProbeKind::startup);
  EXPECT_EQ(told_.back(), "Unhealthy Startup probe failed: because");
  clock_.advance(seconds(10));
  EXPECT_EQ(run(), "");
}

TEST_F(ProbesTest, waits_for_the_initial_delay) {
  watch(exec("readiness", "r", R"(,"initialDelaySeconds":30)"));
  clock_.advance(seconds(29));
  EXPECT_EQ(run(), "");
  EXPECT_FALSE(probes_.verdict("u", "a-0").ready);
  clock_.advance(seconds(1));
  EXPECT_EQ(run(), "r");
}

TEST_F(ProbesTest, what_was_known_before_a_restart_holds) {
  watch(exec("startup", "s") + "," + exec("readiness", "r"), true, true);
  EXPECT_TRUE(probes_.verdict("u", "a-0").startup_passed);
  EXPECT_TRUE(probes_.verdict("u", "a-0").ready);
  EXPECT_EQ(run(), "r");
}

TEST_F(ProbesTest, a_program_that_does_not_serve_at_once_does_not_wait_for_a_period) {
  fails_ = {"s", "r"};
  watch(exec("readiness", "r") + "," + exec("liveness", "l"));
  EXPECT_EQ(run(), "lr");
  clock_.advance(milliseconds(99));
  EXPECT_EQ(run(), "");
  fails_ = {};
  clock_.advance(milliseconds(1));
  EXPECT_EQ(run(), "r");
  EXPECT_TRUE(probes_.verdict("u", "a-0").ready);
  clock_.advance(milliseconds(9899));
  EXPECT_EQ(run(), "") << "the period begins with the first probe";
  clock_.advance(milliseconds(1));
  EXPECT_EQ(run(), "lr");
}

TEST_F(ProbesTest, early_repetitions_that_fail_are_not_counted) {
  fails_ = {"s"};
  watch(exec("startup", "s", R"(,"failureThreshold":2)"));
  EXPECT_EQ(run(), "s");
  std::string when;
  for (int at = 50; at < 10000; at += 50) {
    clock_.advance(milliseconds(50));
    if (run() == "s") when += std::to_string(at) + " ";
  }
  EXPECT_EQ(when, "100 200 400 800 ");
  EXPECT_FALSE(probes_.verdict("u", "a-0").failed);
  EXPECT_EQ(told_.size(), 1u);
  clock_.advance(milliseconds(50));
  EXPECT_EQ(run(), "s");
  EXPECT_EQ(probes_.verdict("u", "a-0").failed, ProbeKind::startup);
  EXPECT_EQ(told_.size(), 2u);
}

TEST_F(ProbesTest, only_new_containers_are_probed_again_early) {
  fails_ = {"r"};
  probes_.watch({"u", "a", "a-0", parsed(R"({"name":"a",)" + exec("readiness", "r") + "}"), "127.0.0.1",
                 clock_.steady() - seconds(1), false, false});
  EXPECT_EQ(run(), "r");
  clock_.advance(milliseconds(9999));
  EXPECT_EQ(run(), "");
}

TEST_F(ProbesTest, forgotten_containers_are_left_alone) {
  watch(exec("liveness", "l"));
  EXPECT_TRUE(probes_.watches("u", "a-0"));
  probes_.forget("u", "a-0");
  EXPECT_FALSE(probes_.watches("u", "a-0"));
  EXPECT_EQ(run(), "");
}

// Answers loopback connections, one after another, with the given data.
class Listener {
 public:
  explicit Listener(std::vector<std::string> answers) : answers_(std::move(answers)) {
    fd_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    (void)::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size);
    (void)::listen(fd_.get(), 8);
    (void)::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](std::stop_token stop) { serve(stop); });
  }
  ~Listener() {
    thread_.request_stop();
    (void)::shutdown(fd_.get(), SHUT_RDWR);  // interrupts accept
  }
  std::string port() const { return std::to_string(port_); }
  std::string heard() const {
    return heard_.with([](const auto& text) { return text; });
  }

 private:
  void serve(std::stop_token stop) {
    for (size_t i = 0; !stop.stop_requested(); ++i) {
      Fd client(::accept(fd_.get(), nullptr, nullptr));
      if (!client) return;
      if (answers_.empty()) continue;  // for TCP probes, connecting is enough
      std::string request;
      char buffer[4096];
      while (request.find("\r\n\r\n") == request.npos) {
        ssize_t got = ::read(client.get(), buffer, sizeof buffer);
        if (got <= 0) break;
        request.append(buffer, size_t(got));
      }
      heard_.with([&](auto& text) { text += request; });
      const std::string& answer = answers_[std::min(i, answers_.size() - 1)];
      (void)!::write(client.get(), answer.data(), answer.size());
    }
  }
  std::vector<std::string> answers_;
  Fd fd_;
  uint16_t port_ = 0;
  Guarded<std::string> heard_;
  std::jthread thread_;
};

std::string http(const std::string& status, const std::string& more = "") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\nConnection: close\r\n" + more + "\r\n";
}

class ActionTest : public ProbesTest {
 protected:
  ActionResult run_action(const std::string& handler, const json::value* container = nullptr) {
    return actions_.run(parsed(handler), {"u", "a-0", "127.0.0.1", container}, seconds(60), {});
  }
};

TEST_F(ActionTest, http_get) {
  struct Row {
    const char* status;
    bool success;
  };
  for (const Row& row :
       {Row{"200 OK", true}, Row{"204 No", true}, Row{"399 Odd", true}, Row{"404 Not Found", false}, Row{"500 Oops", false}}) {
    Listener listener({http(row.status)});
    auto result = run_action(R"({"httpGet":{"path":"/healthz?x=1","port":)" + listener.port() +
                             R"(,"httpHeaders":[{"name":"Host","value":"me.example"},{"name":"X-A","value":"b"}]}})");
    EXPECT_EQ(result.success, row.success) << row.status << " " << result.text;
    EXPECT_NE(listener.heard().find("GET /healthz?x=1 HTTP/1.1\r\nHost: me.example\r\n"), std::string::npos) << listener.heard();
    EXPECT_NE(listener.heard().find("X-A: b\r\n"), std::string::npos);
    EXPECT_NE(listener.heard().find("User-Agent: kube-probe/"), std::string::npos);
    if (!row.success) {
      EXPECT_EQ(result.text, std::string("HTTP probe failed with statuscode: ") + std::string(row.status).substr(0, 3));
    }
  }
}

TEST_F(ActionTest, redirects_are_followed_on_the_same_host_only) {
  Listener own({http("302 Found", "Location: /login\r\n"), http("500 Oops")});
  EXPECT_FALSE(run_action(R"({"httpGet":{"port":)" + own.port() + "}}").success);
  EXPECT_NE(own.heard().find("GET /login"), std::string::npos);
}

TEST_F(ActionTest, redirects_that_end_elsewhere_are_a_success_with_a_warning) {
  struct Row {
    const char *status, *more, *text;
  };
  const char* odd = "Probe terminated redirects, Response body: ";
  for (const Row& row : {Row{"302 Found", "Location: http://192.0.2.1/\r\n", odd}, Row{"301 Moved", "", odd},
                         Row{"308 Moved", "Location: //other.example:80/x\r\n", odd}, Row{"304 Same", "", odd},
                         Row{"300 Many", "Location: /other\r\n", odd}, Row{"201 Made", "Location: /other\r\n", ""}}) {
    Listener listener({http(row.status, row.more)});
    auto result = run_action(R"({"httpGet":{"port":)" + listener.port() + "}}");
    EXPECT_TRUE(result.success) << row.status;
    EXPECT_EQ(result.text, row.text) << row.status;
  }
  Listener away({"HTTP/1.1 302 Found\r\nLocation: https://login.example/\r\nContent-Length: 7\r\n\r\nsign in"});
  watch(R"("readinessProbe":{"httpGet":{"port":)" + away.port() + "}}");
  ASSERT_TRUE(probes_.run_one());
  EXPECT_TRUE(probes_.verdict("u", "a-0").ready);
  EXPECT_EQ(told_.back(), "ProbeWarning Readiness probe warning: Probe terminated redirects, Response body: sign in");
}

TEST_F(ActionTest, hostile_answers_end) {
  struct Row {
    std::string answer;
    bool success;
    const char* text;
  };
  for (const Row& row :
       {Row{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true, ""},
        Row{"HTTP/1.1 200 OK\n\nfine\n", true, ""},
        Row{"HTTP/1.0 200 OK\nContent-Length: 2\n\r\nab", true, ""},
        Row{"HTTP/1.1 200 OK\r\nX: y\n\n", true, ""},
        Row{"HTTP/1.0  204 No Content\n\n", true, ""},
        Row{"HTTP/1.1 200 OK\nX: y\n  and: more\n\n", true, ""},
        Row{"HTTP/1.1 200 OK\nno colon\n\n", false, "malformed MIME header line: no colon"},
        Row{"HTTP/1.1 500\n\n", false, "statuscode: 500"},
        Row{"\nHTTP/1.1 200 OK\n\n", false, "malformed HTTP response"},
        Row{"HTTP/1.1 200 OK\nX: y\n", false, "unexpected EOF"},
        Row{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", false, "unexpected EOF"},
        Row{"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + std::string(20'000, 'x'), true, ""},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", false, "unexpected EOF"},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n00\r\nT: u\r\n\r\n", true, ""},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", false, "chunked encoding"},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab", false, "unexpected EOF"},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(5'000, '0'), false, "chunked encoding"},
        Row{"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", true, ""},
        Row{"HTTP/1.0 200 OK\r\n\r\n" + std::string(50'000, 'x'), true, ""},
        Row{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", false, "statuscode: 503"},
        Row{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", true, ""},
        Row{"", false, "EOF"},
        Row{"SSH-2.0-x\r\n\r\n", false, "malformed HTTP response"},
        Row{"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'), false, "malformed"},
        Row{http("302 Found", "Location: ftp://127.0.0.1/\r\n"), false, "malformed Location"}}) {
    Listener listener({row.answer});
    auto result = run_action(R"({"httpGet":{"port":)" + listener.port() + "}}");
    EXPECT_EQ(result.success, row.success) << row.answer.substr(0, 80) << ": " << result.text;
    EXPECT_NE(result.text.find(row.text), std::string::npos) << result.text;
  }
  Listener listener({http("200 OK")});
  auto result = run_action(R"({"httpGet":{"port":)" + listener.port() + R"(,"httpHeaders":[{"name":"A","value":"b\r\nC: d"}]}})");
  EXPECT_FALSE(result.success) << "a header that would be two";
}

TEST_F(ActionTest, silence_ends_with_the_time_or_a_stop) {
  Fd quiet(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(quiet.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(quiet.get(), 8), 0);
  (void)::getsockname(quiet.get(), reinterpret_cast<sockaddr*>(&address), &size);
  std::string port = std::to_string(ntohs(address.sin_port));
  for (const std::string& handler :
       {R"({"httpGet":{"port":)" + port + "}}", R"({"httpGet":{"scheme":"HTTPS","port":)" + port + "}}",
        R"({"grpc":{"port":)" + port + "}}"}) {
    auto late = actions_.run(parsed(handler), {"u", "a-0", "127.0.0.1", nullptr}, seconds(0), {});
    EXPECT_NE(late.text.find("timed out"), std::string::npos) << late.text;
    std::stop_source stop;
    std::jthread soon([&] { stop.request_stop(); });
    auto stopped = actions_.run(parsed(handler), {"u", "a-0", "127.0.0.1", nullptr}, std::chrono::hours(1), stop.get_token());
    EXPECT_NE(stopped.text.find("cancelled"), std::string::npos) << stopped.text;
  }
}

TEST_F(ActionTest, names_are_looked_up_as_long_as_there_is_time) {
  Listener listener({http("200 OK")});
  auto is_over = std::make_shared<Guarded<bool>>(false);  // a lookup may outlive the test
  auto ask = [is_over](const std::string& host, uint16_t) {
    is_over->wait(
        {}, [](bool over) { return over; }, [](bool) {});
    return Result<Addresses>(Error(Code::unavailable, "lookup " + host + ": no such host"));
  };
  Actions actions(runtime_, ask);
  for (const char* kind : {"httpGet", "tcpSocket"}) {
    auto handler = [&](const std::string& host) {
      return parsed(std::string("{\"") + kind + R"(":{"host":")" + host + R"(","port":)" + listener.port() + "}}");
    };
    auto late = actions.run(handler("silent.example"), {"u", "a-0", "", nullptr}, seconds(0), {});
    EXPECT_NE(late.text.find("lookup silent.example: i/o timeout"), std::string::npos) << late.text;
    std::stop_source stop;
    std::jthread soon([&] { stop.request_stop(); });
    auto stopped = actions.run(handler("silent.example"), {"u", "a-0", "", nullptr}, std::chrono::hours(1), stop.get_token());
    EXPECT_NE(stopped.text.find("cancelled"), std::string::npos) << stopped.text;
    auto found = actions.run(handler("127.0.0.1"), {"u", "a-0", "", nullptr}, seconds(60), {});
    EXPECT_TRUE(found.success) << found.text;
    found = actions_.run(handler("localhost"), {"u", "a-0", "", nullptr}, seconds(60), {});
    EXPECT_TRUE(found.success) << found.text;
  }
  {
    Actions that_end(runtime_, ask);
    that_end.run(parsed(R"({"tcpSocket":{"host":"silent.example","port":1}})"), {"u", "a-0", "", nullptr}, seconds(0), {});
  }  // does not wait for the lookup
  is_over->with([](bool& over) { over = true; });
  is_over->notify();
  auto unknown =
      actions.run(parsed(R"({"tcpSocket":{"host":"silent.example","port":1}})"), {"u", "a-0", "", nullptr}, seconds(60), {});
  EXPECT_NE(unknown.text.find("no such host"), std::string::npos) << unknown.text;
}

TEST(Url, resolves) {
  const Url base{false, "10.0.0.1", 8080, "/a/b?q=1"};
  struct Row {
    const char *reference, *want;
  };
  for (const Row& row :
       {Row{"/x y", "http://10.0.0.1:8080/x%20y"}, Row{"c", "http://10.0.0.1:8080/a/c"}, Row{"?z", "http://10.0.0.1:8080/a/b?z"},
        Row{"https://h/p#f", "https://h:443/p"}, Row{"//h:1", "http://h:1/"}, Row{"http://[::1]:2/", "http://[::1]:2/"},
        Row{"/p?u=http://o/", "http://10.0.0.1:8080/p?u=http://o/"}, Row{"http://:1/", ""}, Row{"mailto://x", ""},
        Row{"http://h:x/", ""}}) {
    auto got = resolve(base, row.reference);
    EXPECT_EQ(got ? got->text() : "", row.want) << row.reference;
  }
}

TEST_F(ActionTest, grpc) {
  auto bytes = [](std::initializer_list<int> list) { return std::string(list.begin(), list.end()); };
  const std::string settings = bytes({0, 0, 0, 4, 0, 0, 0, 0, 0}), headers = bytes({0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88});
  const std::string trailers = bytes({0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88});
  auto data = [&](int status) { return bytes({0, 0, 7, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 8, status}); };
  struct Row {
    std::string answer;
    bool success;
    const char* text;
  };
  for (const Row& row :
       {Row{settings + headers + data(1) + trailers, true, ""}, Row{settings + headers + data(2) + trailers, false, "SERVING"},
        Row{settings + trailers, false, "does not implement"},
        Row{settings, false, "onnection"},  // closed, or reset if our acknowledgement came after the close
        Row{"HTTP/1.1 400 Bad\r\n\r\n", false, "no gRPC"},
        Row{settings + bytes({0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}) + headers + data(1) + trailers, true, ""},
        Row{bytes({0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1}), false, "refused"}}) {
    Listener listener({row.answer});
    auto result = run_action(R"({"grpc":{"service":"s","port":)" + listener.port() + "}}");
    EXPECT_EQ(result.success, row.success) << result.text;
    EXPECT_NE(result.text.find(row.text), std::string::npos) << result.text;
    EXPECT_TRUE(listener.heard().starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings))
        << "what RFC 9113 section 3.4 wants first";
  }
  std::string request = health_request("127.0.0.1:1", "s");
  EXPECT_TRUE(request.ends_with(bytes({0, 0, 8, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 3, 0x0a, 1, 's'})));
}

TEST_F(ActionTest, named_ports_and_tcp) {
  Listener listener({});
  json::value container = parsed(R"({"name":"a","ports":[{"name":"web","containerPort":)" + listener.port() + "}]}");
  EXPECT_TRUE(run_action(R"({"tcpSocket":{"port":"web"}})", &container).success);
  EXPECT_EQ(run_action(R"({"tcpSocket":{"port":"none"}})", &container).text, "the container has no such port");
  const ClosedPort closed;
  const std::string port = closed.text();
  const std::string refused = "dial tcp 127.0.0.1:" + port + ": connect: connection refused";
  EXPECT_EQ(run_action(R"({"tcpSocket":{"port":)" + port + "}}").text, refused);
  EXPECT_EQ(run_action(R"({"httpGet":{"path":"/x","port":)" + port + "}}").text,
            "Get \"http://127.0.0.1:" + port + "/x\": " + refused);
  EXPECT_EQ(run_action(R"({"grpc":{"port":)" + port + "}}").text, refused);
}

TEST_F(ActionTest, exec) {
  EXPECT_TRUE(run_action(R"({"exec":{"command":["fine"]}})").success);
  fails_ = {"ill"};
  EXPECT_EQ(run_action(R"({"exec":{"command":["ill"]}})").text, "because");
  runtime_.on_exec(
      [](const auto&, const auto&, const auto&) { return runtime::FakeRuntime::ExecAnswer{.after = std::chrono::hours(1)}; });
  auto late = actions_.run(parsed(R"({"exec":{"command":["slow"]}})"), {"u", "a-0", "", nullptr}, seconds(0), {});
  EXPECT_FALSE(late.success);
  EXPECT_NE(late.text.find("timed out"), std::string::npos);
}

TEST_F(ActionTest, a_sleep_is_over_when_its_time_is) {
  for (const char* handler : {R"({"sleep":{"seconds":0}})", R"({"sleep":{"seconds":1000000}})"}) {
    auto slept = actions_.run(parsed(handler), {"u", "a-0", "", nullptr}, seconds(0), {});
    EXPECT_TRUE(slept.success) << slept.text;
  }
}

TEST_F(ActionTest, nothing_to_do_is_a_failure) { EXPECT_EQ(run_action("{}").text, "missing probe handler"); }

TEST(TaskPool, runs_everything_and_stops_what_waits) {
  Guarded<int> done{0};
  Guarded<bool> waits{false};
  {
    TaskPool pool("pool", 2);
    for (int i = 0; i < 50; ++i)
      pool.post([&](std::stop_token) {
        done.with([](int& n) { ++n; });
        done.notify();
      });
    auto deadline = std::chrono::steady_clock::now() + seconds(60);
    EXPECT_TRUE(done.wait_until(
        {}, deadline, [](int n) { return n == 50; }, [](int& n) { return n == 50; }));
    pool.post([&](std::stop_token stop) {
      waits.with([](bool& w) { w = true; });
      waits.notify();
      waits.wait(
          stop, [](bool) { return false; }, [](bool&) {});
      done.with([](int& n) { ++n; });
    });
    waits.wait_until(
        {}, deadline, [](bool w) { return w; }, [](bool&) {});
  }
  EXPECT_EQ(done.with([](int& n) { return n; }), 51);
}

TEST(TaskPool, a_task_that_hangs_is_not_waited_for) {
  std::promise<void> begun, hung;
  Guarded<int> done{0};
  TaskPool pool("pool", 2, 1), idle("pool", 1);
  pool.post(
      [&](std::stop_token) {
        begun.set_value();
        hung.get_future().wait();  // it does not look at its token
      },
      "sick");
  begun.get_future().wait();
  pool.post([&](std::stop_token) { done.with([](int& n) { ++n; }); }, "sick");
  for (TaskPool* one : {&pool, &idle}) one->request_stop();
  const auto now = std::chrono::steady_clock::now();
  EXPECT_TRUE(idle.wait_for_end(now));
  EXPECT_FALSE(pool.wait_for_end(now + std::chrono::milliseconds(20)));
  hung.set_value();
  EXPECT_TRUE(pool.wait_for_end(now + seconds(60)));
  pool.post([&](std::stop_token) { done.with([](int& n) { ++n; }); });
  EXPECT_EQ(done.with([](int& n) { return n; }), 0) << "what is queued is dropped, and nothing is posted any more";
}

TEST(TaskPool, one_owner_s_tasks_hold_up_nobody_else) {
  struct State {
    int running = 0, most = 0, done = 0;
    bool open = false, other_done = false;
  };
  Guarded<State> state;
  TaskPool pool("pool", 4, 2);
  for (int i = 0; i < 10; ++i)
    pool.post(
        [&](std::stop_token stop) {
          state.with([](State& s) { s.most = std::max(s.most, ++s.running); });
          state.notify();
          state.wait(
              stop, [](const State& s) { return s.open; }, [](State&) {});
          state.with([](State& s) { --s.running, ++s.done; });
          state.notify();
        },
        "greedy");
  pool.post(
      [&](std::stop_token) {
        state.with([](State& s) { s.other_done = true; });
        state.notify();
      },
      "other");
  auto deadline = std::chrono::steady_clock::now() + seconds(60);
  auto both_wait = [](const State& s) { return s.other_done && s.running == 2; };
  EXPECT_TRUE(state.wait_until({}, deadline, both_wait, [&](State& s) { return both_wait(s) && s.done == 0; }));
  state.with([](State& s) { s.open = true; });
  state.notify();
  EXPECT_TRUE(state.wait_until(
      {}, deadline, [](const State& s) { return s.done == 10; }, [](State& s) { return s.done == 10; }));
  EXPECT_EQ(state.with([](State& s) { return s.most; }), 2);
}

}  // namespace
}  // namespace coracle::node
