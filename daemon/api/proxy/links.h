// SPDX-License-Identifier: Apache-2.0
// Links of an HTML page on its way through: the attributes that hold URLs are given other values, every other byte stays what it
// was. The page is never held whole: at most one tag of it is, and one that is longer than kTagBytesMax passes as it is.
//   page ──feed (pieces of any size)──▶ tags ──rewrite(value)──▶ page
// Pure. Source: HTML Living Standard, "Tokenization"; HTML 4.01, index of attributes; apimachinery util/proxy (Transport).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coracle::api {

constexpr size_t kTagBytesMax = 64 << 10;

class LinkRewriter {
 public:
  // A URL as the page's reader would understand it, character references resolved. Nothing: it stays.
  using Rewrite = std::function<std::optional<std::string>(std::string_view url)>;
  explicit LinkRewriter(Rewrite rewrite) : rewrite_(std::move(rewrite)) {}

  void feed(std::string_view page, std::string& out);
  void end(std::string& out);  // what was held back: a tag that has no end

 private:
  enum class Place {
    text,
    comment,   // <!-- -->
    bogus,     // <!DOCTYPE html>, <?xml ?>, </ >: up to the next >
    tag,       // held back
    long_tag,  // too long to be held back
    raw,       // within <script> and its kind: up to their end tag
    plain,     // after <plaintext>: for ever
  };
  enum class Part { name, before_attribute, attribute, after_attribute, before_value, double_quoted, single_quoted, unquoted };
  struct Attribute {  // offsets in the tag
    size_t name = 0, name_end = 0, value = 0, value_end = 0;
    bool has_value = false, quoted = false;
  };

  // Each deals with bytes at the beginning of `left` and returns how many; 0: more are needed.
  size_t step(std::string_view left, std::string& out);
  size_t step_text(std::string_view left, std::string& out);
  size_t step_tag(std::string_view left, std::string& out);
  size_t step_long_tag(std::string_view left, std::string& out);
  size_t step_raw(std::string_view left, std::string& out);
  size_t pass_until(std::string_view mark, std::string_view left, std::string& out);

  void begin_tag(bool closing);
  bool walk(char c, size_t at);  // one byte of a tag; true: it was the last
  void begin_attribute(size_t at);
  void end_tag(std::string_view tag, std::string& out);
  void leave_tag();

  Rewrite rewrite_;
  Place place_ = Place::text;
  std::string held_;
  std::string element_;  // the tag's name, in lower case
  bool closing_ = false;
  Part part_ = Part::name;
  size_t walked_ = 0;
  std::vector<Attribute> attributes_;
};

// &amp; &lt; &gt; &quot; &apos; and numeric references; what is none of them stays.
std::string resolve_references(std::string_view text);

}  // namespace coracle::api
