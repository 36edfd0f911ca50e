// embedding_scatter_columns: the additions of embedding_scatter_add. One kernel serves all instruction sets,
// because additions over columns are bound by memory.
#pragma once

#include "ostro/kernels/losses/embedding.h"

namespace ostro::kernels {

// Columns [begin, end) of the whole table.
void embedding_scatter_columns(const EmbeddingScatterAdd& args, int64_t begin, int64_t end);

}  // namespace ostro::kernels
