// thread_stacks: the stacks of all other threads of this process, for the report about a hang.
#pragma once

#include <string>

namespace ostro {

// Returns each thread's number, name and frames, innermost first; names of functions where the program has
// them. A thread that does not answer within a fifth of a second (it is stopped, or in the kernel) is listed
// without frames. Interrupts system calls of the other threads, so only a process that ends soon should call
// it. One call at a time.
std::string thread_stacks();

}  // namespace ostro
