#include "ostro/infer/layer_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/base/machine.h"
#include "ostro/infer/decode_program.h"
#include "ostro/infer/row_arrays.h"
#include "ostro/infer/traced.h"
#include "ostro/nn/adapter_of_row.h"
#include "ostro/nn/adapters.h"
#include "ostro/trace/ops.h"

namespace ostro::infer {

using runtime::Buffer;

namespace {

// Memory that settling leaves to others.
constexpr int64_t kRoomToSettle = int64_t{256} << 20;

Arrays part_of(const Arrays& in, size_t first, size_t end) {
  return Arrays(in.begin() + static_cast<int64_t>(first), in.begin() + static_cast<int64_t>(end));
}

}  // namespace

LayerRows::LayerRows(Model model, runtime::Engine& engine, const RowLimits& limits)
    : model_(std::move(model)), engine_(engine), limits_(limits) {
  OSTRO_CHECK(limits_.sequences > 0 && limits_.rows > 0, "a runner of {} sequences and {} rows",
              limits_.sequences, limits_.rows);
  limits_.rows = padded_rows(limits_.rows);
  for (const models::WeightRead& read : model_.layers.head_reads)
    has_adapted_head_ |= model_.adapters > 0 && nn::is_adapter(model_.functions.paths[read.parameter]);
}

bool LayerRows::is_in_place() const { return model_.layers.attend_pages != nullptr; }

Status LayerRows::make_cache() {
  ASSIGN_OR_RETURN(const Shapes one, traced_shapes([&] { return Arrays{model_.layers.cache(1, 1)}; }));
  ASSIGN_OR_RETURN(cache_,
                   PagedCache::create(one[0], layer_count(), limits_, is_in_place(), engine_.memory()));
  return {};
}

Result<std::unique_ptr<LayerRows>> LayerRows::create(Model model, Buffers parameters, runtime::Engine& engine,
                                                     const RowLimits& limits) {
  std::unique_ptr<LayerRows> out(new LayerRows(std::move(model), engine, limits));
  ASSIGN_OR_RETURN(out->resident_,
                   ResidentWeights::create(out->model_.layers, std::move(parameters), engine));
  RETURN_IF_ERROR(out->make_cache());
  return out;
}

Result<std::unique_ptr<LayerRows>> LayerRows::streamed(Model model, WeightStore& store,
                                                       runtime::Engine& engine, const RowLimits& limits,
                                                       std::function<void(int64_t)> on_layer) {
  OSTRO_CHECK(model.adapters == 0, "a streamed model with {} adapters", model.adapters);
  std::unique_ptr<LayerRows> out(new LayerRows(std::move(model), engine, limits));
  out->store_ = &store;
  out->on_layer_ = std::move(on_layer);
  RETURN_IF_ERROR(out->make_cache());
  return out;
}

Result<int64_t> LayerRows::open_with(int32_t adapter) {
  OSTRO_CHECK(adapter >= kNoAdapter && adapter < model_.adapters, "adapter {} of {}", adapter,
              model_.adapters);
  ASSIGN_OR_RETURN(const int64_t sequence, cache_.open());
  adapter_of_[sequence] = adapter;
  return sequence;
}

void LayerRows::close(int64_t sequence) {
  cache_.close(sequence);
  adapter_of_.erase(sequence);
}

// Keys and values depend on the adapter, so each has an owner's texts of its own.
int64_t LayerRows::reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner) {
  return cache_.reuse(sequence, tokens, fmt::format("{}:{}", adapter_of_.at(sequence), owner));
}

Status LayerRows::copy(int64_t from, int64_t to, int64_t count) {
  OSTRO_CHECK(adapter_of_.at(from) == adapter_of_.at(to), "rows of adapter {} for a sequence with {}",
              adapter_of_.at(from), adapter_of_.at(to));
  return cache_.copy(from, to, count);
}

Result<std::string> LayerRows::program_hash() {
  return forward_hash(model_.functions, limits_.positions, model_.leaves);
}

