// A set of bytes, and where in a text the first of them stands: 32 bytes at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ostro::tokenizer {

class ByteSet {
 public:
  void add(uint8_t byte);

  // The first place from `begin` on that has a byte of the set; text.size() when there is none.
  size_t find(std::string_view text, size_t begin) const;

 private:
  bool contains(char c) const {
    const auto byte = static_cast<uint8_t>(c);
    return (rows_[byte >> 7][byte & 15] >> (byte >> 4 & 7) & 1) != 0;
  }

  // By low nibble a bit for each high nibble: those below 8, those from 8 on.
  std::array<std::array<uint8_t, 16>, 2> rows_{};
};

}  // namespace ostro::tokenizer
