// SPDX-License-Identifier: Apache-2.0
// Status: Kubernetes' messages, and the conversion in both directions.
#include "store/object/status.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Status, words_errors_as_kubernetes_does) {
  struct Row {
    Error error;
    int http;
    const char* reason;
    const char* message;
  };
  const Row rows[] = {
      {not_found(kPod, "x"), 404, "NotFound", R"(pods "x" not found)"},
      {not_found(kDeployment, "x"), 404, "NotFound", R"(deployments.apps "x" not found)"},
      {already_exists(kPod, "x"), 409, "AlreadyExists", R"(pods "x" already exists)"},
      {stale_conflict(kPod, "x"), 409, "Conflict",
       R"(Operation cannot be fulfilled on pods "x": the object has been modified; please apply your changes to the latest version and try again)"},
      {invalid(kPod, "x", {required("spec.containers")}), 422, "Invalid",
       R"(Pod "x" is invalid: spec.containers: Required value)"},
      {invalid(kDeployment, "x", {required("a"), forbidden_field("b", "no")}), 422, "Invalid",
       R"(Deployment.apps "x" is invalid: [a: Required value, b: Forbidden: no])"},
      {invalid(kPod, "x", {required("a"), required("a")}), 422, "Invalid", R"(Pod "x" is invalid: a: Required value)"},
      {invalid(kPod, "x", {required("a"), required("b"), required("a")}), 422, "Invalid",
       R"(Pod "x" is invalid: [a: Required value, b: Required value])"},
      {internal_error("why"), 500, "InternalError", "Internal error occurred: why"},
      {forbidden(kPod, "", "no"), 403, "Forbidden", "pods is forbidden: no"},
      {expired("old"), 410, "Expired", "old"},
      {Error(Code::timeout, "late"), 504, "Timeout", "late"},
      {Error(Code::unsupported, "what"), 415, "UnsupportedMediaType", "what"},
  };
  for (const Row& row : rows) {
    json::value status = to_status(row.error);
    EXPECT_EQ(get_int(status, "code"), row.http) << row.message;
    EXPECT_EQ(get_string(status, "reason"), row.reason);
    EXPECT_EQ(get_string(status, "message"), row.message);
    EXPECT_EQ(get_string(status, "kind"), "Status");
    EXPECT_EQ(get_string(status, "status"), "Failure");
  }
}

TEST(Status, names_resource_or_kind_in_details) {
  EXPECT_EQ(get_string(to_status(not_found(kDeployment, "x")), "details.kind"), "deployments");
  EXPECT_EQ(get_string(to_status(not_found(kDeployment, "x")), "details.group"), "apps");
  EXPECT_EQ(get_string(to_status(invalid(kDeployment, "x", {})), "details.kind"), "Deployment");
  EXPECT_FALSE(find(to_status(bad_request("x")), "details"));
  EXPECT_EQ(to_text(*find(to_status(internal_error("why")), "details")), R"({"causes":[{"message":"why"}]})");
  EXPECT_EQ(to_text(*find(to_status(Error(Code::method_not_allowed, "no")), "details")), "{}");
}

TEST(Status, survives_the_way_there_and_back) {
  for (int code = 0; code <= int(Code::timeout); code++) {
    ErrorDetails details;
    details.name = "x";
    details.causes = {{"FieldValueInvalid", "m", "f"}};
    details.retry_after_seconds = 3;
    details.continue_token = "token";
    Error sent = Error(Code(code), "text").with(details);
    Error got = error_from_status(http_status(sent), to_text(to_status(sent)));
    EXPECT_EQ(got.code(), sent.code()) << code_name(Code(code));
    EXPECT_EQ(got.text(), "text");
    EXPECT_EQ(got.details()->causes, details.causes);
    EXPECT_EQ(got.details()->retry_after_seconds, 3);
    EXPECT_EQ(got.details()->continue_token, "token");
  }
}

TEST(Status, reads_answers_that_are_no_status) {
  EXPECT_EQ(error_from_status(404, "404 page not found").code(), Code::not_found);
  EXPECT_EQ(error_from_status(404, "404 page not found\n").text(), "the server answered 404: 404 page not found");
  EXPECT_EQ(error_from_status(502, "").code(), Code::unavailable);
  EXPECT_EQ(error_from_status(418, "{}").code(), Code::bad_request);
  EXPECT_EQ(error_from_status(429, "", 7).details()->retry_after_seconds, 7);
  EXPECT_LT(error_from_status(500, std::string(100'000, 'x')).text().size(), 1000u);
}

TEST(Status, is_utf8_whatever_a_client_sent) {
  EXPECT_EQ(get_string(to_status(bad_request("a\xff\xc3\xa9\xe2\x82")), "message"),
            "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Status, says_success) {
  EXPECT_EQ(
      to_text(success_status(&kPod, "x", "u")),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"x","kind":"pods","uid":"u"}})");
}

}  // namespace
}  // namespace coracle
