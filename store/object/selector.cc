// SPDX-License-Identifier: Apache-2.0
// Selectors. See selector.h.
#include "store/object/selector.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle {
namespace {

constexpr size_t kLabelNameMax = 63;
constexpr size_t kLabelPrefixMax = 253;
constexpr size_t kFewTerms = 16;  // checked one by one

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_label_name(std::string_view text) {
  if (text.empty() || text.size() > kLabelNameMax || !is_alnum(text.front()) || !is_alnum(text.back())) return false;
  return std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_dns_label(std::string_view text) {
  if (text.empty() || text.front() == '-' || text.back() == '-') return false;
  return std::ranges::all_of(text, [](char c) { return (is_alnum(c) && !(c >= 'A' && c <= 'Z')) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  if (text.size() > kLabelPrefixMax) return false;
  return std::ranges::all_of(split(text, '.'), is_dns_label);
}

}  // namespace

Result<void> check_label_key(std::string_view key) {
  size_t slash = key.find('/');
  bool good =
      slash == key.npos ? is_label_name(key) : is_dns_subdomain(key.substr(0, slash)) && is_label_name(key.substr(slash + 1));
  if (good) return {};
  return Error(Code::invalid, "invalid label key " + quoted(key) +
                                  ": must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a "
                                  "letter or digit, with an optional DNS name and '/' before it");
}

std::optional<std::string_view> label_value(const json::object& labels, std::string_view key) {
  const json::value* value = labels.if_contains(key);
  const json::string* text = value ? value->if_string() : nullptr;
  if (!text) return std::nullopt;
  return std::string_view(text->data(), text->size());
}

Result<void> check_label_value(std::string_view value) {
  if (value.empty() || is_label_name(value)) return {};
  return Error(Code::invalid, "invalid label value " + quoted(value) +
                                  ": must be empty or at most 63 letters, digits, '-', '_' and '.', beginning and ending "
                                  "with a letter or digit");
}

// Parses the text form, term by term.
class LabelSelectorParser {
 public:
  using Operator = LabelSelector::Operator;
  using Term = LabelSelector::Term;
  explicit LabelSelectorParser(std::string_view text) : text_(text), rest_(text) {}

  Result<LabelSelector> parse() {
    LabelSelector selector;
    if (text_.size() > kSelectorBytesMax) return Error(Code::too_large, "label selector is too long");
    skip_spaces();
    while (!rest_.empty()) {
      Term term = TRY(parse_term());
      auto checked = LabelSelector::checked(std::move(term));
      if (!checked) return fail(checked.error().text());
      selector.terms_.push_back(*std::move(checked));
      if (rest_.empty()) break;
      if (!take(",")) return fail("found " + quoted(rest_) + ", expected ',' or the end");
      if (rest_.empty()) return fail("expected a label key after ','");
    }
    selector.index();
    return selector;
  }

 private:
  Error fail(const std::string& why) const {
    return Error(Code::bad_request, "unable to parse requirement: " + quoted(text_) + ": " + why);
  }
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  std::string_view take_word() {
    size_t end = 0;
    while (end < rest_.size() && !is_space(rest_[end]) && std::string_view("=!(),<>").find(rest_[end]) == std::string_view::npos)
      end++;
    std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    skip_spaces();
    return word;
  }
  Result<Term> parse_term() {
    bool absent = take("!");
    Term term{std::string(take_word()), absent ? Operator::absent : Operator::exists, {}};
    if (term.key.empty()) return fail("expected a label key, found " + quoted(rest_));
    if (absent || rest_.empty() || rest_.front() == ',') return term;
    if (take("==") || take("=")) return one_value(std::move(term), Operator::in);
    if (take("!=")) return one_value(std::move(term), Operator::not_in);
    if (take(">")) return one_value(std::move(term), Operator::greater);
    if (take("<")) return one_value(std::move(term), Operator::less);
    std::string_view word = take_word();
    if (word == "in") return many_values(std::move(term), Operator::in);
    if (word == "notin") return many_values(std::move(term), Operator::not_in);
    return fail("found " + quoted(word.empty() ? rest_ : word) + ", expected one of = == != in notin > <");
  }
  Result<Term> one_value(Term term, Operator op) {
    term.op = op;
    term.values.emplace_back(take_word());
    return term;
  }
  Result<Term> many_values(Term term, Operator op) {
    term.op = op;
    if (!take("(")) return fail("expected '(' after in or notin");
    do {
      term.values.emplace_back(take_word());
    } while (take(","));
    if (!take(")")) return fail("expected ',' or ')' in the list of values");
    return term;
  }

  std::string_view text_, rest_;
};

Result<LabelSelector::Term> LabelSelector::checked(Term term) {
  TRY(check_label_key(term.key));
  for (const std::string& value : term.values) {
    TRY(check_label_value(value));
  }
  bool number = term.op == Operator::greater || term.op == Operator::less;
  if (number && (term.values.size() != 1 || !parse_number<int64_t>(term.values[0])))
    return Error(Code::invalid, "for '>' and '<' the value must be one integer");
  std::ranges::sort(term.values);
  term.values.erase(std::ranges::unique(term.values).begin(), term.values.end());
  return term;
}

bool LabelSelector::Term::holds(const json::object& labels) const {
  std::optional<std::string_view> have = label_value(labels, key);
  auto listed = [&] { return std::ranges::binary_search(values, *have, std::less<>()); };
  switch (op) {
    case Operator::in: return have && listed();
    case Operator::not_in: return !have || !listed();
    case Operator::exists: return have.has_value();
    case Operator::absent: return !have;
    case Operator::greater:
    case Operator::less: {
      auto number = have ? parse_number<int64_t>(*have) : std::nullopt;
      if (!number) return false;
      int64_t bound = *parse_number<int64_t>(values[0]);
      return op == Operator::greater ? *number > bound : *number < bound;
    }
  }
  return false;
}

std::string LabelSelector::Term::text() const {
  switch (op) {
    case Operator::in:
      if (values.size() == 1) return key + "=" + values[0];
      return key + " in (" + join(values, ",") + ")";
    case Operator::not_in:
      if (values.size() == 1) return key + "!=" + values[0];
      return key + " notin (" + join(values, ",") + ")";
    case Operator::exists: return key;
    case Operator::absent: return "!" + key;
    case Operator::greater: return key + ">" + values[0];
    case Operator::less: return key + "<" + values[0];
  }
  return {};
}

LabelSelector LabelSelector::nothing() {
  LabelSelector selector;
  selector.nothing_ = true;
  return selector;
}

Result<LabelSelector> LabelSelector::parse(std::string_view text) { return LabelSelectorParser(text).parse(); }

Result<LabelSelector::Term> LabelSelector::term_of_label(std::string_view key, const json::value& wanted) {
  auto field = [&] { return "matchLabels." + std::string(key); };
  if (!wanted.is_string()) return invalid_field(field(), "must be a string");
  auto term = checked({std::string(key), Operator::in, {std::string(wanted.get_string())}});
  if (!term) return invalid_field(field(), term.error().text());
  return term;
}

Result<LabelSelector::Term> LabelSelector::term_of_expression(const json::value& expression, size_t index) {
  auto field = [&] { return "matchExpressions[" + std::to_string(index) + "]"; };
  Term term{std::string(get_string(expression, "key")), Operator::exists, {}};
  std::string_view name = get_string(expression, "operator");
  for (const json::value& one : get_array(expression, "values")) {
    if (!one.is_string()) return invalid_field(field() + ".values", "must be strings");
    term.values.emplace_back(one.get_string());
  }
  if (name == "In") term.op = Operator::in;
  else if (name == "NotIn") term.op = Operator::not_in;
  else if (name == "Exists") term.op = Operator::exists;
  else if (name == "DoesNotExist") term.op = Operator::absent;
  else return invalid_field(field() + ".operator", quoted(name) + " is not one of In, NotIn, Exists, DoesNotExist");
  bool listed = term.op == Operator::in || term.op == Operator::not_in;
  if (listed && term.values.empty()) return invalid_field(field() + ".values", "must be given for In and NotIn");
  if (!listed && !term.values.empty()) return invalid_field(field() + ".values", "may not be given for Exists and DoesNotExist");
  auto good = checked(std::move(term));
  if (!good) return invalid_field(field(), good.error().text());
  return good;
}

Result<void> LabelSelector::read_terms(const json::value& selector, const std::function<void(Term&&)>& take) {
  for (const auto& [key, wanted] : get_object(selector, "matchLabels")) {
    Term term = TRY(term_of_label(key, wanted));
    take(std::move(term));
  }
  const json::array& expressions = get_array(selector, "matchExpressions");
  for (size_t i = 0; i < expressions.size(); i++) {
    Term term = TRY(term_of_expression(expressions[i], i));
    take(std::move(term));
  }
  return {};
}

Result<LabelSelector> LabelSelector::from_json(const json::value* value) {
  if (!value || value->is_null()) return nothing();
  LabelSelector selector;
  selector.terms_.reserve(get_object(*value, "matchLabels").size() + get_array(*value, "matchExpressions").size());
  TRY(read_terms(*value, [&](Term&& term) { selector.terms_.push_back(std::move(term)); }));
  selector.index();
  return selector;
}

Result<bool> LabelSelector::matches_once(const json::value* selector, const json::object& labels) {
  if (!selector || selector->is_null()) return false;
  bool matches = true;
  TRY(read_terms(*selector, [&](Term&& term) { matches = matches && term.holds(labels); }));
  return matches;
}

LabelSelector LabelSelector::from_map(const json::object& labels) {
  LabelSelector selector;
  for (const auto& [key, wanted] : labels) {
    if (!wanted.is_string()) return nothing();
    selector.terms_.push_back({std::string(key), Operator::in, {std::string(wanted.get_string())}});
  }
  selector.index();
  return selector;
}

void LabelSelector::Term::narrow(Term&& other) {
  switch (op) {
    case Operator::in: {
      std::vector<std::string> both;
      std::ranges::set_intersection(values, other.values, std::back_inserter(both));
      values = std::move(both);
      break;
    }
    case Operator::not_in: values.insert(values.end(), other.values.begin(), other.values.end()); break;  // sorted later
    case Operator::greater:
    case Operator::less: {
      bool is_nearer = *parse_number<int64_t>(values[0]) < *parse_number<int64_t>(other.values[0]);
      if (is_nearer == (op == Operator::greater)) values = std::move(other.values);
      break;
    }
    case Operator::exists:
    case Operator::absent: break;
  }
}

void LabelSelector::index() {
  if (terms_.size() <= kFewTerms) return;
  auto place = [](const Term& term) { return std::pair(std::string_view(term.key), term.op); };
  std::ranges::sort(terms_, {}, place);
  auto last = terms_.begin();  // of those that stay
  for (auto term = std::next(last); term != terms_.end(); ++term) {
    if (place(*last) == place(*term)) last->narrow(std::move(*term));
    else if (++last != term) *last = std::move(*term);
  }
  terms_.erase(std::next(last), terms_.end());
  for (Term& term : terms_) {
    if (term.op == Operator::in && term.values.empty()) {  // nothing fits, whatever the others ask for
      std::string key = std::move(term.key);
      terms_ = {{key, Operator::exists, {}}, {key, Operator::absent, {}}};
      return;
    }
    if (term.op != Operator::not_in) continue;
    std::ranges::sort(term.values);
    term.values.erase(std::ranges::unique(term.values).begin(), term.values.end());
  }
  indexed_ = true;
  needing_label_ = size_t(std::ranges::count_if(terms_, &Term::needs_label));
}

bool LabelSelector::matches(const json::object& labels) const {
  if (nothing_) return false;
  if (!indexed_) return std::ranges::all_of(terms_, [&](const Term& term) { return term.holds(labels); });
  size_t met = 0;  // terms that need a label and match
  for (const auto& label : labels) {
    for (const Term& term : std::ranges::equal_range(terms_, std::string_view(label.key()), {}, &Term::key)) {
      if (!term.holds(labels)) return false;
      met += term.needs_label() ? 1 : 0;
    }
  }
  return met == needing_label_;
}

bool LabelSelector::matches(const Object& object) const { return empty() || matches(object.labels()); }

std::vector<std::pair<std::string_view, std::string_view>> LabelSelector::demanded_labels(size_t count_max) const {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (const Term& term : terms_) {
    if (out.size() == count_max) break;
    if (term.op == Operator::in && term.values.size() == 1) out.emplace_back(term.key, term.values[0]);
  }
  return out;
}

std::string LabelSelector::text() const {
  std::vector<const Term*> sorted;
  for (const Term& term : terms_) sorted.push_back(&term);
  std::ranges::stable_sort(sorted, {}, [](const Term* term) { return std::string_view(term->key); });
  std::vector<std::string> parts;
  for (const Term* term : sorted) parts.push_back(term->text());
  return join(parts, ",");
}

namespace {

// Splits at commas without a preceding backslash.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); i++) {
    if (i < text.size() && text[i] == '\\') {
      i++;
    } else if (i >= text.size() || text[i] == ',') {
      if (i > begin) terms.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (begin < text.size()) terms.push_back(text.substr(begin));  // the text ended in a backslash
  return terms;
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\') {
      if (i + 1 == text.size() || std::string_view("\\,=").find(text[i + 1]) == std::string_view::npos)
        return Error(Code::bad_request, "invalid field selector: invalid escape sequence in " + quoted(text));
      out += text[++i];
    } else if (text[i] == '=') {
      return Error(Code::bad_request, "invalid field selector: unescaped '=' in " + quoted(text));
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  if (text.size() > kSelectorBytesMax) return Error(Code::too_large, "field selector is too long");
  FieldSelector selector;
  for (std::string_view part : split_terms(text)) {
    size_t at = 0;
    while (at < part.size() && part[at] != '=' && part.substr(at, 2) != "!=") at += part[at] == '\\' ? 2 : 1;
    if (at == 0 || at >= part.size())
      return Error(Code::bad_request, "invalid selector: " + quoted(text) + "; can't understand " + quoted(part));
    bool equal = part[at] == '=';
    size_t length = equal && part.substr(at, 2) != "==" ? 1 : 2;
    std::string value = TRY(unescape(part.substr(at + length)));
    Term term{std::string(trim(part.substr(0, at))), equal, std::move(value)};
    Wanted& wanted = selector.by_field_[term.field];
    (equal ? wanted.equal : wanted.unequal).insert(term.value);
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

std::optional<std::string_view> FieldSelector::required(std::string_view field) const {
  for (const Term& term : terms_)
    if (term.equal && term.field == field) return term.value;
  return std::nullopt;
}

bool FieldSelector::matches(const std::function<std::string(std::string_view)>& lookup) const {
  return std::ranges::all_of(by_field_, [&](const auto& one) {
    const auto& [field, wanted] = one;
    std::string value = lookup(field);
    bool is = wanted.equal.empty() || (wanted.equal.size() == 1 && *wanted.equal.begin() == value);
    return is && !wanted.unequal.contains(value);
  });
}

}  // namespace coracle
