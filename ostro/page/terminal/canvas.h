// Canvas: a drawing made of characters: braille, eight dots each, or plain ASCII. Not thread-safe.
#pragma once

#include <string>
#include <vector>

namespace ostro::page {

// The abilities of the terminal, or of the reader of the text.
struct Terminal {
  int columns = 80;
  bool ascii = false;   // no UTF-8
  bool colour = false;  // escape sequences for colours
};

// The sign and colour of the curve of that number; the sign of a line is a stroke, others mark single points.
std::string curve_sign(const Terminal& terminal, size_t curve, bool line);
// `text` in the curve's colour.
std::string coloured(const Terminal& terminal, size_t curve, const std::string& text);

// Cells of characters, with dots in each (2 by 4 in braille).
class Canvas {
 public:
  Canvas(const Terminal& terminal, int columns, int rows);

  // Places are parts of the width and height from 0 to 1, from the lower left; those outside are moved to the
  // edge.
  struct Place {
    double x = 0, y = 0;
  };
  // Dots along the way.
  void line(const std::vector<Place>& way, size_t curve);
  // Draws a sign over the content of its cell.
  void mark(Place place, size_t curve);

  std::string row(int row) const;  // 0: the uppermost
  // The row and column of a place.
  int row_of(double y) const;
  int column_of(double x) const;

 private:
  struct Cell {
    unsigned dots = 0;  // bits as in the braille code
    int curve = -1;     // that drew last; -1: empty
    bool marked = false;
  };
  size_t index(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }
  void dot(int x, int y, size_t curve);

  Terminal terminal_;
  int columns_, rows_;
  int across_, down_;  // dots of a cell
  std::vector<Cell> cells_;
};

}  // namespace ostro::page
