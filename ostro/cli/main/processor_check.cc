// Compiled for plain x86-64 (CMakeLists.txt). It includes no C++ header whose inline functions it could
// instantiate: the linker keeps one copy of these for the whole program.
#include "ostro/cli/main/processor_check.h"

#include <cpuid.h>
#include <string.h>  // NOLINT(modernize-deprecated-headers)
#include <unistd.h>

namespace ostro::cli {
namespace {

struct Part {
  const char* name;
  uint32_t ProcessorWords::* word;
  int bit;
};

constexpr Part kParts[] = {
    {"SSE3", &ProcessorWords::one_c, 0},        {"SSSE3", &ProcessorWords::one_c, 9},
    {"CMPXCHG16B", &ProcessorWords::one_c, 13}, {"SSE4.1", &ProcessorWords::one_c, 19},
    {"SSE4.2", &ProcessorWords::one_c, 20},     {"POPCNT", &ProcessorWords::one_c, 23},
    {"AVX", &ProcessorWords::one_c, 28},        {"AVX2", &ProcessorWords::seven_b, 5},
    {"FMA", &ProcessorWords::one_c, 12},        {"F16C", &ProcessorWords::one_c, 29},
    {"MOVBE", &ProcessorWords::one_c, 22},      {"BMI1", &ProcessorWords::seven_b, 3},
    {"BMI2", &ProcessorWords::seven_b, 8},      {"LZCNT", &ProcessorWords::extended_c, 5},
};
constexpr uint32_t kOsSavesRegisters = 1u << 27;  // in leaf 1, ECX
constexpr uint64_t kYmm = 0x6;

ProcessorWords words_of_this_processor() {
  ProcessorWords words;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(1, 0, &a, &b, &c, &d) != 0) words.one_c = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) words.seven_b = b;
  if (__get_cpuid_count(0x80000001u, 0, &a, &b, &c, &d) != 0) words.extended_c = c;
  if ((words.one_c & kOsSavesRegisters) != 0) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.saved = static_cast<uint64_t>(high) << 32 | low;
  }
  return words;
}

void say(const char* text) {
  const ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
  static_cast<void>(ignored);
}

}  // namespace

const char* missing_instructions(const ProcessorWords& words) {
  for (const Part& part : kParts)
    if ((words.*part.word >> part.bit & 1u) == 0) return part.name;
  if ((words.saved & kYmm) != kYmm) return "AVX (the operating system does not save its registers)";
  return nullptr;
}

void check_processor() {
  const char* missing = missing_instructions(words_of_this_processor());
  if (missing == nullptr) return;
  say("error: this processor lacks ");
  say(missing);
  say("; Ostro needs an x86-64-v3 processor, which has AVX2 and FMA (Intel since Haswell, AMD since "
      "Excavator). In a virtual machine, give it the host's processor.\n");
  _exit(1);
}

}  // namespace ostro::cli
