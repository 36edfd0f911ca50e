#include "ostro/init/token_sample.h"

#include <algorithm>

#include "ostro/tokenizer/files/trainer.h"

namespace ostro::init {

Result<double> bytes_per_token(const std::vector<std::string>& sample, int64_t vocab_size, int threads) {
  size_t next = 0;
  tokenizer::TrainOptions options;
  options.vocab_size = static_cast<uint32_t>(vocab_size);
  options.threads = threads;
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer trained, tokenizer::train(
                                                           [&](std::string& document) -> Result<bool> {
                                                             if (next == sample.size()) return false;
                                                             document = sample[next++];
                                                             return true;
                                                           },
                                                           options));
  tokenizer::Encoder encoder(trained);
  std::vector<uint32_t> ids;
  size_t bytes = 0, tokens = 0;
  for (const std::string& text : sample) {
    ids.clear();
    encoder.encode(text, {.add_special_tokens = false}, ids);
    bytes += text.size();
    tokens += ids.size() + 1;  // the end of a document is a token, too
  }
  if (bytes == 0) return invalid_argument("there is no text in the sample");
  return static_cast<double>(bytes) / static_cast<double>(std::max<size_t>(1, tokens));
}

}  // namespace ostro::init
