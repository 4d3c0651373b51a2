// SPDX-License-Identifier: Apache-2.0
// See links.h.
#include "daemon/api/proxy/links.h"

#include <algorithm>

#include "daemon/api/proxy/html.h"
#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr size_t kAttributesMax = 1000;  // per tag; further ones stay unchanged
constexpr size_t kElementBytesMax = 32;  // of a name; relevant names are shorter
constexpr size_t kReferenceBytesMax = 12;

struct Row {
  std::string_view element, attributes;
};
constexpr Row kLinks[] = {
    {"a", "href"},
    {"applet", "codebase"},
    {"area", "href"},
    {"audio", "src"},
    {"base", "href"},
    {"blockquote", "cite"},
    {"body", "background"},
    {"button", "formaction"},
    {"command", "icon"},
    {"del", "cite"},
    {"embed", "src"},
    {"form", "action"},
    {"frame", "longdesc,src"},
    {"head", "profile"},
    {"html", "manifest"},
    {"iframe", "longdesc,src"},
    {"img", "longdesc,src,usemap"},
    {"input", "formaction,src,usemap"},
    {"ins", "cite"},
    {"link", "href"},
    {"object", "classid,codebase,data,usemap"},
    {"q", "cite"},
    {"script", "src"},
    {"source", "src"},
    {"video", "poster,src"},
};
constexpr std::string_view kRawElements[] = {"iframe", "noembed",  "noframes", "noscript", "script",
                                             "style",  "textarea", "title",    "xmp"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view links_of(std::string_view element) {
  auto found = std::find_if(std::begin(kLinks), std::end(kLinks), [&](const Row& row) { return row.element == element; });
  return found == std::end(kLinks) ? std::string_view() : found->attributes;
}

bool is_among(std::string_view commas, std::string_view word) {
  auto words = split(commas, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

void append_utf8(std::string& out, uint32_t c) {
  if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  if (c < 0x80) return out.push_back(char(c));
  if (c < 0x800) return out.push_back(char(0xc0 | c >> 6)), out.push_back(char(0x80 | (c & 0x3f)));
  if (c < 0x10000) out.push_back(char(0xe0 | c >> 12));
  else out.push_back(char(0xf0 | c >> 18)), out.push_back(char(0x80 | (c >> 12 & 0x3f)));
  out.push_back(char(0x80 | (c >> 6 & 0x3f)));
  out.push_back(char(0x80 | (c & 0x3f)));
}

// Decodes the name between & and ;.
bool append_reference(std::string& out, std::string_view name) {
  static constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, c] : kNamed)
    if (name == known) return out.push_back(c), true;
  if (!name.starts_with('#')) return false;
  bool in_hex = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
  auto number = parse_number<uint32_t>(name.substr(in_hex ? 2 : 1), in_hex ? 16 : 10);
  if (number) append_utf8(out, *number);
  return number.has_value();
}

}  // namespace

std::string resolve_references(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at++) {
    size_t end = text[at] == '&' ? text.substr(at, kReferenceBytesMax).find(';') : text.npos;
    if (end != text.npos && append_reference(out, text.substr(at + 1, end - 1))) at += end;
    else out += text[at];
  }
  return out;
}

void LinkRewriter::feed(std::string_view page, std::string& out) {
  held_ += page;
  size_t done = 0;
  while (done < held_.size()) {
    size_t count = step(std::string_view(held_).substr(done), out);
    if (count == 0) break;
    done += count;
  }
  held_.erase(0, done);
}

void LinkRewriter::end(std::string& out) { out += std::exchange(held_, {}); }

size_t LinkRewriter::step(std::string_view left, std::string& out) {
  switch (place_) {
    case Place::text: return step_text(left, out);
    case Place::comment: return pass_until("-->", left, out);
    case Place::bogus: return pass_until(">", left, out);
    case Place::tag: return step_tag(left, out);
    case Place::long_tag: return step_long_tag(left, out);
    case Place::raw: return step_raw(left, out);
    case Place::plain: break;
  }
  out += left;
  return left.size();
}

size_t LinkRewriter::step_text(std::string_view left, std::string& out) {
  size_t open = std::min(left.find('<'), left.size());
  if (open > 0) return out += left.substr(0, open), open;
  if (left.size() < 2) return 0;
  char next = left[1];
  if (is_letter(next)) return begin_tag(false), step_tag(left, out);
  if (next == '!' && left.size() < 4 && std::string_view("<!--").starts_with(left)) return 0;
  if (next == '/' && left.size() < 3) return 0;
  if (next == '/' && is_letter(left[2])) return begin_tag(true), step_tag(left, out);
  bool markup = next == '!' || next == '?' || next == '/';
  // The dashes of "<!--" are not consumed: in "<!-->" they also belong to the end.
  if (markup) place_ = left.starts_with("<!--") ? Place::comment : Place::bogus;
  size_t count = markup ? 2 : 1;
  out += left.substr(0, count);
  return count;
}

size_t LinkRewriter::pass_until(std::string_view mark, std::string_view left, std::string& out) {
  size_t found = left.find(mark);
  if (found != left.npos) place_ = Place::text;
  else if (left.size() < mark.size()) return 0;
  size_t count = found == left.npos ? left.size() - (mark.size() - 1) : found + mark.size();
  out += left.substr(0, count);
  return count;
}

