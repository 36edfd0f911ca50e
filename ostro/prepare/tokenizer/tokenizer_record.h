// TokenizerRecord: the inputs from which a tokenizer was trained: tokenizer_training.json beside it
// (docs/reference/formats/token_store.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"

namespace ostro::prepare {

inline constexpr const char* kTokenizerRecordFile = "tokenizer_training.json";

struct TokenizerRecord {
  struct File {
    std::string path;
    int64_t size = 0, mtime_ns = 0;
    std::string sha256;
  };
  struct Component {
    std::string text_key;
    double held_out_fraction = 0;
    std::vector<File> files;
  };
  std::string tokenizer;   // its hash
  int64_t vocab_size = 0;  // the size that was wanted
  data::OnBadRow on_bad_row = data::OnBadRow::kError;
  std::vector<Component> components;
};

// Reads the record in the folder `cache_dir`. Nothing when there is none or it is damaged: training again
// gives the same tokenizer.
std::optional<TokenizerRecord> read_tokenizer_record(io::FileSystem& fs, const std::string& cache_dir);
// Replaces the record in the folder `cache_dir` atomically. Errors: those of writing.
Status write_tokenizer_record(io::FileSystem& fs, const std::string& cache_dir,
                              const TokenizerRecord& record);

// The first difference in content between two trainings, as half a sentence; empty when there is none. Paths
// and times of files do not count.
std::string difference(const TokenizerRecord& there, const TokenizerRecord& wanted);

}  // namespace ostro::prepare
