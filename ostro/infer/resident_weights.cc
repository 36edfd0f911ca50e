#include "ostro/infer/resident_weights.h"

#include "ostro/base/check.h"
#include "ostro/numerics/arrays.h"

namespace ostro::infer {

using runtime::Buffer;

Result<ResidentWeights> ResidentWeights::create(const models::LayerFunctions& layers,
                                                std::vector<Buffer> parameters, runtime::Memory& memory) {
  OSTRO_CHECK(parameters.size() == layers.read_in_f32.size(), "{} parameters, the model has {}",
              parameters.size(), layers.read_in_f32.size());
  for (size_t k = 0; k < parameters.size(); ++k) {
    Buffer& held = parameters[k];
    if (layers.dtype == ir::DType::bf16 && held.shape().dtype == ir::DType::f32 && !layers.read_in_f32[k]) {
      ASSIGN_OR_RETURN(const Buffer wide, held.to_host());
      held = Buffer::empty(wide.shape().with_dtype(ir::DType::bf16));
      numerics::narrow(wide.as<float>(), held.mutable_bytes());
    }
    ASSIGN_OR_RETURN(held, held.to(memory));
  }
  return ResidentWeights(std::move(parameters));
}

std::vector<Buffer> ResidentWeights::whole(std::span<const models::WeightRead> reads) const {
  std::vector<Buffer> out;
  for (const models::WeightRead& read : reads) {
    const Buffer& all = parameters_[read.parameter];
    if (read.layer < 0) {
      out.push_back(all);
      continue;
    }
    ir::Shape one = all.shape();
    one.axes.erase(one.axes.begin());
    out.push_back(all.rows(read.layer, 1).with_shape(std::move(one)));
  }
  return out;
}

}  // namespace ostro::infer
