// SPDX-License-Identifier: Apache-2.0
// Logs, exec and ports, as the API server calls them.
#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/sys/socket.h"
#include "tests/closed_port.h"
#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

class Heard : public ExecOutput {
 public:
  bool write_stdout(std::string_view bytes) override {
    heard_.with([&](auto& h) { h.first += bytes; });
    return true;
  }
  bool write_stderr(std::string_view bytes) override {
    heard_.with([&](auto& h) { h.second += bytes; });
    return true;
  }
  std::pair<std::string, std::string> heard() const {
    return heard_.with([](const auto& h) { return h; });
  }

 private:
  Guarded<std::pair<std::string, std::string>> heard_;
};

class StreamsTest : public Machine {
 protected:
  std::string logs(LogRequest request) {
    std::string text;
    request.pod = {"default", "web"};
    auto done = agent_->logs(request, [&](std::string_view bytes) {
      text += bytes;
      return true;
    });
    return done ? text : "error: " + done.error().text();
  }
};

TEST_F(StreamsTest, logs_of_this_attempt_and_the_one_before) {
  runtime_.script("a", {.log = {"hello"}});
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])");
  EXPECT_EQ(logs({}), "hello\n");
  EXPECT_EQ(logs({.previous = true}), "error: previous terminated container \"a\" in pod \"web\" not found");
  runtime_.script("a", {.log = {"again"}});
  runtime_.exit(uid(), "a-0", 1);
  settle();
  EXPECT_EQ(logs({}), "again\n");
  EXPECT_EQ(logs({.previous = true}), "hello\n");
}

TEST_F(StreamsTest, logs_outlive_a_pod_that_has_ended) {
  runtime_.script("a", {.log = {"done"}});
  boot();
  put_pod(R"("restartPolicy":"Never","containers":[{"name":"a","image":"web:1"}])");
  runtime_.exit(uid(), "a-0", 0);
  settle();
  EXPECT_EQ(phase(), "Succeeded");
  EXPECT_EQ(logs({}), "done\n");
  EXPECT_EQ(logs({.follow = true}), "done\n");
}

TEST_F(StreamsTest, what_cannot_be_read_is_said_in_kubernetes_words) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"nowhere:1"},{"name":"b","image":"nowhere:1"}])");
  EXPECT_EQ(logs({}), "error: a container name must be specified for pod web, choose one of: [a b]");
  EXPECT_EQ(logs({.container = "c"}), "error: container c is not valid for pod web");
  EXPECT_EQ(logs({.container = "a"}), "error: container \"a\" in pod \"web\" is waiting to start: ContainerCreating");
  while (pulls_.run_one()) {
  }
  settle();
  EXPECT_EQ(logs({.container = "a"}),
            "error: container \"a\" in pod \"web\" is waiting to start: trying and failing to pull image");
}

TEST_F(StreamsTest, following_ends_with_the_container) {
  runtime_.script("a", {.log = {"hello"}});
  boot();
  put_pod(R"("restartPolicy":"Never","containers":[{"name":"a","image":"web:1"}])");
  Guarded<std::string> text;
  std::jthread follower([&] {
    LogRequest request{.pod = {"default", "web"}, .follow = true};
    EXPECT_TRUE(agent_->logs(request, [&](std::string_view bytes) {
      text.with([&](auto& t) { t += bytes; });
      text.notify();
      return true;
    }));
  });
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  text.wait_until(
      {}, deadline, [](const auto& t) { return t == "hello\n"; }, [](auto&) {});
  runtime_.log(uid(), "a-0", "stdout", "bye");
  runtime_.exit(uid(), "a-0", 0);
  follower.join();
  EXPECT_EQ(text.with([](auto& t) { return t; }), "hello\nbye\n");
}

