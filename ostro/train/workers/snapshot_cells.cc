#include "ostro/io/arrays/box.h"
#include "ostro/train/step/snapshot.h"
#include "ostro/train/workers/cell_boxes.h"
#include "ostro/train/workers/messages.h"
#include "ostro/train/workers/save_cells.h"

namespace ostro::train {
namespace {

using checkpoint::Box;
using checkpoint::CellData;
using checkpoint::TensorSpec;
using runtime::Buffer;

// A cell of a checkpoint of which several workers own a part.
struct SplitCell {
  size_t cell;
  Box box;
  int64_t writer;
  std::vector<std::pair<int64_t, Box>> parts;  // by owner, ascending
};

// How a parameter's cells are dealt out; its moments' are, too.
struct Deal {
  std::vector<std::pair<size_t, Box>> whole;  // cells that this worker owns and writes
  std::vector<SplitCell> split;               // that it has a part of, or writes
};

Deal deal_out(const WorkerPlan& plan, size_t k, const std::vector<Box>& cells, int64_t rank) {
  const std::vector<int64_t> holders = first_holders(plan, k);
  Deal deal;
  for (size_t c = 0; c < cells.size(); ++c) {
    SplitCell split{c, cells[c], 0, {}};
    bool mine = false;
    for (const int64_t holder : holders)
      if (const auto part = common(cells[c], owned_box(plan, k, holder))) {
        split.parts.emplace_back(holder, *part);
        mine |= holder == rank;
      }
    if (!mine) continue;
    if (split.parts.size() == 1) {
      deal.whole.emplace_back(c, cells[c]);
      continue;
    }
    split.writer = split.parts[c % split.parts.size()].first;
    deal.split.push_back(std::move(split));
  }
  return deal;
}

void copy_part(const Box& part, std::span<const std::byte> from, const Box& from_box, std::span<std::byte> to,
               const Box& to_box, int64_t item) {
  io::copy_box(from, from_box.shape, start_in(part, from_box), to, to_box.shape, start_in(part, to_box),
               part.shape, item);
}

// Sends this worker's parts to the writers, and puts together the cells that it writes.
Status gather_split(const Deal& deal, runtime::Collectives& c, const Box& own, const Buffer& buffer,
                    size_t tensor, std::vector<CellData>& out) {
  const int64_t item = ir::dtype_size(buffer.shape().dtype), rank = c.rank();
  std::vector<Bytes> send(static_cast<size_t>(c.size()));
  std::vector<size_t> expected(send.size());
  for (const SplitCell& cell : deal.split)
    for (const auto& [owner, part] : cell.parts) {
      const auto bytes = static_cast<size_t>(io::product(part.shape) * item);
      if (cell.writer == rank && owner != rank) expected[static_cast<size_t>(owner)] += bytes;
      if (cell.writer == rank || owner != rank) continue;
      Bytes& message = send[static_cast<size_t>(cell.writer)];
      message.resize(message.size() + bytes);
      copy_part(part, buffer.bytes(), own, std::span(message).last(bytes), part, item);
    }
  std::vector<int64_t> peers;
  std::vector<Bytes> messages;
  std::vector<size_t> sizes;
  for (size_t w = 0; w < send.size(); ++w)
    if (!send[w].empty() || expected[w] > 0) {
      peers.push_back(static_cast<int64_t>(w));
      messages.push_back(std::move(send[w]));
      sizes.push_back(expected[w]);
    }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, exchange(c, peers, messages, sizes));
  std::vector<Reader> readers;
  std::vector<size_t> reader_of(send.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    reader_of[static_cast<size_t>(peers[i])] = i;
    readers.emplace_back(received[i]);
  }
  for (const SplitCell& cell : deal.split) {
    if (cell.writer != rank) continue;
    auto memory = std::make_shared<Bytes>(static_cast<size_t>(io::product(cell.box.shape) * item));
    for (const auto& [owner, part] : cell.parts) {
      if (owner == rank) {
        copy_part(part, buffer.bytes(), own, *memory, cell.box, item);
        continue;
      }
      Bytes dense(static_cast<size_t>(io::product(part.shape) * item));
      readers[reader_of[static_cast<size_t>(owner)]].read(dense);
      copy_part(part, dense, part, *memory, cell.box, item);
    }
    const std::span<const std::byte> bytes = *memory;
    out.push_back({tensor, cell.cell, bytes, cell.box.shape, checkpoint::Extents(cell.box.shape.size(), 0),
                   std::move(memory)});
  }
  return Status();
}

}  // namespace

Result<CellSnapshot> snapshot_cells(const WorkerPlan& plan, runtime::Collectives& c, const State& owned,
                                    const optim::Boxes& boxes) {
  std::vector<ir::Shape> shapes;
  for (size_t k = 0; k < plan.n; ++k) shapes.push_back(plan.shape(k));
  CellSnapshot out;
  out.tensors = state_tensors(plan.programs.init.result_names, shapes, boxes);
  const std::vector<Buffer>* lists[] = {&owned.params, &owned.first_moment, &owned.second_moment};
  for (size_t k = 0; k < plan.n; ++k) {
    const Deal deal = deal_out(plan, k, cells_of(out.tensors[k]), c.rank());
    const Box own = owned_box(plan, k, c.rank());
    for (size_t part = 0; part < 3; ++part) {
      const size_t tensor = part * plan.n + k;
      const auto buffer = std::make_shared<const Buffer>((*lists[part])[k]);
      for (const auto& [cell, box] : deal.whole)
        out.cells.push_back({tensor, cell, buffer->bytes(), own.shape, start_in(box, own), buffer});
      RETURN_IF_ERROR(gather_split(deal, c, own, *buffer, tensor, out.cells));
    }
  }
  return out;
}

}  // namespace ostro::train
