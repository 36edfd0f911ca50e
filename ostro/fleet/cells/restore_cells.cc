#include "ostro/fleet/cells/restore_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/fleet/cells/cell_boxes.h"
#include "ostro/fleet/exchange/gather_all.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::fleet {
namespace {

using checkpoint::Checkpoint;
using numerics::Fingerprint;
using runtime::Buffer;

// The words that begin in `box`, which is the part of an array with this length of its last axis.
FileBox whole_words(FileBox box, int64_t length, int64_t per_word) {
  const auto up = [&](int64_t i) { return std::min(length, (i + per_word - 1) / per_word * per_word); };
  const int64_t begin = up(box.start.back()), end = up(box.start.back() + box.shape.back());
  box.start.back() = begin;
  box.shape.back() = end - begin;
  return box;
}

Fingerprint fingerprint_of(const FileBox& box, const ir::Shape& whole, std::span<const std::byte> bytes) {
  Fingerprint print;
  const int64_t item = ir::dtype_size(whole.dtype);
  if (box.shape.empty()) {
    numerics::add_row_segment(print, 0, 1, item, 0, bytes);
    return print;
  }
  const int64_t length = whole.axes.back().size, held = box.shape.back();
  const std::span<const int64_t> rows = std::span(box.shape).first(box.shape.size() - 1);
  if (held == 0) return print;
  int64_t at = 0;
  const Status done = io::for_each_index(rows, [&](const io::Extents& index) -> Status {
    int64_t row = 0;
    for (size_t d = 0; d < index.size(); ++d) row = row * whole.axes[d].size + box.start[d] + index[d];
    const auto bytes_here =
        bytes.subspan(static_cast<size_t>(at * held * item), static_cast<size_t>(held * item));
    numerics::add_row_segment(print, row, length, item, box.start.back(), bytes_here);
    ++at;
    return Status();
  });
  OSTRO_CHECK(done.ok(), "a row of a parameter has no fingerprint");
  return print;
}

// What one worker tells all others. Texts are cut off: they are for people.
struct CellVerdict {
  int64_t fine = 1, final = 0;  // `final`: no other checkpoint would help
  ErrorCode code = ErrorCode::kInternal;
  char name[72] = "";  // of the state in the manifest
  char text[1024] = "";

  void refuse(const Error& error, bool is_final) {
    fine = 0;
    final = is_final ? 1 : 0;
    code = error.code();
    std::strncpy(text, error.message().c_str(), sizeof text - 1);
  }
};

// Damage is a reason to take another checkpoint; a model or a version that does not fit is none.
bool is_final(const Error& error) {
  return error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported;
}

// Joins the workers' verdicts and fingerprints; every worker comes to the same result.
Result<train::CellsRead> agree(const WorkerPlan& plan, runtime::Collectives& c, const std::string& path,
                               const CellVerdict& mine, const std::vector<Fingerprint>& prints) {
  Bytes message;
  append_value(message, mine);
  for (size_t k = 0; k < plan.n; ++k) append_value(message, k < prints.size() ? prints[k] : Fingerprint());
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, gather_all(c, message));
  train::CellsRead out;
  std::vector<Fingerprint> sums(plan.n);
  std::string name;
  for (int64_t rank = 0; rank < c.size(); ++rank) {
    Reader reader(received[static_cast<size_t>(rank)]);
    const auto verdict = reader.value<CellVerdict>();
    const auto where = [&] { return fmt::format("worker {}", rank); };
    if (verdict.fine == 0) {
      const Error error(verdict.code, verdict.text);
      if (verdict.final != 0) return error.with_context(where());
      if (out.unfit.empty()) out.unfit = where() + ": " + error.message();
    } else if (name.empty()) {
      name = verdict.name;
    } else if (name != verdict.name) {
      return invalid_argument(
          fmt::format("{}: worker {} reads the state {} there, an earlier worker {}; every worker must see "
                      "the same files",
                      path, rank, verdict.name, name));
    }
    for (size_t k = 0; k < plan.n; ++k) {
      const auto print = reader.value<Fingerprint>();
      if (plan.first_holder(k, rank)) sums[k] += print;
    }
  }
  for (const Fingerprint& print : sums)
    out.prints.push_back({static_cast<int64_t>(print.lane[0]), static_cast<int64_t>(print.lane[1])});
  return out;
}

}  // namespace

Result<train::State> read_cells(const Checkpoint& checkpoint, const WorkerPlan& plan, int64_t rank) {
  RETURN_IF_ERROR(train::check_tensors(checkpoint.manifest(), plan.arrays, checkpoint.path()));
  train::State state;
  state.step = checkpoint.manifest().info.step;
  for (size_t k = 0; k < plan.arrays.size(); ++k) {
    const FileBox box = owned_box(plan, k, rank);
    Buffer buffer = Buffer::empty(plan.owned_shape(k, rank));
    RETURN_IF_ERROR(checkpoint.read_box(checkpoint.find(plan.arrays.paths[k]), box.start, box.shape,
                                        buffer.mutable_bytes()));
    train::list_of(state, k, plan.n).push_back(std::move(buffer));
  }
  return state;
}

Result<std::vector<Fingerprint>> fingerprint_cells(const Checkpoint& checkpoint, const WorkerPlan& plan,
                                                   int64_t rank, const train::State& cells) {
  std::vector<Fingerprint> out;
  for (size_t k = 0; k < plan.n; ++k) {
    const ir::Shape& whole = plan.shape(k);
    const int64_t item = ir::dtype_size(whole.dtype);
    const FileBox own = owned_box(plan, k, rank);
    FileBox box = own;
    if (!box.shape.empty())
      box = whole_words(own, whole.axes.back().size, numerics::fingerprint_per_word(item));
    if (box.start == own.start && box.shape == own.shape) {
      out.push_back(fingerprint_of(own, whole, cells.params[k].bytes()));
      continue;
    }
    Bytes bytes(static_cast<size_t>(io::product(box.shape) * item));
    const int64_t tensor = checkpoint.find(plan.programs.init.result_names[k]);
    RETURN_IF_ERROR(checkpoint.read_box(tensor, box.start, box.shape, bytes));
    out.push_back(fingerprint_of(box, whole, bytes));
  }
  return out;
}

Result<train::CellsRead> restore_cells(const WorkerPlan& plan, runtime::Collectives& c, io::FileSystem& fs,
                                       const std::string& path, bool prints, train::State& cells) {
  CellVerdict mine;
  train::State read;
  std::vector<Fingerprint> sums;
  const auto attempt = [&]() -> Status {
    ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(fs, path));
    std::strncpy(mine.name, checkpoint.manifest().name.c_str(), sizeof mine.name - 1);
    ASSIGN_OR_RETURN(read, read_cells(checkpoint, plan, c.rank()));
    if (prints) {
      ASSIGN_OR_RETURN(sums, fingerprint_cells(checkpoint, plan, c.rank(), read));
    }
    checkpoint.log_sources();
    return Status();
  };
  if (const Status done = attempt(); !done.ok()) mine.refuse(done.error(), is_final(done.error()));
  ASSIGN_OR_RETURN(train::CellsRead out, agree(plan, c, path, mine, sums));
  if (out.unfit.empty()) cells = std::move(read);
  return out;
}

}  // namespace ostro::fleet
