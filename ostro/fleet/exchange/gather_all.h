// gather_all, barrier: what every worker has to know of every other, in 2 log2(W) messages of a worker where
// an exchange of all with all takes W - 1. The bytes that a worker receives are the same.
//
// In round r a worker sends what it has of the 2^r workers from its own rank upwards to the one 2^r ranks
// below it (Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", 1997; the barrier is that of Hensgen, Finkel and Manber, 1988). Each round needs the one before:
// for short messages.
//
// All workers of the group call the same function with the same `sizes`. Errors: those of the collectives.
#pragma once

#include <vector>

#include "ostro/fleet/exchange/messages.h"

namespace ostro::fleet {

// The messages of all workers, by rank. `sizes`: the bytes of each, by rank; that of this worker is
// mine.size().
Result<std::vector<Bytes>> gather_all(runtime::Collectives& c, const Bytes& mine,
                                      const std::vector<size_t>& sizes);
// As above; every worker's message has as many bytes as this one's.
Result<std::vector<Bytes>> gather_all(runtime::Collectives& c, const Bytes& mine);

// What worker `rank` sends in gather_all, round after round: to whom, and how many bytes.
struct GatherRound {
  int64_t to = 0, bytes = 0;
};
std::vector<GatherRound> gather_rounds(const std::vector<int64_t>& sizes, int64_t rank);

// Whether short messages of so many peers, among so many workers, go in rounds: few send to all others at
// once, which takes one way and not several; and rounds are for all workers.
bool in_rounds(size_t peers, int64_t workers);

// Returns when all workers have called it.
Status barrier(runtime::Collectives& c);
// To whom worker `rank` of so many sends a byte in barrier(), round after round.
std::vector<int64_t> barrier_receivers(int64_t workers, int64_t rank);

}  // namespace ostro::fleet
