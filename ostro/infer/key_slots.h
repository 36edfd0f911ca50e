// KeySlots: keys and values of several sequences, in slots of one array for each layer. Slots that lie side
// by side are one array to attention; no slot is ever moved or copied for a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/runtime/buffer.h"

namespace ostro::infer {

// Places that hold no key are zeros (numerics.md N16). Not thread-safe.
class KeySlots {
 public:
  // `one`: the array of one layer, [slot, position, ...]. Error: the memory has no room.
  static Result<KeySlots> create(const ir::Shape& one, int64_t layers, runtime::Memory& memory);

  int64_t slots() const { return slots_; }
  // The lowest slot that is free, or -1. It has no positions.
  int64_t take();
  // Free again, and zeros.
  Status give_back(int64_t slot);
  int64_t length(int64_t slot) const { return of(slot).length; }
  // The rows that were written up to here count.
  void set_length(int64_t slot, int64_t length) { slots_of_[static_cast<size_t>(slot)].length = length; }

  // Writes rows of keys and values on the host to the positions from `at` on.
  Status write(int64_t layer, int64_t slot, int64_t at, std::span<const std::byte> keys,
               std::span<const std::byte> values);
  // Copies the first `count` positions of a slot, in all layers.
  Status copy(int64_t from, int64_t to, int64_t count);
  // `count` slots from `first` on: views, [slot, position, ...].
  runtime::Buffer keys(int64_t layer, int64_t first, int64_t count) const;
  runtime::Buffer values(int64_t layer, int64_t first, int64_t count) const;
  // Bytes of one position in one layer's keys, and as many in its values.
  size_t row_bytes() const { return row_bytes_; }

 private:
  struct Slot {
    bool taken = false;
    int64_t length = 0, written = 0;  // `written`: positions that may be no zeros
  };
  // Both arrays of a layer, and each as a matrix with a row for each position of each slot.
  struct Layer {
    runtime::Buffer keys, values, key_rows, value_rows;
  };

  const Slot& of(int64_t slot) const { return slots_of_[static_cast<size_t>(slot)]; }

  int64_t slots_ = 0, positions_ = 0;
  size_t row_bytes_ = 0;
  std::vector<Slot> slots_of_;
  std::vector<Layer> layers_;
};

}  // namespace ostro::infer
