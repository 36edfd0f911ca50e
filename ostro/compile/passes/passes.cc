#include "ostro/compile/passes/pass.h"
#include "ostro/ir/rules/verify.h"

namespace ostro::compile {
namespace {

constexpr PassInfo kPasses[] = {
    {"inline_custom", "custom ops become their function", inline_custom},
    {"remove_unread", "what differentiation left over, so that remat sees who reads what", remove_dead},
    {"remat", "residuals computed again in the reversed scan", remat},
    {"simplify", "identities that keep every bit", simplify},
    {"merge_common", "equal ops on equal operands once", merge_common},
    {"remove_dead", "ops, scan results and carries nobody reads", remove_dead},
    {"gather_first", "rows of a cast table are looked up before they are cast", gather_first},
    {"fuse_dot_cast", "a bf16 dot that is cast to bf16 gives bf16", fuse_dot_cast},
    {"gather_ahead", "parameters of a layer are gathered first, behind whose exchange the layer runs",
     gather_ahead},
};

}  // namespace

std::span<const PassInfo> pass_list() { return kPasses; }

Result<ir::Program> run_passes(ir::Program program, const runtime::CompileOptions& options) {
  if (options.remat != "keep" && options.remat != "none" && options.remat != "all" &&
      !options.remat.starts_with("save:"))
    return invalid_argument("remat \"" + options.remat + "\"; use keep, none, all or save:label,label");
  for (const PassInfo& pass : kPasses) {
    try {
      pass.run(program, options);
    } catch (const ir::AttrError& e) {  // of an attribute that no rule asks for
      return invalid_argument(std::string(pass.name) + ": " + e.message);
    }
    if (Status s = ir::verify(program); !s.ok())
      return s.error().with_context(std::string("after ") + pass.name);
  }
  return program;
}

}  // namespace ostro::compile
