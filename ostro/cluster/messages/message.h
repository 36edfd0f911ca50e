// Kind, Message, MessageReader: the messages between a coordinator and a member.
//
// A message is a byte for its kind, then its fields: numbers of 8 bytes, little-endian, and texts, each with
// its length in front. On the wire (wire/channel.h) its own length, 4 bytes, comes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ostro/base/error.h"
#include "ostro/cluster/messages/epoch.h"
#include "ostro/cluster/watch/progress.h"

namespace ostro::cluster {

inline constexpr size_t kMostBytes = size_t{1} << 20;  // of a message
inline constexpr size_t kMostBytesOfStranger = 1024;   // of a message before the proof of the secret
inline constexpr size_t kMostBytesOfReason = 4096;     // of the reason of an error
inline constexpr size_t kMostBytesOfHost = 256;        // and of a slice
inline constexpr int64_t kReplyOk = -1;                // in place of an ErrorCode

enum class Kind : uint8_t {
  // coordinator to member
  kChallenge = 1,  // nonce
  kWelcome,        // proof, lease in milliseconds
  kRefused,        // why
  kEpoch,          // number, rank or -1, 1 if it is planned beside another, then what write_workers() adds
  kEnd,            // number, reason
  kReply,          // request, ErrorCode or kReplyOk, value or message
  // member to coordinator
  kProof,    // nonce, proof
  kHello,    // job, host, pid, slice, machine, SliceRates, epoch, rank, size, number of entries, then each
             // entry's name and value
  kEndSeen,  // number
  kFault,    // number, why
  kSet,      // request, number, key, value
  kGet,      // request, number, key
  kCancel,   // request
  // both
  kBeat,  // heartbeat; a member's has its progress, the coordinator answers it
  // coordinator to member
  kDropped,  // number of a planned epoch, why it is given up
  kStop,     // save and stop
  kOver,     // the run is over: the exit status of its leader
  // member to coordinator
  kReady,   // it can join an epoch (Member::ready)
  kLeave,   // it asks to leave
  kBegan,   // number of a planned epoch that has taken over
  kDone,    // the run is over: its exit status
  kGoes,    // why it is about to end
  kGetAll,  // request, number, group, count
  // coordinator to member
  kSecured,  // nonce; it speaks TLS from here on: the first message, and the last that is not encrypted
  // worker to coordinator, in place of kProof
  kRelay,  // group, rank, rank of the other worker, nonce, proof (relay_request.h)
  // coordinator to both workers
  kRelayed,  // what follows comes from the other worker
  // member to coordinator
  kTells,  // what has happened
  // coordinator to worker
  kNoRelay,  // why there is no place at the relay now
  // member to coordinator
  kSlices,  // number, 1 if the epoch is to end for it, 1 if other names do not count any more, SliceRates,
            // text, size, then the name of each worker's slice
  kSaid,    // bytes that it has written to standard error
};

// Builds a message: Message(Kind::kEnd).number(3).text("gone").bytes().
class Message {
 public:
  explicit Message(Kind kind) : bytes_(1, static_cast<char>(kind)) {}
  Message& number(int64_t value);
  Message& text(std::string_view value);
  // The fields of another message, behind those that are here.
  Message& fields_of(const Message& other);
  std::string bytes() const { return bytes_; }
  // The same, which leaves the message empty: for long ones.
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads a message from untrusted bytes, which must outlive it: a missing field reads as 0 or "", and done()
// is false from then on.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes);
  Kind kind() const { return kind_; }
  int64_t number();
  std::string_view text();
  // True when every field was present, and nothing else.
  bool done() const { return !short_ && rest_.empty(); }

 private:
  std::string_view take(size_t size);
  Kind kind_;
  std::string_view rest_;
  bool short_ = false;
};

// Builds a member's kBeat; reads its fields, nothing when they are wrong.
std::string beat_message(const Progress& progress);
std::optional<Progress> read_beat(MessageReader& reader);

// Builds a kHello.
std::string hello_message(const Hello& hello);
// Reads the fields of a kHello; nothing when they are wrong.
std::optional<Hello> read_hello(MessageReader& reader);

// Adds the size of an epoch, its rates and its workers to a kEpoch: each worker's host, then the slices in
// runs of neighbours: how many workers, their slice, 1 if that is a guess. Every worker gets this of all, and
// they have few slices.
void write_workers(const Epoch& epoch, Message& message);
// Reads what write_workers() added; false when it is wrong.
bool read_workers(MessageReader& reader, Epoch& epoch);

// The text, or its start when it has more than `most` bytes.
std::string shortened(std::string_view text, size_t most);

}  // namespace ostro::cluster
