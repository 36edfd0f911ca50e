#include "ostro/infer/traced.h"

#include "ostro/ir/rules/verify.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro::infer {

Result<ir::Program> traced(const std::string& name, const std::vector<ir::Shape>& inputs,
                           const numerics::LeafTable& leaves,
                           const std::function<Arrays(const Arrays&)>& body) {
  try {
    ir::Program p = trace_program(name, inputs, body);
    p.leaves = leaves;
    RETURN_IF_ERROR(ir::verify(p));
    return p;
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
}

Result<std::vector<ir::Shape>> traced_shapes(const std::function<Arrays()>& body) {
  std::vector<ir::Shape> out;
  try {
    trace_program("shapes", {}, [&](const Arrays&) {
      for (const Array& a : body()) out.push_back(a.shape());
      return Arrays{};
    });
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
  return out;
}

}  // namespace ostro::infer
