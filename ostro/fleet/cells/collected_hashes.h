// Collected: joins the hashes of the cells that several workers wrote into the manifest of one checkpoint.
// Only for shared_save.cc.
//
// Each worker gives hashes_text() of its cells; the leader adds the texts of all workers and then asks for
// the manifest. Errors: kCorrupt when a cell does not exist, was written by two workers, or by none. Not
// thread-safe.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ostro/checkpoint/manifest.h"
#include "ostro/checkpoint/save_parts.h"

namespace ostro::fleet {

// The hash of one cell; hashes_text() is a row of these, as they lie in memory.
struct CellHash {
  uint64_t tensor = 0, cell = 0;
  Sha256Digest hash = {};
};

// The message of one worker: the hashes of `cells`, in the same order.
inline std::string hashes_text(const std::vector<checkpoint::CellData>& cells,
                               const std::vector<Sha256Digest>& hashes) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    const CellHash line{cells[i].tensor, cells[i].cell, hashes[i]};
    text.append(reinterpret_cast<const char*>(&line), sizeof line);
  }
  return text;
}

// The hashes that the leader has: each cell from exactly one worker.
class Collected {
 public:
  Collected(checkpoint::Info info, std::vector<checkpoint::TensorSpec> tensors) {
    manifest_.info = std::move(info);
    for (const checkpoint::TensorSpec& spec : tensors) {
      manifest_.cells.emplace_back(cells_of(spec).size());
      writer_.emplace_back(manifest_.cells.back().size(), -1);
    }
    manifest_.tensors = std::move(tensors);
  }

  Status add(int64_t rank, size_t tensor, size_t cell, const Sha256Digest& hash) {
    if (tensor >= writer_.size() || cell >= writer_[tensor].size())
      return corrupt(
          fmt::format("worker {} wrote cell {} of tensor {}, which the state has not", rank, cell, tensor));
    int64_t& writer = writer_[tensor][cell];
    if (writer >= 0)
      return corrupt(fmt::format("cell {} of {} was written by worker {} and by worker {}", cell,
                                 manifest_.tensors[tensor].path, writer, rank));
    writer = rank;
    manifest_.cells[tensor][cell] = hash;
    return Status();
  }

  // Adds the hashes of a text that hashes_text() made at worker `rank`.
  Status add_text(int64_t rank, const std::string& text) {
    for (size_t at = 0; at + sizeof(CellHash) <= text.size(); at += sizeof(CellHash)) {
      CellHash line;
      std::memcpy(&line, text.data() + at, sizeof line);
      RETURN_IF_ERROR(add(rank, line.tensor, line.cell, line.hash));
    }
    return Status();
  }

  // The manifest, when every cell has its hash. Its name is not set.
  Result<checkpoint::Manifest> manifest() const {
    for (size_t t = 0; t < writer_.size(); ++t)
      for (size_t c = 0; c < writer_[t].size(); ++c)
        if (writer_[t][c] < 0)
          return corrupt(fmt::format("nobody wrote cell {} of {}", c, manifest_.tensors[t].path));
    return manifest_;
  }

 private:
  checkpoint::Manifest manifest_;
  std::vector<std::vector<int64_t>> writer_;  // by tensor and cell: its rank; -1: none yet
};

}  // namespace ostro::fleet
