// emulated_device: a Device on the CPU, for tests. Device text runs as code of the host's C++ compiler.
//
// Blocks run one after another, forwards or backwards at random. The threads of a block that has barriers
// (BLOCK_KERNEL) are fibres: each runs to the next barrier or shuffle, in a random order, so a missing
// barrier changes bits. Shared memory holds the same poison before every block. Every block of memory lies
// between guard bytes, and holds poison at first. It reports faults that a GPU would leave undefined: threads
// that end before a barrier where others wait, a shuffle that a thread of the warp does not reach, shared
// memory beyond the limit, guard bytes that were written.
#pragma once

#include <string>
#include <vector>

#include "ostro/gpu/device/device.h"

namespace ostro::gpu {

struct EmulationOptions {
  uint64_t seed = 1;  // of the random orders
  // Replaces a part of every text that has it, before it is compiled. Tests break a kernel with it.
  struct Change {
    std::string from, to;
  };
  std::vector<Change> changes;
  int64_t memory_bytes = int64_t{4} << 30;  // more is refused, as by a device that is full
};

// Thread-safe; work of several threads takes turns. Never destroyed: its memory may outlive every engine.
// Error: no C++ compiler runs; the message says which were tried.
Result<Device*> emulated_device(const EmulationOptions& options = {});

// Device::tile_map of an emulated device, whose words cuda/text/warpgroups.cuh reads.
TileMap emulated_tile_map(Address at, int64_t rows, int64_t row_bytes, int64_t tile_rows);

// The number of changes of the options that were made in texts so far, by which a test sees that it broke
// something.
int64_t changes_made(const Device& device);

}  // namespace ostro::gpu
