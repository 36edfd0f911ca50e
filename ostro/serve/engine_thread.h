// EngineThread: the one thread that runs the model: it takes one request after the other from a bounded
// queue and writes its answers. A client that has left is dropped, while it waits and between tokens.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "ostro/http/exchange.h"
#include "ostro/serve/ask.h"
#include "ostro/serve/bounded_queue.h"
#include "ostro/serve/receipt_log.h"

namespace ostro::serve {

struct Job {
  std::shared_ptr<http::Exchange> exchange;
  std::shared_ptr<const Ask> ask;
  std::shared_ptr<void> held;  // released when the job is over, however it ends
};

class EngineThread {
 public:
  // `waiting`: requests at most. The model and the maker must outlive it.
  EngineThread(ServedModel& model, ReceiptMaker& receipts, size_t waiting);
  // Ends the request that runs and those that wait, with an error.
  ~EngineThread();

  // False: so many requests wait already.
  bool push(Job job);

 private:
  void run();
  void answer(const Job& job);

  ServedModel& model_;
  ReceiptMaker& receipts_;
  std::atomic<bool> stops_ = false;
  BoundedQueue<Job> queue_;
  std::thread thread_;
};

}  // namespace ostro::serve
