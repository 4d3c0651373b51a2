// SPDX-License-Identifier: Apache-2.0
// The audit policy and its log: which requests are logged, in which detail, and that the files stay within their limit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/auth/audit_log.h"
#include "runtime/sys/file.h"
#include "tests/daemon/auth/attributes.h"
#include "tests/threads_asleep.h"

namespace coracle::auth {
namespace {

const std::string kHead = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";

Attributes on(std::string verb, std::string resource, std::string ns = "default", std::string sub = "", std::string name = "",
              std::string group = "") {
  return {std::move(verb), std::move(group), std::move(resource), std::move(sub), std::move(ns), std::move(name), "", true, ""};
}

TEST(AuditPolicy, decides_by_the_first_rule_that_fits) {
  AuditPolicy policy = MUST(AuditPolicy::parse(kHead + R"(
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:kube-proxy"]
  verbs: ["watch"]
  resources: [{group: "", resources: ["endpoints", "services"]}]
- level: None
  userGroups: ["system:authenticated"]
  nonResourceURLs: ["/api*", "/version"]
- level: Request
  resources: [{group: "", resources: ["configmaps"], resourceNames: ["controller-leader"]}]
  namespaces: ["kube-system"]
- level: RequestResponse
  omitManagedFields: true
  omitStages: [ResponseStarted]
  resources: [{group: "", resources: ["pods/log", "*/status", "nodes/*"]}, {group: apps}]
- level: Metadata
)"));
  User jane{"jane", "", {"system:authenticated"}, {}}, proxy{"system:kube-proxy", "", {}, {}};
  EXPECT_EQ(policy.decide(proxy, on("watch", "services")).level, AuditLevel::none);
  EXPECT_EQ(policy.decide(proxy, on("list", "services")).level, AuditLevel::metadata);
  EXPECT_EQ(policy.decide(jane, asks_path("get", "/apis")).level, AuditLevel::none);
  EXPECT_EQ(policy.decide(proxy, asks_path("get", "/apis")).level, AuditLevel::metadata);
  EXPECT_EQ(policy.decide(jane, on("get", "configmaps", "kube-system", "", "controller-leader")).level, AuditLevel::request);
  EXPECT_EQ(policy.decide(jane, on("get", "configmaps", "default", "", "controller-leader")).level, AuditLevel::metadata);
  EXPECT_EQ(policy.decide(jane, on("get", "configmaps", "kube-system", "", "x")).level, AuditLevel::metadata);
  for (const auto& asked : {on("get", "pods", "default", "log", "x"), on("update", "services", "default", "status"),
                            on("get", "nodes", "", "proxy"), on("create", "deployments", "d", "", "", "apps")})
    EXPECT_EQ(policy.decide(jane, asked).level, AuditLevel::request_response) << asked.resource;
  EXPECT_EQ(policy.decide(jane, on("get", "pods", "default", "", "x")).level, AuditLevel::metadata);
  AuditDecision full = policy.decide(jane, on("create", "deployments", "d", "", "", "apps"));
  EXPECT_FALSE(full.wants(AuditStage::request_received));
  EXPECT_FALSE(full.wants(AuditStage::response_started));
  EXPECT_TRUE(full.wants(AuditStage::response_complete));
  EXPECT_TRUE(full.omit_managed_fields);
}

TEST(AuditPolicy, says_what_is_wrong_with_it) {
  for (const auto& [text, where] : {
           std::pair{std::string("kind: Policy\nrules: [{level: None}]"), "apiVersion"},
           std::pair{kHead + "rules: []", "rules"},
           std::pair{kHead + "rules: [{}]", "rules[0].level: Required value"},
           std::pair{kHead + "rules: [{level: All}]", "rules[0].level: Unsupported value: \"All\""},
           std::pair{kHead + "rules: [{level: None, verb: [get]}]", "rules[0].verb: unknown field"},
           std::pair{kHead + "omitStages: [Never]\nrules: [{level: None}]", "omitStages[0]: Invalid value: \"Never\""},
           std::pair{kHead + "rules: [{level: None, nonResourceURLs: [api]}]", "rules[0].nonResourceURLs[0]"},
           std::pair{kHead + "rules: [{level: None, nonResourceURLs: ['/a*b']}]", "rules[0].nonResourceURLs[0]"},
           std::pair{kHead + "rules: [{level: None, nonResourceURLs: [/a], namespaces: [d]}]", "rules[0].nonResourceURLs"},
           std::pair{kHead + "rules: [{level: None, resources: [{group: apps/v1}]}]", "rules[0].resources[0].group"},
           std::pair{kHead + "rules: [{level: None, resources: [{resourceNames: [a]}]}]", "rules[0].resources[0].resourceNames"},
       }) {
    auto policy = AuditPolicy::parse(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().text().find(where), 0u) << policy.error().text();
  }
}

TEST(AuditEvent, holds_what_its_level_wants) {
  AuditRecord record;
  record.decision = {AuditLevel::request, 0, true};
  record.id = "id", record.uri = "/api/v1/namespaces/d/pods?x=y", record.source = "192.0.2.7", record.agent = "kubectl";
  record.user = std::make_shared<const User>(User{"root", "u", {"system:masters"}, {{"scope", {"a"}}}});
  record.as = std::make_shared<const User>(User{"jane", "", {"dev"}, {}});
  record.constraint = "impersonate:user-info";
  record.asked = on("create", "pods", "d"), record.version = "v1";
  record.received = MUST(parse_time("2026-01-01T00:00:00Z"));
  record_request(record, MUST(parse_json(R"({"metadata":{"name":"p","managedFields":[{}]}})")));
  record_response(record, MUST(parse_json(R"({"kind":"Status","status":"Failure","reason":"Forbidden","message":"no"})")));
  record.status = 403, record.allowed = false, record.reason = "";
  EXPECT_EQ(
      audit_line(record, AuditStage::response_complete, record.received + std::chrono::seconds(1)),
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"id","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/d/pods?x=y",)"
      R"("verb":"create","user":{"username":"root","uid":"u","groups":["system:masters"],"extra":{"scope":["a"]}},"impersonatedUser":{"username":"jane","groups":["dev"]},)"
      R"("authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},)"
      R"("sourceIPs":["192.0.2.7"],"userAgent":"kubectl","objectRef":{"resource":"pods","namespace":"d","name":"p","apiVersion":"v1"},)"
      R"("responseStatus":{"metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403},"requestObject":{"metadata":{"name":"p"}},)"
      R"("requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:01.000000Z",)"
      R"("annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":""}})");
  json::value event = MUST(parse_json(audit_line(record, AuditStage::request_received, record.received)));
  EXPECT_EQ(find(event, "requestObject"), nullptr);
  EXPECT_EQ(find(event, "responseStatus"), nullptr);
}

