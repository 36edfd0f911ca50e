#include "ostro/hf/import.h"

#include <utility>

#include "ostro/checkpoint/stream_save.h"
#include "ostro/hf/source_units.h"

namespace ostro::hf {
namespace {

std::vector<checkpoint::TensorSpec> specs_of(const Source& source) {
  std::vector<checkpoint::TensorSpec> specs;
  for (size_t k = 0; k < source.paths.size(); ++k) {
    checkpoint::TensorSpec spec{source.paths[k], "f32", {}, {}, {}};
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
  ASSIGN_OR_RETURN(checkpoint::StreamSave save,
                   checkpoint::StreamSave::begin(fs, root, info, specs_of(source), {.threads = threads}));
  // Of one unit, and reused for the next ones of its shape: fresh memory costs as much as writing it.
  runtime::Buffer buffer;
  for (const Unit& unit : units_of(source)) {
    const ir::Shape shape = unit_shape(source.shapes[unit.parameter]);
    if (!buffer.valid() || buffer.shape() != shape) {
      buffer = {};  // before the other is there
      buffer = runtime::Buffer::empty(shape);
    }
    RETURN_IF_ERROR(read_unit(source, unit, buffer.mutable_as<float>(), threads));
    RETURN_IF_ERROR(save.write(unit.parameter, static_cast<size_t>(unit.cell), buffer.bytes()));
  }
  return save.finish();
}

}  // namespace ostro::hf
