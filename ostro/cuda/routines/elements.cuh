// Moves one element of 1, 2, 4, 8 or 16 bytes; places are counted in elements.
DEVICE void move_element(u64 to_array, i64 to, u64 from_array, i64 from, i64 bytes) {
  if (bytes == 1)
    AT(u8, to_array)[to] = AT(const u8, from_array)[from];
  else if (bytes == 2)
    AT(u16, to_array)[to] = AT(const u16, from_array)[from];
  else if (bytes == 4)
    AT(u32, to_array)[to] = AT(const u32, from_array)[from];
  else if (bytes == 8)
    AT(u64, to_array)[to] = AT(const u64, from_array)[from];
  else
    AT(Words16, to_array)[to] = AT(const Words16, from_array)[from];
}
