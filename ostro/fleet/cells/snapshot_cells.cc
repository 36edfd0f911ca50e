#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "ostro/checkpoint/manifest.h"
#include "ostro/fleet/cells/cell_boxes.h"
#include "ostro/fleet/cells/save_cells.h"
#include "ostro/fleet/exchange/gather_all.h"
#include "ostro/io/arrays/box.h"
#include "ostro/runtime/collectives.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::fleet {
namespace {

// Gives all workers the record of worker 0 about a state that is saved: its step and kind, the config, the
// head of the chain. All workers call it.
Status share_info(runtime::Collectives& c, checkpoint::Info& info) {
  std::string* const texts[] = {&info.numerics_version, &info.config, &info.chain_head, &info.measured};
  using Sizes = std::array<int64_t, 6>;
  Bytes mine, body;
  append_value(mine, Sizes{info.step, info.kind == checkpoint::Kind::kPermanent ? 1 : 0,
                           static_cast<int64_t>(texts[0]->size()), static_cast<int64_t>(texts[1]->size()),
                           static_cast<int64_t>(texts[2]->size()), static_cast<int64_t>(texts[3]->size())});
  ASSIGN_OR_RETURN(const std::vector<Bytes> heads, gather_all(c, mine));
  const auto sizes = Reader(heads[0]).value<Sizes>();
  if (c.rank() == 0)
    for (const std::string* text : texts) append(body, std::as_bytes(std::span(*text)));
  std::vector<size_t> expected(heads.size(), 0);
  expected[0] = static_cast<size_t>(sizes[2] + sizes[3] + sizes[4] + sizes[5]);
  ASSIGN_OR_RETURN(const std::vector<Bytes> bodies, gather_all(c, body, expected));
  Reader reader(bodies[0]);
  info.step = sizes[0];
  info.kind = sizes[1] != 0 ? checkpoint::Kind::kPermanent : checkpoint::Kind::kTemporary;
  for (size_t i = 0; i < 4; ++i) {
    texts[i]->resize(static_cast<size_t>(sizes[i + 2]));
    reader.read(std::as_writable_bytes(std::span(*texts[i])));
  }
  return Status();
}

using checkpoint::CellData;
using runtime::Buffer;

using Places = std::vector<std::pair<size_t, FileBox>>;  // cells by number

// A cell of a checkpoint of which several workers own a part.
struct SplitCell {
  size_t cell;
  FileBox box;
  int64_t writer;
  std::vector<int64_t> receivers;                  // the writer, and who could write it instead
  std::vector<std::pair<int64_t, FileBox>> parts;  // by owner, ascending
};

// What worker `rank` does with the cells of an array.
struct Deal {
  Places written, spare, mirror;  // whole cells: owned, and of the worker that it mirrors
  std::vector<SplitCell> split;   // that it has a part of, or receives
};

// For each worker the one that has the same elements too: as an owner, or as a copy.
std::vector<int64_t> second_holders(const WorkerPlan& plan, size_t k) {
  if (std::binary_search(plan.mirrored.begin(), plan.mirrored.end(), k) && !plan.holders.empty())
    return plan.holders;
  std::vector<FileBox> boxes;
  for (int64_t rank = 0; rank < plan.mesh().size(); ++rank) boxes.push_back(owned_box(plan, k, rank));
  std::vector<int64_t> out(boxes.size(), -1);
  for (size_t a = 0; a < boxes.size(); ++a) {
    for (size_t b = 0; b < boxes.size() && out[a] < 0; ++b)
      if (a != b && boxes[a].start == boxes[b].start) out[a] = static_cast<int64_t>(b);
  }
  return out;
}

Deal deal_out(const WorkerPlan& plan, size_t k, const std::vector<FileBox>& cells, int64_t rank) {
  const std::vector<int64_t> owners = first_holders(plan, k), second = second_holders(plan, k);
  const FileBox own = owned_box(plan, k, rank);
  Deal deal;
  for (size_t c = 0; c < cells.size(); ++c) {
    SplitCell split{c, cells[c], 0, {}, {}};
    bool mine = false;
    for (const int64_t owner : owners)
      if (const auto part = shared_part(cells[c], owned_box(plan, k, owner))) {
        split.parts.emplace_back(owner, *part);
        mine |= owner == rank;
      }
    split.writer = split.parts[c % split.parts.size()].first;
    const int64_t other = second[static_cast<size_t>(split.writer)];
    if (split.parts.size() == 1) {
      if (mine) deal.written.emplace_back(c, cells[c]);
      if (other == rank && !mine)
        (own.start == owned_box(plan, k, split.writer).start ? deal.spare : deal.mirror)
            .emplace_back(c, cells[c]);
      continue;
    }
    split.receivers = {split.writer};
    if (other >= 0) split.receivers.push_back(other);
    if (mine || split.writer == rank || other == rank) deal.split.push_back(std::move(split));
  }
  return deal;
}

void copy_part(const FileBox& part, std::span<const std::byte> from, const FileBox& from_box,
               std::span<std::byte> to, const FileBox& to_box, int64_t item) {
  io::copy_box(from, from_box.shape, start_in(part, from_box), to, to_box.shape, start_in(part, to_box),
               part.shape, item);
}

// Whether this worker owns a part of the cell; then it is the first that owns it.
const FileBox* part_of(const SplitCell& cell, int64_t rank) {
  for (const auto& [owner, part] : cell.parts)
    if (owner == rank) return &part;
  return nullptr;
}

// Sends this worker's parts to those who receive them, and puts together the cells that it receives.
Status gather_split(const Deal& deal, runtime::Collectives& c, const FileBox& own, const Buffer& buffer,
                    size_t tensor, CellSnapshot& out) {
  const int64_t item = ir::dtype_size(buffer.shape().dtype), rank = c.rank();
  const auto bytes_of = [&](const FileBox& box) {
    return static_cast<size_t>(io::product(box.shape) * item);
  };
  std::vector<Bytes> send(static_cast<size_t>(c.size()));
  std::vector<size_t> expected(send.size());
  for (const SplitCell& cell : deal.split)
    for (const int64_t receiver : cell.receivers) {
      if (receiver == rank) {
        for (const auto& [owner, part] : cell.parts)
          if (owner != rank) expected[static_cast<size_t>(owner)] += bytes_of(part);
      } else if (const FileBox* part = part_of(cell, rank)) {
        Bytes& message = send[static_cast<size_t>(receiver)];
        message.resize(message.size() + bytes_of(*part));
        copy_part(*part, buffer.bytes(), own, std::span(message).last(bytes_of(*part)), *part, item);
      }
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
    if (std::find(cell.receivers.begin(), cell.receivers.end(), rank) == cell.receivers.end()) continue;
    auto memory = std::make_shared<Bytes>(bytes_of(cell.box));
    for (const auto& [owner, part] : cell.parts) {
      if (owner == rank) {
        copy_part(part, buffer.bytes(), own, *memory, cell.box, item);
        continue;
      }
      Bytes dense(bytes_of(part));
      readers[reader_of[static_cast<size_t>(owner)]].read(dense);
      copy_part(part, dense, part, *memory, cell.box, item);
    }
    const std::span<const std::byte> bytes = *memory;
    (cell.writer == rank ? out.cells : out.spare)
        .push_back({tensor, cell.cell, bytes, cell.box.shape, checkpoint::Extents(cell.box.shape.size(), 0),
                    std::move(memory)});
  }
  return Status();
}

}  // namespace

