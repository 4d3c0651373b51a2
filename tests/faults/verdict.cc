// SPDX-License-Identifier: Apache-2.0
// See verdict.h.
#include "tests/faults/verdict.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstring>

#include "tests/faults/calls.h"

namespace coracle::faults {
namespace {

constexpr size_t kProblemsShown = 12;
constexpr const char* kWaits = "waits by poll and ppoll";

std::string text_of(const Call& call) {
  return call.process + ": " + name_of_call(call.number) + "(" + call.detail + ") #" + std::to_string(call.occurrence);
}

// The line under which a call is reported. Whether a process waits depends on timing, but the list of checks must not: all waits
// are reported together, on one line in each run.
std::string group_of(const Call& call) {
  const std::string name = name_of_call(call.number);
  return name == "poll" || name == "ppoll" ? kWaits : call.process + " " + name;
}

bool matches(const char* pattern, const std::string& text) { return ::fnmatch(pattern, text.c_str(), 0) == 0; }

}  // namespace

std::string wrong_with_line(const std::string& said, int error) {
  if (said.empty()) return "it says nothing";
  if (std::count(said.begin(), said.end(), '\n') != 1 || said.back() != '\n') return "it says more than a line: " + said;
  const std::string reason = std::strerror(error);
  if (size_t at = said.find(reason);
      at != said.npos && at < (said.starts_with("coracle-oci: ") ? std::strlen("coracle-oci: ") : 0) + std::strlen("poll: "))
    return "it names no step: " + said;
  return "";
}

Verdict::Verdict(std::string name, const std::vector<Harmless>& table, const std::string& log)
    : name_(std::move(name)), table_(table) {
  if (!log.empty()) log_ = std::fopen(log.c_str(), "we");
  groups_[kWaits];  // there may be none
}

Verdict::~Verdict() {
  if (log_) std::fclose(log_);
}

const Harmless* Verdict::harmless(const Call& call) const {
  for (const Harmless& row : table_)
    if (matches(row.process, call.process) && matches(row.call, name_of_call(call.number)) && matches(row.detail, call.detail))
      return &row;
  return nullptr;
}

void Verdict::add(Trial trial) {
  const Call& call = trial.fault.call;
  Group& group = groups_[group_of(call)];
  ++group.trials, ++trials_;
  const char* outcome = "failed";
  if (!trial.is_reached) {
    ++group.unreached, ++unreached_;
    outcome = "not reached";
  } else if (trial.has_failed) {
    ++group.failed, ++failed_;
  } else {
    ++group.harmless, ++harmless_;
    outcome = "harmless";
    if (trial.problem.empty() && !call.is_startup && !harmless(call))
      trial.problem = "the command succeeds, and no row of the table says why that is right";
  }
  if (!trial.problem.empty())
    group.problems.push_back(text_of(call) + " " + std::strerror(trial.fault.error) + ": " + trial.problem);
  if (!log_) return;
  std::fprintf(log_, "%s\t%s\t%s\t%s%s\n", outcome, text_of(call).c_str(), trial.said.c_str(),
               trial.problem.empty() ? "" : "PROBLEM ", trial.problem.c_str());
  std::fflush(log_);
}

void Verdict::say(bool good, const std::string& what) {
  std::printf("%s %d - %s\n", good ? "ok" : "not ok", ++number_, what.c_str());
  std::fflush(stdout);
  if (!good) ++bad_;
}

int Verdict::finish() {
  for (auto& [name, group] : groups_) {
    std::string counts = std::to_string(group.trials) + " faults, " + std::to_string(group.failed) + " told, " +
                         std::to_string(group.harmless) + " harmless";
    if (group.unreached) counts += ", " + std::to_string(group.unreached) + " not reached";
    say(group.problems.empty(), name_ + ": " + name + ": " + counts);
    for (size_t i = 0; i < group.problems.size() && i < kProblemsShown; ++i) {
      std::replace(group.problems[i].begin(), group.problems[i].end(), '\n', ' ');
      std::printf("  | %s\n", group.problems[i].c_str());
    }
  }
  groups_.clear();
  // A few calls may not occur in some runs; many such calls would be a gap.
  say(unreached_ * 50 <= trials_,
      name_ + ": " + std::to_string(unreached_) + " of " + std::to_string(trials_) + " calls were not made again");
  std::printf("# measured: %s: %d faults: %d told, %d harmless\n", name_.c_str(), trials_, failed_, harmless_);
  return bad_ ? 1 : 0;
}

std::vector<Fault> choose(const std::vector<Call>& calls, int at_most) {
  std::map<std::pair<std::string, int>, std::vector<Fault>> kinds;
  std::vector<std::pair<std::string, int>> order;
  for (const Call& call : calls) {
    Failing failing = failing_of(name_of_call(call.number), call.detail);
    if (failing.error == 0) continue;
    if (call.is_startup && call.process != calls[0].process) continue;  // the same program starts in each command
    auto& kind = kinds[{call.process, call.number}];
    if (kind.empty()) order.push_back({call.process, call.number});
    kind.push_back({call, failing.error, failing.is_done});
  }
  std::vector<Fault> out;
  for (const auto& key : order) {
    const auto& kind = kinds[key];
    const size_t wanted = at_most > 0 ? std::min(kind.size(), size_t(at_most)) : kind.size();
    for (size_t i = 0; i < wanted; ++i) out.push_back(kind[wanted == 1 ? 0 : i * (kind.size() - 1) / (wanted - 1)]);
  }
  return out;
}

}  // namespace coracle::faults
