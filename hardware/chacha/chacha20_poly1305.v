// ChaCha20-Poly1305 on a stream (RFC 8439 2.8, RFC 7634). Packets and answers are those of aes_gcm.
`default_nettype none

module chacha20_poly1305 #(
    parameter QUARTERS = 4, // see chacha_core
    parameter DIGIT = 33    // see poly1305
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         key_we,
    input  wire [2:0]   key_addr, // words 0 to 7
    input  wire [31:0]  key_data,
    input  wire         key_clear,
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
    // Words are written with their first byte most significant, as all keys are; ChaCha's are little-endian.
    reg [255:0] key;
    wire [31:0] key_word;
    byte_reverse #(.BYTES(4)) key_order (.in(key_data), .out(key_word));
    always @(posedge clk)
        if (rst | key_clear) key <= 256'd0;
        else if (key_we) key[{key_addr, 5'd0} +: 32] <= key_word;

    localparam IDLE = 3'd0, ONE_TIME_KEY = 3'd1, DATA = 3'd2, LENGTHS = 3'd3, TAG = 3'd4;
    reg [2:0] state;
    reg decrypt;
    reg [95:0] nonce;
    reg [31:0] counter;
    reg [511:0] pad;  // what is left of a block of key stream
    reg [2:0] beats;  // how many beats that is
    reg [255:0] once; // r and s
    reg [63:0] aad_bytes, text_bytes;

    // The block with counter 0 is the key of Poly1305. The next one is made while the one before is used.
    wire ends = s_tvalid & s_tready & s_tlast;
    wire in_packet = state == ONE_TIME_KEY | state == DATA;
    wire block_ready, block_valid;
    wire [511:0] block;
    wire refill = block_valid & (state == ONE_TIME_KEY | (state == DATA & beats == 3'd0));
    chacha_core #(.QUARTERS(QUARTERS)) chacha (
        .clk(clk), .rst(rst | key_clear), .flush(ends),
        .in_valid(in_packet & ~ends), .in_ready(block_ready), .in_state({nonce, counter, key}),
        .out_valid(block_valid), .out_ready(refill), .out_block(block)
    );

    wire [127:0] mask;
    wire [4:0] count;
    keep_mask kept (.keep(s_tkeep), .mask(mask), .count(count));
    wire [127:0] received = s_tdata & mask;
    wire [127:0] text = (s_tdata ^ pad[127:0]) & mask;

    wire hash_ready;
    wire is_text = ~s_tuser & |s_tkeep;
    wire [127:0] tag;
    poly1305 #(.DIGIT(DIGIT)) hash (
        .clk(clk), .rst(rst | key_clear), .clear(cmd_valid & cmd_ready), .r(once[127:0]), .s(once[255:128]),
        .in_valid((s_tvalid & s_tready & (s_tuser | is_text)) | state == LENGTHS), .in_ready(hash_ready),
        .in_block(state == LENGTHS ? {text_bytes, aad_bytes} : s_tuser | decrypt ? received : text), .tag(tag)
    );

    // A beat moves when all that work on it can take it. An empty one only ends the packet.
    wire can_take = state == DATA & hash_ready & (~is_text | beats != 3'd0);
    assign s_tready = can_take & (~is_text | m_tready);
    wire tag_valid = state == TAG & hash_ready;
    assign m_tvalid = tag_valid | (can_take & s_tvalid & is_text);
    assign m_tdata = state == TAG ? tag : text;
    assign m_tkeep = state == TAG ? 16'hffff : s_tkeep;
    assign m_tuser = state == TAG;
    assign m_tlast = state == TAG;
    assign cmd_ready = state == IDLE;

    always @(posedge clk) begin
        if (rst | key_clear) begin
            state <= IDLE;
            decrypt <= 1'b0;
            nonce <= 96'd0;
            counter <= 32'd0;
            pad <= 512'd0;
            beats <= 3'd0;
            once <= 256'd0;
            aad_bytes <= 64'd0;
            text_bytes <= 64'd0;
        end else begin
            case (state)
                IDLE:
                    if (cmd_valid) begin
                        state <= ONE_TIME_KEY;
                        nonce <= cmd_iv;
                        counter <= 32'd0;
                        decrypt <= cmd_decrypt;
                        beats <= 3'd0;
                        aad_bytes <= 64'd0;
                        text_bytes <= 64'd0;
                    end
                ONE_TIME_KEY:
                    if (block_valid) begin
                        once <= block[255:0];
                        state <= DATA;
                    end
                DATA: begin
                    if (refill) begin
                        pad <= block;
                        beats <= 3'd4;
                    end
                    if (s_tvalid & s_tready) begin
                        if (s_tuser) aad_bytes <= aad_bytes + {59'd0, count};
                        else text_bytes <= text_bytes + {59'd0, count};
                        if (is_text) begin
                            pad <= {128'd0, pad[511:128]};
                            beats <= beats - 3'd1;
                        end
                        if (s_tlast) state <= LENGTHS;
                    end
                end
                LENGTHS: if (hash_ready) state <= TAG;
                default: if (tag_valid & m_tready) state <= IDLE;
            endcase
            if (in_packet & block_ready & ~ends) counter <= counter + 32'd1;
        end
    end
endmodule

`default_nettype wire