TEST(AuditEvent, holds_bodies_only_where_they_are_wanted) {
  struct Row {
    AuditDecision decision;
    std::string request, response;  // in the event at the end
  };
  const std::string managed = R"({"metadata":{"name":"p","uid":"u","resourceVersion":"7","managedFields":[{}]}})",
                    plain = R"({"metadata":{"name":"p","uid":"u","resourceVersion":"7"}})",
                    managed_list = R"({"kind":"PodList","metadata":{},"items":[{"metadata":{"managedFields":[{}]}},7]})",
                    plain_list = R"({"kind":"PodList","metadata":{},"items":[{"metadata":{}},7]})";
  constexpr unsigned kAtTheEnd = unsigned(AuditStage::response_complete), kAtTheStart = unsigned(AuditStage::response_started);
  for (const Row& row :
       {Row{{AuditLevel::metadata, 0, false}, "", ""}, Row{{AuditLevel::request, 0, false}, managed, ""},
        Row{{AuditLevel::request, 0, true}, plain, ""}, Row{{AuditLevel::request_response, 0, false}, managed, managed_list},
        Row{{AuditLevel::request_response, 0, true}, plain, plain_list},
        Row{{AuditLevel::request_response, kAtTheEnd, false}, managed, ""},
        Row{{AuditLevel::request_response, kAtTheEnd | kAtTheStart, false}, "", ""}}) {
    AuditRecord record;
    record.decision = row.decision;
    record.user = std::make_shared<const User>();
    record.asked = on("create", "pods", "d");
    const json::value request = MUST(parse_json(managed));
    record_request(record, request);
    record_response(record, MUST(parse_json(managed_list)));
    EXPECT_EQ(to_text(request), managed) << "it is not the record's";
    EXPECT_EQ(record.request, row.request);
    EXPECT_EQ(record.response, row.response);
    record.status = 200;
    const json::value event = MUST(parse_json(audit_line(record, AuditStage::response_complete, {})));
    EXPECT_EQ(to_text(*find(event, "objectRef")),
              R"({"resource":"pods","namespace":"d","name":"p","uid":"u","resourceVersion":"7"})");
    const json::value *sent = find(event, "requestObject"), *answered = find(event, "responseObject");
    EXPECT_EQ(sent ? to_text(*sent) : "", row.request);
    EXPECT_EQ(answered ? to_text(*answered) : "", row.response);
    const json::value began = MUST(parse_json(audit_line(record, AuditStage::response_started, {})));
    EXPECT_EQ(find(began, "responseObject"), nullptr);
  }
}

