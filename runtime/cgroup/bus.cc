// SPDX-License-Identifier: Apache-2.0
// See bus.h.
#include "runtime/cgroup/bus.h"

#include <algorithm>
#include <map>

#include "runtime/base/text.h"
#include "runtime/cgroup/dbus_message.h"
#include "runtime/sys/process.h"
#include "runtime/sys/stream.h"

namespace coracle::cgroup {
namespace {

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kObject = "/org/freedesktop/systemd1";
constexpr const char* kInterface = "org.freedesktop.systemd1.Manager";
constexpr const char* kBusService = "org.freedesktop.DBus";
constexpr const char* kBusObject = "/org/freedesktop/DBus";
constexpr const char* kSystemBus = "unix:path=/run/dbus/system_bus_socket";
constexpr const char* kJobRemoved =
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',"
    "interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";

// Sends no user id: the server takes it from the socket's credentials, which are valid across user namespaces. The responses are
// parsed together, so all commands are sent at once.
constexpr char kGreeting[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
constexpr size_t kGreetingMax = 1024;  // bytes of the response

sys::Deadline job_deadline() { return std::chrono::steady_clock::now() + kJobTimeout; }

// ---- requests ----

void add_properties(MessageWriter& to, const std::vector<Property>& properties) {
  to.add_array(8, [&] {
    for (const Property& each : properties) {
      to.begin_structure();
      to.add(each.name);
      std::visit([&](const auto& value) { to.add_variant(value); }, each.value);
    }
  });
}

bool is_text(const std::string& word) { return is_utf8(word) && word.find('\0') == word.npos; }

// The server closes the connection if a string is not valid UTF-8.
Result<void> check_texts(const std::vector<Property>& properties) {
  for (const Property& each : properties) {
    const auto* word = std::get_if<std::string>(&each.value);
    const auto* words = std::get_if<std::vector<std::string>>(&each.value);
    bool is_well = is_text(each.name) && (!word || is_text(*word)) && (!words || std::ranges::all_of(*words, is_text));
    if (!is_well) return Error(Code::invalid, "systemd: property " + quoted(each.name) + ": this is not UTF-8");
  }
  return {};
}

// ---- replies ----

// The property's name in "Cannot set property OOMPolicy, or unknown property.", or "".
std::string unknown_property(const std::string& text) {
  constexpr std::string_view kStart = "Cannot set property ";
  size_t start = text.find(kStart), end = text.find(", or unknown property", start);
  if (start == text.npos || end == text.npos) return "";
  return text.substr(start + kStart.size(), end - start - kStart.size());
}

Code code_of(std::string_view error_name) {
  struct Row {
    std::string_view name;
    Code code;
  };
  static constexpr Row kRows[] = {
      {"org.freedesktop.systemd1.UnitExists", Code::conflict},
      {"org.freedesktop.systemd1.NoSuchUnit", Code::not_found},
      {"org.freedesktop.DBus.Error.AccessDenied", Code::forbidden},
      {"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", Code::forbidden},
      {"org.freedesktop.DBus.Error.InvalidArgs", Code::invalid},
      {"org.freedesktop.DBus.Error.PropertyReadOnly", Code::invalid},
      {"org.freedesktop.DBus.Error.UnknownProperty", Code::invalid},
      {"org.freedesktop.DBus.Error.UnixProcessIdUnknown", Code::not_found},
      {"org.freedesktop.DBus.Error.NoReply", Code::timeout},
      {"org.freedesktop.DBus.Error.Timeout", Code::timeout},
      {"org.freedesktop.DBus.Error.ServiceUnknown", Code::unavailable},
  };
  for (const Row& row : kRows)
    if (row.name == error_name) return row.code;
  return Code::internal;
}

// ---- addresses ----

std::string user_directory() {
  std::string told = sys::environment("XDG_RUNTIME_DIR");
  return told.empty() ? "/run/user/" + std::to_string(sys::own_uid()) : told;
}

// The first path in an address list such as "unix:path=/run/user/1000/bus,guid=…;tcp:…". Errors: unsupported.
Result<std::string> socket_path_in(const std::string& addresses) {
  constexpr std::string_view kTransport = "unix:", kPath = "path=";
  for (std::string_view address : split(addresses, ';')) {
    if (!address.starts_with(kTransport)) continue;
    for (std::string_view pair : split(address.substr(kTransport.size()), ','))
      if (pair.starts_with(kPath)) return percent_decode(pair.substr(kPath.size()));
  }
  return Error(Code::unsupported, quoted(addresses) + " names no unix:path=");
}

std::string bus_addresses(bool is_user) {
  std::string told = sys::environment(is_user ? "DBUS_SESSION_BUS_ADDRESS" : "DBUS_SYSTEM_BUS_ADDRESS");
  if (!told.empty()) return told;
  return is_user ? "unix:path=" + percent_encode(user_directory() + "/bus") : kSystemBus;
}

}  // namespace

struct Bus::Connection {
  Fd socket;
  std::string unread;  // received bytes that are not parsed yet
  uint32_t last_serial = 0;
  bool is_direct = true;  // directly to systemd; otherwise through the bus
  // The job to wait for, and the results of other jobs that were reported meanwhile.
  std::string job;
  std::map<std::string, std::string> outcomes;

