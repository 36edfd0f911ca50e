// Evaluation: the text that the entries of a track are scored on, and its tokens, cut into windows.
//
// A document becomes tokens as it would in a token store (data/formats/row_formatter.h). Every token but the
// first of a document is a target once. Errors are those of reading, and kCorrupt for other bytes than the
// track has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/board/track.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::board {

struct Evaluation {
  std::vector<std::string> names, documents;
  int64_t bytes = 0;
  std::string sha256;
};
// Reads the files. `folder` is what their names are relative to.
Result<Evaluation> read_files(io::FileSystem& fs, const std::string& folder,
                              const std::vector<std::string>& files);
// Reads the evaluation of a track, which must have the track's hash.
Result<Evaluation> read_evaluation(io::FileSystem& fs, const Track& track);

// The tokens of the documents, as rows of a store.
struct EvaluationTokens {
  std::vector<std::vector<int32_t>> documents;
  std::vector<Sha256Digest> row_hashes;  // data::hash_row of each
};
Result<EvaluationTokens> encode(io::FileSystem& fs, const Evaluation& evaluation,
                                const tokenizer::Tokenizer& tokenizer);

// Rows of `length` tokens and targets, [rows, length]. A document begins a row. Behind its last target a row
// is padded with token and target 0.
struct Windows {
  int64_t length = 0;
  std::vector<int32_t> tokens, targets;
  std::vector<int64_t> counts;  // by row: its targets

  int64_t rows() const { return static_cast<int64_t>(counts.size()); }
  int64_t all_targets() const;
};
// The number of rows that make_windows() gives, for length >= 1.
int64_t window_rows(const std::vector<std::vector<int32_t>>& documents, int64_t length);
Windows make_windows(const std::vector<std::vector<int32_t>>& documents, int64_t length);

}  // namespace ostro::board
