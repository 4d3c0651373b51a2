// SPDX-License-Identifier: Apache-2.0
// Decoding: the canonical form, unknown fields, values of the wrong type.
#include "store/schema/decode.h"

#include <gtest/gtest.h>

namespace coracle::schema {
namespace {

struct Outcome {
  std::string text, error;
  std::vector<std::string> warnings;
};

Outcome decoded(const Kind& kind, const char* text) {
  auto result = decode(catalog().of(kind).type(), *parse_json(text));
  if (!result) return {"", result.error().text(), {}};
  return {to_text(result->value), "", result->warnings};
}

TEST(Decode, puts_fields_in_order_and_writes_what_kubernetes_writes) {
  Outcome pod = decoded(kPod, R"({"spec":{"containers":[{"image":"b","name":"a"}]},"metadata":{"name":"x"}})");
  EXPECT_EQ(pod.text, R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"a","image":"b",)"
                      R"("resources":{}}]},"status":{}})");
  EXPECT_TRUE(pod.warnings.empty());
}

TEST(Decode, is_idempotent) {
  Outcome once = decoded(kPod, R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1000m","memory":0.5}}}]}})");
  EXPECT_EQ(decoded(kPod, once.text.c_str()).text, once.text);
}

TEST(Decode, drops_null_and_empty_but_keeps_what_was_meant) {
  Outcome pod = decoded(kPod, R"({"metadata":{"creationTimestamp":null,"labels":{}},"spec":{"hostNetwork":false,
    "terminationGracePeriodSeconds":0,"volumes":[{"name":"v","emptyDir":{}}],"containers":[],"tolerations":[]}})");
  EXPECT_EQ(pod.text, R"({"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"volumes":[{"name":"v","emptyDir":{}}],)"
                      R"("containers":[],"terminationGracePeriodSeconds":0},"status":{}})");
}

TEST(Decode, spells_quantities_times_bytes_and_maps_in_one_way) {
  EXPECT_EQ(decoded(kNode, R"({"status":{"capacity":{"memory":"1024Ki","cpu":"1000m"}}})").text.find("1024Ki"),
            std::string::npos);
  EXPECT_NE(decoded(kNode, R"({"status":{"capacity":{"memory":"1024Ki","cpu":2}}})")
                .text.find(R"("capacity":{"cpu":"2","memory":"1Mi"})"),
            std::string::npos);
  EXPECT_NE(decoded(kPod, R"({"metadata":{"deletionTimestamp":"2026-01-02T03:04:05.6+01:00"}})")
                .text.find(R"("deletionTimestamp":"2026-01-02T02:04:05Z")"),
            std::string::npos);
  EXPECT_NE(decoded(kLease, R"({"spec":{"renewTime":"2026-01-02T03:04:05Z"}})").text.find("2026-01-02T03:04:05.000000Z"),
            std::string::npos);
  EXPECT_NE(decoded(kSecret, R"({"data":{"a":"YWJj\nZGVm"}})").text.find("YWJjZGVm"), std::string::npos);
}

TEST(Decode, names_unknown_fields_by_path) {
  Outcome pod = decoded(kPod, R"({"foo":1,"spec":{"bar":2,"containers":[{"name":"a","ports":[{"baz":{}}]}]}})");
  EXPECT_EQ(pod.warnings, (std::vector<std::string>{R"(unknown field "foo")", R"(unknown field "spec.bar")",
                                                    R"(unknown field "spec.containers[0].ports[0].baz")"}));
  EXPECT_EQ(pod.text.find("baz"), std::string::npos);
}

// Whatever the order of the schema's fields.
TEST(Decode, names_unknown_fields_in_the_order_of_the_document) {
  auto result = decode(catalog().of(kPod).type(),
                       *parse_json(R"({"spec":{"containers":[{"name":"a"},{"x":1,"name":"b","y":{}}],"z":1},"b":1,)"
                                   R"("metadata":{"c":1,"name":"p"},"a":1})"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->warnings,
            (std::vector<std::string>{R"(unknown field "spec.containers[1].x")", R"(unknown field "spec.containers[1].y")",
                                      R"(unknown field "spec.z")", R"(unknown field "b")", R"(unknown field "metadata.c")",
                                      R"(unknown field "a")"}));
  EXPECT_EQ(result->places, (std::vector<JsonPlace>{{0, 0, 1, 0}, {0, 0, 1, 2}, {0, 1}, {1}, {2, 0}, {3}}));
}

TEST(Decode, limits_how_many_it_names) {
  json::object many;
  for (int i = 0; i < 5000; ++i) many["f" + std::to_string(i)] = 1;
  auto result = decode(catalog().of(kPod).type(), json::value(std::move(many)));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->warnings.size(), kFieldWarningsMax);
}

