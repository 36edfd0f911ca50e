#include "ostro/compile/lower/lower.h"

#include <algorithm>

#include <fmt/format.h>

#include "ostro/compile/fuse/constants.h"
#include "ostro/compile/fuse/fuse.h"
#include "ostro/compile/lower/make_nest.h"
#include "ostro/compile/plan/epilogues.h"
#include "ostro/compile/plan/exchange_scratch.h"
#include "ostro/compile/plan/memory.h"
#include "ostro/compile/plan/token_tiles.h"
#include "ostro/ir/program/op_table.h"

namespace ostro::compile {

using ir::Op;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

namespace {

bool is_view_op(OpKind k) { return ir::is_layout(k) || k == OpKind::broadcast; }

std::vector<Shape> shapes_of(const ir::Block& block, const std::vector<ValueId>& values) {
  std::vector<Shape> s;
  for (ValueId v : values) s.push_back(block.shape(v));
  return s;
}

// Steps without a scope, such as those of the optimizer's update, are named after the values they make, or,
// without a name there, after those they read.
void name_by_values(Plan& plan, const ir::Program& program) {
  const auto name_of = [&](const View& v) -> std::string {
    const PlanBuffer& b = plan.buffers[static_cast<size_t>(v.buffer)];
    const auto i = static_cast<size_t>(b.index);
    if (b.kind == BufferKind::kResult && i < program.result_names.size()) return program.result_names[i];
    if (b.kind == BufferKind::kParam && i < program.param_names.size()) return program.param_names[i];
    return "";
  };
  for (Step& step : plan.steps)
    for (const std::vector<View>* views : {&step.out, &step.in})
      for (const View& v : *views)
        if (step.scope.empty() && step.regions.empty()) step.scope = name_of(v);
}

}  // namespace

int32_t NestTable::add(Nest nest) {
  const auto [it, fresh] = number_of_.try_emplace(nest, static_cast<int32_t>(nests_.size()));
  if (fresh) nests_.push_back(std::move(nest));
  return it->second;
}

BlockLowering::BlockLowering(const ir::Block& block, const numerics::LeafTable& leaves,
                             const LowerOptions& options, NestTable& nests)
    : block_(block), leaves_(leaves), options_(options), nests_(nests) {}

int32_t BlockLowering::new_buffer(BufferKind kind, int64_t index, int64_t bytes) {
  plan_.buffers.push_back({kind, index, bytes});
  return static_cast<int32_t>(plan_.buffers.size()) - 1;
}

void BlockLowering::find_views() {
  const size_t n = block_.values.size();
  relative_.resize(n);
  place_.resize(n);
  copies_.resize(n);
  is_splat_.assign(n, 0);
  is_joined_.assign(n, 0);
  stored_.assign(n, nullptr);
  for (size_t i = 0; i < n; ++i) relative_[i] = View::whole(static_cast<int32_t>(i), block_.values[i]);
  for (size_t i = 0; i < block_.params.size(); ++i) {
    const ValueId v = block_.params[i];
    const int32_t b = new_buffer(BufferKind::kParam, static_cast<int64_t>(i), block_.shape(v).bytes());
    place_[static_cast<size_t>(v)] = View::whole(b, block_.shape(v));
  }
  for (const Op& op : block_.ops) {
    if (op.kind == OpKind::constant) {
      const auto v = static_cast<size_t>(op.results[0]);
      std::vector<std::byte> data = constant_bytes(op, block_.values[v]);
      const bool splat = static_cast<int64_t>(data.size()) == ir::dtype_size(block_.values[v].dtype);
      const int32_t b = new_buffer(BufferKind::kConstant, static_cast<int64_t>(plan_.constants.size()),
                                   static_cast<int64_t>(data.size()));
      plan_.constants.push_back(std::move(data));
      is_splat_[v] = splat;
      // A splat is one element that every index looks at.
      if (splat) relative_[v].strides.assign(block_.values[v].axes.size(), 0);
      place_[v] = relative_[v];
      place_[v].buffer = b;
    } else if (is_view_op(op.kind)) {
      const View& x = relative_[static_cast<size_t>(op.operands[0])];
      for (size_t i = 0; i < op.results.size(); ++i) {
        const auto v = static_cast<size_t>(op.results[i]);
        if (auto view = apply_layout(op, i, x, block_.values[v])) relative_[v] = std::move(*view);
      }
    }
  }
}

void BlockLowering::find_stored_matrices() {
  if (!options_.fuse) return;
  for (const Op& op : block_.ops)
    if (op.kind == OpKind::dequantize) stored_[static_cast<size_t>(op.results[0])] = &op;
  const auto is_product = [&](const Op& op) {
    if (op.kind == OpKind::expert_dot) return true;
    if (op.kind != OpKind::dot) return false;
    // A batch of matrices is dequantised first.
    const auto& over = op.attrs.strs("over");
    const Shape& w = block_.shape(op.operands[1]);
    return std::all_of(w.axes.begin(), w.axes.end(), [&](const ir::Axis& axis) {
      return !block_.shape(op.operands[0]).has(axis.name) ||
             std::find(over.begin(), over.end(), axis.name) != over.end();
    });
  };
  for (const Op& op : block_.ops)
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (i != 1 || !is_product(op)) stored_[static_cast<size_t>(op.operands[i])] = nullptr;
  for (const ValueId v : block_.results) stored_[static_cast<size_t>(v)] = nullptr;
}

void BlockLowering::place_results() {
  for (size_t i = 0; i < block_.results.size(); ++i) {
    const ValueId v = block_.results[i];
    const int32_t b = new_buffer(BufferKind::kResult, static_cast<int64_t>(i), block_.shape(v).bytes());
    plan_.results.push_back(block_.shape(v));
    View& place = place_[static_cast<size_t>(v)];
    if (is_root(v) && place.buffer < 0) place = View::whole(b, block_.shape(v));
  }
}

View BlockLowering::located(ValueId v) const {
  View view = relative_[static_cast<size_t>(v)];
  const View& base = place_[static_cast<size_t>(view.buffer)];
  OSTRO_CHECK(base.buffer >= 0, "value %{} is used before a step made it", view.buffer);
  view.buffer = base.buffer;
  view.offset += base.offset;
  return view;
}

View BlockLowering::destination(ValueId v) {
  View& place = place_[static_cast<size_t>(v)];
  if (place.buffer < 0)
    place = View::whole(new_buffer(BufferKind::kTemp, 0, block_.shape(v).bytes()), block_.shape(v));
  return place;
}

View BlockLowering::located_dense(ValueId v) {
  View view = located(v);
  if (view.dense()) return view;
  View& copy = copies_[static_cast<size_t>(v)];
  if (copy.buffer < 0) {
    copy = View::whole(new_buffer(BufferKind::kTemp, 0, block_.shape(v).bytes()), block_.shape(v));
    Step step;
    step.kind = StepKind::kCopy;
    step.in = {view};
    step.out = {copy};
    step.bytes = 2.0 * static_cast<double>(block_.shape(v).bytes());
    plan_.steps.push_back(std::move(step));
  }
  return copy;
}

void BlockLowering::lower_op(const Op& op) {
  if (op.kind == OpKind::constant) return;
  if (is_view_op(op.kind) && !is_root(op.results[0])) return;
  if (is_joined_[static_cast<size_t>(op.results[0])] != 0) return;
  if (stored_[static_cast<size_t>(op.results[0])] != nullptr) return;
  Step step;
  step.op = op.kind;
  step.attrs = op.attrs;
  step.scope = op.scope;
  const ir::Cost cost = ir::op_cost(op, shapes_of(block_, op.operands), shapes_of(block_, op.results));
  step.flops = cost.flops;
  step.bytes = cost.bytes;
  if (op.kind == OpKind::merge_axes) {
    // The copy runs over the axes before the merge; afterwards they lie together.
    step.kind = StepKind::kCopy;
    step.in = {located(op.operands[0])};
    View out = destination(op.results[0]);
    out.strides = block_.shape(op.operands[0]).strides();
    out.shape = block_.shape(op.operands[0]);
    step.out = {out};
    plan_.steps.push_back(std::move(step));
    return;
  }
  const Op* stored = op.operands.size() > 1 ? stored_[static_cast<size_t>(op.operands[1])] : nullptr;
  for (ValueId v : op.operands) {
    if (stored != nullptr && v == op.operands[1])
      step.in.push_back(located(stored->operands[0]));
    else
      step.in.push_back(options_.target.reads_views(op.kind) ? located(v) : located_dense(v));
  }
  if (stored != nullptr) {
    // The product reads the matrix as it is stored, and its scales: one more operand.
    step.in.push_back(located(stored->operands[1]));
    step.attrs.set("scaled", stored->attrs.strs("over"));
    step.attrs.set("groups", stored->attrs.str("groups"));
    step.bytes += static_cast<double>(step.in[1].shape.bytes() + step.in.back().shape.bytes()) -
                  static_cast<double>(block_.shape(op.operands[1]).bytes());
  }
  for (ValueId v : op.results) step.out.push_back(destination(v));
  if (!op.regions.empty()) {
    lower_region_op(op, std::move(step));
    return;
  }
  step.kind = StepKind::kOp;
  step.overwrites = op.kind == OpKind::paged_write;
  if (ir::is_collective(op.kind) && op.kind != OpKind::shard_slice) {
    const Shape& x = block_.shape(op.operands[0]);
    const ExchangeScratch scratch = exchange_scratch(op, x, block_.shape(op.results[0]));
    for (const int64_t n : {scratch.received, scratch.packed}) {
      const Shape shape{x.dtype, {{"scratch", n}}};
      step.out.push_back(View::whole(new_buffer(BufferKind::kTemp, 0, shape.bytes()), shape));
    }
    if (op.kind == OpKind::exchange_leaves && options_.in_loop) {
      step.held_open = {step.out[1].buffer, step.out[2].buffer};
      if (scratch.packed == 0) step.held_open.push_back(step.in[0].buffer);
    }
  }
  plan_.steps.push_back(std::move(step));
}

void BlockLowering::lower_region_op(const Op& op, Step step) {
  OSTRO_CHECK(op.kind != OpKind::custom, "a custom op reached lowering; its pass inlines all of them");
  step.kind = op.kind == OpKind::scan ? StepKind::kLoop : StepKind::kBranch;
  int64_t arena = 0;
  for (const ir::Block& region : op.regions) {
    LowerOptions options = options_;
    options.donate.clear();
    options.in_loop = op.kind == OpKind::scan;
    step.regions.push_back(BlockLowering(region, leaves_, options, nests_).run());
    arena = std::max(arena, step.regions.back().arena_bytes);
  }
  step.arena = new_buffer(BufferKind::kTemp, 0, arena);
  if (op.kind == OpKind::scan) {
    const auto consts = static_cast<size_t>(op.attrs.i64("consts"));
    const auto carries = static_cast<size_t>(op.attrs.i64("carries"));
    for (size_t i = 0; i < 2 * carries; ++i)
      step.slots.push_back(
          new_buffer(BufferKind::kTemp, 0, block_.shape(op.operands[consts + i / 2]).bytes()));
  }
  plan_.steps.push_back(std::move(step));
}

void BlockLowering::lower_units() {
  std::vector<char> is_view;
  for (const Op& op : block_.ops)
    is_view.push_back(op.kind == OpKind::constant || (is_view_op(op.kind) && !is_root(op.results[0])));
  const std::vector<Unit> units =
      find_units({block_, relative_, is_view, leaves_, options_.fuse, options_.reasons});
  if (options_.fuse) place_parts(units);
  for (const Unit& unit : units) {
    const size_t before = plan_.steps.size();
    if (unit.kind == UnitKind::kSingle)
      lower_op(block_.ops[static_cast<size_t>(unit.ops[0])]);
    else
      lower_unit(unit);
    if (plan_.steps.size() == before) continue;
    for (const Barrier& b : unit.barriers) {
      const Op& producer = block_.ops[static_cast<size_t>(b.producer)];
      plan_.steps.back().not_fused.push_back(
          {{producer.kind, producer.scope}, block_.shape(b.value), refusal_text(b, unit, block_)});
    }
  }
}

void BlockLowering::lower_unit(const Unit& unit) {
  // Results without elements need no kernel, but their places must exist.
  int64_t elements = 0;
  for (ValueId v : unit.stored) {
    destination(v);
    elements += block_.shape(v).count();
  }
  if (elements == 0) return;
  PlacedNest made = MakeNest(*this, unit).run();
  Step step;
  step.kind = StepKind::kKernel;
  step.kernel = nests_.add(std::move(made.nest));
  step.in = std::move(made.in);
  step.out = std::move(made.out);
  for (const std::vector<View>* views : {&step.in, &step.out})
    for (const View& v : *views) step.bytes += static_cast<double>(v.touched_bytes());
  step.extent = made.extent;
  step.grain = made.grain;
  step.pointwise = made.pointwise;
  for (int32_t i : unit.ops) {
    const Op& op = block_.ops[static_cast<size_t>(i)];
    step.flops += ir::op_cost(op, shapes_of(block_, op.operands), shapes_of(block_, op.results)).flops;
    step.ops.push_back({op.kind, op.scope});
  }
  step.scope = step.ops.back().scope;
  plan_.steps.push_back(std::move(step));
}

void BlockLowering::copy_results() {
  for (size_t i = 0; i < block_.results.size(); ++i) {
    const ValueId v = block_.results[i];
    const View from = located(v);
    int32_t b = -1;
    for (size_t j = 0; j < plan_.buffers.size(); ++j)
      if (plan_.buffers[j].kind == BufferKind::kResult && plan_.buffers[j].index == static_cast<int64_t>(i))
        b = static_cast<int32_t>(j);
    if (from.buffer == b) continue;
    Step step;
    step.kind = StepKind::kCopy;
    step.in = {from};
    step.out = {View::whole(b, block_.shape(v))};
    step.bytes = 2.0 * static_cast<double>(block_.shape(v).bytes());
    plan_.steps.push_back(std::move(step));
  }
}

Plan BlockLowering::run() {
  plan_.params = shapes_of(block_, block_.params);
  find_views();
  find_stored_matrices();
  place_results();
  if (options_.kernels) {
    lower_units();
  } else {
    for (const Op& op : block_.ops) lower_op(op);
  }
  copy_results();
  if (options_.fuse) {
    if (options_.target.fingerprint_epilogues) add_fingerprint_epilogues(plan_);
    add_gradient_epilogues(plan_);
    tile_heads(plan_, leaves_, options_.target, options_.reasons);
  }
  plan_memory(plan_);
  return std::move(plan_);
}

Result<Module> lower(const ir::Program& program, const LowerOptions& options) {
  try {
    NestTable nests;
    Module module;
    module.leaves = program.leaves;
    module.plan = BlockLowering(program.body, module.leaves, options, nests).run();
    plan_donation(module.plan, options.donate);
    plan_memory(module.plan, /*in_results=*/true);
    name_by_values(module.plan, program);
    module.nests = nests.take();
    return module;
  } catch (const ir::AttrError& e) {
    return invalid_argument(e.message);
  }
}

}  // namespace ostro::compile
