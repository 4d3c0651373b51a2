// SPDX-License-Identifier: Apache-2.0
// An index maps pods to autoscalers: autoscalers are not compared with each other over all pods.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int status = RUN_ALL_TESTS();
  const ::testing::UnitTest& unit = *::testing::UnitTest::GetInstance();
  bool all_skipped = unit.test_to_run_count() > 0 && unit.skipped_test_count() == unit.test_to_run_count();
  return status == 0 && all_skipped ? 77 : status;
}
