// Drives one stream core through a file of cases, without stalls and with random ones on both sides, and compares every
// byte. Compiled once for each core, whose Verilated class is `Dut`.
//
// A case file has one of these on a line, numbers and bytes in hexadecimal, `-` for no bytes:
//   K address data      writes a word of the key
//   W                   waits for key_ready
//   C                   clears the key; key_ready must go low
//   M label             prints the cycles of the next packet, from its command to its last beat, without stalls
//   P iv decrypt user text out
//                       a packet: `user` in beats with tuser, then `text`; `out` is what must come, all beats in one;
//                       a `*` behind it: more may come, as of a tag of which the first bytes are known;
//                       a `$` in front of it: more may come in front, as of a packet that is cut
#include <verilated.h>
#if VM_TRACE_FST
#include <verilated_fst_c.h>
#endif
#include "Dut.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using Bytes = std::vector<uint8_t>;

// Cycles without a beat after which the core is taken to hang.
constexpr uint64_t TIMEOUT_CYCLES = 100000;

static Bytes from_hex(const std::string &text) {
    Bytes bytes;
    if (text == "-") return bytes;
    for (size_t at = 0; at + 1 < text.size(); at += 2)
        bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(at, 2), nullptr, 16)));
    return bytes;
}

static std::string to_hex(const Bytes &bytes) {
    std::string text;
    char two[3];
    for (uint8_t byte : bytes) {
        std::snprintf(two, sizeof two, "%02x", byte);
        text += two;
    }
    return text.empty() ? "-" : text;
}

struct Beat {
    Bytes data;
    bool user, last;
};

template <class Top>
class Bench {
  public:
    Bench(unsigned stall_percent, unsigned seed, const std::string &wave)
        : stall_(stall_percent), random_(seed), top_(new Top(&context_)) {
#if VM_TRACE_FST
        if (!wave.empty()) {
            context_.traceEverOn(true);
            top_->trace(&trace_, 99);
            trace_.open(wave.c_str());
            tracing_ = true;
        }
#else
        if (!wave.empty()) std::fprintf(stderr, "this program was compiled without waveforms\n");
#endif
        top_->clk = 0;
        idle();
        top_->rst = 1;
        for (int i = 0; i < 3; ++i) tick();
        top_->rst = 0;
    }
    ~Bench() {
#if VM_TRACE_FST
        if (tracing_) trace_.close();
#endif
        top_->final();
    }

    uint64_t cycles() const { return cycle_; }

    void write_key(unsigned address, uint32_t data) {
        if constexpr (requires { top_->key_we; }) {
            top_->key_we = 1;
            top_->key_addr = address;
            top_->key_data = data;
            tick();
            top_->key_we = 0;
        }
        // The control word takes effect with the next edge.
        if constexpr (requires { top_->key_ready; }) tick();
    }

    bool wait_for_key() {
        if constexpr (requires { top_->key_ready; }) {
            tick();
            tick();
            for (unsigned left = 10000; left > 0; --left, tick())
                if (top_->key_ready) return true;
            return false;
        }
        return true;
    }

    bool clear_key() {
        if constexpr (requires { top_->key_clear; }) {
            top_->key_clear = 1;
            tick();
            top_->key_clear = 0;
            tick();
        }
        if constexpr (requires { top_->key_ready; }) return !top_->key_ready;
        return true;
    }

    // Sends one packet and collects what comes; an empty string if the protocol was kept.
    std::string packet(const Bytes &iv, bool decrypt, const std::vector<Beat> &beats, Bytes &out) {
        bool commanded = true;
        if constexpr (requires { top_->cmd_valid; }) commanded = false;
        size_t at = 0;
        bool offering = false, ended = false, held = false;
        Bytes held_data;
        uint64_t quiet = 0;
        out.clear();
        while (!ended) {
            if (++quiet > TIMEOUT_CYCLES) return "no beat for " + std::to_string(TIMEOUT_CYCLES) + " cycles";
            if constexpr (requires { top_->cmd_valid; }) {
                top_->cmd_valid = !commanded;
                if constexpr (requires { top_->cmd_iv; }) {
                    std::memset(&top_->cmd_iv, 0, sizeof top_->cmd_iv);
                    std::memcpy(&top_->cmd_iv, iv.data(), std::min(iv.size(), sizeof top_->cmd_iv));
                }
                if constexpr (requires { top_->cmd_decrypt; }) top_->cmd_decrypt = decrypt;
            }
            // A beat that is offered stays until it is taken.
            if (!offering && at < beats.size()) offering = !stalls();
            offer(offering ? &beats[at] : nullptr);
            top_->m_tready = !stalls();
            top_->eval();

            if (held && !top_->m_tvalid) return "m_tvalid fell before m_tready came";
            if (top_->m_tvalid) {
                Bytes now = beat_out();
                now.push_back(top_->m_tlast);
                if (held && now != held_data) return "m_tdata changed before m_tready came";
                held = !top_->m_tready;
                held_data = now;
                if (top_->m_tready) {
                    Bytes data = beat_out();
                    out.insert(out.end(), data.begin(), data.end());
                    ended = top_->m_tlast;
                    quiet = 0;
                }
            }
            if constexpr (requires { top_->cmd_valid; })
                if (top_->cmd_valid && top_->cmd_ready) commanded = true;
            if (offering && top_->s_tready) {
                ++at;
                offering = false;
                quiet = 0;
            }
            tick();
            if constexpr (requires { top_->cmd_valid; })
                if (commanded) top_->cmd_valid = 0;
        }
        idle();
        return at == beats.size() ? "" : "the answer ended before the packet was taken";
    }

