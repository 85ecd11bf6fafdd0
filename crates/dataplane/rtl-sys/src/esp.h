// The ESP engines: a descriptor and a packet in words, the packet, its token and status in words.
#ifndef FOREBAY_RTL_ESP_H
#define FOREBAY_RTL_ESP_H

#include "model.h"

struct EspBase : forebay_rtl {
    virtual int64_t slot(unsigned slot, const uint32_t *words) = 0;
    virtual int64_t clear() = 0;
    virtual int64_t packet(const uint32_t *in, size_t in_len, uint32_t *out, size_t room, size_t *out_len) = 0;
};

template <class Top>
class Esp final : public Model<Top, EspBase> {
    static constexpr unsigned SLOT_WORDS = 32;
    using Model<Top, EspBase>::top_;
    using Model<Top, EspBase>::cycles_;

  public:
    Esp() { this->wait_for_key(); }
    ~Esp() override { clear(); }

    int64_t slot(unsigned slot, const uint32_t *words) override {
        int64_t begun = cycles_;
        for (unsigned at = 0; at < SLOT_WORDS; ++at) this->write_key(slot * SLOT_WORDS + at, words[at]);
        return cycles_ - begun;
    }

    int64_t clear() override {
        int64_t begun = cycles_;
        this->clear_key();
        return this->wait_for_key() ? cycles_ - begun : -1;
    }

    int64_t packet(const uint32_t *in, size_t in_len, uint32_t *out, size_t room, size_t *out_len) override {
        this->begin_packet();
        int64_t begun = cycles_, moved = cycles_;
        size_t in_at = 0, out_at = 0;
        bool ended = false, offering = false;
        while (!ended && cycles_ - moved <= TIMEOUT_CYCLES) {
            // A word that is offered stays until it is taken.
            offering = offering || (in_at < in_len && !this->stalls());
            top_->s_tvalid = offering;
            top_->s_tdata = offering ? in[in_at] : 0;
            top_->s_tlast = in_at + 1 == in_len;
            top_->m_tready = !this->stuck && !this->stalls();
            top_->eval();
            if (top_->m_tvalid && top_->m_tready) {
                if (out_at < room) out[out_at] = top_->m_tdata;
                ++out_at;
                ended = top_->m_tlast;
                moved = cycles_;
            }
            if (offering && top_->s_tready) {
                offering = false;
                ++in_at;
                moved = cycles_;
            }
            this->cycle();
        }
        top_->s_tvalid = top_->m_tready = 0;
        this->end_packet();
        *out_len = out_at;
        return ended && in_at == in_len && out_at <= room ? cycles_ - begun : -1;
    }
};

#endif
