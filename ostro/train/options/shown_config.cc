#include "ostro/train/options/shown_config.h"

#include "ostro/config/config.h"
#include "ostro/config/yaml.h"

namespace ostro::train {

std::string config_to_show(const std::string& yaml) {
  auto tree = config::parse_yaml(yaml, "config.yaml", /*includes=*/false);
  config::Node* trainer = tree.ok() ? tree->find("trainer") : nullptr;
  if (trainer == nullptr) return yaml;
  bool has_words = false;
  for (const char* command : {"alert_command", "notice_command"})
    if (config::Node* words = trainer->find(command); words != nullptr && !words->items.empty()) {
      words->items.clear();
      has_words = true;
    }
  return has_words ? config::block_text(*tree) : yaml;
}

std::string config_to_show(TrainConfig config) {
  config.trainer.alert_command.clear();
  config.trainer.notice_command.clear();
  return config::resolved_yaml(config);
}

}  // namespace ostro::train
