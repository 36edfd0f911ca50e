// remat: rematerialisation. A residual is a value that a forward scan stacks only for its reversed scan. This
// pass drops residuals: the reversed scan computes them again, from the operands of the forward body and from
// the values that are still stacked. The same ops run on the same values, so no bit changes.
//
// CompileOptions::remat says what is still stacked. "keep": every residual. "none": those that cost more to
// compute again than to write and read (a minimal cut, residual_cut.h). "save:a,b": the loop's carries and
// the values labelled a or b. "all": the carries only.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "ostro/compile/passes/pass.h"
#include "ostro/compile/passes/residual_cut.h"
#include "ostro/compile/passes/rewrite.h"

namespace ostro::compile {
namespace {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

// One forward scan and the reversed scan that reads its stacked results.
class Pair {
 public:
  // `kept` holds values of the forward body.
  Pair(Block& outer, Op& forward, Op& backward, const std::set<ValueId>& kept)
      : outer_(outer),
        forward_(forward),
        backward_(backward),
        kept_(kept),
        def_(definitions(forward.regions[0])),
        position_(forward.regions[0].values.size(), -1) {
    for (size_t i = 0; i < body().params.size(); ++i)
      position_[static_cast<size_t>(body().params[i])] = static_cast<int64_t>(i);
  }

  // Replaces the backward scan's operand `operand`, result number `result` of the forward scan.
  void recompute(size_t operand, size_t result) {
    const ValueId inside = body().results[result];
    if (is_kept(inside)) return;
    const ValueId old = target().params[operand];
    const ValueId fresh = value(inside);
    for (Op& op : target().ops)
      for (ValueId& v : op.operands)
        if (v == old) v = fresh;
    for (ValueId& v : target().results)
      if (v == old) v = fresh;
    dropped_.push_back(old);
  }

  // Removes the operands that recompute() replaced, and puts the cloned ops into the backward body.
  void finish() {
    for (ValueId old : dropped_) {
      const auto at =
          std::find(target().params.begin(), target().params.end(), old) - target().params.begin();
      target().params.erase(target().params.begin() + at);
      backward_.operands.erase(backward_.operands.begin() + at);
    }
    // Each cloned op goes just before the first op that needs it. Its operands are kept until then anyway,
    // and an earlier result would only take memory.
    const std::vector<Op> rest = std::move(target().ops);
    target().ops.clear();
    std::map<ValueId, size_t> maker;
    for (size_t i = 0; i < clones_.size(); ++i)
      for (ValueId r : clones_[i].results) maker[r] = i;
    std::vector<char> done(clones_.size(), 0);
    const auto make = [&](auto&& self, const std::vector<ValueId>& values) -> void {
      for (ValueId v : values) {
        const auto at = maker.find(v);
        if (at == maker.end() || done[at->second] != 0) continue;
        done[at->second] = 1;
        self(self, clones_[at->second].operands);
        target().ops.push_back(clones_[at->second]);
      }
    };
    for (const Op& op : rest) {
      make(make, op.operands);
      target().ops.push_back(op);
    }
    make(make, target().results);
  }

 private:
  Block& body() { return forward_.regions[0]; }
  Block& target() { return backward_.regions[0]; }
  int64_t consts() const { return forward_.attrs.i64("consts"); }
  int64_t carries() const { return forward_.attrs.i64("carries"); }

  bool is_kept(ValueId v) const { return kept_.count(v) != 0; }

  // The value in the backward body that equals v of the forward body: a stacked value, when v is kept; an
  // operand of the forward scan, when v is a parameter; otherwise a clone of the op that makes v, on such
  // values.
  ValueId value(ValueId v) {
    const auto known = map_.find(v);
    if (known != map_.end()) return known->second;
    const int64_t at = position_[static_cast<size_t>(v)];
    if (is_kept(v)) return map_[v] = add_stacked(stacked(v), v);
    if (at >= 0 && at < consts()) return map_[v] = add_const(forward_.operands[static_cast<size_t>(at)], v);
    if (at >= 0) return map_[v] = add_stacked(forward_.operands[static_cast<size_t>(at)], v);
    Op copy = body().ops[static_cast<size_t>(def_[static_cast<size_t>(v)])];
    for (ValueId& x : copy.operands) x = value(x);
    for (ValueId& r : copy.results) {
      const ValueId fresh = target().add_value(body().shape(r));
      map_[r] = fresh;
      r = fresh;
    }
    clones_.push_back(std::move(copy));
    return map_.at(v);
  }

  // The outer value that stacks v over the forward scan.
  ValueId stacked(ValueId v) {
    for (size_t i = static_cast<size_t>(carries()); i < body().results.size(); ++i)
      if (body().results[i] == v) return forward_.results[i];
    ir::Shape shape = body().shape(v);
    shape.axes.insert(shape.axes.begin(), {forward_.attrs.str("axis"), forward_.attrs.i64("length")});
    body().results.push_back(v);
    forward_.results.push_back(outer_.add_value(std::move(shape)));
    return forward_.results.back();
  }

