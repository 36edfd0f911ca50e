#include "ostro/ir/rules/verify.h"

#include <fmt/format.h>

#include "ostro/ir/program/op_table.h"
#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir {
namespace {

std::string place(const Op& op) {
  return op.location.empty() ? std::string() : fmt::format(" ({})", op.location);
}

}  // namespace

// Goes over the ops in order with the set of values defined so far; a region is verified as a block of its
// own.
Status verify(const Block& block) {
  std::vector<char> defined(block.values.size(), 0);
  auto define = [&](ValueId v, const char* what) -> Status {
    if (v < 0 || static_cast<size_t>(v) >= defined.size())
      return invalid_argument(fmt::format("{} names value %{}, the block has {}", what, v, defined.size()));
    if (defined[static_cast<size_t>(v)] != 0) return invalid_argument(fmt::format("%{} is defined twice", v));
    defined[static_cast<size_t>(v)] = 1;
    return Status();
  };
  auto used = [&](ValueId v, const std::string& what) -> Status {
    if (v < 0 || static_cast<size_t>(v) >= defined.size() || defined[static_cast<size_t>(v)] == 0)
      return invalid_argument(fmt::format("{} uses %{} before it is defined", what, v));
    return Status();
  };
  for (ValueId v : block.params) {
    RETURN_IF_ERROR(define(v, "a parameter"));
    if (const Status sound = rules::check_shape(block.shape(v)); !sound.ok())
      return sound.error().with_context(fmt::format("parameter %{}", v));
  }
  for (const Op& op : block.ops) {
    const std::string what = std::string(op_name(op.kind)) + place(op);
    std::vector<Shape> in;
    for (ValueId v : op.operands) {
      RETURN_IF_ERROR(used(v, what));
      in.push_back(block.shape(v));
    }
    for (const Block& region : op.regions) {
      if (Status s = verify(region); !s.ok()) return s.error().with_context(what);
    }
    auto shapes = infer_shapes(op, in);
    if (!shapes.ok()) return invalid_argument(shapes.error().message() + place(op));
    if (shapes->size() != op.results.size())
      return invalid_argument(
          fmt::format("{} has {} results, the op gives {}", what, op.results.size(), shapes->size()));
    for (size_t i = 0; i < op.results.size(); ++i) {
      RETURN_IF_ERROR(define(op.results[i], "an op"));
      if (block.shape(op.results[i]) != (*shapes)[i])
        return invalid_argument(fmt::format("{}: result {} is {}, the rule gives {}", what, i,
                                            block.shape(op.results[i]).str(), (*shapes)[i].str()));
    }
  }
  for (ValueId v : block.results) RETURN_IF_ERROR(used(v, "the result list"));
  return Status();
}

Status verify(const Program& program) {
  RETURN_IF_ERROR(program.leaves.validate());
  if (!program.param_names.empty() && program.param_names.size() != program.body.params.size())
    return invalid_argument(fmt::format("program {}: {} parameter names for {} parameters", program.name,
                                        program.param_names.size(), program.body.params.size()));
  if (!program.result_names.empty() && program.result_names.size() != program.body.results.size())
    return invalid_argument(fmt::format("program {}: {} result names for {} results", program.name,
                                        program.result_names.size(), program.body.results.size()));
  if (Status s = verify(program.body); !s.ok())
    return s.error().with_context(fmt::format("program {}", program.name));
  return Status();
}

}  // namespace ostro::ir
