#include "ostro/train/workers/process_group.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <sstream>

namespace ostro::train {

Result<std::string> wait_for(ProcessGroup& group, const std::string& key) {
  while (true) {
    auto value = group.store->get(key, std::chrono::seconds(10));
    if (value.ok()) return value;
    if (value.error().code() == ErrorCode::kBusy) continue;
    if (!group.lost) group.lost = value.error().message();
    return value.error();
  }
}

void notice_loss(ProcessGroup& group) {
  const auto nothing = group.store->get("nothing", std::chrono::milliseconds(0));
  if (!nothing.ok() && nothing.error().code() != ErrorCode::kBusy && !group.lost)
    group.lost = nothing.error().message();
}

std::string Command::text() const {
  switch (kind) {
    case Kind::kInit:
      return "init";
    case Kind::kRestore:
      return fmt::format("restore {} {}", step, prints ? 1 : 0);
    case Kind::kSave:
      return fmt::format("save {}", step);
    case Kind::kEvaluate:
      return "evaluate";
    case Kind::kStep:  // floats by their bits: exact
      return fmt::format("step {} {} {} {}", step, std::bit_cast<uint32_t>(lr), std::bit_cast<uint32_t>(k1),
                         std::bit_cast<uint32_t>(k2));
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
  if (name == "init") {
    c.kind = Kind::kInit;
  } else if (name == "restore" && in >> c.step >> c.prints) {
    c.kind = Kind::kRestore;
  } else if (name == "save" && in >> c.step) {
    c.kind = Kind::kSave;
  } else if (name == "evaluate") {
    c.kind = Kind::kEvaluate;
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
