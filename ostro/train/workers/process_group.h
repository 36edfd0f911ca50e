// What one process knows of the workers that train a run together with it, each a process of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ostro/dist/group.h"
#include "ostro/dist/key_value.h"
#include "ostro/ir/program/mesh.h"

namespace ostro::train {

// The worker of rank 0, the leader, holds the run: directory, chain, checkpoints, reports. The others follow
// its commands, which it leaves in the store. All keys are valid for one epoch, that is, as long as nobody is
// lost.
struct ProcessGroup {
  int64_t rank = 0, size = 1;
  dist::KeyValue* store = nullptr;  // of this epoch; get() fails when the epoch ends
  // Connects this process with the others, which form this mesh. All of them call it at about the same time.
  std::function<Result<std::unique_ptr<dist::Group>>(const ir::Mesh&)> connect;
  // Set when another process or the epoch was lost, by wait_for(), by connect() and by the connections that
  // it gave. Then a later epoch may do what this one could not.
  std::optional<std::string> lost = {};
};

// Waits for a key as long as the epoch lasts.
Result<std::string> wait_for(ProcessGroup& group, const std::string& key);

// Sets group.lost when the epoch is over.
void notice_loss(ProcessGroup& group);

// The keys. Each has one writer.
inline std::string ready_key(int64_t rank) { return "ready/" + std::to_string(rank); }
inline std::string command_key(int64_t number) { return "command/" + std::to_string(number); }
inline std::string save_key(int64_t step) { return "save/" + std::to_string(step); }
inline constexpr const char* kConfigKey = "config";    // the resolved configuration, from the leader
inline constexpr const char* kProgramKey = "program";  // hash of the canonical programs
inline constexpr const char* kDataKey = "data";        // hash of the data set
inline constexpr const char* kConnectKey = "connect";  // everyone is ready: connect now

// What the leader asks of all workers. Text of a command: its name and its arguments, separated by spaces.
struct Command {
  enum class Kind { kInit, kRestore, kStep, kSave, kEvaluate, kEnd };
  Kind kind = Kind::kEnd;
  int64_t step = 0;              // kRestore, kStep, kSave
  bool prints = false;           // kRestore
  float lr = 0, k1 = 0, k2 = 0;  // kStep

  std::string text() const;
  static Result<Command> parse(const std::string& text);
};

}  // namespace ostro::train
