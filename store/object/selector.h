// SPDX-License-Identifier: Apache-2.0
// Selectors: which objects are meant, by labels or by fields. Pure.
//
// Label selectors come as text ("app=web,tier in (a,b),!old"), as a LabelSelector object ({matchLabels, matchExpressions})
// or as a plain map (a Service's spec.selector). Field selectors come as text only; what a field's value is, the caller
// says. Source: Kubernetes "Labels and Selectors", apimachinery labels and fields.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

class Object;

constexpr size_t kSelectorBytesMax =
    1 << 20;  // as the head of a request, which Go's net/http takes; Kubernetes has no bound of its own

// A label's key ("example.com/name" or "name") and value. Errors: invalid.
Result<void> check_label_key(std::string_view key);
Result<void> check_label_value(std::string_view value);

class LabelSelector {
 public:
  LabelSelector() = default;  // matches everything
  static LabelSelector nothing();

  // Errors: bad_request, quoting what was not understood.
  static Result<LabelSelector> parse(std::string_view text);
  // A LabelSelector object. Absent (null): nothing matches; empty: everything does. Errors: invalid, naming the field.
  static Result<LabelSelector> from_json(const json::value* selector);
  // A map of labels that must all be there. Values that are no strings match nothing.
  static LabelSelector from_map(const json::object& labels);

  bool matches(const json::object& labels) const;
  bool matches(const Object& object) const;
  bool empty() const { return terms_.empty() && !nothing_; }  // matches everything
  std::string text() const;                                   // text form, terms sorted by key

 private:
  enum class Operator : uint8_t { in, not_in, exists, absent, greater, less };
  struct Term {
    std::string key;
    Operator op;
    std::vector<std::string> values;  // sorted; greater and less: one number
    bool holds(const json::object& labels) const;
    bool needs_label() const { return op != Operator::not_in && op != Operator::absent; }
    void narrow(Term&& other);  // to what holds when the other does, too: of the same key and operator
    std::string text() const;
  };
  friend class LabelSelectorParser;
  static Result<Term> checked(Term term);
  void index();
  std::vector<Term> terms_;
  // Where there are many, for a bounded time by object: sorted by key, at most one for each operator of a key.
  std::vector<Term> by_key_;
  size_t needing_label_ = 0;  // of by_key_
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
  // The value that `field` must have, where the selector demands one.
  std::optional<std::string_view> required(std::string_view field) const;
  // `lookup` gives a field's value as text, "" when it is absent. It is asked once for each field, however many terms there are.
  bool matches(const std::function<std::string(std::string_view field)>& lookup) const;

 private:
  struct Wanted {  // of one field
    std::set<std::string, std::less<>> equal, unequal;
  };
  std::vector<Term> terms_;
  std::map<std::string, Wanted, std::less<>> by_field_;
};

}  // namespace coracle
