#include "ostro/numerics/fingerprint.h"

#include <algorithm>
#include <cstring>

#include "ostro/base/check.h"

namespace ostro::numerics {

void add_row_segment(Fingerprint& fingerprint, int64_t row, int64_t row_length, int64_t element_bytes,
                     int64_t first, std::span<const std::byte> bytes) {
  OSTRO_CHECK(element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8,
              "elements of {} bytes", element_bytes);
  const int64_t size = static_cast<int64_t>(bytes.size());
  const int64_t last = first + size / element_bytes;
  const int64_t per_word = fingerprint_per_word(element_bytes);
  OSTRO_CHECK(size % element_bytes == 0 && first >= 0 && last <= row_length,
              "{} bytes from element {} in a row of {} elements", size, first, row_length);
  OSTRO_CHECK(first % per_word == 0 && (last % per_word == 0 || last == row_length),
              "elements {} to {} of a row of {} do not cut it at multiples of {}", first, last, row_length,
              per_word);
  uint64_t index = static_cast<uint64_t>(row) *
                       static_cast<uint64_t>(fingerprint_words_per_row(row_length, element_bytes)) +
                   static_cast<uint64_t>(first / per_word);
  for (int64_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, static_cast<size_t>(std::min<int64_t>(8, size - at)));
    fingerprint.add_word(index++, word);
  }
}

Fingerprint fingerprint_array(int64_t rows, int64_t row_length, int64_t element_bytes,
                              std::span<const std::byte> bytes) {
  const size_t row_bytes = static_cast<size_t>(row_length * element_bytes);
  OSTRO_CHECK(bytes.size() == static_cast<size_t>(rows) * row_bytes,
              "{} bytes for {} rows of {} elements of {} bytes", bytes.size(), rows, row_length,
              element_bytes);
  Fingerprint fingerprint;
  for (int64_t row = 0; row < rows; ++row) {
    add_row_segment(fingerprint, row, row_length, element_bytes, 0,
                    bytes.subspan(static_cast<size_t>(row) * row_bytes, row_bytes));
  }
  return fingerprint;
}

}  // namespace ostro::numerics
