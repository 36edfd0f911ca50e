#include "ostro/products/int8_dot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ostro/products/gemm_block.h"
#include "ostro/products/int8_admission.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
namespace {

// Bytes of the panels of B that are multiplied with one panel of A after the other, and so stay in L2, which
// has 512 KiB on the smallest machines.
constexpr int64_t kGroupBBytes = 384 << 10;
// Tasks for each thread, so that all end at about the same time.
constexpr int64_t kDotTasksAThread = 8;
// Panels that one task packs.
constexpr int64_t kPanelsAPack = 4;
// The least C that is written past the caches: as large as L2, in which it would not stay.
constexpr int64_t kStreamCBytes = 4 << 20;
// Products of so few rows read a panel of B once or twice. Packing all of B first would write it to memory
// and read it from there again, so each panel is packed where it is read.
constexpr int64_t kFewInt8Rows = 16;
// The most rows of a panel of A.
constexpr int64_t kMostRows = 32;

thread_local Scratch dot_packed;  // operands that were not packed before, of all products of a call
thread_local Scratch dot_tiles;   // the tiles of one thread
thread_local Scratch dot_panel;   // a panel of B that is packed where it is read
thread_local Scratch dot_rows;    // a block of a panel whose rows lie anywhere

int64_t to_line(int64_t bytes) { return ceil_div(bytes, kAlignment) * static_cast<int64_t>(kAlignment); }

}  // namespace

// One thread's part of a product: panels [a_begin, a_end) by [b_begin, b_end).
struct Int8Dot::Task {
  const Int8Dot* dot;
  const std::byte *a, *b;
  void* c;
  int64_t a_begin, a_end, b_begin, b_end;
  bool go_on;
  bool stream;                // C is written past the caches
  const Int8Operand* b_rows;  // of which panels are packed where they are read; else null, and b has them
};

Int8Dot::Int8Dot(Int8DotSpec spec, machine::Isa isa) : Int8Dot(std::move(spec), int8_kernel(isa)) {}

Int8Dot::Int8Dot(Int8DotSpec spec, const DotInt8Kernel& kernel) : spec_(std::move(spec)), kernel_(&kernel) {
  OSTRO_CHECK(kernel.mr <= kMostRows && kernel.nr == kernel.store().nr,
              "the int8 kernel {} has {} x {} outputs, its store {} columns", kernel.name, kernel.mr,
              kernel.nr, kernel.store().nr);
  OSTRO_CHECK(spec_.m >= 0 && spec_.n >= 0, "an int8 product of {} x {}", spec_.m, spec_.n);
  OSTRO_CHECK(spec_.c_row.empty() || static_cast<int64_t>(spec_.c_row.size()) == spec_.m,
              "places of {} rows for an int8 product of {} rows", spec_.c_row.size(), spec_.m);
  if (spec_.c_stride == 0) spec_.c_stride = spec_.n;
  if (spec_.tree_counts.empty()) spec_.tree_counts = {spec_.blocks.leaves()};
  int64_t product = 1;
  for (const int64_t count : spec_.tree_counts) {
    OSTRO_CHECK(count >= 1, "a tree over {} leaves", count);
    product *= count;
    tree_slots_ += std::bit_width(static_cast<uint64_t>(count - 1));  // ceil(log2(count))
  }
  OSTRO_CHECK(product == spec_.blocks.leaves(), "trees over {} leaves for {} leaves", product,
              spec_.blocks.leaves());
  packed_begin_.push_back(0);
  for (const Int8Blocks::Block& block : spec_.blocks.blocks()) {
    steps_.push_back(static_cast<int32_t>(ceil_div(block.count, kernel_->k_unit) * kernel_->k_unit));
    packed_begin_.push_back(packed_begin_.back() + steps_.back());
  }
}

int64_t Int8Dot::panel_bytes(bool left) const {
  const int64_t steps = packed_begin_.back(), blocks = spec_.blocks.count();
  return left ? to_line(kernel_->mr * (steps * kernel_->a_bytes + 8 * blocks))
              : to_line(kernel_->nr * (steps * kernel_->b_bytes + 4 * blocks));
}

int64_t Int8Dot::packed_bytes(bool left) const {
  return panel_bytes(left) * (left ? ceil_div(spec_.m, kernel_->mr) : ceil_div(spec_.n, kernel_->nr));
}

