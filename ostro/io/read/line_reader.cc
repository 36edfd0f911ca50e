#include "ostro/io/read/line_reader.h"

#include <algorithm>

namespace ostro::io {

Result<LineReader> LineReader::open(FileSystem& fs, const std::string& path, const LineOptions& options) {
  // If the byte is not known, the lines to skip must be read.
  const bool seeks = options.skip_lines == 0 || options.skip_bytes > 0;
  ASSIGN_OR_RETURN(auto file, DecodedFile::open(fs, path, options.skip_bytes));
  LineOptions from = options;
  if (!seeks) from.skip_lines = 0;
  LineReader reader(std::move(file), path, from);
  std::string_view line;
  while (!seeks && reader.line_number_ < options.skip_lines) {
    ASSIGN_OR_RETURN(const bool more, reader.next(line));
    if (!more)
      return corrupt(fmt::format("{}: has {} lines, but line {} was read before", path, reader.line_number_,
                                 options.skip_lines));
  }
  return reader;
}

// Searches the buffer for a line end, and reads more until it has one or the file ends; text that was
// searched before is not searched again. A line that outgrows max_line while it is read is skipped by
// pass_long_line().
Result<bool> LineReader::next(std::string_view& line) {
  size_t searched = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      line_begin_ = next_byte();
      line = std::string_view(buffer_).substr(begin_, std::min(end, buffer_.size()) - begin_);
      begin_ = std::min(end, buffer_.size() - 1) + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line_number_++ == 0 && line.starts_with("\xef\xbb\xbf")) {
        line.remove_prefix(3);
        line_begin_ += 3;
      }
      line_bytes_ = static_cast<int64_t>(line.size());
      break;
    }
    if (ended_) return false;
    if (static_cast<int64_t>(buffer_.size() - begin_) > options_.max_line) {
      RETURN_IF_ERROR(pass_long_line());
      break;
    }
    searched = buffer_.size() - begin_;
    RETURN_IF_ERROR(read_more());
  }
  if (line_bytes_ <= options_.max_line) return true;
  if (!options_.pass_long)
    return corrupt(
        fmt::format("{}: line {} is longer than {} bytes", path_, line_number_, options_.max_line));
  line = {};
  return true;
}

int64_t LineReader::stored_bytes() const {
  if (begin_ == buffer_.size()) return stored_end_;
  // Linear interpolation. Exact in a plain file, where the buffer is as long as the bytes that hold it.
  return stored_begin_ +
         (stored_end_ - stored_begin_) * static_cast<int64_t>(begin_) / static_cast<int64_t>(buffer_.size());
}

void LineReader::release_line() {
  constexpr size_t kLong = 1 << 20;
  if (buffer_.capacity() <= kLong) return;
  drop_taken();
  buffer_.shrink_to_fit();
}

// Removes the lines that were returned from the buffer.
void LineReader::drop_taken() {
  stored_begin_ = stored_bytes();
  buffer_byte_ += static_cast<int64_t>(begin_);
  buffer_.erase(0, begin_);
  begin_ = 0;
}

Status LineReader::read_more() {
  drop_taken();
  auto more = file_->append_to(buffer_);
  if (!more.ok()) return more.error().with_context(fmt::format("{}: after line {}", path_, line_number_));
  ended_ = !*more;
  stored_end_ = file_->stored_bytes();
  return {};
}

// Skips a line that is too long, without keeping it. If that is an error, the rest of the line is not read.
Status LineReader::pass_long_line() {
  line_begin_ = next_byte();
  line_bytes_ = options_.pass_long ? 0 : options_.max_line + 1;
  ++line_number_;
  for (bool after_return = false; options_.pass_long;) {
    const size_t end = std::min(buffer_.find('\n', begin_), buffer_.size());
    if (end > begin_) after_return = buffer_[end - 1] == '\r';
    line_bytes_ += static_cast<int64_t>(end - begin_);
    begin_ = end;
    if (end == buffer_.size() && !ended_) {
      RETURN_IF_ERROR(read_more());
      continue;
    }
    if (end < buffer_.size()) ++begin_;
    if (after_return) --line_bytes_;
    break;
  }
  return {};
}

}  // namespace ostro::io
