#include "ostro/io/files/counting_file_system.h"

namespace ostro::io {

class CountingFileSystem::File final : public RandomAccessFile {
 public:
  File(std::unique_ptr<RandomAccessFile> base, std::shared_ptr<Counters> counters)
      : base_(std::move(base)), counters_(std::move(counters)) {}

  Status read(int64_t offset, std::span<std::byte> out) const override {
    counters_->reads += 1;
    counters_->bytes_read += static_cast<int64_t>(out.size());
    return base_->read(offset, out);
  }
  int64_t size() const override { return base_->size(); }
  const std::string& path() const override { return base_->path(); }

 private:
  std::unique_ptr<RandomAccessFile> base_;
  std::shared_ptr<Counters> counters_;
};

CountingFileSystem::Counts CountingFileSystem::counts() const {
  return {counters_->opens, counters_->reads, counters_->bytes_read, counters_->lists, counters_->stats};
}

void CountingFileSystem::reset() {
  for (auto* counter :
       {&counters_->opens, &counters_->reads, &counters_->bytes_read, &counters_->lists, &counters_->stats}) {
    *counter = 0;
  }
}

Status CountingFileSystem::before(Operation operation, const std::string&) {
  if (operation == Operation::kOpen) counters_->opens += 1;
  if (operation == Operation::kStat) counters_->stats += 1;
  if (operation == Operation::kList) counters_->lists += 1;
  return {};
}

std::unique_ptr<RandomAccessFile> CountingFileSystem::reading(std::unique_ptr<RandomAccessFile> file) {
  return std::make_unique<File>(std::move(file), counters_);
}

}  // namespace ostro::io
