// Runner: makes the logits of one sequence, row after row. What a server, and the check of its
// answers, need of a model that generates.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ostro/base/error.h"
#include "ostro/runtime/buffer.h"

namespace ostro::infer {

// A row depends on the tokens of its sequence up to it, and on nothing else (numerics.md N16). Not
// thread-safe.
class Runner {
 public:
  virtual ~Runner() = default;

  // Positions of a sequence at most.
  virtual int64_t max_length() const = 0;
  // Builds all programs, so that no call below has to.
  virtual Status prepare() = 0;
  // Which program computes a row: SHA-256 of the text of the one for a single token, in hexadecimal.
  virtual Result<std::string> program_hash() = 0;

  // Begins a sequence; the one before is forgotten. Returns f32 logits [pos, vocab] in memory of the host, a
  // row for each token. Errors: no token, or more than max_length.
  virtual Result<runtime::Buffer> start(std::span<const int32_t> prompt) = 0;
  // One more token of the sequence; logits [1, vocab]. Error: there is no room.
  virtual Result<runtime::Buffer> next(int32_t token) = 0;
};

}  // namespace ostro::infer
