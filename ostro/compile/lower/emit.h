// Turns units of ops into steps that run generated kernels.
#pragma once

#include "ostro/compile/fuse/fuse.h"
#include "ostro/compile/lower/lower.h"

namespace ostro::compile {

// Writes the C function of a group or a serial sum and appends its step to the plan of `lowering`, which
// knows where the operands lie.
class GroupEmitter {
 public:
  GroupEmitter(BlockLowering& lowering, const Unit& unit) : low_(lowering), unit_(unit) {}
  void emit();

 private:
  struct Access {  // a pointer the kernel gets
    View view;
    bool store = false;
    bool row = false;              // leading axes only
    std::vector<int64_t> strides;  // by axis of the domain, 0 where the view has none
  };
  struct Dim {  // a loop over one or more axes of the domain, which every access can step through as one
    int64_t size;
    size_t axis;  // the innermost of them, whose stride it has
  };

  const ir::Op& op(int32_t i) const { return low_.block_.ops[static_cast<size_t>(i)]; }
  const ir::Shape& shape(ir::ValueId v) const { return low_.block_.shape(v); }
  ir::ValueId root(ir::ValueId v) const { return low_.relative_[static_cast<size_t>(v)].buffer; }
  bool is_row(int64_t rank) const;
  bool reduces(const ir::Op& o) const;
  bool in_unit(ir::ValueId root) const { return defined_.count(root) != 0; }

  int64_t id(ir::ValueId v) const;
  void collect_accesses();
  size_t add_access(const View& view, bool store);
  std::vector<Dim> join_axes(const std::vector<size_t>& axes, bool of_rows) const;

  void plan_passes();
  std::vector<int32_t> ops_of_pass(int64_t pass) const;

  // C text. Each returns or appends statements. names_ and loads_ say what is in registers.
  std::string literal(ir::ValueId v);
  std::string operand(ir::ValueId v, std::string& text, std::string& hoisted);
  void compute(const ir::Op& o, std::string& text, std::string& hoisted);
  void store(ir::ValueId v, const std::string& index, std::string& text) const;
  std::string pointer_text(const std::vector<Dim>& outer, const char* from) const;
  std::string pass_text(int64_t pass);
  void flat_function();
  void row_function();
  void serial_function();
  void finish(const std::string& statements, int64_t extent, int64_t grain, bool pointwise = false);

  BlockLowering& low_;
  const Unit& unit_;
  std::map<ir::ValueId, int32_t> defined_;  // values of the unit: their op
  std::vector<Access> accesses_;
  std::map<ir::ValueId, size_t> load_of_, store_of_;  // by value
  std::map<ir::ValueId, std::string> names_, literals_;
  std::map<size_t, std::string> loads_;  // by access
  std::string literal_text_;
  std::vector<Dim> inner_;                // the loop inside a row: none or one
  std::map<ir::ValueId, int64_t> ready_;  // the pass in which an element, or after which a row value exists
  std::map<ir::ValueId, int64_t> kept_;   // expensive element values kept in an array: the pass that fills it
  int64_t passes_ = 0;
};

}  // namespace ostro::compile