  ValueId add_stacked(ValueId outer, ValueId v) {
    backward_.operands.push_back(outer);
    return target().add_param(body().shape(v));
  }

  ValueId add_const(ValueId outer, ValueId v) {
    const ValueId param = target().add_value(body().shape(v));
    target().params.insert(target().params.begin(), param);
    backward_.operands.insert(backward_.operands.begin(), outer);
    backward_.attrs.set("consts", backward_.attrs.i64("consts") + 1);
    return param;
  }

  Block& outer_;
  Op& forward_;
  Op& backward_;
  const std::set<ValueId>& kept_;
  std::vector<int32_t> def_;
  std::vector<int64_t> position_;  // of a forward body's value among its parameters, or -1
  std::map<ValueId, ValueId> map_;
  std::vector<Op> clones_;
  std::vector<ValueId> dropped_;
};

// A scan's carries and all results of the ops that have one of the labels. All results, because with
// attention's output alone, attention would have to run again to give its log-sum-exp.
std::set<ValueId> labelled(const Op& scan, const std::set<std::string>& labels) {
  const Block& body = scan.regions[0];
  const auto first = body.params.begin() + scan.attrs.i64("consts");
  std::set<ValueId> kept(first, first + scan.attrs.i64("carries"));
  for (const Op& op : body.ops)
    if (labels.count(op.label) != 0) kept.insert(op.results.begin(), op.results.end());
  return kept;
}

// For every reversed scan: finds its residuals, which a forward scan of the same axis and length stacks and
// nothing else reads; decides which values of the forward body are kept; and replaces the other residuals.
// `all`: the kept values are the carries and those labelled as `saved`; else a minimal cut chooses.
void remat_block(Block& block, bool all, const std::set<std::string>& saved) {
  for (size_t j = 0; j < block.ops.size(); ++j) {
    Op& backward = block.ops[j];
    if (backward.kind != OpKind::scan || backward.attrs.i64("reverse", 0) == 0) continue;
    const std::vector<int32_t> def = definitions(block);
    const std::vector<int32_t> uses = use_counts(block);
    // By forward scan: (parameter of the backward body, result number).
    std::map<int32_t, std::vector<std::pair<ValueId, size_t>>> residuals;
    const auto first = static_cast<size_t>(backward.attrs.i64("consts") + backward.attrs.i64("carries"));
    for (size_t i = first; i < backward.operands.size(); ++i) {
      const ValueId u = backward.operands[i];
      const int32_t d = def[static_cast<size_t>(u)];
      if (d < 0 || uses[static_cast<size_t>(u)] != 1) continue;
      const Op& forward = block.ops[static_cast<size_t>(d)];
      if (forward.kind != OpKind::scan || forward.attrs.i64("reverse", 0) != 0 ||
          forward.attrs.i64("length") != backward.attrs.i64("length") ||
          forward.attrs.str("axis") != backward.attrs.str("axis"))
        continue;
      const auto at = static_cast<size_t>(std::find(forward.results.begin(), forward.results.end(), u) -
                                          forward.results.begin());
      if (static_cast<int64_t>(at) >= forward.attrs.i64("carries"))
        residuals[d].emplace_back(backward.regions[0].params[i], at);
    }
    for (const auto& [d, list] : residuals) {
      const Op& forward = block.ops[static_cast<size_t>(d)];
      std::vector<ValueId> inside;
      for (const auto& [param, result] : list) inside.push_back(forward.regions[0].results[result]);
      const std::set<ValueId> kept =
          all ? labelled(forward, saved)
              : residual_cut(forward.regions[0], static_cast<size_t>(forward.attrs.i64("consts")),
                             static_cast<size_t>(forward.attrs.i64("carries")), inside);
      Pair pair(block, block.ops[static_cast<size_t>(d)], backward, kept);
      for (const auto& [param, result] : list) {
        const auto& params = backward.regions[0].params;
        pair.recompute(static_cast<size_t>(std::find(params.begin(), params.end(), param) - params.begin()),
                       result);
      }
      pair.finish();
    }
  }
}

}  // namespace

void remat(ir::Program& program, const runtime::CompileOptions& options) {
  if (options.remat == "keep") return;
  std::set<std::string> saved;
  if (options.remat.starts_with("save:")) {
    std::istringstream labels(options.remat.substr(5));
    for (std::string label; std::getline(labels, label, ',');) saved.insert(label);
  }
  saved.erase("");
  remat_block(program.body, options.remat != "none", saved);
}

}  // namespace ostro::compile
