#include "ostro/eval/merged.h"

#include "ostro/ir/rules/verify.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro::eval {

Result<std::vector<runtime::Buffer>> merged_parameters(const LoadedModel& model, runtime::Engine& engine) {
  ir::Program program;
  try {
    program = trace_program("merge", model.functions.shapes,
                            [&](const Arrays& in) { return model.functions.merged(in); });
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
  RETURN_IF_ERROR(ir::verify(program));
  ASSIGN_OR_RETURN(const auto merge, engine.compile(program));
  return merge->run(model.parameters.values);
}

}  // namespace ostro::eval
