#include "ostro/train/programs/update_io.h"

#include "ostro/base/check.h"

namespace ostro::train {

using ir::DType;
using runtime::Buffer;

namespace {

template <typename T>
Result<double> number(const Buffer& b) {
  ASSIGN_OR_RETURN(const T value, b.scalar<T>());
  return static_cast<double>(value);
}

Result<double> number_of(const Field& field, const Buffer& b) {
  switch (b.shape().dtype) {
    case DType::f32: return number<float>(b);
    case DType::f64: return number<double>(b);
    case DType::boolean: return number<uint8_t>(b);
    default:
      OSTRO_CHECK(false, "{} is {}; numbers are made of f32, f64 and bool", field.name, b.shape().str());
  }
}

}  // namespace

Result<Measured> numbers_of(const UpdateMeasures<Buffer>& measures) {
  Status failed;
  Measured out = map_fields<double>(measures, [&](const Field& field, const Buffer& b) {
    const Result<double> x = number_of(field, b);
    if (!x.ok()) failed = x.error();
    return x.ok() ? *x : 0.0;
  });
  RETURN_IF_ERROR(failed);
  return out;
}

UpdateMeasures<Buffer> buffers_of(const Measured& measured) {
  return map_fields<Buffer>(measured, [](const Field& field, double x) {
    switch (field.shape->dtype) {
      case DType::f32: return Buffer::scalar(DType::f32, static_cast<float>(x));
      case DType::f64: return Buffer::scalar(DType::f64, x);
      case DType::boolean: return Buffer::scalar(DType::boolean, static_cast<uint8_t>(x));
      default:
        OSTRO_CHECK(false, "{} is {}; numbers become f32, f64 and bool", field.name, field.shape->str());
    }
  });
}

}  // namespace ostro::train
