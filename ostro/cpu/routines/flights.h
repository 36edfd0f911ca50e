// Flights: exchanges that are on their way while later steps run.
//
// An exchange is started by its step and waited for before the first step that touches memory which it uses,
// or at the end of the run. So what overlaps follows from the plan of memory, and no step can see the
// difference. Errors are those of the exchange and of the function that makes its result.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/runtime/collectives.h"

namespace ostro::cpu {

// [begin, end) of memory.
struct MemoryRange {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool meets(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

// What an op exchanges with others.
struct ExchangeSpans {
  std::span<const int64_t> peers;
  std::span<const std::span<const std::byte>> send;
  std::span<const std::span<std::byte>> receive;
};

// One thread calls all functions.
class Flights {
 public:
  // Starts the exchange of an op. `done` runs when it has been waited for: it makes the op's result. Until
  // then no step may write to `stays`, from where it sends, or touch the results of the call.
  Status start(const OpCall& call, const ExchangeSpans& spans, const MemoryRange& stays,
               std::function<Status()> done);
  // Waits for all exchanges that a step must not overtake which reads and writes this memory: it may read
  // what an exchange sends, nothing else.
  Status before(std::span<const MemoryRange> reads, std::span<const MemoryRange> writes);
  Status finish_all();
  bool empty() const { return flights_.empty(); }

 private:
  struct Flight {
    runtime::Collectives* group;
    int64_t ticket;
    std::vector<MemoryRange> sends, makes;
    std::function<Status()> done;
  };
  static Status finish(Flight& flight);
  std::vector<Flight> flights_;
};

// An exchange that is waited for at once. Its time is a span "wait" of the profile.
Status exchange_now(const OpCall& call, const ExchangeSpans& spans);

}  // namespace ostro::cpu