void Int8Dot::pack_panels(const Int8Operand& operand, bool left, int64_t begin, int64_t end,
                          std::byte* out) const {
  const int64_t rows = left ? spec_.m : spec_.n, width = left ? kernel_->mr : kernel_->nr;
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * width, wanted = std::min(width, rows - first);
    const auto row_of = [&](int64_t row) {
      return operand.row_at == nullptr ? first + row : operand.row_at[first + row];
    };
    std::byte* to = out + (panel - begin) * panel_bytes(left);
    for (int64_t i = 0; i < spec_.blocks.count(); ++i) {
      const Int8Blocks::Block& block = spec_.blocks.blocks()[static_cast<size_t>(i)];
      const int64_t steps = steps_[static_cast<size_t>(i)];
      Int8PanelSource source = {.q = operand.q + first * operand.stride + block.begin,
                                .stride = operand.stride,
                                .rows = static_cast<int>(wanted),
                                .count = block.count,
                                .steps = steps};
      if (operand.row_at != nullptr) {
        auto* const rows_here = reinterpret_cast<int8_t*>(dot_rows.get(wanted * block.count));
        for (int64_t row = 0; row < wanted; ++row)
          std::memcpy(rows_here + row * block.count, operand.q + row_of(row) * operand.stride + block.begin,
                      static_cast<size_t>(block.count));
        source.q = rows_here, source.stride = block.count;
      }
      auto* scales =
          reinterpret_cast<float*>(to + width * steps * (left ? kernel_->a_bytes : kernel_->b_bytes));
      if (left)
        kernel_->pack_a(source, to, reinterpret_cast<int32_t*>(scales + width));
      else
        kernel_->pack_b(source, to);
      for (int64_t row = 0; row < width; ++row)
        scales[row] = row < wanted ? operand.scales[row_of(row) * operand.scale_stride + i] : 0.0f;
      to += left ? kernel_->a_block_bytes(steps) : kernel_->b_block_bytes(steps);
    }
  }
}

void Int8Dot::pack(machine::ThreadPool& pool, const Int8Operand& operand, bool left, PackedInt8& out) const {
  out.bytes_ = packed_bytes(left);
  if (out.bytes_ > out.capacity_) {
    out.data_ = allocate_aligned(static_cast<size_t>(out.bytes_));
    out.capacity_ = out.bytes_;
  }
  out.kernel_ = kernel_;
  out.blocks_ = spec_.blocks;
  out.left_ = left;
  out.rows_ = left ? spec_.m : spec_.n;
  const int64_t panels = ceil_div(out.rows_, left ? kernel_->mr : kernel_->nr);
  pool.run_tiles(ceil_div(panels, kPanelsAPack), [&](int64_t i) {
    const int64_t first = i * kPanelsAPack;
    pack_panels(operand, left, first, std::min(panels, first + kPanelsAPack),
                out.data_.get() + first * panel_bytes(left));
  });
}

void Int8Dot::pack_a(machine::ThreadPool& pool, const Int8Operand& a, PackedInt8& out) const {
  pack(pool, a, true, out);
}

void Int8Dot::pack_b(machine::ThreadPool& pool, const Int8Operand& b, PackedInt8& out) const {
  pack(pool, b, false, out);
}

// The sums of a tile over `count` parts from `first` on of the tree at `level`, in slot `slot`. A part is a
// leaf at the innermost level, else a whole tree of the next level. Slots above `slot` are used on the way.
void Int8Dot::run_tile(const Panels& at, size_t level, int64_t first, int64_t count, int slot) const {
  const int64_t floats = int64_t{kernel_->mr} * kernel_->nr;
  float* const tile = at.slots + slot * floats;
  if (count == 1) {
    if (level + 1 < spec_.tree_counts.size()) {
      const int64_t inner = spec_.tree_counts[level + 1];
      return run_tile(at, level + 1, first * inner, inner, slot);
    }
    const int64_t begin = spec_.blocks.leaf_begin(first), blocks = spec_.blocks.leaf_begin(first + 1) - begin;
    if (blocks == 0 && !at.go_on) std::fill(tile, tile + floats, 0.0f);
    if (blocks == 0) return;
    const int64_t packed = packed_begin_[static_cast<size_t>(begin)];
    kernel_->multiply(
        {.a = at.a + kernel_->a_block_bytes(0) * begin + kernel_->mr * kernel_->a_bytes * packed,
         .b = at.b + kernel_->b_block_bytes(0) * begin + kernel_->nr * kernel_->b_bytes * packed,
         .steps = steps_.data() + begin,
         .blocks = blocks,
         .rows = at.rows,
         .c = tile,
         .first = !at.go_on});
    return;
  }
  const auto left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1)));
  run_tile(at, level, first, left, slot);
  run_tile(at, level, first + left, count - left, slot + 1);
  const float* other = tile + floats;
  for (int64_t i = 0; i < floats; ++i) tile[i] = tile[i] + other[i];
}

