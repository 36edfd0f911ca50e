// mib: bytes as mebibytes, for messages. Any thread may call.
#pragma once

#include <cstdint>

namespace ostro {

inline double mib(int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

}  // namespace ostro
