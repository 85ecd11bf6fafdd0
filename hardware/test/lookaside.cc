// Drives the lookaside engine through a case file of an ESP engine: packets and a descriptor ring in memory, which
// answers after random times. Every packet must come out as the case says, with its status in its ring entry; the
// interrupt must neither be late nor come without a reason.
#include "Dut.h"
#include <verilated.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using Bytes = std::vector<uint8_t>;
constexpr uint32_t RING = 0x1000, LOG = 3, ENTRIES = 1 << LOG, SOURCES = 0x10000, DESTINATIONS = 0x20000, ROOM = 0x1000;
constexpr uint32_t THRESHOLD = 4, TIMEOUT = 3000;
constexpr uint64_t TIMEOUT_CYCLES = 200000;

struct Case {
    std::string key; // address and word, or empty
    Bytes in, out;
};

static Bytes from_hex(const std::string &text) {
    Bytes bytes;
    for (size_t at = 0; at + 1 < text.size(); at += 2)
        bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(at, 2), nullptr, 16)));
    return bytes;
}

class Bench {
  public:
    Bench(unsigned stall, unsigned seed) : stall_(stall), random_(seed), dut_(&context_), memory_(0x40000) {
        dut_.rst = 1;
        for (int i = 0; i < 3; ++i) tick();
        dut_.rst = 0;
        for (int i = 0; i < 10000 && !dut_.key_ready; ++i) tick();
        set(0, RING);
        set(1, LOG);
        set(4, THRESHOLD);
        set(5, TIMEOUT);
    }

    void key(unsigned address, uint32_t word) {
        dut_.key_we = 1;
        dut_.key_addr = address;
        dut_.key_data = word;
        tick();
        dut_.key_we = 0;
    }

    // Puts an entry and its packet into memory and tells the engine.
    void submit(const Bytes &in) {
        uint32_t place = tail_ % ENTRIES, source = SOURCES + place * ROOM, destination = DESTINATIONS + place * ROOM;
        std::memcpy(&memory_[RING + 64 * place], &source, 4);
        std::memcpy(&memory_[RING + 64 * place + 4], &destination, 4);
        std::memcpy(&memory_[RING + 64 * place + 8], in.data(), 32);
        std::memset(&memory_[RING + 64 * place + 40], 0xee, 24);
        std::memcpy(&memory_[source], in.data() + 32, in.size() - 32);
        std::memset(&memory_[destination], 0xee, ROOM);
        ++tail_;
        set(2, tail_ & 0xffff);
    }

    // Compares what was made of the oldest packet; empty if that is right.
    std::string check(const Bytes &out) {
        uint32_t place = checked_++ % ENTRIES;
        size_t length = out.size() - 8;
        if (std::memcmp(&memory_[RING + 64 * place + 40], out.data() + length, 8) != 0) return "wrong token or status";
        if (std::memcmp(&memory_[DESTINATIONS + place * ROOM], out.data(), length) != 0) return "wrong bytes";
        if (memory_[DESTINATIONS + place * ROOM + length] != 0xee) return "bytes behind the packet are changed";
        return "";
    }

    // One cycle, with what the memory does in it; an empty string if all is well.
    std::string step() {
        dut_.read_ready = !stalls();
        dut_.write_ready = !stalls();
        dut_.answer_valid = !answers_.empty() && answers_.front().second <= cycle_ && !stalls();
        dut_.answer_data = dut_.answer_valid ? answers_.front().first : static_cast<uint32_t>(random_());
        dut_.reg_addr = 3;
        dut_.eval();
        if (dut_.read_valid && dut_.read_ready) {
            if (dut_.read_addr + 4 > memory_.size()) return "a read outside memory";
            uint32_t word;
            std::memcpy(&word, &memory_[dut_.read_addr], 4);
            answers_.emplace_back(word, cycle_ + (stall_ ? random_() % 60 : 1));
        }
        if (dut_.write_valid && dut_.write_ready) {
            uint32_t at = dut_.write_addr;
            bool entry = at >= RING && at < RING + 64 * ENTRIES && at % 64 >= 40 && at % 64 < 48;
            bool packet = at >= DESTINATIONS && at < DESTINATIONS + ENTRIES * ROOM;
            if (!entry && !packet) return "a write to address " + std::to_string(at);
            std::memcpy(&memory_[at], &dut_.write_data, 4);
        }
        if (dut_.answer_valid) answers_.pop_front();
        uint32_t head = dut_.reg_rdata;
        if (head != (seen_ & 0xffff)) {
            if (unacknowledged_ == 0) first_ = cycle_;
            ++seen_;
            ++unacknowledged_;
        }
        bool due = unacknowledged_ >= THRESHOLD || (unacknowledged_ != 0 && cycle_ > first_ + TIMEOUT + 2);
        bool allowed = unacknowledged_ >= THRESHOLD || (unacknowledged_ != 0 && cycle_ + 2 >= first_ + TIMEOUT);
        if (due && !dut_.irq) return "the interrupt is late";
        if (dut_.irq && !allowed) return "an interrupt without a reason";
        tick();
        return "";
    }

