// text_model: makes a TextModel from a loaded model.
#pragma once

#include "ostro/eval/score/text_model.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::eval {

// The TextModel has the context, the leaves, the tokenizer and the chat template of the model's run.
// `batch_tokens` is as in TextModelOptions. The engine must outlive it. Errors: a chat template that cannot
// be read.
Result<TextModel> text_model(io::FileSystem& fs, trained::LoadedModel loaded, runtime::Engine& engine,
                             int64_t batch_tokens);

}  // namespace ostro::eval
