// config_to_show: a configuration as text that others may see: in checkpoints, in what is published, on
// pages.
#pragma once

#include <string>

#include "ostro/train/options/config.h"

namespace ostro::train {

// The text of a config.yaml without the words of trainer.alert_command and trainer.notice_command, which may
// have a secret in them, such as the address of a hook. No hash depends on them. Without such words, or where
// it is no YAML, the text is returned as it is.
std::string config_to_show(const std::string& yaml);
// All options of a configuration, as config::resolved_yaml, without these words.
std::string config_to_show(TrainConfig config);

}  // namespace ostro::train
