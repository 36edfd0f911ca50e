// text_model: makes a TextModel from a loaded model.
#pragma once

#include "ostro/eval/score/text_model.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::eval {

// The TextModel has the context, the leaves and the tokenizer of the model's run. `batch_tokens` is as in
// TextModelOptions. The engine must outlive it.
TextModel text_model(trained::LoadedModel loaded, runtime::Engine& engine, int64_t batch_tokens);

}  // namespace ostro::eval