    static constexpr size_t width() { return sizeof(Top::s_tdata); }

  private:
    bool stalls() { return stall_ != 0 && random_() % 100 < stall_; }

    void idle() {
        top_->s_tvalid = 0;
        top_->m_tready = 0;
        if constexpr (requires { top_->key_we; }) top_->key_we = 0;
        if constexpr (requires { top_->key_clear; }) top_->key_clear = 0;
        if constexpr (requires { top_->cmd_valid; }) top_->cmd_valid = 0;
    }

    // Lanes that carry no byte have random contents.
    void offer(const Beat *beat) {
        top_->s_tvalid = beat != nullptr;
        uint8_t lanes[sizeof top_->s_tdata];
        for (uint8_t &lane : lanes) lane = static_cast<uint8_t>(stall_ ? random_() : 0xa5);
        if (beat) std::copy(beat->data.begin(), beat->data.end(), lanes);
        std::memcpy(&top_->s_tdata, lanes, sizeof lanes);
        if constexpr (requires { top_->s_tkeep; }) top_->s_tkeep = beat ? (1u << beat->data.size()) - 1 : 0;
        if constexpr (requires { top_->s_tuser; }) top_->s_tuser = beat && beat->user;
        top_->s_tlast = beat && beat->last;
    }

    Bytes beat_out() {
        uint8_t lanes[sizeof top_->m_tdata];
        std::memcpy(lanes, &top_->m_tdata, sizeof lanes);
        Bytes data;
        for (size_t lane = 0; lane < sizeof lanes; ++lane)
            if (top_->m_tkeep >> lane & 1) data.push_back(lanes[lane]);
        return data;
    }

    void tick() {
        for (int level = 1; level >= 0; --level) {
            top_->clk = level;
            top_->eval();
#if VM_TRACE_FST
            if (tracing_) trace_.dump(2 * cycle_ + (level ? 0 : 1));
#endif
        }
        ++cycle_;
    }

    unsigned stall_;
    std::mt19937 random_;
    VerilatedContext context_;
    uint64_t cycle_ = 0;
#if VM_TRACE_FST
    VerilatedFstC trace_;
    bool tracing_ = false;
#endif
    std::unique_ptr<Top> top_;
};

static std::vector<Beat> beats_of(const Bytes &user, const Bytes &text, size_t width) {
    std::vector<Beat> beats;
    for (const Bytes *part : {&user, &text})
        for (size_t at = 0; at < part->size(); at += width) {
            size_t end = std::min(part->size(), at + width);
            beats.push_back({Bytes(part->begin() + at, part->begin() + end), part == &user, false});
        }
    if (beats.empty()) beats.push_back({Bytes(), false, false});
    beats.back().last = true;
    return beats;
}

static int run(const char *path, unsigned stall, unsigned seed, const std::string &wave) {
    Bench<Dut> bench(stall, seed, wave);
    std::ifstream file(path);
    std::string line, label;
    unsigned long number = 0, packets = 0;
    while (std::getline(file, line)) {
        ++number;
        std::istringstream words(line);
        std::string kind, problem;
        words >> kind;
        if (kind == "K") {
            unsigned address, data;
            words >> std::hex >> address >> data;
            bench.write_key(address, data);
        } else if (kind == "W") {
            if (!bench.wait_for_key()) problem = "key_ready did not come";
        } else if (kind == "C") {
            if (!bench.clear_key()) problem = "key_ready stays after key_clear";
        } else if (kind == "M") {
            words >> label;
        } else if (kind == "P") {
            std::string iv, decrypt, user, text, expected;
            words >> iv >> decrypt >> user >> text >> expected;
            bool suffix = !expected.empty() && expected.front() == '$';
            if (suffix) expected.erase(0, 1);
            bool prefix = !expected.empty() && expected.back() == '*';
            if (prefix) expected.pop_back();
            uint64_t begun = bench.cycles();
            Bytes out, want = from_hex(expected);
            auto beats = beats_of(from_hex(user), from_hex(text), bench.width());
            problem = bench.packet(from_hex(iv), decrypt == "1", beats, out);
            if (prefix && out.size() > want.size()) out.resize(want.size());
            if (suffix && out.size() > want.size()) out.erase(out.begin(), out.end() - want.size());
            if (problem.empty() && out != want) problem = "found " + to_hex(out) + ", expected " + to_hex(want);
            if (!label.empty() && stall == 0)
                std::printf("  %s: %llu cycles\n", label.c_str(),
                            static_cast<unsigned long long>(bench.cycles() - begun));
            label.clear();
            ++packets;
        } else if (!kind.empty() && kind[0] != '#') {
            problem = "unknown line `" + kind + "`";
        }
        if (!problem.empty()) {
            std::fprintf(stderr, "%s:%lu: stalls %u %%, seed %u: %s\n", path, number, stall, seed, problem.c_str());
            return 1;
        }
    }
    if (packets == 0) {
        std::fprintf(stderr, "%s: no packet in it\n", path);
        return 1;
    }
    std::printf("  %lu packets, stalls %u %%\n", packets, stall);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s CASES [WAVEFORM.fst]\n", argv[0]);
        return 2;
    }
    std::string wave = argc > 2 ? argv[2] : "";
    const char *given = std::getenv("SEED");
    unsigned seed = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 1;
    for (unsigned stall : {0u, 30u, 75u})
        if (run(argv[1], stall, seed, stall == 0 ? wave : "")) return 1;
    return 0;
}
