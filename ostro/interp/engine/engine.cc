#include "ostro/interp/engine/engine.h"

#include <fmt/format.h>

#include "ostro/interp/core/call.h"
#include "ostro/ir/program/op_table.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/runtime/check_inputs.h"

namespace ostro::interp {

Result<Buffers> run_block(const ir::Block& block, Buffers args, const numerics::LeafTable& leaves,
                          const runtime::RunContext& context) {
  Buffers values(block.values.size());
  for (size_t i = 0; i < args.size(); ++i) values[block.params[i]] = std::move(args[i]);
  for (const ir::Op& op : block.ops) {
    Buffers in;
    std::vector<Shape> out;
    for (ir::ValueId v : op.operands) in.push_back(values[v]);
    for (ir::ValueId v : op.results) out.push_back(block.shape(v));
    const OpFunction function = op_function(op.kind);
    OSTRO_CHECK(function != nullptr, "no function for {}", ir::op_name(op.kind));
    auto results = function(Call{op, in, out, leaves, context});
    if (!results.ok())
      return op.location.empty() ? results.error() : results.error().with_context(op.location);
    for (size_t i = 0; i < out.size(); ++i) {
      OSTRO_CHECK((*results)[i].shape() == out[i], "{} gave {}, its rule says {}", ir::op_name(op.kind),
                  (*results)[i].shape().str(), out[i].str());
      values[op.results[i]] = (*results)[i];
    }
  }
  Buffers results;
  for (ir::ValueId v : block.results) results.push_back(values[v]);
  return results;
}

bool interprets(OpKind kind) { return op_function(kind) != nullptr; }

namespace {

class InterpreterExecutable final : public runtime::Executable {
 public:
  explicit InterpreterExecutable(ir::Program program) : program_(std::move(program)) {}

  Result<Buffers> run(Buffers inputs, const runtime::RunContext& context) override {
    const ir::Block& body = program_.body;
    std::vector<Shape> expected;
    for (const ir::ValueId p : body.params) expected.push_back(body.shape(p));
    RETURN_IF_ERROR(runtime::check_inputs(program_.name, program_.param_names, expected, inputs));
    ASSIGN_OR_RETURN(inputs, runtime::all_to(std::move(inputs), runtime::host_memory()));
    const numerics::HostArithmetic guard;
    try {
      return run_block(body, std::move(inputs), program_.leaves, context);
    } catch (const ir::AttrError& e) {
      return invalid_argument(fmt::format("program {}: {}", program_.name, e.message));
    }
  }

  runtime::ExecutableInfo info() const override {
    const ir::Block& body = program_.body;
    runtime::ExecutableInfo info;
    for (ir::ValueId v : body.params) info.input_bytes += body.shape(v).bytes();
    for (ir::ValueId v : body.results) info.output_bytes += body.shape(v).bytes();
    for (const ir::Op& op : body.ops) {
      std::vector<Shape> in, out;
      for (ir::ValueId v : op.operands) in.push_back(body.shape(v));
      for (ir::ValueId v : op.results) out.push_back(body.shape(v));
      info.flops += ir::op_cost(op, in, out).flops;
      ++info.fallback_ops;
    }
    return info;
  }

 private:
  ir::Program program_;
};

class Interpreter final : public runtime::Engine {
 public:
  const runtime::EngineInfo& info() const override { return info_; }

  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& program,
                                                       const runtime::CompileOptions&) override {
    RETURN_IF_ERROR(ir::verify(program));
    return std::unique_ptr<runtime::Executable>(std::make_unique<InterpreterExecutable>(program));
  }

 private:
  const runtime::EngineInfo info_{.name = "interp", .is_fast = false};
};

}  // namespace

std::unique_ptr<runtime::Engine> make_interpreter() { return std::make_unique<Interpreter>(); }

}  // namespace ostro::interp
