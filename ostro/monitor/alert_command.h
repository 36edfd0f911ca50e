// AlertCommand: runs a program for each alert, one after another, beside everything else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ostro::monitor {

// No shell reads the words. The program gets the alert on its standard input, and a minute; one that fails is
// a warning in the log. Owns a thread.
class AlertCommand {
 public:
  explicit AlertCommand(std::vector<std::string> words);
  ~AlertCommand();  // when it has been run for all alerts
  AlertCommand(const AlertCommand&) = delete;
  AlertCommand& operator=(const AlertCommand&) = delete;

  // Returns at once. Any thread.
  void run(std::string alert);

 private:
  void work();

  const std::vector<std::string> words_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> alerts_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace ostro::monitor
