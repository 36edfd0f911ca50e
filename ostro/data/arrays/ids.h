// kept_ids, keep_ids, copy_kept_ids: token ids in memory, two or four bytes each, whatever their type on
// disk. Every token passes through these loops, so they are fast. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ostro/data/ledger/element_type.h"

namespace ostro::data {

// The type in memory of ids below `vocab_size`: kUint16 or kInt32.
ElementType kept_ids(int64_t vocab_size);

// Converts ids of an integer type to the type kept_ids(vocab_size). `out` has room for exactly these ids. It
// may be the memory of `ids` itself if both types have the same width. False when an id is not in [0,
// vocab_size).
bool keep_ids(ElementType type, std::span<const std::byte> ids, int64_t vocab_size, std::span<std::byte> out);

// Converts kept ids to int32. `ids` holds as many ids as `out`.
void copy_kept_ids(ElementType type, std::span<const std::byte> ids, std::span<int32_t> out);

}  // namespace ostro::data
