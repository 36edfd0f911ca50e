#include "ostro/io/files/rotated_file.h"

#include <cstddef>
#include <span>
#include <utility>

namespace ostro::io {

// Behind a line without its end, which a crash or a full disk left, another would be glued to it.
Status RotatedFile::open() {
  const auto there = fs_.stat(path_);
  if (!there.ok() && there.error().code() != ErrorCode::kNotFound) return there.error();
  size_ = there.ok() ? there->size : 0;
  char last = '\n';
  if (size_ > 0) {
    ASSIGN_OR_RETURN(const auto read, fs_.open(path_));
    RETURN_IF_ERROR(read->read(size_ - 1, std::as_writable_bytes(std::span(&last, 1))));
  }
  ASSIGN_OR_RETURN(auto opened, fs_.open_append(path_));
  if (last != '\n') {
    RETURN_IF_ERROR(opened->append("\n"));
    ++size_;
  }
  file_ = std::move(opened);
  return {};
}

Status RotatedFile::append(std::string_view text) {
  if (file_ == nullptr) RETURN_IF_ERROR(open());
  if (size_ > 0 && size_ + static_cast<int64_t>(text.size()) > most_) {
    const Status closed = std::exchange(file_, nullptr)->close();  // in an object store it sends the rest
    RETURN_IF_ERROR(closed);
    RETURN_IF_ERROR(fs_.rename(path_, path_ + ".1"));
    RETURN_IF_ERROR(open());
  }
  const Status written = file_->append(text);
  if (!written.ok()) {
    file_.reset();
    (void)fs_.truncate(path_, size_);  // where that fails, too, open() ends the line
    return written;
  }
  size_ += static_cast<int64_t>(text.size());
  return {};
}

}  // namespace ostro::io
