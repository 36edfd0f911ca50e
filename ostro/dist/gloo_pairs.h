// connect_pairs: Gloo's connections over sockets that this program has made.
//
// Gloo itself opens a listening socket for each pair of workers and takes the first connection that comes,
// from any process; one that comes first keeps the worker out. So Gloo first connects each of its pairs
// within this process, and then gets, under the same descriptor, a socket whose other end has proved who it
// is.
#pragma once

#include <memory>
#include <vector>

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>

#include "ostro/dist/gloo_loop.h"
#include "ostro/dist/socket.h"

namespace ostro::dist {

struct GlooPairs {
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<int> descriptors;  // the descriptors of the connections, by rank; Gloo owns them
};

// The device for pairs that connect_pairs() makes. Throws std::exception.
std::shared_ptr<gloo::transport::Device> make_gloo_device();
// Makes Gloo's pairs over `sockets`, by rank; that of this process is not open. Throws std::exception.
GlooPairs connect_pairs(const std::shared_ptr<gloo::transport::Device>& device, GlooLoop& loop, int rank,
                        std::vector<Socket> sockets);

}  // namespace ostro::dist
