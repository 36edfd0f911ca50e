// SpillSorter: external merge sort, for more records than fit in memory. Full buffers are written to files as
// sorted runs. The runs are merged at the end; when they are too many to be open at once, groups of them are
// merged to longer runs first.
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
#include "ostro/io/files/file_system.h"

namespace ostro::corpus_check {

// Record is plain data with <=>. Not thread-safe. The files are named `prefix`.N. drain() removes them as it
// reads them; after an error the caller must remove what is left.
template <typename Record>
class SpillSorter {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  using Take = std::function<Status(const Record&)>;

  // Holds at most `memory` bytes of records, but at least 1024 records and, during a merge, 64 of every open
  // run. Opens at most `fan_in` (2 or more) runs at once, plus one file for writing.
  SpillSorter(io::FileSystem& fs, std::string prefix, int64_t memory, size_t fan_in = 256)
      : fs_(fs),
        prefix_(std::move(prefix)),
        capacity_(std::max<size_t>(static_cast<size_t>(memory) / sizeof(Record), 1024)),
        fan_in_(std::max<size_t>(fan_in, 2)) {}

  Status add(const Record& record) {
    buffer_.push_back(record);
    return buffer_.size() < capacity_ ? Status() : spill();
  }

  // Gives all records in order, then is empty again. Among equal records those of an earlier run come first.
  Status drain(const Take& take) {
    std::sort(buffer_.begin(), buffer_.end());
    if (runs_.empty()) {
      for (const Record& record : buffer_) RETURN_IF_ERROR(take(record));
      buffer_.clear();
      return {};
    }
    RETURN_IF_ERROR(spill());
    buffer_.shrink_to_fit();
    while (runs_.size() > fan_in_) RETURN_IF_ERROR(merge_some());
    RETURN_IF_ERROR(merge(runs_, take));
    runs_.clear();
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
    const int64_t number = next_run_++;
    ASSIGN_OR_RETURN(const std::unique_ptr<io::WritableFile> file, fs_.create(run_path(number)));
    RETURN_IF_ERROR(file->append(std::as_bytes(std::span(buffer_))));
    RETURN_IF_ERROR(file->close());
    runs_.push_back(number);
    buffer_.clear();
    return {};
  }

  // One pass over the runs. Neighbouring runs are merged to one that takes their place, so that equal records
  // keep their order. It stops merging as soon as at most `fan_in` runs will be left.
  Status merge_some() {
    std::vector<int64_t> merged;
    for (size_t at = 0; at < runs_.size();) {
      const size_t left = runs_.size() - at, now = merged.size() + left;
      const size_t excess = now > fan_in_ ? now - fan_in_ : 0;
      const size_t count = std::min({fan_in_, left, excess + 1});
      int64_t number = runs_[at];
      if (count > 1) {
        number = next_run_++;
        RETURN_IF_ERROR(merge_to_file(std::span(runs_).subspan(at, count), number));
      }
      merged.push_back(number);
      at += count;
    }
    runs_ = std::move(merged);
    return {};
  }

  Status merge_to_file(std::span<const int64_t> numbers, int64_t to) {
    ASSIGN_OR_RETURN(const std::unique_ptr<io::WritableFile> file, fs_.create(run_path(to)));
    const size_t limit = share(numbers.size());
    std::vector<Record> out;
    out.reserve(limit);
    const auto flush = [&]() -> Status {
      RETURN_IF_ERROR(file->append(std::as_bytes(std::span(out))));
      out.clear();
      return {};
    };
    RETURN_IF_ERROR(merge(numbers, [&](const Record& record) -> Status {
      out.push_back(record);
      return out.size() < limit ? Status() : flush();
    }));
    if (!out.empty()) RETURN_IF_ERROR(flush());
    return file->close();
  }

  // Merges some runs: gives their records in order, then removes their files.
  Status merge(std::span<const int64_t> numbers, const Take& take) {
    std::vector<Run> runs;
    for (const int64_t number : numbers) {
      ASSIGN_OR_RETURN(std::unique_ptr<io::RandomAccessFile> file, fs_.open(run_path(number)));
      runs.push_back({std::move(file), 0, {}, 0});
      RETURN_IF_ERROR(runs.back().fill(share(numbers.size())));
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
      if (++runs[i].at == runs[i].records.size()) RETURN_IF_ERROR(runs[i].fill(share(numbers.size())));
      if (runs[i].at < runs[i].records.size()) next.push(i);
    }
    runs.clear();  // closes the files
    for (const int64_t number : numbers) RETURN_IF_ERROR(fs_.remove(run_path(number)));
    return {};
  }

  // Buffer size in records for each of `runs` runs, and for the output of their merge.
  size_t share(size_t runs) const { return std::max<size_t>(capacity_ / (runs + 1), 64); }

  io::FileSystem& fs_;
  std::string prefix_;
  size_t capacity_;  // records
  size_t fan_in_;
  std::vector<Record> buffer_;
  std::vector<int64_t> runs_;  // numbers of their files; earlier records first
  int64_t next_run_ = 0;
};

}  // namespace ostro::corpus_check
