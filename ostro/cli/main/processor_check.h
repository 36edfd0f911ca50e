// check_processor: ends the program with one line when the processor lacks instructions that it is built
// with.
//
// All of Ostro is compiled for x86-64-v3, so on an older processor any function could be the first that is
// killed by an illegal instruction. The check runs before all of them, also before the initialisers of
// libraries: a program puts it into .preinit_array, as cli_main.cc does. It uses no instruction beyond plain
// x86-64.
#pragma once

#include <cstdint>

namespace ostro::cli {

// The words that describe the processor: those of the instruction cpuid, and XCR0, the registers that the
// operating system saves (0 when it saves none).
struct ProcessorWords {
  uint32_t one_c = 0;       // leaf 1, ECX
  uint32_t seven_b = 0;     // leaf 7, EBX
  uint32_t extended_c = 0;  // leaf 0x80000001, ECX
  uint64_t saved = 0;
};

// The name of the first part of x86-64-v3 that is missing; null when all are there.
const char* missing_instructions(const ProcessorWords& words);

// Returns on a processor that fits. On any other it writes an error to standard error and ends the process
// with exit code 1.
void check_processor();

}  // namespace ostro::cli
