// Certificates: what a process shows the other processes of its job in TLS, and what it accepts of them.
//
// The key of the job's certificate authority (CA) follows from the job's secret, which the launcher makes and
// hands to every process. So nothing else is handed around: each process makes a key pair of its own, which
// never leaves it, and signs a certificate for it. Only this job trusts the CA.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "ostro/base/error.h"

struct evp_pkey_st;  // of OpenSSL
struct ssl_ctx_st;

namespace ostro::tls {

using Time = std::chrono::system_clock::time_point;

// A certificate is valid this long before it is made, since clocks differ, and this long after.
inline constexpr std::chrono::hours kValidBefore{24}, kValidAfter{7 * 24};
// A process makes another certificate when the last is so old: a connection may be made at any time of a job.
inline constexpr std::chrono::hours kRenewAfter{1};

// Thread-safe.
class Certificates {
 public:
  // `now` stands for the clock in tests; empty: the system's. Errors: kInvalidArgument for an empty secret;
  // kInternal when the cryptographic library lacks Ed25519.
  static Result<std::shared_ptr<Certificates>> of_job(const std::string& secret,
                                                      std::function<Time()> now = {});
  ~Certificates();
  // The settings of a new connection: TLS 1.3 only, both sides show a certificate of the job, no tickets.
  std::shared_ptr<ssl_ctx_st> context();

 private:
  Certificates(std::shared_ptr<evp_pkey_st> authority, std::function<Time()> now);
  Status renew(Time now);

  const std::shared_ptr<evp_pkey_st> authority_;
  const std::function<Time()> now_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<ssl_ctx_st> context_;
  Time made_;
};

}  // namespace ostro::tls
