// SPDX-License-Identifier: Apache-2.0
// Signals by name and by number.
#include "runtime/base/signal_name.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Signal, is_known_by_number_and_by_each_of_its_names) {
  struct Row {
    const char* text;
    std::optional<int> want;
  };
  for (const Row& row :
       {Row{"SIGTERM", 15},    Row{"KILL", 9},     Row{"10", 10},         Row{"64", 64},       Row{"SIGRTMIN+3", 37},
        Row{"RTMIN", 34},      Row{"RTMAX-1", 63}, Row{"SIGRTMAX", 64},   Row{"SIGIO", 29},    Row{"POLL", 29},
        Row{"IOT", 6},         Row{"SIGABRT", 6},  Row{"CLD", 17},        Row{"STKFLT", 16},   Row{"WINCH", 28},
        Row{"SYS", 31},        Row{"0", {}},       Row{"65", {}},         Row{"-1", {}},       Row{"SIGX", {}},
        Row{"", {}},           Row{"SIG", {}},     Row{"RTMIN+", {}},     Row{"RTMIN+31", {}}, Row{"RTMAX-31", {}},
        Row{"RTMIN-1", {}},    Row{"SIG15", {}},   Row{"SIGSIGTERM", {}}, Row{"sigterm", 15},  Row{"kill", 9},
        Row{"SigRtMin+3", 37}, Row{"rtmax", 64}})
    EXPECT_EQ(signal_number(row.text), row.want) << row.text;
}

}  // namespace
}  // namespace coracle