  Result<void> greet(const std::string& path) {
    socket = TRY(sys::connect_stream(path));
    auto deadline = job_deadline();
    TRY(sys::send_all(socket, std::string_view(kGreeting, sizeof kGreeting - 1), deadline));
    // "DATA\r\nOK <id>\r\n"; messages follow.
    while (unread.size() < kGreetingMax) {
      size_t ok = unread.starts_with("OK ") ? 0 : unread.find("\nOK ");
      size_t end = ok == unread.npos ? unread.npos : unread.find("\r\n", ok);
      if (end != unread.npos) {
        unread.erase(0, end + 2);
        return {};
      }
      if (unread.find("REJECTED") != unread.npos || unread.find("ERROR") != unread.npos) break;
      TRY(receive(deadline));
    }
    return Error(Code::forbidden, "it does not let us in: " + quoted(unread));
  }

  Result<void> receive(sys::Deadline deadline) {
    std::string more = TRY(sys::receive(socket, 4096, deadline));
    if (more.empty()) return Error(Code::unavailable, "the connection was ended");
    unread += more;
    return {};
  }

  Result<Message> next(sys::Deadline deadline) {
    while (unread.size() < kMessageHead) TRY(receive(deadline));
    size_t length = TRY(message_length(unread));
    while (unread.size() < length) TRY(receive(deadline));
    Message message = TRY(decode(std::string_view(unread).substr(0, length)));
    unread.erase(0, length);
    return message;
  }

  // JobRemoved (uoss): id, job, unit, result. Other messages are ignored.
  Result<void> take_signal(const Message& message) {
    if (message.type != Message::Type::signal || message.interface != kInterface || message.member != "JobRemoved") return {};
    auto words = TRY(first_words(message));
    if (words.size() >= 4) outcomes[words[1]] = words[3];
    return {};
  }

  // Sends `request` and returns the reply. An error reply becomes an Error with its name and text.
  Result<Message> exchange(Message request) {
    auto deadline = job_deadline();
    request.serial = ++last_serial;
    TRY(sys::send_all(socket, encode(request), deadline));
    while (true) {
      Message message = TRY(next(deadline));
      bool is_answer = message.type == Message::Type::method_return || message.type == Message::Type::error;
      if (is_answer && message.reply_serial == request.serial) return message;
      TRY(take_signal(message));
    }
  }

  Result<void> ask_bus(const char* method, const std::string& signature, const std::string& body) {
    Message request{.destination = kBusService,
                    .path = kBusObject,
                    .interface = kBusService,
                    .member = method,
                    .signature = signature,
                    .body = body};
    Message answer = TRY(exchange(std::move(request)));
    if (answer.type == Message::Type::error) return Error(code_of(answer.error_name), answer.error_name);
    return {};
  }

  // Connects through the bus daemon, which requires Hello and a match rule for the signals.
  Result<void> join_bus(bool is_user) {
    is_direct = false;
    std::string path = TRY(socket_path_in(bus_addresses(is_user)));
    TRY(greet(path).wrap(path));
    TRY(ask_bus("Hello", "", ""));
    MessageWriter rule;
    rule.add(kJobRemoved);
    return ask_bus("AddMatch", "s", rule.bytes());
  }

  // Calls a method of the manager. `names_job`: the reply contains a job, which is stored.
  Result<void> ask(const char* method, const std::string& unit, bool names_job, const char* signature, const std::string& body) {
    const std::string doing = std::string("systemd: ") + method + " " + unit;
    if (!is_text(unit)) return Error(Code::invalid, doing + ": its name is not UTF-8");
    Message request{.destination = is_direct ? "" : kService,
                    .path = kObject,
                    .interface = kInterface,
                    .member = method,
                    .signature = signature,
                    .body = body};
    Message answer = TRY(exchange(std::move(request)).wrap(doing));
    auto words = TRY(first_words(answer).wrap(doing));
    if (answer.type == Message::Type::error)
      return Error(code_of(answer.error_name), doing + ": " + (words.empty() ? answer.error_name : words[0]));
    if (!names_job) return {};
    if (words.empty()) return Error(Code::internal, doing + ": the answer names no job");
    job = words[0];
    return {};
  }

