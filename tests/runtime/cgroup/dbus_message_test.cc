// SPDX-License-Identifier: Apache-2.0
// D-Bus messages as bytes: a captured one of another program, round trips, and malformed ones.
#include "runtime/cgroup/dbus_message.h"

#include <gtest/gtest.h>

namespace coracle::cgroup {
namespace {

// The message that busctl(1) of systemd 252 sends for:
// busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StartTransientUnit
// 'ssa(sv)a(sa(sv))' a-b.scope fail 5 PIDs au 1 42 Delegate b true MemoryMax t 67108864 Environment as 2 x yy AllowedCPUs ay 2 3
// 1 0
constexpr char kCaptured[] =
    "l\x01\x04\x01\xb8\0\0\0\x02\0\0\0\xb6\0\0\0"
    "\x01\x01o\0\x19\0\0\0/org/freedesktop/systemd1\0\0\0\0\0\0\0"
    "\x03\x01s\0\x12\0\0\0StartTransientUnit\0\0\0\0\0\0"
    "\x02\x01s\0\x20\0\0\0org.freedesktop.systemd1.Manager\0\0\0\0\0\0\0\0"
    "\x06\x01s\0\x18\0\0\0org.freedesktop.systemd1\0\0\0\0\0\0\0\0"
    "\x08\x01g\0\x10ssa(sv)a(sa(sv))\0\0\0"
    "\x09\0\0\0a-b.scope\0\0\0\x04\0\0\0fail\0\0\0\0\x92\0\0\0"
    "\x04\0\0\0PIDs\0\x02"
    "au\0\0\0\0\x04\0\0\0*\0\0\0"
    "\x08\0\0\0Delegate\0\x01"
    "b\0\x01\0\0\0\0\0\0\0"
    "\x09\0\0\0MemoryMax\0\x01t\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\0"
    "\x0b\0\0\0Environment\0\x02"
    "as\0\x0f\0\0\0\x01\0\0\0x\0\0\0\x02\0\0\0yy\0\0"
    "\x0b\0\0\0AllowedCPUs\0\x02"
    "ay\0\x02\0\0\0\x03\x01\0\0\0\0\0";

std::string captured() { return std::string(kCaptured, sizeof kCaptured); }

Message start_transient_unit() {
  MessageWriter body;
  body.add("a-b.scope");
  body.add("fail");
  auto property = [&](const char* name, const auto& value) {
    body.begin_structure();
    body.add(name);
    body.add_variant(value);
  };
  body.add_array(8, [&] {
    property("PIDs", std::vector<uint32_t>{42});
    property("Delegate", true);
    property("MemoryMax", uint64_t{64} << 20);
    property("Environment", std::vector<std::string>{"x", "yy"});
    property("AllowedCPUs", std::vector<uint8_t>{3, 1});
  });
  body.add_array(8, [] {});
  return {.serial = 2,
          .destination = "org.freedesktop.systemd1",
          .path = "/org/freedesktop/systemd1",
          .interface = "org.freedesktop.systemd1.Manager",
          .member = "StartTransientUnit",
          .signature = "ssa(sv)a(sa(sv))",
          .body = body.bytes()};
}

TEST(DbusMessage, is_what_another_program_makes_of_the_same) {
  std::string ours = encode(start_transient_unit());
  ours[2] = 4;  // its only flag: interactive authorization is allowed
  EXPECT_EQ(ours, captured());
}

TEST(DbusMessage, another_programs_is_understood) {
  std::string bytes = captured();
  EXPECT_EQ(*message_length(bytes.substr(0, kMessageHead)), bytes.size());
  auto message = decode(bytes);
  ASSERT_TRUE(message) << message.error().text();
  EXPECT_EQ(*message, start_transient_unit());
  EXPECT_EQ(*first_words(*message), (std::vector<std::string>{"a-b.scope", "fail"}));
}

TEST(DbusMessage, numbers_stand_where_their_size_wants_them) {
  MessageWriter body;
  body.add(uint8_t{1});
  body.add(int64_t{-2});
  body.add(std::vector<int64_t>{3});
  body.add(int32_t{4});
  const char expected[] =
      "\1\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff"
      "\x08\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4\0\0";
  EXPECT_EQ(body.bytes(), std::string(expected, sizeof expected));
}

TEST(DbusMessage, answers_and_signals_survive_the_way) {
  MessageWriter words;
  words.add(uint32_t{7});
  words.add("/org/freedesktop/systemd1/job/7");
  words.add("a.scope");
  words.add("done");
  Message signal{.type = Message::Type::signal,
                 .serial = 9,
                 .path = "/org/freedesktop/systemd1",
                 .interface = "i.x",
                 .member = "JobRemoved",
                 .signature = "uoss",
                 .body = words.bytes()};
  EXPECT_EQ(*decode(encode(signal)), signal);
  EXPECT_EQ(*first_words(signal), (std::vector<std::string>{"7", "/org/freedesktop/systemd1/job/7", "a.scope", "done"}));
  Message error{.type = Message::Type::error, .serial = 1, .reply_serial = 8, .error_name = "org.x.Wrong"};
  EXPECT_EQ(*decode(encode(error)), error);
  EXPECT_TRUE(first_words(error)->empty());
}

TEST(DbusMessage, what_is_cut_off_or_changed_is_none) {
  const std::string whole = captured();
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_FALSE(decode(whole.substr(0, length))) << length;
  EXPECT_FALSE(decode(whole + "x"));
  auto with = [&](size_t at, char byte) {
    std::string changed = whole;
    changed[at] = byte;
    return decode(changed);
  };
  EXPECT_EQ(with(0, 'B').error().code(), Code::unsupported);
  EXPECT_FALSE(with(1, 5));        // the message's type
  EXPECT_FALSE(with(3, 2));        // the protocol's version
  EXPECT_FALSE(with(18, 's'));     // an invalid path
  EXPECT_FALSE(with(20, 0x7f));    // a string beyond the end
  EXPECT_FALSE(with(24, '\xff'));  // a string that is not UTF-8
  EXPECT_FALSE(with(24, '\0'));
  EXPECT_EQ(message_length(std::string("l\1\0\1\xff\xff\xff\x7f\1\0\0\0\0\0\0\0", 16)).error().code(), Code::too_large);
  Message lies = start_transient_unit();
  lies.body = std::string("\xff\xff\0\0abc", 7);
  EXPECT_FALSE(first_words(lies));
}

TEST(DbusMessage, fields_nobody_wants_are_passed_over) {
  // A signal with a sender, and a number of file descriptors.
  const char bytes[] =
      "l\4\0\1\0\0\0\0\3\0\0\0\x22\0\0\0"
      "\7\1s\0\4\0\0\0:1.7\0\0\0\0"
      "\x09\1u\0\0\0\0\0"
      "\3\1s\0\1\0\0\0X\0\0\0\0\0\0\0";
  auto message = decode(std::string(bytes, 56));
  ASSERT_TRUE(message) << message.error().text();
  EXPECT_EQ(message->member, "X");
  EXPECT_EQ(message->type, Message::Type::signal);
}

}  // namespace
}  // namespace coracle::cgroup
