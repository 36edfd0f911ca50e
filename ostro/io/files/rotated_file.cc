#include "ostro/io/files/rotated_file.h"

namespace ostro::io {

Status RotatedFile::open() {
  const auto there = fs_.stat(path_);
  if (!there.ok() && there.error().code() != ErrorCode::kNotFound) return there.error();
  ASSIGN_OR_RETURN(file_, fs_.open_append(path_));
  size_ = there.ok() ? there->size : 0;
  return {};
}

Status RotatedFile::append(std::string_view text) {
  if (file_ == nullptr) RETURN_IF_ERROR(open());
  if (size_ > 0 && size_ + static_cast<int64_t>(text.size()) > most_) {
    file_.reset();
    RETURN_IF_ERROR(fs_.rename(path_, path_ + ".1"));
    RETURN_IF_ERROR(open());
  }
  const Status written = file_->append(text);
  if (!written.ok()) {
    file_.reset();
    return written;
  }
  size_ += static_cast<int64_t>(text.size());
  return {};
}

}  // namespace ostro::io
