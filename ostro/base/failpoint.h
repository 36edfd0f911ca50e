// failpoint: a named place where a test can kill the process, to prove that a run survives it.
//
// OSTRO_FAILPOINT=NAME[:COUNT] makes the COUNT-th pass (default the first) through failpoint("NAME") end the
// process with SIGKILL, as a power cut or an out-of-memory killer would. Names in use: step, snapshot,
// device_copy, array_write, manifest, chain_append, data_build, resume, amend, amended_config, fork,
// tokenizer, new_directory, journal_append, lab_step, lab_answer. For one of several workers there is
// base/watch/fault_point.h.
#pragma once

namespace ostro {

// Ends the process if this failpoint is armed and its count is reached. Costs one comparison when the
// variable is unset. Thread-safe. An OSTRO_FAILPOINT that cannot be read aborts with a message at the first
// call, because a test without an armed failpoint would prove nothing.
void failpoint(const char* name);

}  // namespace ostro
