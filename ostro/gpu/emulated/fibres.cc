#include "ostro/gpu/emulated/fibres.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "ostro/base/check.h"

// ostro_cuda_switch(from, to): stores the registers that a call keeps on the stack and the stack's pointer in
// *from; goes on where `to` was left.
extern "C" void ostro_cuda_switch(void** from, void* to);
__asm__(R"(
.text
.globl ostro_cuda_switch
.type ostro_cuda_switch, @function
ostro_cuda_switch:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size ostro_cuda_switch, .-ostro_cuda_switch
)");

namespace ostro::gpu {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr size_t kWarp = 32;

thread_local Fibres* starting = nullptr;

}  // namespace

Fibres::~Fibres() {
  for (const Fibre& f : fibres_)
    if (f.stack != nullptr) munmap(f.stack, kStackBytes);
}

uint64_t Fibres::next() {
  drawn_ ^= drawn_ << 13;
  drawn_ ^= drawn_ >> 7;
  drawn_ ^= drawn_ << 17;
  return drawn_;
}

void Fibres::enter(Fibres* self) {
  (*self->body_)();
  self->wait(State::kDone);
}

void Fibres::wait(State state) {
  Fibre& f = fibres_[running_];
  f.state = state;
  ostro_cuda_switch(&f.pointer, scheduler_);
}

void Fibres::barrier(int line) {
  fibres_[running_].line = line;
  wait(State::kAtBarrier);
}

void Fibres::pause(int line) {
  fibres_[running_].line = line;
  wait(State::kPaused);
}

const unsigned long long* Fibres::exchange(const unsigned long long* given, int count) {
  OSTRO_CHECK(count <= kMostGiven, "{} numbers are exchanged; the most is {}", count, +kMostGiven);
  Fibre& f = fibres_[running_];
  std::copy(given, given + count, f.given);
  f.count = count;
  wait(State::kAtExchange);
  return exchanged_.data() + running_ / kWarp * kWarp * kMostGiven;
}

std::string Fibres::where(size_t thread) const {
  const Fibre& f = fibres_[thread];
  switch (f.state) {
    case State::kDone: return fmt::format("thread {} has ended", thread);
    case State::kAtBarrier: return fmt::format("thread {} waits at the barrier of line {}", thread, f.line);
    case State::kPaused: return fmt::format("thread {} waits for arrivals in line {}", thread, f.line);
    default: return fmt::format("thread {} waits for its warp with {} numbers", thread, f.count);
  }
}

// No thread is ready. Lets a block or warps go on whose threads all wait for the same; returns why none does.
std::string Fibres::release() {
  const size_t n = block_->threads;
  bool any = false;
  for (size_t warp = 0; warp < n; warp += kWarp) {
    size_t there = 0;
    const int count = fibres_[warp].count;
    for (size_t i = warp; i < warp + kWarp; ++i)
      there += i < n && fibres_[i].state == State::kAtExchange && fibres_[i].count == count ? 1 : 0;
    if (there != kWarp) continue;
    auto* all = exchanged_.data() + warp * kMostGiven;
    for (size_t i = warp; i < warp + kWarp; ++i)
      all = std::copy(fibres_[i].given, fibres_[i].given + count, all);
    for (size_t i = warp; i < warp + kWarp; ++i) fibres_[i].state = State::kReady;
    any = true;
  }
  if (block_->events != seen_events_) {
    seen_events_ = block_->events;
    for (size_t i = 0; i < n; ++i)
      if (fibres_[i].state == State::kPaused) fibres_[i].state = State::kReady, any = true;
  }
  if (any) return "";
  for (size_t i = 0; i < n; ++i)
    if (fibres_[i].state != State::kAtBarrier || fibres_[i].line != fibres_[0].line)
      return fmt::format("the threads do not meet: {}, {}", where(0), where(i == 0 ? n - 1 : i));
  for (size_t i = 0; i < n; ++i) fibres_[i].state = State::kReady;
  return "";
}

std::string Fibres::run(OstroBlock& block, const std::function<void()>& body) {
  block_ = &block;
  body_ = &body;
  block.events = seen_events_ = 0;
  const size_t n = block.threads;
  while (fibres_.size() < n) {
    void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    OSTRO_CHECK(stack != MAP_FAILED, "no memory for the stacks of {} emulated threads", n);
    fibres_.emplace_back();
    fibres_.back().stack = static_cast<std::byte*>(stack);
  }
  exchanged_.resize((n + kWarp - 1) / kWarp * kWarp * kMostGiven);
  for (size_t i = 0; i < n; ++i) {
    fibres_[i].state = State::kReady;
    fibres_[i].pointer = nullptr;
  }
  const uint64_t numbers = std::bit_ceil(n);
  for (size_t left = n; left > 0;) {
    // An order of all numbers below a power of two: an odd factor and an exclusive or, both drawn.
    const uint64_t drawn = next(), factor = drawn | 1, other = drawn >> 32;
    bool ran = false;
    for (uint64_t i = 0; i < numbers; ++i) {
      const auto thread = static_cast<unsigned>((i * factor ^ other) & (numbers - 1));
      if (thread >= n) continue;
      Fibre& f = fibres_[thread];
      if (f.state != State::kReady) continue;
      ran = true;
      running_ = thread;
      block.thread = thread;
      if (f.pointer == nullptr) {
        // A new stack: six registers, and the function that a return goes to, with the stack as a call leaves
        // it (8 beyond a multiple of 16).
        auto** top = reinterpret_cast<void**>(f.stack + kStackBytes - 56);
        top[0] = nullptr;
        top[-1] = reinterpret_cast<void*>(+[] { enter(starting); });
        for (int k = 2; k <= 7; ++k) top[-k] = nullptr;
        f.pointer = top - 7;
        starting = this;
      }
      ostro_cuda_switch(&scheduler_, f.pointer);
      if (f.state == State::kDone) --left;
    }
    if (!ran)
      if (std::string wrong = release(); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace ostro::gpu