int64_t Int8Dot::c_begin(int64_t row) const {
  return spec_.c_row.empty() ? row * spec_.c_stride : spec_.c_row[static_cast<size_t>(row)];
}

void Int8Dot::store(const float* tile, const Task& task, int64_t row, int64_t rows, int64_t column) const {
  std::array<int64_t, kMostRows> offsets;
  for (int64_t i = 0; i < rows; ++i) offsets[static_cast<size_t>(i)] = c_begin(row + i) + column;
  const TileRows finished = {tile, static_cast<int>(rows),
                             static_cast<int>(std::min<int64_t>(kernel_->nr, spec_.n - column)),
                             offsets.data(), task.stream};
  if (spec_.out == GemmType::kF32)
    kernel_->store().store_f32(finished, static_cast<float*>(task.c));
  else
    kernel_->store().store_bf16(finished, static_cast<uint16_t*>(task.c));
}

void Int8Dot::load(float* tile, const void* c, int64_t row, int64_t rows, int64_t column) const {
  const int64_t nr = kernel_->nr, columns = std::min(nr, spec_.n - column);
  std::fill(tile, tile + kernel_->mr * nr, 0.0f);
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(tile + i * nr, static_cast<const float*>(c) + c_begin(row + i) + column,
                static_cast<size_t>(columns) * 4);
}

void Int8Dot::run_task(const Task& task) const {
  const int64_t mr = kernel_->mr, nr = kernel_->nr;
  auto* slots = reinterpret_cast<float*>(dot_tiles.get(tree_slots_ * mr * nr * 4));
  const auto tile = [&](int64_t i, int64_t j, const std::byte* b) {
    const int64_t rows = std::min(mr, spec_.m - i * mr);
    if (task.go_on) load(slots, task.c, i * mr, rows, j * nr);
    run_tile({.a = task.a + i * panel_bytes(true),
              .b = b,
              .rows = static_cast<int>(rows),
              .go_on = task.go_on,
              .slots = slots},
             0, 0, spec_.tree_counts[0], 0);
    store(slots, task, i * mr, rows, j * nr);
  };
  if (kernel_->enter != nullptr) kernel_->enter();
  if (task.b_rows != nullptr) {
    std::byte* const panel = dot_panel.get(panel_bytes(false));
    for (int64_t j = task.b_begin; j < task.b_end; ++j) {
      pack_panels(*task.b_rows, false, j, j + 1, panel);
      for (int64_t i = task.a_begin; i < task.a_end; ++i) tile(i, j, panel);
    }
  } else {
    for (int64_t i = task.a_begin; i < task.a_end; ++i)
      for (int64_t j = task.b_begin; j < task.b_end; ++j) tile(i, j, task.b + j * panel_bytes(false));
  }
  if (kernel_->leave != nullptr) kernel_->leave();
}

// Cuts a product into ranges of columns whose B stays in L2, and those into ranges of rows, so that there are
// about `wanted` tasks. Tasks that read the same B follow each other.
void Int8Dot::plan_tasks(const Task& whole, int64_t wanted, std::vector<Task>& tasks) const {
  const int64_t a_panels = whole.a_end, b_panels = whole.b_end;
  if (a_panels == 0 || b_panels == 0) return;
  const int64_t together = std::max<int64_t>(1, kGroupBBytes / std::max<int64_t>(1, panel_bytes(false)));
  int64_t columns = ceil_div(b_panels, together);
  const int64_t rows =
      whole.b_rows != nullptr ? 1 : std::clamp<int64_t>(ceil_div(wanted, columns), 1, a_panels);
  columns = std::clamp<int64_t>(ceil_div(wanted, rows), columns, b_panels);
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row) {
      tasks.push_back(whole);
      tasks.back().a_begin = a_panels * row / rows, tasks.back().a_end = a_panels * (row + 1) / rows;
      tasks.back().b_begin = b_panels * column / columns,
      tasks.back().b_end = b_panels * (column + 1) / columns;
    }
}