  // Calls a method with properties. Leaves out properties that this systemd does not support and that we write to the cgroup
  // ourselves. `say(MessageWriter&)` writes the body.
  template <typename Say>
  Result<void> ask_with(const char* method, const std::string& unit, std::vector<Property>& properties, bool names_job,
                        const char* signature, Say say) {
    while (true) {
      MessageWriter body;
      say(body);
      auto asked = ask(method, unit, names_job, signature, body.bytes());
      if (asked) return {};
      std::string unknown = unknown_property(asked.error().text());
      size_t left_out = std::erase_if(properties, [&](const Property& each) { return each.is_optional && each.name == unknown; });
      if (left_out == 0) return asked;
    }
  }

  Result<void> reset_failed(const std::string& unit) {
    MessageWriter body;
    body.add(unit);
    return ask("ResetFailedUnit", unit, false, "s", body.bytes());
  }

  Result<void> wait_for_job(const char* doing, const std::string& unit) {
    const std::string what = std::string("systemd: ") + doing + " " + unit;
    auto deadline = job_deadline();
    while (!outcomes.contains(job)) {
      Message message = TRY(next(deadline).wrap(what));
      TRY(take_signal(message).wrap(what));
    }
    std::string outcome = outcomes[job];
    outcomes.clear();
    if (outcome == "done") return {};
    return Error(Code::internal, what + ": " + outcome);
  }
};

Bus::Bus(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Bus::Bus(Bus&&) noexcept = default;
Bus& Bus::operator=(Bus&&) noexcept = default;
Bus::~Bus() = default;

Result<Bus> Bus::open(bool is_user) {
  auto connection = std::make_unique<Connection>();
  const std::string own_socket = (is_user ? user_directory() : "/run") + "/systemd/private";
  auto direct = connection->greet(own_socket);
  if (direct) return Bus(std::move(connection));
  *connection = Connection();
  auto joined = connection->join_bus(is_user);
  if (joined) return Bus(std::move(connection));
  return Error(Code::unavailable, std::string(is_user ? "the user's systemd" : "systemd") + " cannot be reached: " + own_socket +
                                      ": " + direct.error().text() + "; by D-Bus: " + joined.error().text() +
                                      "; the cgroup manager cgroupfs needs neither");
}

Result<void> Bus::start_scope(const std::string& unit, std::vector<Property> properties) {
  TRY(check_texts(properties));
  Connection& it = *connection_;
  auto say = [&](MessageWriter& to) {
    to.add(unit);
    to.add("fail");
    add_properties(to, properties);
    to.add_array(8, [] {});  // no auxiliary units
  };
  auto start = [&] { return it.ask_with("StartTransientUnit", unit, properties, true, "ssa(sv)a(sa(sv))", say); };
  auto asked = start();
  if (!asked && asked.error().code() == Code::conflict) {
    (void)it.reset_failed(unit);  // if it was not failed, the next attempt reports the error
    asked = start();
  }
  TRY(std::move(asked));
  return it.wait_for_job("start", unit);
}

Result<void> Bus::set_properties(const std::string& unit, std::vector<Property> properties) {
  if (properties.empty()) return {};
  TRY(check_texts(properties));
  return connection_->ask_with("SetUnitProperties", unit, properties, false, "sba(sv)", [&](MessageWriter& to) {
    to.add(unit);
    to.add(true);  // runtime: until the next boot
    add_properties(to, properties);
  });
}

Result<void> Bus::attach(const std::string& unit, const std::string& inside, int pid) {
  if (!is_text(inside)) return Error(Code::invalid, "systemd: cgroup " + quoted(inside) + ": this is not UTF-8");
  MessageWriter body;
  body.add(unit);
  body.add(inside);
  body.add(std::vector<uint32_t>{uint32_t(pid)});
  return connection_->ask("AttachProcessesToUnit", unit, false, "ssau", body.bytes());
}

Result<void> Bus::stop(const std::string& unit) {
  MessageWriter body;
  body.add(unit);
  body.add("replace");
  auto asked = connection_->ask("StopUnit", unit, true, "ss", body.bytes());
  if (!asked && asked.error().code() == Code::not_found) return {};
  TRY(std::move(asked));
  TRY(connection_->wait_for_job("stop", unit));
  (void)connection_->reset_failed(unit);  // usually it no longer exists
  return {};
}

}  // namespace coracle::cgroup
