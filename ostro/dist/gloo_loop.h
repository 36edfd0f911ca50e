// GlooLoop: runs work on Gloo's own thread.
//
// Gloo's thread tries to lock a connection when bytes arrive on it, and spins while another thread has the
// lock; on a busy machine that takes a whole time slice of the processor from the very thread that it waits
// for. So only this thread sends and receives.
#pragma once

#include <functional>
#include <memory>

namespace gloo::transport {
class Device;
}

namespace ostro::dist {

// Shares the device. The destructor stops it.
class GlooLoop {
 public:
  // Throws std::exception.
  static std::unique_ptr<GlooLoop> start(std::shared_ptr<gloo::transport::Device> device);
  virtual ~GlooLoop() = default;
  // Runs the work on Gloo's thread, in the order of the calls. It must not throw. Any thread.
  virtual void run(std::function<void()> work) = 0;
  // Drops work that has not begun, and waits for work that has. Nothing runs from then on.
  virtual void stop() = 0;
};

}  // namespace ostro::dist
