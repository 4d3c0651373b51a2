// SPDX-License-Identifier: Apache-2.0
// See trial.h.
#include "tests/faults/trial.h"

#include <fnmatch.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/faults/calls.h"

namespace coracle::faults {

namespace fs = std::filesystem;

namespace {
constexpr int kOfAKind = 2;       // in a default run
constexpr int kTriesToReach = 6;  // how often a process reads, writes and waits depends on timing

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
}  // namespace

std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string lines_in(const std::string& said, const std::string& container) {
  std::istringstream lines(said);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("namespace ", 0) == 0) {
      std::string link = line.substr(10), type = link.substr(0, link.find(':')), whose = "own";
      std::error_code wrong;
      if (fs::read_symlink("/proc/self/ns/" + type, wrong) == link) whose = "host";
      else if (container.find(link) != container.npos) whose = "container";
      line = "namespace " + type + " " + whose;
    }
    out += line + "\n";
  }
  return out;
}

std::string first_difference(const std::string& want, const std::string& got) {
  std::istringstream wants(want), gots(got);
  for (std::string one, other; true;) {
    bool more = bool(std::getline(wants, one)), also = bool(std::getline(gots, other));
    if (!more && !also) return "";
    if (!more) one.clear();
    if (!also) other.clear();
    if (one != other) return "'" + other + "' in place of '" + one + "'";
  }
}

Machine without_files(Machine machine, const std::function<bool(const fs::path&)>& may_stay) {
  std::erase_if(machine["files"], [&](const std::string& each) { return may_stay(each); });
  return machine;
}

bool is_seccomp_cache(const fs::path& path, const char* name) {
  return path.filename() == name || (path.parent_path().filename() == name &&
                                     path.filename().native().find_first_not_of("0123456789abcdef-") == std::string::npos);
}

Machine look_settled(Tracer& tracer, const std::function<Machine()>& look) {
  Machine before = look();
  for (int i = 0; i < 50; ++i) {
    (void)tracer.wait_until([] { return false; }, std::chrono::milliseconds(100));
    Machine now = look();
    if (difference(before, now).empty()) break;
    before = std::move(now);
  }
  return before;
}

std::string what_stays(Tracer& tracer, const Machine& before, const std::function<Machine()>& look) {
  std::string out;
  (void)tracer.wait_until([&] { return (out = difference(before, look())).empty(); }, std::chrono::seconds(2));
  return out;
}

Wanted Wanted::from_environment() {
  return {environment("CORACLE_LONG").starts_with("1") ? 0 : kOfAKind, environment("CORACLE_FAULTS_ONLY"),
          environment("CORACLE_FAULTS_LOG")};
}

void try_each(const std::vector<Call>& calls, const Wanted& wanted, Verdict& verdict,
              const std::function<Trial(const Fault&)>& try_one, const std::function<void()>& clear) {
  for (const Fault& fault : choose(calls, wanted.at_most_of_a_kind)) {
    const std::string name = fault.call.process + " " + name_of_call(fault.call.number);
    if (!wanted.only.empty() && ::fnmatch(wanted.only.c_str(), name.c_str(), 0) != 0) continue;
    if (is_to_end()) break;
    Trial trial = try_one(fault);
    for (int i = 1; i < kTriesToReach && !trial.is_reached && trial.problem.empty(); ++i) trial = try_one(fault);
    bool is_dirty = !trial.problem.empty();
    verdict.add(std::move(trial));
    if (is_dirty) clear();
  }
}

}  // namespace coracle::faults
