// SPDX-License-Identifier: Apache-2.0
// See regex.h. The pattern is compiled to steps, which run for all possible positions in the pattern at once (Thompson's method).
#include "ctl/kustomize/regex.h"

#include <algorithm>
#include <optional>

#include "runtime/base/text.h"

namespace coracle::kustomize {

class RegexParser {
 public:
  explicit RegexParser(std::string_view pattern) : text_(pattern) {}

  Result<Regex> parse() {
    if (text_.size() > kRegexBytesMax)
      return Error(Code::too_large, "a regular expression is longer than " + std::to_string(kRegexBytesMax) + " bytes");
    TRY(alternatives(0));
    if (at_ < text_.size()) return wrong("unexpected )");
    add({Regex::Op::match});
    if (out_.steps_.size() > kRegexStepsMax) return wrong("too many repetitions");
    return std::move(out_);
  }

 private:
  using Set = std::bitset<256>;
  using Steps = std::vector<Regex::Step>;

  Error wrong(std::string_view what) const {
    return Error(Code::invalid, "the regular expression " + quoted(text_) + " is wrong: " + std::string(what));
  }
  bool more() const { return at_ < text_.size(); }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  uint32_t here() const { return uint32_t(out_.steps_.size()); }
  void add(Regex::Step step) { out_.steps_.push_back(step); }
  // Makes room for a step at `at`; jumps beyond it are moved.
  void insert(uint32_t at, Regex::Step step) {
    for (uint32_t i = at; i < here(); ++i) shift(out_.steps_[i], 1);
    out_.steps_.insert(out_.steps_.begin() + at, step);
  }
  static void shift(Regex::Step& step, int32_t by) {
    if (step.op == Regex::Op::split || step.op == Regex::Op::jump) step.to += uint32_t(by);
    if (step.op == Regex::Op::split) step.other += uint32_t(by);
  }

  Result<void> alternatives(int depth) {
    if (depth > 50) return wrong("nested too deeply");
    uint32_t begin = here();
    TRY(sequence(depth));
    if (!take("|")) return {};
    insert(begin, {Regex::Op::split, begin + 1, here() + 2});
    uint32_t jump = here();
    add({Regex::Op::jump});
    TRY(alternatives(depth + 1));
    out_.steps_[jump].to = here();
    return {};
  }

  Result<void> sequence(int depth) {
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      uint32_t begin = here();
      TRY(atom(depth));
      while (more() && std::string_view("*+?{").find(text_[at_]) != std::string_view::npos) {
        size_t before = at_;
        TRY(repetition(begin));
        if (at_ == before) break;  // a { that is not a repetition
      }
      if (here() > kRegexStepsMax) return wrong("too many repetitions");
    }
    return {};
  }

  Result<void> repetition(uint32_t begin) {
    size_t least = 0;
    std::optional<size_t> most;
    if (take("*")) {
    } else if (take("+")) {
      least = 1;
    } else if (take("?")) {
      most = 1;
    } else {
      size_t end = text_.find('}', at_);
      std::string_view body = end == text_.npos ? std::string_view() : text_.substr(at_ + 1, end - at_ - 1);
      size_t comma = body.find(',');
      auto first = parse_number<size_t>(body.substr(0, comma));
      auto last = comma == body.npos ? first : parse_number<size_t>(body.substr(comma + 1));
      bool open = comma != body.npos && comma + 1 == body.size();
      if (!first || (!last && !open)) {  // as RE2: then the brace is a character
        ++at_;
        add_set(Set().set('{'));
        return {};
      }
      if (*first > 1000 || (last && *last > 1000) || (last && *last < *first)) return wrong("bad repetition");
      at_ = end + 1;
      least = *first;
      most = last;
    }
    take("?");  // a lazy repetition finds the same texts
    repeat(begin, least, most);
    if (here() > kRegexStepsMax) return wrong("too many repetitions");
    return {};
  }

  // Writes the steps from `begin` on as often as asked for.
  void repeat(uint32_t begin, size_t least, std::optional<size_t> most) {
    Steps part(out_.steps_.begin() + begin, out_.steps_.end());
    out_.steps_.resize(begin);
    auto append = [&] {
      int32_t by = int32_t(here()) - int32_t(begin);
      for (Regex::Step step : part) {
        shift(step, by);
        add(step);
      }
    };
    for (size_t i = 0; i < least && here() <= kRegexStepsMax; ++i) append();
    if (!most) {
      uint32_t split = here();
      add({Regex::Op::split});
      append();
      add({Regex::Op::jump, split});
      out_.steps_[split] = {Regex::Op::split, split + 1, here()};
      return;
    }
    std::vector<uint32_t> splits;
    for (size_t i = least; i < *most && here() <= kRegexStepsMax; ++i) {
      splits.push_back(here());
      add({Regex::Op::split});
      append();
    }
    for (uint32_t split : splits) out_.steps_[split] = {Regex::Op::split, split + 1, here()};
  }

