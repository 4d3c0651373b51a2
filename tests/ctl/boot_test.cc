// SPDX-License-Identifier: Apache-2.0
// The timeline of a start.
#include "ctl/boot.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

constexpr const char* kManager =
    "FirmwareTimestampMonotonic=3000000\nLoaderTimestampMonotonic=1250000\nKernelTimestampMonotonic=0\nInitRDTimestampMonotonic="
    "0\n"
    "UserspaceTimestamp=@30\nUserspaceTimestampMonotonic=2500000\nFinishTimestampMonotonic=9000000\n";
constexpr const char* kUnit = "InactiveExitTimestampMonotonic=6100000\nActiveEnterTimestampMonotonic=6250000\n";

// It starts at the second 27.5 of 1970 and gets the time at second 20, after 'early' became ready.
BootState state_of(std::string_view pods) {
  BootState state{kManager, kUnit, MUST(parse_json("{\"items\":[" + std::string(pods) + "]}")), {}, std::chrono::seconds(100)};
  state.now = WallTime(std::chrono::seconds(1'800'000'100));
  return state;
}

TEST(Boot, is_drawn_by_a_clock_that_never_jumps) {
  BootState state = state_of(R"(
      {"metadata":{"namespace":"shop","name":"late","annotations":{"coracle.io/after":"deployment/db"}},
       "status":{"phase":"Running","conditions":[
         {"type":"PodScheduled","status":"True","lastTransitionTime":"2027-01-15T08:00:30Z"},
         {"type":"Ready","status":"True","lastTransitionTime":"2027-01-15T08:00:40Z"}],
        "containerStatuses":[{"name":"c","state":{"running":{"startedAt":"2027-01-15T08:00:33Z"}}}]}},
      {"metadata":{"namespace":"shop","name":"early"},
       "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"1970-01-01T00:00:35Z"}]}},
      {"metadata":{"namespace":"shop","name":"waits"},
       "status":{"phase":"Pending","conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2027-01-15T08:00:31Z"}],
        "containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ErrImagePull"}}}]}},
      {"metadata":{"namespace":"shop","name":"gated"},
       "status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"waiting for db"}]}},
      {"metadata":{"namespace":"shop","name":"done"},"status":{"phase":"Succeeded"}})");
  EXPECT_EQ(
      print_boot(boot_steps(state)),
      "-3.000 s  the firmware starts\n"
      "-1.250 s  the boot loader starts\n"
      " 0.000 s  the kernel starts\n"
      " 2.500 s  the first process starts\n"
      " 6.100 s  coracled starts\n"
      " 6.250 s  the API is ready\n"
      "     7 s  pod shop/early is ready\n"
      " 9.000 s  all units have started\n"
      "    40 s  pod shop/late is ready       after deployment/db, a place until 30 s, its images and containers until 33 s\n"
      "       -  pod shop/waits is not ready  c: ErrImagePull\n"
      "       -  pod shop/gated is not ready  waiting for db\n");
}

TEST(Boot, shows_what_is_known) {
  BootState state = state_of("");
  state.manager = state.unit = "";
  state.pods = nullptr;
  EXPECT_EQ(print_boot(boot_steps(state)), "0.000 s  the kernel starts\n");
  state = state_of(R"({"metadata":{"namespace":"a","name":"b"},"status":{"phase":"Running","conditions":[
                        {"type":"Ready","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(boot_steps(state).back().at, std::nullopt) << "of another start";
  EXPECT_EQ(boot_json(boot_steps(state)).at("steps").as_array().back(),
            (json::object{{"at", nullptr}, {"what", "pod a/b is ready"}}));
  EXPECT_EQ(boot_json(boot_steps(state)).at("steps").as_array()[0],
            (json::object{{"at", -3.0}, {"what", "the firmware starts"}}));
}

}  // namespace
}  // namespace coracle::ctl
