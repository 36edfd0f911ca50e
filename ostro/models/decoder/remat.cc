#include "ostro/models/decoder/remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <variant>

#include "ostro/base/text_parts.h"

namespace ostro::models {

Result<std::string> remat_text(const config::Alternatives<bool, std::string>& gradient_checkpointing) {
  if (const bool* on = std::get_if<bool>(&gradient_checkpointing.value))
    return std::string(*on ? "all" : "none");
  const auto& text = std::get<std::string>(gradient_checkpointing.value);
  if (text == "everything") return std::string("keep");
  if (text == "nothing") return std::string("all");
  for (const std::string& name : comma_parts(text))
    if (std::find(std::begin(kCheckpointNames), std::end(kCheckpointNames), name) ==
        std::end(kCheckpointNames))
      return config::option_error(
          "model.gradient_checkpointing",
          fmt::format("unknown name \"{}\"; use true, false, nothing, everything, or some of {}", name,
                      fmt::join(std::begin(kCheckpointNames), std::end(kCheckpointNames), ",")));
  return fmt::format("save:{}", text);
}

}  // namespace ostro::models
