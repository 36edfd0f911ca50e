// The source of a room whose library comes from another build folder (cmake/OstroRoom.cmake): nothing.
