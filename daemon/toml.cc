// SPDX-License-Identifier: Apache-2.0
// See toml.h.
#include "daemon/toml.h"

#include <set>
#include <utility>

#include "runtime/base/text.h"

namespace coracle {
namespace {

constexpr int kNestingMax = 16;

using TomlPath = std::vector<std::string>;

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// `text` with every `c` replaced.
std::string with_each(std::string_view text, char c, std::string_view by) {
  std::string out;
  for (char each : text) each == c ? out.append(by) : out.append(1, each);
  return out;
}

class TomlReader {
 public:
  explicit TomlReader(std::string_view text) : text_(text) { toml_.root = json::object(); }

  Result<Toml> read() {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    TomlPath table;
    for (skip_lines(); at_ < text_.size(); skip_lines()) {
      if (peek() == '[') table = TRY(read_header());
      else TRY(read_field(toml_.root.get_object(), {}, table));
      TRY(read_end_of_line());
    }
    return std::move(toml_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    if (wanted == '\n') ++line_;
    ++at_;
    return true;
  }
  void skip_spaces() {
    while (take(' ') || take('\t')) {
    }
  }
  void skip_comment() {
    if (peek() != '#') return;
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  void skip_lines() {
    do {
      skip_spaces();
      skip_comment();
      if (text_.substr(at_).starts_with("\r\n")) ++at_;
    } while (take('\n'));
  }
  Error wrong(const std::string& what) const { return Error(Code::invalid, "line " + std::to_string(line_) + ": " + what); }

  Result<void> read_end_of_line() {
    skip_spaces();
    skip_comment();
    if (text_.substr(at_).starts_with("\r\n")) ++at_;
    if (at_ < text_.size() && !take('\n')) return wrong("more follows what is complete");
    return {};
  }

  // "[a.b]"; the table, which is empty until its fields follow.
  Result<TomlPath> read_header() {
    take('[');
    if (peek() == '[') return wrong("arrays of tables are not known here");
    TomlPath path = TRY(read_key());
    if (!take(']')) return wrong("']' is missing");
    if (!headers_.insert(path).second) return wrong("[" + shown_path(path) + "] is there twice");
    TRY(table_at(toml_.root.get_object(), {}, path));
    return path;
  }

  // "a.b = value". `base`: the path of `root`; the key is below `table` there.
  Result<void> read_field(json::object& root, const TomlPath& base, const TomlPath& table, int depth = 0) {
    TomlPath path = table;
    TomlPath key = TRY(read_key());
    path.insert(path.end(), key.begin(), key.end());
    if (!take('=')) return wrong("'=' is missing");
    skip_spaces();
    const size_t line = line_;
    TomlPath whole = base;
    whole.insert(whole.end(), path.begin(), path.end());
    json::value value = TRY(read_value(whole, depth));
    const std::string name = path.back();
    path.pop_back();
    json::object* into = TRY(table_at(root, base, path));
    if (into->contains(name)) return wrong(shown_path({name}) + " is there twice");
    into->emplace(name, std::move(value));
    toml_.lines[whole] = line;
    return {};
  }

  // The table at the path below `root`, made where it is missing.
  Result<json::object*> table_at(json::object& root, const TomlPath& base, const TomlPath& path) {
    json::object* at = &root;
    TomlPath whole = base;
    for (const std::string& name : path) {
      whole.push_back(name);
      toml_.lines.try_emplace(whole, line_);
      json::value& next = at->emplace(name, json::object()).first->value();
      if (!next.is_object() || inline_.contains(whole))
        return wrong(shown_path(whole) + " is there already, and is no open table");
      at = &next.get_object();
    }
    return at;
  }

  Result<TomlPath> read_key() {
    TomlPath path;
    do {
      skip_spaces();
      if (peek() == '"' || peek() == '\'') {
        std::string part = TRY(read_string());
        path.push_back(std::move(part));
      } else {
        const size_t start = at_;
        while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
        if (at_ == start) return wrong("a name is missing");
        path.emplace_back(text_.substr(start, at_ - start));
      }
      skip_spaces();
    } while (take('.'));
    return path;
  }

  Result<std::string> read_string() {
    const char quote = text_[at_++];
    if (text_.substr(at_).starts_with(std::string(2, quote))) return wrong("strings of several lines are not known here");
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') at_ += quote == '"' && text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size() || text_[at_] != quote) return wrong("a quote is missing");
    std::string raw(text_.substr(start, at_ - start));
    ++at_;
    if (quote == '\'') return raw;
    // JSON has the same escapes, but no tab as it is.
    auto plain = parse_json("\"" + with_each(raw, '\t', "\\t") + "\"");
    if (!plain || !plain->is_string()) return wrong("no text: " + (plain ? std::string() : plain.error().text()));
    return std::string(plain->get_string());
  }

  Result<json::value> read_value(const TomlPath& path, int depth) {
    if (depth > kNestingMax) return wrong("more than " + std::to_string(kNestingMax) + " levels");
    const char first = peek();
    if (first == '"' || first == '\'') {
      std::string text = TRY(read_string());
      return json::value(std::move(text));
    }
    if (first == '[') return read_array(path, depth);
    if (first == '{') return read_inline_table(path, depth);
    const size_t start = at_;
    while (at_ < text_.size() && (is_bare(text_[at_]) || text_[at_] == '+' || text_[at_] == '.' || text_[at_] == ':')) ++at_;
    std::string word(text_.substr(start, at_ - start));
    if (word == "true" || word == "false") return json::value(word == "true");
    const std::string digits = with_each(word.starts_with('+') ? word.substr(1) : word, '_', "");
    if (auto number = parse_number<int64_t>(digits)) return json::value(*number);
    if (word.empty()) return wrong("a value is missing");
    return wrong("the value is no text in quotes, no whole number, true or false");  // without it: it may be a password
  }

  Result<json::value> read_array(const TomlPath& path, int depth) {
    take('[');
    json::array list;
    for (;;) {
      skip_lines();
      if (take(']')) return json::value(std::move(list));
      json::value item = TRY(read_value(path, depth + 1));
      list.push_back(std::move(item));
      skip_lines();
      if (!take(',') && peek() != ']') return wrong("',' or ']' is missing");
    }
  }

  Result<json::value> read_inline_table(const TomlPath& path, int depth) {
    take('{');
    json::object table;
    skip_spaces();
    if (!take('}')) {
      do TRY(read_field(table, path, {}, depth + 1));
      while (skip_spaces(), take(','));
      skip_spaces();
      if (!take('}')) return wrong("',' or '}' is missing");
    }
    inline_.insert(path);
    return json::value(std::move(table));
  }

  std::string_view text_;
  size_t at_ = 0, line_ = 1;
  Toml toml_;
  std::set<TomlPath> headers_, inline_;  // the tables that were begun by a header; those that are complete
};

}  // namespace

size_t Toml::line_of(std::vector<std::string> path) const {
  for (; !path.empty(); path.pop_back())
    if (auto found = lines.find(path); found != lines.end()) return found->second;
  return 0;
}

Result<Toml> parse_toml(std::string_view text) { return TomlReader(text).read(); }

}  // namespace coracle
