// PickleInput: reads a pickle's bytes in order through a small window, and skips the elements of arrays.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

// Errors have no place; the machine puts the file and the opcode before them. `file` must outlive it. Not
// thread-safe.
class PickleInput {
 public:
  explicit PickleInput(const io::RandomAccessFile& file) : file_(file), size_(file.size()) {}

  // The offset of the next byte.
  int64_t at() const { return at_; }
  int64_t left() const { return size_ - at_; }

  // A little-endian number of 1 to 8 bytes.
  Result<uint64_t> number(int bytes);
  // The next `bytes` bytes.
  Result<std::string> text(int64_t bytes);
  // Moves past the next `bytes` bytes without reading them.
  Status skip(uint64_t bytes);

  // Begins a frame of the next `bytes` bytes: no read may cross its end. Error: inside another frame.
  Status begin_frame(uint64_t bytes);
  // True if the last frame was read to its end.
  bool frame_ended() const { return at_ >= frame_end_; }

 private:
  Status need(uint64_t bytes) const;
  Status load(int64_t bytes);

  const io::RandomAccessFile& file_;
  int64_t size_, at_ = 0, frame_end_ = 0;
  std::array<std::byte, 512> window_;
  int64_t window_begin_ = 0, window_bytes_ = 0;
};

}  // namespace ostro::grok
