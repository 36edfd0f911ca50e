// DeviceName: the device that a user names for an engine: "cpu", "cuda", "cuda:1", "auto". A pure function.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::runtime {

struct DeviceName {
  enum class Kind {
    kCpu,
    kCuda,  // the GPU `ordinal`
    kAuto   // the first GPU that can be used, else the processors
  };
  Kind kind = Kind::kCpu;
  int ordinal = 0;
};

// Reads the name of a device; "cuda" is "cuda:0". Error: kInvalidArgument for another word; the message names
// `option`, the option that had it ("--device").
Result<DeviceName> parse_device(const std::string& option, const std::string& text);

inline constexpr const char* kDeviceHelp =
    "where programs run: cpu, cuda (the first GPU; workers of ostro launch local take the GPUs in turn), "
    "cuda:N, or auto (as cuda where a GPU can be used, else cpu); changes no bit (docs/guide/gpu.md)";

}  // namespace ostro::runtime
