// read_prompts, chat_text, chat_ids, biases: fields of a request that become token ids. check_model: the
// model that it asks for. Private to this room. An error goes to `fields`, and the result is then empty.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/serve/json/fields.h"
#include "ostro/serve/model/served_model.h"

namespace ostro::serve {

// "model" may be absent; otherwise it is this one.
void check_model(Fields& fields, const ServedModel& model);
// The field `name`: a text, a list of texts, ids, or a list of lists of ids; at most `most` of them. A text
// begins as the tokenizer has it.
void read_prompts(Fields& fields, const std::string& name, const nlohmann::ordered_json& prompt,
                  const ServedModel& model, size_t most, std::vector<std::vector<int32_t>>& ids,
                  std::vector<std::string>& texts);
// A conversation (conversation.h) as the chat template writes it, and the ids of that text, whose special
// tokens are used as they are. `name`: the field that it came from; `variables`: those of read_variables,
// each of which the template has to have.
std::string chat_text(Fields& fields, const std::string& name, const nlohmann::ordered_json& messages,
                      const nlohmann::ordered_json& tools, const nlohmann::ordered_json& variables,
                      const ServedModel& model, bool add_generation_prompt);
std::vector<int32_t> chat_ids(Fields& fields, const std::string& name, const std::string& text,
                              const ServedModel& model);
// "logit_bias": {"id": number}, ascending.
std::vector<std::pair<int32_t, double>> biases(Fields& fields, const nlohmann::ordered_json& bias,
                                               const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::serve
