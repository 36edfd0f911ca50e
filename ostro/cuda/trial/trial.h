// try_fast_kernels: runs small programs with the fast kernels and with the plain ones on the same device, and
// allows the families of fast kernels whose bits are the plain ones'.
//
// The emulation shows that a kernel is right, not that a GPU runs it so; a driver, a compiler or a kind of
// GPU that is new is tried here, when it is opened. A family that differs is left out with a
// warning, which names the program: the plain kernels take its place, with the same bits in more time. Tensor
// cores are compared with the definition first (admission/admission.h). A
// trial in which nothing differed is noted by the device, and is not made again by the same build of Ostro.
// Thread-safe. Errors: those of the device.
#pragma once

#include <vector>

#include "ostro/cuda/steps/kernels.h"
#include "ostro/ir/program/program.h"

namespace ostro::cuda {

// A program that reaches fast kernels of a family.
struct TrialProgram {
  Fast family;
  ir::Program program;
  bool is_narrow = false;  // it runs as on one multiprocessor, where small products go by the large tiles
};
std::vector<TrialProgram> trial_programs();

Result<FastFamilies> try_fast_kernels(gpu::Device& device);

// The same with programs of one's own, for tests.
Result<FastFamilies> try_fast_kernels(gpu::Device& device, const std::vector<TrialProgram>& programs);

}  // namespace ostro::cuda
