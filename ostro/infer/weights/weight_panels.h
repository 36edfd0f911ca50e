// WeightPanels, find_panels, take_panels, in_panels: weights in the order in which products of few rows
// read them. A weight [embed, mlp], of which mlp are columns, lies in memory as panels of neighbouring
// columns: [panel, embed, mlp of the panel]. A thread then reads each of its panels in one piece. The bits
// are the same.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/models/layer_functions.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

inline constexpr const char* kPanelAxis = "weight_panel";  // of the panels of an index of the other axes

struct WeightPanels {
  std::vector<std::string> over;  // the axes that products contract, in their order
  std::string axis;               // the last of the others: its indices are cut into panels
  int64_t columns = 0;            // of a panel

  // A weight [.., axis, ..] as it is held: [others, weight_panel, over, axis], behind "layers".
  ir::Shape held(const ir::Shape& weight) const;
  bool operator==(const WeightPanels&) const = default;
};

// For each parameter of a model, held with these dtypes and shapes, the panels in which its parts are best
// held by this engine: of those that products read as their second operand, all with the same contraction,
// and nothing else; and only of those that may be moved. Errors: those of tracing.
Result<std::vector<std::optional<WeightPanels>>> find_panels(const models::LayerFunctions& layers,
                                                             const std::vector<ir::Shape>& parameters,
                                                             std::vector<bool> may_move,
                                                             const runtime::Engine& engine);

// `input` of the program, a weight, becomes one in panels. What reads it otherwise than find_panels saw puts
// it back in order first.
void take_panels(ir::Program& p, size_t input, const WeightPanels& panels);

// A copy in panels of a parameter on the host, of all its layers where its leading axis is "layers". Invalid
// when it was told to stop.
runtime::Buffer in_panels(const runtime::Buffer& parameter, const WeightPanels& panels, int threads,
                          const std::stop_token& stop = {});

}  // namespace ostro::infer
