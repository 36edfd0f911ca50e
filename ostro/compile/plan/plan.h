// Plan: the result of compiling a Program: a list of steps over buffers, in a fixed order. Every temporary
// has its place in one arena, or in a result that is written later. A Plan says what to do; an engine
// (ostro/cpu, ostro/cuda) does it. A value; the functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/compile/nest/nest.h"
#include "ostro/compile/plan/target.h"
#include "ostro/compile/plan/view.h"
#include "ostro/ir/program/program.h"
#include "ostro/runtime/engine.h"

namespace ostro::compile {

enum class BufferKind {
  kParam,     // bound by the engine that runs the plan
  kResult,    // likewise
  kTemp,      // at `offset` of the arena, or of a result (PlanBuffer::host)
  kConstant,  // Plan::constants[index]
};

struct PlanBuffer {
  BufferKind kind = BufferKind::kTemp;
  int64_t index = 0;
  int64_t bytes = 0;
  int64_t offset = 0;
  // Temporaries only: the result (its number in Plan::buffers) whose memory it uses until the result is
  // written; -1: it lies in the arena.
  int32_t host = -1;
  // Results only: the donated parameter whose memory the result may use, or -1.
  int64_t reuses_param = -1;
};

enum class StepKind {
  kCopy,  // out[0] = in[0], views of any strides
  kOp,  // one op, run by a built-in routine; operands and results are dense unless the routine takes strides
  kKernel,  // a generated kernel
  kLoop,    // scan: regions[0] once per index
  kBranch,  // cond: regions[0] or regions[1]
  kTiles,  // regions[0] `extent` times, each time on the next tile of tokens; regions[1], if any, on the rest
};

struct Plan;

// An op of the program that a generated kernel computes.
struct FusedOp {
  ir::OpKind kind = ir::OpKind::constant;
  std::string scope;
};

// A value that a step reads from memory, and the reason why the step does not compute it itself.
struct NotFused {
  FusedOp producer;
  ir::Shape shape;
  std::string reason;
};

struct Step {
  StepKind kind = StepKind::kOp;
  ir::OpKind op = ir::OpKind::constant;
  ir::Attrs attrs;
  std::string scope;
  std::vector<View> in, out;

  // kKernel: the number of its nest in Module::nests. It has `extent` outer iterations; threads may share
  // them in ranges of at least `grain`.
  int32_t kernel = -1;
  int64_t extent = 1;
  int64_t grain = 1;
  bool pointwise = false;  // each output element depends only on the operands' elements at the same place
  // kOp: the routine may write out[0] where in[0] lies; no other operand may lie there.
  bool overwrites = false;
  std::vector<FusedOp> ops;
  std::vector<NotFused> not_fused;  // with LowerOptions::reasons; of other steps than kernels, too
  // Steps that run on each piece of this step's output while the piece is in cache (epilogues.h).
  std::vector<Step> epilogues;

  // kLoop, kBranch, kTiles.
  std::vector<Plan> regions;
  int32_t arena = -1;          // buffer that the regions use as their arena
  std::vector<int32_t> slots;  // kLoop: two buffers per carry, for the iterations between first and last
  // kTiles: the operands and results of the region are the buffers of `in` and `out`. From one tile to the
  // next their pointers advance by this many bytes.
  std::vector<int64_t> in_advance, out_advance;
  // Products inside kTiles. goes_on: from the second tile on, the product adds to its result (numerics.md N7,
  // N20).
  // keeps_b: its second operand is packed for the first tile and kept for the others.
  bool goes_on = false, keeps_b = false;

  // Buffers that stay in use all the time that the plan runs, because the step begins an exchange that may go
  // on until the step is run again.
  std::vector<int32_t> held_open;

  double flops = 0;
  double bytes = 0;  // memory traffic
};

struct Plan {
  std::vector<ir::Shape> params, results;
  std::vector<PlanBuffer> buffers;
  std::vector<Step> steps;
  std::vector<std::vector<std::byte>> constants;
  int64_t arena_bytes = 0;

  double flops() const;
  double bytes() const;
};

// The most operands and results that a generated kernel may have.
inline constexpr size_t kMaxKernelPointers = 256;

// The whole of a compiled Program.
struct Module {
  Plan plan;
  std::vector<Nest> nests;  // the kernels of the plan and of all plans nested in it, each once
  numerics::LeafTable leaves;
};

struct LowerOptions {
  bool kernels = true;   // false: no generated code, every op a built-in routine
  bool fuse = true;      // false: one kernel per op
  bool reasons = false;  // fill Step::not_fused
  Target target;
  std::vector<int64_t> donate;
  bool in_loop = false;  // the program is the body of a loop
};

// Lowers a Program, after the passes, to a Module. Error: an op that the engine cannot run.
Result<Module> lower(const ir::Program& program, const LowerOptions& options);

// "copy", "op", "kernel", "loop", "branch" or "tiles".
const char* kind_name(StepKind kind);
// The name of a step in profiles and reports: the part of the model and the ops. "layers/mlp dot", or
// "layers/mlp silu+mul" for a generated kernel of these two ops.
std::string step_name(const Step& step);
// The ops, grouped by scope: "layers/mlp: silu, mul; layers: add".
std::string ops_text(const std::vector<FusedOp>& ops);

// The steps as text, with bytes, FLOPs and totals; nested plans are indented.
std::string print_plan(const Module& module);

}  // namespace ostro::compile
