#include "ostro/cpu/routines/flights.h"

#include <algorithm>

#include "ostro/base/profile.h"
#include "ostro/base/wait_label.h"

namespace ostro::cpu {
namespace {

MemoryRange memory_of(const Array& a) { return {a.data, a.data + a.shape().bytes()}; }  // dense

bool meet(std::span<const MemoryRange> a, std::span<const MemoryRange> b) {
  return std::any_of(a.begin(), a.end(), [&](const MemoryRange& x) {
    return std::any_of(b.begin(), b.end(), [&](const MemoryRange& y) { return x.meets(y); });
  });
}

}  // namespace

Status Flights::start(const OpCall& call, const ExchangeSpans& spans, const MemoryRange& stays,
                      std::function<Status()> done) {
  runtime::Collectives* group = call.context.collectives;
  ASSIGN_OR_RETURN(const int64_t ticket, group->start(spans.peers, spans.send, spans.receive));
  Flight flight{group, ticket, {}, {}, std::move(done)};
  flight.sends.push_back(stays);
  for (const Array& a : call.out) flight.makes.push_back(memory_of(a));
  flights_.push_back(std::move(flight));
  return Status();
}

Status Flights::finish(Flight& flight) {
  {
    const Span span(&wait_label(Wait::kWorkers));
    RETURN_IF_ERROR(flight.group->wait(flight.ticket));
  }
  return flight.done();
}

Status Flights::before(std::span<const MemoryRange> reads, std::span<const MemoryRange> writes) {
  for (size_t i = 0; i < flights_.size();) {
    Flight& flight = flights_[i];
    if (!meet(flight.makes, reads) && !meet(flight.makes, writes) && !meet(flight.sends, writes)) {
      ++i;
      continue;
    }
    Flight now = std::move(flight);
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
    RETURN_IF_ERROR(finish(now));
  }
  return Status();
}

// Waits for all of them even if one fails: their memory is the caller's again.
Status Flights::finish_all() {
  Status first;
  for (Flight& flight : flights_)
    if (const Status status = finish(flight); first.ok()) first = status;
  flights_.clear();
  return first;
}

Status exchange_now(const OpCall& call, const ExchangeSpans& spans) {
  const Span span(&wait_label(Wait::kWorkers));
  return call.context.collectives->exchange(spans.peers, spans.send, spans.receive);
}

}  // namespace ostro::cpu
