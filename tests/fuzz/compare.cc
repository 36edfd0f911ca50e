#include "compare.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "ostro/ir/text/text.h"
#include "ostro/numerics/bf16.h"

namespace ostro::fuzz {
namespace {

using ir::DType;
using runtime::Buffer;

double element(const Buffer& b, int64_t i) {
  switch (b.shape().dtype) {
    case DType::f32: return static_cast<double>(b.as<float>()[i]);
    case DType::bf16: return static_cast<double>(numerics::to_f32(b.as<numerics::Bf16>()[i]));
    case DType::f64: return b.as<double>()[i];
    case DType::i32: return b.as<int32_t>()[i];
    case DType::i64: return static_cast<double>(b.as<int64_t>()[i]);
    case DType::u32: return b.as<uint32_t>()[i];
    case DType::i8: return b.as<int8_t>()[i];
    case DType::boolean: break;
  }
  return b.as<uint8_t>()[i];
}

std::string bits_of(const Buffer& b, int64_t i) {
  std::string hex;
  const auto size = static_cast<size_t>(ir::dtype_size(b.shape().dtype));
  for (size_t k = size; k-- > 0;)
    hex += fmt::format("{:02x}", static_cast<unsigned>(b.bytes()[static_cast<size_t>(i) * size + k]));
  return fmt::format("{} (0x{})", element(b, i), hex);
}

std::optional<int64_t> first_difference(const Buffer& a, const Buffer& b) {
  const auto size = static_cast<size_t>(ir::dtype_size(a.shape().dtype));
  for (int64_t i = 0; i < a.shape().count(); ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(a.bytes().data() + at, b.bytes().data() + at, size) == 0) continue;
    if (std::isnan(element(a, i)) && std::isnan(element(b, i))) continue;
    return i;
  }
  return std::nullopt;
}

// The op that made a value; of a loop's result the op in its body too: "scan/dot".
std::string maker_of(const ir::Block& block, ir::ValueId v) {
  for (const ir::Op& op : block.ops)
    for (size_t i = 0; i < op.results.size(); ++i) {
      if (op.results[i] != v) continue;
      if (op.kind != ir::OpKind::scan) return ir::op_name(op.kind);
      return "scan/" + maker_of(op.regions[0], op.regions[0].results[i]);
    }
  return "parameter";
}

void count(OutputStats& stats, const Buffer& b, const std::string& maker) {
  bool finite = true, varied = b.shape().count() <= 1;
  for (int64_t i = 0; i < b.shape().count(); ++i) {
    if (!std::isfinite(element(b, i))) finite = false;
    if (element(b, i) != element(b, 0)) varied = true;
  }
  ++stats.outputs;
  stats.finite += finite ? 1 : 0;
  if (finite && varied)
    ++stats.meaningful;
  else
    ++stats.dull[maker];
}

struct Outcome {
  std::vector<Buffer> results;
  runtime::ExecutableInfo info;
};

Result<Outcome> run(runtime::Engine& engine, const ir::Program& program, const std::vector<Buffer>& inputs) {
  ASSIGN_OR_RETURN(auto executable, engine.compile(program));
  ASSIGN_OR_RETURN(auto results, executable->run(inputs));
  ASSIGN_OR_RETURN(results, runtime::all_to(std::move(results), runtime::host_memory()));
  return Outcome{std::move(results), executable->info()};
}

// Runs it twice, since the second run finds the first one's values in its memory. `give`: each time it gets
// copies of the inputs that it may overwrite.
Result<Outcome> run_again(runtime::Engine& engine, const ir::Program& program,
                          const std::vector<Buffer>& inputs, bool give) {
  runtime::CompileOptions options;
  if (give) {
    options.donate.resize(inputs.size());
    std::iota(options.donate.begin(), options.donate.end(), 0);
  }
  ASSIGN_OR_RETURN(auto executable, engine.compile(program, options));
  std::vector<Buffer> results;
  for (int i = 0; i < 2; ++i) {
    std::vector<Buffer> given = inputs;
    if (give)
      for (Buffer& b : given) b = Buffer::copy_of(b.shape(), b.bytes().data());
    ASSIGN_OR_RETURN(results, executable->run(std::move(given)));
  }
  ASSIGN_OR_RETURN(results, runtime::all_to(std::move(results), runtime::host_memory()));
  return Outcome{std::move(results), executable->info()};
}

std::optional<std::string> compare(const ir::Program& program, const Outcome& a, const Outcome& b,
                                   const std::string& name_a, const std::string& name_b) {
  if (a.results.size() != b.results.size())
    return fmt::format("{} results with {}, {} with {}", a.results.size(), name_a, b.results.size(), name_b);
  for (size_t i = 0; i < a.results.size(); ++i) {
    const Buffer &x = a.results[i], &y = b.results[i];
    const ir::ValueId v = program.body.results[i];
    if (x.shape() != y.shape())
      return fmt::format("result {} (%{}) is {} with {} and {} with {}", i, v, x.shape().str(), name_a,
                         y.shape().str(), name_b);
    if (const auto at = first_difference(x, y))
      return fmt::format("result {} (%{}, made by {}, {}) differs at element {}: {} {}, {} {}", i, v,
                         maker_of(program.body, v), x.shape().str(), *at, name_a, bits_of(x, *at), name_b,
                         bits_of(y, *at));
  }
  return std::nullopt;
}

}  // namespace