size_t LinkRewriter::step_tag(std::string_view left, std::string& out) {
  while (walked_ < left.size()) {
    size_t at = walked_++;
    if (!walk(left[at], at)) continue;
    end_tag(left.substr(0, walked_), out);
    leave_tag();
    return walked_;
  }
  if (left.size() <= kTagBytesMax) return 0;
  place_ = Place::long_tag;
  attributes_.clear();
  out += left;
  return left.size();
}

size_t LinkRewriter::step_long_tag(std::string_view left, std::string& out) {
  size_t count = 0;
  bool ends = false;
  while (count < left.size() && !ends) ends = walk(left[count++], 0);
  attributes_.clear();
  if (ends) leave_tag();
  out += left.substr(0, count);
  return count;
}

// In raw text elements only the element's own end tag is a tag.
size_t LinkRewriter::step_raw(std::string_view left, std::string& out) {
  size_t open = left.find("</");
  if (open == left.npos) open = left.size() - (left.ends_with('<') ? 1 : 0);
  if (open > 0) return out += left.substr(0, open), open;
  std::string_view name = left.substr(std::min<size_t>(2, left.size()), element_.size());
  bool may_be = to_lower(name) == std::string_view(element_).substr(0, name.size());
  if (may_be && left.size() < 3 + element_.size()) return 0;
  if (may_be && (is_space(left[2 + element_.size()]) || left[2 + element_.size()] == '/' || left[2 + element_.size()] == '>'))
    return begin_tag(true), step_tag(left, out);
  out += left.substr(0, 2);
  return 2;
}

void LinkRewriter::begin_tag(bool closing) {
  place_ = Place::tag;
  part_ = Part::name;
  closing_ = closing;
  element_.clear();
  attributes_.clear();
  walked_ = closing ? 2 : 1;
}

void LinkRewriter::begin_attribute(size_t at) {
  part_ = Part::attribute;
  if (attributes_.size() < kAttributesMax) attributes_.push_back({at, at + 1, 0, 0, false, false});
}

bool LinkRewriter::walk(char c, size_t at) {
  Attribute none;
  bool counts = !attributes_.empty() && attributes_.size() < kAttributesMax;
  Attribute& attribute = counts ? attributes_.back() : none;
  bool ends = c == '>' && part_ != Part::double_quoted && part_ != Part::single_quoted;
  switch (part_) {
    case Part::name:
      if (is_space(c) || c == '/') part_ = Part::before_attribute;
      else if (!ends && element_.size() < kElementBytesMax) element_ += to_lower({&c, 1});
      break;
    case Part::before_attribute:
      if (!is_space(c) && c != '/' && !ends) begin_attribute(at);
      break;
    case Part::attribute:
      attribute.name_end = at;
      if (is_space(c)) part_ = Part::after_attribute;
      else if (c == '/') part_ = Part::before_attribute;
      else if (c == '=') part_ = Part::before_value;
      break;
    case Part::after_attribute:
      if (c == '/') part_ = Part::before_attribute;
      else if (c == '=') part_ = Part::before_value;
      else if (!is_space(c) && !ends) begin_attribute(at);
      break;
    case Part::before_value:
      if (is_space(c) || ends) break;
      attribute.has_value = true;
      attribute.quoted = c == '"' || c == '\'';
      attribute.value = attribute.quoted ? at + 1 : at;
      part_ = c == '"' ? Part::double_quoted : c == '\'' ? Part::single_quoted : Part::unquoted;
      break;
    case Part::double_quoted:
    case Part::single_quoted:
      if (c != (part_ == Part::double_quoted ? '"' : '\'')) break;
      attribute.value_end = at;
      part_ = Part::before_attribute;
      break;
    case Part::unquoted:
      if (!is_space(c) && !ends) break;
      attribute.value_end = at;
      part_ = Part::before_attribute;
      break;
  }
  return ends;
}

void LinkRewriter::end_tag(std::string_view tag, std::string& out) {
  std::string_view links = closing_ ? std::string_view() : links_of(element_);
  size_t written = 0;
  for (const Attribute& attribute : attributes_) {
    std::string name = to_lower(tag.substr(attribute.name, attribute.name_end - attribute.name));
    if (links.empty() || !attribute.has_value || !is_among(links, name)) continue;
    std::string before = resolve_references(tag.substr(attribute.value, attribute.value_end - attribute.value));
    auto after = rewrite_(before);
    if (!after || *after == before) continue;
    out += tag.substr(written, attribute.value - written);
    out += attribute.quoted ? escape_html(*after) : "\"" + escape_html(*after) + "\"";
    written = attribute.value_end;
  }
  out += tag.substr(written);
}

void LinkRewriter::leave_tag() {
  bool raw = std::find(std::begin(kRawElements), std::end(kRawElements), element_) != std::end(kRawElements);
  place_ = closing_ ? Place::text : raw ? Place::raw : element_ == "plaintext" ? Place::plain : Place::text;
}

}  // namespace coracle::api
