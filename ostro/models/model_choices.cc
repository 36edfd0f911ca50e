#include "ostro/models/model_choices.h"

#include "ostro/models/decoder/decoder.h"
#include "ostro/models/decoder/families.h"
#include "ostro/models/model_options.h"

namespace ostro::models {

ModelChoices builtin_models() {
  ModelChoices choices;
  for (const Family& family : families())
    choices.push_back(std::make_shared<ModelOptionsOf<DecoderOptions, Decoder>>(DecoderOptions(family.name)));
  return choices;
}

}  // namespace ostro::models
