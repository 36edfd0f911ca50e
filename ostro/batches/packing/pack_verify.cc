#include "ostro/batches/packing/pack_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "ostro/batches/packing/pack_index_file.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/path.h"

namespace ostro::batches {
namespace {

// Row ends are read once, in order, so the cache only needs to hold what one read covers.
constexpr size_t kEndsCacheBytes = size_t{16} << 20;
constexpr int64_t kReadAheadBytes = int64_t{256} << 10;
constexpr const char* kMendPack = "delete the file: it is made again when it is needed";

int64_t to_entry(std::span<const std::byte> bytes) {
  int64_t value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// A WritableFile that writes nothing. It compares the appended bytes with an existing file.
class ComparingFile final : public io::WritableFile {
 public:
  using WritableFile::append;
  ComparingFile(const io::RandomAccessFile& file, int64_t sequences, std::function<void(int64_t)> compared)
      : file_(file), sequences_(sequences), compared_(std::move(compared)) {}

  Status append(std::span<const std::byte> made) override {
    if (failure_.ok()) failure_ = compare(made);
    return failure_;
  }
  Status sync() override { return {}; }
  Status close() override {
    if (failure_.ok() && at_ != file_.size())
      failure_ = corrupt(fmt::format("{}: has {} bytes, and the rows of the store give {}; {}", file_.path(),
                                     file_.size(), at_, kMendPack));
    return failure_;
  }
  // Why the existing file differs or cannot be read.
  const Status& failure() const { return failure_; }

 private:
  Status compare(std::span<const std::byte> made) {
    ASSIGN_OR_RETURN(const std::span<const std::byte> held, read(static_cast<int64_t>(made.size())));
    const auto [in_held, in_made] = std::ranges::mismatch(held, made);
    if (in_held != held.end()) {
      const int64_t at = in_held - held.begin();
      return corrupt(fmt::format("{}: byte {} is {:#04x}, and the rows of the store give {:#04x}{}; {}",
                                 file_.path(), at_ + at, static_cast<int>(*in_held),
                                 static_cast<int>(*in_made), place(held, made, at), kMendPack));
    }
    at_ += static_cast<int64_t>(made.size());
    compared_(static_cast<int64_t>(held.size()));
    return {};
  }

  // Up to `count` bytes of the file from at_ on, fewer at its end. Reads ahead, because each read from an
  // object store is a request.
  Result<std::span<const std::byte>> read(int64_t count) {
    const int64_t left = std::max<int64_t>(file_.size() - at_, 0);
    count = std::min(count, left);
    if (at_ + count > ahead_begin_ + static_cast<int64_t>(ahead_.size())) {
      ahead_.resize(static_cast<size_t>(std::min(left, std::max(count, kReadAheadBytes))));
      ahead_begin_ = at_;
      RETURN_IF_ERROR(file_.read(at_, ahead_));
    }
    if (count == 0) return std::span<const std::byte>();
    return std::span<const std::byte>(ahead_).subspan(static_cast<size_t>(at_ - ahead_begin_),
                                                      static_cast<size_t>(count));
  }

  // Describes byte `at` of the bytes that were read: the entry of a page, if it lies in one.
  std::string place(std::span<const std::byte> held, std::span<const std::byte> made, int64_t at) const {
    const int64_t page = at_ / pack_page_bytes(kPackPageEntries), begin = at & ~int64_t{7};
    const int64_t entry = page * kPackPageEntries + begin / 8;
    const bool is_page = at_ % pack_page_bytes(kPackPageEntries) == 0 && entry < sequences_ &&
                         begin + 8 <= static_cast<int64_t>(std::min(made.size(), held.size()));
    if (!is_page) return "";
    const auto value = [&](std::span<const std::byte> bytes) {
      return to_entry(bytes.subspan(static_cast<size_t>(begin)));
    };
    return fmt::format(": sequence {} begins with row {} there, and should with row {}", entry, value(held),
                       value(made));
  }

  const io::RandomAccessFile& file_;
  int64_t sequences_;  // as the file's header says
  std::function<void(int64_t)> compared_;
  std::vector<std::byte> ahead_;  // bytes of the file from ahead_begin_ on
  int64_t ahead_begin_ = 0;
  int64_t at_ = 0;  // bytes that were appended
  Status failure_;
};

void verify_index(io::FileSystem& fs, const Result<std::shared_ptr<const data::TokenStore>>& store,
                  PackIndexReport& report, const std::function<void(int64_t)>& compared) {
  const auto end = [&report](PackIndexState state, Status status) {
    report.state = state;
    report.status = std::move(status);
  };
  if (!store.ok()) return end(PackIndexState::kUnread, store.error());
  const auto file = fs.open(report.path);
  if (!file.ok()) return end(PackIndexState::kDamaged, file.error());
  const auto header = read_pack_header(**file);
  if (!header.ok()) return end(PackIndexState::kDamaged, header.error());
  if (!*header)
    return end(PackIndexState::kDamaged,
               corrupt(fmt::format("{}: its header, at the end of its {} bytes, is damaged; {}", report.path,
                                   (*file)->size(), kMendPack)));
  report.sequences = (*header)->counts.sequences;
  const std::string& hash = (*store)->hash();
  if ((*header)->is_stale(hash)) return end(PackIndexState::kStale, {});
  ComparingFile comparing(**file, report.sequences, compared);
  const Status written = write_pack_index(comparing, (*store)->split(report.split), hash, report.rule);
  if (comparing.failure().ok() && !written.ok()) return end(PackIndexState::kUnread, written);
  const Status same = comparing.close();
  if (!same.ok()) end(PackIndexState::kDamaged, same);
}

}  // namespace

Result<std::vector<PackIndexReport>> verify_packs(io::FileSystem& fs, const std::string& cache_dir,
                                                  const data::VerifySettings& settings) {
  std::vector<PackIndexReport> reports;
  data::BuildProgress progress;
  for (const data::Split split : data::kSplits) {
    const std::string folder = pack_folder(cache_dir, split);
    const auto entries = fs.list(folder);
    if (!entries.ok() && entries.error().code() == ErrorCode::kNotFound) continue;
    if (!entries.ok()) return entries.error();
    for (const io::DirEntry& entry : *entries) {
      const std::optional<PackRule> rule = rule_of_pack_index(entry.name);
      if (!rule || entry.is_directory) continue;
      PackIndexReport report{.path = io::join_path(folder, entry.name), .split = split, .rule = *rule};
      ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(report.path));
      report.bytes = info.size;
      progress.bytes_total += info.size;
      ++progress.files_total;
      reports.push_back(std::move(report));
    }
  }
  if (reports.empty()) return reports;
  const auto store = data::TokenStore::open(
      fs, cache_dir, std::make_shared<data::ChunkCache>(kEndsCacheBytes), data::KeepChunks::kAtOnce);
  int64_t finished = 0;
  for (PackIndexReport& report : reports) {
    verify_index(fs, store, report, [&](int64_t bytes) {
      progress.bytes_done += bytes;
      if (settings.progress) settings.progress(progress);
    });
    finished += report.bytes;
    progress.bytes_done = finished;
    ++progress.files_done;
    if (settings.progress) settings.progress(progress);
  }
  return reports;
}

}  // namespace ostro::batches
