// SPDX-License-Identifier: Apache-2.0
// Expectations on results, for GoogleTest: a failure prints the error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/result.h"

#define ASSERT_OK(expr)                                                         \
  do {                                                                          \
    auto ok_result_ = (expr);                                                   \
    ASSERT_TRUE(ok_result_.ok()) << #expr << ": " << ok_result_.error().text(); \
  } while (false)
#define EXPECT_CODE(expr, want)                                                                                       \
  do {                                                                                                                \
    auto code_result_ = (expr);                                                                                       \
    if (code_result_.ok()) {                                                                                          \
      ADD_FAILURE() << #expr << " succeeded";                                                                         \
    } else {                                                                                                          \
      EXPECT_EQ(std::string(code_name(code_result_.error().code())), code_name(want)) << code_result_.error().text(); \
    }                                                                                                                 \
  } while (false)
