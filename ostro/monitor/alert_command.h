// AlertCommand: runs a program for each alert, one after another, beside everything else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ostro::monitor {

// No shell reads the words. The program gets the alert on its standard input, and a minute; one that fails is
// a warning in the log. Owns a thread.
class AlertCommand {
 public:
  explicit AlertCommand(std::vector<std::string> words,
                        std::chrono::milliseconds at_end = std::chrono::seconds(60));
  // Runs it for the alerts that wait. After `at_end` a program that runs is killed, and a warning says how
  // many alerts were not given to it.
  ~AlertCommand();
  AlertCommand(const AlertCommand&) = delete;
  AlertCommand& operator=(const AlertCommand&) = delete;

  // Returns at once. Any thread.
  void run(std::string alert);

 private:
  void work();

  bool is_late();  // locks mutex_

  const std::vector<std::string> words_;
  const std::chrono::milliseconds at_end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> alerts_;
  std::optional<std::chrono::steady_clock::time_point> over_;  // when to end; nothing: not yet
  std::thread thread_;
};

}  // namespace ostro::monitor
