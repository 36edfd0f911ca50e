// Plan: what a Program becomes. Steps over buffers, in an order fixed at compile time; every temporary has
// its place in one arena, or in a result that nothing has written yet. A Plan says what is to be done, an
// engine (ostro/cpu) does it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/compile/plan/view.h"
#include "ostro/ir/program/program.h"
#include "ostro/runtime/engine.h"

namespace ostro::compile {

enum class BufferKind {
  kParam,     // bound by whoever runs the plan
  kResult,    // likewise
  kTemp,      // at `offset` of the arena, or of a result (PlanBuffer::host)
  kConstant,  // Plan::constants[index]
};

struct PlanBuffer {
  BufferKind kind = BufferKind::kTemp;
  int64_t index = 0;
  int64_t bytes = 0;
  int64_t offset = 0;
  // Temporaries only: the result (a number of Plan::buffers) in whose memory it lies until that is written,
  // or -1: in the arena.
  int32_t host = -1;
  // Results only: the parameter whose memory the result may take when its owner gave it away (donation), or
  // -1.
  int64_t reuses_param = -1;
};

enum class StepKind {
  kCopy,    // out[0] = in[0], views of any strides
  kOp,      // one op by a built-in routine; operands and results are dense unless the routine takes strides
  kKernel,  // a generated kernel
  kLoop,    // scan: regions[0] once per index
  kBranch,  // cond: regions[0] or regions[1]
  kTiles,  // regions[0] `extent` times, each time on the next tile of tokens; regions[1], if any, on the rest
};

struct Plan;

// An op that a generated kernel computes, as the program had it.
struct FusedOp {
  ir::OpKind kind = ir::OpKind::constant;
  std::string scope;
};

// A value that a step reads from memory, and why the step does not compute it where it needs it.
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

  // kKernel: its number in Module::kernels; `extent` outer iterations that threads may share in ranges of at
  // least `grain`.
  int32_t kernel = -1;
  int64_t extent = 1;
  int64_t grain = 1;
  bool pointwise = false;  // every output element depends on the operands' elements at the same place alone
  std::vector<FusedOp> ops;
  std::vector<NotFused> not_fused;  // with LowerOptions::reasons; of other steps than kernels, too
  // Steps that run on each piece of what this one makes, while it is in cache (behind.h).
  std::vector<Step> behind;

  // kLoop, kBranch, kTiles.
  std::vector<Plan> regions;
  int32_t arena = -1;          // buffer that the regions use as their arena
  std::vector<int32_t> slots;  // kLoop: two buffers per carry, for the iterations between first and last
  // kTiles: bytes by which the operands and results of the region, which are the buffers of `in` and `out`,
  // move on from tile to tile.
  std::vector<int64_t> in_advance, out_advance;
  // Of dots among tiles. From the second tile on it goes on from its result (numerics.md N7); its second
  // operand is packed for the first tile and kept for all.
  bool goes_on = false, keeps_b = false;

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

// Operands and results of a generated kernel at most.
inline constexpr size_t kMaxKernelPointers = 256;

// A generated function: `static` C text without includes but for the prelude. Signature:
// void name(char* const* buf, int64_t begin, int64_t end).
struct Kernel {
  std::string name;
  std::string source;
};

// The whole of a compiled Program.
struct Module {
  Plan plan;
  std::vector<Kernel> kernels;  // of the plan and all plans inside, without repetitions
  numerics::LeafTable leaves;
};

struct LowerOptions {
  bool kernels = true;   // false: no generated code, every op a built-in routine
  bool fuse = true;      // false: one kernel per op
  bool reasons = false;  // fill Step::not_fused
  // Tokens of a tile in which a head and its cross-entropy run; 0: some hundred, where the logits are large;
  // -1: always all at once.
  int64_t tile_rows = 0;
  std::vector<int64_t> donate;
};

// Program (already through the passes) -> Module.
Result<Module> lower(const ir::Program& program, const LowerOptions& options);

// What a step is and for which part of the model: "layers/mlp dot", "layers/mlp silu+mul" for a generated
// kernel of these ops. The profiler's and the reports' name of it.
std::string step_name(const Step& step);
// Ops by their scopes: "layers/mlp: silu, mul; layers: add".
std::string ops_text(const std::vector<FusedOp>& ops);

// Steps in words, with bytes and FLOPs and totals, nested plans indented.
std::string print_plan(const Module& module);

}  // namespace ostro::compile