TEST_F(StreamsTest, exec_delivers_all_output_before_its_exit_code) {
  runtime_.on_exec([](const std::string&, const std::string&, const runtime::ExecSpec& spec) {
    return runtime::FakeRuntime::ExecAnswer{.exit_code = 3, .out = "out of " + spec.args[0], .err = "err"};
  });
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])");
  Heard heard;
  auto session = agent_->exec({.pod = {"default", "web"}, .command = {"ls"}}, heard);
  ASSERT_TRUE(session);
  EXPECT_EQ(*(*session)->wait(), 3);
  EXPECT_EQ(heard.heard(), (std::pair<std::string, std::string>{"out of ls", "err"}));
}

TEST_F(StreamsTest, a_hung_up_exec_returns) {
  runtime_.on_exec(
      [](const auto&, const auto&, const auto&) { return runtime::FakeRuntime::ExecAnswer{.after = std::chrono::hours(1)}; });
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])");
  Heard heard;
  auto session = agent_->exec({.pod = {"default", "web"}, .command = {"sleep"}, .use_stdin = true}, heard);
  ASSERT_TRUE(session);
  std::jthread waiter([&] { EXPECT_EQ((*session)->wait().error().code(), Code::cancelled); });
  (*session)->hang_up();
  waiter.join();
}

// kubectl run takes any other end for a failed attach, and prints the log a second time.
TEST_F(StreamsTest, an_attachment_ends_well_whatever_the_process_ends_with) {
  runtime_.script("a", {.attached_exit_code = 3});
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","stdin":true}])");
  Heard heard;
  auto session = agent_->exec({.pod = {"default", "web"}, .use_stdin = true}, heard);
  ASSERT_TRUE(session);
  EXPECT_EQ(*(*session)->wait(), 0);
}

TEST_F(StreamsTest, an_attachment_ends_with_its_input_unless_that_is_to_be_the_only_one) {
  struct Row {
    const char* fields;
    bool ends;
  };
  runtime_.script("a", {.attached_for = std::chrono::hours(1)});
  boot();
  for (const Row& row :
       {Row{R"("stdin":true)", true}, Row{R"("stdin":true,"tty":true)", true},
        Row{R"("stdin":true,"tty":true,"stdinOnce":true)", true}, Row{R"("stdin":true,"stdinOnce":true)", false}}) {
    put_pod(std::string(R"("containers":[{"name":"a","image":"web:1",)") + row.fields + "}]", "web");
    Heard heard;
    auto session = agent_->exec({.pod = {"default", "web"}, .use_stdin = true}, heard);
    ASSERT_TRUE(session);
    (*session)->close_stdin();
    if (!row.ends) (*session)->hang_up();  // otherwise it would wait for the process
    auto code = (*session)->wait();
    EXPECT_EQ(code.ok(), row.ends) << row.fields;
    session->reset();
    client_.erase(kPod, {"default", "web"});
    settle();
  }
}

// "echo question | kubectl attach -i pod": the end of the input must not cut the answer off.
TEST_F(StreamsTest, an_attachment_whose_input_has_ended_hears_the_answer) {
  runtime_.script("a", {.attached_out = "answer", .attached_for = std::chrono::hours(1)});
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","stdin":true}])");
  for (int i = 0; i < 20; ++i) {
    Heard heard;
    auto session = agent_->exec({.pod = {"default", "web"}, .use_stdin = true}, heard);
    ASSERT_TRUE(session);
    (*session)->close_stdin();
    EXPECT_EQ((*session)->wait().value_or(-1), 0);
    ASSERT_EQ(heard.heard().first, "answer") << i;
  }
}

// Its client may read slowly, or its thread may be late.
TEST_F(StreamsTest, an_attachment_that_ends_hands_on_what_has_been_written) {
  struct Slow : Heard {
    bool write_stdout(std::string_view bytes) override {
      reads.wait(
          {}, [](bool yes) { return yes; }, [](bool) {});
      return Heard::write_stdout(bytes);
    }
    Guarded<bool> reads{false};
  };
  const std::string all(40'000, 'x');  // read in several pieces
  runtime_.script("a", {.attached_out = all, .attached_for = std::chrono::hours(1)});
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","stdin":true}])");
  Slow heard;
  auto session = agent_->exec({.pod = {"default", "web"}, .use_stdin = true}, heard);
  ASSERT_TRUE(session);
  (*session)->close_stdin();
  heard.reads.with([](bool& yes) { yes = true; });
  heard.reads.notify();
  EXPECT_EQ((*session)->wait().value_or(-1), 0);
  EXPECT_TRUE(heard.heard().first == all) << heard.heard().first.size();
}

