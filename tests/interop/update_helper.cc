// Runs the update program of a configuration on gradients that are given.
//
// update_helper CONFIG SHAPES                 writes the parameters' paths and shapes, one a line
// update_helper CONFIG GIVEN OUT STEPS        GIVEN.safetensors has each parameter at its path and the
// gradient
//                                             of step i at "i/path"; OUT.safetensors gets the parameters
//                                             afterwards, and the optimizer's arrays
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "ostro/cpu/engine/engine.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/train/step/step.h"

namespace {

using namespace ostro;
using namespace ostro::train;
using runtime::Buffer;

constexpr int64_t kVocab = 40;

Status run(int argc, char** argv) {
  ASSIGN_OR_RETURN(const TrainConfig config, load_train_config(argv[1], {}));
  const auto model = config.model_options().functions(kVocab, compute_dtype(config));
  if (argc == 3) {
    std::ofstream out(argv[2]);
    for (size_t k = 0; k < model.paths.size(); ++k) {
      out << model.paths[k];
      for (const ir::Axis& a : model.shapes[k].axes) out << ' ' << a.name << ' ' << a.size;
      out << '\n';
    }
    return Status();
  }
  ASSIGN_OR_RETURN(const CanonicalPrograms programs, make_programs(config, model));
  ASSIGN_OR_RETURN(auto engine, cpu::make_cpu_engine({}));
  ASSIGN_OR_RETURN(auto update, engine->compile(programs.update, update_options(programs)));
  ASSIGN_OR_RETURN(const auto given, io::SafetensorsReader::open(io::local_file_system(), argv[2]));
  const auto read = [&](const std::string& name, const ir::Shape& shape) -> Result<Buffer> {
    Buffer b = Buffer::empty(shape);
    RETURN_IF_ERROR(given.read(name, b.mutable_bytes()));
    return b;
  };
  const StateArrays arrays = state_arrays(programs);
  const UpdateResults<size_t> at = signatures_of(programs).update_results;
  State state;
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (k < arrays.n) {
      ASSIGN_OR_RETURN(Buffer b, read(arrays.paths[k], arrays.shapes[k]));
      state.params.push_back(std::move(b));
    } else {
      state.optimizer.push_back(Buffer::zeros(arrays.shapes[k]));
    }
  }
  for (int64_t step = 0; step < std::atoi(argv[4]); ++step) {
    UpdateParams<Buffer> in{std::move(state.params), std::move(state.optimizer)};
    for (size_t k = 0; k < arrays.n; ++k) {
      ASSIGN_OR_RETURN(Buffer b, read(fmt::format("{}/{}", step, arrays.paths[k]), arrays.shapes[k]));
      in.gradients.push_back(std::move(b));
    }
    in.loss_sum = Buffer::scalar(ir::DType::f64, 1.0);
    in.weight = Buffer::scalar(ir::DType::f64, 1.0);
    for (const float s : optim::step_scalars(config.optimizer, step, config.trainer.num_train_steps))
      in.scalars.push_back(Buffer::scalar(ir::DType::f32, s));
    ASSIGN_OR_RETURN(std::vector<Buffer> list, update->run(as_list(std::move(in))));
    UpdateResults<Buffer> out = read_fields(at, std::move(list));
    ASSIGN_OR_RETURN(const Measured measured, numbers_of(out.measures));
    if (measured.ok == 0) return invalid_argument("a gradient is not finite");
    state.params = std::move(out.params), state.optimizer = std::move(out.optimizer);
  }
  std::vector<io::SafetensorsEntry> entries;
  for (size_t k = 0; k < arrays.size(); ++k) {
    io::SafetensorsEntry entry{arrays.paths[k], "F32", {}, array_of(state, k).bytes()};
    for (const ir::Axis& a : arrays.shapes[k].axes) entry.shape.push_back(a.size);
    entries.push_back(std::move(entry));
  }
  return io::write_safetensors(io::local_file_system(), argv[3], entries);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 2;
  const Status done = run(argc, argv);
  if (!done.ok()) fmt::print(stderr, "error: {}\n", done.error().message());
  return done.ok() ? 0 : 1;
}
