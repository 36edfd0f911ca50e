#include "ostro/compile/lower/emit.h"

#include <algorithm>

#include <fmt/format.h>

#include "ostro/compile/fuse/c_expr.h"
#include "ostro/ir/program/op_table.h"

namespace ostro::compile {

using ir::DType;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

namespace {

// What stands before a loop of n turns within one over rows (prelude.cc). gcc writes out up to 16 turns.
const char* each_of(int64_t n) { return n > 1 && n <= 16 ? "EACH_OF_FEW" : "EACH"; }

constexpr int64_t kKeptElements = 8192;  // of a row array on the stack
constexpr int64_t kWork = 16384;         // elements worth a thread

std::string term(const std::string& index, int64_t stride) {
  if (stride == 1) return index;
  return fmt::format("{} * {}", index, stride);
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

}  // namespace

bool GroupEmitter::is_row(int64_t rank) const {
  return unit_.split >= 0 && rank == unit_.split && rank != static_cast<int64_t>(unit_.domain.size());
}

bool GroupEmitter::reduces(const Op& o) const {
  return o.kind == OpKind::sum || o.kind == OpKind::reduce_max || o.kind == OpKind::reduce_min;
}

// Numbers values within the unit, so that equal units have equal text.
int64_t GroupEmitter::id(ValueId v) const {
  return std::find(unit_.ops.begin(), unit_.ops.end(), defined_.at(v)) - unit_.ops.begin();
}

size_t GroupEmitter::add_access(const View& view, bool store) {
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

void GroupEmitter::collect_accesses() {
  const bool serial = unit_.kind == UnitKind::kSerial;
  for (int32_t i : unit_.ops)
    for (ValueId v : op(i).results) defined_[v] = i;
  for (int32_t i : unit_.ops)
    for (ValueId v : op(i).operands) {
      const ValueId r = root(v);
      if (in_unit(r) || low_.is_splat_[static_cast<size_t>(r)] != 0 || load_of_.count(v) != 0) continue;
      load_of_[v] = add_access(low_.located(v), false);
    }
  for (ValueId v : unit_.stored) {
    View view = low_.destination(v);
    if (serial) {  // strides over the summed value's axes
      const View out = view;
      const ir::Shape& x = shape(op(unit_.ops.back()).operands[0]);
      view.strides.assign(x.axes.size(), 0);
      for (size_t i = 0; i < x.axes.size(); ++i) {
        const int64_t at = out.shape.find(x.axes[i].name);
        if (at >= 0) view.strides[i] = out.strides[static_cast<size_t>(at)];
      }
    }
    store_of_[v] = add_access(view, true);
    accesses_.back().view = low_.destination(v);
  }
}

std::vector<GroupEmitter::Dim> GroupEmitter::join_axes(const std::vector<size_t>& axes, bool of_rows) const {
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

std::string GroupEmitter::literal(ValueId r) {
  const auto it = literals_.find(r);
  if (it != literals_.end()) return it->second;
  const View& place = low_.place_[static_cast<size_t>(r)];
  const PlanBuffer& buffer = low_.plan_.buffers[static_cast<size_t>(place.buffer)];
  const std::string text =
      literal_expr(shape(r).dtype, low_.plan_.constants[static_cast<size_t>(buffer.index)].data());
  const std::string name = fmt::format("c{}", literals_.size());
  literal_text_ += fmt::format("  const {} {} = {};\n", register_type(shape(r).dtype), name, text);
  return literals_[r] = name;
}

// The register of an operand; what must be loaded first goes to `text`, or to `hoisted` when it is the same
// for the whole inner loop.
std::string GroupEmitter::operand(ValueId v, std::string& text, std::string& hoisted) {
  const ValueId r = root(v);
  if (low_.is_splat_[static_cast<size_t>(r)] != 0) return literal(r);
  const auto named = names_.find(r);
  if (named != names_.end()) return named->second;
  const size_t access = load_of_.at(v);
  const auto loaded = loads_.find(access);
  if (loaded != loads_.end()) return loaded->second;
  const Access& a = accesses_[access];
  const DType d = a.view.shape.dtype;
  const int64_t stride = a.row || inner_.empty() ? 0 : a.strides[inner_[0].axis];
  const std::string name = fmt::format("x{}", access);
  const std::string element =
      stride == 0 ? fmt::format("q{}[0]", access) : fmt::format("q{}[{}]", access, term("j", stride));
  (stride == 0 ? hoisted : text) +=
      fmt::format("    const {} {} = {};\n", register_type(d), name, load_expr(d, element));
  return loads_[access] = name;
}

void GroupEmitter::compute(const Op& o, std::string& text, std::string& hoisted) {
  std::vector<DType> from;
  std::vector<std::string> args;
  for (ValueId v : o.operands) {
    from.push_back(shape(v).dtype);
    args.push_back(operand(v, text, hoisted));
  }
  const ValueId v = o.results[0];
  const std::string name = fmt::format("v{}", names_.size());
  std::string unique = name;
  for (const auto& [value, used] : names_)
    if (used == unique) unique = fmt::format("v{}_{}", names_.size(), id(v));
  text += fmt::format("    const {} {} = {};\n", register_type(shape(v).dtype), unique,
                      op_expr(o.kind, from, shape(v).dtype, args));
  names_[v] = unique;
}

void GroupEmitter::store(ValueId v, const std::string& index, std::string& text) const {
  const size_t access = store_of_.at(v);
  text += fmt::format("    q{}[{}] = {};\n", access, index, store_expr(shape(v).dtype, names_.at(v)));
}

// Computes the indices of the outer loops from the running number `from`, and from them the pointer of each
// access.
std::string GroupEmitter::pointer_text(const std::vector<Dim>& outer, const char* from) const {
  std::string text;
  if (outer.size() > 1) text += fmt::format("    i64 rest = {};\n", from);
  for (size_t i = outer.size(); i-- > 0;) {
    if (outer.size() == 1) {
      text += fmt::format("    const i64 i0 = {};\n", from);
    } else if (i == 0) {
      text += "    const i64 i0 = rest;\n";
    } else {
      text +=
          fmt::format("    const i64 i{} = rest % {};\n    rest /= {};\n", i, outer[i].size, outer[i].size);
    }
  }
  for (size_t k = 0; k < accesses_.size(); ++k) {
    const Access& a = accesses_[k];
    const char* type = memory_type(a.view.shape.dtype);
    std::string at = fmt::format("p{}", k);
    for (size_t i = 0; i < outer.size(); ++i)
      if (a.strides[outer[i].axis] != 0)
        at += fmt::format(" + {}", term(fmt::format("i{}", i), a.strides[outer[i].axis]));
    text += fmt::format("    {}{}* const q{} = {};\n", a.store ? "" : "const ", type, k, at);
  }
  return text;
}

void GroupEmitter::flat_function() {
  std::vector<size_t> axes(unit_.domain.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  std::vector<Dim> dims = join_axes(axes, true);
  if (!dims.empty()) {
    inner_ = {dims.back()};
    dims.pop_back();
  }
  std::string text, hoisted;
  for (int32_t i : unit_.ops) compute(op(i), text, hoisted);
  const auto index = [&](ValueId v) {
    return inner_.empty() ? std::string("0") : term("j", accesses_[store_of_.at(v)].strides[inner_[0].axis]);
  };
  for (ValueId v : unit_.stored) store(v, index(v), text);
  const int64_t n = inner_.empty() ? 1 : inner_[0].size;
  if (dims.empty()) {
    std::string body = pointer_text({}, "") + hoisted;
    body += "    EACH\n    for (i64 j = begin; j < end; ++j) {\n" + text + "    }\n";
    finish(body, n, kWork, true);
    return;
  }
  int64_t rows = 1;
  for (const Dim& d : dims) rows *= d.size;
  std::string body = "  for (i64 row = begin; row < end; ++row) {\n" + pointer_text(dims, "row") + hoisted;
  body += fmt::format("    {}\n    for (i64 j = 0; j < {}; ++j) {{\n", each_of(n), n) + text + "    }\n  }\n";
  finish(body, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, n)), true);
}

void GroupEmitter::plan_passes() {
  for (int32_t i : unit_.ops) {
    const Op& o = op(i);
    int64_t pass = 0;
    for (ValueId v : o.operands) {
      const auto it = ready_.find(root(v));
      if (it != ready_.end()) pass = std::max(pass, it->second);
    }
    const ValueId out = o.results[0];
    const bool row = is_row(shape(out).rank());
    ready_[out] = reduces(o) ? pass + 1 : pass;
    if (reduces(o) || (!row && store_of_.count(out) != 0)) passes_ = std::max(passes_, pass + 1);
  }
  // Keep expensive values that several passes need.
  const int64_t n = inner_.empty() ? 1 : inner_[0].size;
  if (n > kKeptElements) return;
  for (int32_t i : unit_.ops) {
    const Op& o = op(i);
    if (reduces(o) || is_row(shape(o.results[0]).rank()) || !is_expensive(o.kind)) continue;
    int64_t first = -1, uses = 0;
    for (int64_t p = 0; p < passes_; ++p) {
      const std::vector<int32_t> ops = ops_of_pass(p);
      if (std::find(ops.begin(), ops.end(), i) == ops.end()) continue;
      if (first < 0) first = p;
      ++uses;
    }
    if (uses > 1) kept_[o.results[0]] = first;
  }
}

// Elementwise ops of the element level that a pass computes, in order. Values kept by an earlier pass end the
// search.
std::vector<int32_t> GroupEmitter::ops_of_pass(int64_t pass) const {
  std::vector<ValueId> open;
  for (int32_t i : unit_.ops) {
    const Op& o = op(i);
    const ValueId out = o.results[0];
    if (reduces(o)) {
      if (ready_.at(out) == pass + 1) open.push_back(root(o.operands[0]));
    } else if (!is_row(shape(out).rank()) && store_of_.count(out) != 0 && ready_.at(out) == pass) {
      open.push_back(out);
    }
  }
  std::vector<int32_t> ops;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    const auto it = defined_.find(v);
    if (it == defined_.end() || is_row(shape(v).rank())) continue;
    if (std::find(ops.begin(), ops.end(), it->second) != ops.end()) continue;
    ops.push_back(it->second);
    const auto kept = kept_.find(v);
    if (kept != kept_.end() && kept->second < pass) continue;
    for (ValueId x : op(it->second).operands) open.push_back(root(x));
  }
  std::sort(ops.begin(), ops.end());
  return ops;
}

std::string GroupEmitter::pass_text(int64_t pass) {
  const std::vector<int32_t> ops = ops_of_pass(pass);
  std::vector<const Op*> reductions;
  for (int32_t i : unit_.ops)
    if (reduces(op(i)) && ready_.at(op(i).results[0]) == pass + 1) reductions.push_back(&op(i));
  const auto row_names = names_;
  const auto row_loads = loads_;
  std::string text, hoisted;
  for (int32_t i : ops) {
    const Op& o = op(i);
    const ValueId v = o.results[0];
    const auto kept = kept_.find(v);
    if (kept != kept_.end() && kept->second < pass) {
      const std::string name = fmt::format("r{}", id(v));
      text += fmt::format("    const {} {} = kept{}[j];\n", register_type(shape(v).dtype), name, id(v));
      names_[v] = name;
      continue;
    }
    compute(o, text, hoisted);
    if (kept != kept_.end()) text += fmt::format("    kept{}[j] = {};\n", id(v), names_.at(v));
    if (store_of_.count(v) != 0 && ready_.at(v) == pass)
      store(v, inner_.empty() ? "0" : term("j", accesses_[store_of_.at(v)].strides[inner_[0].axis]), text);
  }
  std::string before, after;
  for (const Op* o : reductions) {
    const ValueId v = o->results[0];
    const DType acc = shape(v).dtype;
    const char* type = register_type(acc);
    const char* bits = acc == DType::f64 ? "64" : "32";
    const std::string x = operand(o->operands[0], text, hoisted);
    const std::string lanes = fmt::format("a{}", id(v));
    if (o->kind == OpKind::sum) {
      before += fmt::format("    {} {}[64] = {{0}};\n", type, lanes);
      text += fmt::format("    {0}[l] = {0}[l] + ({1}){2};\n", lanes, type, x);
      after += fmt::format("    const {} v{}r = sum_stripes{}({});\n", type, id(v), bits, lanes);
    } else {
      const char* f = o->kind == OpKind::reduce_max ? "max" : "min";
      before += fmt::format("    {} {}[64];\n    for (int l = 0; l < 64; ++l) {}[l] = {}__builtin_inf();\n",
                            type, lanes, lanes, o->kind == OpKind::reduce_max ? "-" : "");
      text += fmt::format("    {0}[l] = {1}{2}({0}[l], {3});\n", lanes, f, bits, x);
      after += fmt::format(
          "    {0} v{1}r = {2}[0];\n    for (int l = 1; l < 64; ++l) v{1}r = {3}{4}(v{1}r, {2}[l]);\n", type,
          id(v), lanes, f, bits);
    }
  }
  names_ = row_names;
  loads_ = row_loads;
  for (const Op* o : reductions) names_[o->results[0]] = fmt::format("v{}r", id(o->results[0]));
  if (text.empty()) return before + after;
  const int64_t n = inner_.empty() ? 1 : inner_[0].size;
  std::string loops;
  if (reductions.empty()) {
    loops = fmt::format("    {}\n    for (i64 j = 0; j < {}; ++j) {{\n{}    }}\n", each_of(n), n, text);
  } else {
    if (n >= 64)
      loops += fmt::format(
          "    for (i64 j0 = 0; j0 < {}; j0 += 64) {{\n    EACH\n    for (int l = 0; l < 64; ++l) {{\n"
          "    const i64 j = j0 + l;\n    (void)j;\n{}    }}\n    }}\n",
          n / 64 * 64, text);
    if (n % 64 != 0)
      loops += fmt::format(
          "    {}\n    for (int l = 0; l < {}; ++l) {{\n    const i64 j = {} + l;\n    (void)j;\n{}    "
          "}}\n",
          each_of(n % 64), n % 64, n / 64 * 64, text);
  }
  // The braces end the scope of the hoisted values; the reductions, declared before, stay visible.
  return before + "    {\n" + hoisted + loops + "    }\n" + after;
}

void GroupEmitter::row_function() {
  std::vector<size_t> leading, reduced;
  for (size_t i = 0; i < unit_.domain.size(); ++i)
    (static_cast<int64_t>(i) < unit_.split ? leading : reduced).push_back(i);
  const std::vector<Dim> outer = join_axes(leading, true);
  inner_ = join_axes(reduced, false);
  OSTRO_CHECK(inner_.size() <= 1, "a row of {} loops reached the emitter", inner_.size());
  const int64_t n =
      inner_.empty() ? product({unit_.domain.begin() + unit_.split, unit_.domain.end()}) : inner_[0].size;
  plan_passes();
  std::string text = pointer_text(outer, "row");
  for (int64_t p = 0; p <= passes_; ++p) {
    // Row values that can be computed after the passes so far.
    for (int32_t i : unit_.ops) {
      const Op& o = op(i);
      if (reduces(o) || !is_row(shape(o.results[0]).rank()) || ready_.at(o.results[0]) != p) continue;
      std::string hoisted, statements;
      compute(o, statements, hoisted);
      text += hoisted + statements;
    }
    if (p < passes_) text += pass_text(p);
  }
  for (ValueId v : unit_.stored)
    if (is_row(shape(v).rank())) store(v, "0", text);
  std::string body;
  for (const auto& [v, pass] : kept_)
    body += fmt::format("  {} kept{}[{}];\n", register_type(shape(v).dtype), id(v), std::max<int64_t>(1, n));
  body += "  for (i64 row = begin; row < end; ++row) {\n" + text + "  }\n";
  int64_t rows = 1;
  for (const Dim& d : outer) rows *= d.size;
  finish(body, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, n)));
}

