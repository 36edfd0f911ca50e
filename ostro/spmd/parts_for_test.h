// check_parts: inputs whose sum depends on the order of addition, and the comparison interp(partition(P)) ==
// interp(P), bit for bit, for tests of partitioned programs.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ostro/numerics/bf16.h"
#include "ostro/numerics/threefry.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::spmd {

// Floats of many magnitudes; integers in [0, below).
inline runtime::Buffer test_input(const ir::Shape& shape, uint32_t seed, int64_t below = 8) {
  runtime::Buffer b = runtime::Buffer::zeros(shape);
  const numerics::Key key{seed, 77};
  for (int64_t i = 0; i < shape.count(); ++i) {
    const uint32_t bits = numerics::random_bits(key, static_cast<uint64_t>(i));
    const float x =
        (static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f) * std::exp2(static_cast<float>(bits % 7) - 3);
    const auto at = static_cast<size_t>(i);
    switch (shape.dtype) {
      case ir::DType::f32: b.mutable_as<float>()[at] = x; break;
      case ir::DType::f64: b.mutable_as<double>()[at] = x; break;
      case ir::DType::bf16: b.mutable_as<numerics::Bf16>()[at] = numerics::to_bf16(x); break;
      case ir::DType::i32:
        b.mutable_as<int32_t>()[at] = static_cast<int32_t>(bits % static_cast<uint32_t>(below));
        break;
      case ir::DType::i64: b.mutable_as<int64_t>()[at] = bits % static_cast<uint32_t>(below); break;
      case ir::DType::u32: b.mutable_as<uint32_t>()[at] = bits; break;
      case ir::DType::i8: b.mutable_as<int8_t>()[at] = static_cast<int8_t>(bits & 0xff); break;
      case ir::DType::boolean: b.mutable_as<uint8_t>()[at] = static_cast<uint8_t>(bits & 1); break;
    }
  }
  return b;
}

inline std::vector<runtime::Buffer> test_inputs(const ir::Program& p, int64_t below = 8) {
  std::vector<runtime::Buffer> in;
  for (ir::ValueId v : p.body.params)
    in.push_back(test_input(p.body.shape(v), static_cast<uint32_t>(in.size()) + 1, below));
  return in;
}

inline bool same_bits(const runtime::Buffer& a, const runtime::Buffer& b) {
  return a.shape() == b.shape() && std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

inline std::vector<runtime::Buffer> run_whole(runtime::Engine& engine, const ir::Program& p,
                                              const std::vector<runtime::Buffer>& in) {
  auto executable = engine.compile(p);
  REQUIRE_MESSAGE(executable.ok(), (executable.ok() ? "" : executable.error().message()));
  auto out = (*executable)->run(in);
  REQUIRE_MESSAGE(out.ok(), (out.ok() ? "" : out.error().message()));
  return *out;
}

// Defined in partition_test.cc: the interpreter, the compiled engine, and workers in threads of this process.
std::unique_ptr<runtime::Engine> test_engine();
std::unique_ptr<runtime::Engine> compiled_engine();
RunWorkers loop_workers(const ir::Mesh& mesh);

// Runs the whole program and its parts and compares every result.
// `compiled`: also runs the parts on the compiled engine.
inline Partition check_parts(const ir::Program& p, const PartitionOptions& options,
                             const std::vector<runtime::Buffer>& in, bool compiled = false) {
  const auto engine = test_engine();
  auto parts = partition(p, options);
  REQUIRE_MESSAGE(parts.ok(), (parts.ok() ? "" : parts.error().message()));
  const auto whole = run_whole(*engine, p, in);
  std::vector<std::unique_ptr<runtime::Engine>> engines;
  engines.push_back(test_engine());
  if (compiled) engines.push_back(compiled_engine());
  for (const auto& e : engines) {
    auto joined = run_parts(*e, *parts, in, loop_workers(parts->mesh));
    REQUIRE_MESSAGE(joined.ok(), (joined.ok() ? "" : joined.error().message()));
    for (size_t i = 0; i < whole.size(); ++i)
      CHECK_MESSAGE(same_bits((*joined)[i], whole[i]), e->info().name, " ", p.name, ": result ", i, " ",
                    p.result_names.empty() ? std::string() : p.result_names[i], " ", whole[i].shape().str());
  }
  return *parts;
}

// Returns whether some value of the block, regions included, has all these axes at these sizes.
inline bool has_value_with(const ir::Block& block, const std::vector<ir::Axis>& axes) {
  for (const ir::Shape& s : block.values) {
    bool all = true;
    for (const ir::Axis& a : axes) all &= s.has(a.name) && s.size_of(a.name) == a.size;
    if (all) return true;
  }
  for (const ir::Op& op : block.ops)
    for (const ir::Block& region : op.regions)
      if (has_value_with(region, axes)) return true;
  return false;
}

// The number of ops of this kind in the block, regions included.
inline int64_t count_ops(const ir::Block& block, ir::OpKind kind) {
  int64_t n = 0;
  for (const ir::Op& op : block.ops) {
    n += op.kind == kind ? 1 : 0;
    for (const ir::Block& region : op.regions) n += count_ops(region, kind);
  }
  return n;
}

}  // namespace ostro::spmd