Result<LayerRows::Buffers> LayerRows::whole(std::span<const models::WeightRead> reads) {
  if (resident_) return resident_->whole(reads);
  return store_->whole(reads);
}

Result<LayerRows::LayerWeights> LayerRows::read_layer(int64_t layer) {
  const models::LayerFunctions& f = model_.layers;
  LayerWeights out;
  if (layer == layer_count()) {
    ASSIGN_OR_RETURN(out.chosen, whole(f.head_reads));
    return out;
  }
  ASSIGN_OR_RETURN(out.attention, whole(f.attention_reads[static_cast<size_t>(layer)]));
  ASSIGN_OR_RETURN(out.chosen, whole(f.chosen_reads[static_cast<size_t>(layer)]));
  return out;
}

void LayerRows::settle(const std::stop_token& stop) {
  if (!resident_ || !resident_->may_move()) return;
  const AvailableMemory memory = available_memory();
  if (memory.bytes > 0 && memory.bytes < resident_->bytes_to_move() + kRoomToSettle) return;
  Buffers moved = resident_->moved(stop);
  const std::lock_guard lock(settled_mutex_);
  settled_ = std::move(moved);
}

void LayerRows::take_settled() {
  const std::lock_guard lock(settled_mutex_);
  if (settled_.empty()) return;
  resident_->take(std::exchange(settled_, {}));
  std::erase_if(programs_, [](const auto& one) { return !one.first.panels && reads_panels(one.first.part); });
}

std::vector<models::WeightRead> LayerRows::reads_of(const Key& key, int64_t layer) const {
  const models::LayerFunctions& f = model_.layers;
  const auto at = static_cast<size_t>(layer);
  switch (key.part) {
    case Part::kEmbed: return {};  // it reads rows of a table as they are held, also of one that was cut
    case Part::kPaged:
    case Part::kProject:
    case Part::kAttend:
    case Part::kAfter: return f.attention_reads[at];
    case Part::kChosen: return f.chosen_reads[at];
    case Part::kRest: {
      std::vector<models::WeightRead> out = f.attention_reads[at];
      out.insert(out.end(), f.chosen_reads[at].begin(), f.chosen_reads[at].end());
      return out;
    }
    case Part::kNormed: return f.norm_reads;
    case Part::kHead: return f.head_reads;
  }
  return {};
}

// Inputs: weights first (of kRest those of attention, then the others), then what the comments say, then the
// adapters of the rows, if the key is adapted.
Arrays LayerRows::traced(const Key& key, int64_t layer, const Arrays& all) const {
  const models::LayerFunctions& f = model_.layers;
  const nn::AdapterOfRow adapter(key.adapted ? all.back() : Array());
  const Arrays in = part_of(all, 0, all.size() - (key.adapted ? 1 : 0));
  const size_t n = in.size();
  switch (key.part) {
    case Part::kEmbed:  // table; tokens, positions
      return {f.embed(in[0], part_of(in, 1, n - 2), in[n - 2], in[n - 1])};
    case Part::kProject:  // tokens, x, positions
      return f.project(layer, part_of(in, 0, n - 3), in[n - 3], in[n - 2], in[n - 1]);
    case Part::kPaged: {  // tokens, x, positions; keys, values, place, table, position of
                          // LayerFunctions::Paged
      const Arrays weights = part_of(in, 0, n - 8);
      const Arrays qkv = f.project(layer, weights, in[n - 8], in[n - 7], in[n - 6]);
      return f.attend_pages(layer, weights, qkv, {in[n - 5], in[n - 4], in[n - 3], in[n - 2], in[n - 1]});
    }
    case Part::kAttend: {  // q, key pool, value pool, table, start
      const auto contiguous = [&](const Array& pool) {
        return merge_axes(gather(pool, "page", in[n - 2]), {"entry", "slot"}, "key_pos");
      };
      return {f.attend(layer, part_of(in, 0, n - 5), in[n - 5], contiguous(in[n - 4]), contiguous(in[n - 3]),
                       in[n - 1])};
    }
    case Part::kAfter:  // x, attended
      return f.after_attention(layer, part_of(in, 0, n - 2), in[n - 2], in[n - 1]);
    case Part::kChosen: {  // h, mlp_in, expert, gate
      const size_t weights = f.chosen_reads[static_cast<size_t>(layer)].size();
      return {f.chosen(layer, part_of(in, 0, weights), part_of(in, weights, n))};
    }
    case Part::kRest: {  // x, attended
      const size_t weights = f.attention_reads[static_cast<size_t>(layer)].size();
      const Arrays after = f.after_attention(layer, part_of(in, 0, weights), in[n - 2], in[n - 1]);
      return {f.chosen(layer, part_of(in, weights, n - 2), after)};
    }
    case Part::kNormed:  // x
      return {f.normed(part_of(in, 0, n - 1), in[n - 1])};
    case Part::kHead:  // x
      return {f.head(part_of(in, 0, n - 1), in[n - 1])};
  }
  return {};
}

