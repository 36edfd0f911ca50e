// Training of a byte-level BPE tokenizer. The result depends on the multiset of documents and the options
// alone: not on their order, the number of threads, or the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

struct TrainProgress {
  enum class Stage { kCounting, kMerging } stage;
  uint64_t done;   // bytes of text counted, or tokens in the vocabulary
  uint64_t total;  // tokens wanted; 0 while counting
};

struct TrainOptions {
  uint32_t vocab_size =
      4096;  // special tokens and the 256 bytes included; fewer when the text runs out of pairs
  uint64_t min_frequency = 1;  // a pair seen less often is not merged
  Splitter splitter = Splitter::kLlama3;
  std::vector<std::string> special_tokens = {"<|endoftext|>"};  // ids 0, 1, ...
  std::string eos_token = "<|endoftext|>";                      // must be one of special_tokens
  int threads = 1;                                              // for counting; changes nothing but the time
  // The most bytes of distinct pieces. They, not the text, are what training keeps in memory: about 30 bytes
  // for each. Text with more is an error.
  uint64_t max_distinct_bytes = uint64_t{512} << 20;
  std::function<void(const TrainProgress&)> progress;  // called on the caller's thread
};

// Puts the next document into `document` and returns true, or returns false after the last one; called on the
// caller's thread. Bytes that are not UTF-8 count as U+FFFD.
using DocumentSource = std::function<Result<bool>(std::string& document)>;

// Trains on all documents. Ids: special tokens, then the 256 bytes in the order of their byte-level
// characters, then merged tokens in order of merging. Each step merges the most frequent pair; of equally
// frequent ones the pair with the smallest left id, then the smallest right id. Special tokens in the text
// are ordinary text.
Result<Tokenizer> train(const DocumentSource& documents, const TrainOptions& options);

}  // namespace ostro::tokenizer
