// SPDX-License-Identifier: Apache-2.0
// See bus.h.
#include "runtime/cgroup/bus.h"

#include <dlfcn.h>
#include <systemd/sd-bus.h>

#include <cstdlib>
#include <cstring>

#include "runtime/sys/process.h"

namespace coracle::cgroup {
namespace {

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kObject = "/org/freedesktop/systemd1";
constexpr const char* kInterface = "org.freedesktop.systemd1.Manager";
constexpr const char* kErrorPrefix = "org.freedesktop.systemd1.";

// What we use of libsystemd, by the names of its header.
struct Library {
#define CORACLE_SD_BUS(each)                                                                                           \
  each(sd_bus_new) each(sd_bus_set_address) each(sd_bus_start) each(sd_bus_open_system) each(sd_bus_open_user)         \
      each(sd_bus_flush_close_unref) each(sd_bus_unref) each(sd_bus_message_new_method_call)                           \
          each(sd_bus_message_append) each(sd_bus_message_append_array) each(sd_bus_message_append_strv)               \
              each(sd_bus_message_open_container) each(sd_bus_message_close_container) each(sd_bus_message_read)       \
                  each(sd_bus_message_unref) each(sd_bus_call) each(sd_bus_error_free) each(sd_bus_match_signal_async) \
                      each(sd_bus_process) each(sd_bus_wait)
#define CORACLE_MEMBER(name) decltype(&::name) name = nullptr;
  CORACLE_SD_BUS(CORACLE_MEMBER)
#undef CORACLE_MEMBER
};

// Loaded once, and never unloaded: it keeps data for the threads that used it.
Result<const Library*> load() {
  static Library library;
  static const std::string failure = []() -> std::string {
    void* handle = ::dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return ::dlerror();
    std::string missing;
#define CORACLE_FIND(name)                                                         \
  library.name = reinterpret_cast<decltype(library.name)>(::dlsym(handle, #name)); \
  if (!library.name) missing = #name;
    CORACLE_SD_BUS(CORACLE_FIND)
#undef CORACLE_FIND
    return missing.empty() ? "" : "libsystemd has no " + missing;
  }();
  if (!failure.empty()) return Error(Code::unavailable, "the cgroup manager systemd needs libsystemd: " + failure);
  return &library;
}

struct Message {  // owns one
  const Library& library;
  sd_bus_message* it = nullptr;
  ~Message() { library.sd_bus_message_unref(it); }
};

int append_value(const Library& library, sd_bus_message* to, const Property::Value& value) {
  auto simple = [&](const char* type, auto word) {
    int status = library.sd_bus_message_open_container(to, SD_BUS_TYPE_VARIANT, type);
    if (status >= 0) status = library.sd_bus_message_append(to, type, word);
    return status < 0 ? status : library.sd_bus_message_close_container(to);
  };
  auto array = [&](const char* type, char item, const auto& items) {
    int status = library.sd_bus_message_open_container(to, SD_BUS_TYPE_VARIANT, type);
    if (status >= 0)
      status = library.sd_bus_message_append_array(to, item, items.data(), items.size() * sizeof items[0]);
    return status < 0 ? status : library.sd_bus_message_close_container(to);
  };
  struct Visitor {
    const decltype(simple)& one;
    const decltype(array)& many;
    const Library& library;
    sd_bus_message* to;
    int operator()(bool v) { return one("b", int(v)); }
    int operator()(int32_t v) { return one("i", v); }
    int operator()(uint32_t v) { return one("u", v); }
    int operator()(int64_t v) { return one("x", v); }
    int operator()(uint64_t v) { return one("t", v); }
    int operator()(const std::string& v) { return one("s", v.c_str()); }
    int operator()(const std::vector<uint8_t>& v) { return many("ay", 'y', v); }
    int operator()(const std::vector<uint32_t>& v) { return many("au", 'u', v); }
    int operator()(const std::vector<std::string>& v) {
      std::vector<char*> words;
      for (const std::string& each : v) words.push_back(const_cast<char*>(each.c_str()));  // only read
      words.push_back(nullptr);
      int status = library.sd_bus_message_open_container(to, SD_BUS_TYPE_VARIANT, "as");
      if (status >= 0) status = library.sd_bus_message_append_strv(to, words.data());
      return status < 0 ? status : library.sd_bus_message_close_container(to);
    }
  };
  return std::visit(Visitor{simple, array, library, to}, value);
}

int append_properties(const Library& library, sd_bus_message* to, const std::vector<Property>& properties) {
  int status = library.sd_bus_message_open_container(to, SD_BUS_TYPE_ARRAY, "(sv)");
  for (const Property& each : properties) {
    if (status >= 0) status = library.sd_bus_message_open_container(to, SD_BUS_TYPE_STRUCT, "sv");
    if (status >= 0) status = library.sd_bus_message_append(to, "s", each.name.c_str());
    if (status >= 0) status = append_value(library, to, each.value);
    if (status >= 0) status = library.sd_bus_message_close_container(to);
  }
  return status < 0 ? status : library.sd_bus_message_close_container(to);
}

// "Cannot set property OOMPolicy, or unknown property.": the property's name, or "".
std::string unknown_property(const std::string& text) {
  constexpr std::string_view kStart = "Cannot set property ";
  size_t start = text.find(kStart), end = text.find(", or unknown property", start);
  if (start == text.npos || end == text.npos) return "";
  return text.substr(start + kStart.size(), end - start - kStart.size());
}

std::string user_directory() {
  const char* told = ::getenv("XDG_RUNTIME_DIR");
  return told && *told ? told : "/run/user/" + std::to_string(sys::own_uid());
}

}  // namespace

struct Bus::Connection {
  const Library& library;
  sd_bus* bus = nullptr;
  // The job we wait for, and what became of it.
  std::string job, outcome;

  explicit Connection(const Library& loaded) : library(loaded) {}
  Connection(const Connection&) = delete;
  ~Connection() {
    if (bus) library.sd_bus_flush_close_unref(bus);
  }

  int open_private(const std::string& socket) {
    int status = library.sd_bus_new(&bus);
    if (status >= 0) status = library.sd_bus_set_address(bus, ("unix:path=" + socket).c_str());
    if (status >= 0) status = library.sd_bus_start(bus);
    if (status < 0) bus = library.sd_bus_unref(bus);
    return status;
  }

  // (uoss): id, job, unit, result
  static int job_removed(sd_bus_message* message, void* self, sd_bus_error*) {
    auto& it = *static_cast<Connection*>(self);
    uint32_t id = 0;
    const char *job = nullptr, *unit = nullptr, *result = nullptr;
    if (it.library.sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) >= 0 && it.job == job)
      it.outcome = result;
    return 0;
  }

  Result<void> wait_for_job(const char* doing, const std::string& unit) {
    auto deadline = std::chrono::steady_clock::now() + kJobPatience;
    while (outcome.empty()) {
      int status = library.sd_bus_process(bus, nullptr);
      if (status < 0) return Error::from_errno(-status, std::string("systemd: ") + doing + " " + unit);
      if (status > 0) continue;
      auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Error(Code::timeout, std::string("systemd: ") + doing + " " + unit + ": no answer");
      status = library.sd_bus_wait(bus, uint64_t(left.count()));
      if (status < 0 && status != -EINTR)
        return Error::from_errno(-status, std::string("systemd: ") + doing + " " + unit);
    }
    if (outcome == "done") return {};
    return Error(Code::internal, std::string("systemd: ") + doing + " " + unit + ": " + outcome);
  }

  // Asks the manager; `fill` appends the arguments. `job`: the answer names one, which is kept.
  template <typename Fill>
  Result<void> ask(const char* method, const std::string& unit, bool names_job, Fill fill) {
    const std::string doing = std::string("systemd: ") + method + " " + unit;
    Message request{library}, answer{library};
    int status = library.sd_bus_message_new_method_call(bus, &request.it, kService, kObject, kInterface, method);
    if (status >= 0) status = fill(request.it);
    if (status < 0) return Error::from_errno(-status, doing);
    sd_bus_error error = SD_BUS_ERROR_NULL;
    const auto patience = uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(kJobPatience).count());
    status = library.sd_bus_call(bus, request.it, patience, &error, &answer.it);
    if (status < 0) {
      std::string name = error.name ? error.name : "", text = error.message ? error.message : std::strerror(-status);
      library.sd_bus_error_free(&error);
      Error out = Error::from_errno(-status, doing);
      if (name.starts_with(kErrorPrefix)) name.erase(0, std::strlen(kErrorPrefix));
      Code code = name == "UnitExists" ? Code::conflict : name == "NoSuchUnit" ? Code::not_found : out.code();
      return Error(code, doing + ": " + text);
    }
    const char* path = nullptr;
    if (names_job) {
      status = library.sd_bus_message_read(answer.it, "o", &path);
      if (status < 0) return Error::from_errno(-status, doing);
      job = path;
      outcome.clear();
    }
    return {};
  }

