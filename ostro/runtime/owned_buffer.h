// owned_buffer: a buffer of memory that something else owns, such as a mapped file.
#pragma once

#include <memory>
#include <span>

#include "ostro/runtime/buffer.h"

namespace ostro::runtime {

// On the host: the elements at `bytes`, as many as the shape has, which begin at a multiple of kAlignment and
// are there as long as `owner` is. A thread that writes to the buffer writes there.
Buffer owned_buffer(ir::Shape shape, std::span<std::byte> bytes, std::shared_ptr<void> owner);

}  // namespace ostro::runtime
