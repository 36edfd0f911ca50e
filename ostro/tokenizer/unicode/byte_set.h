// ByteSet: a set of bytes. It finds the first of them in a text, 32 bytes at a time. A value: threads may
// share it while none adds a byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ostro::tokenizer {

class ByteSet {
 public:
  void add(uint8_t byte);

  // The first position from `begin` on with a byte of the set, or text.size() if there is none.
  size_t find(std::string_view text, size_t begin) const;

 private:
  bool contains(char c) const {
    const auto byte = static_cast<uint8_t>(c);
    return (rows_[byte >> 7][byte & 15] >> (byte >> 4 & 7) & 1) != 0;
  }

  // Indexed by the low nibble; one bit per high nibble: rows_[0] for 0 to 7, rows_[1] for 8 to 15.
  std::array<std::array<uint8_t, 16>, 2> rows_{};
};

}  // namespace ostro::tokenizer
