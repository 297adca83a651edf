// Drives mat4 with random matrices and compares every bit with one fused multiply-add after the other (rules N0 to N2).
// Ends with status 1 if anything differs. With an argument, one bit of one expectation is wrong: then it must.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>

#include "Vmat4.h"

static uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return std::isnan(value) ? 0x7fc00000 : bits;
}

static float bf16_value(uint16_t bf16) {
    const uint32_t bits = uint32_t(bf16) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static void tick(Vmat4& top) {
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
}

int main(int argc, char**) {
    const int products = 2000;
    std::mt19937 random(1);
    Vmat4 top;
    top.rst = 1;
    top.start = 0;
    tick(top);
    tick(top);
    top.rst = 0;
    int wrong = 0;
    for (int product = 0; product < products; ++product) {
        uint16_t a[4][4], b[4][4];
        for (int k = 0; k < 4; ++k) {
            for (int m = 0; m < 4; ++m) {
                // Half of the products hold any bit pattern, so infinities, NaN and subnormal numbers as well.
                const uint16_t mask = product % 2 ? 0xffff : 0xbfff, set = product % 2 ? 0 : 0x3c00;
                a[k][m] = (random() & mask) | set;
                b[k][m] = (random() & mask) | set;
            }
        }
        std::memcpy(&top.a, a, sizeof a);  // element [0][0] is the lowest in the port as in memory
        std::memcpy(&top.b, b, sizeof b);
        top.start = 1;
        tick(top);
        top.start = 0;
        int cycles = 0;
        for (; !top.done && cycles < 200; ++cycles) tick(top);
        if (!top.done) {
            std::printf("Product %d did not end in %d cycles\n", product, cycles);
            return 1;
        }
        for (int m = 0; m < 4; ++m) {
            for (int n = 0; n < 4; ++n) {
                float sum = 0;
                for (int k = 0; k < 4; ++k) sum = std::fma(bf16_value(a[k][m]), bf16_value(b[k][n]), sum);
                const uint32_t expected = bits_of(sum) ^ (argc > 1 && product == products - 1 && m == 3 && n == 3);
                const uint32_t given = top.y[4 * m + n];
                if (given != expected && wrong++ < 5)
                    std::printf("Product %d: y[%d][%d] is %08x, not %08x\n", product, m, n, given, expected);
            }
        }
        if (!top.agrees && wrong++ < 5) std::printf("Product %d: the lone element disagrees\n", product);
    }
    std::printf("%d products of 4 x 4 matrices, %d wrong\n", products, wrong);
    return wrong != 0;
}
