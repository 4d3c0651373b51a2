// SPDX-License-Identifier: Apache-2.0
// Links in a page: which ones are rewritten, and that everything else is unchanged, wherever the page is split.
#include "daemon/api/proxy/links.h"

#include <gtest/gtest.h>

#include "daemon/api/recode.h"
#include "runtime/base/text.h"

namespace coracle::api {
namespace {

std::optional<std::string> through(std::string_view url) {
  if (url == "bad") return std::nullopt;
  return url.starts_with('/') ? "/P" + std::string(url) : std::string(url);
}

std::string rewritten(std::string_view page, size_t piece = std::string_view::npos) {
  LinkRewriter links(through);
  std::string out;
  while (!page.empty()) {
    links.feed(page.substr(0, piece), out);
    page.remove_prefix(std::min(piece, page.size()));
  }
  links.end(out);
  return out;
}

struct Row {
  const char *page, *want;
};
const Row kRows[] = {
    {R"(<a href="/x">test</a>)", R"(<a href="/P/x">test</a>)"},
    {R"(<A class=b HREF='/x' id="i">)", R"(<A class=b HREF='/P/x' id="i">)"},
    {R"(<a href=/x>y)", R"(<a href="/P/x">y)"},
    {R"(<a href = "/x" >)", R"(<a href = "/P/x" >)"},
    {R"(<img src="/a" longdesc=/b alt="/c"/>)", R"(<img src="/P/a" longdesc="/P/b" alt="/c"/>)"},
    {R"(<form action="/f?a=1&amp;b=2">)", R"(<form action="/P/f?a=1&amp;b=2">)"},
    {R"(<a href="&#47;x">)", R"(<a href="/P/x">)"},
    {R"(<a href="/x'y">)", R"(<a href="/P/x&#39;y">)"},
    {R"(<a href="x"><a href="bad"><a href><a href=>)", R"(<a href="x"><a href="bad"><a href><a href=>)"},
    {R"(<p href="/x"><td background="/x">)", R"(<p href="/x"><td background="/x">)"},
    {R"(<a title="> <a href='/x'" href="/y">)", R"(<a title="> <a href='/x'" href="/P/y">)"},
    {R"(</a href="/x"> 1 < 2 <3 <> </> </ a>)", R"(</a href="/x"> 1 < 2 <3 <> </> </ a>)"},
    {R"(<!-- <a href="/x"> --><a href="/y"><!--><a href="/z">)", R"(<!-- <a href="/x"> --><a href="/P/y"><!--><a href="/P/z">)"},
    {R"(<!DOCTYPE html><?xml <a?><a href="/y">)", R"(<!DOCTYPE html><?xml <a?><a href="/P/y">)"},
    {R"(<script src="/s.js">'<a href="/x">'</scripty></script ><a href="/y">)",
     R"(<script src="/P/s.js">'<a href="/x">'</scripty></script ><a href="/P/y">)"},
    {R"(<style><a href="/x"></STYLE><a href="/y">)", R"(<style><a href="/x"></STYLE><a href="/P/y">)"},
    {R"(<textarea><a href="/x"></textarea><title><a href="/x"></title><a href="/y">)",
     R"(<textarea><a href="/x"></textarea><title><a href="/x"></title><a href="/P/y">)"},
    {R"(<plaintext><a href="/x"></plaintext><a href="/y">)", R"(<plaintext><a href="/x"></plaintext><a href="/y">)"},
    {R"(text <a href="/x)", R"(text <a href="/x)"},
    {"<", "<"},
    {"", ""},
};

TEST(Links, are_rewritten_where_they_are_links) {
  for (const Row& row : kRows) EXPECT_EQ(rewritten(row.page), row.want);
}

TEST(Links, are_rewritten_however_the_page_is_cut) {
  for (const Row& row : kRows)
    for (size_t piece = 1; piece < 8; piece++) EXPECT_EQ(rewritten(row.page, piece), row.want) << piece;
}

TEST(Links, of_each_element_that_has_them) {
  for (const char* link :
       {"a href",          "applet codebase",   "area href",      "audio src",       "base href",       "blockquote cite",
        "body background", "button formaction", "command icon",   "del cite",        "embed src",       "form action",
        "frame longdesc",  "frame src",         "head profile",   "html manifest",   "iframe longdesc", "iframe src",
        "img longdesc",    "img src",           "img usemap",     "input src",       "input usemap",    "input formaction",
        "ins cite",        "link href",         "object classid", "object codebase", "object data",     "object usemap",
        "q cite",          "script src",        "source src",     "video poster",    "video src"})
    EXPECT_EQ(rewritten("<" + std::string(link) + "=\"/x\">"), "<" + std::string(link) + "=\"/P/x\">");
}

TEST(Links, a_tag_without_end_is_not_held_for_ever) {
  std::string data(3 * kTagBytesMax, 'd'), page = "<img alt='>' src=\"data:" + data + "\"><a href=\"/x\">";
  LinkRewriter links(through);
  std::string out;
  links.feed(std::string_view(page).substr(0, 2 * kTagBytesMax), out);
  EXPECT_EQ(out.size(), 2 * kTagBytesMax);  // already passed on
  links.feed(std::string_view(page).substr(2 * kTagBytesMax), out);
  EXPECT_EQ(out, "<img alt='>' src=\"data:" + data + "\"><a href=\"/P/x\">");
  EXPECT_EQ(rewritten("<script x=\"" + data + "\"><a href=\"/x\"></script><a href=\"/y\">"),
            "<script x=\"" + data + "\"><a href=\"/x\"></script><a href=\"/P/y\">");
}

TEST(Links, references_are_resolved) {
  EXPECT_EQ(resolve_references("a&amp;b&lt;&gt;&quot;&apos;&#x2F;&#47;&#228;&#8364;&#128512;"), "a&b<>\"'//ä€😀");
  EXPECT_EQ(resolve_references("&;&amp&nosuch;&#;&#xg;&&amp;"), "&;&amp&nosuch;&#;&#xg;&&");
  EXPECT_EQ(resolve_references("&#0;&#xD800;"), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Recode, what_was_packed_is_unpacked_in_pieces_of_any_size) {
  std::string page;
  for (int i = 0; i < 20'000; i++) page += "line " + std::to_string(i * 7919 % 1000) + "\n";
  for (Coding coding : {Coding::gzip, Coding::deflate, Coding::none}) {
    Packer packer(coding);
    ASSERT_TRUE(packer.works());
    std::string packed;
    for (size_t at = 0; at < page.size(); at += 5000) packer.feed(std::string_view(page).substr(at, 5000), packed);
    packer.end(packed);
    if (coding != Coding::none) {
      EXPECT_LT(packed.size(), page.size() / 2);
    }
    Unpacker unpacker(coding);
    std::string back;
    size_t largest = 0;
    for (size_t at = 0; at < packed.size(); at += 777)
      EXPECT_TRUE(unpacker.feed(std::string_view(packed).substr(at, 777), [&](std::string_view piece) {
        largest = std::max(largest, piece.size());
        return back += piece, true;
      }));
    EXPECT_EQ(back, page);
    EXPECT_LE(largest, size_t(16 << 10));
  }
}

TEST(Recode, bare_deflate_is_understood_and_nonsense_is_not) {
  Unpacker bare(Coding::deflate);
  std::string out;
  EXPECT_TRUE(bare.feed(MUST(base64_decode("y0jNyclXKM8vykkBAA==")), [&](std::string_view piece) { return out += piece, true; }));
  EXPECT_EQ(out, "hello world");
  Unpacker nonsense(Coding::gzip);
  EXPECT_FALSE(nonsense.feed("this is no gzip", [](std::string_view) { return true; }));
}

}  // namespace
}  // namespace coracle::api
