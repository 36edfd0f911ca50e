// Engines: the only place that chooses an engine. The choice never changes a bit.
#pragma once

#include <memory>
#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::engines {

// What an engine is wanted for, and by which of them it shall run.
struct Wish {
  enum class Kind {
    kCompiled,      // ostro/cpu: it heeds OSTRO_ISA and OSTRO_THREADS (cpu/engine/engine.h)
    kInterpreter,   // ostro/interp: plain scalar code on one thread, the specification
    kCudaEmulated,  // ostro/cuda on a device that is emulated on the CPU: for tests, slow
    kCuda           // ostro/cuda on the GPU `gpu`
  };
  Kind kind = Kind::kCompiled;
  // False: the compiled engine without generated code. It is slower, but for programs that run only a few
  // times there is nothing to compile first.
  bool generated_code = true;
  int gpu = 0;  // of kCuda
};

// What the variable OSTRO_EXECUTOR wishes: "compiled" (also when it is unset or empty), "interpreter" or
// "cuda_emulated".
// Error: kInvalidArgument for another word.
Result<Wish> wish_from_environment();

// The wish on a device that a user names (runtime/device_name.h). "cpu": the wish itself. "auto": the first
// GPU that can be used, else the wish itself; which, and why, is logged once. A wish for another engine than
// the compiled one is for "cpu". Errors: kInvalidArgument: no device's name, or a GPU beside another engine
// of OSTRO_EXECUTOR.
Result<Wish> on_device(Wish wish, const std::string& device);

// Makes the engine. Error: of make_cpu_engine, of emulated_device, of open_gpu, of admit (cuda/admission).
Result<std::unique_ptr<runtime::Engine>> make(const Wish& wish);

}  // namespace ostro::engines
