// ReadBox: a function that reads boxes of parameters as f32, from memory or from a checkpoint, for programs
// that write a model elsewhere and need little of it at a time. Threads may call it at the same time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ostro/checkpoint/part_reader.h"
#include "ostro/runtime/buffer.h"

namespace ostro::checkpoint {

// Fills `out` with the box [start, start + shape) of a parameter, row-major. A bf16 or i8 element becomes the
// f32 of the same value. Errors: those of reading.
using ReadBox =
    std::function<Status(size_t parameter, const Extents& start, const Extents& shape, std::span<float> out)>;

// Reads from arrays in memory: f32, bf16 or i8.
ReadBox boxes_in_memory(std::vector<runtime::Buffer> values);
// Reads from the reader's tensors: f32, bf16 or i8. They are not hashed: call check() before.
ReadBox boxes_of(std::shared_ptr<const PartReader> reader);

// Fills `out` with the elements of a parameter from number `first` on, in row-major order; `shape` is that of
// the parameter.
Status read_range(const ReadBox& read, size_t parameter, const Extents& shape, int64_t first,
                  std::span<float> out);

}  // namespace ostro::checkpoint
