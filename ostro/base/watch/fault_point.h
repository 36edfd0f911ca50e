// Faults of one worker among several, exactly where a test wants them: it is killed, stopped, ended or
// delayed when it comes to a phase of a step. (base/failpoint.h kills a process that is alone.)
//
// OSTRO_FAULT=PHASE:STEP:RANK:ACTION[,...]: the action happens when the worker of that rank comes to that
// phase of that step. STEP and RANK may be *, for any.
//   phases   leaf        a leaf (microbatch) begins
//            exchange    the exchange of gradients begins
//            update      all gradients are there, the update begins
//            renew       new cells are made beside the old ones, of optimizers whose workers need each other
//            commit      the step's norm is known, the cells do not have their new values yet
//            gather      the gathering of parameters begins
//            transfer    moving state between workers begins
//            checkpoint  a checkpoint begins
//            write       the worker begins to write its cells of a checkpoint, in the background
//            barrier     the worker has done its last step and waits for the others
//            connect     the worker's address is known to its peers. STEP is the number of the epoch
//   actions  kill (SIGKILL), stop (SIGSTOP), exit or exit=STATUS (without any clean-up; 1),
//   delay=MILLISECONDS
// Each entry happens once in a process. With OSTRO_FAULT_ONCE=DIRECTORY it happens once in all processes that
// name this directory: before it does, the file DIRECTORY/INDEX.ENTRY is made (0.leaf:3:1:kill), and where it
// is there already, nothing happens. So a worker that takes the place of a killed one lives, and a test sees
// which faults happened.
#pragma once

#include <cstdint>

namespace ostro {

// The worker of this rank comes to a phase of a step. `step` is the number that the step has in the chain:
// the first is 1. Costs one comparison when OSTRO_FAULT is unset. Thread-safe. An OSTRO_FAULT that cannot be
// read aborts with a message at the first call, and so does a phase that is not in the list above.
// It also beats the pulse of this process (pulse.h); `phase` must live for ever.
void fault_point(const char* phase, int64_t step, int64_t rank);
// The same for what goes on beside training: the pulse is not its own.
void fault_aside(const char* phase, int64_t step, int64_t rank);

}  // namespace ostro
