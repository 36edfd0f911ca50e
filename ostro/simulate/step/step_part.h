// Part: what the time of a step is spent on, for a host. A value.
#pragma once

#include <array>
#include <cstddef>

namespace ostro::simulate {

enum class Part { kCompute, kInside, kBetween, kInUpdate, kCommand, kWait, kUpdate, kPrint };
inline constexpr size_t kParts = 8;
inline constexpr std::array<const char*, kParts> kPartNames = {"computing",
                                                               "sending in a slice",
                                                               "sending between slices",
                                                               "sending in the update",
                                                               "commands",
                                                               "waiting for others",
                                                               "update",
                                                               "fingerprints"};

using PartTimes = std::array<double, kParts>;  // seconds

}  // namespace ostro::simulate