void OutputStats::add(const OutputStats& other) {
  outputs += other.outputs;
  finite += other.finite;
  meaningful += other.meaningful;
  kernels += other.kernels;
  fallback_ops += other.fallback_ops;
  for (const auto& [maker, n] : other.dull) dull[maker] += n;
  for (const auto& [policy, n] : other.lone_policies) lone_policies[policy] += n;
}

std::optional<std::string> difference(runtime::Engine& a, runtime::Engine& b, const RandomCase& c,
                                      OutputStats* stats) {
  auto again = ir::parse_program(ir::print(c.program));
  if (!again.ok()) return again.error().message();
  auto of_a = run(a, c.program, c.inputs);
  if (!of_a.ok()) return fmt::format("{}: {}", a.info().name, of_a.error().message());
  auto of_b = run_again(b, *again, c.inputs, c.give);
  if (!of_b.ok()) return fmt::format("{}: {}", b.info().name, of_b.error().message());
  if (stats != nullptr) {
    for (size_t i = 0; i < of_a->results.size(); ++i)
      count(*stats, of_a->results[i], maker_of(c.program.body, c.program.body.results[i]));
    stats->kernels += of_b->info.kernels;
    stats->fallback_ops += of_b->info.fallback_ops;
  }
  return compare(c.program, *of_a, *of_b, a.info().name, b.info().name);
}

std::optional<std::string> difference(runtime::Engine& engine, const RandomCase& c,
                                      const std::vector<Rewriting>& rewritings) {
  auto before = run(engine, c.program, c.inputs);
  if (!before.ok()) return before.error().message();
  std::set<std::string> seen{ir::print(c.program)};
  for (const Rewriting& r : rewritings) {
    if (!seen.insert(ir::print(r.program)).second) continue;
    auto after = run(engine, r.program, c.inputs);
    if (!after.ok()) return fmt::format("{}: {}", r.name, after.error().message());
    if (auto d = compare(c.program, *before, *after, "before", "after"))
      return fmt::format("{}: {}", r.name, *d);
  }
  return std::nullopt;
}

RandomCase returning_everything(const RandomCase& c) {
  RandomCase all = c;
  all.program.result_names.clear();
  all.program.body.results.clear();
  for (const ir::Op& op : c.program.body.ops)
    all.program.body.results.insert(all.program.body.results.end(), op.results.begin(), op.results.end());
  return all;
}

}  // namespace ostro::fuzz
