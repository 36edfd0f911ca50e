// LayerRows::prepare: all programs of a runner, before the first step.
#include <algorithm>

#include "ostro/infer/layer_rows.h"
#include "ostro/infer/row_arrays.h"

namespace ostro::infer {

Status LayerRows::prepare() {
  if (!resident_) return {};  // programs depend on how many experts are read
  for (int64_t rows = 1; rows <= limits_.rows; rows *= 2) {
    RETURN_IF_ERROR(prepare_rows(rows, false));
    if (model_.adapters > 0) RETURN_IF_ERROR(prepare_rows(rows, true));
  }
  return {};
}

// From the shapes of the programs before, in the order in which they run.
Status LayerRows::prepare_rows(int64_t rows, bool adapted) {
  const models::LayerFunctions& f = model_.layers;
  const auto with = [](const Buffers& weights, std::initializer_list<ir::Shape> more) {
    Shapes out = shapes_of(weights);
    out.insert(out.end(), more);
    return out;
  };
  const ir::Shape tokens{ir::DType::i32, {{"batch", 1}, {"pos", rows}}};
  const ir::Shape positions{ir::DType::i32, {{"pos", rows}}};
  Buffers table{resident_->parameter(f.embedding)};
  append(table, resident_->whole(f.embed_reads));
  ASSIGN_OR_RETURN(const Program* first,
                   programs({Part::kEmbed, 0, rows}, 0, [&] { return with(table, {tokens, positions}); }));
  const ir::Shape x = first->results[0];
  for (int64_t layer = 0; layer < layer_count(); ++layer) {
    if (std::find(f.kind.begin(), f.kind.begin() + layer, kind_of(layer)) != f.kind.begin() + layer) continue;
    ASSIGN_OR_RETURN(LayerWeights weights, read_layer(layer));
    const int64_t kind = kind_of(layer);
    const ir::Shape keys = cache_.pool().keys(layer).shape(), values = cache_.pool().values(layer).shape();
    const auto table = [&](const char* axis, int64_t count) {
      return ir::Shape{ir::DType::i32, {{axis, count}, {"entry", cache_.entries()}}};
    };
    ir::Shape y;
    if (is_in_place()) {
      ASSIGN_OR_RETURN(const Program* paged, programs({Part::kPaged, kind, rows, 1, adapted}, layer, [&] {
                         return with(weights.attention, {tokens, x, positions, keys, values, positions,
                                                         table("pos", rows), positions});
                       }));
      y = paged->results[0];
    } else {
      ASSIGN_OR_RETURN(const Program* project, programs({Part::kProject, kind, rows, 1, adapted}, layer, [&] {
                         return with(weights.attention, {tokens, x, positions});
                       }));
      const ir::Shape q = project->results[0];
      const auto attend = [&](int64_t sequences, int64_t count) {
        return programs({Part::kAttend, kind, count, sequences}, layer, [&] {
          return with(weights.attention,
                      {with_rows(q, sequences, count), keys, values, table("batch", sequences),
                       ir::Shape{ir::DType::i32, {{"batch", sequences}}}});
        });
      };
      ASSIGN_OR_RETURN(const Program* attended, attend(1, rows));
      if (rows == 1)
        for (int64_t sequences = 2; sequences < 2 * limits_.sequences; sequences *= 2)
          RETURN_IF_ERROR(attend(sequences, 1));
      y = attended->results[0];
    }
    append(weights.attention, weights.chosen);
    RETURN_IF_ERROR(programs({Part::kRest, kind, rows, 1, adapted}, layer,
                             [&] { return with(weights.attention, {x, y}); }));
  }
  const Buffers norm = resident_->whole(f.norm_reads), head = resident_->whole(f.head_reads);
  RETURN_IF_ERROR(programs({Part::kNormed, 0, rows}, 0, [&] { return with(norm, {x}); }));
  RETURN_IF_ERROR(
      programs({Part::kHead, 0, rows, 1, adapted && has_adapted_head_}, 0, [&] { return with(head, {x}); }));
  return {};
}

}  // namespace ostro::infer
