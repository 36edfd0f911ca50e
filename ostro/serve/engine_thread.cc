#include "ostro/serve/engine_thread.h"

#include "ostro/base/sha256.h"
#include "ostro/serve/reply.h"

namespace ostro::serve {
namespace {

// 53 bits, so that every program that reads JSON keeps them.
uint64_t drawn_seed() {
  const Nonce nonce = new_nonce();
  uint64_t out = 0;
  for (size_t i = 0; i < sizeof out; ++i) out = out << 8 | static_cast<unsigned char>(nonce[i]);
  return out >> 11;
}

ApiError stopping() { return {kUnavailable, "the server stops before the answer is whole"}; }

ApiError of_model(const Error& error) {
  return {error.code() == ErrorCode::kInvalidArgument ? kBadRequest : kServerError, error.message()};
}

}  // namespace

EngineThread::EngineThread(ServedModel& model, ReceiptMaker& receipts, size_t waiting)
    : model_(model), receipts_(receipts), queue_(waiting), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  stops_ = true;
  for (const Job& job : queue_.close()) job.exchange->answer(error_response(stopping()));
  thread_.join();
}

bool EngineThread::push(Job job) {
  return queue_.push(std::move(job), [](const Job& waiting) { return waiting.exchange->is_gone(); });
}

void EngineThread::run() {
  while (const auto job = queue_.pop())
    if (!job->exchange->is_gone()) answer(*job);
}

void EngineThread::answer(const Job& job) {
  const Ask& ask = *job.ask;
  http::Exchange& exchange = *job.exchange;
  Reply reply(model_, ask, exchange);
  const uint64_t drawn = ask.seed.value_or(drawn_seed());
  for (size_t p = 0; p < ask.prompts.size(); ++p)
    for (int64_t c = 0; c < ask.count; ++c) {
      AnswerOptions options = ask.options;
      options.choice.choice = c;
      options.choice.seed =
          ask.nonce.empty() ? drawn : nonce_seed(ask.nonce, model_.facts.state, ask.prompts[p], options);
      RatingOptions rating = ask.rating;
      rating.log_probs = rating.log_probs || ask.receipt;
      reply.open(p * static_cast<size_t>(ask.count) + static_cast<size_t>(c), p, options.choice.seed);
      std::vector<float> log_probs;
      auto made = make_answer(model_, ask.prompts[p], options, rating,
                              {[&](std::vector<RatedToken> tokens) { reply.prompt(std::move(tokens)); },
                               [&](AnswerState& state, RatedToken token) {
                                 log_probs.push_back(token.log_prob);
                                 reply.token(state, std::move(token));
                                 return !exchange.is_gone() && !stops_;
                               }});
      if (!made.ok()) return reply.fail(of_model(made.error()));
      if (made->finish() == Finish::kNone) return reply.fail(stopping());
      std::optional<ReceiptDocument> receipt;
      if (ask.receipt) {
        auto written = receipts_.make(model_, *made, options, ask.nonce, std::move(log_probs));
        if (!written.ok())
          return reply.fail({kUnavailable, "no receipt can be kept now: " + written.error().message()});
        receipt = std::move(*written);
      }
      reply.close(*made, receipt);
    }
  reply.finish();
}

}  // namespace ostro::serve
