#include "ostro/train/programs/update_io.h"

#include "ostro/base/check.h"

namespace ostro::train {

using ir::DType;
using runtime::Buffer;

Measured numbers_of(const UpdateMeasures<Buffer>& measures) {
  return map_fields<double>(measures, [](const Field& field, const Buffer& b) -> double {
    switch (b.shape().dtype) {
      case DType::f32:
        return static_cast<double>(b.item<float>());
      case DType::f64:
        return b.item<double>();
      case DType::boolean:
        return b.item<uint8_t>();
      default:
        OSTRO_CHECK(false, "{} is {}; numbers are made of f32, f64 and bool", field.name, b.shape().str());
    }
  });
}

UpdateMeasures<Buffer> buffers_of(const Measured& measured) {
  return map_fields<Buffer>(measured, [](const Field& field, double x) {
    switch (field.shape->dtype) {
      case DType::f32:
        return Buffer::scalar(DType::f32, static_cast<float>(x));
      case DType::f64:
        return Buffer::scalar(DType::f64, x);
      case DType::boolean:
        return Buffer::scalar(DType::boolean, static_cast<uint8_t>(x));
      default:
        OSTRO_CHECK(false, "{} is {}; numbers become f32, f64 and bool", field.name, field.shape->str());
    }
  });
}

}  // namespace ostro::train
