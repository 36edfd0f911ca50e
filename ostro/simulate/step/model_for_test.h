// test_engine, model_of, names_of: a tiny run for the simulator's tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/cpu/engine/engine.h"
#include "ostro/fleet/workers/workers_for_test.h"
#include "ostro/simulate/step/step_plan.h"

namespace ostro::simulate {

inline std::unique_ptr<runtime::Engine> test_engine() {
  return cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}).value();
}

inline RunModel model_of(const fleet::Setup& s) {
  RunModel model;
  model.config = s.config;
  model.programs = s.programs;
  model.remat = "none";
  model.leaves = s.config.trainer.train_batch_size.at(0) / *s.config.numerics.leaf_examples;
  const train::StateArrays arrays = train::state_arrays(s.programs);
  model.arrays = static_cast<int64_t>(arrays.size());
  for (size_t k = 0; k < arrays.size(); ++k) {
    model.state_bytes += arrays.shapes[k].bytes();
    if (k < arrays.n) model.parameter_bytes += arrays.shapes[k].bytes();
  }
  return model;
}

// The names of the slices of hosts; none for one slice.
inline std::vector<std::string> names_of(const std::vector<int64_t>& sizes) {
  std::vector<std::string> names;
  for (size_t slice = 0; slice < sizes.size() && sizes.size() > 1; ++slice)
    names.insert(names.end(), static_cast<size_t>(sizes[slice]), std::to_string(slice));
  return names;
}

}  // namespace ostro::simulate
