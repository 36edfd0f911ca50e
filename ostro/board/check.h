// check_entry: whether an entry counts on a track, and its score. No code of the entrant runs: its programs
// are data, which this program's engine computes.
//
// One thread uses the context.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/board/board.h"
#include "ostro/board/code_check.h"
#include "ostro/board/refusal.h"
#include "ostro/board/replay.h"
#include "ostro/board/track.h"
#include "ostro/context/context.h"

namespace ostro::board {

struct CheckRequest {
  std::string entry;                   // the folder of the bundle
  std::string cache;                   // the token store; stores of components lie below it, by their names
  std::string beacon;                  // needed where something is drawn: steps, cuts or sums
  int64_t cuts = 1000, sums = 20;      // places of CodeOptions
  int64_t memory = int64_t{16} << 30;  // bytes that a program may need
  std::function<void(int64_t done, int64_t all)> on_step = {};
};

struct CheckResult {
  std::string head, state, bundle;  // run hash, name of the scored state, hash of bundle.json
  int64_t step = 0;
  Refusals refusals;  // empty: the entry counts
  double flops = 0;
  bool is_foreign = false;  // of a model that this program does not have
  std::optional<Replayed> replayed;
  std::optional<CodeCheck> code;
  double bits_per_byte = 0;         // of an entry that counts
  std::string challenge;            // by which steps and places were drawn
  std::vector<std::string> shared;  // what it has in common with entries before it
  std::vector<std::string> open;    // what was not shown, a sentence each

  bool counts() const { return refusals.empty(); }
  // False when all that is wrong is that this machine could not check it: a board keeps no such outcome.
  bool is_final() const;
};

// Checks the entry on the track. With a board, copies of its entries that count are refused, and the board's
// head behind the entry goes into the draw. Rules that need no program come first; when one is broken, no
// program runs, and the entry's tokenizer only when it is the track's. Nothing is read but the entry, the
// token store, the track's texts and the board. Errors: kInvalidArgument for a request that makes no sense;
// what keeps this machine from checking (no token store, no evaluation files).
Result<CheckResult> check_entry(const Context& context, const Track& track, const Board* board,
                                const CheckRequest& request);

// "counts: ..." or "refused: RULE: ...", then the other lines. Ends with a newline.
std::string check_text(const CheckResult& result, const Track& track);

}  // namespace ostro::board
