// Journal: records what an unfinished build has made durable, so that a killed build can continue.
//
// Errors: kNotFound when there is none, kCorrupt when its first line is damaged, kUnsupported for a format of
// another version, and those of reading and writing. Not thread-safe; the lock of the build keeps other
// processes out.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/ledger/ledger.h"

namespace ostro::prepare {

// How far a build is.
struct BuildState {
  int64_t file = 0;                     // the source to read next ...
  int64_t documents = 0;                // ... how many of its documents are in the store ...
  int64_t row_bytes = 0;                // ... and the byte of the unpacked file where they end; 0: not known
  std::vector<data::FileLedger> files;  // finished sources
  data::FileLedger current;             // counts of the source in progress
  std::array<int64_t, 2> bytes{};       // of text, by Split
  data::PerArray<data::ArrayWriter::Position> positions{};
  data::PerArray<std::vector<data::ChunkSum>> sums{};  // sums of full chunks
  // By Split: the value of element 0 of the offsets (the number of rows) when the sum of the first chunk was
  // taken. It is 0, or for a store that is being extended its old number of rows.
  std::array<int64_t, 2> first_offsets{};
  bool encoded = false;  // all documents are in the store; only closing it is left
};

// A text file with lines of the form "CRC-32C JSON". The first line is the header, every other one a commit.
// A line that was only partly written is ignored, and so are all lines after it.
class Journal {
 public:
  static std::string path(const std::string& cache_dir);

  // What is being built.
  struct Header {
    data::Preprocessing preprocessing;
    std::vector<data::SourceFile> sources;
    bool from_stores = false;  // rows are copied from finished stores: `ostro data consolidate`
  };

  // A new journal; durable when this returns. With `base`, a finished store with that state is being
  // extended. The base is then written as the first commit, and a build of other files may go back to it.
  static Result<Journal> create(io::FileSystem& fs, const std::string& cache_dir, const Header& header,
                                const BuildState* base = nullptr);

  // The content of a journal on disk.
  struct Found {
    Header header;
    bool has_commit = false;
    std::optional<BuildState> base;
    BuildState state;
    int64_t good_bytes = 0;
  };
  // kNotFound without a journal, kCorrupt when not even its first line is whole.
  static Result<Found> read(io::FileSystem& fs, const std::string& cache_dir);

  // Continues after the last whole line.
  static Result<Journal> reopen(io::FileSystem& fs, const std::string& cache_dir, const Found& found);

  // Adds a commit; durable when this returns. Writes only the difference to the last commit.
  Status append(const BuildState& state);

 private:
  Journal() = default;
  // Makes the line of a commit, and remembers that what it contains is written.
  std::string commit_line(const BuildState& state, bool is_base);

  std::unique_ptr<io::WritableFile> file_;
  std::vector<data::ArrayPlace> places_;
  size_t files_ = 0;  // finished files in the lines written so far
  data::PerArray<size_t> sums_{};
};

}  // namespace ostro::prepare
