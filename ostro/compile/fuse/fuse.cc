#include "ostro/compile/fuse/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/compile/plan/plan.h"
#include "ostro/ir/program/op.h"

namespace ostro::compile {
namespace {

using ir::Op;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

constexpr size_t kMaxOps = 160;
constexpr size_t kMaxLoads = kMaxKernelPointers - kMaxOps;  // every op may be stored
constexpr size_t kMaxInlined = 48;

std::vector<int64_t> sizes_of(const Shape& s) {
  std::vector<int64_t> sizes;
  for (const ir::Axis& a : s.axes) sizes.push_back(a.size);
  return sizes;
}

// Whether other workers take part in the op.
bool communicates(const Op& o) {
  if (ir::is_collective(o.kind)) return o.kind != OpKind::shard_slice;
  return std::any_of(o.regions.begin(), o.regions.end(), [](const ir::Block& region) {
    return std::any_of(region.ops.begin(), region.ops.end(), communicates);
  });
}

class Fusion {
 public:
  explicit Fusion(const FusionInput& in) : in_(in), ops_(in.block.ops) {
    def_.assign(in.block.values.size(), -1);
    for (size_t i = 0; i < ops_.size(); ++i)
      for (ValueId v : ops_[i].results) def_[static_cast<size_t>(v)] = static_cast<int32_t>(i);
    reads_.resize(ops_.size());
    users_.resize(ops_.size());
    units_.resize(ops_.size());
    unit_of_.resize(ops_.size());
    readers_.resize(in_.block.values.size());
    note_readers();
    for (size_t i = 0; i < ops_.size(); ++i) start_unit(static_cast<int32_t>(i));
    keep_collectives_in_order();
  }

  std::vector<Unit> run() {
    if (in_.fuse)
      for (size_t i = 0; i < ops_.size(); ++i) {
        if (unit(static_cast<int32_t>(i)).kind != UnitKind::kGroup) continue;
        for (ValueId r : reads_[i]) {
          const int32_t d = def_[static_cast<size_t>(r)];
          if (d >= 0) try_merge(unit_of_[static_cast<size_t>(d)], unit_of_[i]);
        }
      }
    if (in_.reasons) note_barriers();
    return ordered();
  }

 private:
  ValueId root(ValueId v) const { return in_.relative[static_cast<size_t>(v)].buffer; }
  Unit& unit(int32_t op) { return units_[static_cast<size_t>(unit_of_[static_cast<size_t>(op)])]; }
  const Op& op(int32_t i) const { return ops_[static_cast<size_t>(i)]; }
  const Shape& shape(ValueId v) const { return in_.block.shape(v); }

  bool is_reduction(OpKind k) const {
    return k == OpKind::sum || k == OpKind::reduce_max || k == OpKind::reduce_min;
  }

  // Reduced axes are the operand's last ones, in f32 (or f64), without leaves.
  bool is_row_reduction(const Op& o) const {
    if (!is_reduction(o.kind)) return false;
    const Shape &x = shape(o.operands[0]), &out = shape(o.results[0]);
    if (!ir::is_floating(x.dtype)) return false;
    const auto& axes = o.attrs.strs("axes");
    if (axes.empty()) return false;
    for (size_t i = 0; i < out.axes.size(); ++i)
      if (out.axes[i] != x.axes[i]) return false;
    if (o.kind != OpKind::sum) return true;
    return o.attrs.str("order", "striped") == "striped" && !cut(axes);
  }
  bool is_serial_sum(const Op& o) const {
    return o.kind == OpKind::sum && ir::is_floating(shape(o.operands[0]).dtype) &&
           o.attrs.str("order", "striped") == "serial" && !cut(o.attrs.strs("axes"));
  }
  bool cut(const std::vector<std::string>& axes) const {
    return std::any_of(axes.begin(), axes.end(), [&](const auto& a) { return in_.leaves.count(a) > 1; });
  }

