// What a person sees of a run: lines that stay, and on a terminal one line below them that is redrawn.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace ostro::train {

// Thread-safe. `write` gets raw text for the terminal or file and is called by one thread at a time.
class Console {
 public:
  using Write = std::function<void(std::string_view)>;

  // `columns` is the terminal's width; 0 says that there is no terminal, and then status() shows nothing.
  Console(Write write, int columns);
  ~Console();  // leaves the last status line standing
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_terminal() const { return columns_ > 0; }
  // A line that stays, above the status line. Control characters but tabs become spaces.
  void line(std::string_view text);
  // Redraws the status line, cut to the terminal's width; an empty text removes it.
  void status(std::string_view text);

 private:
  const Write write_;
  const int columns_;
  std::mutex mutex_;
  std::string status_;
};

// A console on standard error. It has columns when that is a terminal on which a line can be redrawn: one
// whose TERM is not "dumb".
Console::Write stderr_writer();
int stderr_columns();

}  // namespace ostro::train
