#include "ostro/io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace ostro::io {
namespace {

// One byte at a time by table, for machines without the instruction and for the last few bytes.
constexpr auto kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}();

uint32_t step(uint32_t crc, std::byte byte) {
  return (crc >> 8) ^ kTable[(crc ^ static_cast<uint32_t>(byte)) & 0xffu];
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
#if defined(__SSE4_2__)
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    crc = static_cast<uint32_t>(_mm_crc32_u64(crc, word));
    bytes = bytes.subspan(8);
  }
#endif
  for (const std::byte byte : bytes) crc = step(crc, byte);
  return ~crc;
}

}  // namespace ostro::io
