// utc_text, duration_text: times as text, for people and for run records. Pure functions, except that utc_now
// reads the clock.
#pragma once

#include <cstdint>
#include <string>

namespace ostro::chain {

// UTC time as text, "2026-11-21T10:04:33Z": of a Unix time in seconds, and of now.
std::string utc_text(int64_t unix_seconds);
std::string utc_now();

// "0:07", "12:34", "1:02:03", "3d 04:05:06"; negative or absurd durations give "?".
std::string duration_text(double seconds);

}  // namespace ostro::chain
