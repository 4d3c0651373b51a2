// SPDX-License-Identifier: Apache-2.0
// Runs a program, and kills it before its Nth call (from 0) that changes a file below a directory, or mounts or unmounts
// something there. Processes that it starts are not counted; they are detached when they execute a program, and live on.
//   kill_at DIRECTORY N PROGRAM ARGUMENTS…
// Exits with 0 if it killed the program, and prints "kill_at: before CALL"; with 1 if the program ended by itself. If kill_at
// itself is killed, the program is killed too.
#include <chrono>
#include <cstdio>
#include <string>

#include "runtime/base/text.h"
#include "tests/faults/calls.h"
#include "tests/faults/tracer.h"

using namespace coracle::faults;

int main(int argc, char** argv) {
  auto nth = argc > 3 ? coracle::parse_number<int>(argv[2]) : std::nullopt;
  if (!nth) {
    std::fprintf(stderr, "usage: %s DIRECTORY N PROGRAM ARGUMENTS…\n", argv[0]);
    return 2;
  }
  const std::string place = argv[1];
  Tracer tracer({"*"});
  tracer.arm(Kill{"it", *nth, [&](pid_t tid, int number, const uint64_t arguments[6]) {
                    std::string name = name_of_call(number);
                    bool mounts = name == "move_mount" || name == "mount" || name == "umount2";
                    if (!mounts && !changes_files(name, arguments)) return false;
                    return detail_of(tid, number, arguments).find(place) != std::string::npos;
                  }});
  Command command;
  command.name = "it";
  command.argv.assign(argv + 3, argv + argc);
  command.out = command.err = "-";
  command.timeout = std::chrono::hours(1);
  Outcome outcome = tracer.run(command);
  const Call& call = tracer.struck();
  if (tracer.has_struck()) std::printf("kill_at: before %s(%s)\n", name_of_call(call.number).c_str(), call.detail.c_str());
  else std::printf("kill_at: it ended with %d after %d such calls\n", outcome.exit_code, tracer.counted());
  return tracer.has_struck() ? 0 : 1;
}
