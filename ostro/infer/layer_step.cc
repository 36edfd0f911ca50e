// LayerRows::step: the rows of a step, layer after layer.
#include <algorithm>
#include <cstring>
#include <future>
#include <set>

#include "ostro/infer/layer_step.h"
#include "ostro/infer/row_arrays.h"
#include "ostro/ir/program/attention_limits.h"

namespace ostro::infer {

using runtime::Buffer;

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
    places = Buffer::zeros(step.tokens.shape());
    for (int32_t i = 0; i < step.rows; ++i) places.mutable_as<int32_t>()[static_cast<size_t>(i)] = i;
  }
  append(inputs, others);
  inputs.push_back(std::move(places));
  inputs.push_back(step.positions);
  ASSIGN_OR_RETURN(Buffers out, run({Part::kEmbed, 0, step.bucket}, 0, std::move(inputs)));
  step.x = std::move(out[0]);
  return {};
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

Result<Buffer> LayerRows::step(std::span<const RowChunk> chunks) {
  RETURN_IF_ERROR(check_chunks(*this, chunks));
  if (chunks.empty()) return Buffer();
  take_settled();
  RETURN_IF_ERROR(cache_.begin(chunks));
  Step step;
  for (const RowChunk& chunk : chunks) {
    const auto count = static_cast<int64_t>(chunk.tokens.size());
    step.pieces.push_back({chunk, step.rows, count, cache_.length(chunk.sequence)});
    step.rows += count;
    step.logits += chunk.logits();
    step.normed += chunk.wanted - chunk.logits();
  }
  list_rows(step);
  Result<Buffer> out = run_layers(step);
  if (out.ok())
    cache_.end(chunks);
  else
    cache_.fail();
  return out;
}

void LayerRows::list_rows(Step& step) const {
  step.bucket = padded_rows(step.rows);
  const ir::Shape each{ir::DType::i32, {{"pos", step.bucket}}};
  const auto entries = static_cast<size_t>(cache_.entries());
  step.tokens = Buffer::zeros({ir::DType::i32, {{"batch", 1}, {"pos", step.bucket}}});
  step.positions = Buffer::zeros(each);
  step.place = Buffer::zeros(each);
  step.in_text = Buffer::zeros(each);
  step.table = Buffer::zeros({ir::DType::i32, {{"pos", step.bucket}, {"entry", cache_.entries()}}});
  const auto place = step.place.mutable_as<int32_t>(), in_text = step.in_text.mutable_as<int32_t>(),
             table = step.table.mutable_as<int32_t>();
  const bool adapted = std::any_of(step.pieces.begin(), step.pieces.end(), [&](const Step::Piece& piece) {
    return adapter_of_.at(piece.chunk.sequence) != kNoAdapter;
  });
  if (adapted) {
    step.adapter = Buffer::empty(step.tokens.shape());
    std::fill_n(step.adapter.mutable_as<int32_t>().begin(), step.bucket, kNoAdapter);
  }
  std::fill(place.begin(), place.end(), -1);
  std::fill(in_text.begin(), in_text.end(), -1);
  for (const Step::Piece& piece : step.pieces) {
    const auto pages = cache_.pages(piece.chunk.sequence);
    if (adapted)
      std::fill_n(step.adapter.mutable_as<int32_t>().begin() + piece.first, piece.count,
                  adapter_of_.at(piece.chunk.sequence));
    for (int64_t i = 0; i < piece.count; ++i) {
      const auto row = static_cast<size_t>(piece.first + i);
      const auto position = static_cast<int32_t>(piece.start + i);
      step.tokens.mutable_as<int32_t>()[row] = piece.chunk.tokens[static_cast<size_t>(i)];
      step.positions.mutable_as<int32_t>()[row] = in_text[row] = position;
      const auto slots = static_cast<int32_t>(ir::kPageSlots);
      place[row] = pages[static_cast<size_t>(position / slots)] * slots + position % slots;
      std::copy(pages.begin(), pages.end(), table.begin() + static_cast<int64_t>(row * entries));
    }
  }
}

Result<Buffer> LayerRows::run_layers(Step& step) {
  RETURN_IF_ERROR(embed(step));
  // Every layer reads them: one copy to a device is enough.
  std::vector<Buffer*> shared{&step.tokens, &step.positions};
  if (step.adapter.valid()) shared.push_back(&step.adapter);
  if (is_in_place()) shared.insert(shared.end(), {&step.place, &step.table, &step.in_text});
  for (Buffer* b : shared) {
    ASSIGN_OR_RETURN(*b, b->to(engine_.memory()));
  }

  std::future<Result<LayerWeights>> next;
  const auto read_ahead = [&](int64_t layer) {
    if (!resident_) next = std::async(std::launch::async, [this, layer] { return read_layer(layer); });
  };
  const auto weights_of = [&](int64_t layer) { return resident_ ? read_layer(layer) : next.get(); };
  read_ahead(0);
  for (int64_t layer = 0; layer < layer_count(); ++layer) {
    ASSIGN_OR_RETURN(LayerWeights weights, weights_of(layer));
    ASSIGN_OR_RETURN(Buffer values, attended(layer, weights.attention, step));
    if (resident_) {
      Buffers inputs = std::move(weights.attention);
      append(inputs, weights.chosen);
      inputs.push_back(std::move(step.x));
      inputs.push_back(std::move(values));
      ASSIGN_OR_RETURN(Buffers out, run({Part::kRest, kind_of(layer), step.bucket, 1, step.adapter.valid()},
                                        layer, std::move(inputs), step.adapter));
      step.x = std::move(out[0]);
    } else {
      RETURN_IF_ERROR(rest_streamed(layer, weights, step, std::move(values), [&] { read_ahead(layer + 1); }));
    }
    if (on_layer_) on_layer_(layer);
  }
  ASSIGN_OR_RETURN(LayerWeights last, weights_of(layer_count()));
  RETURN_IF_ERROR(give_normed(step));
  return head(std::move(last.chosen), step);
}

}  // namespace ostro::infer
