// A loaded model as one that texts are asked of.
#pragma once

#include "ostro/eval/score/text_model.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::eval {

// With the context, the leaves and the tokenizer of its run. The engine must outlive it.
TextModel text_model(trained::LoadedModel loaded, runtime::Engine& engine, int64_t batch_tokens);

}  // namespace ostro::eval
