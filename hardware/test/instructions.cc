// Compares the custom instructions in Verilog with what the simulator made of the same operands: records on standard
// input, as crates/workbench/embedded/examples/operands.rs writes them.
#include "Dut.h"
#include <verilated.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

static const char *const NAMES[] = {"add64",       "fold64",      "enc_round",   "enc_last_round", "dec_round",   "dec_last_round",
                                    "md5_iteration", "aes32esi",  "aes32esmi",   "aes32dsi",       "aes32dsmi",   "sha256sum0",
                                    "sha256sum1",  "sha256sig0",  "sha256sig1",  "sha512sig0h",    "sha512sig0l", "sha512sig1h",
                                    "sha512sig1l", "sha512sum0r", "sha512sum1r"};
constexpr unsigned COUNT = sizeof NAMES / sizeof *NAMES;

struct Record {
    uint32_t number, rs1, rs2, selector, acc[2], aes[4], md5[4], words[4];
    uint32_t rd, acc_after[2], aes_after[4], md5_after[4];
};

static bool same(Dut &dut, const Record &one) {
    dut.rs1 = one.rs1;
    dut.rs2 = one.rs2;
    dut.selector = one.selector;
    dut.kind = one.number - 2;
    dut.operation = one.number < 11 ? one.number - 7 : one.number - 11;
    std::memcpy(&dut.acc, one.acc, sizeof one.acc);
    std::memcpy(&dut.aes, one.aes, sizeof one.aes);
    std::memcpy(&dut.md5, one.md5, sizeof one.md5);
    std::memcpy(&dut.words, one.words, sizeof one.words);
    dut.eval();
    auto is = [](const auto &found, const auto &wanted) { return std::memcmp(&found, wanted, sizeof wanted) == 0; };
    switch (one.number) {
    case 0: return is(dut.add64_acc, one.acc_after);
    case 1: return dut.fold64_rd == one.rd && is(dut.fold64_acc, one.acc_after);
    case 2:
    case 3:
    case 4:
    case 5: return is(dut.aes_next, one.aes_after) && is(dut.aes_by_columns, one.aes_after);
    case 6: return is(dut.md5_next, one.md5_after);
    case 7:
    case 8:
    case 9:
    case 10: return dut.aes32_rd == one.rd;
    default: return dut.zknh_rd == one.rd;
    }
}

int main() {
    VerilatedContext context;
    Dut dut(&context);
    unsigned long counts[COUNT] = {};
    Record one;
    while (std::fread(&one, sizeof one, 1, stdin) == 1) {
        if (one.number >= COUNT) {
            std::fprintf(stderr, "record of instruction %u; there are %u\n", one.number, COUNT);
            return 2;
        }
        if (!same(dut, one)) {
            std::fprintf(stderr, "%s differs: rs1 %08x, rs2 %08x, selector %u, record %lu of it\n", NAMES[one.number],
                         one.rs1, one.rs2, one.selector, counts[one.number]);
            return 1;
        }
        ++counts[one.number];
    }
    for (unsigned number = 0; number < COUNT; ++number) {
        if (counts[number] == 0) {
            std::fprintf(stderr, "%s: no operands came\n", NAMES[number]);
            return 1;
        }
        std::printf("  %s: %lu operands\n", NAMES[number], counts[number]);
    }
    return 0;
}
