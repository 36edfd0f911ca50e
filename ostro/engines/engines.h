// Wish, make: the only place that chooses an engine. The choice never changes a bit. Any thread may call.
#pragma once

#include <memory>
#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::engines {

// A wish for an engine: its kind, and what it is for.
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

// The wish that the variable OSTRO_EXECUTOR names: "compiled" (also when it is unset or empty), "interpreter"
// or "cuda_emulated". Error: kInvalidArgument for another word.
Result<Wish> wish_from_environment();

// Returns the wish for the device that a user names (runtime/device_name.h). "cpu": `wish` itself. "auto":
// the first GPU that can be used, else `wish` itself; the choice and its reason are logged once. A wish for
// another engine than the compiled one goes with "cpu" only. Error: kInvalidArgument when `device` is no
// device's name, or is a GPU although OSTRO_EXECUTOR names another engine.
Result<Wish> on_device(Wish wish, const std::string& device);

// Makes the engine. Errors: those of make_cpu_engine, emulated_device, open_gpu and admit (cuda/admission).
Result<std::unique_ptr<runtime::Engine>> make(const Wish& wish);

}  // namespace ostro::engines
