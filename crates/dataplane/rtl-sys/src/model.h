// What every core needs in simulation: a clock, random stalls, and a waveform of what is to be looked at.
#ifndef FOREBAY_RTL_MODEL_H
#define FOREBAY_RTL_MODEL_H

#include <verilated.h>
#if VM_TRACE_FST
#include <verilated_fst_c.h>
#endif

#include <cstdint>
#include <memory>
#include <random>
#include <string>

// A core behind the interface in C.
struct forebay_rtl {
    virtual ~forebay_rtl() = default;
    bool stuck = false;
    unsigned stall_percent = 0;
    std::minstd_rand random;
    std::string record;
};

// Cycles without a beat after which a stream is taken to stick.
constexpr int64_t TIMEOUT_CYCLES = 100000;

// A Verilated core, behind the interface `Base`. Inputs are set while the clock is low, outputs are sampled before it rises.
template <class Top, class Base>
class Model : public Base {
  public:
    Model() : top_(new Top(&context_)) {
#if VM_TRACE_FST
        context_.traceEverOn(true);
        top_->trace(&trace_, 99);
#endif
        top_->clk = top_->key_we = top_->key_clear = top_->s_tvalid = top_->m_tready = 0;
        if constexpr (requires { top_->cmd_valid; }) top_->cmd_valid = 0;
        top_->rst = 1;
        for (int i = 0; i < 3; ++i) cycle();
        top_->rst = 0;
    }
    ~Model() override {
        clear_key();
        top_->final();
    }

  protected:
    bool stalls() { return this->stall_percent != 0 && this->random() % 100 < this->stall_percent; }

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

    void write_key(unsigned address, uint32_t data) {
        top_->key_we = 1;
        top_->key_addr = address;
        top_->key_data = data;
        cycle();
        top_->key_we = 0;
    }

    bool wait_for_key() {
        if constexpr (requires { top_->key_ready; })
            for (int64_t begun = cycles_; !top_->key_ready; cycle())
                if (cycles_ - begun > TIMEOUT_CYCLES) return false;
        return true;
    }

    void clear_key() {
        top_->key_clear = 1;
        cycle();
        top_->key_clear = 0;
        cycle();
        // What the last packet left at the ports.
        for (auto *lane = reinterpret_cast<uint8_t *>(&top_->s_tdata); lane != reinterpret_cast<uint8_t *>(&top_->s_tdata + 1);)
            *lane++ = 0;
        top_->key_data = 0;
        cycle();
    }

    // Around a packet: its waveform, if it is to be recorded.
    void begin_packet() {
#if VM_TRACE_FST
        recording_ = !this->record.empty();
        if (recording_) trace_.open(this->record.c_str());
        this->record.clear();
#endif
    }
    void end_packet() {
#if VM_TRACE_FST
        if (recording_) trace_.close();
        recording_ = false;
#endif
    }

    VerilatedContext context_;
    int64_t cycles_ = 0;
#if VM_TRACE_FST
    VerilatedFstC trace_;
    bool recording_ = false;
#endif
    std::unique_ptr<Top> top_;
};

#endif
