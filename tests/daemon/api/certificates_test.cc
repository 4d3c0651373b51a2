// SPDX-License-Identifier: Apache-2.0
// Certificates that work on a machine without a correct clock, and their renewal.
#include "daemon/api/certificates.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::api {
namespace {

class Certificates : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/coracle-pki-XXXXXX";
    directory = ::mkdtemp(path);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string directory;
  FakeClock clock{WallTime(std::chrono::seconds(1'780'272'000))};  // 2026-06-01
  PkiNames names{{"localhost", "kubernetes"}, {"127.0.0.1", "::1", "192.0.2.7"}};
};

TEST_F(Certificates, are_made_once_and_kept) {
  Pki first = MUST(Pki::open(directory, names, clock)), second = MUST(Pki::open(directory, names, clock));
  EXPECT_EQ(first.ca().certificate, second.ca().certificate);
  EXPECT_EQ(first.serving().certificate, second.serving().certificate);
  EXPECT_EQ(first.token_key(), second.token_key());
  struct stat status {};
  for (const char* key : {"/ca.key", "/serving.key", "/admin.key", "/sa.key"}) {
    ASSERT_EQ(::stat((directory + key).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << key;
  }
}

TEST_F(Certificates, are_valid_from_where_clocks_begin) {
  Pki pki = MUST(Pki::open(directory, names, clock));
  for (const std::string& certificate : {pki.ca().certificate, pki.serving().certificate, pki.admin().certificate})
    EXPECT_EQ(MUST(read_certificate_info(certificate)).not_before, MUST(parse_time("1970-01-01T00:00:00Z")));
  EXPECT_GE(MUST(read_certificate_info(pki.ca().certificate)).not_after, MUST(parse_time("2056-01-01T00:00:00Z")));
}

TEST_F(Certificates, of_a_machine_whose_clock_stands_at_zero_are_valid_too) {
  FakeClock stopped{WallTime()};
  Pki pki = MUST(Pki::open(directory, names, stopped));
  EXPECT_GT(MUST(read_certificate_info(pki.serving().certificate)).not_after, MUST(parse_time("2025-01-01T00:00:00Z")));
}

TEST_F(Certificates, name_the_server_and_the_administrator) {
  Pki pki = MUST(Pki::open(directory, names, clock));
  CertificateInfo serving = MUST(read_certificate_info(pki.serving().certificate));
  EXPECT_EQ(serving.dns_names, (std::vector<std::string>{"kubernetes", "localhost"}));
  EXPECT_EQ(serving.addresses, (std::vector<std::string>{"127.0.0.1", "192.0.2.7", "::1"}));
  EXPECT_EQ(MUST(read_certificate_info(pki.admin().certificate)).organizations, std::vector<std::string>{"system:masters"});
  EXPECT_TRUE(signed_by(pki.serving().certificate, pki.ca().certificate));
  EXPECT_FALSE(signed_by(pki.serving().certificate, MUST(make_ca("other")).certificate));
}

TEST_F(Certificates, renew_when_they_are_about_to_end_or_the_address_has_changed) {
  Pki pki = MUST(Pki::open(directory, names, clock));
  std::string before = pki.serving().certificate;
  EXPECT_FALSE(MUST(pki.renew(names, clock)));
  names.addresses.push_back("192.0.2.8");
  EXPECT_TRUE(MUST(pki.renew(names, clock)));
  EXPECT_NE(pki.serving().certificate, before);
  before = pki.serving().certificate;
  clock.advance(kServingLifetime - kServingRenewBefore + std::chrono::hours(1));
  EXPECT_TRUE(MUST(pki.renew(names, clock)));
  EXPECT_NE(pki.serving().certificate, before);
  EXPECT_GT(MUST(read_certificate_info(pki.serving().certificate)).not_after, clock.now() + kServingRenewBefore);
}

TEST_F(Certificates, are_mended_but_a_broken_authority_is_told) {
  { Pki pki = MUST(Pki::open(directory, names, clock)); }
  std::ofstream(directory + "/serving.crt") << "damaged";
  Pki mended = MUST(Pki::open(directory, names, clock));
  EXPECT_TRUE(signed_by(mended.serving().certificate, mended.ca().certificate));
  std::filesystem::remove(directory + "/ca.key");
  auto broken = Pki::open(directory, names, clock);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().text().find("ca.key"), std::string::npos);
}

TEST_F(Certificates, go_into_a_kubeconfig_that_only_root_reads) {
  Pki pki = MUST(Pki::open(directory, names, clock));
  std::string path = directory + "/config", text = make_kubeconfig("https://127.0.0.1:6443", pki.ca().certificate, pki.admin());
  MUST(write_kubeconfig(path, text));
  EXPECT_EQ(MUST(sys::read_file(path)), text);
  struct stat status {};
  ::stat(path.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace coracle::api