  void start_unit(int32_t i) {
    const auto n = static_cast<size_t>(i);
    unit_of_[n] = i;
    Unit& u = units_[n];
    u.ops = {i};
    if (in_.is_view[n] != 0) {
      u.ops.clear();
      return;
    }
    const Op& o = op(i);
    if (is_serial_sum(o)) {
      u.kind = UnitKind::kSerial;
      u.domain = sizes_of(shape(o.operands[0]));
      if (in_.fuse) inline_producers(u);
      set_reads(i, outside_reads(u));
      return;
    }
    std::set<ValueId> reads;
    for (ValueId v : o.operands) reads.insert(root(v));
    set_reads(i, reads);
    if (ir::is_elementwise(o.kind)) {
      u.kind = UnitKind::kGroup;
      u.domain = sizes_of(shape(o.results[0]));
    } else if (is_row_reduction(o)) {
      Unit g = u;
      g.kind = UnitKind::kGroup;
      g.domain = sizes_of(shape(o.operands[0]));
      g.split = shape(o.results[0]).rank();
      if (check(g) == Refusal::kNone) u = g;
    }
  }

  // Every worker must run its collectives in the same order. What is fused with what, and so when a unit is
  // ready, may differ between workers whose parts have other sizes; the order of the program does not. So
  // each of them counts as a user of the one before.
  void keep_collectives_in_order() {
    int32_t before = -1;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!communicates(ops_[i])) continue;
      if (before >= 0) users_[static_cast<size_t>(before)].push_back(static_cast<int32_t>(i));
      before = static_cast<int32_t>(i);
    }
  }

  void set_reads(int32_t i, const std::set<ValueId>& reads) {
    for (ValueId r : reads) {
      reads_[static_cast<size_t>(i)].push_back(r);
      const int32_t d = def_[static_cast<size_t>(r)];
      if (d >= 0) users_[static_cast<size_t>(d)].push_back(i);
    }
  }

  template <typename Ops>
  std::set<ValueId> results_of(const Ops& ops) const {
    std::set<ValueId> results;
    for (int32_t i : ops) results.insert(op(i).results.begin(), op(i).results.end());
    return results;
  }

  // Roots that a unit's ops read and none of them defines.
  std::set<ValueId> outside_reads(const Unit& u) const {
    const std::set<ValueId> own = results_of(u.ops);
    std::set<ValueId> reads;
    for (int32_t i : u.ops)
      for (ValueId v : op(i).operands)
        if (own.count(root(v)) == 0) reads.insert(root(v));
    return reads;
  }

  // The view has the very elements of its root, in order.
  bool same_position(ValueId v) const {
    const View& view = in_.relative[static_cast<size_t>(v)];
    const Shape& r = shape(view.buffer);
    return view.offset == 0 && view.shape.rank() == r.rank() && sizes_of(view.shape) == sizes_of(r) &&
           view.dense();
  }

  // The readers of each value: by root, the ops, and one number more for the results of the block.
  void note_readers() {
    for (size_t i = 0; i < ops_.size(); ++i)
      if (in_.is_view[i] == 0)
        for (ValueId v : ops_[i].operands)
          readers_[static_cast<size_t>(root(v))].insert(static_cast<int32_t>(i));
    for (ValueId v : in_.block.results)
      readers_[static_cast<size_t>(root(v))].insert(static_cast<int32_t>(ops_.size()));
  }

  // How many arrays as large as the result the op reads; others are rows, columns and constants.
  size_t full_operands(const Op& o) const {
    std::set<ValueId> full;
    for (ValueId v : o.operands) {
      const std::vector<int64_t>& strides = in_.relative[static_cast<size_t>(v)].strides;
      const bool one = std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
      if (!one && shape(root(v)).count() * 2 > shape(o.results[0]).count()) full.insert(root(v));
    }
    return full.size();
  }

  // Whether a serial sum that computes `taken` again had better compute op d again, too, than read what it
  // makes. If only they read that, it need not be stored. Otherwise, computing it may not take more reading
  // than it does: the sums of a residual stream's gradients would all begin at the last layer.
  bool better_again(int32_t d, const std::set<int32_t>& taken) const {
    const std::set<int32_t>& readers = readers_[static_cast<size_t>(op(d).results[0])];
    return full_operands(op(d)) <= 1 ||
           std::includes(taken.begin(), taken.end(), readers.begin(), readers.end());
  }

