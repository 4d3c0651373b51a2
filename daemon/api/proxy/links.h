// SPDX-License-Identifier: Apache-2.0
// Rewrites links in a streamed HTML page: it replaces the values of attributes that contain URLs and copies every other byte. It
// holds at most one tag in memory; a tag longer than kTagBytesMax is copied unchanged.
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
  // Gets a URL with character references resolved and returns its replacement. nullopt: it stays unchanged.
  using Rewrite = std::function<std::optional<std::string>(std::string_view url)>;
  explicit LinkRewriter(Rewrite rewrite) : rewrite_(std::move(rewrite)) {}

  void feed(std::string_view page, std::string& out);
  void end(std::string& out);  // writes what was held back: an unfinished tag

 private:
  enum class Place {
    text,
    comment,   // <!-- -->
    bogus,     // <!DOCTYPE html>, <?xml ?>, </ >: up to the next >
    tag,       // held back
    long_tag,  // too long to be held back
    raw,       // in <script> and similar elements: up to their end tag
    plain,     // after <plaintext>: up to the end of the page
  };
  enum class Part { name, before_attribute, attribute, after_attribute, before_value, double_quoted, single_quoted, unquoted };
  struct Attribute {  // offsets in the tag
    size_t name = 0, name_end = 0, value = 0, value_end = 0;
    bool has_value = false, quoted = false;
  };

  // Each function processes bytes at the beginning of `left` and returns their number; 0: it needs more bytes.
  size_t step(std::string_view left, std::string& out);
  size_t step_text(std::string_view left, std::string& out);
  size_t step_tag(std::string_view left, std::string& out);
  size_t step_long_tag(std::string_view left, std::string& out);
  size_t step_raw(std::string_view left, std::string& out);
  size_t pass_until(std::string_view mark, std::string_view left, std::string& out);

  void begin_tag(bool closing);
  bool walk(char c, size_t at);  // one byte of a tag; true: it was the last one
  void begin_attribute(size_t at);
  void end_tag(std::string_view tag, std::string& out);
  void leave_tag();

  Rewrite rewrite_;
  Place place_ = Place::text;
  std::string held_;
  std::string element_;  // the tag's name in lower case
  bool closing_ = false;
  Part part_ = Part::name;
  size_t walked_ = 0;
  std::vector<Attribute> attributes_;
};

// Resolves &amp; &lt; &gt; &quot; &apos; and numeric references; other text stays unchanged.
std::string resolve_references(std::string_view text);

}  // namespace coracle::api
