// SPDX-License-Identifier: Apache-2.0
// See service_manager.h.
#include "daemon/service_manager.h"

#include <systemd/sd-bus.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "runtime/base/log.h"

namespace coracle {
namespace {

constexpr const char* kSocket = "unix:path=/run/systemd/private";
constexpr const char* kManager = "org.freedesktop.systemd1";
constexpr uint64_t kTimeoutMicroseconds = 2'000'000;

using Bus = std::unique_ptr<sd_bus, decltype([](sd_bus* bus) { sd_bus_flush_close_unref(bus); })>;
using Message = std::unique_ptr<sd_bus_message, decltype([](sd_bus_message* message) { sd_bus_message_unref(message); })>;
using Text = std::unique_ptr<char, decltype([](char* text) { std::free(text); })>;

// Null if systemd does not answer.
Bus connect() {
  sd_bus* made = nullptr;
  if (sd_bus_new(&made) < 0) return nullptr;
  Bus bus(made);
  if (sd_bus_set_address(made, kSocket) < 0 || sd_bus_start(made) < 0) return nullptr;
  sd_bus_set_method_call_timeout(made, kTimeoutMicroseconds);
  return bus;
}

void note_failed(const char* what, int negative_errno) {
  log_warning("main", "systemd does not say what it is about to do",
              {{"property", what}, {"why", std::strerror(-negative_errno)}});
}

std::optional<std::string> text_property(sd_bus* bus, const char* path, const char* interface, const char* name) {
  char* text = nullptr;
  int done = sd_bus_get_property_string(bus, kManager, path, interface, name, nullptr, &text);
  if (done < 0) {
    note_failed(name, done);
    return std::nullopt;
  }
  return std::string(Text(text).get());
}

}  // namespace

bool is_to_be_stopped(const std::string& unit) {
  Bus bus = connect();
  if (!bus) return false;
  char* encoded = nullptr;
  if (sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit.c_str(), &encoded) < 0) return false;
  Text path(encoded);
  sd_bus_message* made = nullptr;
  int done = sd_bus_get_property(bus.get(), kManager, path.get(), "org.freedesktop.systemd1.Unit", "Job", nullptr, &made, "(uo)");
  Message reply(made);
  uint32_t id = 0;
  const char* job = nullptr;
  if (done >= 0) done = sd_bus_message_read(reply.get(), "(uo)", &id, &job);
  if (done < 0) note_failed("Job", done);
  if (done < 0 || id == 0) return false;
  auto type = text_property(bus.get(), job, "org.freedesktop.systemd1.Job", "JobType");
  return type == "stop" || type == "restart";
}

bool is_machine_ending() {
  Bus bus = connect();
  if (!bus) return false;
  return text_property(bus.get(), "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "SystemState") == "stopping";
}

}  // namespace coracle