Result<LayerRows::Program*> LayerRows::program(const Key& key, int64_t layer,
                                               const std::function<Shapes()>& shapes) {
  if (const auto found = programs_.find(key); found != programs_.end()) return &found->second;
  const Shapes given = shapes();
  Shapes of = given;
  if (key.adapted) of.push_back({ir::DType::i32, {{"batch", 1}, {"pos", key.rows}}});
  std::vector<size_t> cut, in_panels;  // weights of which integers were cut, and those in panels
  const auto reads = resident_ ? reads_of(key, layer) : std::vector<models::WeightRead>();
  for (size_t i = 0; i < reads.size(); ++i) {
    const bool is_cut = resident_->is_cut(reads[i]);
    if (!is_cut && !resident_->panels(reads[i])) continue;
    of[i] = resident_->shape(reads[i]);
    if (is_cut)
      cut.push_back(i);
    else if (key.panels)
      in_panels.push_back(i);
  }
  ASSIGN_OR_RETURN(ir::Program p, infer::traced("rows", of, model_.leaves,
                                                [&](const Arrays& in) { return traced(key, layer, in); }));
  Program made;
  for (const ir::ValueId v : p.body.results) made.results.push_back(p.body.shape(v));
  runtime::CompileOptions options;
  const int64_t inputs = std::ssize(given);
  if (key.part == Part::kPaged) options.donate = {inputs - 5, inputs - 4};
  for (const size_t i : in_panels) take_panels(p, i, *resident_->panels(reads[i]));
  made.cut = take_cut_weights(p, cut, given);
  ASSIGN_OR_RETURN(made.executable, engine_.compile(p, options));
  return &programs_.emplace(key, std::move(made)).first->second;
}

Result<LayerRows::Program*> LayerRows::programs(const Key& key, int64_t layer,
                                                const std::function<Shapes()>& shapes) {
  Key in_panels = key;
  in_panels.panels = reads_panels(key.part);
  if (resident_->is_in_panels()) return program(in_panels, layer, shapes);
  if (resident_->may_move() && in_panels.panels) RETURN_IF_ERROR(program(in_panels, layer, shapes));
  return program(key, layer, shapes);
}

Result<LayerRows::Buffers> LayerRows::run(const Key& asked, int64_t layer, Buffers inputs,
                                          const Buffer& adapter) {
  Key key = asked;
  key.panels = resident_ && resident_->is_in_panels() && reads_panels(key.part);
  ASSIGN_OR_RETURN(Program * p, program(key, layer, [&] { return shapes_of(inputs); }));
  if (key.adapted) inputs.push_back(adapter);
  if (!p->cut.empty()) {
    const auto reads = reads_of(key, layer);
    for (const size_t at : p->cut) {
      const CutWeight& weight = resident_->cut(reads[at]);
      inputs[at] = weight.q;
      inputs.push_back(weight.scales);
    }
  }
  return p->executable->run(std::move(inputs));
}

}  // namespace ostro::infer
