// fault_point: faults of one worker among several at an exact place: it is killed, stopped, ended or delayed
// when it comes to a phase of a step. (base/failpoint.h kills a process that is alone.)
//
// OSTRO_FAULT=PHASE:STEP:RANK:ACTION[,...]: the action happens when the worker of that rank comes to that
// phase of that step. STEP and RANK may be *, for any.
//   phases   leaf        a leaf (microbatch) begins
//            exchange    the exchange of gradients begins
//            overlap     between slices: half of the gradients are on their way, while a leaf runs
//            update      all gradients are complete, the update begins
//            renew       optimizers with collectives: the new cells are computed into separate buffers
//            commit      the step's norm is known, the cells do not have their new values yet
//            gather      the gathering of parameters begins
//            transfer    moving state between workers begins
//            checkpoint  a checkpoint begins
//            write       the worker begins to write its cells of a checkpoint, in the background
//            barrier     the worker has done its last step and waits for the others
//            connect     the worker's address is known to its peers. STEP is the number of the epoch
//   actions  kill (SIGKILL), stop (SIGSTOP), exit or exit=STATUS (without any clean-up; 1),
//            delay=MILLISECONDS, gate=FILE
// Silent faults: flip or flip=BIT flips one bit of bytes that the worker has there (bit BIT modulo their
// number; 0). It is the only action of these phases:
//            gradient    a leaf has given its gradients
//            received    bytes of the exchange of gradients have arrived from another worker
//            cell        the cells of the parameters and of the optimizer have their new values
//
// At a gate the worker waits, whenever it comes there, until the number in the file is at least the number of
// the step; a file without a number is 0. So a test keeps a run from ending before it has done what it wants
// to, however long that takes, and no computing is spent. The worker's pulse goes on meanwhile.
//
// Each other entry happens once in a process. With OSTRO_FAULT_ONCE=DIRECTORY it happens once in all
// processes that name this directory: before the action, the file DIRECTORY/INDEX.ENTRY is made
// (0.leaf:3:1:kill); if it exists already, nothing happens. So the replacement of a killed worker is not
// killed again, and a test sees which faults happened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ostro {

// Reports that the worker of this rank comes to a phase of a step, and executes the faults armed there.
// `step` is the number that the step has in the chain: the first is 1. Costs one comparison when OSTRO_FAULT
// is unset. Thread-safe. An OSTRO_FAULT that cannot be read aborts with a message at the first call; when it
// is set, so does a phase that is not in the list above. Also beats the pulse of this process (pulse.h);
// `phase` must have static lifetime.
void fault_point(const char* phase, int64_t step, int64_t rank);
// As fault_point(), without a beat of the pulse: for work that runs in the background of training.
void fault_aside(const char* phase, int64_t step, int64_t rank);

// Flips a bit of `bytes` if a silent fault is armed for this phase, step and rank, and returns whether it
// did. Nothing happens to no bytes. Costs and errors: as of fault_point(), but the pulse does not beat.
// silent_faults_armed(): whether any fault is armed, for a caller that has to look for the bytes.
bool silent_faults_armed();
bool fault_bytes(const char* phase, int64_t step, int64_t rank, std::span<std::byte> bytes);

}  // namespace ostro
