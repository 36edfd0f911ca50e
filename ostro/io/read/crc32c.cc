#include "ostro/io/read/crc32c.h"

#include <array>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace ostro::io {
namespace {

// Byte by byte with a table: for machines without the instruction, and for the last few bytes.
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

#if defined(__SSE4_2__)
uint64_t word_at(const std::byte* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// The CRC instruction has a latency of three cycles and a throughput of one per cycle. So three stretches are
// computed side by side, and their remainders are joined: crc(ab) = (crc(a) followed by |b| zero bytes) xor
// crc(b).
constexpr size_t kStretch = 4096;  // bytes; three stretches are computed at once

// Tables for appending kStretch zero bytes to a remainder. The effect is linear in the bits, so there is one
// table for each of its four bytes.
using Shift = std::array<std::array<uint32_t, 256>, 4>;

const Shift& shift_by_stretch() {
  static const Shift shift = [] {
    Shift s{};
    for (size_t byte = 0; byte < 4; ++byte)
      for (uint32_t value = 0; value < 256; ++value) {
        uint64_t crc = value << (8 * byte);
        for (size_t i = 0; i < kStretch / 8; ++i) crc = _mm_crc32_u64(crc, 0);
        s[byte][value] = static_cast<uint32_t>(crc);
      }
    return s;
  }();
  return shift;
}

uint32_t shifted(const Shift& s, uint32_t crc) {
  return s[0][crc & 0xffu] ^ s[1][(crc >> 8) & 0xffu] ^ s[2][(crc >> 16) & 0xffu] ^ s[3][crc >> 24];
}
#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
#if defined(__SSE4_2__)
  while (bytes.size() >= 3 * kStretch) {
    const std::byte* p = bytes.data();
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kStretch; i += 8) {
      a = _mm_crc32_u64(a, word_at(p + i));
      b = _mm_crc32_u64(b, word_at(p + kStretch + i));
      c = _mm_crc32_u64(c, word_at(p + 2 * kStretch + i));
    }
    const Shift& shift = shift_by_stretch();
    crc = shifted(shift, shifted(shift, static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b)) ^
          static_cast<uint32_t>(c);
    bytes = bytes.subspan(3 * kStretch);
  }
  for (; bytes.size() >= 8; bytes = bytes.subspan(8))
    crc = static_cast<uint32_t>(_mm_crc32_u64(crc, word_at(bytes.data())));
#endif
  for (const std::byte byte : bytes) crc = step(crc, byte);
  return ~crc;
}

}  // namespace ostro::io
