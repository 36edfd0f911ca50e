#include "ostro/train/workers/process_group.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <sstream>

#include "ostro/base/watch/pulse.h"

namespace ostro::train {

Result<std::string> wait_for(ProcessGroup& group, const std::string& key) {
  const PulseWait wait;
  while (true) {
    auto value = group.store->get(key, std::chrono::seconds(10));
    if (value.ok()) return value;
    if (value.error().code() == ErrorCode::kBusy) continue;
    if (!group.lost) group.lost = value.error().message();
    return value.error();
  }
}

std::string Command::text() const {
  switch (kind) {
    case Kind::kAdopt:
      return fmt::format("adopt {}", step);
    case Kind::kStep:  // floats by their bits: exact
      return fmt::format("step {} {} {} {}", step, std::bit_cast<uint32_t>(lr), std::bit_cast<uint32_t>(k1),
                         std::bit_cast<uint32_t>(k2));
    case Kind::kCollectParameters:
      return "collect-parameters";
    case Kind::kCollectMoments:
      return "collect-moments";
    case Kind::kEnd:
      return "end";
  }
  return "";
}

Result<Command> Command::parse(const std::string& text) {
  std::istringstream in(text);
  std::string name;
  in >> name;
  Command c;
  uint32_t lr = 0, k1 = 0, k2 = 0;
  if (name == "adopt" && in >> c.step) {
    c.kind = Kind::kAdopt;
  } else if (name == "collect-parameters") {
    c.kind = Kind::kCollectParameters;
  } else if (name == "collect-moments") {
    c.kind = Kind::kCollectMoments;
  } else if (name == "end") {
    c.kind = Kind::kEnd;
  } else if (name == "step" && in >> c.step >> lr >> k1 >> k2) {
    c.kind = Kind::kStep;
    c.lr = std::bit_cast<float>(lr), c.k1 = std::bit_cast<float>(k1), c.k2 = std::bit_cast<float>(k2);
  } else {
    return corrupt(fmt::format("the leader sent the command \"{}\", which this build does not know", text));
  }
  return c;
}

}  // namespace ostro::train
