// The stacks of all threads of this process, for a report about one that hangs.
#pragma once

#include <string>

namespace ostro {

// Each thread's number, name and frames, innermost first; names of functions where the program has them. A
// thread that does not answer within a fifth of a second (it is stopped, or in the kernel) is named without
// frames. Interrupts system calls of the other threads, so only a process that ends soon should ask. One call
// at a time.
std::string thread_stacks();

}  // namespace ostro
