#include "ostro/page/terminal/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ostro::page {
namespace {

// The bit of the dot in column x and row y (from above) of a braille character.
constexpr std::array<std::array<unsigned, 4>, 2> kBrailleBits = {
    {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};

// U+2800 and the 255 characters after it.
std::string braille(unsigned bits) {
  const unsigned code = 0x2800 + bits;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

int part_of(double part, int count) {
  return static_cast<int>(std::lround(std::clamp(part, 0.0, 1.0) * (count - 1)));
}

}  // namespace

std::string curve_sign(const Terminal& terminal, size_t curve, bool line) {
  if (line) return coloured(terminal, curve, terminal.ascii ? "*" : "⠒");
  constexpr std::array<const char*, 5> kAscii = {"#", "o", "x", "+", "@"}, kSigns = {"◆", "●", "▲", "■", "○"};
  return coloured(terminal, curve, (terminal.ascii ? kAscii : kSigns)[curve % kSigns.size()]);
}

std::string coloured(const Terminal& terminal, size_t curve, const std::string& text) {
  constexpr std::array<int, 6> kColours = {34, 33, 32, 35, 36, 31};
  return terminal.colour ? fmt::format("\x1b[{}m{}\x1b[0m", kColours[curve % kColours.size()], text) : text;
}

Canvas::Canvas(const Terminal& terminal, int columns, int rows)
    : terminal_(terminal),
      columns_(columns),
      rows_(rows),
      across_(terminal.ascii ? 1 : 2),
      down_(terminal.ascii ? 1 : 4),
      cells_(static_cast<size_t>(columns) * static_cast<size_t>(rows)) {}

int Canvas::row_of(double y) const { return rows_ - 1 - part_of(y, rows_ * down_) / down_; }
int Canvas::column_of(double x) const { return part_of(x, columns_ * across_) / across_; }

void Canvas::dot(int x, int y, size_t curve) {
  Cell& c = cells_[index(x / across_, y / down_)];
  if (c.marked) return;
  c.dots |= terminal_.ascii ? 1 : kBrailleBits[static_cast<size_t>(x % 2)][static_cast<size_t>(y % 4)];
  c.curve = static_cast<int>(curve);
}

void Canvas::line(const std::vector<Place>& way, size_t curve) {
  const int height = rows_ * down_;
  int before_x = 0, before_y = 0;
  for (size_t i = 0; i < way.size(); ++i) {
    const int x = part_of(way[i].x, columns_ * across_), y = height - 1 - part_of(way[i].y, height);
    if (i == 0) before_x = x, before_y = y;
    const int length = std::max({std::abs(x - before_x), std::abs(y - before_y), 1});
    for (int k = 0; k <= length; ++k) {
      const double part = static_cast<double>(k) / length;
      dot(before_x + static_cast<int>(std::lround(part * (x - before_x))),
          before_y + static_cast<int>(std::lround(part * (y - before_y))), curve);
    }
    before_x = x, before_y = y;
  }
}

void Canvas::mark(Place place, size_t curve) {
  cells_[index(column_of(place.x), row_of(place.y))] = {0, static_cast<int>(curve), true};
}

std::string Canvas::row(int row) const {
  std::string out;
  for (int column = 0; column < columns_; ++column) {
    const Cell& c = cells_[index(column, row)];
    if (c.curve < 0)
      out += ' ';
    else if (c.marked)
      out += curve_sign(terminal_, static_cast<size_t>(c.curve), false);
    else
      out += coloured(terminal_, static_cast<size_t>(c.curve), terminal_.ascii ? "*" : braille(c.dots));
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

}  // namespace ostro::page
