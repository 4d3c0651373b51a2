// SPDX-License-Identifier: Apache-2.0
// The pull record of an image: how the image came here, and which pods may use it.
#include "runtime/image/pulled_record.h"

#include <gtest/gtest.h>

namespace coracle::image {
namespace {

using runtime::Credentials;
using runtime::ImageAccess;

const Credentials kAlice{"r.example", "alice", "secret", "", "a/key/1"};

ImageAccess access(const PulledRecord& record, const std::string& repository, const std::vector<Credentials>& who) {
  std::optional<PulledWith> learned;
  return find_access(record, repository, who, learned);
}

TEST(PulledRecord, an_image_that_nobody_pulled_is_everybody_s) {
  PulledRecord record;
  EXPECT_EQ(access(record, "r.example/app", {}), ImageAccess::preloaded);
  note_import(record, "r.example/app");
  EXPECT_EQ(access(record, "r.example/app", {}), ImageAccess::preloaded);
  EXPECT_EQ(access(record, "", {}), ImageAccess::preloaded);
  const PulledWith with = pulled_with(kAlice);
  note_pull(record, "r.example/app", &with);
  EXPECT_EQ(access(record, "r.example/app", {}), ImageAccess::preloaded) << "it stays imported";
  EXPECT_EQ(access(record, "r.example/app", {kAlice}), ImageAccess::proven);
}

TEST(PulledRecord, what_came_without_credentials_is_everybody_s) {
  PulledRecord record;
  const PulledWith with = pulled_with(kAlice);
  note_pull(record, "r.example/app", &with);
  EXPECT_EQ(access(record, "r.example/app", {}), ImageAccess::unproven);
  note_pull(record, "r.example/app", nullptr);
  EXPECT_EQ(access(record, "r.example/app", {}), ImageAccess::proven);
  EXPECT_TRUE(record.repositories.at("r.example/app").credentials.empty());
}

TEST(PulledRecord, what_came_for_a_secret_is_for_who_has_it) {
  PulledRecord record;
  const PulledWith with = pulled_with(kAlice);
  note_pull(record, "r.example/app", &with);
  struct Row {
    const char* name;
    Credentials who;
    ImageAccess want;
    bool learned;
  };
  for (const Row& row : {
           Row{"the same", kAlice, ImageAccess::proven, false},
           Row{"the same password in another secret", {"r.example", "alice", "secret", "", "b/key/2"}, ImageAccess::proven, true},
           Row{"the secret has a new password", {"r.example", "alice", "new", "", "a/key/1"}, ImageAccess::proven, true},
           Row{"a new secret of that name", {"r.example", "alice", "new", "", "a/key/9"}, ImageAccess::unproven, false},
           Row{"the secret's part for another registry", {"o.example", "bob", "x", "", "a/key/1"}, ImageAccess::unproven, false},
           Row{"another's", {"r.example", "bob", "secret", "", "b/key/2"}, ImageAccess::unproven, false},
           Row{"parts that run together", {"r.example", "alices", "ecret", "", "b/key/2"}, ImageAccess::unproven, false},
           Row{"of no source", {"r.example", "bob", "x", "", ""}, ImageAccess::unproven, false},
       }) {
    std::optional<PulledWith> learned;
    EXPECT_EQ(find_access(record, "r.example/app", {row.who}, learned), row.want) << row.name;
    EXPECT_EQ(learned.has_value(), row.learned) << row.name;
    EXPECT_EQ(access(record, "", {row.who}), row.want) << row.name << ", by the image's id";
  }
  EXPECT_EQ(access(record, "r.example/other", {kAlice}), ImageAccess::unproven) << "of that repository nothing is known";
  EXPECT_EQ(access(record, "r.example/app", {}), ImageAccess::unproven);
}

TEST(PulledRecord, is_the_same_after_a_restart_and_bounded) {
  PulledRecord record;
  note_import(record, "a.example/imported");
  for (int i = 0; i < 100; ++i) {
    const PulledWith with = pulled_with({"r.example", "u" + std::to_string(i), "p", "", "n/s/" + std::to_string(i)});
    note_pull(record, "r.example/app", &with);
  }
  EXPECT_EQ(record.repositories.at("r.example/app").credentials.size(), kPulledCredentialsMax);
  EXPECT_EQ(access(record, "r.example/app", {{"r.example", "u99", "p", "", ""}}), ImageAccess::proven) << "the newest stay";
  EXPECT_EQ(access(record, "r.example/app", {{"r.example", "u0", "p", "", ""}}), ImageAccess::unproven);
  for (int i = 0; i < 100; ++i) note_pull(record, "s.example/" + std::to_string(i), nullptr);
  EXPECT_EQ(record.repositories.size(), kPulledRepositoriesMax + 1);
  EXPECT_EQ(access(record, "a.example/imported", {}), ImageAccess::preloaded);

  auto read = PulledRecord::from_json(record.to_json());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, record);
  EXPECT_LT(to_text(record.to_json()).size(), kPulledRecordMax);
  EXPECT_FALSE(PulledRecord::from_json(*parse_json("{}")).ok());
  EXPECT_EQ(to_text(record.to_json()).find("alice"), std::string::npos);

  PulledRecord lost;
  lost.noted = true;
  EXPECT_EQ(access(lost, "r.example/app", {kAlice}), ImageAccess::unproven);
  EXPECT_EQ(access(lost, "", {kAlice}), ImageAccess::unproven);
}

TEST(PulledRecord, a_secret_has_one_entry) {
  PulledRecord record;
  for (const char* password : {"old", "new", "newest"}) {
    const PulledWith with = pulled_with({"r.example", "alice", password, "", "a/key/1"});
    note_pull(record, "r.example/app", &with);
  }
  EXPECT_EQ(record.repositories.at("r.example/app").credentials.size(), 1u);
  EXPECT_EQ(access(record, "r.example/app", {{"r.example", "alice", "old", "", "b/key/2"}}), ImageAccess::unproven);
}

}  // namespace
}  // namespace coracle::image
