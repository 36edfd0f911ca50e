#include "ostro/trained/merged.h"

#include <algorithm>

#include "ostro/ir/rules/verify.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro::trained {

Result<std::vector<runtime::Buffer>> merged_parameters(const LoadedModel& model,
                                                       const MakeEngine& make_engine) {
  const auto has_adapter = [](const nn::AdaptedMatrix& m) { return m.has_adapter; };
  const std::vector<nn::AdaptedMatrix>& matrices = model.functions.matrices;
  // A model that is trained whole and has no adapter is held in that order, f32.
  if (model.functions.trained() == model.functions.paths.size() &&
      std::none_of(matrices.begin(), matrices.end(), has_adapter))
    return model.parameters.values;
  ir::Program program;
  try {
    program = trace_program("merge", model.functions.shapes,
                            [&](const Arrays& in) { return model.functions.merged(in); });
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
  RETURN_IF_ERROR(ir::verify(program));
  ASSIGN_OR_RETURN(const auto engine, make_engine());
  ASSIGN_OR_RETURN(const auto merge, engine->compile(program));
  ASSIGN_OR_RETURN(auto values, merge->run(model.parameters.values));
  return runtime::all_to(std::move(values), runtime::host_memory());
}

}  // namespace ostro::trained
