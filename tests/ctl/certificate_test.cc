// SPDX-License-Identifier: Apache-2.0
// Decisions about certificate signing requests, against a server that stores objects.
#include <gtest/gtest.h>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests/";

class CertificateTest : public testing::Test {
 protected:
  CertificateTest() {
    for (std::string name : {"one", "two"})
      api_.put(kRequests + name,
               R"({"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":")" + name +
                   R"("},"spec":{}})");
  }
  std::string decision_about(const std::string& name) {
    const json::value object = api_.objects().at(kRequests + name);
    std::string types;
    for (const json::value& one : get_array(object, "status.conditions")) types += std::string(get_string(one, "type")) + " ";
    return types;
  }

  FakeApi api_;
};

TEST_F(CertificateTest, a_failure_does_not_stop_the_others) {
  FakeApi::Outcome outcome = api_.run({"certificate", "approve", "one", "none", "two"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out,
            "certificatesigningrequest.certificates.k8s.io/one approved\ncertificatesigningrequest.certificates.k8s.io/two "
            "approved\n");
  EXPECT_NE(outcome.err.find("\"none\" not found"), std::string::npos) << outcome.err;
  EXPECT_EQ(decision_about("one") + decision_about("two"), "Approved Approved ");
}

TEST_F(CertificateTest, what_is_decided_stays) {
  EXPECT_EQ(api_.run({"certificate", "approve", "one"}).code, 0);
  api_.take_writes();
  EXPECT_EQ(api_.run({"certificate", "approve", "one"}).code, 0);
  for (const char* flag : {"--force", "--force=false"})
    EXPECT_EQ(api_.run({"certificate", "deny", "one", flag}).err,
              "error: certificate signing request \"one\" is already Approved\n");
  EXPECT_TRUE(api_.take_writes().empty());
  EXPECT_EQ(api_.run({"certificate", "approve", "one", "--force"}).code, 0);
  EXPECT_EQ(api_.take_writes().size(), 1u);
  EXPECT_EQ(decision_about("one"), "Approved ");
}

TEST_F(CertificateTest, a_change_of_others_is_read_again) {
  api_.refuse_writes(Error(Code::conflict, "it was changed").with({}));
  FakeApi::Outcome outcome = api_.run({"certificate", "deny", "two"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "Error from server (Conflict): it was changed\n");
  EXPECT_EQ(api_.take_writes().size(), 11u);
}

}  // namespace
}  // namespace coracle::ctl
