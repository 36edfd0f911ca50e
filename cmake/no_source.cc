// A source without code: for a room whose library comes from another build folder (cmake/OstroRoom.cmake),
// and for precompiled headers that several rooms use (cmake/Precompile.cmake).