void GroupEmitter::serial_function() {
  const Op& sum = op(unit_.ops.back());
  const ValueId v = sum.results[0];
  const auto& names = sum.attrs.strs("axes");
  const ir::Shape& x = shape(sum.operands[0]);
  std::vector<size_t> kept, reduced;
  for (size_t i = 0; i < x.axes.size(); ++i)
    (std::find(names.begin(), names.end(), x.axes[i].name) == names.end() ? kept : reduced).push_back(i);
  std::vector<Dim> outer = join_axes(kept, true);
  const std::vector<Dim> loops = join_axes(reduced, true);
  if (!outer.empty()) {
    inner_ = {outer.back()};
    outer.pop_back();
  }
  const int64_t n = inner_.empty() ? 1 : inner_[0].size;
  int64_t rows = 1, steps = 1;
  for (const Dim& d : outer) rows *= d.size;
  for (const Dim& d : loops) steps *= d.size;
  for (size_t axis : reduced)
    if (unit_.domain[axis] == 0) steps = 0;
  int64_t tile = 256;
  while (tile > 64 && rows * ((n + tile - 1) / tile) < 8) tile /= 2;
  const int64_t tiles = (n + tile - 1) / tile;

  std::string text, hoisted;
  for (size_t i = 0; i + 1 < unit_.ops.size(); ++i) compute(op(unit_.ops[i]), text, hoisted);
  const char* type = register_type(shape(v).dtype);
  const std::string element = operand(sum.operands[0], text, hoisted);
  text += fmt::format("    acc[t] = acc[t] + ({}){};\n", type, element);

  std::string body = "  for (i64 piece = begin; piece < end; ++piece) {\n";
  body += fmt::format("    const i64 row = piece / {}, first = piece % {} * {};\n    (void)row;\n", tiles,
                      tiles, tile);
  body += fmt::format("    const i64 m = {} - first < {} ? {} - first : {};\n", n, tile, n, tile);
  std::string pointers = pointer_text(outer, "row");
  // Inside the loops over the sum the pointers move on.
  size_t at = 0;
  while ((at = pointers.find("* const q", at)) != std::string::npos)
    pointers.replace(at, 9, "* const s"), at += 9;
  body += pointers + fmt::format("    {} acc[{}] = {{0}};\n", type, tile);
  if (steps > 0) {
    for (size_t i = 0; i < loops.size(); ++i)
      body += fmt::format("    for (i64 r{0} = 0; r{0} < {1}; ++r{0})", i, loops[i].size) +
              (i + 1 < loops.size() ? "\n" : " {\n");
    if (loops.empty()) body += "    {\n";
    for (size_t k = 0; k < accesses_.size(); ++k) {
      if (accesses_[k].store) continue;
      std::string q = fmt::format("s{}", k);
      for (size_t i = 0; i < loops.size(); ++i)
        if (accesses_[k].strides[loops[i].axis] != 0)
          q += fmt::format(" + {}", term(fmt::format("r{}", i), accesses_[k].strides[loops[i].axis]));
      body +=
          fmt::format("    const {}* const q{} = {};\n", memory_type(accesses_[k].view.shape.dtype), k, q);
    }
    body += hoisted +
            "    EACH\n    for (i64 t = 0; t < m; ++t) {\n    const i64 j = first + t;\n    (void)j;\n" +
            text + "    }\n    }\n";
  }
  const size_t out = store_of_.at(v);
  const int64_t stride = inner_.empty() ? 0 : accesses_[out].strides[inner_[0].axis];
  body += fmt::format("    for (i64 t = 0; t < m; ++t) s{}[{}] = acc[t];\n  }}\n", out,
                      stride == 0 ? "0" : term("(first + t)", stride));
  finish(body, rows * tiles,
         std::max<int64_t>(1, kWork / std::max<int64_t>(1, tile * std::max<int64_t>(1, steps))));
}

