// Command: what the leader of a group of workers asks of the others. Sent through the group itself: training
// needs no other connection.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "ostro/dist/group.h"

namespace ostro::fleet {

// Scalars of an optimizer, the learning rate included.
inline constexpr size_t kMostScalars = 32;

// Sent as it is.
struct Command {
  enum class Kind : int64_t {
    kStep = 1,   // one training step
    kInit,       // the state at step 0
    kRestore,    // the state of a checkpoint
    kPrints,     // fingerprints of the parameters
    kSave,       // a checkpoint
    kSaveAgain,  // one that was not complete when an epoch ended
    kEvaluate,   // the held-out loss
    kSwitch,     // another epoch goes on from here
    kEnd,        // the run is over
  };
  Kind kind = Kind::kEnd;
  int64_t step = 0;                           // kRestore, kSave, kSaveAgain; kStep: steps done before it
  int64_t prints = 0;                         // kRestore: 1: with the fingerprints of the parameters
  int64_t count = 0;                          // kStep: of the scalars
  std::array<float, kMostScalars> scalars{};  // kStep
};

// Begins the keys in the epoch's store of a save of this step.
inline std::string save_key(int64_t step) { return "save/" + std::to_string(step); }

// Rank 0 sends, the others wait for it without a limit of time. Errors: kIo when a worker is lost; kCorrupt
// for a command of another build.
Status send_command(dist::Group& group, const Command& command);
Result<Command> next_command(dist::Group& group);

// Returns when all workers have called it.
Status barrier(runtime::Collectives& c);

}  // namespace ostro::fleet
