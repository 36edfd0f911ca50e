// kMicro, kGiga, kBitsAByte, kHour, kMinute: units of the options as seconds and bytes.
#pragma once

namespace ostro::simulate {

inline constexpr double kMicro = 1e-6;
inline constexpr double kGiga = 1e9;
inline constexpr double kBitsAByte = 8;
inline constexpr double kHour = 3600;
inline constexpr double kMinute = 60;

}  // namespace ostro::simulate
