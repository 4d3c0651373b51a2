// SPDX-License-Identifier: Apache-2.0
// Evaluates the template while parsing it: a template is short and used once. See jsonpath.h.
#include "ctl/jsonpath.h"

#include <optional>
#include <utility>

#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

using Values = std::vector<const json::value*>;

constexpr int kDepthMax = 64;    // depth limit of the operator ..
constexpr int kNestingMax = 64;  // limit for nested ranges and filters

void descend(const json::value& at, Values& out, int depth) {  // appends the value and all its descendants
  if (depth > kDepthMax) return;
  out.push_back(&at);
  if (const auto* object = at.if_object())
    for (const auto& [key, child] : *object) descend(child, out, depth + 1);
  if (const auto* array = at.if_array())
    for (const auto& child : *array) descend(child, out, depth + 1);
}

Values field(const Values& from, std::string_view name) {
  Values out;
  for (const auto* value : from)
    if (const auto* object = value->if_object())
      if (const auto* child = object->if_contains(name)) out.push_back(child);
  return out;
}

Values children(const Values& from) {
  Values out;
  for (const auto* value : from) {
    if (const auto* object = value->if_object())
      for (const auto& [key, child] : *object) out.push_back(&child);
    if (const auto* array = value->if_array())
      for (const auto& child : *array) out.push_back(&child);
  }
  return out;
}

class Reader {
 public:
  Reader(std::string_view text, const json::value& root) : text_(text), root_(root) {}

  Error wrong(std::string_view what) const {
    return Error(Code::invalid,
                 "jsonpath: " + std::string(what) + " at position " + std::to_string(at_ + 1) + " of " + coracle::quoted(text_));
  }
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void skip_spaces() {
    while (peek() == ' ') ++at_;
  }

