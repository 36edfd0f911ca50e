// A compiler for tests: libnvrtc.so.13, whose output is the text, for the driver of fake_cuda.cc.
//
// FAKE_NVRTC names faults, with commas between them: old (11.8), new (14.0), no_90 (compiles for sm_80
// alone), error (no text compiles). Whatever it is told, it demands the options that keep the bits of
// docs/spec/numerics.md.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "ostro/gpu/driver/abi.h"
#include "tests/cuda/fake_kernels.h"

namespace {

bool fault(std::string_view name) {
  const char* all = std::getenv("FAKE_NVRTC");
  return all != nullptr &&
         ("," + std::string(all) + ",").find("," + std::string(name) + ",") != std::string::npos;
}

struct FakeProgram {
  std::string name, text, code, log;
};

FakeProgram& of(void* program) { return *static_cast<FakeProgram*>(program); }

}  // namespace

using namespace ostro::gpu;

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = fault("old") ? 11 : fault("new") ? 14 : 13;
  *minor = fault("old") ? 8 : 0;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = fault("no_90") ? 1 : 3;
  return 0;
}
int nvrtcGetSupportedArchs(int* list) {
  list[0] = 80;
  if (!fault("no_90")) list[1] = 75, list[2] = 90;
  return 0;
}
int nvrtcCreateProgram(void** program, const char* text, const char* name, int, const char* const*,
                       const char* const*) {
  *program = new FakeProgram{name, text, {}, {}};
  return 0;
}
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  std::string given;
  for (int i = 0; i < count; ++i) given += std::string(options[i]) + " ";
  for (const char* needed :
       {"--gpu-architecture=sm_", "-ftz=true ", "-prec-div=true ", "-prec-sqrt=true ", "-fmad=false "})
    if (given.find(needed) == std::string::npos) {
      of(program).log = std::string("the option ") + needed + " is missing";
      return kCompilationFailed;
    }
  if (fault("error") || of(program).text.find("syntax error") != std::string::npos) {
    of(program).log = of(program).name + "(1): error: expected a declaration";
    return kCompilationFailed;
  }
  of(program).code = ostro::test::FakeText::code(of(program).text);
  return 0;
}
int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = of(program).code.size();
  return 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  std::memcpy(code, of(program).code.data(), of(program).code.size());
  return 0;
}
int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = of(program).log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  std::memcpy(log, of(program).log.c_str(), of(program).log.size() + 1);
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete &of(*program);
  *program = nullptr;
  return 0;
}

}  // extern "C"

#define SAME(member, symbol, parameters) \
  static_assert(std::is_same_v<decltype(&symbol), decltype(NvrtcSlots::member)>);
OSTRO_NVRTC_SLOTS(SAME)
#undef SAME
