#include "ostro/models/experts_used.h"

namespace ostro::models {

// A parameter with an axis of experts counts by the share of experts that a token uses.
int64_t active_parameters(const ModelFunctions& model, const ExpertsUsed& used) {
  int64_t active = 0;
  for (size_t i = 0; i < model.shapes.size(); ++i) {
    const int64_t count = model.shapes[i].count();
    active += model.matrix_of[i].of_experts ? count / used.experts * used.per_token : count;
  }
  return active;
}

}  // namespace ostro::models
