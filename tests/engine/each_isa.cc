#include "each_isa.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "ostro/base/check.h"
#include "ostro/base/object_cache.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/machine/isa.h"
#include "ostro/numerics/bf16.h"
#include "programs.h"

namespace ostro::testing {
namespace {

using runtime::Buffer;

Result<std::vector<Buffer>> results_of(runtime::Engine& engine, const ir::Program& program,
                                       const std::vector<Buffer>& inputs) {
  ASSIGN_OR_RETURN(auto executable, engine.compile(program));
  ASSIGN_OR_RETURN(auto results, executable->run(inputs));
  return runtime::all_to(std::move(results), runtime::host_memory());
}

// The same elements in a view that is aligned to its elements only.
Buffer shifted(const Buffer& b) {
  const ir::Shape beside{b.shape().dtype, {{"element", b.shape().count() + 1}}};
  Buffer view = Buffer::empty(beside).rows(1, b.shape().count()).with_shape(b.shape());
  if (!b.bytes().empty()) std::memcpy(view.mutable_bytes().data(), b.bytes().data(), b.bytes().size());
  return view;
}

bool tells(const Buffer& b) {
  const auto size = static_cast<size_t>(ir::dtype_size(b.shape().dtype));
  bool varied = b.shape().count() == 1;
  for (int64_t i = 0; i < b.shape().count(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (b.shape().dtype == ir::DType::f32 && !std::isfinite(b.as<float>()[at])) return false;
    if (b.shape().dtype == ir::DType::f64 && !std::isfinite(b.as<double>()[at])) return false;
    if (b.shape().dtype == ir::DType::bf16 && !std::isfinite(numerics::to_f32(b.as<numerics::Bf16>()[at])))
      return false;
    for (size_t k = 0; k < size; ++k) varied = varied || b.bytes()[at * size + k] != b.bytes()[k];
  }
  return varied;
}

}  // namespace

EachIsa::EachIsa(cpu::CpuOptions options) : reference_(interp::make_interpreter()) {
  if (environment_variable("OSTRO_EXECUTOR") == "cuda_emulated") {
    const auto device = gpu::emulated_device();
    OSTRO_CHECK(device.ok(), "{}", device.error().message());
    engines_.emplace_back(
        "cuda_emulated",
        cuda::make_device_engine(**device, {.fuse = options.fuse, .head_tile = options.head_tile}));
    return;
  }
  for (machine::Isa isa : machine::available_isas()) {
    options.isa = machine::isa_name(isa);
    options.compiler_required = true;
    auto engine = cpu::make_cpu_engine(options);
    OSTRO_CHECK(engine.ok(), "{}: {}", options.isa, engine.error().message());
    engines_.emplace_back(options.isa, std::move(*engine));
  }
}

std::string EachIsa::difference(const ir::Program& program, const std::vector<Buffer>& inputs) {
  const auto expected = results_of(*reference_, program, inputs);
  if (!expected.ok()) return expected.error().message();
  for (const Buffer& b : *expected) {
    ++results_;
    telling_ += tells(b) ? 1 : 0;
  }
  std::vector<Buffer> given = inputs;
  if (programs_++ % 2 == 1)
    for (Buffer& b : given) b = shifted(b);
  for (const auto& [isa, engine] : engines_) {
    const auto got = results_of(*engine, program, given);
    const std::string d = got.ok() ? testing::difference(*expected, *got) : got.error().message();
    if (!d.empty()) return fmt::format("{}: {}", isa, d);
  }
  return "";
}

ir::ValueId ProgramWithInputs::param(ir::Shape shape, const std::function<int64_t(int64_t)>& value) {
  Buffer b = Buffer::empty(shape);
  for (int64_t e = 0; e < shape.count(); ++e) {
    if (shape.dtype == ir::DType::boolean)
      b.mutable_as<uint8_t>()[static_cast<size_t>(e)] = value(e) != 0 ? 1 : 0;
    else
      b.mutable_as<int32_t>()[static_cast<size_t>(e)] = static_cast<int32_t>(value(e));
  }
  given_.emplace_back(program.body.params.size(), std::move(b));
  return param(std::move(shape));
}

std::vector<Buffer> ProgramWithInputs::inputs(uint64_t seed) const {
  std::vector<Buffer> all = make_inputs(program, seed, false);
  for (const auto& [at, buffer] : given_) all[at] = buffer;
  return all;
}

}  // namespace ostro::testing
