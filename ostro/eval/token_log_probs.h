// TokenLogProbs: writes the log-probability of every token of held-out text to a file that scripts can read.
#pragma once

#include <string>
#include <vector>

#include "ostro/batches/loader/loader.h"
#include "ostro/io/files/file_system.h"
#include "ostro/runtime/buffer.h"

namespace ostro::eval {

// Collects batches, then writes a safetensors file. Its tensors are [sequence, pos], in the order of the
// held-out text:
//
//   tokens    I32
//   targets   I32
//   log_prob  F32: natural logarithm of the target's probability, given the tokens so far
//   mask      F32: 1 where the target counts, else 0
//   segments  I32: only if attention does not cross document borders
//
// Rows that only pad the last batch are left out. Error: that of writing the file. Not thread-safe.
class TokenLogProbs {
 public:
  // `losses` is f32 [batch, pos]: the negative log-probabilities.
  void add(const batches::Batch& batch, const runtime::Buffer& losses);
  // `metadata`: names and values that go into the file's header.
  Status write(io::FileSystem& fs, const std::string& path,
               const std::vector<std::pair<std::string, std::string>>& metadata) const;

 private:
  int64_t sequences_ = 0, seq_len_ = 0;
  std::vector<int32_t> tokens_, targets_, segments_;
  std::vector<float> log_prob_, mask_;
};

}  // namespace ostro::eval
