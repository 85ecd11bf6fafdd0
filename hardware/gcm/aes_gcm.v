// AES-GCM on a stream (SP 800-38D, RFC 4106), with IVs of 96 bits.
//
// A packet is its additional authenticated data, in beats with tuser, and its text; each of the two begins with a beat
// of its own. Without either it is one beat that keeps no byte. Out come the text's beats and then, with tuser
// and tlast, the tag: the caller compares it.
`default_nettype none

module aes_gcm #(
    parameter PIPELINED = 0, // 0: aes_core, 1: aes_pipeline
    parameter DIGIT = 16     // see ghash; 128 belongs to the pipeline
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         key_we,
    input  wire [3:0]   key_addr,
    input  wire [31:0]  key_data,
    input  wire         key_clear,
    output wire         key_ready,
    // One command a packet, before its first beat.
    input  wire         cmd_valid,
    output wire         cmd_ready,
    input  wire [95:0]  cmd_iv,
    input  wire         cmd_decrypt,
    input  wire [127:0] s_tdata,
    input  wire [15:0]  s_tkeep,
    input  wire         s_tuser,
    input  wire         s_tlast,
    input  wire         s_tvalid,
    output wire         s_tready,
    output wire [127:0] m_tdata,
    output wire [15:0]  m_tkeep,
    output wire         m_tuser,
    output wire         m_tlast,
    output wire         m_tvalid,
    input  wire         m_tready
);
    localparam NO_KEY = 3'd0, HASH_KEY = 3'd1, IDLE = 3'd2, MASK = 3'd3, DATA = 3'd4, LENGTHS = 3'd5, TAG = 3'd6;
    reg [2:0] state;
    reg requested;         // the block for the hash key was given to AES
    reg decrypt;
    reg [127:0] h;         // hash key
    reg [127:0] tag_mask;  // the first counter block, enciphered
    reg [95:0] iv;
    reg [31:0] counter;
    reg [60:0] aad_bytes, text_bytes;

    // A key that is being written is not one: the hash key belongs to the one before.
    wire aes_key_ready;
    wire key_written = key_we & key_addr[3];
    assign key_ready = state != NO_KEY & state != HASH_KEY;

    // AES makes the hash key, then for each packet the tag's mask and the pads.
    wire aes_in_ready, aes_out_valid;
    wire [127:0] aes_out;
    wire in_packet = state == MASK | state == DATA;
    wire ends = s_tvalid & s_tready & s_tlast;
    wire aes_in_valid = (state == HASH_KEY & ~requested) | (in_packet & ~ends);
    wire [127:0] aes_in = in_packet ? {iv, counter} : 128'd0;
    wire text_taken = s_tvalid & s_tready & ~s_tuser;
    wire aes_out_ready = state == HASH_KEY | state == MASK | text_taken;
    generate
        if (PIPELINED != 0) begin : pipelined
            aes_pipeline aes (
                .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data),
                .key_clear(key_clear), .key_ready(aes_key_ready), .flush(ends),
                .in_valid(aes_in_valid), .in_ready(aes_in_ready), .in_block(aes_in),
                .out_valid(aes_out_valid), .out_ready(aes_out_ready), .out_block(aes_out)
            );
        end else begin : iterative
            aes_core #(.INVERSE(0)) aes (
                .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data),
                .key_clear(key_clear), .key_ready(aes_key_ready), .flush(ends),
                .in_valid(aes_in_valid), .in_ready(aes_in_ready), .in_inverse(1'b0), .in_block(aes_in),
                .out_valid(aes_out_valid), .out_ready(aes_out_ready), .out_block(aes_out)
            );
        end
    endgenerate

    wire [127:0] pad, mask;
    wire [95:0] first_iv;
    wire [4:0] count;
    byte_reverse pad_order (.in(aes_out), .out(pad));
    byte_reverse #(.BYTES(12)) iv_order (.in(cmd_iv), .out(first_iv));
    keep_mask kept (.keep(s_tkeep), .mask(mask), .count(count));
    wire [127:0] received = s_tdata & mask;
    wire [127:0] text = (s_tdata ^ pad) & mask;

    // GHASH takes additional data, cipher text and, at the end, the lengths.
    wire ghash_ready;
    wire [127:0] hashed, y;
    wire is_text = ~s_tuser & |s_tkeep;
    byte_reverse hash_order (.in(s_tuser | decrypt ? received : text), .out(hashed));
    ghash #(.DIGIT(DIGIT)) hash (
        .clk(clk), .rst(rst | key_clear), .clear(cmd_valid & cmd_ready), .h(h),
        .in_valid((s_tvalid & s_tready & (s_tuser | is_text)) | state == LENGTHS), .in_ready(ghash_ready),
        .in_block(state == LENGTHS ? {aad_bytes, 3'd0, text_bytes, 3'd0} : hashed), .y(y)
    );

    // A beat moves when all that work on it can take it. An empty one only ends the packet.
    wire can_take = state == DATA & ghash_ready & (s_tuser | aes_out_valid);
    assign s_tready = can_take & (~is_text | m_tready);
    wire [127:0] tag;
    byte_reverse tag_order (.in(y ^ tag_mask), .out(tag));
    wire tag_valid = state == TAG & ghash_ready;
    assign m_tvalid = tag_valid | (can_take & s_tvalid & is_text);
    assign m_tdata = state == TAG ? tag : text;
    assign m_tkeep = state == TAG ? 16'hffff : s_tkeep;
    assign m_tuser = state == TAG;
    assign m_tlast = state == TAG;
    assign cmd_ready = state == IDLE;

    always @(posedge clk) begin
        if (rst | key_clear) begin
            state <= NO_KEY;
            requested <= 1'b0;
            decrypt <= 1'b0;
            h <= 128'd0;
            tag_mask <= 128'd0;
            iv <= 96'd0;
            counter <= 32'd0;
            aad_bytes <= 61'd0;
            text_bytes <= 61'd0;
        end else if (key_written) begin
            state <= NO_KEY;
            requested <= 1'b0;
        end else begin
            case (state)
                // Not in the cycle behind the control word, when aes_key_ready is still the old key's.
                NO_KEY: begin
                    requested <= 1'b1;
                    if (requested & aes_key_ready) begin
                        state <= HASH_KEY;
                        requested <= 1'b0;
                    end
                end
                HASH_KEY: begin
                    if (aes_in_ready) requested <= 1'b1;
                    if (aes_out_valid) begin
                        h <= aes_out;
                        state <= IDLE;
                    end
                end
                IDLE:
                    if (cmd_valid) begin
                        state <= MASK;
                        iv <= first_iv;
                        counter <= 32'd1;
                        decrypt <= cmd_decrypt;
                        aad_bytes <= 61'd0;
                        text_bytes <= 61'd0;
                    end
                MASK:
                    if (aes_out_valid) begin
                        tag_mask <= aes_out;
                        state <= DATA;
                    end
                DATA:
                    if (s_tvalid & s_tready) begin
                        if (s_tuser) aad_bytes <= aad_bytes + {56'd0, count};
                        else text_bytes <= text_bytes + {56'd0, count};
                        if (s_tlast) state <= LENGTHS;
                    end
                LENGTHS: if (ghash_ready) state <= TAG;
                default: if (tag_valid & m_tready) state <= IDLE;
            endcase
            if (in_packet & aes_in_valid & aes_in_ready) counter <= counter + 32'd1;
        end
    end
endmodule

`default_nettype wire
