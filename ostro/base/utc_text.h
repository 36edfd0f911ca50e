// utc_text: a time of the clock as text, "2026-11-21T10:04:33Z". Pure.
#pragma once

#include <cstdint>
#include <string>

namespace ostro {

// Of a Unix time in seconds.
std::string utc_text(int64_t unix_seconds);

}  // namespace ostro
