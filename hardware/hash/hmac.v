// MD5, SHA-1 or SHA-256 of a stream of words, and HMAC with it (RFC 2104).
//
// The key of HMAC is what is left of it after a block each: the state after (key ^ ipad), words 0 to 7, and the one
// after (key ^ opad), words 8 to 15, of which the algorithm takes the first four, five or eight. Without HMAC words
// 0 to 7 are the algorithm's initial value. A message without bytes is one beat that keeps none.
`default_nettype none

module hmac #(
    parameter ALGORITHM = 2 // 0: MD5, 1: SHA-1, 2: SHA-256
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        key_we,
    input  wire [4:0]  key_addr, // 16: control word; bit 0: HMAC
    input  wire [31:0] key_data, // a word of state as a number
    input  wire        key_clear,
    input  wire [31:0] s_tdata,
    input  wire [3:0]  s_tkeep,
    input  wire        s_tlast,
    input  wire        s_tvalid,
    output wire        s_tready,
    output wire [31:0] m_tdata,
    output wire [3:0]  m_tkeep,
    output wire        m_tlast,
    output wire        m_tvalid,
    input  wire        m_tready
);
    localparam WORDS = ALGORITHM == 0 ? 4 : ALGORITHM == 1 ? 5 : 8;
    localparam BITS = 32 * WORDS;
    localparam LITTLE = ALGORITHM == 0;

    reg [32*WORDS-1:0] inner, outer;
    reg keyed;
    integer k;
    always @(posedge clk) begin
        if (rst | key_clear) begin
            inner <= {BITS{1'b0}};
            outer <= {BITS{1'b0}};
            keyed <= 1'b0;
        end else if (key_we) begin
            if (key_addr[4]) keyed <= key_data[0];
            for (k = 0; k < WORDS; k = k + 1) begin
                if (key_addr == k[4:0]) inner[BITS - 32 - 32 * k +: 32] <= key_data;
                if (key_addr == k[4:0] + 5'd8) outer[BITS - 32 - 32 * k +: 32] <= key_data;
            end
        end
    end

    // DATA: words of the message; ONE: the bit behind it, where it has no room in the last word; ZEROS: up to and
    // with the length; then, with HMAC, all of it again for the digest.
    localparam IDLE = 3'd0, DATA = 3'd1, ONE = 3'd2, ZEROS = 3'd3, WAIT = 3'd4, OUT = 3'd5;
    reg [2:0] state;
    reg second;           // the outer hash of HMAC
    reg [3:0] index;      // of the word in its block, and of the digest's word
    reg [60:0] bytes;
    reg [BITS-1:0] digest;

    wire begins = state == IDLE & s_tvalid;
    wire again = state == WAIT & core_idle & keyed & ~second;
    wire core_idle, word_ready;
    wire [BITS-1:0] core_state;
    wire [63:0] length = {bytes, 3'd0};
    wire [31:0] digest_word = digest[BITS-1 -: 32];

    // The bit behind the message is the highest of the byte behind it.
    wire [31:0] mask, beat, swapped_beat;
    wire [2:0] count;
    keep_mask #(.BYTES(4), .COUNT_BITS(3)) kept (.keep(s_tkeep), .mask(mask), .count(count));
    assign beat = (s_tdata & mask) | (s_tlast & ~s_tkeep[3] ? 32'h80 << {count[1:0], 3'd0} : 32'd0);
    byte_reverse #(.BYTES(4)) order_in (.in(beat), .out(swapped_beat));

    reg [31:0] word;
    always @*
        case (state)
            DATA: word = second ? digest_word : LITTLE ? beat : swapped_beat;
            ONE: word = LITTLE ? 32'h00000080 : 32'h80000000;
            default: word = index == 4'd14 ? (LITTLE ? length[31:0] : length[63:32])
                          : index == 4'd15 & lengths ? (LITTLE ? length[63:32] : length[31:0])
                          : 32'd0;
        endcase
    reg lengths; // the next word is the length's second
    wire word_valid = (state == DATA & (second | s_tvalid)) | state == ONE | state == ZEROS;
    wire moves = word_valid & word_ready;
    assign s_tready = state == DATA & ~second & word_ready;

    generate
        if (ALGORITHM == 0) begin : md5
            md5_core core (
                .clk(clk), .rst(rst | key_clear), .load(begins | again), .load_state(again ? outer : inner),
                .word_valid(word_valid), .word_ready(word_ready), .word(word), .idle(core_idle), .state(core_state)
            );
        end else if (ALGORITHM == 1) begin : sha1
            sha1_core core (
                .clk(clk), .rst(rst | key_clear), .load(begins | again), .load_state(again ? outer : inner),
                .word_valid(word_valid), .word_ready(word_ready), .word(word), .idle(core_idle), .state(core_state)
            );
        end else begin : sha256
            sha256_core core (
                .clk(clk), .rst(rst | key_clear), .load(begins | again), .load_state(again ? outer : inner),
                .word_valid(word_valid), .word_ready(word_ready), .word(word), .idle(core_idle), .state(core_state)
            );
        end
    endgenerate

    wire [3:0] last_word = WORDS[3:0] - 4'd1;
    always @(posedge clk) begin
        if (rst | key_clear) begin
            state <= IDLE;
            second <= 1'b0;
            lengths <= 1'b0;
            index <= 4'd0;
            bytes <= 61'd0;
            digest <= {BITS{1'b0}};
        end else begin
            if (moves) index <= index + 4'd1;
            case (state)
                IDLE:
                    if (s_tvalid) begin
                        state <= DATA;
                        second <= 1'b0;
                        index <= 4'd0;
                        bytes <= keyed ? 61'd64 : 61'd0;
                    end
                DATA:
                    if (moves & second) begin
                        digest <= digest << 32;
                        if (index == last_word) state <= ONE;
                    end else if (moves) begin
                        bytes <= bytes + {58'd0, count};
                        if (s_tlast) state <= s_tkeep[3] ? ONE : ZEROS;
                    end
                ONE: if (moves) state <= ZEROS;
                ZEROS:
                    if (moves) begin
                        lengths <= index == 4'd14;
                        if (lengths) begin
                            lengths <= 1'b0;
                            state <= WAIT;
                        end
                    end
                // The core is not idle in the cycle behind its last word.
                WAIT:
                    if (core_idle) begin
                        digest <= core_state;
                        index <= 4'd0;
                        state <= again ? DATA : OUT;
                        second <= again;
                        bytes <= 61'd64 + {55'd0, WORDS[3:0], 2'd0};
                    end
                default:
                    if (m_tready) begin
                        digest <= digest << 32;
                        index <= index + 4'd1;
                        if (m_tlast) state <= IDLE;
                    end
            endcase
        end
    end

    wire [31:0] swapped_digest;
    byte_reverse #(.BYTES(4)) order_out (.in(digest_word), .out(swapped_digest));
    assign m_tdata = LITTLE ? digest_word : swapped_digest;
    assign m_tkeep = 4'hf;
    assign m_tlast = index == last_word;
    assign m_tvalid = state == OUT;
endmodule

`default_nettype wire
