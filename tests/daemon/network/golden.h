// SPDX-License-Identifier: Apache-2.0
// Golden files: the approved output of a pure function. ACCEPT=1 rewrites them and skips the test, so that an accepting run never
// passes as a checking one.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

// This directory's meson.build defines CORACLE_GOLDEN_DIR.
#define EXPECT_GOLDEN(name, text)                                                  \
  do {                                                                             \
    const std::string golden_path_ = std::string(CORACLE_GOLDEN_DIR "/") + (name); \
    const std::string golden_text_ = (text);                                       \
    if (std::getenv("ACCEPT")) {                                                   \
      std::ofstream(golden_path_) << golden_text_;                                 \
      GTEST_SKIP() << "accepted " << golden_path_;                                 \
    }                                                                              \
    std::ifstream golden_file_(golden_path_);                                      \
    ASSERT_TRUE(golden_file_) << "no " << golden_path_ << "; ACCEPT=1 makes it";   \
    std::ostringstream golden_want_;                                               \
    golden_want_ << golden_file_.rdbuf();                                          \
    EXPECT_EQ(golden_want_.str(), golden_text_) << golden_path_;                   \
  } while (0)
