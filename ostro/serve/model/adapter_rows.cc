#include "ostro/serve/model/adapter_rows.h"

#include <cstring>

#include "ostro/base/check.h"
#include "ostro/nn/linear.h"

namespace ostro::serve {

using runtime::Buffer;

Result<Buffer> side_by_side(std::vector<Buffer> factors) {
  ir::Shape shape = factors[0].shape();
  const bool stacked = shape.axes[0].name == nn::kLayersAxis;
  const auto layers = static_cast<size_t>(stacked ? shape.axes[0].size : 1);
  shape.axes.insert(shape.axes.begin() + (stacked ? 1 : 0), {nn::kAdaptersAxis, std::ssize(factors)});
  Buffer out = Buffer::empty(shape);
  const size_t bytes = out.bytes().size() / layers / factors.size();
  for (size_t i = 0; i < factors.size(); ++i) {
    OSTRO_CHECK(factors[i].shape() == factors[0].shape(), "factors {} and {} side by side",
                factors[0].shape().str(), factors[i].shape().str());
    ASSIGN_OR_RETURN(factors[i], factors[i].to_host());
    for (size_t layer = 0; layer < layers; ++layer)
      std::memcpy(out.mutable_bytes().data() + (layer * factors.size() + i) * bytes,
                  factors[i].bytes().data() + layer * bytes, bytes);
  }
  return out;
}

}  // namespace ostro::serve
