// OSTRO_CHECK(cond, "what broke and the likely cause: {}", value) aborts with file and line if `cond` is
// false. It is for our own invariants. Bad input is never a failed check: it is an error in a Result
// (error.h).
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace ostro {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace ostro

#define OSTRO_CHECK(cond, ...)                                                      \
  do {                                                                              \
    if (!(cond)) [[unlikely]]                                                       \
      ::ostro::check_failed(__FILE__, __LINE__, #cond, ::fmt::format(__VA_ARGS__)); \
  } while (false)
