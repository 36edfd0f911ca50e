// LayerRows: a RowRunner that goes through a model layer by layer. All rows of a step go through a layer
// together, so each weight is read once for all of them. Keys and values lie in pages (paged_cache.h). The
// program of a layer writes the rows of the step into them and reads them where they lie. Attention that is
// not that of numerics.md N9 cannot do that: there a program gathers the pages, rows that are the only one of
// their sequence attend together, and a longer chunk attends by itself.
//
// Weights are in memory, or are read from a WeightStore while the layer before runs; of a mixture then only
// the experts that some row goes to.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ostro/infer/paged_cache.h"
#include "ostro/infer/row_runner.h"
#include "ostro/infer/weights/resident_weights.h"
#include "ostro/infer/weights/weight_store.h"
#include "ostro/models/model_functions.h"
#include "ostro/numerics/leaves.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

// Numbers of rows and of sequences are padded to powers of two; no program depends on the length of a text.
// The engine must outlive it, and so must a store.
class LayerRows final : public RowRunner {
 public:
  struct Model {
    models::ModelFunctions functions;
    models::LayerFunctions layers;
    numerics::LeafTable leaves = {};  // of the model's programs, without a cut of positions
    // `layers` and parameters are those with so many adapters side by side (nn::kAdaptersAxis), and each
    // sequence has one of them or none; 0: with one or none, which all sequences have.
    int64_t adapters = 0;
  };

  // `parameters` in the order of the model's paths. Errors: fewer than 2 positions; no room for the caches.
  static Result<std::unique_ptr<LayerRows>> create(Model model, std::vector<runtime::Buffer> parameters,
                                                   runtime::Engine& engine, const RowLimits& limits);
  // `on_layer` is called when a layer of a step is done.
  static Result<std::unique_ptr<LayerRows>> streamed(Model model, WeightStore& store, runtime::Engine& engine,
                                                     const RowLimits& limits,
                                                     std::function<void(int64_t layer)> on_layer = {});

  const RowLimits& limits() const override { return limits_; }
  int64_t width() const override { return model_.functions.shapes[model_.layers.embedding].axes.back().size; }
  Status prepare() override;
  Result<std::string> program_hash() override;
  Result<int64_t> open() override { return open_with(kNoAdapter); }
  // A new sequence with this adapter of several, or kNoAdapter. What it keeps, only those with the same one
  // reuse.
  static constexpr int32_t kNoAdapter = -1;
  Result<int64_t> open_with(int32_t adapter);
  void close(int64_t sequence) override;
  int64_t length(int64_t sequence) const override { return cache_.length(sequence); }
  bool has_room(std::span<const RowChunk> chunks, int64_t tokens) const override {
    return cache_.has_room(chunks, tokens);
  }
  int64_t reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner) override;
  CacheFacts cache_facts() const override { return cache_.facts(); }
  Status copy(int64_t from, int64_t to, int64_t count) override;
  Result<runtime::Buffer> step(std::span<const RowChunk> chunks) override;
  void settle(const std::stop_token& stop) override;

 private:
  using Buffers = std::vector<runtime::Buffer>;
  using Shapes = std::vector<ir::Shape>;

  // kPaged is what kProject and kAttend are together.
  enum class Part { kEmbed, kPaged, kProject, kAttend, kRest, kAfter, kChosen, kNormed, kHead };
  struct Key {
    Part part;
    int64_t kind = 0, rows = 0;
    int64_t more = 1;      // sequences of kAttend, experts of kChosen
    bool adapted = false;  // of several adapters, some row has one
    bool panels = false;   // weights are in panels
    auto operator<=>(const Key&) const = default;
  };
  struct Program {
    std::unique_ptr<runtime::Executable> executable;
    Shapes results;
    std::vector<size_t> cut = {};  // places of weights that it takes as integers, whose scales are the last
                                   // inputs
  };
  // The weights of one layer that every token reads; the places of experts in `chosen` may be empty. The
  // layer after the last is the head; its weights are `chosen`.
  struct LayerWeights {
    Buffers attention, chosen;
  };
  // The rows of a step.
  struct Step;

  LayerRows(Model model, runtime::Engine& engine, const RowLimits& limits);
  Status make_cache();
  bool is_in_place() const;
  int64_t layer_count() const { return static_cast<int64_t>(model_.layers.kind.size()); }
  int64_t kind_of(int64_t layer) const { return model_.layers.kind[static_cast<size_t>(layer)]; }

  // The weights that a program begins with, of which it may take integers.
  std::vector<models::WeightRead> reads_of(const Key& key, int64_t layer) const;
  Result<Buffers> whole(std::span<const models::WeightRead> reads);
  Result<LayerWeights> read_layer(int64_t layer);
  // The program for inputs of these shapes; `layer` is one of its kind. Weights may have either shape.
  Result<Program*> program(const Key& key, int64_t layer, const std::function<Shapes()>& shapes);
  // Whether programs of this part have weights that may be in panels.
  static bool reads_panels(Part part) { return part != Part::kEmbed && part != Part::kNormed; }
  Arrays traced(const Key& key, int64_t layer, const Arrays& all) const;
  // `adapter`: of the rows, i32 [batch = 1, pos], for a key that is `adapted`.
  Result<Buffers> run(const Key& asked, int64_t layer, Buffers inputs, const runtime::Buffer& adapter = {});
  // Returns the program for weights as they are now; builds also the one for weights that will be in panels.
  Result<Program*> programs(const Key& key, int64_t layer, const std::function<Shapes()>& shapes);
  // Takes what settle() has made.
  void take_settled();
  // Builds the programs of a step with so many rows, for rows that all have no adapter, or not.
  Status prepare_rows(int64_t rows, bool adapted);

  void list_rows(Step& step) const;
  Result<runtime::Buffer> run_layers(Step& step);
  Status embed(Step& step);
  // The values of attention of the step's rows, whose keys and values are then in the cache.
  Result<runtime::Buffer> attended(int64_t layer, const Buffers& weights, const Step& step);
  // The same by programs that gather pages.
  Result<runtime::Buffer> gathered(int64_t layer, const Buffers& weights, const Step& step);
  // One row each of `starts.size()` sequences, or rows of one; -1: no sequence, its row is padding.
  Result<runtime::Buffer> attend(int64_t layer, const Buffers& weights, runtime::Buffer queries,
                                 std::span<const int64_t> sequences, std::span<const int32_t> starts);
  // The rest of a layer whose experts are read when they are known.
  Status rest_streamed(int64_t layer, LayerWeights& weights, Step& step, runtime::Buffer attended,
                       const std::function<void()>& read_ahead);
  // [batch = 1, pos, embed]: the rows of x that are wanted for logits, or behind the final norm; padded.
  Result<runtime::Buffer> wanted_rows(const Step& step, bool normed);
  // The adapters of the rows that are wanted for logits. Empty: none has one, or the head has no adapters.
  runtime::Buffer head_adapters(const Step& step) const;
  Result<runtime::Buffer> head(Buffers weights, const Step& step);
  Status give_normed(const Step& step);

  Model model_;
  runtime::Engine& engine_;
  RowLimits limits_;
  std::optional<ResidentWeights> resident_;  // or
  WeightStore* store_ = nullptr;
  std::function<void(int64_t)> on_layer_;
  PagedCache cache_;
  std::map<int64_t, int32_t> adapter_of_;  // of each open sequence
  bool has_adapted_head_ = false;
  std::map<Key, Program> programs_;
  std::mutex settled_mutex_;
  Buffers settled_;  // of ResidentWeights::moved; empty: not made yet, or taken
};

}  // namespace ostro::infer
