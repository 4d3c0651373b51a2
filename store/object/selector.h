// SPDX-License-Identifier: Apache-2.0
// Selectors of objects by labels or by fields. Pure.
//
// A label selector is text ("app=web,tier in (a,b),!old"), a LabelSelector object ({matchLabels, matchExpressions}) or a plain
// map (a Service's spec.selector). A field selector is text; the caller provides the fields' values. Source: Kubernetes "Labels
// and Selectors", apimachinery labels and fields.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

class Object;

constexpr size_t kSelectorBytesMax = 1 << 20;  // Go's limit for request headers; Kubernetes has no limit of its own

// Validates a label's key ("example.com/name" or "name") and value. Errors: invalid.
Result<void> check_label_key(std::string_view key);
Result<void> check_label_value(std::string_view value);
// The value of a label; nullopt: there is no such label, or it is no text. Valid as long as `labels`.
std::optional<std::string_view> label_value(const json::object& labels, std::string_view key);

class LabelSelector {
 public:
  LabelSelector() = default;  // matches everything
  static LabelSelector nothing();

  // Errors: bad_request, with the part that cannot be parsed.
  static Result<LabelSelector> parse(std::string_view text);
  // Reads a LabelSelector object. Null matches nothing; an empty one matches everything. Errors: invalid, with the field.
  static Result<LabelSelector> from_json(const json::value* selector);
  // from_json(selector)->matches(labels), for a selector that is used once.
  static Result<bool> matches_once(const json::value* selector, const json::object& labels);
  // All labels of the map must match. Values that are not strings match nothing.
  static LabelSelector from_map(const json::object& labels);

  bool matches(const json::object& labels) const;
  bool matches(const Object& object) const;
  bool empty() const { return terms_.empty() && !nothing_; }  // matches everything
  // Labels, key and value, that an object must have to match: at most so many of them. Valid as long as the selector.
  std::vector<std::pair<std::string_view, std::string_view>> demanded_labels(size_t count_max) const;
  std::string text() const;  // its text form, terms sorted by key; of many terms an equivalent, maybe shorter one

 private:
  enum class Operator : uint8_t { in, not_in, exists, absent, greater, less };
  struct Term {
    std::string key;
    Operator op;
    std::vector<std::string> values;  // sorted; greater and less have one number
    bool holds(const json::object& labels) const;
    bool needs_label() const { return op != Operator::not_in && op != Operator::absent; }
    void narrow(Term&& other);  // restricts it to what both terms match; `other` has the same key and operator
    std::string text() const;
  };
  friend class LabelSelectorParser;
  static Result<Term> checked(Term term);
  static Result<Term> term_of_label(std::string_view key, const json::value& wanted);
  static Result<Term> term_of_expression(const json::value& expression, size_t index);
  static Result<void> read_terms(const json::value& selector, const std::function<void(Term&&)>& take);  // in their order
  void index();
  std::vector<Term> terms_;
  // For selectors with many terms, to limit the time per object: terms_ is sorted by key, with at most one per key and operator.
  bool indexed_ = false;
  size_t needing_label_ = 0;  // if indexed_: how many of terms_ need a label
  bool nothing_ = false;
};

class FieldSelector {
 public:
  struct Term {
    std::string field;
    bool equal;
    std::string value;
  };
  // Errors: bad_request.
  static Result<FieldSelector> parse(std::string_view text);

  const std::vector<Term>& terms() const { return terms_; }
  bool empty() const { return terms_.empty(); }
  // The value that the selector requires for `field`, if any.
  std::optional<std::string_view> required(std::string_view field) const;
  // `lookup` returns a field's value as text, "" if absent. It is called once per field, independent of the number of terms.
  bool matches(const std::function<std::string(std::string_view field)>& lookup) const;

 private:
  struct Wanted {  // for one field
    std::set<std::string, std::less<>> equal, unequal;
  };
  std::vector<Term> terms_;
  std::map<std::string, Wanted, std::less<>> by_field_;
};

}  // namespace coracle
