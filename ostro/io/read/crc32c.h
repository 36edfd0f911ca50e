// CRC-32C (Castagnoli), the checksum of Zarr's shard index and of TensorBoard's records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ostro::io {

// Of `bytes`, continuing from the checksum of what came before (0 at the start).
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace ostro::io
