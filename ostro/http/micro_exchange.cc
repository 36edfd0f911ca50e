#include "ostro/http/micro_exchange.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace ostro::http {
namespace {

using Shared = std::shared_ptr<MicroExchange>;

ssize_t read_stream(void* exchange, uint64_t, char* to, size_t most) {
  switch (const int64_t count = (*static_cast<Shared*>(exchange))->read(to, most)) {
    case -1: return MHD_CONTENT_READER_END_OF_STREAM;
    case -2: return MHD_CONTENT_READER_END_WITH_ERROR;
    default: return static_cast<ssize_t>(count);
  }
}

void free_stream(void* exchange) { delete static_cast<Shared*>(exchange); }

bool queue(MHD_Connection* connection, const Response& response, MHD_Response* out) {
  if (out == nullptr) return false;
  for (const auto& [name, value] : {std::pair{"Content-Type", response.type.c_str()},
                                    {"Connection", "close"},
                                    {"Cache-Control", "no-store"},
                                    {"Referrer-Policy", "no-referrer"},
                                    {"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"}})
    MHD_add_response_header(out, name, value);
  for (const auto& [name, value] : response.headers)
    MHD_add_response_header(out, name.c_str(), value.c_str());
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(response.status), out);
  MHD_destroy_response(out);
  return queued == MHD_YES;
}

}  // namespace

void MicroExchange::resume() {
  if (suspended_ && connection_ != nullptr) {
    suspended_ = false;
    MHD_resume_connection(connection_);
  }
}

void MicroExchange::answer(Response response) {
  const std::lock_guard lock(mutex_);
  response_ = std::move(response);
  resume();
}

void MicroExchange::begin(Response head) {
  const std::lock_guard lock(mutex_);
  streams_ = true;
  response_ = std::move(head);
  resume();
}

void MicroExchange::send(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (gone_) return;
  if (sent_ > pending_.size() / 2) {  // a client that is always a little behind
    pending_.erase(0, sent_);
    sent_ = 0;
  }
  pending_.append(bytes);
  if (unread() > limits_.unread && !full_since_) full_since_ = Clock::now();
  resume();
}

bool MicroExchange::is_full() {
  const std::lock_guard lock(mutex_);
  if (gone_ || !full_since_) return false;
  if (Clock::now() - *full_since_ < limits_.unread_time) return true;
  drop();
  return false;
}

// The connection's thread waits for the socket, perhaps for as long as the client likes.
void MicroExchange::drop() {
  gone_ = true;
  full_since_.reset();
  std::string().swap(pending_);
  sent_ = 0;
  if (connection_ != nullptr)
    ::shutdown(MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
               SHUT_RDWR);
  resume();
}

void MicroExchange::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (connection_ != nullptr) on_all_(unread());
  resume();
}

bool MicroExchange::is_gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

void MicroExchange::take_body(std::string_view bytes) {
  request_.body_too_large = request_.body_too_large || request_.body.size() + bytes.size() > limits_.body;
  if (request_.body_too_large)
    std::string().swap(request_.body);
  else
    request_.body.append(bytes);
}

// The lock is not held while libmicrohttpd has the answer: it calls read() under a lock of its own.
bool MicroExchange::go_on(MHD_Connection* connection) {
  Response response;
  bool streams = false;
  {
    const std::lock_guard lock(mutex_);
    if (!response_) {
      if (gone_) return false;
      suspended_ = true;
      MHD_suspend_connection(connection);
      return true;
    }
    response = std::move(*response_);
    streams = streams_;
  }
  if (!streams) {
    on_all_(response.body.size());
    return queue(
        connection, response,
        MHD_create_response_from_buffer(response.body.size(), response.body.data(), MHD_RESPMEM_MUST_COPY));
  }
  constexpr size_t kBlock = 4096;
  auto held = std::make_unique<Shared>(shared_from_this());
  MHD_Response* out =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, &read_stream, held.get(), &free_stream);
  if (out != nullptr) (void)held.release();
  return queue(connection, response, out);
}

void MicroExchange::leave() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  resume();
}

void MicroExchange::closed() {
  const std::lock_guard lock(mutex_);
  connection_ = nullptr;
  drop();
}

int64_t MicroExchange::read(char* to, size_t most) {
  const std::lock_guard lock(mutex_);
  if (gone_) return -2;
  const size_t count = std::min(most, pending_.size() - sent_);
  if (count > 0) {
    std::memcpy(to, pending_.data() + sent_, count);
    sent_ += count;
    if (sent_ == pending_.size()) {
      pending_.clear();
      sent_ = 0;
    }
    if (unread() <= limits_.unread) full_since_.reset();
    return static_cast<int64_t>(count);
  }
  if (ended_) return -1;
  suspended_ = true;
  MHD_suspend_connection(connection_);
  return 0;
}

}  // namespace ostro::http
