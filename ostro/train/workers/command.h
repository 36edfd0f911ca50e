// What the leader of a group of workers asks of the others. Sent through the group itself, so that training
// needs nobody else.
#pragma once

#include <cstdint>

#include "ostro/dist/group.h"

namespace ostro::train {

// Sent as it is.
struct Command {
  enum class Kind : int64_t {
    kStep = 1,           // one training step
    kSettle,             // the leader has a state for all: settle()
    kPrints,             // fingerprints of the parameters
    kCollectParameters,  // cells to the leader
    kCollectMoments,
    kSwitch,  // another epoch goes on from here
    kEnd,     // the run is over
  };
  Kind kind = Kind::kEnd;
  int64_t step = 0;              // kStep: how many steps were done before it
  float lr = 0, k1 = 0, k2 = 0;  // kStep
  int32_t unused = 0;
};

// Rank 0 sends, the others wait for it without a limit of time. Errors: kIo when a worker is lost; kCorrupt
// for a command of another build.
Status send_command(dist::Group& group, const Command& command);
Result<Command> next_command(dist::Group& group);

// Returns when all workers have called it.
Status barrier(runtime::Collectives& c);

}  // namespace ostro::train
