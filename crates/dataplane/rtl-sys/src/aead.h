// The AEAD cores: a command with the IV, additional data and text in beats of 16 bytes, the answer and its tag.
#ifndef FOREBAY_RTL_AEAD_H
#define FOREBAY_RTL_AEAD_H

#include "model.h"

#include <algorithm>
#include <cstring>

struct AeadBase : forebay_rtl {
    virtual int64_t key(const uint32_t *words, unsigned count) = 0;
    virtual void clear() = 0;
    virtual int64_t packet(const uint8_t *iv, bool decrypt, const uint8_t *aad, size_t aad_len, const uint8_t *text,
                           size_t text_len, uint8_t *out, uint8_t *tag) = 0;
};

template <class Top>
class Aead final : public Model<Top, AeadBase> {
    static constexpr size_t WIDTH = 16;
    using Model<Top, AeadBase>::top_;
    using Model<Top, AeadBase>::cycles_;

  public:
    int64_t key(const uint32_t *words, unsigned count) override {
        int64_t begun = cycles_;
        for (unsigned at = 0; at < count; ++at) this->write_key(at, words[at]);
        if constexpr (requires { top_->key_ready; }) {
            // The control word: 128, 192 or 256 bits.
            this->write_key(8, (count - 4) / 2);
            this->cycle();
            if (!this->wait_for_key()) return -1;
        }
        return cycles_ - begun;
    }

    void clear() override { this->clear_key(); }

    int64_t packet(const uint8_t *iv, bool decrypt, const uint8_t *aad, size_t aad_len, const uint8_t *text,
                   size_t text_len, uint8_t *out, uint8_t *tag) override {
        this->begin_packet();
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
            offering = offering || (!taken && !this->stalls());
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
            top_->m_tready = !this->stuck && !this->stalls();
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
            this->cycle();
        }
        top_->cmd_valid = top_->s_tvalid = top_->m_tready = 0;
        this->end_packet();
        bool whole = ended && taken && out_at == text_len && tag_at == WIDTH;
        return whole ? cycles_ - begun : -1;
    }
};

#endif
