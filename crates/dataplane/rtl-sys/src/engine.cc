// Drives one core, a cycle at a time: inputs are set while the clock is low, outputs are sampled before it rises.
#include "engine.h"

#include <verilated.h>
#if VM_TRACE_FST
#include <verilated_fst_c.h>
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "VAesGcm.h"
#include "VChaChaPoly.h"
#ifdef FOREBAY_PIPELINED
#include "VAesGcmPipelined.h"
#endif

namespace {
// Cycles without a beat after which a stream is taken to stick.
constexpr int64_t TIMEOUT_CYCLES = 100000;
constexpr size_t WIDTH = 16;
} // namespace

struct forebay_rtl {
    virtual ~forebay_rtl() = default;
    virtual int64_t key(const uint32_t *words, unsigned count) = 0;
    virtual void clear() = 0;
    virtual int64_t packet(const uint8_t *iv, bool decrypt, const uint8_t *aad, size_t aad_len, const uint8_t *text,
                           size_t text_len, uint8_t *out, uint8_t *tag) = 0;
    virtual bool record(const char *path) = 0;
    bool stuck = false;
    unsigned stall_percent = 0;
    std::minstd_rand random;
};

namespace {
template <class Top>
class Engine final : public forebay_rtl {
  public:
    Engine() : top_(new Top(&context_)) {
#if VM_TRACE_FST
        context_.traceEverOn(true);
        top_->trace(&trace_, 99);
#endif
        top_->clk = 0;
        top_->key_we = top_->key_clear = top_->cmd_valid = top_->s_tvalid = top_->m_tready = 0;
        top_->rst = 1;
        for (int i = 0; i < 3; ++i) cycle();
        top_->rst = 0;
    }
    ~Engine() override {
        clear();
        top_->final();
    }

    int64_t key(const uint32_t *words, unsigned count) override {
        int64_t begun = cycles_;
        for (unsigned at = 0; at < count; ++at) write_key(at, words[at]);
        if constexpr (requires { top_->key_ready; }) {
            // The control word: 128, 192 or 256 bits.
            write_key(8, (count - 4) / 2);
            cycle();
            for (; !ready(); cycle())
                if (cycles_ - begun > TIMEOUT_CYCLES) return -1;
        }
        return cycles_ - begun;
    }

    void clear() override {
        top_->key_clear = 1;
        cycle();
        top_->key_clear = 0;
        cycle();
        // What the last packet left at the ports.
        std::memset(&top_->s_tdata, 0, sizeof top_->s_tdata);
        top_->key_data = 0;
        cycle();
    }

