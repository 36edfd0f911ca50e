// A checkpoint whose workers are others now: who writes which cell.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/fleet/cells/save_cells.h"
#include "ostro/fleet/exchange/gather_all.h"

namespace ostro::fleet {
namespace {

using checkpoint::CellData;

struct Having {
  int64_t step = -1, cells = 0;  // -1: nothing
};

// The number of each tensor's first cell, when all cells of a state are counted; the last is their number.
std::vector<size_t> first_cells(const std::vector<checkpoint::TensorSpec>& tensors) {
  std::vector<size_t> first{0};
  for (const auto& spec : tensors) first.push_back(first.back() + cells_of(spec).size());
  return first;
}

}  // namespace

Result<CellSnapshot> deal_again(runtime::Collectives& c, int64_t step, const CellSnapshot* mine) {
  if (mine != nullptr && mine->info.step != step) mine = nullptr;  // left over from another leader
  const std::vector<size_t> first = first_cells(mine == nullptr ? decltype(mine->tensors)() : mine->tensors);
  Bytes message;
  append_value(message,
               mine == nullptr ? Having() : Having{mine->info.step, static_cast<int64_t>(first.back())});
  ASSIGN_OR_RETURN(const std::vector<Bytes> heads, gather_all(c, message));
  std::vector<Having> have;
  for (const Bytes& head : heads) have.push_back(Reader(head).value<Having>());
  const Having newest = *std::max_element(have.begin(), have.end(),
                                          [](const Having& a, const Having& b) { return a.step < b.step; });
  CellSnapshot out;
  if (newest.step < 0) return out;
  const bool takes_part = mine != nullptr && mine->info.step == newest.step;
  const auto number = [&](const CellData& cell) { return first[cell.tensor] + cell.cell; };
  Bytes map;
  if (takes_part) map.resize(static_cast<size_t>(newest.cells));
  if (takes_part)
    for (const auto* list : {&mine->cells, &mine->spare})
      for (const CellData& cell : *list) map[number(cell)] = std::byte{1};
  std::vector<size_t> expected;
  for (const Having& h : have) expected.push_back(h.step == newest.step ? static_cast<size_t>(h.cells) : 0);
  ASSIGN_OR_RETURN(const std::vector<Bytes> maps, gather_all(c, map, expected));
  std::vector<int64_t> writer(static_cast<size_t>(newest.cells), -1);
  for (size_t rank = maps.size(); rank-- > 0;)
    for (size_t i = 0; i < maps[rank].size(); ++i)
      if (maps[rank][i] != std::byte{0}) writer[i] = static_cast<int64_t>(rank);
  if (std::find(writer.begin(), writer.end(), -1) != writer.end())
    return not_found(
        fmt::format("the checkpoint of step {} was not complete when workers were lost, and {} of "
                    "its {} cells are at no other worker",
                    newest.step, std::count(writer.begin(), writer.end(), -1), newest.cells));
  if (!takes_part) return out;
  out.info = mine->info;
  out.tensors = mine->tensors;
  std::vector<bool> taken(writer.size());
  for (const auto* list : {&mine->cells, &mine->spare})
    for (const CellData& cell : *list) {
      const bool write = writer[number(cell)] == c.rank() && !taken[number(cell)];
      if (write) taken[number(cell)] = true;
      (write ? out.cells : out.spare).push_back(cell);
    }
  return out;
}

}  // namespace ostro::fleet