TEST(AuditEvent, takes_a_response_as_text_and_a_patch_of_any_form) {
  const std::string managed = R"({"metadata":{"name":"p","managedFields":[{}]},"data":{"a":"\u003c"}})",
                    table =
                        R"({"kind":"Table","metadata":{},"rows":[{"cells":[],"object":{"metadata":{"managedFields":[{}]}}},{}]})",
                    patch = R"([{"op":"remove","path":"/a"}])";
  for (bool omits : {false, true}) {
    AuditRecord record;
    record.decision = {AuditLevel::request_response, 0, omits};
    record_patch(record, MUST(parse_json(patch)));
    EXPECT_EQ(record.request, patch);
    EXPECT_EQ(record.sent.name, "");
    record_response_text(record, managed);
    EXPECT_EQ(record.response, omits ? R"({"metadata":{"name":"p"},"data":{"a":"<"}})" : managed);
    record_response_text(record, table);
    EXPECT_EQ(record.response.find("managedFields") == std::string::npos, omits);
    EXPECT_NE(record.response.find(R"("object":{"metadata":{)"), std::string::npos);
  }
  AuditRecord record;
  record.decision = {AuditLevel::request, 0, false};
  EXPECT_FALSE(wants_response(record));
  record_response_text(record, managed);
  EXPECT_EQ(record.response, "");
}

TEST(AuditLog, keeps_within_its_bound) {
  char name[] = "/tmp/coracle-audit-XXXXXX";
  std::string dir = ::mkdtemp(name), file = dir + "/audit.log";
  {
    auto log = MUST(AuditLog::open({"", file, 1000, 2}));
    for (int i = 0; i < 100; ++i) log->write("line " + std::to_string(1000 + i) + std::string(90, '.'));
  }
  uintmax_t total = 0;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    ++files, total += entry.file_size();
    EXPECT_LE(entry.file_size(), 1000u);
  }
  EXPECT_EQ(files, 3);
  EXPECT_LE(total, 3000u);
  EXPECT_NE(MUST(sys::read_file(file)).find("line 1099"), std::string::npos);
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  {
    auto again = MUST(AuditLog::open({"", file, 1000, 2}));
    again->write("after a restart");
  }
  EXPECT_NE(MUST(sys::read_file(file)).find("after a restart"), std::string::npos);
  EXPECT_TRUE(AuditLog::open({"", dir + "/new/audit.log", 1000, 2}));
  EXPECT_FALSE(AuditLog::open({"", file + "/audit.log", 1000, 2})) << "a file is no directory";
  std::filesystem::remove_all(dir);
}

// The number of write calls of this process.
size_t write_calls() {
  std::string text = MUST(sys::read_file("/proc/self/io"));
  return std::stoul(text.substr(text.find("syscw: ") + 7));
}

TEST(AuditLog, requests_share_writes_while_the_card_is_slow) {
  constexpr size_t kThreads = 32, kPipeBytes = 4096;
  char name[] = "/tmp/coracle-audit-XXXXXX";
  std::string dir = ::mkdtemp(name), file = dir + "/audit.log";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);  // blocks its writers until somebody reads
  Fd reader(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_GE(::fcntl(reader.get(), F_SETPIPE_SZ, int(kPipeBytes)), 0);
  auto log = MUST(AuditLog::open({"", file, 10u << 20, 2}));
  const size_t before = write_calls();
  std::array<std::atomic<pid_t>, kThreads> started{};
  std::atomic<size_t> over = 0;
  std::string text;
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; t++)
      threads.emplace_back([&, t] {
        started[t] = ::gettid();
        log->write("line of " + std::to_string(t) + " " + std::string(kPipeBytes, '.'));
        over++;
      });
    int waiting = 0;  // bytes in the pipe
    auto all_started = [&] { return std::ranges::all_of(started, [](const auto& thread) { return thread != 0; }); };
    while (!all_started() || waiting < int(kPipeBytes)) ASSERT_EQ(::ioctl(reader.get(), FIONREAD, &waiting), 0);
    EXPECT_TRUE(come_to_rest({started.begin(), started.end()})) << "their lines are there";
    EXPECT_EQ(over, 0u) << "a request waits until its line is in the file";
    char bytes[kPipeBytes];
    while (std::ranges::count(text, '\n') < ptrdiff_t(kThreads)) {
      ssize_t count = ::read(reader.get(), bytes, sizeof bytes);
      ASSERT_GT(count, 0);
      text.append(bytes, size_t(count));
    }
  }
  EXPECT_EQ(over, kThreads);
  for (size_t t = 0; t < kThreads; t++) EXPECT_NE(text.find("line of " + std::to_string(t) + " "), std::string::npos) << t;
  EXPECT_LT(write_calls() - before, kThreads / 2);
  std::filesystem::remove_all(dir);
}

