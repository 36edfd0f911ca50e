// A continued build repeats only what the earlier one did not make durable.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/prepare/store/journal.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

constexpr int kFiles = 3, kRows = 2500;  // of a file: three units

BuildSettings settings_for_resuming() {
  BuildSettings settings = small_settings(2);
  settings.commit_bytes = 1;  // a commit after every unit
  settings.layout = {.chunk = 1024, .shard = 8192};
  return settings;
}

void write_lines(io::FileSystem& fs) {
  check_ok(fs.make_dirs("corpus"));
  for (int file = 0; file < kFiles; ++file) {
    std::string lines;
    for (int row = 0; row < kRows; ++row)
      lines += fmt::format("{{\"text\": \"{}\"}}\n", words(kRows * file + row, 4 + row % 7));
    write(fs, fmt::format("corpus/{}.jsonl", file), lines);
  }
}

// A build and what it tokenized.
struct Built {
  Result<StoreLedger> ledger = StoreLedger{};
  int64_t documents = 0, tokens = 0;
};
Built build_counted(io::FileSystem& fs, const DataOptions& options) {
  Built out;
  BuildSettings settings = settings_for_resuming();
  settings.progress = [&out](const BuildProgress& p) { out.documents = p.documents, out.tokens = p.tokens; };
  out.ledger = build_store(fs, options, test_tokenizer(), settings);
  return out;
}

// Bytes read of every file.
class ReadBytes final : public io::ForwardingFileSystem {
 public:
  explicit ReadBytes(io::FileSystem& base) : ForwardingFileSystem(base) {}
  int64_t of(const std::string& path) const {
    const auto found = bytes_.find(path);
    return found == bytes_.end() ? 0 : found->second.load();
  }

 private:
  class File final : public io::RandomAccessFile {
   public:
    File(std::unique_ptr<io::RandomAccessFile> base, std::atomic<int64_t>& bytes)
        : base_(std::move(base)), bytes_(bytes) {}
    Status read(int64_t offset, std::span<std::byte> out) const override {
      bytes_ += static_cast<int64_t>(out.size());
      return base_->read(offset, out);
    }
    int64_t size() const override { return base_->size(); }
    const std::string& path() const override { return base_->path(); }

   private:
    std::unique_ptr<io::RandomAccessFile> base_;
    std::atomic<int64_t>& bytes_;
  };

  Status before(Operation, const std::string&) override { return {}; }
  std::unique_ptr<io::RandomAccessFile> reading(std::unique_ptr<io::RandomAccessFile> file) override {
    const std::lock_guard lock(mutex_);
    std::atomic<int64_t>& bytes = bytes_[file->path()];
    return std::make_unique<File>(std::move(file), bytes);
  }

  std::mutex mutex_;  // of the map's nodes, which stay where they are
  std::map<std::string, std::atomic<int64_t>> bytes_;
};

int64_t rows_in(const BuildState& state) {
  int64_t rows = state.documents;
  for (const FileLedger& file : state.files) rows += file.documents;
  return rows;
}

}  // namespace

TEST_CASE("token store: a build that goes on reads and tokenizes what is left, and no more") {
  const DataOptions options = corpus_options("corpus");
  io::MemoryFileSystem undisturbed;
  write_lines(undisturbed);
  io::FaultyFileSystem counting(undisturbed);
  const Built whole = build_counted(counting, options);
  REQUIRE(whole.ledger.ok());
  REQUIRE(whole.documents == kFiles * kRows);
  constexpr int kCuts = 12;
  int in_a_file = 0, behind_a_file = 0;
  for (int cut = 1; cut < kCuts; ++cut) {
    CAPTURE(cut);
    io::MemoryFileSystem memory;
    write_lines(memory);
    io::FaultyFileSystem fs(memory);
    fs.inject(io::Fault::kCrash, counting.writes() * cut / kCuts);
    const Built before = build_counted(fs, options);
    REQUIRE_FALSE(before.ledger.ok());
    memory.crash(0);
    const auto found = Journal::read(memory, options.cache_dir);
    REQUIRE(found.ok());
    const BuildState& state = found->state;
    // Everything in a reported unit is durable, since there is a commit after each unit.
    CHECK(rows_in(state) >= before.documents);
    CHECK(rows_in(state) <= before.documents + 1024);

    ReadBytes read(memory);
    const Built after = build_counted(read, options);
    REQUIRE_MESSAGE(after.ledger.ok(), (after.ledger.ok() ? "" : after.ledger.error().message()));
    CHECK(after.ledger->hash() == whole.ledger->hash());
    CHECK(after.documents == whole.documents - rows_in(state));
    CHECK((after.tokens < whole.tokens || rows_in(state) == 0));
    for (int file = 0; file < kFiles; ++file) {
      CAPTURE(file);
      const std::string path = fmt::format("corpus/{}.jsonl", file);
      const int64_t size = memory.stat(path)->size, head = 4;  // tells whether it is compressed
      const bool goes_on = file == state.file && state.row_bytes > 0;
      // A file that was begun is read once more for its hash.
      const int64_t rows = goes_on ? size - state.row_bytes + size : size;
      CHECK(read.of(path) == (file < state.file ? 0 : head + rows));
      in_a_file += goes_on;
      behind_a_file += goes_on && file > 0;
    }
  }
  CHECK(in_a_file >= 4);
  CHECK(behind_a_file >= 2);
}
