#include "ostro/grok/pickle/input.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

namespace ostro::grok {

Status PickleInput::need(uint64_t bytes) const {
  if (bytes > static_cast<uint64_t>(left()))
    return corrupt(fmt::format("the file ends: {} bytes are left, {} are needed", left(), bytes));
  if (at_ < frame_end_ && bytes > static_cast<uint64_t>(frame_end_ - at_))
    return corrupt(
        fmt::format("the frame ends at byte {}: {} bytes are needed at byte {}", frame_end_, bytes, at_));
  return {};
}

Status PickleInput::load(int64_t bytes) {
  const bool loaded = at_ >= window_begin_ && at_ + bytes <= window_begin_ + window_bytes_;
  if (loaded) return {};
  window_begin_ = at_;
  window_bytes_ = std::min<int64_t>(static_cast<int64_t>(window_.size()), left());
  const auto out = std::span(window_).first(static_cast<size_t>(window_bytes_));
  const Status read = file_.read(window_begin_, out);
  if (!read.ok()) window_bytes_ = 0;
  return read;
}

Result<std::string> PickleInput::text(int64_t bytes) {
  OSTRO_CHECK(bytes <= static_cast<int64_t>(window_.size()), "{} bytes at once", bytes);
  RETURN_IF_ERROR(need(static_cast<uint64_t>(bytes)));
  RETURN_IF_ERROR(load(bytes));
  const char* begin = reinterpret_cast<const char*>(window_.data()) + (at_ - window_begin_);
  at_ += bytes;
  return std::string(begin, static_cast<size_t>(bytes));
}

Result<uint64_t> PickleInput::number(int bytes) {
  RETURN_IF_ERROR(need(static_cast<uint64_t>(bytes)));
  RETURN_IF_ERROR(load(bytes));
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;)
    value = value << 8 | static_cast<uint64_t>(window_[static_cast<size_t>(at_ - window_begin_ + i)]);
  at_ += bytes;
  return value;
}

Status PickleInput::skip(uint64_t bytes) {
  RETURN_IF_ERROR(need(bytes));
  at_ += static_cast<int64_t>(bytes);
  return {};
}

Status PickleInput::begin_frame(uint64_t bytes) {
  if (!frame_ended())
    return corrupt(fmt::format("a frame begins inside the frame that ends at byte {}", frame_end_));
  RETURN_IF_ERROR(need(bytes));
  frame_end_ = at_ + static_cast<int64_t>(bytes);
  return {};
}

}  // namespace ostro::grok
