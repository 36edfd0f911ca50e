// ForwardedCollectives: a group that passes all calls to another one. Base of groups that change some of
// them. Errors and threads: those of the other group.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/runtime/collectives.h"

namespace ostro::runtime {

class ForwardedCollectives : public Collectives {
 public:
  // `group` must outlive it.
  explicit ForwardedCollectives(Collectives& group) : group_(group) {}

  int64_t rank() const override { return group_.rank(); }
  int64_t size() const override { return group_.size(); }
  std::vector<int64_t> peers(std::string_view mesh_axes) const override { return group_.peers(mesh_axes); }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    return group_.exchange(peers, send, receive);
  }
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    return group_.start(peers, send, receive);
  }
  Status wait(int64_t ticket) override { return group_.wait(ticket); }
  void abort(const std::string& reason) override { group_.abort(reason); }
  int64_t bytes_sent() const override { return group_.bytes_sent(); }

 private:
  Collectives& group_;
};

}  // namespace ostro::runtime