const std::byte* Int8Dot::packed_of(const Int8Side& side, bool left) const {
  if (side.packed == nullptr) return nullptr;
  const PackedInt8& packed = *side.packed;
  OSTRO_CHECK(
      packed.kernel_ == kernel_ && packed.left_ == left && packed.rows_ == (left ? spec_.m : spec_.n) &&
          packed.blocks_ == spec_.blocks,
      "the {} operand was packed for another product or instruction set: {} rows of {} as {}, here {} of "
      "{} for {}",
      left ? "left" : "right", packed.rows_, packed.blocks_.k(),
      packed.kernel_ == nullptr ? "nothing" : packed.kernel_->name, left ? spec_.m : spec_.n, k(),
      kernel_->name);
  return packed.data_.get();
}

bool Int8Dot::packs_where_read(const Int8Side& b) const {
  return b.packed == nullptr && spec_.m <= kFewInt8Rows;
}

// Packs what is not packed yet, of all products, as one job; then runs the tasks of all of them as another.
void Int8Dot::run_calls(machine::ThreadPool& pool, std::span<const Int8DotCall> calls, bool go_on) {
  struct Part {
    const Int8Dot* dot;
    const Int8Operand* operand;
    bool left;
    int64_t begin, end;
    std::byte* out;
  };
  int64_t bytes = 0;
  double work = 0;
  for (const Int8DotCall& call : calls) {
    if (call.a.packed == nullptr) bytes += call.dot->packed_bytes(true);
    if (call.b.packed == nullptr && !call.dot->packs_where_read(call.b))
      bytes += call.dot->packed_bytes(false);
    work += call.dot->work();
  }
  std::byte* room = dot_packed.get(bytes);
  std::vector<Part> parts;
  std::vector<Task> tasks;
  for (const Int8DotCall& call : calls) {
    const Int8Dot& d = *call.dot;
    const auto side = [&](const Int8Side& operand, bool left, int64_t panels) {
      if (const std::byte* packed = d.packed_of(operand, left)) return packed;
      for (int64_t i = 0; i < panels; i += kPanelsAPack)
        parts.push_back(
            {&d, &operand.rows, left, i, std::min(panels, i + kPanelsAPack), room + i * d.panel_bytes(left)});
      const std::byte* at = room;
      room += d.packed_bytes(left);
      return at;
    };
    const int64_t a_panels = ceil_div(d.m(), d.kernel_->mr), b_panels = ceil_div(d.n(), d.kernel_->nr);
    const bool where_read = d.packs_where_read(call.b);
    const Task whole = {.dot = &d,
                        .a = side(call.a, true, a_panels),
                        .b = where_read ? nullptr : side(call.b, false, b_panels),
                        .c = call.c,
                        .a_begin = 0,
                        .a_end = a_panels,
                        .b_begin = 0,
                        .b_end = b_panels,
                        .go_on = go_on,
                        .stream = !go_on && d.c_bytes() > kStreamCBytes,
                        .b_rows = where_read ? &call.b.rows : nullptr};
    const double share = pool.threads() == 1 ? 0 : pool.threads() * kDotTasksAThread * (d.work() / work);
    d.plan_tasks(whole, std::max<int64_t>(1, static_cast<int64_t>(share)), tasks);
  }
  pool.run_tiles(static_cast<int64_t>(parts.size()), [&](int64_t i) {
    const Part& part = parts[static_cast<size_t>(i)];
    part.dot->pack_panels(*part.operand, part.left, part.begin, part.end, part.out);
  });
  pool.run_tiles(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const Task& task = tasks[static_cast<size_t>(i)];
    task.dot->run_task(task);
  });
}

int64_t Int8Dot::c_bytes() const { return spec_.m * spec_.n * element_bytes(spec_.out); }

double Int8Dot::work() const {
  return static_cast<double>(spec_.m) * static_cast<double>(spec_.n) * static_cast<double>(k() + 1) + 1;
}

void Int8Dot::run(machine::ThreadPool& pool, const Int8Side& a, const Int8Side& b, void* c,
                  bool go_on) const {
  OSTRO_CHECK(!go_on || (spec_.out == GemmType::kF32 && spec_.blocks.leaves() == 1),
              "an int8 product of {} leaves that goes on from its result", spec_.blocks.leaves());
  const Int8DotCall call{this, a, b, c};
  run_calls(pool, {&call, 1}, go_on);
}

void Int8Dot::run_all(machine::ThreadPool& pool, std::span<const Int8DotCall> calls) {
  run_calls(pool, calls, false);
}

}  // namespace ostro::kernels