  // Asks with the properties; those that this systemd does not know and that we write ourselves are left out.
  template <typename Fill>
  Result<void> ask_with(const char* method, const std::string& unit, std::vector<Property>& properties, bool names_job,
                        Fill fill) {
    while (true) {
      auto asked = ask(method, unit, names_job, fill);
      if (asked) return {};
      std::string unknown = unknown_property(asked.error().text());
      size_t left_out =
          std::erase_if(properties, [&](const Property& each) { return each.is_optional && each.name == unknown; });
      if (left_out == 0) return asked;
    }
  }

  Result<void> reset_failed(const std::string& unit) {
    return ask("ResetFailedUnit", unit, false,
               [&](sd_bus_message* to) { return library.sd_bus_message_append(to, "s", unit.c_str()); });
  }
};

Bus::Bus(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Bus::Bus(Bus&&) noexcept = default;
Bus& Bus::operator=(Bus&&) noexcept = default;
Bus::~Bus() = default;

Result<Bus> Bus::open(bool is_user) {
  const Library* library = TRY(load());
  auto connection = std::make_unique<Connection>(*library);
  std::string socket = (is_user ? user_directory() : "/run") + "/systemd/private";
  int first = connection->open_private(socket);
  int status = first;
  if (status < 0)
    status = is_user ? library->sd_bus_open_user(&connection->bus) : library->sd_bus_open_system(&connection->bus);
  if (status < 0)
    return Error(Code::unavailable, std::string(is_user ? "the user's systemd" : "systemd") +
                                        " cannot be reached: " + socket + ": " + std::strerror(-first) +
                                        "; by D-Bus: " + std::strerror(-status) +
                                        "; the cgroup manager cgroupfs needs neither");
  // Before the first job, so that its end cannot be missed.
  status = library->sd_bus_match_signal_async(connection->bus, nullptr, kService, kObject, kInterface, "JobRemoved",
                                              Connection::job_removed, nullptr, connection.get());
  if (status < 0) return Error::from_errno(-status, "systemd: listen for jobs");
  return Bus(std::move(connection));
}

Result<void> Bus::start_scope(const std::string& unit, std::vector<Property> properties) {
  Connection& it = *connection_;
  auto fill = [&](sd_bus_message* to) {
    int status = it.library.sd_bus_message_append(to, "ss", unit.c_str(), "fail");
    if (status >= 0) status = append_properties(it.library, to, properties);
    return status < 0 ? status : it.library.sd_bus_message_append(to, "a(sa(sv))", 0u);
  };
  auto asked = it.ask_with("StartTransientUnit", unit, properties, true, fill);
  if (!asked && asked.error().code() == Code::conflict) {
    (void)it.reset_failed(unit);  // if it is no failed one, the next try says so
    asked = it.ask_with("StartTransientUnit", unit, properties, true, fill);
  }
  TRY(std::move(asked));
  return it.wait_for_job("start", unit);
}

Result<void> Bus::set_properties(const std::string& unit, std::vector<Property> properties) {
  if (properties.empty()) return {};
  Connection& it = *connection_;
  return it.ask_with("SetUnitProperties", unit, properties, false, [&](sd_bus_message* to) {
    int status = it.library.sd_bus_message_append(to, "sb", unit.c_str(), 1 /* until the next boot */);
    return status < 0 ? status : append_properties(it.library, to, properties);
  });
}

Result<void> Bus::attach(const std::string& unit, const std::string& inside, int pid) {
  Connection& it = *connection_;
  return it.ask("AttachProcessesToUnit", unit, false, [&](sd_bus_message* to) {
    return it.library.sd_bus_message_append(to, "ssau", unit.c_str(), inside.c_str(), 1u, uint32_t(pid));
  });
}

Result<void> Bus::stop(const std::string& unit) {
  Connection& it = *connection_;
  auto asked = it.ask("StopUnit", unit, true, [&](sd_bus_message* to) {
    return it.library.sd_bus_message_append(to, "ss", unit.c_str(), "replace");
  });
  if (!asked && asked.error().code() == Code::not_found) return {};
  TRY(std::move(asked));
  TRY(it.wait_for_job("stop", unit));
  (void)it.reset_failed(unit);  // gone already, mostly
  return {};
}

}  // namespace coracle::cgroup
