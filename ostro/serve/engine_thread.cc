#include "ostro/serve/engine_thread.h"

#include <algorithm>
#include <chrono>

#include "ostro/serve/running_request.h"

namespace ostro::serve {
namespace {

ApiError stopping() { return {kUnavailable, "the server stops before the answer is whole"}; }

}  // namespace

EngineThread::EngineThread(ServedModel& model, ReceiptMaker& receipts, const EngineLimits& limits)
    : model_(model),
      receipts_(receipts),
      budget_(limits.step_seconds, model.runner->limits().rows),
      queue_(limits.waiting),
      thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  stops_ = true;
  for (const Job& job : queue_.close()) job.exchange->answer(error_response(stopping()));
  thread_.join();
}

bool EngineThread::push(Job job) {
  return queue_.push(std::move(job), [](const Job& waiting) { return waiting.exchange->is_gone(); });
}

void EngineThread::run() {
  while (admit()) {
    step();
    clear();
  }
  fail_all(stopping());
  requests_.clear();
}

bool EngineThread::has_free_sequence() const {
  int64_t open = 0;
  for (const RunningRequest& request : requests_) open += request.open_answers();
  return open < model_.runner->limits().sequences;
}

// Answers of the requests that were taken first come first; a request is taken from the queue when all
// answers of those before it run.
bool EngineThread::admit() {
  for (;;) {
    if (stops_) return false;
    bool waits = false;
    for (RunningRequest& request : requests_)
      while (request.has_waiting() && has_free_sequence() && request.open_next()) {
      }
    for (const RunningRequest& request : requests_) waits = waits || request.has_waiting();
    if (!requests_.empty() && (waits || !has_free_sequence())) return true;
    auto job = requests_.empty() ? queue_.pop() : queue_.try_pop();
    if (!job) return !requests_.empty();
    if (!job->exchange->is_gone()) requests_.emplace_back(model_, receipts_, std::move(*job));
    clear();
  }
}

void EngineThread::step() {
  struct Part {
    RunningRequest* request;
    RunningAnswer* answer;
    infer::RowChunk chunk;
  };
  std::vector<Part> parts;
  std::vector<std::pair<RunningRequest*, RunningAnswer*>> prompts;
  for (RunningRequest& request : requests_)
    for (RunningAnswer* answer : request.running()) {
      if (answer->unfed() == 1 && std::ssize(parts) < model_.runner->limits().rows)
        parts.push_back({&request, answer, answer->chunk(1)});
      else if (answer->unfed() > 1)
        prompts.emplace_back(&request, answer);
    }
  // What would be padding may as well be rows of a prompt.
  const auto tokens = static_cast<int64_t>(parts.size());
  int64_t room =
      std::min(std::max(budget_.rows(), infer::padded_rows(tokens + 1)), model_.runner->limits().rows) -
      tokens;
  int64_t rows = tokens;
  for (const auto& [request, answer] : prompts) {
    if (room <= 0) break;
    const int64_t count = std::min(room, static_cast<int64_t>(answer->unfed()));
    parts.push_back({request, answer, answer->chunk(static_cast<size_t>(count))});
    room -= count;
    rows += count;
  }
  if (!parts.empty()) {
    std::vector<infer::RowChunk> chunks;
    for (const Part& part : parts) chunks.push_back(part.chunk);
    const auto begin = std::chrono::steady_clock::now();
    const auto made = model_.runner->step(chunks);
    budget_.measured(rows, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (!made.ok()) return fail_all({kServerError, made.error().message()});
    const auto vocab = made->valid() ? static_cast<size_t>(made->shape().axes.back().size) : 0;
    size_t row = 0;
    for (const Part& part : parts) {
      const auto wanted = static_cast<size_t>(part.chunk.wanted);
      const auto logits =
          wanted > 0 ? made->as<float>().subspan(row * vocab, wanted * vocab) : std::span<const float>();
      row += wanted;
      if (part.request->is_over()) continue;  // it failed by an answer before this one
      if (const Status taken = part.answer->take(part.chunk, logits, vocab); !taken.ok())
        part.request->fail({kServerError, taken.error().message()});
    }
  }
  for (RunningRequest& request : requests_) request.tell();
}

void EngineThread::clear() {
  requests_.remove_if([](RunningRequest& request) {
    if (request.is_gone()) request.fail(stopping());
    return request.is_over();
  });
}

void EngineThread::fail_all(const ApiError& error) {
  for (RunningRequest& request : requests_) request.fail(error);
}

}  // namespace ostro::serve
