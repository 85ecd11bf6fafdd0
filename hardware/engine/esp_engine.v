// An inline ESP engine: a cipher and an authenticator in a chain, a descriptor and a packet in, the packet and a status
// out. Words of 32 bits; the README has the descriptor, the key slots and the order of the words.
`default_nettype none

module esp_engine #(
    parameter CIPHER = 1,    // 1: AES-CTR, 2: AES-CBC, 3: 3DES-CBC, 4: AES-GCM, 5: ChaCha20-Poly1305
    parameter INTEGRITY = 2, // 1: HMAC-MD5, 2: HMAC-SHA-1, 3: HMAC-SHA-256; 0: the cipher's own
    parameter SLOT_BITS = 4  // key slots: 2 to this power
) (
    input  wire                 clk,
    input  wire                 rst,
    // Key slots: 32 words each. A slot is not written while a packet that uses it is in work.
    input  wire                 key_we,
    input  wire [SLOT_BITS+4:0] key_addr,
    input  wire [31:0]          key_data,
    input  wire                 key_clear, // all slots, one after the other, as behind a reset; a packet is lost
    output wire                 key_ready, // that is over
    input  wire [31:0]          s_tdata,
    input  wire                 s_tlast,
    input  wire                 s_tvalid,
    output wire                 s_tready,
    output wire [31:0]          m_tdata,
    output wire [3:0]           m_tkeep,
    output wire                 m_tlast,
    output wire                 m_tvalid,
    input  wire                 m_tready
);
    localparam AEAD = CIPHER == 4 || CIPHER == 5;
    localparam CHAINED = CIPHER == 2 || CIPHER == 3;
    localparam BYTES = CIPHER == 3 ? 8 : 16;
    localparam WORDS = BYTES / 4;
    localparam [7:0] IV_BYTES = CIPHER == 2 ? 8'd16 : 8'd8;
    localparam [1:0] LAST_WORD = WORDS[1:0] - 2'd1;

    localparam DONE = 32'd0, AUTH_FAILED = 32'd1, REFUSED = 32'd2, WRONG_LENGTH = 32'd3;
    localparam CLEAR = 4'd0, DESCRIPTOR = 4'd1, CHECK = 4'd2, LOAD = 4'd3, SKIP = 4'd4, HEAD = 4'd5, IV = 4'd6,
               COMMAND = 4'd7, AAD = 4'd8, TEXT = 4'd9, HIGH = 4'd10, DIGEST = 4'd11, ICV = 4'd12, DRAIN = 4'd13,
               TOKEN = 4'd14, STATUS = 4'd15;
    reg [3:0] state;

    // Descriptor.
    reg [2:0] number;
    reg [3:0] cipher, integrity;
    reg open, extended, zero_iv;
    reg [15:0] slot;
    reg [15:0] length, skip, head, text;
    reg [7:0] iv_length, icv_length;
    reg [31:0] sequence_high, token, status;
    reg odd; // a field that must be zero is not

    wire nulled = cipher == 4'd0;
    wire [15:0] parts = skip + head + {8'd0, iv_length} + text + (open ? {8'd0, icv_length} : 16'd0);
    wire whole_words = ~|{length[1:0], skip[1:0], head[1:0], text[1:0], iv_length[1:0], icv_length[1:0]};
    wire whole_blocks = CHAINED == 0 || nulled || (text & (BYTES[15:0] - 16'd1)) == 16'd0;
    wire right_iv = nulled | (zero_iv ? CHAINED & iv_length == 8'd0 : iv_length == IV_BYTES);
    wire right_integrity = AEAD ? integrity == 4'd0 & ~nulled & icv_length != 8'd0
                                : integrity == INTEGRITY[3:0] & icv_length != 8'd0;
    wire short_aad = !AEAD || (head != 16'd0 && head <= (extended ? 16'd12 : 16'd16));
    wire right = ~odd & whole_words & whole_blocks & right_iv & right_integrity & short_aad & head != 16'd0
               & icv_length <= 8'd16 & (nulled | cipher == CIPHER[3:0]) & parts == length
               & slot >> SLOT_BITS == 16'd0;

    // Key slots; the words of the one in use are in the cores.
    reg [31:0] slots [0:(32<<SLOT_BITS)-1];
    reg [SLOT_BITS+4:0] clear_at;
    reg loaded;
    reg [SLOT_BITS-1:0] loaded_slot;
    reg [5:0] load_at; // one behind the word that is read
    reg [31:0] slot_word, salt;
    wire [4:0] word_at = load_at[4:0] - 5'd1;
    assign key_ready = state != CLEAR;
    wire load_we = state == LOAD & load_at != 6'd0;
    always @(posedge clk) begin
        if (state == CLEAR) slots[clear_at] <= 32'd0;
        else if (key_we) slots[key_addr] <= key_data;
        slot_word <= slots[{slot[SLOT_BITS-1:0], load_at[4:0]}];
    end

    // A packet that ends too soon leaves the cores in the middle of it: they are reset, keys and all.
    wire core_rst = rst | state == CLEAR | (state == DRAIN & status == WRONG_LENGTH);
    reg [15:0] left;      // bytes of the part that is passing
    reg [15:0] text_left; // bytes of the text that have not come
    reg [15:0] auth_left; // bytes that the authenticator has not seen
    reg ended;            // the packet's last word came
    reg cut;              // too soon

    // Words into the engine.
    wire passes = state == SKIP | state == HEAD | state == IV | (state == TEXT & nulled);
    wire hashed_part = INTEGRITY != 0 & (state == HEAD | state == IV | state == TEXT);
    wire text_in = state == TEXT & ~nulled & text_left != 16'd0 & ~gathered;
    wire hash_ready, hash_in_taken;
    wire in_hash = hashed_part & (nulled | open | state != TEXT); // the authenticator sees what comes in
    wire in_free = ~in_hash | hash_ready;
    assign s_tready = ~ended & (state == DESCRIPTOR | (passes & m_tready & in_free) | (text_in & in_free)
                                | (state == ICV & open) | state == DRAIN);
    wire taken = s_tvalid & s_tready;

    // Text is gathered to beats for the cipher, and what it makes is parted again.
    reg [8*BYTES-1:0] beat;
    reg [1:0] beat_words; // gathered, less one
    reg gathered, beat_last;
    reg [8*BYTES-1:0] made;
    reg [2:0] made_words; // not given out yet
    reg [127:0] iv;
    reg [1:0] iv_at;
    reg [127:0] aad;
    reg [2:0] aad_words;
    reg [127:0] digest;
    reg [2:0] digest_words;
    wire cipher_ready, made_valid, made_tag;
    wire [8*BYTES-1:0] made_data;
    wire [BYTES-1:0] made_keep;
    wire cmd_ready;
    reg [BYTES-1:0] cipher_keep;
    integer i, k;
    always @*
        for (i = 0; i < BYTES; i = i + 1)
            cipher_keep[i] = state == AAD ? i[4:2] < aad_words : i[4:2] <= {1'b0, beat_words};
    wire made_ready = made_tag | made_words == 3'd0 | (made_words == 3'd1 & made_word_taken);
    engine_cipher #(.CIPHER(CIPHER), .BYTES(BYTES)) cipher_core (
        .clk(clk), .rst(core_rst), .key_we(load_we & word_at <= 5'd8), .key_addr(word_at[3:0]),
        .key_data(slot_word), .cmd_valid(state == COMMAND), .cmd_ready(cmd_ready),
        // AES-CTR counts from one behind nonce and IV (RFC 3686 4); a chain begins with the packet's IV.
        .cmd_iv(CHAINED ? iv : {32'h01000000, iv[63:0], salt}), .cmd_decrypt(open),
        .s_tdata(state == AAD ? aad[8*BYTES-1:0] : beat), .s_tkeep(cipher_keep), .s_tuser(state == AAD),
        .s_tlast(state == AAD ? text == 16'd0 : beat_last), .s_tvalid(state == AAD | gathered),
        .s_tready(cipher_ready), .m_tdata(made_data), .m_tkeep(made_keep), .m_tuser(made_tag),
        .m_tvalid(made_valid), .m_tready(made_ready)
    );

    // The authenticator sees cipher text: what comes when opening, what goes when sealing.
    wire made_word_valid = state == TEXT & ~nulled & made_words != 3'd0;
    wire out_hash = INTEGRITY != 0 & ~open;
    wire made_word_taken = made_word_valid & m_tready & (~out_hash | hash_ready);
    wire hash_valid = state == HIGH | (in_hash & (text_in | (passes & m_tready)) & s_tvalid)
                    | (made_word_valid & out_hash & m_tready);
    wire [31:0] hash_word = state == HIGH ? sequence_high : in_hash ? s_tdata : made[31:0];
    wire hash_last = state == HIGH | (~extended & auth_left == 16'd4);
    assign hash_in_taken = hash_valid & hash_ready;
    wire hash_out_valid, hash_out_last;
    wire [31:0] hash_out;
    wire [3:0] hash_keep;
    generate
        if (INTEGRITY != 0) begin : chained
            // A block's words wait here while the one before is hashed: cipher and hash work at the same time.
            wire [31:0] queued;
            wire queued_last, queued_valid, queued_ready;
            word_fifo queue (
                .clk(clk), .rst(core_rst), .s_tdata(hash_word), .s_tlast(hash_last), .s_tvalid(hash_valid),
                .s_tready(hash_ready), .m_tdata(queued), .m_tlast(queued_last), .m_tvalid(queued_valid),
                .m_tready(queued_ready)
            );
            hmac #(.ALGORITHM(INTEGRITY - 1)) authenticator (
                .clk(clk), .rst(core_rst), .key_we(load_we & (word_at[4] | word_at == 5'd10)),
                .key_addr(word_at[4] ? {1'b0, word_at[3:0]} : 5'd16), .key_data(slot_word), .key_clear(1'b0),
                .s_tdata(queued), .s_tkeep(4'hf), .s_tlast(queued_last), .s_tvalid(queued_valid),
                .s_tready(queued_ready), .m_tdata(hash_out), .m_tkeep(hash_keep), .m_tlast(hash_out_last),
                .m_tvalid(hash_out_valid), .m_tready(1'b1)
            );
        end else begin : combined
            assign hash_ready = 1'b1;
            assign hash_out_valid = 1'b0;
            assign hash_out_last = 1'b0;
            assign hash_out = 32'd0;
            assign hash_keep = 4'd0;
        end
    endgenerate

    wire icv_out = state == ICV & ~open;
    assign m_tvalid = (passes & s_tvalid & ~ended & in_free) | (made_word_valid & (~out_hash | hash_ready)) | icv_out
                    | state == TOKEN | state == STATUS;
    assign m_tdata = passes ? s_tdata : state == TOKEN ? token : state == STATUS ? status
                   : icv_out ? digest[31:0] : made[31:0];
    assign m_tlast = state == STATUS;
    assign m_tkeep = 4'hf;

    // What comes behind a part that has no more bytes.
    wire [3:0] behind_text = INTEGRITY != 0 & extended ? HIGH : DIGEST;
    wire [3:0] behind_iv = nulled ? (text != 16'd0 ? TEXT : behind_text)
                         : text != 16'd0 | AEAD ? COMMAND : behind_text;
    wire [3:0] behind_head = iv_length != 8'd0 ? IV : behind_iv;
    wire part_ends = left == 16'd4;

    always @(posedge clk) begin
        if (rst | key_clear) begin
            state <= CLEAR;
            clear_at <= {(SLOT_BITS+5){1'b0}};
            number <= 3'd0;
            loaded <= 1'b0;
            loaded_slot <= {SLOT_BITS{1'b0}};
            load_at <= 6'd0;
            salt <= 32'd0;
            {cipher, integrity, open, extended, zero_iv, odd} <= 12'd0;
            {slot, length, skip, head, text} <= 80'd0;
            {iv_length, icv_length} <= 16'd0;
            {sequence_high, token, status} <= 96'd0;
            {left, text_left, auth_left} <= 48'd0;
            {ended, cut} <= 2'd0;
            beat <= {8*BYTES{1'b0}};
            {beat_words, gathered, beat_last} <= 4'd0;
            made <= {8*BYTES{1'b0}};
            made_words <= 3'd0;
            iv <= 128'd0;
            aad <= 128'd0;
            digest <= 128'd0;
            {iv_at, aad_words, digest_words} <= 8'd0;
        end else begin
            if (taken & s_tlast) ended <= 1'b1;
            if (hash_in_taken) auth_left <= auth_left - 16'd4;
            if (key_we & key_addr[SLOT_BITS+4:5] == loaded_slot) loaded <= 1'b0;

            // Between the cipher and the output.
            if (made_word_taken) begin
                made <= made >> 32;
                made_words <= made_words - 3'd1;
                left <= left - 16'd4;
            end
            if (made_valid & made_ready) begin
                if (made_tag) begin
                    digest[8*BYTES-1:0] <= made_data;
                    digest_words <= 3'd4;
                end else begin
                    made <= made_data;
                    made_words <= {2'd0, made_keep[0]} + {2'd0, made_keep[4]}
                                + {2'd0, made_keep[BYTES == 16 ? 8 : 4] & BYTES == 16}
                                + {2'd0, made_keep[BYTES == 16 ? 12 : 4] & BYTES == 16};
                end
            end
            if (hash_out_valid & digest_words != 3'd4) begin
                digest <= {hash_out, digest[127:32]};
                digest_words <= digest_words + 3'd1;
            end
            if (gathered & cipher_ready & state == TEXT) begin
                gathered <= 1'b0;
                beat_words <= 2'd0;
            end

            case (state)
                CLEAR: begin
                    clear_at <= clear_at + 1'b1;
                    if (&clear_at) state <= DESCRIPTOR;
                end
                DESCRIPTOR:
                    if (taken) begin
                        number <= number + 3'd1;
                        case (number)
                            3'd0: begin
                                {slot, odd} <= {s_tdata[31:16], |s_tdata[15:11]};
                                {zero_iv, extended, open, integrity, cipher} <= s_tdata[10:0];
                                status <= DONE;
                            end
                            3'd1: {odd, length} <= {odd | |s_tdata[31:16], s_tdata[15:0]};
                            3'd2: {head, skip} <= s_tdata;
                            3'd3: {icv_length, iv_length, text} <= s_tdata;
                            3'd4: sequence_high <= s_tdata;
                            3'd5: token <= s_tdata;
                            default: odd <= odd | |s_tdata;
                        endcase
                        if (number == 3'd7 | s_tlast) begin
                            number <= 3'd0;
                            // Without even a packet there is nothing to refuse.
                            state <= CHECK;
                            if (s_tlast) begin
                                state <= TOKEN;
                                status <= WRONG_LENGTH;
                            end
                        end
                    end
                CHECK: begin
                    left <= skip;
                    text_left <= text;
                    auth_left <= head + {8'd0, iv_length} + text;
                    iv <= 128'd0;
                    aad <= 128'd0;
                    digest <= 128'd0;
                    {iv_at, aad_words, digest_words, beat_words} <= 10'd0;
                    {gathered, made_words} <= 4'd0;
                    load_at <= 6'd0;
                    if (!right) begin
                        status <= REFUSED;
                        state <= DRAIN;
                    end else begin
                        state <= loaded & loaded_slot == slot[SLOT_BITS-1:0] ? (skip != 16'd0 ? SKIP : HEAD) : LOAD;
                        if (skip == 16'd0) left <= head;
                    end
                end
                LOAD: begin
                    load_at <= load_at + 6'd1;
                    if (load_we & word_at == 5'd9) salt <= salt_bytes;
                    if (load_at == 6'd32) begin
                        loaded <= 1'b1;
                        loaded_slot <= slot[SLOT_BITS-1:0];
                        state <= skip != 16'd0 ? SKIP : HEAD;
                    end
                end
                SKIP:
                    if (taken) begin
                        left <= part_ends ? head : left - 16'd4;
                        if (part_ends) state <= HEAD;
                    end
                HEAD:
                    if (taken) begin
                        // The high half of the sequence number stands behind the SPI (RFC 4106 5).
                        if (AEAD) begin
                            if (extended & aad_words == 3'd0) begin
                                aad[63:0] <= {sequence_high, s_tdata};
                                aad_words <= 3'd2;
                            end else begin
                                aad[{aad_words[1:0], 5'd0} +: 32] <= s_tdata;
                                aad_words <= aad_words + 3'd1;
                            end
                        end
                        left <= part_ends ? (iv_length != 8'd0 ? {8'd0, iv_length} : text) : left - 16'd4;
                        if (part_ends) state <= behind_head;
                    end
                IV:
                    if (taken) begin
                        iv[{iv_at, 5'd0} +: 32] <= s_tdata;
                        iv_at <= iv_at + 2'd1;
                        left <= part_ends ? text : left - 16'd4;
                        if (part_ends) state <= behind_iv;
                    end
                COMMAND:
                    if (cmd_ready) state <= AEAD ? AAD : TEXT;
                AAD:
                    if (cipher_ready) state <= text != 16'd0 ? TEXT : DIGEST;
                TEXT: begin
                    if (taken & nulled) left <= left - 16'd4;
                    if (taken & ~nulled) begin
                        for (k = 0; k < WORDS; k = k + 1)
                            if (beat_words == k[1:0]) beat[32 * k +: 32] <= s_tdata;
                        text_left <= text_left - 16'd4;
                        beat_last <= text_left == 16'd4;
                        gathered <= beat_words == LAST_WORD | text_left == 16'd4;
                        if (!(beat_words == LAST_WORD | text_left == 16'd4)) beat_words <= beat_words + 2'd1;
                    end
                    if (part_ends & (nulled ? taken : made_word_taken)) state <= behind_text;
                end
                HIGH: if (hash_ready) state <= DIGEST;
                DIGEST:
                    if (digest_words == 3'd4 & ~(hash_out_valid & ~hash_out_last)) begin
                        left <= {8'd0, icv_length};
                        state <= ICV;
                    end
                ICV:
                    if (open ? taken : m_tready) begin
                        digest <= digest >> 32;
                        left <= left - 16'd4;
                        if (open & s_tdata != digest[31:0]) status <= AUTH_FAILED;
                        if (part_ends) state <= DRAIN;
                    end
                DRAIN: begin
                    if (status == WRONG_LENGTH) loaded <= 1'b0;
                    if (ended) state <= TOKEN;
                    else if (taken & (status == DONE | status == AUTH_FAILED)) status <= WRONG_LENGTH;
                end
                TOKEN: if (m_tready) state <= STATUS;
                default:
                    if (m_tready) begin
                        state <= DESCRIPTOR;
                        ended <= 1'b0;
                    end
            endcase

            // The packet's last word comes before the last that the descriptor promises.
            if (taken & s_tlast & state != DESCRIPTOR & state != DRAIN & ~last_promised) cut <= 1'b1;
            // A word that is offered is still given out.
            if (cut & (~m_tvalid | m_tready)) begin
                cut <= 1'b0;
                status <= WRONG_LENGTH;
                state <= DRAIN;
            end
        end
    end
    // What may be the packet's last word: the last of the ICV, or when sealing of the part that ends the packet.
    wire nothing_behind = text_left == 16'd0 | (state == TEXT & text_left == 16'd4);
    wire last_promised = open ? state == ICV & part_ends
                       : state == TEXT ? (nulled ? part_ends : text_left == 16'd4)
                       : part_ends & nothing_behind & (state == IV | (state == HEAD & iv_length == 8'd0));
    wire [31:0] salt_bytes;
    byte_reverse #(.BYTES(4)) salt_order (.in(slot_word), .out(salt_bytes));
    // What one of the ciphers or no authenticator needs.
    wire unused = &{1'b0, hash_keep, made_keep, iv[127:64], aad, hash_word, hash_last, hash_out_last};
endmodule

`default_nettype wire
