#include "ostro/dist/pair_proof.h"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "ostro/base/sha256.h"

namespace ostro::dist {
namespace {

// The proof that `from` sends to `to`, which chose the nonce. It contains both ranks, so that a worker's own
// proof cannot be sent back to it, and the length of the prefix, so that no two groups give the same text.
Sha256Digest proof(const std::string& secret, const std::string& prefix, int64_t from, int64_t to,
                   const Nonce& nonce) {
  const std::string text = fmt::format("ostro pair\n{}:{}\n{}\n{}\n{}", prefix.size(), prefix, from, to,
                                       std::string_view(nonce.data(), nonce.size()));
  return hmac_sha256(secret, text);
}

std::string_view bytes_of(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Sends out[i] to every peer i and fills in[i].
template <typename T>
Status swap_all(GlooWire& wire, int64_t rank, uint64_t round, const std::vector<T>& out, std::vector<T>& in,
                Deadline deadline) {
  std::vector<Transfer> transfers;
  for (size_t i = 0; i < out.size(); ++i)
    if (static_cast<int64_t>(i) != rank)
      transfers.push_back({static_cast<int64_t>(i), slot_of(SlotKind::kProof, round),
                           std::as_bytes(std::span(&out[i], 1)),
                           std::as_writable_bytes(std::span(&in[i], 1))});
  return wire.move(transfers, deadline);
}

}  // namespace

// Three rounds with all peers: nonces, proofs over the peer's nonce, verdicts.
Status prove_pairs(GlooWire& wire, int64_t rank, int64_t size, const std::string& secret,
                   const std::string& prefix, Deadline deadline) {
  const auto n = static_cast<size_t>(size);
  std::vector<Nonce> mine(n);
  std::vector<Nonce> theirs(n);
  for (Nonce& nonce : mine) nonce = new_nonce();
  RETURN_IF_ERROR(swap_all(wire, rank, 0, mine, theirs, deadline));

  std::vector<Sha256Digest> given(n);
  std::vector<Sha256Digest> got(n);
  for (size_t i = 0; i < n; ++i) given[i] = proof(secret, prefix, rank, static_cast<int64_t>(i), theirs[i]);
  RETURN_IF_ERROR(swap_all(wire, rank, 1, given, got, deadline));

  std::optional<int64_t> liar;
  for (size_t i = n; i-- > 0;) {
    const auto peer = static_cast<int64_t>(i);
    if (peer != rank && !same_code(bytes_of(got[i]), bytes_of(proof(secret, prefix, peer, rank, mine[i]))))
      liar = peer;
  }

  // The third round: a worker that closed its connections on a wrong proof could destroy its own proof on the
  // way to the peers that wait for it. After this round every worker has all proofs and can report the error.
  const std::vector<char> content(n, liar ? 0 : 1);
  std::vector<char> others(n, 1);
  const Status last = swap_all(wire, rank, 2, content, others, deadline);
  if (liar)
    return io_error(
        fmt::format("worker {} did not prove to worker {} that it knows the job's secret: do both have "
                    "the same secret?",
                    *liar, rank));
  RETURN_IF_ERROR(last);
  for (size_t i = 0; i < n; ++i)
    if (others[i] != 1) return io_error(fmt::format("worker {} found a worker with another secret", i));
  return Status();
}

}  // namespace ostro::dist
