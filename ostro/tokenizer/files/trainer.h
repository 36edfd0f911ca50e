// train: trains a byte-level BPE tokenizer. The result depends only on the documents and the options; the
// order of the documents, the number of threads and the machine do not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// What TrainOptions::progress is given.
struct TrainProgress {
  enum class Stage { kCounting, kMerging } stage;
  uint64_t done;   // bytes of text counted, or tokens in the vocabulary
  uint64_t total;  // tokens wanted; 0 while counting
};

struct TrainOptions {
  // The number of tokens, special tokens and the 256 bytes included. The result has fewer if the text has no
  // more pairs.
  uint32_t vocab_size = 4096;
  uint64_t min_frequency = 1;  // a pair that occurs less often is not merged
  Splitter splitter = Splitter::kLlama3;
  std::vector<std::string> special_tokens = {"<|endoftext|>"};  // ids 0, 1, ...
  std::string eos_token = "<|endoftext|>";                      // must be one of special_tokens
  int threads = 1;                                              // for counting; does not change the result
  // The largest total size of distinct pieces, in bytes; more is an error. Training keeps the distinct pieces
  // in memory, not the text. They need about 30 bytes of memory per byte.
  uint64_t max_distinct_bytes = uint64_t{512} << 20;
  std::function<void(const TrainProgress&)> progress;  // called on the caller's thread
};

// Puts the next document into `document` and returns true; returns false after the last one. Called on the
// caller's thread. Bytes that are not UTF-8 are read as U+FFFD.
using DocumentSource = std::function<Result<bool>(std::string& document)>;

// Trains on all documents. The order of ids is: special tokens, the 256 bytes in the order of their
// byte-level characters, then merged tokens in the order of their merges. Each step merges the most frequent
// pair. Of equally frequent pairs it takes the one with the smallest left id, then the smallest right id.
// Special tokens in the text are treated as normal text. Errors: those of `documents`; kInvalidArgument for
// an option out of its range, and for a text with more than max_distinct_bytes.
Result<Tokenizer> train(const DocumentSource& documents, const TrainOptions& options);

}  // namespace ostro::tokenizer
