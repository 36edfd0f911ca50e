// Failpoints: named places where a test can kill the process, to prove that a run survives it.
//
// OSTRO_FAILPOINT=NAME[:COUNT] makes the COUNT-th pass (default the first) through failpoint("NAME")
// end the process with SIGKILL, as a power cut or an out-of-memory killer would. Names in use: step,
// snapshot, array_write, manifest, chain_append, data_build, resume, amend, tokenizer.
#pragma once

namespace ostro {

// One relaxed load when the variable is unset. Thread-safe. An unreadable OSTRO_FAILPOINT ends the process
// with a message at the first call: a test that names no failpoint would prove nothing.
void failpoint(const char* name);

}  // namespace ostro
