// SPDX-License-Identifier: Apache-2.0
// Metrics of requests: complete for what was used, absent for what was not, and limited in number.
#include "daemon/api/metrics.h"

#include <gtest/gtest.h>

namespace coracle::api {
namespace {

size_t times_in(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) count++;
  return count;
}

TEST(Metrics, appear_when_they_are_first_counted_and_whole) {
  RequestMetrics metrics;
  std::string text;
  metrics.write(text);
  EXPECT_EQ(times_in(text, "{"), 0u) << text;
  metrics.count({"LIST", "", "v1", "pods", "", "cluster", false}, 200, std::chrono::milliseconds(30));
  text.clear();
  metrics.write(text);
  EXPECT_EQ(times_in(text, "apiserver_request_duration_seconds_bucket{"), 24u);
  EXPECT_EQ(times_in(text, "apiserver_request_duration_seconds_count{"), 1u);
  EXPECT_NE(text.find("apiserver_request_total{code=\"200\","), text.npos);
  EXPECT_NE(text.find(",le=\"0.05\"} 1\n"), text.npos);
}

TEST(Metrics, of_many_kinds_of_requests_have_an_end) {
  RequestMetrics metrics;
  for (const char* verb : {"GET", "LIST", "POST", "PUT", "PATCH", "APPLY", "DELETE", "WATCH"})
    for (int i = 0; i < 100; i++)
      metrics.count({verb, "apps.example.com", "v1beta1", "deployments" + std::to_string(i), "status", "namespace", false}, 200,
                    std::chrono::milliseconds(3));
  std::string text;
  metrics.write(text);
  EXPECT_LE(times_in(text, "apiserver_request_duration_seconds_count{"), kHistogramsMax + 1);
  EXPECT_LT(text.size(), 450u << 10);
  uint64_t all = 0;
  const std::string name = "apiserver_request_duration_seconds_count{";
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
    all += std::stoull(text.substr(text.find("} ", at) + 2));
  EXPECT_EQ(all, 800u) << "none is lost: further ones count together";
}

}  // namespace
}  // namespace coracle::api
