// Token ids in memory: two or four bytes each, whatever they are on disk. The loops that every token goes
// through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ostro/data/ledger/element_type.h"

namespace ostro::data {

// How ids below `vocab_size` are kept in memory: kUint16 or kInt32.
ElementType kept_ids(int64_t vocab_size);

// Ids of a type of integers, as that keeps them; `out` has room for exactly them, or is where they lie, if
// they are as wide as kept ones. False when one is not in [0, vocab_size).
bool keep_ids(ElementType type, std::span<const std::byte> ids, int64_t vocab_size, std::span<std::byte> out);

// Kept ids as int32; `ids` are as many as `out`.
void copy_kept_ids(ElementType type, std::span<const std::byte> ids, std::span<int32_t> out);

}  // namespace ostro::data
