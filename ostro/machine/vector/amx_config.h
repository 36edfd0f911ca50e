// AmxConfig, kAmxConfig: the tile configuration of every AMX kernel here, as LDTILECFG reads it: palette 1,
// all eight tiles of 16 rows by 64 bytes.
#pragma once

#include <cstdint>

namespace ostro::machine {

struct alignas(64) AmxConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr AmxConfig kAmxConfig;

}  // namespace ostro::machine
