// replay_entry: the steps of an entry, done again wholly or where a draw says, and the batches of all steps.
//
// The draw is a function of the entry, of the board's head behind the entry and of a beacon, so it was not
// known when the entry was handed in. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/board/entry.h"
#include "ostro/board/refusal.h"
#include "ostro/board/track.h"

namespace ostro::board {

// SHA-256, hexadecimal, of the lines "ostro board 1", the entry's hash, the board's head and the beacon.
std::string draw_challenge(const std::string& entry, const std::string& head, const std::string& beacon);

struct ReplayRequest {
  std::string cache;      // the token store
  std::string challenge;  // of draw_challenge
  std::function<void(int64_t done, int64_t all)> on_step;
};

struct Replayed {
  int64_t steps = 0;              // of the entry
  int64_t replayed = 0;           // steps that were done again, each counted once
  std::vector<int64_t> drawn;     // empty: all; otherwise the first and the last step were done again, too
  std::vector<std::string> open;  // what was not shown, a sentence each
};

// Replays the entry. A step that differs is a refusal, an error is one of reading the data.
Result<Replayed> replay_entry(const Context& context, const Entry& entry, const audit::RecordedRun& run,
                              const Track& track, const ReplayRequest& request, Refusals& out);

}  // namespace ostro::board
