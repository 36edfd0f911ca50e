#include "ostro/simulate/step/leaf_chunks.h"

#include <algorithm>

#include "ostro/fleet/workers/slice_overlap.h"
#include "ostro/ir/program/op_table.h"

namespace ostro::simulate {
namespace {

// The share of a program's arithmetic before a moment of it.
class Progress {
 public:
  explicit Progress(const ir::Program& program) : body_(program.body) {
    for (const ir::Op& op : body_.ops) {
      std::vector<ir::Shape> in, out;
      for (const ir::ValueId v : op.operands) in.push_back(body_.shape(v));
      for (const ir::ValueId v : op.results) out.push_back(body_.shape(v));
      before_.push_back(before_.back() + ir::op_cost(op, in, out).flops);
    }
  }

  double before(const fleet::Chunks::Moment& when) const {
    if (when.op >= body_.ops.size()) return 1;
    return share(when.op, static_cast<double>(when.iteration) / length(when.op));
  }
  // `whole`: the whole op is done, not only the iteration.
  double after(const fleet::Chunks::Moment& when, bool whole) const {
    if (when.op >= body_.ops.size()) return 1;
    return share(when.op, whole ? 1 : static_cast<double>(when.iteration + 1) / length(when.op));
  }

 private:
  double length(size_t op) const {
    return static_cast<double>(
        body_.ops[op].kind == ir::OpKind::scan ? std::max<int64_t>(1, body_.ops[op].attrs.i64("length")) : 1);
  }
  double share(size_t op, double done) const {
    if (before_.back() <= 0) return 1;
    return (before_[op] + done * (before_[op + 1] - before_[op])) / before_.back();
  }

  const ir::Block& body_;
  std::vector<double> before_{0};  // by op: the operations of those before it
};

double bytes_of_piece(const fleet::WorkerPlan& plan, const fleet::Chunks& chunks,
                      const fleet::ArrayPiece& piece) {
  return static_cast<double>(plan.shape(piece.k).bytes()) / static_cast<double>(chunks.rows(piece.k));
}

// A worker that reads or makes a chunk has had all chunks before it.
void finish(std::vector<LeafChunk>& chunks) {
  double at = 0, bytes = 0;
  for (LeafChunk& chunk : chunks) {
    chunk.at = at = std::max(at, chunk.at);
    bytes += chunk.share;
  }
  for (LeafChunk& chunk : chunks) chunk.share /= bytes > 0 ? bytes : 1;
}

std::vector<LeafChunk> joined(const std::vector<LeafChunk>& chunks, int64_t most, bool made) {
  if (static_cast<int64_t>(chunks.size()) <= most) return chunks;
  std::vector<LeafChunk> out;
  double before = 0;  // the share of all chunks so far
  int64_t last = -1;
  for (const LeafChunk& chunk : chunks) {
    // By the middle of the chunk.
    const int64_t place =
        std::min(most - 1, static_cast<int64_t>((before + chunk.share / 2) * static_cast<double>(most)));
    before += chunk.share;
    if (place != last) out.push_back({chunk.at, 0});
    last = place;
    if (made) out.back().at = chunk.at;
    out.back().share += chunk.share;
  }
  return out;
}

}  // namespace

LeafChunks leaf_chunks(const fleet::WorkerPlan& plan) {
  const fleet::OverlapChunks chunks(plan);
  const Progress progress(plan.programs.leaf);
  const bool tells = plan.engine->info().tells_watch;
  LeafChunks out;
  for (size_t i = 0; i < chunks.read.size(); ++i) {
    LeafChunk& chunk = out.read.emplace_back();
    if (tells) chunk.at = progress.before(chunks.read.when(i));
    for (const fleet::ArrayPiece& piece : chunks.read[i]) {
      if (!plan.gathered(piece.k)) continue;  // it is there
      chunk.share += bytes_of_piece(plan, chunks.read, piece);
      ++out.read_pieces;
    }
  }
  for (size_t i = 0; i < chunks.made.size(); ++i) {
    LeafChunk& chunk = out.made.emplace_back();
    for (const fleet::ArrayPiece& piece : chunks.made[i]) {
      chunk.at = std::max(chunk.at, tells ? progress.after(chunks.made.when(i), piece.row < 0) : 1);
      chunk.share += bytes_of_piece(plan, chunks.made, piece);
      ++out.made_pieces;
    }
  }
  std::erase_if(out.read, [](const LeafChunk& chunk) { return chunk.share == 0; });
  finish(out.read);
  finish(out.made);
  return out;
}

LeafChunks joined_chunks(const LeafChunks& chunks, int64_t most) {
  LeafChunks out = chunks;
  out.read = joined(chunks.read, most, false);
  out.made = joined(chunks.made, most, true);
  return out;
}

}  // namespace ostro::simulate