// Source: sigs.k8s.io/json, kubernetes_patch.go, saveStrictError.
TEST(Decode, names_the_first_of_many_in_the_document) {
  json::object body;
  body["first"] = 1;
  json::array volumes;
  for (int i = 0; i < 60; ++i) volumes.push_back(json::object{{"x", 1}, {"y", 1}});
  json::object spec{{"volumes", volumes}, {"second", 1}, {"containers", volumes}};
  body["spec"] = spec;
  auto decoded = decode(catalog().of(kPod).type(), json::value(body));
  ASSERT_TRUE(decoded) << decoded.error().text();
  ASSERT_EQ(decoded->warnings.size(), kFieldWarningsMax);
  EXPECT_EQ(decoded->warnings[0], R"(unknown field "first")");
  EXPECT_EQ(decoded->warnings[1], R"(unknown field "spec.volumes[0].x")");
  EXPECT_EQ(decoded->warnings[99], R"(unknown field "spec.volumes[49].x")");
  spec["volumes"] = json::array(volumes.begin(), volumes.begin() + 49);
  body["spec"] = spec;
  body["third"] = 1;
  json::object reversed;
  for (auto pair = body.end(); pair != body.begin();) --pair, reversed.emplace(pair->key(), pair->value());
  decoded = decode(catalog().of(kPod).type(), json::value(body));
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(decoded->warnings[99], R"(unknown field "spec.second")") << "98 are before it, and \"first\"";
  decoded = decode(catalog().of(kPod).type(), json::value(reversed));
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(decoded->warnings[0], R"(unknown field "third")");
  EXPECT_EQ(decoded->warnings[1], R"(unknown field "spec.volumes[0].x")");
  EXPECT_EQ(decoded->warnings[99], R"(unknown field "spec.second")");
  EXPECT_EQ(decoded->places[99], (JsonPlace{1, 1}));
}

TEST(Decode, words_strict_errors_as_kubernetes) {
  Error error =
      strict_error(catalog().of(kDeployment).type(), {R"(unknown field "spec.foo")", duplicate_warning("spec.replicas")});
  EXPECT_EQ(error.code(), Code::bad_request);
  EXPECT_EQ(error.text(), R"(Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: )"
                          R"(unknown field "spec.foo", duplicate field "spec.replicas")");
}

TEST(Decode, refuses_what_has_another_type_and_says_where) {
  struct Row {
    const Kind& kind;
    const char* input;
    const char* want;
  };
  for (const Row& row : {
           Row{kPod, "[]", "the body: expected an object, found a list"},
           Row{kPod, R"({"spec":{"containers":{}}})", "spec.containers: expected a list, found an object"},
           Row{kPod, R"({"spec":{"containers":[{"env":[{"name":"A","value":1}]}]}})",
               "spec.containers[0].env[0].value: expected a string, found the number 1 (put it in quotes)"},
           Row{kPod, R"({"spec":{"containers":[{"ports":[{"containerPort":"80"}]}]}})",
               R"(spec.containers[0].ports[0].containerPort: expected an integer of 32 bits, found the string "80")"},
           Row{kPod, R"({"spec":{"terminationGracePeriodSeconds":1.5}})",
               "spec.terminationGracePeriodSeconds: expected an integer, found the number 1.5E0"},
           Row{kDeployment, R"({"spec":{"replicas":3000000000}})",
               "spec.replicas: expected an integer of 32 bits, found the number 3000000000"},
           Row{kPod, R"({"spec":{"hostNetwork":"yes"}})", R"(spec.hostNetwork: expected true or false, found the string "yes")"},
           Row{kPod, R"({"metadata":{"labels":{"a":true}}})",
               "metadata.labels[a]: expected a string, found the boolean true (put it in quotes)"},
           Row{kPod, R"({"metadata":{"creationTimestamp":"soon"}})",
               R"(metadata.creationTimestamp: expected a time like 2006-01-02T15:04:05Z, found "soon")"},
           Row{kSecret, R"({"data":{"a":"%%"}})", "data[a]: "},
           Row{kNode, R"({"status":{"capacity":{"cpu":"many"}}})", "status.capacity[cpu]: "},
           Row{kService, R"({"spec":{"ports":[{"targetPort":true}]}})",
               "spec.ports[0].targetPort: expected an integer or a string, found the boolean true"},
       }) {
    Outcome outcome = decoded(row.kind, row.input);
    EXPECT_NE(outcome.error.find(row.want), std::string::npos) << outcome.error << "\nwanted: " << row.want;
    EXPECT_EQ(outcome.error.find(std::string(row.kind.kind) + " in version \"v1\" cannot be handled as a "), 0u);
  }
}

