// SPDX-License-Identifier: Apache-2.0
// The text helpers.
#include "runtime/base/text.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Text, numbers_consume_everything) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x1", "99999999999"}) EXPECT_FALSE(parse_number<int>(text)) << text;
  EXPECT_FALSE(parse_number<uint32_t>("-1"));
}

TEST(Text, base64_goes_and_comes) {
  for (std::string text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
    EXPECT_EQ(*base64_decode(base64_encode(text)), text);
    EXPECT_EQ(*base64url_decode(base64url_encode(text)), text);
  }
  EXPECT_EQ(base64_encode("fo"), "Zm8=");
  for (const char* text : {"Zm8", "Zm8==", "Z", "Zm8*", "===="}) EXPECT_FALSE(base64_decode(text)) << text;
}

TEST(Text, percent_codes_go_and_come) {
  EXPECT_EQ(percent_encode("a b/ü"), "a%20b%2F%C3%BC");
  EXPECT_EQ(*percent_decode("a%20b%2F"), "a b/");
  for (const char* text : {"%", "%4", "%zz", "a%"}) EXPECT_FALSE(percent_decode(text)) << text;
}

TEST(Text, utf8_is_well_formed_or_not) {
  for (std::string_view text : {"", "plain", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x9a\xa3", "\xef\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text));
  for (std::string_view text : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "a\xc3z"})
    EXPECT_FALSE(is_utf8(text)) << hex(text);
}

TEST(Text, is_made_utf8_and_cut_between_characters) {
  EXPECT_EQ(as_utf8("a\xff\xc3\xa9\xe2\x82"), "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(as_utf8("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(shortened_text("a\xc3\xa9z", 4), "a\xc3\xa9z");
  EXPECT_EQ(shortened_text("a\xc3\xa9z", 3), "a\xc3\xa9...");
  EXPECT_EQ(shortened_text("a\xc3\xa9z", 2), "a...");
}

TEST(Text, control_characters_are_written_out) {
  EXPECT_EQ(quoted("a\"b\\\n\x1b\x7f"), "\"a\\\"b\\\\\\n\\x1b\\x7f\"");
  EXPECT_EQ(one_line("a\"b\\\r\n\t\x1b[0m\xc3\xa4"), "a\"b\\\\r\\n\\t\\x1b[0m\xc3\xa4");
}

TEST(Text, shows_urls_without_what_is_secret) {
  for (const auto& [url, want] :
       {std::pair("https://host:5000/v2/a", "https://host:5000/v2/a"),
        std::pair("https://me:pass@host/v2/a?x=1", "https://host/v2/a"), std::pair("https://me:p@ss@host", "https://host"),
        std::pair("me:pass@host:5000/a", "host:5000/a"), std::pair("https://host/a@b?sig=me:pass@c", "https://host/a@b"),
        std::pair("https://me:p/s?s#1@host/a?b=1", "https://host/a"),
        std::pair("https://[::1]:5000/a@b", "https://[::1]:5000/a@b"), std::pair("https://[::1]/a@b", "https://[::1]/a@b"),
        std::pair("/v2/a?sig=1", "/v2/a"), std::pair("", ""), std::pair("?", "")})
    EXPECT_EQ(shown_url(url), want) << url;
  EXPECT_EQ(userinfo_of("https://me:p@ss@host/x@y"), "me:p@ss");
  EXPECT_EQ(userinfo_of("https://host/x@y"), "");
  EXPECT_EQ(shown_path({"host", "https://me:pass@m:5000", "ca"}), "host.https://m:5000.ca");
  EXPECT_EQ(shown_path({"rewrite", "^a?b$"}), "rewrite.^a?b$") << "a question mark is not all";
}

TEST(Text, splits_without_losing_parts) {
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(split("", ',').size(), 1u);
  EXPECT_EQ(trim("\t a b \r\n"), "a b");
}

}  // namespace
}  // namespace coracle
