#include "ostro/infer/decode_program.h"

#include <fmt/format.h>

#include "ostro/infer/traced.h"
#include "ostro/ir/text/text.h"

namespace ostro::infer {

Result<std::vector<ir::Shape>> cache_shapes(const models::ModelFunctions& model, int64_t positions) {
  if (!model.decode.step)
    return unsupported(
        "this model has no cached step, so it cannot generate: its struct needs cache(batch, length, dtype) "
        "and decode(tokens, cache, start), which ostro/models/model_functions.h describes");
  if (positions < 2)
    return invalid_argument(fmt::format("room for {} positions; at least 2 are needed", positions));
  return traced_shapes([&] { return model.decode.cache(1, positions); });
}

Result<ir::Program> decode_program(const models::ModelFunctions& model, const std::vector<ir::Shape>& cache,
                                   int64_t rows, const numerics::LeafTable& leaves) {
  std::vector<ir::Shape> shapes = model.shapes;
  const size_t n = shapes.size();
  shapes.push_back({ir::DType::i32, {{"batch", 1}, {"pos", rows}}});
  shapes.push_back(ir::scalar(ir::DType::i32));
  shapes.insert(shapes.end(), cache.begin(), cache.end());
  return traced("decode", shapes, leaves, [&](const Arrays& in) {
    const auto at = in.begin() + static_cast<int64_t>(n);
    auto [logits, filled] = model.decode.step({in.begin(), at}, in[n], {at + 2, in.end()}, in[n + 1]);
    Arrays out{logits};
    out.insert(out.end(), filled.begin(), filled.end());
    return out;
  });
}

Result<std::string> forward_hash(const models::ModelFunctions& model, int64_t positions,
                                 const numerics::LeafTable& leaves) {
  ASSIGN_OR_RETURN(const std::vector<ir::Shape> cache, cache_shapes(model, positions));
  ASSIGN_OR_RETURN(const ir::Program p, decode_program(model, cache, 1, leaves));
  return ir::program_hash(p);
}

}  // namespace ostro::infer