Result<CellSnapshot> snapshot_cells(const WorkerPlan& plan, runtime::Collectives& c,
                                    const train::State& owned, const train::State& mirror,
                                    const optim::Boxes& boxes, const checkpoint::Info& info) {
  CellSnapshot out;
  out.info = info;
  RETURN_IF_ERROR(share_info(c, out.info));
  out.tensors = train::state_tensors(plan.arrays, boxes);
  const auto add = [](std::vector<CellData>& to, size_t tensor, const Places& cells, const FileBox& box,
                      const Buffer& from) {
    const auto buffer = std::make_shared<const Buffer>(from);
    for (const auto& [cell, place] : cells)
      to.push_back({tensor, cell, buffer->bytes(), box.shape, start_in(place, box), buffer});
  };
  for (size_t k = 0, copy = 0; k < plan.arrays.size(); ++k) {
    const Deal deal = deal_out(plan, k, cells_of(out.tensors[k]), c.rank());
    const FileBox own = owned_box(plan, k, c.rank());
    ASSIGN_OR_RETURN(const Buffer buffer, train::array_of(owned, k).to_host());
    add(out.cells, k, deal.written, own, buffer);
    add(out.spare, k, deal.spare, own, buffer);
    if (!deal.mirror.empty()) {
      ASSIGN_OR_RETURN(const Buffer copies, train::array_of(mirror, copy).to_host());
      add(out.spare, k, deal.mirror, owned_box(plan, k, *plan.mirror_of(c.rank())), copies);
    }
    RETURN_IF_ERROR(gather_split(deal, c, own, buffer, k, out));
    copy += copy < plan.mirrored.size() && plan.mirrored[copy] == k;
  }
  return out;
}

}  // namespace ostro::fleet
