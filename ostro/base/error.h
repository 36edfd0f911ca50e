// Error, Result, Status: errors as values.
//
// Code that handles input, files or the network returns Result<T> or Status. A broken invariant is an
// OSTRO_CHECK. Only tracing throws exceptions (trace/error.h). Libraries never print or exit. Values, not
// thread-safe.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "ostro/base/check.h"

namespace ostro {

// The kind of failure. A caller can decide by it what to do (retry, fall back, exit code) without reading the
// message.
enum class ErrorCode {
  kInvalidArgument,  // a request that is contradictory or impossible
  kNotFound,         // a file, key or name that should exist does not
  kCorrupt,          // data whose checksum, length or structure is wrong
  kIo,               // the operating system refused: disk full, permission, ...
  kBusy,             // another process uses it
  kUnsupported,      // valid, but not something this build or machine can do
  kInternal,         // a bug of ours, reported without aborting
  kDevice,           // a GPU has no room, has failed or is lost: this process cannot go on with it
};

// "invalid argument", "not found", ...
const char* error_code_name(ErrorCode code);

// One failure: a code and a message that names the thing, both values, the place and the fix.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // This error with "context: " in front of the message. Used when an error is passed up.
  Error with_context(std::string_view context) const;

 private:
  ErrorCode code_;
  std::string message_;
};

// An Error of the code that the function is named after.
Error invalid_argument(std::string message);
Error not_found(std::string message);
Error corrupt(std::string message);
Error io_error(std::string message);
Error busy(std::string message);
Error unsupported(std::string message);
Error device_error(std::string message);

// A T or an Error. Reading the value of a failed Result aborts and prints the error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return std::get<1>(state_); }

  T& value() & {
    OSTRO_CHECK(ok(), "value() of a failed Result: {}", error().message());
    return std::get<0>(state_);
  }
  const T& value() const& {
    OSTRO_CHECK(ok(), "value() of a failed Result: {}", error().message());
    return std::get<0>(state_);
  }
  T&& value() && {
    OSTRO_CHECK(ok(), "value() of a failed Result: {}", error().message());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() : error_(ErrorCode::kInternal, ""), ok_(true) {}
  Status(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_;
};

// Aborts when a Status is not ok; for tests and for steps that cannot fail.
void check_ok(const Status& status);

}  // namespace ostro

#define OSTRO_CONCAT_INNER(a, b) a##b
#define OSTRO_CONCAT(a, b) OSTRO_CONCAT_INNER(a, b)

// Returns the error of a Status (or Result) expression from the enclosing function.
#define RETURN_IF_ERROR(expr)                            \
  do {                                                   \
    auto ostro_status = (expr);                          \
    if (!ostro_status.ok()) return ostro_status.error(); \
  } while (false)

// ASSIGN_OR_RETURN(auto x, f()): x is the value of a Result, or the enclosing function returns its error.
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL(OSTRO_CONCAT(ostro_result_, __COUNTER__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  if (!tmp.ok()) return tmp.error();          \
  lhs = std::move(tmp).value()
