// crc32c: CRC-32C (Castagnoli), the checksum in Zarr's shard index and in TensorBoard's records. A pure
// function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ostro::io {

// The checksum of `bytes`. `before` is the checksum of the bytes before them (0 at the start).
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace ostro::io
