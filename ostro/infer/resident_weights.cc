#include "ostro/infer/resident_weights.h"

#include "ostro/base/check.h"
#include "ostro/numerics/arrays.h"

namespace ostro::infer {

using runtime::Buffer;

Result<Buffer> as_read(const models::LayerFunctions& layers, size_t k, Buffer value) {
  if (layers.dtype != ir::DType::bf16 || value.shape().dtype != ir::DType::f32 || layers.read_in_f32[k])
    return value;
  ASSIGN_OR_RETURN(const Buffer wide, value.to_host());
  Buffer out = Buffer::empty(wide.shape().with_dtype(ir::DType::bf16));
  numerics::narrow(wide.as<float>(), out.mutable_bytes());
  return out;
}

Result<ResidentWeights> ResidentWeights::create(const models::LayerFunctions& layers,
                                                std::vector<Buffer> parameters, runtime::Memory& memory) {
  OSTRO_CHECK(parameters.size() == layers.read_in_f32.size(), "{} parameters, the model has {}",
              parameters.size(), layers.read_in_f32.size());
  for (size_t k = 0; k < parameters.size(); ++k) {
    ASSIGN_OR_RETURN(parameters[k], as_read(layers, k, std::move(parameters[k])));
    ASSIGN_OR_RETURN(parameters[k], parameters[k].to(memory));
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
