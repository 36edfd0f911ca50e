// in_panels: the bytes of a parameter, panel by panel.
#include <algorithm>
#include <cstring>

#include "ostro/base/parallel.h"
#include "ostro/infer/weights/weight_panels.h"
#include "ostro/nn/linear.h"

namespace ostro::infer {

using runtime::Buffer;

namespace {

// Contraction steps that a thread moves together.
constexpr int64_t kStepsTogether = 64;

// Where the parts of a parameter lie: bytes from its begin by layer, by panel and by step of the contraction;
// neighbouring columns of a panel are `column` bytes apart.
struct Places {
  std::vector<int64_t> layers{0}, panels{0}, steps{0};
  int64_t column = 0;
};

// All sums of a place of `list` and a multiple of the stride below the size.
void add_axis(std::vector<int64_t>& list, int64_t size, int64_t stride) {
  std::vector<int64_t> out;
  for (const int64_t at : list)
    for (int64_t i = 0; i < size; ++i) out.push_back(at + i * stride);
  list = std::move(out);
}

// Of a parameter in order, or in panels.
Places places_of(const ir::Shape& shape, const WeightPanels& panels) {
  const std::vector<int64_t> strides = shape.strides();
  const auto stride = [&](const std::string& axis) {
    return strides[static_cast<size_t>(shape.find(axis))] * ir::dtype_size(shape.dtype);
  };
  Places out;
  out.column = stride(panels.axis);
  for (const ir::Axis& a : shape.axes) {
    const bool is_step = std::ranges::count(panels.over, a.name) > 0;
    if (a.name == nn::kLayersAxis)
      add_axis(out.layers, a.size, stride(a.name));
    else if (a.name != panels.axis && !is_step)
      add_axis(out.panels, a.size, stride(a.name));
  }
  if (!shape.has(kPanelAxis))
    add_axis(out.panels, shape.size_of(panels.axis) / panels.columns, panels.columns * out.column);
  for (const std::string& axis : panels.over) add_axis(out.steps, shape.size_of(axis), stride(axis));
  return out;
}

// Some steps of one panel: its first byte, the places of the steps, and how far columns are apart.
template <typename Bytes>
struct PanelSteps {
  Bytes* base;
  const int64_t* steps;
  int64_t column;
};

void move_steps(const PanelSteps<const std::byte>& from, const PanelSteps<std::byte>& to, int64_t count,
                int64_t columns, int64_t element) {
  // The size is a constant for the compiler: there are millions of steps.
  const auto rows = [&]<size_t kBytes>() {
    for (int64_t k = 0; k < count; ++k) std::memcpy(to.base + to.steps[k], from.base + from.steps[k], kBytes);
  };
  const bool together = from.column == element;
  if (together && columns * element == 32) return rows.operator()<32>();
  if (together && columns * element == 64) return rows.operator()<64>();
  if (together && columns * element == 128) return rows.operator()<128>();
  for (int64_t k = 0; k < count; ++k)
    for (int64_t i = 0; i < columns; ++i)
      std::memcpy(to.base + to.steps[k] + i * element, from.base + from.steps[k] + i * from.column,
                  static_cast<size_t>(element));
}

}  // namespace

// Each thread takes some contraction steps of all panels at a time, so that both sides are read and written
// in pieces of some lines.
Buffer in_panels(const Buffer& parameter, const WeightPanels& panels, int threads,
                 const std::stop_token& stop) {
  const ir::Shape whole = parameter.shape(), held = panels.held(whole);
  Buffer out = Buffer::empty(held);
  const Places from = places_of(whole, panels), to = places_of(held, panels);
  const int64_t element = ir::dtype_size(whole.dtype), steps = std::ssize(from.steps);
  const int64_t blocks = (steps + kStepsTogether - 1) / kStepsTogether;
  const std::byte* source = parameter.bytes().data();
  std::byte* target = out.mutable_bytes().data();
  const auto move = [&](int64_t task) -> Status {
    if (stop.stop_requested()) return Error(ErrorCode::kInternal, "stopped");
    const auto layer = static_cast<size_t>(task / blocks);
    const int64_t begin = task % blocks * kStepsTogether, end = std::min(steps, begin + kStepsTogether);
    for (size_t panel = 0; panel < from.panels.size(); ++panel)
      move_steps({source + from.layers[layer] + from.panels[panel], from.steps.data() + begin, from.column},
                 {target + to.layers[layer] + to.panels[panel], to.steps.data() + begin, element},
                 end - begin, panels.columns, element);
    return Status();
  };
  return parallel_for(std::ssize(from.layers) * blocks, threads, move).ok() ? out : Buffer();
}

}  // namespace ostro::infer
