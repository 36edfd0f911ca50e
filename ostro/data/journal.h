// The journal of an unfinished build: what of the store is durable, so that a killed build goes on where it
// was.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ostro/data/array_writer.h"
#include "ostro/data/ledger.h"

namespace ostro::data {

template <typename T>
using PerArray = std::array<std::array<T, 4>, 2>;  // [Split][ArrayId]

// How far a build is.
struct BuildState {
  int64_t file = 0;                // the source that comes next ...
  int64_t documents = 0;           // ... and how many of its documents are in
  std::vector<FileLedger> files;   // finished ones
  FileLedger current;              // counts of the source in progress
  std::array<int64_t, 2> bytes{};  // of text, by Split
  PerArray<ArrayWriter::Position> positions{};
  PerArray<std::vector<ChunkSum>> sums{};  // of full chunks
  bool encoded = false;                    // every document is in; what is left is closing the store
};

// A file of lines: "CRC-32C JSON". The first holds what is built from what, every other one a commit. A torn
// line and all behind it count for nothing.
class Journal {
 public:
  static std::string path(const std::string& cache_dir);

  // A new journal, durable before it returns.
  static Result<Journal> create(io::FileSystem& fs, const std::string& cache_dir,
                                const Preprocessing& preprocessing, const std::vector<SourceFile>& sources);

  // What a journal on disk says.
  struct Found {
    Preprocessing preprocessing;
    std::vector<SourceFile> sources;
    bool has_commit = false;
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
  explicit Journal(std::unique_ptr<io::WritableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<io::WritableFile> file_;
  size_t files_ = 0;  // finished files that lines so far tell of
  PerArray<size_t> sums_{};
};

}  // namespace ostro::data
