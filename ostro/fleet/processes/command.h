// Command: a message by which the leader of a group of workers tells the others what to do. It is sent
// through the group itself, so training needs no other connection. One thread of each worker calls the
// functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ostro/dist/group.h"
#include "ostro/fleet/shares/leaf_shares.h"

namespace ostro::fleet {

// The most scalars of an optimizer, the learning rate included.
inline constexpr size_t kMostScalars = 32;

// A command. Its bytes are the message.
struct Command {
  enum class Kind : int64_t {
    kStep = 1,   // do one training step
    kInit,       // make the state at step 0
    kRestore,    // read the state of a checkpoint
    kPrints,     // compute the fingerprints of the parameters
    kSave,       // write a checkpoint
    kSaveAgain,  // write again a checkpoint that was not complete when an epoch ended
    kEvaluate,   // compute the held-out loss
    kSwitch,     // leave: another epoch goes on from here
    kEnd,        // leave: the run is over
    kShares,     // from the next step on, other shares; numbers follow (receive_shares)
  };
  Kind kind = Kind::kEnd;
  int64_t step = 0;                           // kRestore, kSave, kSaveAgain; kStep: steps done before it
  int64_t prints = 0;                         // kRestore: 1: with the fingerprints of the parameters
  int64_t count = 0;                          // kStep: of the scalars; kShares: of the numbers
  std::array<float, kMostScalars> scalars{};  // kStep
};

// The beginning of the keys of a save of this step in the epoch's store.
inline std::string save_key(int64_t step) { return "save/" + std::to_string(step); }

// Rank 0 calls send_command; the others call next_command and wait without a limit of time. Errors: kIo when
// a worker is lost; kCorrupt for a command of another build.
Status send_command(dist::Group& group, const Command& command);
Result<Command> next_command(dist::Group& group);

// The leader sends kShares with the number of leaves of each place; after that command the others call
// receive_shares, for so many places.
Status send_shares(dist::Group& group, const std::vector<int64_t>& counts);
Result<LeafShares> receive_shares(dist::Group& group, const Command& command, int64_t places);

}  // namespace ostro::fleet
