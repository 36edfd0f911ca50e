#include "ostro/data/arrays/ids.h"

#include <algorithm>
#include <limits>

#include "ostro/base/check.h"

namespace ostro::data {
namespace {

template <typename To, typename From>
bool narrow(std::span<const From> from, int64_t vocab_size, To* to) {
  uint64_t bits = 0;  // OR of all ids; the highest bit is set if one is negative
  if (static_cast<const void*>(from.data()) == to) {
    for (size_t i = 0; i < from.size(); ++i) bits |= static_cast<uint64_t>(from[i]);
  } else {
    for (size_t i = 0; i < from.size(); ++i) {
      bits |= static_cast<uint64_t>(from[i]);
      to[i] = static_cast<To>(from[i]);
    }
  }
  if (bits < static_cast<uint64_t>(vocab_size)) return true;
  if (bits > static_cast<uint64_t>(std::numeric_limits<To>::max())) return false;
  To largest = 0;
  for (size_t i = 0; i < from.size(); ++i) largest = std::max(largest, to[i]);
  return largest < vocab_size;
}

template <typename From>
void widen(const From* from, std::span<int32_t> to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<int32_t>(from[i]);
}

}  // namespace

ElementType kept_ids(int64_t vocab_size) {
  return vocab_size <= 0x10000 ? ElementType::kUint16 : ElementType::kInt32;
}

bool keep_ids(ElementType type, std::span<const std::byte> ids, int64_t vocab_size,
              std::span<std::byte> out) {
  const ElementType kept = kept_ids(vocab_size);
  OSTRO_CHECK(out.size() / element_bytes(kept) == ids.size() / element_bytes(type),
              "{} bytes for {} bytes of {}", out.size(), ids.size(), element_name(type));
  return visit_elements(type, ids, [&](auto from) {
    return kept == ElementType::kUint16 ? narrow(from, vocab_size, reinterpret_cast<uint16_t*>(out.data()))
                                        : narrow(from, vocab_size, reinterpret_cast<int32_t*>(out.data()));
  });
}

void copy_kept_ids(ElementType type, std::span<const std::byte> ids, std::span<int32_t> out) {
  OSTRO_CHECK(ids.size() == out.size() * element_bytes(type), "{} bytes for {} ids", ids.size(), out.size());
  if (type == ElementType::kUint16)
    widen(reinterpret_cast<const uint16_t*>(ids.data()), out);
  else
    widen(reinterpret_cast<const int32_t*>(ids.data()), out);
}

}  // namespace ostro::data