void GroupEmitter::finish(const std::string& statements, int64_t extent, int64_t grain, bool pointwise) {
  std::string body = "(char* const* buf, i64 begin, i64 end) {\n" + literal_text_;
  Step step;
  for (size_t k = 0; k < accesses_.size(); ++k) {
    const Access& a = accesses_[k];
    const char* type = memory_type(a.view.shape.dtype);
    body += fmt::format("  {0}{1}* const p{2} = ({0}{1}*)buf[{2}];\n", a.store ? "" : "const ", type, k);
    (a.store ? step.out : step.in).push_back(a.view);
    step.bytes += static_cast<double>(a.view.touched_bytes());
  }
  body += statements + "}\n";
  step.kind = StepKind::kKernel;
  step.kernel = low_.kernels_.add(body);
  step.extent = extent;
  step.grain = grain;
  step.pointwise = pointwise;
  step.scope = op(unit_.ops.back()).scope;
  for (int32_t i : unit_.ops) {
    std::vector<ir::Shape> in, out;
    for (ValueId v : op(i).operands) in.push_back(shape(v));
    for (ValueId v : op(i).results) out.push_back(shape(v));
    step.flops += ir::op_cost(op(i), in, out).flops;
    step.ops.push_back({op(i).kind, op(i).scope});
  }
  low_.plan_.steps.push_back(std::move(step));
}

void GroupEmitter::emit() {
  // Results without elements need no kernel, but their places must exist.
  int64_t elements = 0;
  for (ValueId v : unit_.stored) {
    low_.destination(v);
    elements += shape(v).count();
  }
  if (elements == 0) return;
  collect_accesses();
  if (unit_.kind == UnitKind::kSerial)
    serial_function();
  else if (unit_.split >= 0)
    row_function();
  else
    flat_function();
}

}  // namespace ostro::compile