  // Pulls the elementwise ops in front of a serial sum into its unit.
  void inline_producers(Unit& u) {
    std::set<int32_t> taken{u.ops[0]};
    // An op comes in when all its readers are in: last ones first.
    for (int32_t i = u.ops[0]; i >= 0; --i) {
      if (taken.count(i) == 0) continue;
      for (ValueId v : op(i).operands) {
        const int32_t d = def_[static_cast<size_t>(root(v))];
        if (d < 0 || !ir::is_elementwise(op(d).kind) || in_.is_view[static_cast<size_t>(d)] != 0 ||
            !same_position(v) || !better_again(d, taken))
          continue;
        if (taken.insert(d).second && taken.size() > kMaxInlined + 1) return;
      }
    }
    taken.erase(u.ops[0]);
    // There is one register per root. An operand that is another view of a value to be pulled in (its
    // reverse, for example) has other elements at the same position, so it must be read from memory.
    const std::set<ValueId> own = results_of(taken);
    const auto reads_elsewhere = [&](int32_t i) {
      return std::any_of(op(i).operands.begin(), op(i).operands.end(),
                         [&](ValueId v) { return own.count(root(v)) != 0 && !same_position(v); });
    };
    if (std::any_of(taken.begin(), taken.end(), reads_elsewhere)) return;
    u.ops.insert(u.ops.begin(), taken.begin(), taken.end());
  }

  // Level of an op or of a value of the group: true for rows.
  static bool row_level(const Unit& g, int64_t rank) {
    return g.split >= 0 && rank == g.split && rank != static_cast<int64_t>(g.domain.size());
  }

  bool access_fits(const Unit& g, const Op& o, ValueId v) const {
    const bool reads_rows = !is_reduction(o.kind) && row_level(g, shape(o.results[0]).rank());
    const View& view = in_.relative[static_cast<size_t>(v)];
    const Shape& r = shape(view.buffer);
    const bool from_rows = row_level(g, r.rank());
    if (reads_rows && !from_rows) return false;
    if (reads_rows == from_rows) return same_position(v);
    const std::vector<int64_t> dense = r.strides();
    for (size_t i = 0; i < g.domain.size(); ++i) {
      const int64_t expected = i < dense.size() ? dense[i] : 0;
      if (g.domain[i] != 1 && view.strides[i] != expected) return false;
    }
    return view.offset == 0;
  }

  // Checks that every op inside the group reads values of the group at its own position, and that the reduced
  // axes are one run with one stride in every operand.
  Refusal check(const Unit& g) const {
    if (g.ops.size() > kMaxOps) return Refusal::kTooManyOps;
    const std::set<ValueId> own = results_of(g.ops);
    size_t loads = 0;
    std::vector<std::vector<int64_t>> strides;
    for (int32_t i : g.ops)
      for (ValueId v : op(i).operands) {
        const View& view = in_.relative[static_cast<size_t>(v)];
        if (own.count(view.buffer) != 0) {
          if (!access_fits(g, op(i), v)) return Refusal::kPlace;
        } else {
          ++loads;
          if (view.shape.rank() == static_cast<int64_t>(g.domain.size())) strides.push_back(view.strides);
        }
      }
    if (loads > kMaxLoads) return Refusal::kTooManyLoads;
    if (g.split < 0) return Refusal::kNone;
    // Dense ones are always one run.
    for (const auto& s : strides) {
      int64_t span = 0;
      bool first = true;
      for (size_t i = g.domain.size(); i-- > static_cast<size_t>(g.split);) {
        if (g.domain[i] == 1) continue;
        if (!first && s[i] != span) return Refusal::kStrides;
        first = false;
        span = s[i] * g.domain[i];
      }
    }
    return Refusal::kNone;
  }

