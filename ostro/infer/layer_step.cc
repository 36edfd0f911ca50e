// LayerRows::step: the rows of a step, layer after layer.
#include <algorithm>
#include <cstring>
#include <future>
#include <set>

#include "ostro/infer/layer_rows.h"
#include "ostro/infer/row_arrays.h"

namespace ostro::infer {

using runtime::Buffer;

namespace {

// Bytes of a row of [batch, pos, ...].
size_t row_bytes(const ir::Shape& s) {
  return static_cast<size_t>(s.bytes() / (s.axes[0].size * s.axes[1].size));
}

// `count` rows of an array on the host, whose rows are counted through.
void copy_rows(const Buffer& from, int64_t first, int64_t count, Buffer& to, int64_t at) {
  const size_t bytes = row_bytes(from.shape());
  std::memcpy(to.mutable_bytes().data() + static_cast<size_t>(at) * bytes,
              from.bytes().data() + static_cast<size_t>(first) * bytes, static_cast<size_t>(count) * bytes);
}

Buffer indices(const ir::Shape& shape) { return Buffer::zeros(shape.with_dtype(ir::DType::i32)); }

}  // namespace

struct LayerRows::Step {
  struct Piece {
    RowChunk chunk;
    int64_t first = 0, count = 0;  // its rows
    int64_t start = 0;             // position of the first
  };
  std::vector<Piece> pieces;
  int64_t rows = 0, bucket = 0, wanted = 0;
  Buffer tokens, positions;  // i32 [batch, pos], i32 [pos]
  Buffer x;                  // [batch, pos, embed]
};

Status LayerRows::embed(Step& step) {
  const models::LayerFunctions& f = model_.layers;
  ASSIGN_OR_RETURN(const Buffers others, whole(f.embed_reads));
  Buffers inputs;
  Buffer places = step.tokens;
  if (resident_) {
    inputs.push_back(resident_->parameter(f.embedding));
  } else {
    const auto named = step.tokens.as<int32_t>().first(static_cast<size_t>(step.rows));
    ASSIGN_OR_RETURN(Buffer rows, store_->rows(f.embedding, named, step.bucket));
    inputs.push_back(std::move(rows));
    places = indices(step.tokens.shape());
    for (int32_t i = 0; i < step.rows; ++i) places.mutable_as<int32_t>()[static_cast<size_t>(i)] = i;
  }
  append(inputs, others);
  inputs.push_back(std::move(places));
  inputs.push_back(step.positions);
  ASSIGN_OR_RETURN(Buffers out, run({Part::kEmbed, 0, step.bucket}, 0, std::move(inputs)));
  step.x = std::move(out[0]);
  return {};
}

Status LayerRows::keep(int64_t layer, const Step& step, const Buffer& k, const Buffer& v) {
  const size_t bytes = slots_.row_bytes();
  for (const Step::Piece& piece : step.pieces) {
    const auto first = static_cast<size_t>(piece.first) * bytes,
               size = static_cast<size_t>(piece.count) * bytes;
    RETURN_IF_ERROR(slots_.write(layer, piece.chunk.sequence, piece.start, k.bytes().subspan(first, size),
                                 v.bytes().subspan(first, size)));
  }
  return {};
}

// Rows that are alone in their sequence attend together: the slots from the first to the last of them, each
// with one row; a slot that has no row in this step is at position -1 and so attends to nothing.
Result<Buffer> LayerRows::attend(int64_t layer, const Buffers& weights, const Step& step, const Buffer& q) {
  const int64_t kind = kind_of(layer);
  const auto attended = [&](Buffer queries, int64_t slot, std::span<const int32_t> starts) -> Result<Buffer> {
    const auto slots = static_cast<int64_t>(starts.size());
    const int64_t rows = queries.shape().axes[1].size;
    Buffers inputs = weights;
    inputs.push_back(std::move(queries));
    inputs.push_back(slots_.keys(layer, slot, slots));
    inputs.push_back(slots_.values(layer, slot, slots));
    inputs.push_back(Buffer::copy_of({ir::DType::i32, {{"batch", slots}}}, starts.data()));
    ASSIGN_OR_RETURN(Buffers out, run({Part::kAttend, kind, rows, slots}, layer, std::move(inputs)));
    return out[0].to_host();
  };
  if (step.pieces.size() == 1) {
    const auto start = static_cast<int32_t>(step.pieces[0].start);
    return attended(q, step.pieces[0].chunk.sequence, {&start, 1});
  }
  Buffer out;
  const auto put = [&](const Buffer& from, int64_t first, int64_t count, int64_t at) {
    if (!out.valid()) out = Buffer::zeros(with_rows(from.shape(), 1, step.bucket));
    copy_rows(from, first, count, out, at);
  };
  int64_t low = slots_.slots(), high = -1;
  for (const Step::Piece& piece : step.pieces) {
    if (piece.count == 1) {
      low = std::min(low, piece.chunk.sequence);
      high = std::max(high, piece.chunk.sequence);
      continue;
    }
    Buffer queries = Buffer::zeros(with_rows(q.shape(), 1, padded_rows(piece.count)));
    copy_rows(q, piece.first, piece.count, queries, 0);
    const auto start = static_cast<int32_t>(piece.start);
    ASSIGN_OR_RETURN(const Buffer made, attended(std::move(queries), piece.chunk.sequence, {&start, 1}));
    put(made, 0, piece.count, piece.first);
  }
  if (high < 0) return out;
  const int64_t slots = std::min(padded_rows(high - low + 1), slots_.slots());
  low = std::min(low, slots_.slots() - slots);
  Buffer queries = Buffer::zeros(with_rows(q.shape(), slots, 1));
  std::vector<int32_t> starts(static_cast<size_t>(slots), -1);
  for (const Step::Piece& piece : step.pieces) {
    if (piece.count != 1) continue;
    copy_rows(q, piece.first, 1, queries, piece.chunk.sequence - low);
    starts[static_cast<size_t>(piece.chunk.sequence - low)] = static_cast<int32_t>(piece.start);
  }
  ASSIGN_OR_RETURN(const Buffer made, attended(std::move(queries), low, starts));
  for (const Step::Piece& piece : step.pieces)
    if (piece.count == 1) put(made, piece.chunk.sequence - low, 1, piece.first);
  return out;
}

// `read_ahead` begins to read the next layer; experts, which are needed now, are read before that.
Status LayerRows::rest_streamed(int64_t layer, LayerWeights& weights, Step& step, Buffer attended,
                                const std::function<void()>& read_ahead) {
  const models::LayerFunctions& f = model_.layers;
  const auto& reads = f.chosen_reads[static_cast<size_t>(layer)];
  Buffers inputs = std::move(weights.attention);
  inputs.push_back(std::move(step.x));
  inputs.push_back(std::move(attended));
  ASSIGN_OR_RETURN(Buffers after, run({Part::kAfter, kind_of(layer), step.bucket}, layer, std::move(inputs)));
  int64_t places = 0;
  if (after.size() > 2) {
    ASSIGN_OR_RETURN(after[2], after[2].to_host());
    Buffer expert = Buffer::zeros(after[2].shape());
    const size_t named = static_cast<size_t>(step.rows) * row_bytes(expert.shape()) / sizeof(int32_t);
    const auto from = after[2].as<int32_t>().first(named);
    const std::set<int64_t> used(from.begin(), from.end());
    const std::vector<int64_t> ids(used.begin(), used.end());
    for (size_t i = 0; i < named; ++i)
      expert.mutable_as<int32_t>()[i] =
          static_cast<int32_t>(std::lower_bound(ids.begin(), ids.end(), from[i]) - ids.begin());
    // A program for each number of experts would be many.
    places = f.experts_per_token;
    while (places < static_cast<int64_t>(ids.size())) places *= 2;
    places = std::min(places, f.experts);
    ASSIGN_OR_RETURN(Buffers experts, store_->experts(reads, ids, places));
    for (size_t i = 0; i < reads.size(); ++i)
      if (reads[i].by_expert) weights.chosen[i] = std::move(experts[i]);
    after[2] = std::move(expert);
  }
  read_ahead();
  inputs = std::move(weights.chosen);
  append(inputs, after);
  ASSIGN_OR_RETURN(Buffers out,
                   run({Part::kChosen, kind_of(layer), step.bucket, places}, layer, std::move(inputs)));
  step.x = std::move(out[0]);
  return {};
}

Result<Buffer> LayerRows::head(Buffers weights, const Step& step) {
  if (step.wanted == 0) return Buffer();
  Buffer in = step.x;
  const int64_t bucket = padded_rows(step.wanted);
  if (step.wanted != step.rows || bucket != step.bucket) {
    ASSIGN_OR_RETURN(const Buffer x, step.x.to_host());
    in = Buffer::zeros(with_rows(x.shape(), 1, bucket));
    int64_t at = 0;
    for (const Step::Piece& piece : step.pieces) {
      copy_rows(x, piece.first + piece.count - piece.chunk.wanted, piece.chunk.wanted, in, at);
      at += piece.chunk.wanted;
    }
  }
  weights.push_back(std::move(in));
  ASSIGN_OR_RETURN(const Buffers out, run({Part::kHead, 0, bucket}, 0, std::move(weights)));
  ASSIGN_OR_RETURN(const Buffer logits, out[0].to_host());
  const int64_t vocab = logits.shape().axes.back().size;
  return logits.with_shape({ir::DType::f32, {{"pos", bucket}, {"vocab", vocab}}}).rows(0, step.wanted);
}

Result<Buffer> LayerRows::step(std::span<const RowChunk> chunks) {
  RETURN_IF_ERROR(check_chunks(*this, chunks));
  if (chunks.empty()) return Buffer();
  Step step;
  for (const RowChunk& chunk : chunks) {
    const auto count = static_cast<int64_t>(chunk.tokens.size());
    step.pieces.push_back({chunk, step.rows, count, slots_.length(chunk.sequence)});
    step.rows += count;
    step.wanted += chunk.wanted;
  }
  step.bucket = padded_rows(step.rows);
  step.tokens = indices({ir::DType::i32, {{"batch", 1}, {"pos", step.bucket}}});
  step.positions = indices({ir::DType::i32, {{"pos", step.bucket}}});
  for (const Step::Piece& piece : step.pieces)
    for (int64_t i = 0; i < piece.count; ++i) {
      const auto row = static_cast<size_t>(piece.first + i);
      step.tokens.mutable_as<int32_t>()[row] = piece.chunk.tokens[static_cast<size_t>(i)];
      step.positions.mutable_as<int32_t>()[row] = static_cast<int32_t>(piece.start + i);
    }
  RETURN_IF_ERROR(embed(step));

  std::future<Result<LayerWeights>> next;
  const auto read_ahead = [&](int64_t layer) {
    if (!resident_) next = std::async(std::launch::async, [this, layer] { return read_layer(layer); });
  };
  const auto weights_of = [&](int64_t layer) { return resident_ ? read_layer(layer) : next.get(); };
  read_ahead(0);
  for (int64_t layer = 0; layer < layer_count(); ++layer) {
    ASSIGN_OR_RETURN(LayerWeights weights, weights_of(layer));
    Buffers inputs = weights.attention;
    inputs.push_back(step.tokens);
    inputs.push_back(step.x);
    inputs.push_back(step.positions);
    ASSIGN_OR_RETURN(Buffers qkv,
                     run({Part::kProject, kind_of(layer), step.bucket}, layer, std::move(inputs)));
    ASSIGN_OR_RETURN(qkv, runtime::all_to(std::move(qkv), runtime::host_memory()));
    RETURN_IF_ERROR(keep(layer, step, qkv[1], qkv[2]));
    ASSIGN_OR_RETURN(Buffer attended, attend(layer, weights.attention, step, qkv[0]));
    if (resident_) {
      inputs = std::move(weights.attention);
      append(inputs, weights.chosen);
      inputs.push_back(std::move(step.x));
      inputs.push_back(std::move(attended));
      ASSIGN_OR_RETURN(Buffers out,
                       run({Part::kRest, kind_of(layer), step.bucket}, layer, std::move(inputs)));
      step.x = std::move(out[0]);
    } else {
      RETURN_IF_ERROR(
          rest_streamed(layer, weights, step, std::move(attended), [&] { read_ahead(layer + 1); }));
    }
    if (on_layer_) on_layer_(layer);
  }
  for (const Step::Piece& piece : step.pieces)
    slots_.set_length(piece.chunk.sequence, piece.start + piece.count);
  ASSIGN_OR_RETURN(LayerWeights last, weights_of(layer_count()));
  return head(std::move(last.chosen), step);
}

}  // namespace ostro::infer