TEST(Decode, messages_never_hold_values_of_secrets) {
  for (const char* input :
       {R"({"data":{"password":12345678}})", R"({"data":{"password":"hunter2 hunter2"}})", R"({"data":"hunter2"})",
        R"({"stringData":{"password":true,"other":12345678}})", R"({"stringData":{"password":["hunter2"]}})",
        R"({"data":{"a":"aGk="},"immutable":"hunter2"})", R"({"metadata":{"annotations":{"x":12345678}}})",
        R"({"metadata":{"creationTimestamp":"hunter2"}})"}) {
    Outcome outcome = decoded(kSecret, input);
    ASSERT_FALSE(outcome.error.empty()) << input;
    for (const char* value : {"hunter2", "12345678", "true (put"})
      EXPECT_EQ(outcome.error.find(value), std::string::npos) << outcome.error;
  }
  EXPECT_NE(decoded(kSecret, R"({"stringData":{"n":5}})").error.find("stringData[n]: expected a string, found a number"),
            std::string::npos);
}

TEST(Decode, takes_times_of_all_years) {
  struct Row {
    const char *given, *want;
  };
  for (const Row& row :
       {Row{"0001-01-01T00:00:02Z", "\"0001-01-01T00:00:02Z\""}, Row{"9999-12-31T23:59:59Z", "\"9999-12-31T23:59:59Z\""},
        Row{"1500-06-01T01:00:00+01:00", "\"1500-06-01T00:00:00Z\""}, Row{"0001-01-01T00:00:00Z", "null"},
        Row{"0001-01-01T01:00:00+01:00", "null"}, Row{"2026-12-31T23:59:60Z", "\"2027-01-01T00:00:00Z\""},
        Row{"2026-01-02t03:04:05Z", "\"2026-01-02T03:04:05Z\""}, Row{"2026-01-02T03:04:05z", "\"2026-01-02T03:04:05Z\""}}) {
    auto result = decode(catalog().of(kPod).type(), json::object{{"metadata", json::object{{"deletionTimestamp", row.given}}}});
    ASSERT_TRUE(result) << row.given << result.error().text();
    const json::value* time = find(result->value, "metadata.deletionTimestamp");
    EXPECT_EQ(time ? to_text(*time) : "null", row.want) << row.given;
  }
  for (const auto& [given, want] : {std::pair{"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
                                    std::pair{"2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05.123456Z"},
                                    std::pair{"2026-01-02t03:04:05.123456z", "2026-01-02T03:04:05.123456Z"},
                                    std::pair{"2026-12-31T23:59:60.000001Z", "2027-01-01T00:00:00.000001Z"},
                                    std::pair{"2026-01-02T03:04:05.1+00:00", "2026-01-02T03:04:05.100000Z"}}) {
    std::string body = R"({"spec":{"renewTime":")" + std::string(given) + "\"}}", text = decoded(kLease, body.c_str()).text;
    EXPECT_NE(text.find("\"" + std::string(want) + "\""), std::string::npos) << text;
  }
}

TEST(Decode, bounds_the_paths_that_it_names) {
  json::object many;
  for (int i = 0; i < 200; ++i) many["f" + std::to_string(i)] = 1;
  json::value body = json::object{{"spec", json::object{{std::string(1'000'000, 'k'), 1}}}, {"metadata", many}};
  auto result = decode(catalog().of(kPod).type(), body);
  ASSERT_TRUE(result);
  for (const std::string& warning : result->warnings) EXPECT_LT(warning.size(), kPathBytesMax + 50);
}

TEST(Decode, null_items_become_empty_ones) {
  EXPECT_NE(decoded(kPod, R"({"spec":{"containers":[null]}})").text.find(R"("containers":[{"name":"","resources":{}}])"),
            std::string::npos);
}

}  // namespace
}  // namespace coracle::schema
