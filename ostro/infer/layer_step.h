// LayerRows::Step: the rows of a step of LayerRows, for its parts.
#pragma once

#include <vector>

#include "ostro/infer/layer_rows.h"

namespace ostro::infer {

struct LayerRows::Step {
  struct Piece {
    RowChunk chunk;
    int64_t first = 0, count = 0;  // its rows
    int64_t start = 0;             // position of the first
  };
  std::vector<Piece> pieces;
  int64_t rows = 0, bucket = 0;
  int64_t logits = 0, normed = 0;     // rows that are wanted
  runtime::Buffer tokens, positions;  // i32 [batch, pos], i32 [pos]; of padding 0
  runtime::Buffer adapter;            // i32 [batch, pos], of padding kNoAdapter; empty: no row has one
  runtime::Buffer place, table,
      in_text;        // of LayerFunctions::Paged; in_text has the positions, of padding -1
  runtime::Buffer x;  // [batch, pos, embed]
};

}  // namespace ostro::infer
