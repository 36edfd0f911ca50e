// Moves elements without arithmetic: copies between views of any strides.
#include <algorithm>
#include <cstring>

#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;

// One axis of a copy with its strides in elements.
struct Dim {
  int64_t size, from, to;
};

// Drops axes of size 1 and joins neighbouring axes that are contiguous in both views. Outermost first.
std::vector<Dim> joined(const compile::View& from, const compile::View& to) {
  std::vector<Dim> dims;
  for (size_t i = 0; i < from.strides.size(); ++i) {
    const Dim d{from.shape.axes[i].size, from.strides[i], to.strides[i]};
    if (d.size == 1) continue;
    if (!dims.empty() && dims.back().from == d.from * d.size && dims.back().to == d.to * d.size) {
      dims.back() = {dims.back().size * d.size, d.from, d.to};
    } else {
      dims.push_back(d);
    }
  }
  if (dims.empty()) dims.push_back({1, 1, 1});
  return dims;
}

template <typename T>
void copy_row(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (from_stride == 0 && to_stride == 1) {
    std::fill_n(to, n, *from);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

template <typename T>
void copy_elements(const Array& from, const Array& to, machine::ThreadPool& pool) {
  const std::vector<Dim> dims = joined(*from.view, *to.view);
  const Dim inner = dims.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i].size;
  if (rows == 1) {
    const int64_t grain = kGrainBytes / static_cast<int64_t>(sizeof(T));
    pool.parallel_for(
        inner.size,
        [&](int64_t begin, int64_t end) {
          copy_row(from.as<const T>() + begin * inner.from, inner.from, to.as<T>() + begin * inner.to,
                   inner.to, end - begin);
        },
        grain);
    return;
  }
  const int64_t row_bytes = inner.size * static_cast<int64_t>(sizeof(T));
  pool.parallel_for(
      rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          int64_t at_from = 0, at_to = 0, rest = row;
          for (size_t i = dims.size() - 1; i-- > 0;) {
            const int64_t index = rest % dims[i].size;
            rest /= dims[i].size;
            at_from += index * dims[i].from;
            at_to += index * dims[i].to;
          }
          copy_row(from.as<const T>() + at_from, inner.from, to.as<T>() + at_to, inner.to, inner.size);
        }
      },
      std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, row_bytes)));
}

// A part of `whole` along one axis: [start, start + size).
struct Part {
  compile::View view;
  Array array;
};
Part part_of(const Array& whole, const std::string& axis, int64_t start, int64_t size) {
  Part p{*whole.view, whole};
  const auto at = static_cast<size_t>(whole.shape().find(axis));
  p.view.shape.axes[at].size = size;
  p.array.data = whole.data + start * whole.view->strides[at] * ir::dtype_size(whole.dtype());
  return p;
}
void copy_to_part(const Array& from, Part part, machine::ThreadPool& pool) {
  part.array.view = &part.view;
  copy_view(from, part.array, pool);
}
void copy_from_part(Part part, const Array& to, machine::ThreadPool& pool) {
  part.array.view = &part.view;
  copy_view(part.array, to, pool);
}

}  // namespace

void copy_view(const Array& from, const Array& to, machine::ThreadPool& pool) {
  if (from.count() == 0) return;
  switch (ir::dtype_size(from.dtype())) {
    case 1: return copy_elements<uint8_t>(from, to, pool);
    case 2: return copy_elements<uint16_t>(from, to, pool);
    case 4: return copy_elements<uint32_t>(from, to, pool);
    default: return copy_elements<uint64_t>(from, to, pool);
  }
}

Status run_concat(const OpCall& call) {
  const std::string& axis = call.attrs.str("axis");
  int64_t start = 0;
  for (const Array& x : call.in) {
    if (call.kind == ir::OpKind::concat) {
      const int64_t size = x.shape().size_of(axis);
      copy_to_part(x, part_of(call.out[0], axis, start, size), call.pool);
      start += size;
    } else {
      Part p = part_of(call.out[0], axis, start++, 1);
      const int64_t at = p.view.shape.find(axis);
      p.view.shape.axes.erase(p.view.shape.axes.begin() + at);
      p.view.strides.erase(p.view.strides.begin() + at);
      copy_to_part(x, p, call.pool);
    }
  }
  return Status();
}

Status run_pad(const OpCall& call) {
  std::memset(call.out[0].data, 0, static_cast<size_t>(call.out[0].shape().bytes()));
  const std::string& axis = call.attrs.str("axis");
  copy_to_part(call.in[0],
               part_of(call.out[0], axis, call.attrs.i64("low"), call.in[0].shape().size_of(axis)),
               call.pool);
  return Status();
}

Status run_dynamic_slice(const OpCall& call) {
  const std::string& axis = call.attrs.str("axis");
  const int64_t size = call.attrs.i64("size");
  const int64_t start =
      std::clamp<int64_t>(*call.in[1].as<int32_t>(), 0, call.in[0].shape().size_of(axis) - size);
  copy_from_part(part_of(call.in[0], axis, start, size), call.out[0], call.pool);
  return Status();
}

Status run_dynamic_update_slice(const OpCall& call) {
  const Array &x = call.in[0], &update = call.in[1], &starts = call.in[2], &out = call.out[0];
  const std::string& axis = call.attrs.str("axis");
  const int64_t size = update.shape().size_of(axis), limit = x.shape().size_of(axis) - size;
  if (x.data != out.data) std::memcpy(out.data, x.data, static_cast<size_t>(x.shape().bytes()));
  // One copy per start: its axes are fixed at the start's index in update and result.
  const ir::Shape& s = starts.shape();
  for (int64_t i = 0; i < s.count(); ++i) {
    const int64_t start = std::clamp<int64_t>(starts.as<int32_t>()[i], 0, limit);
    Part to = part_of(out, axis, start, size);
    Part from{*update.view, update};
    int64_t rest = i;
    for (size_t k = s.axes.size(); k-- > 0;) {
      const int64_t index = rest % s.axes[k].size;
      rest /= s.axes[k].size;
      for (Part* p : {&to, &from}) {
        const auto at = static_cast<size_t>(p->view.shape.find(s.axes[k].name));
        p->array.data += index * p->view.strides[at] * ir::dtype_size(x.dtype());
        p->view.shape.axes[at].size = 1;
      }
    }
    from.array.view = &from.view;
    copy_to_part(from.array, to, call.pool);
  }
  return Status();
}

}  // namespace ostro::cpu