    int64_t packet(const uint8_t *iv, bool decrypt, const uint8_t *aad, size_t aad_len, const uint8_t *text,
                   size_t text_len, uint8_t *out, uint8_t *tag) override {
#if VM_TRACE_FST
        if (!path_.empty()) trace_.open(path_.c_str());
        recording_ = !path_.empty();
        path_.clear();
#endif
        int64_t begun = cycles_, moved = cycles_;
        size_t aad_at = 0, text_at = 0, out_at = 0, tag_at = 0;
        bool commanded = false, taken = false, ended = false, offering = false;
        std::memcpy(&top_->cmd_iv, iv, 12);
        top_->cmd_decrypt = decrypt;
        while (!ended && cycles_ - moved <= TIMEOUT_CYCLES) {
            top_->cmd_valid = !commanded;
            size_t beat = 0;
            bool user = aad_at < aad_len;
            // A beat that is offered stays until it is taken.
            offering = offering || (!taken && !stalls());
            top_->s_tvalid = offering;
            if (offering) {
                const uint8_t *from = user ? aad + aad_at : text + text_at;
                beat = std::min(WIDTH, user ? aad_len - aad_at : text_len - text_at);
                uint8_t lanes[WIDTH] = {};
                if (beat > 0) std::memcpy(lanes, from, beat);
                std::memcpy(&top_->s_tdata, lanes, WIDTH);
                top_->s_tkeep = (1u << beat) - 1;
                top_->s_tuser = user;
                top_->s_tlast = user ? aad_at + beat == aad_len && text_len == 0 : text_at + beat == text_len;
            }
            top_->m_tready = !stuck && !stalls();
            top_->eval();
            if (top_->m_tvalid && top_->m_tready) {
                uint8_t lanes[WIDTH];
                std::memcpy(lanes, &top_->m_tdata, WIDTH);
                uint8_t *to = top_->m_tuser ? tag : out;
                size_t &at = top_->m_tuser ? tag_at : out_at;
                size_t room = top_->m_tuser ? WIDTH : text_len;
                for (size_t lane = 0; lane < WIDTH; ++lane)
                    if ((top_->m_tkeep >> lane & 1) != 0 && at < room) to[at++] = lanes[lane];
                ended = top_->m_tlast;
                moved = cycles_;
            }
            if (top_->cmd_valid && top_->cmd_ready) commanded = true;
            if (offering && top_->s_tready) {
                offering = false;
                (user ? aad_at : text_at) += beat;
                taken = top_->s_tlast;
                moved = cycles_;
            }
            cycle();
        }
        top_->cmd_valid = top_->s_tvalid = top_->m_tready = 0;
#if VM_TRACE_FST
        if (recording_) trace_.close();
        recording_ = false;
#endif
        bool whole = ended && taken && out_at == text_len && tag_at == WIDTH;
        return whole ? cycles_ - begun : -1;
    }

    bool record(const char *path) override {
#if VM_TRACE_FST
        path_ = path;
        return true;
#else
        (void)path;
        return false;
#endif
    }

  private:
    bool stalls() { return stall_percent != 0 && random() % 100 < stall_percent; }

    bool ready() {
        if constexpr (requires { top_->key_ready; }) return top_->key_ready;
        return true;
    }

    void write_key(unsigned address, uint32_t data) {
        top_->key_we = 1;
        top_->key_addr = address;
        top_->key_data = data;
        cycle();
        top_->key_we = 0;
    }

    void cycle() {
        for (int level : {1, 0}) {
            top_->clk = level;
            top_->eval();
#if VM_TRACE_FST
            if (recording_) trace_.dump(static_cast<uint64_t>(2 * cycles_ + 1 - level));
#endif
        }
        ++cycles_;
    }

    VerilatedContext context_;
    int64_t cycles_ = 0;
#if VM_TRACE_FST
    VerilatedFstC trace_;
    std::string path_;
    bool recording_ = false;
#endif
    std::unique_ptr<Top> top_;
};
} // namespace

extern "C" {
forebay_rtl *forebay_rtl_open(unsigned kind) {
    switch (kind) {
    case 0: return new Engine<VAesGcm>();
    case 1: return new Engine<VChaChaPoly>();
#ifdef FOREBAY_PIPELINED
    case 2: return new Engine<VAesGcmPipelined>();
#endif
    default: return nullptr;
    }
}

void forebay_rtl_close(forebay_rtl *engine) { delete engine; }

int64_t forebay_rtl_key(forebay_rtl *engine, const uint32_t *words, unsigned count) { return engine->key(words, count); }

void forebay_rtl_clear(forebay_rtl *engine) { engine->clear(); }

int64_t forebay_rtl_packet(forebay_rtl *engine, const uint8_t *iv, int decrypt, const uint8_t *aad, size_t aad_len,
                           const uint8_t *text, size_t text_len, uint8_t *out, uint8_t *tag) {
    return engine->packet(iv, decrypt != 0, aad, aad_len, text, text_len, out, tag);
}

int forebay_rtl_record(forebay_rtl *engine, const char *path) { return engine->record(path); }

void forebay_rtl_stall(forebay_rtl *engine, unsigned percent, uint32_t seed) {
    engine->stall_percent = percent;
    engine->random.seed(seed);
}

void forebay_rtl_stick(forebay_rtl *engine) { engine->stuck = true; }
}
