// EnginePeak: the highest rate, in FLOP/s, that an engine has reached in a square matrix product of one
// precision: its dtype and its rule. On a GPU the product is as large as it must be to keep it busy.
//
// It is the denominator of MFU. Other programs on the machine make a measurement lower, never higher, so a
// run measures again from time to time and keeps the highest. A device, whose memory training needs, is
// measured once. Used by one thread.
#pragma once

#include <memory>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/programs/programs.h"

namespace ostro::run {

class EnginePeak {
 public:
  // Compiles the product and measures for some 0.1 s. An engine that is not made to be fast (the interpreter)
  // is not measured; its peak stays 0. For products of integers it is the peak of bf16.
  EnginePeak(runtime::Engine& engine, const nn::Precision& precision);

  double value() const { return best_; }
  // Measures again for some milliseconds; not a device.
  void measure_again();
  // A rate that training itself has reached: the peak is no lower.
  void reached(double flops_per_second);

 private:
  // Makes product_ and factors_; false: the engine cannot.
  bool make(runtime::Engine& engine, const nn::Precision& precision, int64_t size);
  double measured(double seconds);

  std::unique_ptr<runtime::Executable> product_;  // null: it is not measured again
  std::vector<runtime::Buffer> factors_;
  int64_t size_ = 0;  // rows and columns of the factors
  double best_ = 0;
};

// The peak, measured once.
double engine_peak(runtime::Engine& engine, const nn::Precision& precision);

}  // namespace ostro::run
