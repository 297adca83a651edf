// Stands in for zlib where Verilator writes FST: the writer keeps its own bytes unless the compressed ones are fewer, and
// here they never are.
#pragma once

#include <cstring>

using uLong = unsigned long;
using uLongf = unsigned long;
using Bytef = unsigned char;
constexpr int Z_OK = 0;

inline uLong compressBound(uLong size) { return size; }

inline int compress2(Bytef* to, uLongf* bound, const Bytef* from, uLong size, int) {
    std::memcpy(to, from, size);
    *bound = size;
    return Z_OK;
}