TEST(AuditLog, loses_and_tears_no_line_while_it_rotates) {
  constexpr int kThreads = 8, kEach = 200, kFiles = 500;
  constexpr size_t kBytesMax = 1000;
  char name[] = "/tmp/coracle-audit-XXXXXX";
  std::string dir = ::mkdtemp(name), file = dir + "/audit.log";
  {
    auto log = MUST(AuditLog::open({"", file, kBytesMax, kFiles}));
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; t++)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; i++) log->write(std::to_string(t) + " " + std::to_string(i) + " end of a line with some text");
      });
  }
  std::vector<int> next(kThreads);     // of each thread
  for (int i = kFiles; i >= 0; i--) {  // the oldest first
    std::string path = i ? file + "." + std::to_string(i) : file;
    if (!std::filesystem::exists(path)) continue;
    EXPECT_LE(std::filesystem::file_size(path), kBytesMax);
    std::ifstream in(path);
    int thread = 0, number = 0;
    for (std::string line; std::getline(in, line);) {
      ASSERT_EQ(std::sscanf(line.c_str(), "%d %d end of a line with some text", &thread, &number), 2) << line;
      ASSERT_TRUE(line.ends_with("some text")) << line;
      EXPECT_EQ(number, next.at(size_t(thread))++) << "of thread " << thread;
    }
  }
  for (int count : next) EXPECT_EQ(count, kEach);
  std::filesystem::remove_all(dir);
}

// While one exists, a resource of this process is limited.
class Limit {
 public:
  Limit(int resource, rlim_t most) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    rlimit now{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(resource_, &now), 0);
  }
  ~Limit() { ::setrlimit(resource_, &before_); }

 private:
  int resource_;
  rlimit before_{};
};

TEST(AuditLog, keeps_its_backups_while_no_new_file_can_be_opened) {
  char name[] = "/tmp/coracle-audit-XXXXXX";
  std::string dir = ::mkdtemp(name), file = dir + "/audit.log";
  auto log = MUST(AuditLog::open({"", file, 100, 2}));
  const std::string rest(80, '.');
  log->write("first " + rest);
  log->write("second " + rest);
  {
    Limit no_descriptor(RLIMIT_NOFILE, 0);
    for (int i = 0; i < 5; ++i) log->write("lost " + rest);
  }
  EXPECT_EQ(MUST(sys::read_file(file + ".2")), "first " + rest + "\n");
  EXPECT_EQ(MUST(sys::read_file(file + ".1")), "second " + rest + "\n");
  log->write("third " + rest);
  EXPECT_EQ(MUST(sys::read_file(file)), "third " + rest + "\n");
  EXPECT_EQ(MUST(sys::read_file(file + ".1")), "second " + rest + "\n");
  std::filesystem::remove_all(dir);
}

TEST(AuditLog, keeps_whole_lines_only_where_a_write_ends_early) {
  char name[] = "/tmp/coracle-audit-XXXXXX";
  std::string dir = ::mkdtemp(name), file = dir + "/audit.log";
  auto log = MUST(AuditLog::open({"", file, 1000, 1}));
  auto line = [](int i) { return "line " + std::to_string(100 + i) + std::string(60, '.'); };  // 69 bytes with its end
  std::string want;
  auto before = ::signal(SIGXFSZ, SIG_IGN);
  {
    Limit small(RLIMIT_FSIZE, 500);
    for (int i = 0; i < 10; ++i) {
      log->write(line(i));
      if (i < 7) want += line(i) + "\n";
    }
  }
  ::signal(SIGXFSZ, before);
  EXPECT_EQ(MUST(sys::read_file(file)), want) << "seven whole lines";
  for (int i = 10; i < 17; ++i) log->write(line(i)), want += line(i) + "\n";
  EXPECT_EQ(MUST(sys::read_file(file)), want);
  EXPECT_FALSE(std::filesystem::exists(file + ".1")) << "966 bytes: its size is known";
  log->write(line(17));
  EXPECT_EQ(MUST(sys::read_file(file)), line(17) + "\n");
  EXPECT_EQ(MUST(sys::read_file(file + ".1")), want);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace coracle::auth
