// SPDX-License-Identifier: Apache-2.0
// Untrusted config.json: the result is a one-line error, or a specification that is written as it was read. A configuration that
// passes validation has no false /proc.
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/oci/checks.h"
#include "runtime/oci/parse.h"
#include "runtime/oci/validate.h"

using namespace coracle;

namespace {

void must(bool holds) {
  if (!holds) __builtin_trap();
}

bool is_good_line(const Error& error) {
  return !error.text().empty() && error.text().find_first_of("\n\r\x1b") == std::string::npos;
}

void check(const oci::Spec& spec) {
  auto valid = oci::validate(spec), alone = oci::validate_alone(spec);
  must(valid.ok() || (is_good_line(valid.error()) && !alone.ok()));
  must(alone.ok() || is_good_line(alone.error()));
  if (!valid) return;
  for (const oci::Mount& mount : spec.mounts) {
    std::string place = oci::plain_path(mount.destination);
    must(place == mount.destination && place != "/");
    if (place == "/proc") must(oci::is_bind(mount) ? oci::plain_path(mount.source) == "/proc" : mount.type == "proc");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto config = parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!config) return 0;
  auto spec = oci::parse_spec(*config);
  if (!spec) {
    must(is_good_line(spec.error()));
    if (auto resources = oci::parse_resources(*config)) must(oci::parse_resources(oci::to_json(*resources)).ok());
    if (auto process = oci::parse_process(*config)) must(oci::parse_process(oci::to_json(*process)).ok());
    return 0;
  }
  json::value written = oci::to_json(*spec);
  auto again = oci::parse_spec(written);
  must(again.ok() && to_text(oci::to_json(*again)) == to_text(written));
  check(*spec);
  return 0;
}