  void add_set(Set set) {
    if (fold_)
      for (int c = 'a'; c <= 'z'; ++c)
        if (set[size_t(c)] || set[size_t(c - 32)]) set.set(size_t(c)).set(size_t(c - 32));
    out_.sets_.push_back(set);
    add({Regex::Op::set, uint32_t(out_.sets_.size() - 1)});
  }

  Result<void> atom(int depth) {
    char c = text_[at_++];
    switch (c) {
      case '.': add_set(~Set().set('\n')); return {};
      case '^': add({Regex::Op::begin}); return {};
      case '$': add({Regex::Op::end}); return {};
      case '*':
      case '+':
      case '?': return wrong("nothing to repeat");
      case '[': return bracket();
      case '\\': {
        Set set = TRY(escape());
        add_set(set);
        return {};
      }
      case '(': {
        if (take("?i)")) {
          fold_ = true;
          return {};
        }
        bool fold = fold_;
        if (take("?i:")) fold_ = true;
        else if (!take("?:") && more() && text_[at_] == '?') return wrong("unsupported group");
        TRY(alternatives(depth + 1));
        fold_ = fold;
        if (!take(")")) return wrong("missing )");
        return {};
      }
      default: add_set(Set().set(static_cast<unsigned char>(c))); return {};
    }
  }

  static void add_range(Set& set, unsigned from, unsigned to) {
    for (unsigned c = from; c <= to; ++c) set.set(c);
  }

  // The characters of an escape; at_ is behind the backslash.
  Result<Set> escape() {
    if (!more()) return wrong("it ends with a backslash");
    char c = text_[at_++];
    Set set;
    switch (c | 0x20) {
      case 'd': add_range(set, '0', '9'); break;
      case 'w':
        add_range(set, '0', '9'), add_range(set, 'a', 'z'), add_range(set, 'A', 'Z');
        set.set('_');
        break;
      case 's':
        for (char space : {'\t', '\n', '\f', '\r', ' '}) set.set(size_t(space));
        break;
      default:
        if (c == 'n') return Set().set('\n');
        if (c == 't') return Set().set('\t');
        if (c == 'r') return Set().set('\r');
        if (std::isalnum(static_cast<unsigned char>(c))) return wrong(std::string("unsupported escape \\") + c);
        return Set().set(static_cast<unsigned char>(c));
    }
    return c < 'a' ? ~set : set;
  }

  Result<void> bracket() {
    Set set;
    bool negated = take("^");
    bool first = true;
    for (;; first = false) {
      if (!more()) return wrong("missing ]");
      char c = text_[at_++];
      if (c == ']' && !first) break;
      if (c == '[' && more() && text_[at_] == ':') return wrong("unsupported class");
      Set one;
      if (c == '\\') one = TRY(escape());
      else one.set(static_cast<unsigned char>(c));
      if (one.count() == 1 && at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        Set last;
        char to = text_[at_++];
        if (to == '\\') last = TRY(escape());
        else last.set(static_cast<unsigned char>(to));
        if (last.count() != 1 || last._Find_first() < one._Find_first()) return wrong("bad range");
        add_range(one, unsigned(one._Find_first()), unsigned(last._Find_first()));
      }
      set |= one;
    }
    add_set(negated ? ~set : set);
    return {};
  }

  const std::string_view text_;
  size_t at_ = 0;
  bool fold_ = false;  // case is ignored
  Regex out_;
};

Result<Regex> Regex::compile(std::string_view pattern) { return RegexParser(pattern).parse(); }

Result<Regex> Regex::compile_anchored(std::string_view pattern) {
  if (pattern.empty()) return compile("");
  TRY(compile(pattern));  // "a)(b" must not become right by the parentheses around it
  return compile("^(?:" + std::string(pattern) + ")$");
}

bool Regex::finds(std::string_view text) const {
  std::vector<uint32_t> now, next, stack;
  std::vector<size_t> seen(steps_.size(), size_t(-1));  // the position for which a step was added last
  bool matched = false;
  auto follow = [&](std::vector<uint32_t>& list, uint32_t step, size_t at) {
    stack.push_back(step);
    while (!stack.empty()) {
      uint32_t i = stack.back();
      stack.pop_back();
      if (seen[i] == at) continue;
      seen[i] = at;
      switch (steps_[i].op) {
        case Op::set: list.push_back(i); break;
        case Op::jump: stack.push_back(steps_[i].to); break;
        case Op::split:
          stack.push_back(steps_[i].other);
          stack.push_back(steps_[i].to);
          break;
        case Op::begin:
          if (at == 0) stack.push_back(i + 1);
          break;
        case Op::end:
          if (at == text.size()) stack.push_back(i + 1);
          break;
        case Op::match: matched = true; break;
      }
    }
  };
  for (size_t at = 0; at <= text.size() && !matched; ++at) {
    follow(now, 0, at);
    if (matched || at == text.size()) break;
    for (uint32_t step : now)
      if (sets_[steps_[step].to][static_cast<unsigned char>(text[at])]) follow(next, step + 1, at + 1);
    now.swap(next);
    next.clear();
  }
  return matched;
}

}  // namespace coracle::kustomize
