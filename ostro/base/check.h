// OSTRO_CHECK: aborts with file and line when an invariant of ours is broken.
//
// OSTRO_CHECK(cond, "what broke and the likely cause: {}", value) formats its message with fmt, and only if
// `cond` is false. Bad input is never a failed check: it is an error in a Result (error.h). Thread-safe.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace ostro {
// Prints place, condition and message to stderr and aborts. Called by OSTRO_CHECK only.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace ostro

#define OSTRO_CHECK(cond, ...)                                                      \
  do {                                                                              \
    if (!(cond)) [[unlikely]]                                                       \
      ::ostro::check_failed(__FILE__, __LINE__, #cond, ::fmt::format(__VA_ARGS__)); \
  } while (false)