    // Acknowledges as a driver does: what it has seen is `seen()`.
    bool interrupted() {
        dut_.eval();
        if (!dut_.irq) return false;
        ++interrupts_;
        dut_.reg_addr = 3;
        dut_.eval();
        seen_ += static_cast<uint16_t>(dut_.reg_rdata - seen_);
        // A completion in the very cycle of the acknowledgement is counted again.
        set(6, 1);
        dut_.reg_addr = 3;
        dut_.eval();
        unacknowledged_ = static_cast<uint16_t>(dut_.reg_rdata - seen_);
        seen_ += unacknowledged_;
        first_ = cycle_;
        return true;
    }

    bool busy() const { return tail_ != seen_; }
    bool full() const { return tail_ - checked_ == ENTRIES; }
    uint32_t ready() const { return seen_ - checked_; }
    bool stalls() { return stall_ != 0 && random_() % 100 < stall_; }
    uint64_t cycle() const { return cycle_; }
    unsigned interrupts() const { return interrupts_; }

  private:
    // Memory rests while a register is written.
    void set(unsigned address, uint32_t value) {
        dut_.reg_we = 1;
        dut_.reg_addr = address;
        dut_.reg_wdata = value;
        dut_.read_ready = dut_.write_ready = dut_.answer_valid = 0;
        tick();
        dut_.reg_we = 0;
    }
    void tick() {
        dut_.clk = 1;
        dut_.eval();
        dut_.clk = 0;
        dut_.eval();
        ++cycle_;
    }

    unsigned stall_;
    std::mt19937 random_;
    VerilatedContext context_;
    Dut dut_;
    Bytes memory_;
    std::deque<std::pair<uint32_t, uint64_t>> answers_;
    uint64_t cycle_ = 0, first_ = 0;
    uint32_t tail_ = 0, checked_ = 0, seen_ = 0, unacknowledged_ = 0;
    unsigned interrupts_ = 0;
};

static int run(const std::vector<Case> &cases, unsigned stall, unsigned seed) {
    Bench bench(stall, seed);
    std::deque<const Case *> in_flight;
    size_t next = 0, done = 0;
    uint64_t last = bench.cycle();
    auto failed = [&](const std::string &what) {
        std::fprintf(stderr, "packet %zu, stalls %u %%, seed %u: %s\n", done, stall, seed, what.c_str());
        return 1;
    };
    while (next < cases.size() || !in_flight.empty()) {
        if (next < cases.size() && !cases[next].key.empty() && in_flight.empty()) {
            unsigned address, word;
            std::istringstream(cases[next++].key) >> std::hex >> address >> word;
            bench.key(address, word);
            continue;
        }
        bool packet = next < cases.size() && cases[next].key.empty();
        if (packet && !bench.full() && (stall == 0 || !bench.stalls())) {
            bench.submit(cases[next].in);
            in_flight.push_back(&cases[next++]);
        }
        std::string problem = bench.step();
        if (!problem.empty()) return failed(problem);
        // A driver looks when it is interrupted.
        if (bench.interrupted()) {
            while (bench.ready() > 0) {
                if (in_flight.empty()) return failed("more is done than was given");
                problem = bench.check(in_flight.front()->out);
                if (!problem.empty()) return failed(problem);
                in_flight.pop_front();
                ++done;
                last = bench.cycle();
            }
        }
        if (bench.cycle() - last > TIMEOUT_CYCLES) return failed("nothing is done any more");
    }
    std::printf("  %zu packets, %u interrupts, stalls %u %%, %llu cycles\n", done, bench.interrupts(), stall,
                static_cast<unsigned long long>(bench.cycle()));
    return done == 0;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s CASES\n", argv[0]);
        return 2;
    }
    std::ifstream file(argv[1]);
    std::string line;
    std::vector<Case> cases;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string kind, rest, in, out;
        words >> kind;
        if (kind == "K") {
            std::getline(words, rest);
            cases.push_back({rest, {}, {}});
        } else if (kind == "P") {
            words >> rest >> rest >> rest >> in >> out;
            // A ring has no packets that are cut: their length is the descriptor's.
            if (out[0] != '$') cases.push_back({"", from_hex(in), from_hex(out)});
        }
    }
    const char *given = std::getenv("SEED");
    unsigned seed = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 1;
    for (unsigned stall : {0u, 30u, 75u})
        if (run(cases, stall, seed)) return 1;
    return 0;
}
