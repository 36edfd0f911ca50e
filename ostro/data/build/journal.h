// The journal of an unfinished build: what of the store is durable, so that a killed build goes on where it
// was.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/arrays/array_writer.h"
#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// How far a build is.
struct BuildState {
  int64_t file = 0;                // the source that comes next ...
  int64_t documents = 0;           // ... and how many of its documents are in ...
  int64_t row_bytes = 0;           // ... which end at this byte of the unpacked file; 0: not known
  std::vector<FileLedger> files;   // finished ones
  FileLedger current;              // counts of the source in progress
  std::array<int64_t, 2> bytes{};  // of text, by Split
  PerArray<ArrayWriter::Position> positions{};
  PerArray<std::vector<ChunkSum>> sums{};  // of full chunks
  // What element 0 of the offsets (the number of rows) was when the first chunk was summed, by Split: 0, or
  // in a store that is being extended its number of rows before.
  std::array<int64_t, 2> first_offsets{};
  bool encoded = false;  // every document is in; what is left is closing the store
};

// A file of lines: "CRC-32C JSON". The first holds what is built from what, every other one a commit. A torn
// line and all behind it count for nothing.
class Journal {
 public:
  static std::string path(const std::string& cache_dir);

  // What is built, from the first line.
  struct Header {
    Preprocessing preprocessing;
    std::vector<SourceFile> sources;
    bool from_stores = false;  // rows are copied from finished stores: `ostro data consolidate`
  };

  // A new journal, durable before it returns. With `base` the store was finished with those files and is
  // being extended: its state is the first commit, which a build of other files may go back to.
  static Result<Journal> create(io::FileSystem& fs, const std::string& cache_dir, const Header& header,
                                const BuildState* base = nullptr);

  // What a journal on disk says.
  struct Found {
    Header header;
    bool has_commit = false;
    std::optional<BuildState> base;
    BuildState state;
    int64_t good_bytes = 0;
  };
  // kNotFound without a journal, kCorrupt when not even its first line is whole.
  static Result<Found> read(io::FileSystem& fs, const std::string& cache_dir);

  // Goes on behind the last whole line.
  static Result<Journal> reopen(io::FileSystem& fs, const std::string& cache_dir, const Found& found);

  // Adds a commit, durable before it returns: the difference to the state of the commit before.
  Status append(const BuildState& state);

 private:
  Journal() = default;
  // The next line, and what it tells of counts as told.
  std::string commit_line(const BuildState& state, bool is_base);

  std::unique_ptr<io::WritableFile> file_;
  std::vector<ArrayPlace> places_;
  size_t files_ = 0;  // finished files that lines so far tell of
  PerArray<size_t> sums_{};
};

}  // namespace ostro::data
