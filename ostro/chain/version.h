// kNumericsVersion: the version of docs/spec/numerics.md that this program implements.
#pragma once

namespace ostro::chain {

inline constexpr const char* kNumericsVersion = "1";

}  // namespace ostro::chain