  Result<std::string> quoted_text() {  // called at the opening quote
    char quote = text_[at_++];
    std::string out;
    while (!done() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        char c = text_[++at_];
        out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      } else {
        out += text_[at_];
      }
      ++at_;
    }
    if (done()) return wrong("a quote is not closed");
    ++at_;
    return out;
  }

  std::string name() {  // a field name; "\." is a literal dot
    std::string out;
    while (!done()) {
      char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        out += text_[at_ + 1];
        at_ += 2;
        continue;
      }
      if (c == '.' || c == '[' || c == ']' || c == '}' || c == ' ' || c == ',' || c == ')' || c == '=' || c == '!' || c == '<' ||
          c == '>' || c == '&' || c == '|')
        break;
      out += c;
      ++at_;
    }
    return out;
  }

  // A path. It starts at $ (the root), at @ or at . (the current value).
  Result<Values> path(const json::value& current) {
    Values values{&current};
    if (take("$")) values = {&root_};
    else take("@");
    if (!done() && peek() != '.' && peek() != '[' && peek() != '}' && peek() != ' ' && peek() != ')')
      values = field(values, name());
    while (!done()) {
      if (take("..")) {
        Values below;
        for (const auto* value : values) descend(*value, below, 0);
        if (take("*")) values = children(below);
        else if (peek() == '[') values = below;
        else values = field(below, name());
      } else if (take(".")) {
        if (take("*")) {
          values = children(values);
        } else if (peek() != '[') {
          std::string key = name();
          if (!key.empty()) values = field(values, key);
        }
      } else if (take("[")) {
        values = TRY(subscript(values));
      } else {
        break;
      }
    }
    return values;
  }

  Result<Values> subscript(const Values& from) {  // called after '['
    if (take("?(")) {
      Nesting nesting(*this);
      if (nesting.too_deep()) return wrong("nested too deeply");
      Values out;
      size_t start = at_, end = at_;
      Values all;
      for (const auto* value : from)
        if (const auto* array = value->if_array())
          for (const auto& item : *array) all.push_back(&item);
      if (all.empty()) {  // the rest must still be parsed
        json::value nothing;
        TRY(condition(nothing));
        end = at_;
      }
      for (const auto* item : all) {
        at_ = start;
        bool holds = TRY(condition(*item));
        end = at_;
        if (holds) out.push_back(item);
      }
      at_ = end;
      if (!take(")]")) return wrong("expected )]");
      return out;
    }
    Values out;
    do {
      skip_spaces();
      if (take("*")) {
        for (const auto* value : children(from)) out.push_back(value);
      } else if (peek() == '\'' || peek() == '"') {
        std::string key = TRY(quoted_text());
        for (const auto* value : field(from, key)) out.push_back(value);
      } else {
        Values some = TRY(indices(from));
        out.insert(out.end(), some.begin(), some.end());
      }
      skip_spaces();
    } while (take(","));
    if (!take("]")) return wrong("expected ]");
    return out;
  }

  std::optional<int64_t> integer() {
    size_t start = at_;
    if (peek() == '-') ++at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return parse_number<int64_t>(text_.substr(start, at_ - start));
  }

  Result<Values> indices(const Values& from) {  // n, n:m, n:m:s
    std::optional<int64_t> first = integer(), last, step;
    bool slice = false;
    if (take(":")) {
      slice = true;
      last = integer();
      if (take(":")) step = integer();
    }
    if (!slice && !first) return wrong("expected an index");
    if (step && *step <= 0) return wrong("a slice's step is 1 or more");
    Values out;
    for (const auto* value : from) {
      const auto* array = value->if_array();
      if (!array) continue;
      auto size = int64_t(array->size());
      auto clamp = [&](int64_t n) { return std::min(std::max(n < 0 ? n + size : n, int64_t(0)), size); };
      if (!slice) {
        int64_t n = *first < 0 ? *first + size : *first;
        if (n >= 0 && n < size) out.push_back(&(*array)[size_t(n)]);
        else if (in_template_)
          return Error(Code::invalid,
                       "array index out of bounds: index " + std::to_string(n) + ", length " + std::to_string(size));
        continue;
      }
      for (int64_t n = clamp(first.value_or(0)); n < clamp(last.value_or(size)); n += step.value_or(1))
        out.push_back(&(*array)[size_t(n)]);
    }
    return out;
  }

  struct Operand {
    std::optional<std::string> text;
    std::optional<double> number;
    std::optional<bool> flag;
    bool present = false;
  };
  static Operand operand_of(const json::value& value) {
    Operand operand{.present = !value.is_null()};
    if (const auto* text = value.if_string()) operand.text = std::string(*text);
    if (const auto* flag = value.if_bool()) operand.flag = *flag;
    if (value.is_number())
      operand.number = value.is_double()  ? value.get_double()
                       : value.is_int64() ? double(value.get_int64())
                                          : double(value.get_uint64());
    return operand;
  }
  Result<Operand> operand(const json::value& item) {
    skip_spaces();
    if (peek() == '\'' || peek() == '"') {
      Operand operand{.present = true};
      operand.text = TRY(quoted_text());
      return operand;
    }
    if (peek() == '@' || peek() == '$' || peek() == '.') {
      bool in_template = std::exchange(in_template_, false);
      auto found = path(item);
      in_template_ = in_template;
      Values values = TRY(std::move(found));
      return values.empty() ? Operand{} : operand_of(*values.front());
    }
    Operand operand{.present = true};
    if (take("true")) return operand.flag = true, operand;
    if (take("false")) return operand.flag = false, operand;
    size_t start = at_;
    while (peek() == '-' || peek() == '.' || (peek() >= '0' && peek() <= '9')) ++at_;
    try_number(text_.substr(start, at_ - start), operand);
    if (!operand.number) return wrong("expected a value");
    return operand;
  }
  static void try_number(std::string_view text, Operand& operand) {
    double number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size()) operand.number = number;
  }

  Result<bool> condition(const json::value& item) {
    bool any = false;
    do {
      bool all = true;
      do {
        bool one = TRY(comparison(item));
        all = all && one;
        skip_spaces();
      } while (take("&&"));
      any = any || all;
    } while (take("||"));
    return any;
  }

  Result<bool> comparison(const json::value& item) {
    Operand left = TRY(operand(item));
    skip_spaces();
    std::string_view op;
    for (std::string_view candidate : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(candidate)) {
        op = candidate;
        break;
      }
    if (op.empty()) return left.present && (!left.flag || *left.flag);
    Operand right = TRY(operand(item));
    if (!left.present || !right.present) return op == "!=" && left.present != right.present;
    auto holds = [&](auto a, auto b) {
      return op == "==" ? a == b : op == "!=" ? a != b : op == "<=" ? a <= b : op == ">=" ? a >= b : op == "<" ? a < b : a > b;
    };
    if (left.text && right.text) return holds(*left.text, *right.text);
    if (left.number && right.number) return holds(*left.number, *right.number);
    if (left.flag && right.flag) return holds(*left.flag, *right.flag);
    return op == "!=";
  }

  // Evaluates text and {…} to the end of the template or, in a range, to its {end}.
  Result<void> body(const json::value& current, std::string& out, bool in_range) {
    Nesting nesting(*this);
    if (nesting.too_deep()) return wrong("nested too deeply");
    in_template_ = true;
    while (!done()) {
      if (!take("{")) {
        out += text_[at_++];
        continue;
      }
      skip_spaces();
      if (take("end")) {
        skip_spaces();
        if (!take("}")) return wrong("expected }");
        if (!in_range) return wrong("{end} without {range}");
        return {};
      }
      if (take("range ")) {
        skip_spaces();
        Values items = TRY(path(current));
        skip_spaces();
        if (!take("}")) return wrong("expected }");
        size_t start = at_;
        for (const auto* item : items) {
          at_ = start;
          TRY(body(*item, out, true));
        }
        if (items.empty()) {
          std::string ignored;
          json::value nothing;
          TRY(body(nothing, ignored, true));
        }
        continue;
      }
      if (peek() == '\'' || peek() == '"') {
        out += TRY(quoted_text());
      } else {
        Values values = TRY(path(current));
        for (size_t i = 0; i < values.size(); ++i) out.append(i ? " " : "").append(jsonpath_text(*values[i]));
      }
      skip_spaces();
      if (!take("}")) return wrong("expected }");
    }
    if (in_range) return wrong("{range} without {end}");
    return {};
  }

 private:
  struct Nesting {  // raises the nesting depth during its lifetime
    explicit Nesting(Reader& reader) : reader(reader) { ++reader.nesting_; }
    ~Nesting() { --reader.nesting_; }
    Nesting(const Nesting&) = delete;
    bool too_deep() const { return reader.nesting_ > kNestingMax; }
    Reader& reader;
  };
  std::string_view text_;
  const json::value& root_;
  size_t at_ = 0;
  int nesting_ = 0;
  bool in_template_ = false;  // outside a filter, an index that is out of range is an error
};

}  // namespace

std::string jsonpath_text(const json::value& value) {
  if (const auto* text = value.if_string()) return std::string(*text);
  return value.is_null() ? std::string() : to_text(value);
}

Result<std::string> jsonpath(std::string_view template_text, const json::value& root) {
  // A bare expression is evaluated as if it stood in braces, as in kubectl.
  std::string braced(template_text);
  if (braced.find('{') == std::string::npos) braced = "{" + braced + "}";
  Reader reader(braced, root);
  std::string out;
  TRY(reader.body(root, out, false));
  return out;
}

Result<std::vector<const json::value*>> jsonpath_select(std::string_view expression, const json::value& root) {
  if (expression.starts_with('{') && expression.ends_with('}')) expression = expression.substr(1, expression.size() - 2);
  if (expression.find_first_of("{}") != expression.npos)
    return Error(Code::invalid,
                 "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or "
                 "'{.name1.name2}'");
  Reader reader(expression, root);
  Values values = TRY(reader.path(root));
  if (!reader.done()) return reader.wrong("unexpected text");
  return values;
}

}  // namespace coracle::ctl
