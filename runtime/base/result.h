// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. It is the only way in which functions report failure.
//
// Nothing throws, so failure is visible in every signature. (Three places handle foreign exceptions: the JSON parser, thread
// set-up in main, the HTTP library's handler.) An Error has a Code to act on and a text for people, to which each caller adds its
// context ("start pod web: pull nginx: GET manifest: timeout"). It has the errno if there was one, and the details of a
// Kubernetes Status if it answers a client.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coracle {

// All error codes. store/object/status.h maps them to HTTP status and Kubernetes reason; code_of_errno maps errno to them.
enum class Code : uint8_t {
  invalid,             // the value is not acceptable (422)
  bad_request,         // the request itself is malformed (400)
  unauthorized,        // not authenticated (401)
  forbidden,           // not allowed (403)
  not_found,           // (404)
  method_not_allowed,  // (405)
  not_acceptable,      // no representation the client accepts (406)
  already_exists,      // (409)
  conflict,            // the object was changed meanwhile, or a precondition fails (409)
  gone,                // that revision has been compacted (410)
  too_large,           // a named limit was exceeded (413)
  unsupported,         // media type or feature (415)
  too_many_requests,   // (429)
  internal,            // (500)
  unavailable,         // try again later (503)
  timeout,             // (504)
  cancelled,           // the caller asked to stop
};

const char* code_name(Code code);
Code code_of_errno(int err);

// One cause of an error, about one field. `reason` is Kubernetes' cause type: FieldValueRequired, FieldValueInvalid,
// FieldValueNotSupported, FieldValueForbidden, FieldValueDuplicate, FieldValueNotFound, FieldValueTooLong, ...
struct Cause {
  std::string reason;
  std::string message;
  std::string field;
  bool operator==(const Cause&) const = default;
};

// The fields of a Kubernetes Status beside code and text. Source: apimachinery meta/v1 StatusDetails.
struct ErrorDetails {
  std::string group, kind, name, uid;
  std::vector<Cause> causes;
  int retry_after_seconds = 0;
  std::string reason;          // overrides the reason that follows from the code, for example "Expired"
  std::string continue_token;  // for an expired list: the token of an inconsistent continuation
  int http_status = 0;         // overrides the status that follows from the code
};

class [[nodiscard]] Error {
 public:
  Error(Code code, std::string text, std::source_location where = std::source_location::current())
      : code_(code), text_(std::move(text)), where_(where) {}

  // Reads errno. `doing` names the failed operation: "open cgroup control".
  static Error from_errno(std::string_view doing, std::source_location where = std::source_location::current()) {
    return from_errno(errno, doing, where);
  }
  // `err` is a positive errno.
  static Error from_errno(int err, std::string_view doing, std::source_location where = std::source_location::current());

  Code code() const { return code_; }
  int err() const { return errno_; }  // positive errno, 0 if there is none
  const std::string& text() const { return text_; }
  const std::source_location& where() const { return where_; }
  const ErrorDetails* details() const { return details_.get(); }

  Error&& wrap(std::string_view doing) && {
    text_.insert(0, ": ").insert(0, doing);
    return std::move(*this);
  }
  Error&& with(ErrorDetails details) && {
    details_ = std::make_shared<const ErrorDetails>(std::move(details));
    return std::move(*this);
  }
  Error&& as(Code code) && {
    code_ = code;
    return std::move(*this);
  }

 private:
  Code code_;
  int errno_ = 0;
  std::string text_;
  std::source_location where_;
  std::shared_ptr<const ErrorDetails> details_;
};

[[noreturn]] void wrong_side_of_result();  // a bug: ends the process

// A union and a flag, not a std::variant: there are hundreds of T, and instantiating a variant for each took 5 % of the compile
// time.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : ok_(true), value_(std::move(value)) {}
  Result(Error error) : ok_(false), error_(std::move(error)) {}
  template <typename U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, T>) Result(U&& value)
      : ok_(true), value_(std::forward<U>(value)) {}
  Result(Result&& other) noexcept : ok_(other.ok_) { take(std::move(other)); }
  Result(const Result& other) requires std::is_copy_constructible_v<T> : ok_(other.ok_) {
    if (ok_) std::construct_at(&value_, other.value_);
    else std::construct_at(&error_, other.error_);
  }
  Result& operator=(Result other) noexcept {
    destroy();
    ok_ = other.ok_;
    take(std::move(other));
    return *this;
  }
  ~Result() { destroy(); }

  explicit operator bool() const { return ok_; }
  bool ok() const { return ok_; }
  // Accessing a value or an error that is not there ends the process.
  T& operator*() & { return need(true), value_; }
  const T& operator*() const& { return need(true), value_; }
  T&& operator*() && { return need(true), std::move(value_); }
  T* operator->() { return need(true), &value_; }
  const T* operator->() const { return need(true), &value_; }
  const Error& error() const { return need(false), error_; }
  Error take_error() { return need(false), std::move(error_); }
  Result wrap(std::string_view doing) && {
    if (!ok_) return Result(std::move(error_).wrap(doing));
    return std::move(*this);
  }
  T value_or(T other) && { return ok_ ? std::move(value_) : std::move(other); }

 private:
  void need(bool has_value) const {
    if (ok_ != has_value) [[unlikely]]
      wrong_side_of_result();
  }
  void take(Result&& other) {
    if (ok_) std::construct_at(&value_, std::move(other.value_));
    else std::construct_at(&error_, std::move(other.error_));
  }
  void destroy() {
    if (ok_) value_.~T();
    else error_.~Error();
  }

  bool ok_;
  union {
    T value_;
    Error error_;
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  explicit operator bool() const { return !error_; }
  bool ok() const { return !error_; }
  void operator*() const {}
  // Errors: as for a value: there has to be an error.
  const Error& error() const { return need_error(), *error_; }
  Error take_error() { return need_error(), std::move(*error_); }
  Result wrap(std::string_view doing) && {
    if (error_) return Result(std::move(*error_).wrap(doing));
    return {};
  }

 private:
  void need_error() const {
    if (!error_) [[unlikely]]
      wrong_side_of_result();
  }

  std::unique_ptr<Error> error_;
};

[[noreturn]] void bug(const char* what, const char* text, std::source_location where);

}  // namespace coracle

// Returns the error from the enclosing function, or yields the value. Use it only as a statement of its own or as the whole right
// side of `=` or `return`: inside a larger expression g++ 12 leaks what was already built.
#define TRY(expr)                      \
  __extension__({                      \
    auto try_result_ = (expr);         \
    if (!try_result_) [[unlikely]]     \
      return try_result_.take_error(); \
    *std::move(try_result_);           \
  })

// For errors that only a bug can cause: ends the process with the error's text.
#define MUST(expr)                                                                                 \
  __extension__({                                                                                  \
    auto must_result_ = (expr);                                                                    \
    if (!must_result_) [[unlikely]]                                                                \
      ::coracle::bug(#expr, must_result_.error().text().c_str(), std::source_location::current()); \
    *std::move(must_result_);                                                                      \
  })
