#include "ostro/hf/source_boxes.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "ostro/hf/source_units.h"

namespace ostro::hf {
namespace {

using checkpoint::Extents;

class UnitReader {
 public:
  UnitReader(std::shared_ptr<const Source> source, int threads)
      : source_(std::move(source)), units_(units_of(*source_)), threads_(threads) {
    first_.assign(source_->paths.size(), 0);
    for (size_t i = units_.size(); i-- > 0;) first_[units_[i].parameter] = i;
  }

  Status read(size_t parameter, const Extents& start, const Extents& shape, std::span<float> out) {
    const std::scoped_lock lock(mutex_);
    const ir::Shape& whole = source_->shapes[parameter];
    const size_t stacked = stacking_axes(whole);
    Extents extents, inner_start = start, inner = shape;
    for (const ir::Axis& axis : unit_shape(whole).axes) extents.push_back(axis.size);
    std::fill_n(inner_start.begin(), stacked, 0);
    std::fill_n(inner.begin(), stacked, 1);
    const Extents grid(shape.begin(), shape.begin() + static_cast<int64_t>(stacked));
    return io::for_each_index(grid, [&](const Extents& index) -> Status {
      size_t unit = 0;
      Extents to(shape.size(), 0);
      for (size_t a = 0; a < stacked; ++a) {
        unit = unit * static_cast<size_t>(whole.axes[a].size) + static_cast<size_t>(start[a] + index[a]);
        to[a] = index[a];
      }
      RETURN_IF_ERROR(load(first_[parameter] + unit, unit_shape(whole)));
      io::copy_box(buffer_.bytes(), extents, inner_start, std::as_writable_bytes(out), shape, to, inner,
                   sizeof(float));
      return {};
    });
  }

 private:
  // Makes the buffer hold this unit.
  Status load(size_t unit, const ir::Shape& shape) {
    if (buffer_.valid() && loaded_ == unit) return {};
    if (!buffer_.valid() || buffer_.shape() != shape) {
      buffer_ = {};  // before the other is there
      buffer_ = runtime::Buffer::empty(shape);
    }
    loaded_ = units_.size();  // none, if it fails
    RETURN_IF_ERROR(read_unit(*source_, units_[unit], buffer_.mutable_as<float>(), threads_));
    loaded_ = unit;
    return {};
  }

  const std::shared_ptr<const Source> source_;
  const std::vector<Unit> units_;
  const int threads_;
  std::vector<size_t> first_;  // unit of each parameter
  std::mutex mutex_;
  runtime::Buffer buffer_;
  size_t loaded_ = 0;
};

}  // namespace

checkpoint::ReadBox source_boxes(std::shared_ptr<const Source> source, int threads) {
  const auto reader = std::make_shared<UnitReader>(std::move(source), threads);
  return [reader](size_t parameter, const Extents& start, const Extents& shape, std::span<float> out) {
    return reader->read(parameter, start, shape, out);
  };
}

}  // namespace ostro::hf
