// SPDX-License-Identifier: Apache-2.0
// The output of describe, in kubectl's layout.
#include "ctl/describe.h"

#include <gtest/gtest.h>

#include "ctl/print.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

std::string told(std::string_view text, const Related& related = {}) {
  return align_tabs(workload_text(parsed(text), related, WallTime()));
}

TEST(AlignTabs, columns_last_as_long_as_their_lines_have_them) {
  EXPECT_EQ(align_tabs("a:\tx\nlonger:\ty\n"), "a:       x\nlonger:  y\n");
  EXPECT_EQ(align_tabs("a\tb\tc\nplain\nlonger\tb\n"), "a  b  c\nplain\nlonger  b\n");
  EXPECT_EQ(align_tabs("a\tbbb\tc\nlonger\tb\tc\nx\ty\n"), "a       bbb  c\nlonger  b    c\nx       y\n");
  EXPECT_EQ(align_tabs("ä\tb\naa\tb\n"), "ä   b\naa  b\n");
  EXPECT_EQ(align_tabs("\tb"), "  b");
}

TEST(Describe, a_budget) {
  EXPECT_EQ(
      told(
          R"({"kind":"PodDisruptionBudget","metadata":{"name":"web","namespace":"default"},"spec":{"minAvailable":2,"selector":{"matchLabels":{"app":"web"}}},
    "status":{"desiredHealthy":2,"expectedPods":3,"currentHealthy":3,"disruptionsAllowed":1}})"),
      "Name:           web\nNamespace:      default\nMin available:  2\nSelector:       app=web\nStatus:\n"
      "    Allowed disruptions:  1\n    Current:              3\n    Desired:              2\n    Total:                3\n");
}

TEST(Describe, a_quota) {
  EXPECT_EQ(
      told(
          R"({"kind":"ResourceQuota","metadata":{"name":"q","namespace":"d"},"spec":{"scopes":["BestEffort"]},"status":{"hard":{"pods":"5","cpu":"1"},"used":{"pods":"2"}}})"),
      "Name:       q\nNamespace:  d\nScopes:     BestEffort\n * Matches all pods that do not have resource requirements set. "
      "These pods have a best effort quality of service.\n"
      "Resource  Used  Hard\n--------  ----  ----\ncpu       0     1\npods      2     5\n");
}

TEST(Describe, an_autoscaler) {
  std::string text = told(
      R"({"kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"minReplicas":1,"maxReplicas":3,
    "metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},
    {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"200Mi"}}}]},
    "status":{"currentReplicas":2,"desiredReplicas":3,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":70,"averageValue":"7m"}}}]}})");
  for (const char* line : {"Reference:                                             Deployment/web\n",
                           "  resource cpu on pods  (as a percentage of request):  70% (7m) / 50%\n",
                           "  resource memory on pods:                             <unknown> / 200Mi\n",
                           "Deployment pods:                                       2 current / 3 desired\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Describe, a_stateful_set_counts_its_own_pods) {
  Related related;
  for (auto [uid, phase] : {std::pair{"u", "Running"}, std::pair{"u", "Pending"}, std::pair{"other", "Running"}})
    related.pods.push_back(parsed(R"({"metadata":{"ownerReferences":[{"uid":")" + std::string(uid) +
                                  R"(","controller":true}]},"status":{"phase":")" + phase + R"("}})"));
  std::string text = told(
      R"({"kind":"StatefulSet","metadata":{"name":"s","uid":"u"},"spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}},
    "template":{"spec":{"containers":[{"name":"c","image":"x"}]}},"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"1Gi"}}}}]},"status":{"replicas":2}})",
      related);
  for (const char* line : {"Pods Status:        1 Running / 1 Waiting / 0 Succeeded / 0 Failed\n", "  Partition:        1\n",
                           "  Access Modes:  [ReadWriteOnce]\n", "   c:\n    Image:         x\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Describe, any_other_kind_field_by_field) {
  EXPECT_EQ(
      align_tabs(plain_text(parsed(
          R"({"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r","namespace":"d","uid":"u","managedFields":[{}]},"revision":3,
    "data":{"spec":{"template":{"$patch":"replace","dnsPolicy":"x"}},"list":["a",{"b":1}]}})"))),
      "Name:         r\nNamespace:    d\nLabels:       <none>\nAnnotations:  <none>\nAPI Version:  apps/v1\nData:\n  List:\n    "
      "a\n    B:  1\n  Spec:\n    Template:\n"
      "      $patch:      replace\n      Dns Policy:  x\nKind:              ControllerRevision\nMetadata:\n  UID:     "
      "u\nRevision:  3\n");
}

TEST(Events, say_how_often_over_how_long) {
  WallTime now = *parse_time("2026-01-01T00:10:00Z");
  EXPECT_EQ(
      event_age(parsed(R"({"firstTimestamp":"2026-01-01T00:09:00Z","lastTimestamp":"2026-01-01T00:09:50Z","count":3})"), now),
      "10s (x3 over 60s)");
  EXPECT_EQ(
      event_age(parsed(R"({"firstTimestamp":"2026-01-01T00:09:50Z","lastTimestamp":"2026-01-01T00:09:50Z","count":1})"), now),
      "10s");
  EXPECT_EQ(
      event_age(
          parsed(
              R"({"eventTime":"2026-01-01T00:08:00.000000Z","series":{"count":2,"lastObservedTime":"2026-01-01T00:09:30.000000Z"}})"),
          now),
      "30s (x2 over 2m)");
  EXPECT_EQ(uid_in_events(parsed(R"({"kind":"Pod","metadata":{"name":"p","uid":"1"}})")), "1");
  EXPECT_EQ(uid_in_events(parsed(R"({"kind":"Node","metadata":{"name":"n","uid":"1"}})")), "n");
  EXPECT_EQ(uid_in_events(parsed(
                R"({"kind":"Pod","metadata":{"name":"p","uid":"1","annotations":{"kubernetes.io/config.mirror":"hash"}}})")),
            "hash");
  EXPECT_EQ(event_time(parsed(R"({"lastTimestamp":"2026-01-01T00:01:00Z","eventTime":"2026-01-01T00:00:00Z"})")),
            *parse_time("2026-01-01T00:01:00Z"));
}

}  // namespace
}  // namespace coracle::ctl
