// Sorts more records than fit in memory: full buffers go to files as sorted runs, which are merged at the
// end.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/file_system.h"

namespace ostro::data {

// Record is plain data with <=>. Not thread-safe; its files, `prefix`.N, are the caller's to remove.
template <typename Record>
class SpillSorter {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  // Holds at most `memory` bytes of records.
  SpillSorter(io::FileSystem& fs, std::string prefix, int64_t memory)
      : fs_(fs),
        prefix_(std::move(prefix)),
        capacity_(std::max<size_t>(static_cast<size_t>(memory) / sizeof(Record), 1024)) {}

  Status add(const Record& record) {
    buffer_.push_back(record);
    return buffer_.size() < capacity_ ? Status() : spill();
  }

  // Gives all records in order, then forgets them.
  Status drain(const std::function<Status(const Record&)>& take) {
    std::sort(buffer_.begin(), buffer_.end());
    if (runs_ == 0) {
      for (const Record& record : buffer_) RETURN_IF_ERROR(take(record));
      buffer_.clear();
      return {};
    }
    RETURN_IF_ERROR(spill());
    buffer_.shrink_to_fit();
    const size_t share = std::max<size_t>(capacity_ / static_cast<size_t>(runs_), 64);
    std::vector<Run> runs;
    for (int64_t i = 0; i < runs_; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<io::RandomAccessFile> file, fs_.open(run_path(i)));
      runs.push_back({std::move(file), 0, {}, 0});
      RETURN_IF_ERROR(runs.back().fill(share));
    }
    const auto later = [&runs](size_t a, size_t b) {
      const Record &x = runs[a].current(), &y = runs[b].current();
      return y < x || (!(x < y) && b < a);
    };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> next(later);
    for (size_t i = 0; i < runs.size(); ++i) next.push(i);
    while (!next.empty()) {
      const size_t i = next.top();
      next.pop();
      RETURN_IF_ERROR(take(runs[i].current()));
      if (++runs[i].at == runs[i].records.size()) RETURN_IF_ERROR(runs[i].fill(share));
      if (runs[i].at < runs[i].records.size()) next.push(i);
    }
    return {};
  }

 private:
  struct Run {
    std::unique_ptr<io::RandomAccessFile> file;
    int64_t read = 0;  // bytes
    std::vector<Record> records;
    size_t at = 0;

    const Record& current() const { return records[at]; }
    Status fill(size_t count) {
      const auto left = static_cast<size_t>(file->size() - read) / sizeof(Record);
      records.resize(std::min(count, left));
      at = 0;
      if (records.empty()) return {};
      RETURN_IF_ERROR(file->read(read, std::as_writable_bytes(std::span(records))));
      read += static_cast<int64_t>(records.size() * sizeof(Record));
      return {};
    }
  };

  std::string run_path(int64_t i) const { return fmt::format("{}.{}", prefix_, i); }

  Status spill() {
    if (buffer_.empty()) return {};
    std::sort(buffer_.begin(), buffer_.end());
    ASSIGN_OR_RETURN(const std::unique_ptr<io::WritableFile> file, fs_.create(run_path(runs_)));
    RETURN_IF_ERROR(file->append(std::as_bytes(std::span(buffer_))));
    RETURN_IF_ERROR(file->close());
    ++runs_;
    buffer_.clear();
    return {};
  }

  io::FileSystem& fs_;
  std::string prefix_;
  size_t capacity_;
  std::vector<Record> buffer_;
  int64_t runs_ = 0;
};

}  // namespace ostro::data
