#include "ostro/hf/import.h"

#include <algorithm>
#include <utility>

#include "ostro/checkpoint/stream_save.h"
#include "ostro/hf/source_units.h"
#include "ostro/numerics/arrays.h"

namespace ostro::hf {
namespace {

// bf16 for a parameter all of whose tensors are bf16, else f32, which holds every value, too.
std::vector<ir::DType> dtypes_of(const Source& source) {
  std::vector<ir::DType> out(source.paths.size(), ir::DType::bf16);
  for (const SourcePart& part : source.parts) {
    if (part.tensor->dtype == "BF16") continue;
    const auto at = std::find(source.paths.begin(), source.paths.end(), part.part.path);
    out[static_cast<size_t>(at - source.paths.begin())] = ir::DType::f32;
  }
  return out;
}

std::vector<checkpoint::TensorSpec> specs_of(const Source& source, const std::vector<ir::DType>& dtypes) {
  std::vector<checkpoint::TensorSpec> specs;
  for (size_t k = 0; k < source.paths.size(); ++k) {
    checkpoint::TensorSpec spec{source.paths[k], std::string(ir::dtype_name(dtypes[k])), {}, {}, {}};
    for (const ir::Axis& axis : source.shapes[k].axes) {
      spec.axes.push_back(axis.name);
      spec.shape.push_back(axis.size);
    }
    for (const ir::Axis& axis : unit_shape(source.shapes[k]).axes) spec.cell.push_back(axis.size);
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

Result<checkpoint::Saved> import_weights(io::FileSystem& fs, const Source& source, const std::string& root,
                                         const checkpoint::Info& info, int threads) {
  const std::vector<ir::DType> dtypes = dtypes_of(source);
  ASSIGN_OR_RETURN(
      checkpoint::StreamSave save,
      checkpoint::StreamSave::begin(fs, root, info, specs_of(source, dtypes), {.threads = threads}));
  // Of one unit, and reused for the next ones of its shape: fresh memory costs as much as writing it.
  runtime::Buffer buffer;
  std::vector<std::byte> narrow;
  for (const Unit& unit : units_of(source)) {
    const ir::Shape shape = unit_shape(source.shapes[unit.parameter]);
    if (!buffer.valid() || buffer.shape() != shape) {
      buffer = {};  // before the other is there
      buffer = runtime::Buffer::empty(shape);
    }
    RETURN_IF_ERROR(read_unit(source, unit, buffer.mutable_as<float>(), threads));
    std::span<const std::byte> bytes = buffer.bytes();
    if (dtypes[unit.parameter] == ir::DType::bf16) {
      narrow.resize(bytes.size() / 2);
      numerics::narrow(buffer.as<float>(), narrow);
      bytes = narrow;
    }
    RETURN_IF_ERROR(save.write(unit.parameter, static_cast<size_t>(unit.cell), bytes));
  }
  return save.finish();
}

}  // namespace ostro::hf
