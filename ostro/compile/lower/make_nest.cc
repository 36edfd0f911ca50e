#include "ostro/compile/lower/make_nest.h"

#include <algorithm>
#include <cstring>

#include "ostro/base/check.h"

namespace ostro::compile {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

namespace {

int64_t product_of(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// True for ops that cost more than a few instructions: their result is better saved than computed twice.
bool is_expensive(OpKind k) {
  switch (k) {
    case OpKind::exp:
    case OpKind::log:
    case OpKind::log2:
    case OpKind::log1p:
    case OpKind::tanh:
    case OpKind::sin:
    case OpKind::cos:
    case OpKind::erf:
    case OpKind::erfinv:
    case OpKind::sigmoid:
    case OpKind::rsqrt:
    case OpKind::div:
    case OpKind::sqrt: return true;
    default: return false;
  }
}

}  // namespace

bool MakeNest::is_row(int64_t rank) const {
  return unit_.split >= 0 && rank == unit_.split && rank != static_cast<int64_t>(unit_.domain.size());
}

size_t MakeNest::add_access(const View& view, bool store) {
  Access a{view, store, is_row(view.shape.rank()), view.strides};
  a.strides.resize(unit_.domain.size(), 0);
  if (!store)
    for (size_t i = 0; i < accesses_.size(); ++i) {
      const Access& other = accesses_[i];
      if (!other.store && other.view.buffer == view.buffer && other.view.offset == view.offset &&
          other.strides == a.strides && other.view.shape.dtype == view.shape.dtype && other.row == a.row)
        return i;
    }
  accesses_.push_back(std::move(a));
  return accesses_.size() - 1;
}

// Loads in the order in which ops read them, each once, then stores.
void MakeNest::collect_accesses() {
  for (int32_t i = 0; i < count(); ++i)
    for (ValueId v : op(i).operands) {
      const ValueId r = root(v);
      if (defined_.count(r) != 0 || low_.is_splat_[static_cast<size_t>(r)] != 0 || load_of_.count(v) != 0)
        continue;
      load_of_[v] = add_access(low_.located(v), false);
    }
  for (ValueId v : unit_.stored) {
    View view = low_.destination(v);
    if (unit_.kind == UnitKind::kSerial) {  // strides over the summed value's axes
      const View dense = view;
      const ir::Shape& x = shape(op(count() - 1).operands[0]);
      view.strides.assign(x.axes.size(), 0);
      for (size_t i = 0; i < x.axes.size(); ++i) {
        const int64_t axis = dense.shape.find(x.axes[i].name);
        if (axis >= 0) view.strides[i] = dense.strides[static_cast<size_t>(axis)];
      }
    }
    out(defined_.at(v)).store = static_cast<int32_t>(add_access(view, true));
    accesses_.back().view = low_.destination(v);
  }
}

NestOperand MakeNest::operand(ValueId v) {
  const ValueId r = root(v);
  if (const auto made = defined_.find(r); made != defined_.end())
    return {NestOperand::From::kOp, made->second};
  if (low_.is_splat_[static_cast<size_t>(r)] == 0)
    return {NestOperand::From::kAccess, static_cast<int32_t>(load_of_.at(v))};
  const auto [it, fresh] = literal_of_.try_emplace(r, made_.nest.literals.size());
  if (fresh) {
    const View& place = low_.place_[static_cast<size_t>(r)];
    const PlanBuffer& buffer = low_.plan_.buffers[static_cast<size_t>(place.buffer)];
    NestLiteral literal{shape(r).dtype};
    std::memcpy(&literal.bits, low_.plan_.constants[static_cast<size_t>(buffer.index)].data(),
                static_cast<size_t>(ir::dtype_size(literal.dtype)));
    made_.nest.literals.push_back(literal);
  }
  return {NestOperand::From::kLiteral, static_cast<int32_t>(it->second)};
}

void MakeNest::number_ops() {
  made_.nest.ops.resize(unit_.ops.size());
  for (int32_t i = 0; i < count(); ++i)
    for (ValueId v : op(i).results) defined_[v] = i;
  collect_accesses();
  for (int32_t i = 0; i < count(); ++i) {
    const ir::Shape& result = shape(op(i).results[0]);
    // The two are one rounding.
    out(i).kind = op(i).kind == OpKind::use ? OpKind::cast : op(i).kind;
    out(i).dtype = result.dtype;
    out(i).row = is_row(result.rank());
    for (ValueId v : op(i).operands) out(i).operands.push_back(operand(v));
  }
}

// Axes that every access steps through as if they were one become one loop. Axes of size 1 need none.
std::vector<MakeNest::Dim> MakeNest::join_axes(const std::vector<size_t>& axes, bool of_rows) const {
  std::vector<Dim> dims;
  for (size_t axis : axes) {
    const int64_t size = unit_.domain[axis];
    if (size == 1) continue;
    bool joins = !dims.empty();
    for (const Access& a : accesses_) {
      if (a.row && !of_rows) continue;
      if (joins) joins = a.strides[dims.back().axis] == a.strides[axis] * size;
    }
    if (joins)
      dims.back() = {dims.back().size * size, axis};
    else
      dims.push_back({size, axis});
  }
  return dims;
}

// The loops of the nest and the strides of its accesses in them.
void MakeNest::set_loops(std::vector<Dim> outer, const std::vector<Dim>& inner,
                         const std::vector<Dim>& summed) {
  Nest& nest = made_.nest;
  std::vector<Dim> all = outer;
  all.insert(all.end(), inner.begin(), inner.end());
  all.insert(all.end(), summed.begin(), summed.end());
  for (const Dim& d : outer) nest.outer.push_back(nest.outer.empty() ? kGivenSize : d.size);
  if (!inner.empty()) nest.inner = inner[0].size;
  for (const Dim& d : summed) nest.summed.push_back(d.size);
  for (const Access& a : accesses_) {
    NestAccess access{a.view.shape.dtype, a.store, {}};
    for (const Dim& d : all) access.strides.push_back(a.strides[d.axis]);
    nest.accesses.push_back(std::move(access));
    (a.store ? made_.out : made_.in).push_back(a.view);
  }
}

void MakeNest::make_flat() {
  std::vector<size_t> axes(unit_.domain.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  std::vector<Dim> outer = join_axes(axes, true), inner;
  if (!outer.empty()) {
    inner = {outer.back()};
    outer.pop_back();
  }
  const int64_t n = inner.empty() ? 1 : inner[0].size;
  made_.pointwise = true;
  made_.extent = 1;
  for (const Dim& d : outer) made_.extent *= d.size;
  if (outer.empty()) made_.extent = n;
  const int64_t work = low_.options_.target.elements_for_thread;
  made_.grain = outer.empty() ? work : std::max<int64_t>(1, work / std::max<int64_t>(1, n));
  set_loops(outer, inner, {});
  if (outer.empty() && !inner.empty()) made_.nest.inner = kGivenSize;
  NestPass pass;
  for (int32_t i = 0; i < count(); ++i) {
    pass.ops.push_back(i);
    if (out(i).store >= 0) pass.stores.push_back(i);
  }
  made_.nest.passes = {std::move(pass)};
}

// An op runs in the first pass in which its operands exist. A reduction exists after its pass.
void MakeNest::plan_passes() {
  ready_.assign(unit_.ops.size(), 0);
  for (int32_t i = 0; i < count(); ++i) {
    int64_t pass = 0;
    for (const NestOperand& x : out(i).operands)
      if (x.from == NestOperand::From::kOp) pass = std::max(pass, ready_[at(x.index)]);
    const bool reduces = is_row_reduction(out(i).kind);
    ready_[at(i)] = reduces ? pass + 1 : pass;
    if (reduces || (!out(i).row && out(i).store >= 0)) passes_ = std::max(passes_, pass + 1);
  }
  // Save expensive values that several passes need.
  if (made_.nest.row_size() > low_.options_.target.saved_elements) return;
  for (int32_t i = 0; i < count(); ++i) {
    if (is_row_reduction(out(i).kind) || out(i).row || !is_expensive(out(i).kind)) continue;
    int32_t first = -1, uses = 0;
    for (int64_t p = 0; p < passes_; ++p) {
      const std::vector<int32_t> ops = ops_of_pass(p);
      if (std::find(ops.begin(), ops.end(), i) == ops.end()) continue;
      if (first < 0) first = static_cast<int32_t>(p);
      ++uses;
    }
    if (uses > 1) out(i).saved = first;
  }
}

// Elementwise ops of the element level that a pass computes, ascending. Values saved by an earlier pass end
// the search.
std::vector<int32_t> MakeNest::ops_of_pass(int64_t pass) const {
  const std::vector<NestOp>& all = made_.nest.ops;
  std::vector<NestOperand> open;
  for (int32_t i = 0; i < count(); ++i) {
    const NestOp& o = all[at(i)];
    if (is_row_reduction(o.kind)) {
      if (ready_[at(i)] == pass + 1) open.push_back(o.operands[0]);
    } else if (!o.row && o.store >= 0 && ready_[at(i)] == pass) {
      open.push_back({NestOperand::From::kOp, i});
    }
  }
  std::vector<int32_t> ops;
  while (!open.empty()) {
    const NestOperand x = open.back();
    open.pop_back();
    if (x.from != NestOperand::From::kOp || all[at(x.index)].row) continue;
    if (std::find(ops.begin(), ops.end(), x.index) != ops.end()) continue;
    ops.push_back(x.index);
    const NestOp& o = all[at(x.index)];
    if (o.saved >= 0 && o.saved < pass) continue;
    open.insert(open.end(), o.operands.begin(), o.operands.end());
  }
  std::sort(ops.begin(), ops.end());
  return ops;
}

void MakeNest::make_rows() {
  std::vector<size_t> leading, reduced;
  for (size_t i = 0; i < unit_.domain.size(); ++i)
    (static_cast<int64_t>(i) < unit_.split ? leading : reduced).push_back(i);
  const std::vector<Dim> outer = join_axes(leading, true), inner = join_axes(reduced, false);
  OSTRO_CHECK(inner.size() <= 1, "a row of {} loops reached make_nest", inner.size());
  made_.extent = product_of({unit_.domain.begin(), unit_.domain.begin() + unit_.split});
  made_.nest.kind = NestKind::kRows;
  set_loops(outer, inner, {});
  made_.grain = std::max<int64_t>(
      1, low_.options_.target.elements_for_thread / std::max<int64_t>(1, made_.nest.row_size()));
  plan_passes();
  for (int64_t p = 0; p <= passes_; ++p) {
    NestPass pass;
    for (int32_t i = 0; i < count(); ++i) {
      const bool reduces = is_row_reduction(out(i).kind);
      if (!reduces && out(i).row && ready_[at(i)] == p) pass.row_ops.push_back(i);
      if (reduces && ready_[at(i)] == p + 1) pass.reductions.push_back(i);
    }
    if (p < passes_) pass.ops = ops_of_pass(p);
    for (int32_t i : pass.ops)
      if (out(i).store >= 0 && ready_[at(i)] == p) pass.stores.push_back(i);
    made_.nest.passes.push_back(std::move(pass));
  }
}

void MakeNest::make_serial() {
  const Op& sum = op(count() - 1);
  const auto& names = sum.attrs.strs("axes");
  const ir::Shape& x = shape(sum.operands[0]);
  std::vector<size_t> left, reduced;
  for (size_t i = 0; i < x.axes.size(); ++i)
    (std::find(names.begin(), names.end(), x.axes[i].name) == names.end() ? left : reduced).push_back(i);
  std::vector<Dim> outer = join_axes(left, true), inner;
  const std::vector<Dim> summed = join_axes(reduced, true);
  if (!outer.empty()) {
    inner = {outer.back()};
    outer.pop_back();
  }
  const int64_t n = inner.empty() ? 1 : inner[0].size;
  int64_t rows = 1, steps = 1;
  for (const Dim& d : outer) rows *= d.size;
  for (const Dim& d : summed) steps *= d.size;
  const Target& target = low_.options_.target;
  int64_t tile = target.most_summed;
  while (tile > target.least_summed && rows * ((n + tile - 1) / tile) < target.summed_pieces) tile /= 2;
  made_.extent = rows * ((n + tile - 1) / tile);
  made_.grain = std::max<int64_t>(
      1, target.elements_for_thread / std::max<int64_t>(1, tile * std::max<int64_t>(1, steps)));
  made_.nest.kind = NestKind::kSerial;
  made_.nest.tile = tile;
  set_loops(outer, inner, summed);
  NestPass pass;
  for (int32_t i = 0; i + 1 < count(); ++i) pass.ops.push_back(i);
  pass.reductions = {count() - 1};
  made_.nest.passes = {std::move(pass)};
}

PlacedNest MakeNest::run() {
  number_ops();
  if (unit_.kind == UnitKind::kSerial)
    make_serial();
  else if (unit_.split >= 0)
    make_rows();
  else
    make_flat();
  return std::move(made_);
}

}  // namespace ostro::compile
