#include "ostro/convert/import/training_yaml.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/io/files/path.h"
#include "ostro/models/decoder/decoder.h"

namespace ostro::convert {
namespace {

constexpr int64_t kTrainingLength = 2048;  // of a sequence, where the model can do more

}  // namespace

std::string training_yaml(const train::TrainConfig& config, const std::string& from, const std::string& out) {
  using Model = models::ModelOptionsOf<models::DecoderOptions, models::Decoder>;
  config::OpenSection model = config.model;
  auto& options = dynamic_cast<Model&>(model.value()).options;
  options.seq_len = std::min(options.seq_len, kTrainingLength);
  config::Node root = config::Node::map();
  config::Node& data = root.put("data", config::Node::map());
  data.put("train_urls", config::write_value(config.data.train_urls, config::Write::kAll));
  data.put("tokenizer", config::Node::string(*config.data.tokenizer));
  root.put("model", config::write_value(model, config::Write::kAll));
  if (train::lora_spec(config.adapter))
    root.put("adapter", config::write_value(config.adapter, config::Write::kAll));
  config::Node& trainer = root.put("trainer", config::Node::map());
  trainer.put("id", config::Node::string(io::base_name(io::clean_path(out))));
  trainer.put("initialize_from", config::Node::string(io::absolute_path(out)));
  trainer.put("mp", config::Node::string(config.trainer.mp));
  trainer.put("train_batch_size", config::Node::integer(16));
  trainer.put("num_train_steps", config::Node::integer(1000));
  config::Node& optimizer = root.put("optimizer", config::Node::map());
  optimizer.put("type", config::Node::string("adam"));
  optimizer.put("learning_rate", config::Node::number(1e-5));
  return fmt::format(
      "# Goes on training {}. Say where the texts are (data.train_urls), then: ostro train --config {}\n{}",
      from, io::join_path(out, kTrainFile), config::block_text(root));
}

}  // namespace ostro::convert