  Refusal unify(const Unit& a, const Unit& b, Unit& out) const {
    const Unit& big = a.domain.size() >= b.domain.size() ? a : b;
    const Unit& small = &big == &a ? b : a;
    out.kind = UnitKind::kGroup;
    out.domain = big.domain;
    out.split = big.split;
    if (big.domain.size() == small.domain.size()) {
      if (big.domain != small.domain) return Refusal::kSizes;
      if (big.split >= 0 && small.split >= 0 && big.split != small.split) return Refusal::kRows;
      out.split = std::max(big.split, small.split);
    } else {
      if (big.split < 0 || !std::equal(small.domain.begin(), small.domain.end(), big.domain.begin()))
        return Refusal::kSizes;
      if (big.split != static_cast<int64_t>(small.domain.size()) || small.split >= 0) return Refusal::kRows;
    }
    std::merge(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), std::back_inserter(out.ops));
    return Refusal::kNone;
  }

  // The third unit on a way from unit a to unit b, or -1.
  int32_t detour(int32_t a, int32_t b) const {
    std::vector<char> seen(units_.size(), 0);
    std::vector<int32_t> open{a};
    seen[static_cast<size_t>(a)] = 1;
    while (!open.empty()) {
      const int32_t u = open.back();
      open.pop_back();
      for (int32_t i : sources(u))
        for (int32_t user : users_[static_cast<size_t>(i)]) {
          const int32_t next = unit_of_[static_cast<size_t>(user)];
          if (next == b && u != a) return u;
          if (next == b || seen[static_cast<size_t>(next)] != 0) continue;
          seen[static_cast<size_t>(next)] = 1;
          open.push_back(next);
        }
    }
    return -1;
  }
  // The ops whose results a unit makes. For a serial sum this is only the sum.
  std::vector<int32_t> sources(int32_t u) const {
    const Unit& unit = units_[static_cast<size_t>(u)];
    if (unit.kind == UnitKind::kSerial) return {unit.ops.back()};
    return unit.ops;
  }

  // Why units a and b cannot become one, which `joined` is otherwise. kDetour: `through` is the unit between.
  Refusal refusal(int32_t a, int32_t b, Unit& joined, int32_t& through) const {
    const Unit &ua = units_[static_cast<size_t>(a)], &ub = units_[static_cast<size_t>(b)];
    if (ua.kind == UnitKind::kSingle || ub.kind == UnitKind::kSingle) return Refusal::kRoutine;
    if (ua.kind == UnitKind::kSerial || ub.kind == UnitKind::kSerial) return Refusal::kSerial;
    if (const Refusal why = unify(ua, ub, joined); why != Refusal::kNone) return why;
    if (const Refusal why = check(joined); why != Refusal::kNone) return why;
    through = detour(a, b);
    if (through < 0) through = detour(b, a);
    return through < 0 ? Refusal::kNone : Refusal::kDetour;
  }

  void try_merge(int32_t a, int32_t b) {
    if (a == b) return;
    Unit joined;
    int32_t through = -1;
    if (refusal(a, b, joined, through) != Refusal::kNone) return;
    const std::vector<int32_t> moved = units_[static_cast<size_t>(b)].ops;
    for (int32_t i : moved) unit_of_[static_cast<size_t>(i)] = a;
    units_[static_cast<size_t>(a)] = std::move(joined);
    units_[static_cast<size_t>(b)] = Unit{};
  }

  // Notes why units read values from memory. Two built-in routines can never be fused, so no reason is noted.
  void note_barriers() {
    for (size_t b = 0; b < units_.size(); ++b) {
      Unit& u = units_[b];
      if (u.ops.empty()) continue;
      for (ValueId r : outside_reads(u)) {
        const int32_t d = def_[static_cast<size_t>(r)];
        if (d < 0 || in_.is_view[static_cast<size_t>(d)] != 0) continue;
        const int32_t a = unit_of_[static_cast<size_t>(d)];
        if (u.kind == UnitKind::kSingle && units_[static_cast<size_t>(a)].kind == UnitKind::kSingle) continue;
        Unit joined;
        int32_t through = -1;
        const Refusal why = refusal(a, static_cast<int32_t>(b), joined, through);
        if (through >= 0) through = units_[static_cast<size_t>(through)].ops.back();
        u.barriers.push_back({r, d, why, through});
      }
    }
  }

  // Topological order, earliest op first among those that are ready.
  std::vector<Unit> ordered() {
    std::vector<int32_t> missing(units_.size(), 0);
    std::vector<std::set<int32_t>> next(units_.size());
    for (size_t d = 0; d < ops_.size(); ++d)
      for (int32_t user : users_[d]) {
        const int32_t from = unit_of_[d], to = unit_of_[static_cast<size_t>(user)];
        if (from != to && !units_[static_cast<size_t>(from)].ops.empty() &&
            next[static_cast<size_t>(from)].insert(to).second)
          ++missing[static_cast<size_t>(to)];
      }
    std::set<std::pair<int32_t, int32_t>> ready;
    for (size_t u = 0; u < units_.size(); ++u)
      if (!units_[u].ops.empty() && missing[u] == 0)
        ready.insert({units_[u].ops.back(), static_cast<int32_t>(u)});
    std::vector<Unit> order;
    while (!ready.empty()) {
      const auto [key, u] = *ready.begin();
      ready.erase(ready.begin());
      for (int32_t n : next[static_cast<size_t>(u)])
        if (--missing[static_cast<size_t>(n)] == 0)
          ready.insert({units_[static_cast<size_t>(n)].ops.back(), n});
      order.push_back(std::move(units_[static_cast<size_t>(u)]));
    }
    return drop_dead(std::move(order));
  }

  std::vector<Unit> drop_dead(std::vector<Unit> order) {
    std::vector<char> needed(in_.block.values.size(), 0);
    for (ValueId v : in_.block.results) needed[static_cast<size_t>(root(v))] = 1;
    std::vector<Unit> live;
    for (size_t i = order.size(); i-- > 0;) {
      Unit& u = order[i];
      if (u.kind == UnitKind::kSingle) {
        for (ValueId v : op(u.ops[0]).operands) needed[static_cast<size_t>(root(v))] = 1;
        live.push_back(std::move(u));
        continue;
      }
      if (u.kind == UnitKind::kSerial) {
        u.stored = {op(u.ops.back()).results[0]};
      } else {
        for (int32_t o : u.ops)
          if (needed[static_cast<size_t>(op(o).results[0])] != 0) u.stored.push_back(op(o).results[0]);
        keep_live_ops(u);
      }
      if (u.stored.empty() || needed[static_cast<size_t>(u.stored[0])] == 0) continue;
      const std::set<ValueId> reads = outside_reads(u);
      for (ValueId r : reads) needed[static_cast<size_t>(r)] = 1;
      std::erase_if(u.barriers, [&](const Barrier& b) { return reads.count(b.value) == 0; });
      live.push_back(std::move(u));
    }
    std::reverse(live.begin(), live.end());
    return live;
  }

  void keep_live_ops(Unit& u) const {
    std::set<ValueId> live(u.stored.begin(), u.stored.end());
    std::vector<int32_t> kept;
    for (size_t i = u.ops.size(); i-- > 0;) {
      const Op& o = op(u.ops[i]);
      if (live.count(o.results[0]) == 0) continue;
      for (ValueId v : o.operands) live.insert(root(v));
      kept.push_back(u.ops[i]);
    }
    std::reverse(kept.begin(), kept.end());
    u.ops = std::move(kept);
  }

  const FusionInput& in_;
  const std::vector<Op>& ops_;
  std::vector<int32_t> def_;                 // by value: op, or -1
  std::vector<std::set<int32_t>> readers_;   // by root (note_readers)
  std::vector<std::vector<ValueId>> reads_;  // by op: roots
  std::vector<std::vector<int32_t>> users_;  // by op: ops that must come after it; most of them read it
  std::vector<Unit> units_;                  // by number; merged ones are empty
  std::vector<int32_t> unit_of_;             // by op
};

}  // namespace