TEST_F(StreamsTest, exec_needs_a_running_container) {
  boot();
  put_pod(R"("restartPolicy":"Never","containers":[{"name":"a","image":"web:1"}])");
  runtime_.exit(uid(), "a-0", 0);
  settle();
  Heard heard;
  auto session = agent_->exec({.pod = {"default", "web"}, .command = {"ls"}}, heard);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().text(), "cannot exec into a container in a completed pod; current phase is Succeeded");
  EXPECT_EQ(agent_->exec({.pod = {"default", "none"}, .command = {"ls"}}, heard).error().code(), Code::not_found);
}

class PortsTest : public StreamsTest {
 protected:
  // The message of the pod's server to a client; the fake runtime's pods share our network.
  std::string greeting(const char* address) {
    Fd listener = MUST(sys::listen_tcp(address, 0));
    auto socket = agent_->connect({"default", "web"}, sys::local_endpoint(listener).port, {});
    if (!socket) return socket.error().text();
    Fd served(::accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(::write(served.get(), "hello", 5), 5);
    EXPECT_TRUE(sys::wait_ready(socket->get(), true, false, -1, std::chrono::seconds(60)).first.readable);
    char buffer[16];
    ssize_t got = ::read(socket->get(), buffer, sizeof buffer);
    return std::string(buffer, size_t(std::max<ssize_t>(got, 0)));
  }
};

TEST_F(PortsTest, are_reached_on_the_pods_loopback) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])");
  EXPECT_EQ(greeting("127.0.0.1"), "hello");
  if (sys::listen_tcp("::1", 0)) {
    EXPECT_EQ(greeting("::1"), "hello");
  }
}

TEST_F(PortsTest, that_nobody_listens_on_are_refused) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])");
  const ClosedPort port;
  auto socket = agent_->connect({"default", "web"}, port.number(), {});
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code(), Code::unavailable);
  EXPECT_NE(socket.error().text().find("localhost:" + port.text() + ": IPv4: connect: connection refused"), std::string::npos)
      << socket.error().text();
}

TEST_F(PortsTest, need_a_pod_that_runs) {
  boot();
  put_pod(R"("restartPolicy":"Never","containers":[{"name":"a","image":"web:1"}])");
  runtime_.kill_pause(uid());
  auto dead = agent_->connect({"default", "web"}, 80, {});
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().text(), "pod not found (\"web_default\"): it does not run");
  EXPECT_EQ(agent_->connect({"default", "none"}, 80, {}).error().code(), Code::not_found);
}

TEST_F(PortsTest, are_given_up_when_the_client_leaves) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])");
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // its backlog is full after the first connection
  sockaddr_in at{};
  at.sin_family = AF_INET, at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<Fd> waiting;
  std::stop_source stop;
  std::jthread leaver([&] { stop.request_stop(); });
  for (int i = 0; i < 4; i++) {
    auto socket = agent_->connect({"default", "web"}, sys::local_endpoint(listener).port, stop.get_token());
    if (!socket) {
      EXPECT_EQ(socket.error().code(), Code::cancelled);
      return;
    }
    waiting.push_back(*std::move(socket));
  }
  FAIL() << "nobody had to wait";
}

TEST_F(StreamsTest, images) {
  boot();
  json::value images = agent_->list();
  ASSERT_EQ(images.as_array().size(), 1u);
  EXPECT_EQ(get_string(get_array(images.as_array()[0], "references")[0], "nothing"), "");
  EXPECT_TRUE(agent_->pull("web:1", "", "", nullptr));
  EXPECT_TRUE(agent_->remove("web:1"));
  EXPECT_EQ(agent_->remove("web:1").error().code(), Code::not_found);
}

}  // namespace
}  // namespace coracle::node
