// MakeNest: decides how a unit of ops becomes one kernel: which loops, which passes over a row, what each of
// them loads, computes, saves and stores. There are no errors. Not thread-safe.
#pragma once

#include <map>

#include "ostro/compile/fuse/fuse.h"
#include "ostro/compile/lower/lower.h"
#include "ostro/compile/nest/nest.h"

namespace ostro::compile {

// A nest, with the views and sizes with which one step runs it.
struct PlacedNest {
  Nest nest;
  std::vector<View> in, out;  // where the accesses of the nest lie: its loads, its stores
  int64_t extent = 1;         // turns of the loop whose size is given
  int64_t grain = 1;          // the fewest turns that are worth a thread
  bool pointwise = false;     // Step::pointwise
};

// Makes the nest of one unit; used once. `lowering` knows the places of operands, and chooses the places of
// values that the unit stores.
class MakeNest {
 public:
  MakeNest(BlockLowering& lowering, const Unit& unit) : low_(lowering), unit_(unit) {}
  // The unit must be a group or a serial sum.
  PlacedNest run();

 private:
  struct Access {
    View view;
    bool store = false;
    bool row = false;              // leading axes only
    std::vector<int64_t> strides;  // by axis of the domain, 0 where the view has none
  };
  struct Dim {  // a loop over one or more axes of the domain, which every access can step through as one
    int64_t size;
    size_t axis;  // the innermost of them, whose stride it has
  };

  const ir::Op& op(int32_t i) const { return low_.block_.ops[static_cast<size_t>(unit_.ops[at(i)])]; }
  NestOp& out(int32_t i) { return made_.nest.ops[at(i)]; }
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  int32_t count() const { return static_cast<int32_t>(unit_.ops.size()); }
  const ir::Shape& shape(ir::ValueId v) const { return low_.block_.shape(v); }
  ir::ValueId root(ir::ValueId v) const { return low_.relative_[static_cast<size_t>(v)].buffer; }
  bool is_row(int64_t rank) const;

  void number_ops();
  void collect_accesses();
  size_t add_access(const View& view, bool store);
  NestOperand operand(ir::ValueId v);
  std::vector<Dim> join_axes(const std::vector<size_t>& axes, bool of_rows) const;
  void set_loops(std::vector<Dim> outer, const std::vector<Dim>& inner, const std::vector<Dim>& summed);

  void plan_passes();
  std::vector<int32_t> ops_of_pass(int64_t pass) const;

  void make_flat();
  void make_rows();
  void make_serial();

  BlockLowering& low_;
  const Unit& unit_;
  PlacedNest made_;
  // Ops by their numbers in the unit.
  std::map<ir::ValueId, int32_t> defined_;  // values of the unit: their op
  std::vector<Access> accesses_;
  std::map<ir::ValueId, size_t> load_of_, literal_of_;  // by value; by root
  std::vector<int64_t> ready_;  // by op: the pass in which an element, or before which a row value exists
  int64_t passes_ = 0;
};

}  // namespace ostro::compile