std::string refusal_text(const Barrier& barrier, const Unit& unit, const ir::Block& block) {
  const auto name = [&](int32_t op) { return ir::op_name(block.ops[static_cast<size_t>(op)].kind); };
  switch (barrier.why) {
    case Refusal::kNone:
      return "they would fit now; fusion goes over the ops once, and did not when it met them";
    case Refusal::kRoutine:
      return fmt::format("{} is a built-in routine",
                         name(unit.kind == UnitKind::kSingle ? unit.ops[0] : barrier.producer));
    case Refusal::kSerial:
      return "a serial sum runs by itself, and computes elementwise ops before it again where that is less "
             "reading";
    case Refusal::kSizes: return fmt::format("loops of other sizes: ({}) here", fmt::join(unit.domain, ", "));
    case Refusal::kRows: return "their rows end at other axes";
    case Refusal::kPlace:
      return "the value is read elsewhere than it was written: transposed, sliced, or across rows";
    case Refusal::kStrides: return "the reduced axes would not lie in one run in every operand";
    case Refusal::kTooManyOps: return fmt::format("more than {} ops in one function", kMaxOps);
    case Refusal::kTooManyLoads: return fmt::format("more than {} operands of one function", kMaxLoads);
    case Refusal::kDetour:
      return fmt::format("{} lies between: it needs the one and the other needs it", name(barrier.through));
  }
  return "?";
}

std::vector<Unit> find_units(const FusionInput& input) { return Fusion(input).run(); }

}  // namespace ostro::compile
