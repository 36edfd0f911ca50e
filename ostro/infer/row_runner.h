// RowRunner: makes rows of logits of many sequences. A step takes some new tokens of some sequences, a row
// each; rows of all sequences go through the model together. What generation, a server, and the check of its
// answers need of a model.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/runtime/buffer.h"

namespace ostro::infer {

// The next tokens of a sequence: one that was chosen, or a piece of a prompt.
struct RowChunk {
  int64_t sequence = 0;
  std::span<const int32_t> tokens;
  int64_t wanted = 0;  // the logits of the last so many of them are wanted
  // In place of logits the rows behind the final norm are wanted (numerics.md N22): they are appended here.
  std::vector<float>* normed = nullptr;

  int64_t logits() const { return normed == nullptr ? wanted : 0; }
};

// How much a runner holds.
struct RowLimits {
  int64_t positions = 0;  // of a sequence at most
  int64_t sequences = 1;  // at a time
  int64_t rows = 512;     // of a step
  int64_t pages = 0;      // of 128 positions, of all sequences together; 0: as many as they ever need
};

// The memory of keys and values, in pages of 128 positions; 0: the runner has none.
struct CacheFacts {
  int64_t pages = 0, bytes = 0;  // of all pages
  int64_t held = 0, kept = 0;    // by open sequences; only for texts that may come again
};

// A row depends on the tokens of its sequence up to it, and on nothing else: not on the other rows of its
// step, nor on how its sequence is cut into steps (numerics.md N16). Not thread-safe.
class RowRunner {
 public:
  virtual ~RowRunner() = default;

  virtual const RowLimits& limits() const = 0;
  // The length of a row behind the final norm; 0: this runner gives none.
  virtual int64_t width() const { return 0; }
  // Builds all programs, so that no call below has to.
  virtual Status prepare() = 0;
  // Puts the weights into the order in which they are read fastest. Until the step after that it takes as
  // much memory again as they have; where there is none, they stay as they are. Steps go on meanwhile: one
  // other thread may call this, once. Bits do not change. Returns early when it is to stop.
  virtual void settle(const std::stop_token& /*stop*/) {}
  // Which program computes a row: SHA-256 of the text of the model's cached step of one token, whose bits
  // every row has, in hexadecimal.
  virtual Result<std::string> program_hash() = 0;

  // A new sequence, without tokens. Error: limits().sequences are open.
  virtual Result<int64_t> open() = 0;
  // Ends a sequence; its memory is free for another.
  virtual void close(int64_t sequence) = 0;
  virtual int64_t length(int64_t sequence) const = 0;
  // Whether there is memory for these chunks, and besides for a new sequence of `tokens`. If not, a sequence
  // has to be closed before they can run.
  virtual bool has_room(std::span<const RowChunk>, int64_t /*tokens*/) const { return true; }
  virtual CacheFacts cache_facts() const { return {}; }
  // Gives a sequence without tokens a beginning of `tokens` that is kept of sequences for which this was
  // called with the same owner, and returns its length: 0 or more. It is the longest one, but for a few
  // tokens whose rows are no dearer than a copy. From then on its own beginnings are kept, too, also when it
  // is closed, as long as nothing else needs their memory.
  virtual int64_t reuse(int64_t, std::span<const int32_t>, std::string_view) { return 0; }
  // Gives a sequence without tokens the first `count` of another one, which has them. Error: no memory.
  virtual Status copy(int64_t from, int64_t to, int64_t count) = 0;
  // Runs the chunks, each with at least one token and each of another sequence. Returns f32 logits [pos,
  // vocab] in memory of the host: those that are wanted, in their order; invalid where none is. Errors: more
  // rows or positions than limits() has, or no memory for them; then no sequence has changed. After an error
  // of the engine all open sequences can only be closed.
  virtual Result<runtime::Buffer> step(std::span<const RowChunk> chunks) = 0;
};

// The number of rows for which programs are built: 1, 2, 4, ... .
inline int64_t padded_rows(int64_t rows) {
  int64_t out = 1;
  while (out < rows) out *= 2;
  return out;
}

// The error of chunks that a runner cannot take.
Status check_chunks(const RowRunner& runner, std::span<const RowChunk> chunks);

// The logits [pos, vocab] of the tokens from `first` on, of a sequence that is open only meanwhile. Errors:
// no token, or more than limits().positions.
Result<runtime::Buffer> logits_of(RowRunner& runner, std::span<const int32_t> tokens, size_t first = 0);

}  // namespace ostro::infer
