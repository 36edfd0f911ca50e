// config_to_show: the text of a run's config.yaml as others may see it: in what is published, and on pages.
#pragma once

#include <string>

namespace ostro::train {

// The same text without the words of trainer.alert_command and trainer.notice_command, which may have a
// secret in them, such as the address of a hook. No hash depends on them. Without such words, or where it is
// no YAML, the text is returned as it is.
std::string config_to_show(const std::string& yaml);

}  // namespace ostro::train
